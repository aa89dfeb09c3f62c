"""The lease book, line by line: who holds what, until when, and why no longer."""

from __future__ import annotations

import pytest

from mcpboard.host.devices.leases import IDLE_SECONDS, Ended, Held, LeaseBook, busy
from tests.host.rig import CLOUD_OWNER, session

ANN, BOB = session("ann-1234567"), session("bob-1234567")


def used(book: LeaseBook, device: str = "X", owner: object = ANN, begin: float = 0.0, end: float = 0.0) -> int:
    """One whole call; the number of its hold."""
    number = book.enter(device, owner, begin)  # type: ignore[arg-type]
    book.leave(device, number, end)
    return number


def test_the_first_caller_holds_and_the_next_is_turned_away() -> None:
    """Mission: the first caller to touch a device holds it; the other side sees a busy error."""
    book = LeaseBook()
    used(book)
    with pytest.raises(Held) as held:
        book.enter("X", BOB, 1.0)
    assert held.value.lease.owner == ANN


def test_calls_of_one_owner_share_its_hold() -> None:
    book = LeaseBook()
    assert book.enter("X", ANN, 0.0) == book.enter("X", ANN, 0.0) == used(book)


IDLE = [
    pytest.param(0.0, 0.0, 59.9, False, id="not yet idle for a minute"),
    pytest.param(0.0, 0.0, 60.0, True, id="idle for a minute"),
    pytest.param(0.0, 90.0, 149.9, False, id="a call of 90 s counts from its end"),
    pytest.param(0.0, 90.0, 150.0, True, id="a minute after a call of 90 s"),
    pytest.param(100.0, 100.0, 30.0, False, id="a clock that steps back ends nothing"),
]


@pytest.mark.parametrize(("begin", "end", "now", "over"), IDLE)
def test_idle_time_counts_from_the_end_of_the_last_call(begin: float, end: float, now: float, over: bool) -> None:
    """Mission: MCP sessions hold their lock until the session ends or 60 seconds of inactivity."""
    book = LeaseBook()
    used(book, begin=begin, end=end)
    assert book.expire(now) == ([Ended("X", ANN, "idle")] if over else [])
    assert (book.on("X") is None) == over


def test_a_cloud_assignment_holds_until_it_terminates() -> None:
    """Mission: cloud assignments hold theirs until the assignment terminates."""
    book = LeaseBook()
    used(book, owner=CLOUD_OWNER)
    assert book.expire(1e6) == []
    assert book.on("X").free_in(1e6) is None  # type: ignore[union-attr]
    assert [ended.why for ended in book.end_owner(CLOUD_OWNER, "the assignment ended")] == ["the assignment ended"]


def test_a_hold_never_ends_under_a_call_however_long() -> None:
    book = LeaseBook()
    number = book.enter("X", ANN, 0.0)
    assert book.expire(10_000.0) == []
    assert book.on("X").idle(10_000.0) == 0.0  # type: ignore[union-attr]
    book.leave("X", number, 10_000.0)
    assert book.expire(10_000.0 + IDLE_SECONDS) == [Ended("X", ANN, "idle")]


def test_the_second_of_two_calls_under_way_keeps_the_hold() -> None:
    book = LeaseBook()
    first, second = book.enter("X", ANN, 0.0), book.enter("X", ANN, 0.0)
    book.leave("X", first, 1.0)
    assert book.expire(500.0) == []
    book.leave("X", second, 500.0)
    assert book.expire(559.0) == []


def test_what_ends_a_hold_lets_the_call_inside_finish() -> None:
    book = LeaseBook()
    number = book.enter("X", ANN, 0.0)
    assert book.end_owner(ANN, "its session ended") == []
    assert book.why_not("X", number) == "its session ended"
    for owner in (ANN, BOB):
        with pytest.raises(Held):
            book.enter("X", owner, 1.0)
    assert book.leave("X", number, 2.0) == [Ended("X", ANN, "its session ended")]
    assert book.enter("X", BOB, 3.0) != number


def test_the_first_reason_stays() -> None:
    book = LeaseBook()
    number = book.enter("X", ANN, 0.0)
    book.end("X", "released by the operator")
    book.end_owner(ANN, "its session ended")
    assert [each.why for each in book.leave("X", number, 1.0)] == ["released by the operator"]


def test_a_late_number_never_touches_the_next_hold() -> None:
    book = LeaseBook()
    old = used(book)
    book.end("X", "released by the operator")
    new = book.enter("X", BOB, 1.0)
    assert book.leave("X", old, 2.0) == []
    assert book.why_not("X", old) == "it is over"
    assert (book.why_not("X", new), book.on("X").calls) == (None, 1)  # type: ignore[union-attr]


def test_one_owner_holds_several_devices_and_loses_them_together() -> None:
    book = LeaseBook()
    used(book, "X")
    used(book, "Y")
    used(book, "Z", BOB)
    assert [lease.device for lease in book.of(ANN)] == ["X", "Y"]
    assert [ended.device for ended in book.end_owner(ANN, "its session ended")] == ["X", "Y"]
    assert [lease.device for lease in book.all()] == ["Z"]


def test_ending_what_nobody_holds_does_nothing() -> None:
    book = LeaseBook()
    assert (book.end("X", "why"), book.end_owner(ANN, "why"), book.expire(1e9), book.leave("X", 7, 0.0)) == ([],) * 4


# --- what the loser is told --------------------------------------------------------------------

SAME_TOKEN = 'it is another session of your own token: end it, or set hold_scope = "token" in [host]'
TOLD = [
    pytest.param(
        CLOUD_OWNER, BOB, 0.0,
        "device X is busy (held by cloud assignment)", {"busy_owner": "cloud_assignment"},
        id="a cloud assignment, to the letter of the mission",
    ),
    pytest.param(
        session("ann-1234567"), BOB, 18.5,
        "device X is busy (held by MCP session ann-1234; free in 42 s if idle; wait, or end that session)",
        {"busy_owner": "mcp_session:ann-1234", "retry_after_s": 42},
        id="another session, by its first 8 characters",
    ),
    pytest.param(
        session("ann-1234567", "p"), session("bob", "p"), 0.0,
        f"device X is busy (held by MCP session ann-1234; free in 60 s if idle; {SAME_TOKEN})",
        {"busy_owner": "mcp_session:ann-1234", "retry_after_s": 60},
        id="another session of the same token",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("holder", "asking", "now", "message", "told"), TOLD)
def test_the_loser_is_told_who_holds_and_how_long(
    holder: object, asking: object, now: float, message: str, told: object
) -> None:
    """Mission: -32000, with `data.busy_owner` = "cloud_assignment" or "mcp_session:<prefix>"."""
    book = LeaseBook()
    used(book, owner=holder)
    error = busy(book.on("X"), asking, now)  # type: ignore[arg-type]
    assert (error.code, error.message, error.data) == (-32000, message, told)
    assert "1234567" not in error.message


def test_an_owner_shows_its_prefix_and_never_its_key() -> None:
    assert "ann-1234567" not in repr(ANN)
    assert (ANN.label, CLOUD_OWNER.label) == ("mcp_session:ann-1234", "cloud_assignment")
