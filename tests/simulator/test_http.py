"""The HTTP responses of the simulated board: statuses, bodies, framing, and the page that shows the phone."""

from __future__ import annotations

import io
import json
import tarfile

import pytest

from mcpboard.simulator import Simulator
from mcpboard.simulator.board import bundle
from mcpboard.simulator.phone.phone import RING_S
from tests.simulator.simulating import ask, exchange, new_board, raw, run_tool, tool_post
from tests.support.clock import Clock

SHELL = "/api/tools/shell"
NOT_ALLOWED, NOT_FOUND = (405, "Method not allowed\n"), (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        pytest.param("GET", SHELL, b"", NOT_ALLOWED, id="a tool asked with GET"),
        pytest.param("GET", "/api/tools/nope", b"", NOT_ALLOWED, id="the method before the name"),
        pytest.param("POST", "/api/tools", b"{}", NOT_ALLOWED, id="the catalogue with POST"),
        pytest.param("BREW", "/health", b"", NOT_ALLOWED, id="a method nobody knows"),
        pytest.param("PUT", "/simulator/phone", b"{}", NOT_ALLOWED, id="the phone with PUT"),
        pytest.param("POST", "/api/tools/", b"{}", NOT_FOUND, id="no name"),
        pytest.param("POST", "/api/tools/a/b", b"{}", NOT_FOUND, id="a name with a slash"),
        pytest.param("GET", "/elsewhere", b"", NOT_FOUND, id="no such route"),
        pytest.param("POST", "/api/tools/nope", b"{}", (404, "Unknown tool: nope\n"), id="an unknown tool"),
        pytest.param("POST", SHELL, b"{", (400, "Invalid request: unexpected EOF\n"), id="a body cut short"),
        pytest.param("POST", SHELL, b"x", (400, "Invalid request: invalid character 'x' looking for beginning of value\n"), id="no JSON"),
        pytest.param("POST", SHELL, b"[]", (400, "Invalid request: json: cannot unmarshal array into Go value of type agent.toolRequest\n"), id="an array"),
        pytest.param("POST", SHELL, b'{"raw_input": 1}', (400, "Invalid request: json: cannot unmarshal number into Go struct field toolRequest.raw_input of type string\n"), id="raw input that is no text"),
    ],
)  # fmt: skip
def test_the_agent_refuses_in_text(sim: Simulator, method: str, path: str, body: bytes, told: tuple[int, str]) -> None:
    response = ask(sim.agent_url, method, path, body)
    assert (response.status, response.body.decode()) == told
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert not sim.calls


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/config"), ("POST", "/api/device/status"), ("GET", "/")])
def test_config_web_knows_no_405(sim: Simulator, method: str, path: str) -> None:
    response = ask(sim.config_web_url, method, path)
    assert (response.status, response.body) == (404, b"Not Found\n")
    assert "x-aiden-api-version" not in response.headers


def test_short_replies_have_a_length_and_long_ones_come_in_chunks(sim: Simulator) -> None:
    head, _, body = exchange(sim.agent_url, raw("GET", "/health")).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head and b"Transfer-Encoding" not in head
    assert b"Server:" not in head
    head, _, body = exchange(sim.agent_url, tool_post("screenshot")).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head and b"Content-Length" not in head
    assert body.endswith(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"no request at all, really\r\n\r\n", id="a request line that is none"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="chunks"),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_in_text(sim: Simulator, sent: bytes) -> None:
    assert exchange(sim.agent_url, sent).startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param('{"input": {"command": "echo a"}}', "a\n", id="an object"),
        pytest.param('{"input": "{\\"command\\": \\"echo a\\"}"}', "a\n", id="an object in a string"),
        pytest.param('{"raw_input": "{\\"command\\":\\"echo raw\\"}", "input": {"command": "echo a"}}', "raw\n", id="raw input wins"),
        pytest.param('{"raw_input": "", "input": {"command": "echo a"}}', "a\n", id="empty raw input does not"),
        pytest.param('{"input": {"command": "echo a"}} and {more', "a\n", id="only the first value counts"),
        pytest.param('{"input": {"__arg1": "{\\"command\\": \\"echo a\\"}"}}', "a\n", id="a wrapper is taken off"),
        pytest.param('{"raw_input": "`{\\"command\\": \\"echo a\\"}`"}', "a\n", id="stray quotes are taken off"),
        pytest.param('{"raw_input": "{\\"command\\": \\"echo \'a\\tb\'\\"}"}', "a\tb\n", id="raw control characters"),
        pytest.param('{"raw_input": "not json"}', "invalid JSON input: Expecting value: line 1 column 1 (char 0)", id="no JSON inside"),
        *(pytest.param(body, "Missing required parameter: command", id=body or "an empty body") for body in ("", "null", '{"input": null}', '{"input": ""}')),
    ],
)  # fmt: skip
def test_the_input_is_found_where_the_agent_finds_it(sim: Simulator, body: str, expected: str) -> None:
    response = ask(sim.agent_url, "POST", SHELL, body.encode())
    assert (response.status, response.json["output"]) == (200, expected)


