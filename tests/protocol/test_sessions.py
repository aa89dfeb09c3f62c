"""The book of legacy sessions: ids and times are handed in, so a day passes in a line."""

from __future__ import annotations

from mcpboard.protocol.limits import SESSIONS_LIMIT
from mcpboard.protocol.sessions import KEEP_SECONDS, Session, SessionBook


def entry(session_id: str, at: float = 0.0, *, has_held: bool = False) -> Session:
    """A session opened, and last used, at that second."""
    return Session(session_id, "2025-11-25", "alice", "client 1", at, at, has_held)


def full_book() -> SessionBook:
    """A book with no room left; session n was opened in second n."""
    book = SessionBook()
    for number in range(SESSIONS_LIMIT):
        book.add(entry(f"s{number}", number))
    return book


def ids(book: SessionBook) -> list[str]:
    return [session.id for session in book.all()]


def test_a_session_is_found_until_it_is_ended() -> None:
    book = SessionBook()
    session = entry("a")
    book.add(session)
    assert book.find("a", 1) is session
    assert book.end("a") is session
    assert book.find("a", 2) is None
    assert book.end("a") is None
    assert len(book.all()) == 0


def test_an_id_that_was_never_minted_is_not_there() -> None:
    book = SessionBook()
    assert book.find("", 0) is None
    assert book.end("a") is None


def test_use_keeps_a_session_alive() -> None:
    book = SessionBook()
    book.add(entry("a"))
    assert book.find("a", KEEP_SECONDS) is not None
    assert book.find("a", 2 * KEEP_SECONDS) is not None
    assert book.find("a", 3 * KEEP_SECONDS + 0.1) is None


def test_a_session_that_is_over_does_not_come_back() -> None:
    book = SessionBook()
    book.add(entry("a"))
    assert book.find("a", KEEP_SECONDS + 1) is None
    assert book.find("a", KEEP_SECONDS + 2) is None


def test_all_is_in_the_order_of_opening() -> None:
    book = SessionBook()
    for session_id in ("b", "a", "c"):
        book.add(entry(session_id))
    book.find("b", 5)
    assert ids(book) == ["b", "a", "c"]


def test_minting_drops_what_is_over() -> None:
    book = SessionBook()
    book.add(entry("old", 0))
    book.add(entry("young", 1))
    book.add(entry("new", KEEP_SECONDS + 1))
    assert ids(book) == ["young", "new"]


def test_a_full_book_stays_full() -> None:
    book = full_book()
    book.add(entry("new", SESSIONS_LIMIT))
    assert len(book.all()) == SESSIONS_LIMIT
    assert "new" in ids(book)


def test_the_least_recently_used_goes_first() -> None:
    book = full_book()
    book.find("s0", SESSIONS_LIMIT)
    book.add(entry("new", SESSIONS_LIMIT))
    assert "s0" in ids(book)
    assert "s1" not in ids(book)


def test_a_session_that_once_held_a_device_outlasts_one_that_never_did() -> None:
    book = full_book()
    for session in book.all()[:10]:
        session.has_held = True
    book.add(entry("new", SESSIONS_LIMIT))
    assert "s0" in ids(book)
    assert "s10" not in ids(book)


def test_those_that_held_go_when_no_others_are_left() -> None:
    book = SessionBook()
    for number in range(SESSIONS_LIMIT):
        book.add(entry(f"s{number}", number, has_held=True))
    book.add(entry("new", SESSIONS_LIMIT))
    assert "s0" not in ids(book)
    assert len(book.all()) == SESSIONS_LIMIT


def test_a_session_with_a_live_hold_is_never_dropped() -> None:
    book = full_book()
    book.add(entry("new", SESSIONS_LIMIT), holding={"s0", "s1"})
    assert {"s0", "s1"} <= set(ids(book))
    assert "s2" not in ids(book)
    book.add(entry("newer", 2 * KEEP_SECONDS), holding={"s0"})
    assert ids(book) == ["s0", "newer"]


def test_what_is_over_makes_the_room_before_anybody_else() -> None:
    book = full_book()
    book.add(entry("new", KEEP_SECONDS + 5.5))
    assert ids(book)[0] == "s6"
    assert len(book.all()) == SESSIONS_LIMIT - 6 + 1
