"""The leases, line by line: who has what, until when, and why no longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcpboard.errors import DeviceBusy, ToolFailed
from mcpboard.host.devices.leases import IDLE_SECONDS, MOST_WAITERS, DeviceLeases, EndedLease, Lease, Owner
from tests.host.rig import CLOUD_OWNER, session

ANN, BOB, CAT = session("ann-1234567"), session("bob-1234567"), session("cat-1234567")


def used(leases: DeviceLeases, device: str = "X", owner: Owner = ANN, begin: float = 0.0, end: float = 0.0) -> int:
    """One whole call; the number of its lease."""
    number = leases.begin_call(device, owner, begin)
    leases.end_call(device, number, end)
    return number


def lease_of(leases: DeviceLeases, device: str = "X", now: float = 0.0) -> Lease:
    return leases.current(now)[device]


def test_the_first_caller_has_the_lease_and_the_next_is_turned_away() -> None:
    """The first caller to touch a device has it; the other side sees a busy error."""
    leases = DeviceLeases()
    used(leases)
    with pytest.raises(DeviceBusy) as busy:
        leases.begin_call("X", BOB, 1.0)
    assert busy.value.data is not None
    assert busy.value.data["busy_owner"] == ANN.label
    assert lease_of(leases).owner == ANN


IDLE = [
    pytest.param(0.0, 0.0, 59.9, False, id="not yet idle for a minute"),
    pytest.param(0.0, 0.0, 60.0, True, id="idle for a minute"),
    pytest.param(0.0, 90.0, 149.9, False, id="a call of 90 s counts from its end"),
    pytest.param(0.0, 90.0, 150.0, True, id="a minute after a call of 90 s"),
    pytest.param(100.0, 100.0, 30.0, False, id="a clock that steps back ends nothing"),
]


@pytest.mark.parametrize(("begin", "end", "now", "over"), IDLE)
def test_idle_time_counts_from_the_end_of_the_last_call(begin: float, end: float, now: float, over: bool) -> None:
    """An MCP session keeps its lease until the session ends or 60 seconds of inactivity."""
    leases = DeviceLeases()
    used(leases, begin=begin, end=end)
    leases.expire(now)
    assert leases.last_ended == ({"X": EndedLease("X", ANN, "idle")} if over else {})
    assert ("X" not in leases.current(now)) == over


LOOKS = [
    pytest.param(lambda leases: leases.current(60.0), id="a look"),
    pytest.param(lambda leases: leases.begin_call("X", BOB, 60.0), id="a call"),
    pytest.param(lambda leases: leases.enqueue("X", BOB, 60.0), id="a wait"),
]


@pytest.mark.parametrize("look", LOOKS)
def test_every_look_and_every_request_ends_what_is_idle_first(look: Callable[[DeviceLeases], object]) -> None:
    leases = DeviceLeases()
    used(leases)
    look(leases)
    assert leases.last_ended == {"X": EndedLease("X", ANN, "idle")}


def test_a_cloud_assignment_has_its_lease_until_it_terminates() -> None:
    leases = DeviceLeases()
    used(leases, owner=CLOUD_OWNER)
    leases.expire(1e6)
    assert lease_of(leases, now=1e6).free_in(1e6) is None
    leases.end_owner(CLOUD_OWNER, "the assignment ended", 1e6)
    assert leases.last_ended["X"].why == "the assignment ended"


def test_a_lease_never_ends_under_a_call_however_long() -> None:
    leases = DeviceLeases()
    number = leases.begin_call("X", ANN, 0.0)
    assert lease_of(leases, now=10_000.0).idle(10_000.0) == 0.0
    leases.end_call("X", number, 10_000.0)
    assert leases.last_ended == {}
    leases.expire(10_000.0 + IDLE_SECONDS)
    assert leases.last_ended == {"X": EndedLease("X", ANN, "idle")}


def test_the_second_of_two_calls_under_way_keeps_the_lease() -> None:
    leases = DeviceLeases()
    first, second = leases.begin_call("X", ANN, 0.0), leases.begin_call("X", ANN, 0.0)
    leases.end_call("X", first, 1.0)
    assert leases.devices_in_use() == {"X"}
    leases.expire(500.0)
    leases.end_call("X", second, 500.0)
    assert leases.devices_in_use() == set()
    leases.expire(559.0)
    assert leases.last_ended == {}


def test_the_end_of_a_lease_lets_the_call_inside_finish() -> None:
    leases = DeviceLeases()
    number = leases.begin_call("X", ANN, 0.0)
    leases.end_owner(ANN, "its session ended", 0.5)
    assert leases.last_ended == {}
    assert leases.why_over("X", number) == "its session ended"
    with pytest.raises(DeviceBusy):
        leases.begin_call("X", BOB, 1.0)
    with pytest.raises(ToolFailed, match=r"^your lease of X is being ended \(its session ended\)"):
        leases.begin_call("X", ANN, 1.0)
    leases.end_call("X", number, 2.0)
    assert leases.last_ended == {"X": EndedLease("X", ANN, "its session ended")}
    assert leases.begin_call("X", BOB, 3.0) != number


def test_a_late_number_never_touches_the_next_lease() -> None:
    leases = DeviceLeases()
    old = used(leases)
    leases.end("X", "released by the operator", 0.5)
    new = leases.begin_call("X", BOB, 1.0)
    leases.end_call("X", old, 2.0)
    assert leases.why_over("X", old) == "it is over"
    assert (leases.why_over("X", new), lease_of(leases).calls) == (None, 1)


def test_one_owner_has_several_devices_and_loses_them_together() -> None:
    leases = DeviceLeases()
    used(leases, "X")
    used(leases, "Y")
    used(leases, "Z", BOB)
    leases.end_owner(ANN, "its session ended", 1.0)
    assert list(leases.last_ended) == ["X", "Y"]
    assert list(leases.current(1.0)) == ["Z"]


def test_ending_what_nobody_has_does_nothing() -> None:
    leases, changes = DeviceLeases(), list[str]()
    leases.on_change = lambda: changes.append("changed")
    leases.end("X", "why", 0.0)
    leases.end_owner(ANN, "why", 0.0)
    leases.withdraw("X", "why", 0.0)
    leases.expire(1e9)
    leases.end_call("X", 7, 0.0)
    assert (leases.last_ended, changes) == ({}, [])


def test_a_change_is_announced_when_a_lease_begins_and_when_it_ends() -> None:
    leases, changes = DeviceLeases(), list[int]()
    leases.on_change = lambda: changes.append(len(leases.last_ended))
    used(leases)
    used(leases)
    assert changes == [0]
    leases.end("X", "why", 1.0)
    assert changes == [0, 1]
    used(leases)
    leases.close("closing")
    assert changes == [0, 1, 1], "nobody is told of the close"
    assert leases.current(1.0) == {}


# --- who is next -------------------------------------------------------------------------------


def test_who_asked_first_is_next_with_all_that_its_owner_waits_for() -> None:
    leases = DeviceLeases()
    used(leases)
    first, second, other, elsewhere = (
        leases.enqueue(*each, 1.0) for each in (("X", BOB), ("X", CAT), ("X", BOB), ("Y", CAT))
    )
    assert [each.granted for each in (first, second, other, elsewhere)] == [False, False, False, True]
    leases.end("X", "released by the operator", 30.0)
    assert [each.granted for each in (first, second, other)] == [True, False, True]
    assert first.answered.is_set()
    assert not second.answered.is_set()
    assert lease_of(leases, now=30.0).free_in(30.0) == IDLE_SECONDS, "the idle time of the next runs from then on"
    leases.expire(90.0)
    assert second.granted


def test_who_left_the_line_and_who_waits_for_what_is_gone_get_nothing() -> None:
    leases = DeviceLeases()
    used(leases)
    left, waiting = leases.enqueue("X", BOB, 1.0), leases.enqueue("X", CAT, 1.0)
    leases.dequeue(left)
    leases.dequeue(left)
    leases.withdraw("X", "the device was removed", 2.0)
    assert (left.answered.is_set(), waiting.answered.is_set(), waiting.granted) == (False, True, False)
    assert leases.current(2.0) == {}


def test_not_everybody_may_wait() -> None:
    leases = DeviceLeases()
    used(leases)
    for _ in range(MOST_WAITERS):
        leases.enqueue("X", BOB, 1.0)
    with pytest.raises(ToolFailed, match="too many wait for X"):
        leases.enqueue("X", CAT, 1.0)


# --- what the loser is told --------------------------------------------------------------------

SAME_TOKEN = 'it is another session of your own token: end it, or set hold_scope = "token" in [host]'
REFUSED = [
    pytest.param(
        CLOUD_OWNER, BOB, 0.0,
        "device X is busy (held by cloud assignment)", {"busy_owner": "cloud_assignment", "delivery": "not_sent"},
        id="a cloud assignment, to the letter",
    ),
    pytest.param(
        session("ann-1234567"), BOB, 18.5,
        "device X is busy (held by MCP session ann-1234; free in 42 s if idle; wait, or end that session)",
        {"busy_owner": "mcp_session:ann-1234", "retry_after_s": 42, "delivery": "not_sent"},
        id="another session, by its first 8 characters",
    ),
    pytest.param(
        session("ann-1234567", "p"), session("bob", "p"), 0.0,
        f"device X is busy (held by MCP session ann-1234; free in 60 s if idle; {SAME_TOKEN})",
        {"busy_owner": "mcp_session:ann-1234", "retry_after_s": 60, "delivery": "not_sent"},
        id="another session of the same token",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "caller", "now", "message", "data"), REFUSED)
def test_the_loser_is_told_who_has_it_and_how_long(
    owner: Owner, caller: Owner, now: float, message: str, data: object
) -> None:
    """-32000, with `data.busy_owner` = "cloud_assignment" or "mcp_session:<prefix>"."""
    leases = DeviceLeases()
    used(leases, owner=owner)
    with pytest.raises(DeviceBusy) as busy:
        leases.begin_call("X", caller, now)
    assert (busy.value.code, busy.value.message, busy.value.data) == (-32000, message, data)
    assert "1234567" not in busy.value.message


def test_an_owner_shows_its_prefix_and_never_its_key() -> None:
    assert "ann-1234567" not in repr(ANN)
    assert (ANN.label, CLOUD_OWNER.label) == ("mcp_session:ann-1234", "cloud_assignment")