def test_an_answer_has_the_keys_and_the_spelling_of_the_agent(sim: Simulator) -> None:
    response = run_tool(sim, "SheLL", command="pwd")
    assert list(response) == ["tool", "raw_input", "output", "is_error", "duration_ms", "called_at"]
    assert (response["tool"]["name"], response["raw_input"]) == ("shell", '{"command":"pwd"}')
    assert (response["called_at"], response["duration_ms"]) == ("2026-05-18T12:34:56.250000000+08:00", 0)
    escaped = exchange(sim.agent_url, tool_post("shell", command="echo '<b>&'"))
    assert b'"output":"\\u003cb\\u003e\\u0026\\n"' in escaped


@pytest.mark.parametrize("size", [bundle.SMALL, 65_559, 200_000, 3_000_001])
def test_a_bundle_is_a_tar_of_exactly_that_size(size: int) -> None:
    made = b"".join(bundle.sized(size))
    with tarfile.open(fileobj=io.BytesIO(made), mode="r:gz") as archive:
        names = [member.name for member in archive.getmembers()]
    assert (len(made), names) == (size, ["langfuse.yaml", "agent.log", "llm-http-20260518-123456.log"])


# --- the page that shows the phone ---------------------------------------------------------------------------------


def test_the_page_shows_the_picture_and_needs_nothing_from_elsewhere(sim: Simulator) -> None:
    page = ask(sim.agent_url, "GET", "/").body
    assert b'src="/screen.jpg"' in page
    assert b"http:" not in page and b"https:" not in page
    assert ask(sim.agent_url, "GET", "/screen.jpg?123").body.startswith(b"\xff\xd8\xff")


def test_a_key_on_the_page_writes(sim: Simulator) -> None:
    assert b'tool("keyboard_text",{text:' in ask(sim.agent_url, "GET", "/").body
    sim.phone.show("Notes")
    sim.phone.tap(450, 300)
    run_tool(sim, "keyboard_text", text="hi!")
    assert ask(sim.agent_url, "GET", "/simulator/phone").json["text"] == "hi!"


def test_a_touch_rings_in_the_live_picture_only_and_only_for_a_moment() -> None:
    with new_board() as board:
        quiet = ask(board.agent_url, "GET", "/screen.jpg").body
        board.phone.tap(500, 800)
        assert ask(board.agent_url, "GET", "/screen.jpg").body != quiet
        clock = board.phone._clock
        assert isinstance(clock, Clock)
        clock.pass_by(2 * RING_S)
        assert ask(board.agent_url, "GET", "/screen.jpg").body == quiet


def test_the_phone_can_be_turned_and_darkened_over_http(sim: Simulator) -> None:
    seen = ask(sim.agent_url, "POST", "/simulator/phone", b'{"landscape": true, "dark": true}').json
    assert (seen["landscape"], seen["dark"], seen["app"]) == (True, True, "Home")
    assert seen["tree"]["box"] == [0, 0, 1920, 886]
    again = ask(sim.agent_url, "POST", "/simulator/phone", b'{"landscape": false}').json
    assert (again["landscape"], again["dark"]) == (False, True)
    assert ask(sim.agent_url, "GET", "/simulator/phone").json == again


@pytest.mark.parametrize(
    ("post", "told"),
    [
        ("x", "Expecting value"), ("[]", "expected an object of booleans"), ('{"landscape": 1}', "expected an object of booleans"),
        ('{"loud": true}', "no switch is called 'loud'; there are: landscape, dark"),
    ],
)  # fmt: skip
def test_a_switch_that_is_none_is_refused(sim: Simulator, post: str, told: str) -> None:
    response = ask(sim.agent_url, "POST", "/simulator/phone", post.encode())
    assert response.status == 400
    assert told in json.dumps(response.body.decode())
