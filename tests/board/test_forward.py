"""One row run: what an action's outcome says, and what is kept of one that was not delivered."""

from __future__ import annotations

from typing import Any

import pytest
import responses
from requests.exceptions import ConnectionError, ConnectTimeout, ReadTimeout

from mcpboard.board.backend import Backend
from mcpboard.board.forward import LANE_CAPACITY, Forwarder
from mcpboard.board.lanes import Lanes
from mcpboard.board.tools import ROWS
from mcpboard.errors import ToolError
from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Blob, Content, Text
from mcpboard.protocol.versions import RequestVersion
from mcpboard.serving.undelivered import UndeliveredOutcomes
from tests.support.clock import Clock

pytestmark = pytest.mark.usefixtures("no_sockets")

URL = "http://127.0.0.1:8081"
LIMIT = 1 << 20  # bytes of a bundle; no test here comes near it


WELL: dict[str, Any] = {"json": {"output": "done", "is_error": False}}


@pytest.fixture
def forward() -> Forwarder:
    return Forwarder(Lanes(LANE_CAPACITY), UndeliveredOutcomes())


def run(forward: Forwarder, tool: str, answer: dict[str, Any] = WELL, arguments: bytes = b"{}") -> Outcome:
    (row,) = (row for row in ROWS if row.tool.name == tool)
    call = ToolCall(1, tool, arguments, RequestVersion(False, False, None), None, "")
    responses.upsert(row.method, f"{URL}{row.path}", **answer)
    return forward.run(row, call, Backend("agent", URL), LIMIT)


def text(outcome: Outcome) -> str:
    if isinstance(outcome.result, Content):
        return "\n".join(block.text for block in outcome.result.blocks if isinstance(block, Text))
    return str(outcome.result)


def lose(outcome: Outcome) -> None:
    assert outcome.on_delivered is not None
    outcome.on_delivered(None)


def test_arguments_are_carried_over_as_they_came(forward: Forwarder) -> None:
    run(forward, "open_app", arguments=b'{"app":"caf\xc3\xa9","n":1.50}')
    run(forward, "device_status")
    sent = [(call.request.body, call.request.headers.get("Content-Type")) for call in responses.calls]
    assert sent == [(b'{"input":{"app":"caf\xc3\xa9","n":1.50}}', "application/json"), (None, None)]


def test_an_undelivered_outcomes_age_counts_from_the_action() -> None:
    """And not from the reader who was given up, who may stall for half a minute before the server ends it."""
    clock = Clock()
    forward = Forwarder(Lanes(LANE_CAPACITY), UndeliveredOutcomes(clock))
    undelivered = run(forward, "open_app")
    clock.now += 30
    lose(undelivered)
    clock.now += 12
    assert "The earlier open_app finished OK 42 s ago" in text(run(forward, "keyboard_tap"))


@pytest.mark.parametrize(("answer", "message"), [
    pytest.param(WELL, "finished OK", id="it worked"),
    pytest.param({"body": ReadTimeout("secret")}, "ended with an error", id="nobody knows"),
    pytest.param({"body": ConnectionError("secret")}, "ended with an error", id="cut off"),
    pytest.param({"body": "secret"}, "ended with an error", id="no sense"),
    pytest.param({"status": 404, "body": "secret"}, None, id="never begun"),
    pytest.param({"body": ConnectTimeout("secret")}, None, id="never sent"),
])  # fmt: skip
def test_an_outcome_is_told_in_our_words_alone(forward: Forwarder, answer: dict[str, Any], message: str | None) -> None:
    lose(run(forward, "open_app", answer))
    told = text(run(forward, "keyboard_tap"))
    assert ("The earlier open_app" in told) is (message is not None)
    assert (message or "") in told
    assert "secret" not in told


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), KeyError("a bug")])
def test_an_action_whose_answer_cannot_be_read_may_have_been_executed(
    forward: Forwarder, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """The caller hears so, the lane is free again, and the next action hears of it if the caller did not."""
    outcome = run(forward, "keyboard_tap", {"body": error})
    assert isinstance(outcome.result, ToolError)
    assert outcome.result.delivery == "unknown"
    assert "keyboard_tap: the answer cannot be read" in caplog.text
    lose(outcome)
    assert text(run(forward, "open_app")).startswith("The earlier keyboard_tap ended with an error")


def test_input_is_the_only_lane_whose_outcomes_are_kept(forward: Forwarder) -> None:
    rows = [row for row in ROWS if row.lane != "support_bundle"]
    kept = [row.lane == "input" for row in rows]
    assert [run(forward, row.tool.name).on_delivered is not None for row in rows] == kept


def test_a_bundle_keeps_its_slot_until_it_is_closed(forward: Forwarder) -> None:
    """And one that never came, or is no archive, keeps none."""
    archive: dict[str, Any] = {"body": b"\x1f\x8b archive"}
    for broken in ({"body": ConnectionError("secret")}, {"body": b"<html>"}, {"status": 500, "body": b"\x1f\x8b"}):
        assert isinstance(run(forward, "support_bundle", broken).result, ToolError)
    bundle = run(forward, "support_bundle", archive).result
    assert isinstance(bundle, Content)
    assert "application/gzip: prompts and logs as they are" in text(Outcome(bundle))
    (blob,) = (block for block in bundle.blocks if isinstance(block, Blob))
    assert "support_bundle" in text(run(forward, "support_bundle", archive)), "refused while the first is read"
    assert b"".join(blob.source) == archive["body"]
    blob.source.close()
    assert isinstance(run(forward, "support_bundle", archive).result, Content)
