"""The book of legacy sessions: ids and times are handed in, so a day passes in a line."""

from __future__ import annotations

from mcpboard.protocol.limits import SESSIONS_LIMIT
from mcpboard.protocol.sessions import KEEP_SECONDS, Session, SessionBook


def entry(session_id: str, at: float = 0.0, *, has_held: bool = False) -> Session:
    """A session opened, and last used, at that second."""
    return Session(session_id, "2025-11-25", "alice", "client 1", at, at, has_held)


def book_of(*sessions: Session) -> SessionBook:
    book = SessionBook()
    for session in sessions:
        book.add(session)
    return book


def full_book(has_held: int = 0) -> SessionBook:
    """A book with no room left; session n was opened in second n, the first ones have held a device."""
    return book_of(*(entry(f"s{number}", number, has_held=number < has_held) for number in range(SESSIONS_LIMIT)))


def test_a_session_is_found_until_it_is_ended() -> None:
    session = entry("a")
    book = book_of(session)
    assert (book.find("a", 1), book.find("", 1)) == (session, None)
    assert (book.pop("a"), book.find("a", 2), list(book)) == (session, None, [])


def test_use_keeps_a_session_alive_and_what_is_over_does_not_come_back() -> None:
    book = book_of(entry("a"))
    assert [book.find("a", days * KEEP_SECONDS) is not None for days in (1, 2, 3.1, 3.2)] == [True, True, False, False]


def test_all_is_in_the_order_of_opening_and_opening_drops_what_is_over() -> None:
    book = book_of(entry("old"), entry("b", 1), entry("a", 2), entry("c", KEEP_SECONDS + 1))
    assert list(book) == ["b", "a", "c"]


def test_in_a_full_book_the_least_recently_used_goes_first() -> None:
    book = full_book()
    book.find("s0", SESSIONS_LIMIT)
    book.add(entry("new", SESSIONS_LIMIT))
    assert list(book) == ["s0", *(f"s{number}" for number in range(2, SESSIONS_LIMIT)), "new"]


def test_a_session_that_once_held_a_device_outlasts_one_that_never_did() -> None:
    for held, gone in ((10, "s10"), (SESSIONS_LIMIT, "s0")):
        book = full_book(held)
        book.add(entry("new", SESSIONS_LIMIT))
        assert {f"s{number}" for number in range(SESSIONS_LIMIT)} - set(book) == {gone}


def test_a_session_with_a_live_hold_is_never_dropped() -> None:
    book = full_book()
    book.add(entry("new", SESSIONS_LIMIT), holding={"s0", "s1"})
    assert {"s0", "s1"} <= set(book)
    assert "s2" not in list(book)
    book.add(entry("newer", 2 * KEEP_SECONDS), holding={"s0"})
    assert list(book) == ["s0", "newer"]


def test_what_is_over_makes_the_room_before_anybody_else() -> None:
    book = full_book()
    book.add(entry("new", KEEP_SECONDS + 5.5))
    assert list(book) == [*(f"s{number}" for number in range(6, SESSIONS_LIMIT)), "new"]
