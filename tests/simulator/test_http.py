"""The HTTP responses of the simulated board: statuses, bodies, framing."""

from __future__ import annotations

import io
import json
import re
import tarfile

import pytest

from mcpboard.simulator import Simulator
from tests.simulator.simulating import exchange, head, http_request, output, run_tool, tool_post


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        pytest.param("GET", "/api/tools/screenshot", None, 405, "Method not allowed", id="a tool asked with GET"),
        pytest.param("GET", "/api/tools/nope", None, 405, "Method not allowed", id="the method before the name"),
        pytest.param("POST", "/api/tools", b"{}", 405, "Method not allowed", id="the catalogue with POST"),
        pytest.param("POST", "/api/phone-bridge/status", b"", 405, "Method not allowed", id="the bridge with POST"),
        pytest.param("BREW", "/api/tools", None, 405, "Method not allowed", id="a method nobody knows"),
        pytest.param("POST", "/api/tools/", b"{}", 404, "404 page not found", id="no name"),
        pytest.param("POST", "/api/tools/a/b", b"{}", 404, "404 page not found", id="a name with a slash"),
        pytest.param("GET", "/elsewhere", None, 404, "404 page not found", id="no such route"),
        pytest.param("POST", "/api/tools/nope", b"{}", 404, "Unknown tool: nope", id="an unknown tool"),
        pytest.param("POST", "/api/tools/wheel_nudge", b"{}", 404, "Unknown tool: wheel_nudge", id="a hidden tool"),
        pytest.param("POST", "/api/tools/shell", b"{", 400, "Invalid request: unexpected EOF", id="a body cut short"),
        pytest.param("POST", "/api/tools/shell", b"x", 400, "Invalid request: invalid character 'x' looking for beginning of value", id="no JSON"),
        pytest.param("POST", "/api/tools/shell", b"[]", 400, "Invalid request: json: cannot unmarshal array into Go value of type agent.toolRequest", id="an array"),
        pytest.param(
            "POST", "/api/tools/shell", b'{"raw_input": 1}', 400,
            "Invalid request: json: cannot unmarshal number into Go struct field toolRequest.raw_input of type string",
            id="raw input that is no text",
        ),
    ],
)  # fmt: skip
def test_the_agent_refuses_in_text(
    sim: Simulator, method: str, path: str, body: bytes | None, status: int, text: str
) -> None:
    response = http_request(sim.agent_url, method, path, body)
    assert (response.status, response.text) == (status, text + "\n")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "Allow" not in response.headers
    assert not sim.calls


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", "/api/config", id="another route"),
        pytest.param("POST", "/api/device/status", id="another method"),
        pytest.param("GET", "/", id="the root"),
    ],
)
def test_config_web_knows_no_405(sim: Simulator, method: str, path: str) -> None:
    response = http_request(sim.config_web_url, method, path)
    assert (response.status, response.text) == (404, "Not Found\n")
    assert "X-Aiden-API-Version" not in response.headers


def test_a_long_reply_comes_in_chunks_without_a_length(sim: Simulator) -> None:
    raw = exchange(sim.agent_url, tool_post("screenshot", {}))
    top, _, rest = raw.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in top
    assert b"Content-Length" not in top
    size, _, rest = rest.partition(b"\r\n")
    assert json.loads(rest[: int(size, 16)])["is_error"] is False
    assert rest[int(size, 16) :] == b"\r\n0\r\n\r\n"


def test_a_short_reply_has_a_length(sim: Simulator) -> None:
    top, _, body = exchange(sim.agent_url, head("GET", "/health")).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in top
    assert b"Transfer-Encoding" not in top
    assert b"Server:" not in top
    assert b"Connection: close" in top


def test_an_old_http_version_gets_a_body_that_ends_with_the_connection(sim: Simulator) -> None:
    top, _, body = exchange(sim.agent_url, b"GET /api/tools HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.0 200 OK")
    assert b"chunked" not in top
    assert len(json.loads(body)["tools"]) == 14


def test_a_connection_carries_several_requests(sim: Simulator) -> None:
    once = head("GET", "/health").replace(b"Connection: close\r\n", b"")
    assert exchange(sim.agent_url, once + head("GET", "/health")).count(b"HTTP/1.1 200 OK") == 2


def test_a_chunked_request_is_read(sim: Simulator) -> None:
    request = (
        b"POST /api/tools/shell HTTP/1.1\r\nHost: b\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'9\r\n{"input":\r\n13\r\n{"command": "pwd"}}\r\n0\r\n\r\n'
    )
    assert b"/userdata/agent" in exchange(sim.agent_url, request)


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"no request at all, really\r\n\r\n", id="a request line that is none"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", id="a chunk without size"),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_in_text(sim: Simulator, request_bytes: bytes) -> None:
    raw = exchange(sim.agent_url, request_bytes)
    assert raw.startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'{"input": {"command": "echo a"}}', "a\n", id="an object"),
        pytest.param(b'{"input": "{\\"command\\": \\"echo a\\"}"}', "a\n", id="an object in a string"),
        pytest.param(b'{"raw_input": "{\\"command\\":\\"echo raw\\"}", "input": {"command": "echo a"}}', "raw\n", id="raw input wins"),
        pytest.param(b'{"raw_input": "", "input": {"command": "echo a"}}', "a\n", id="empty raw input does not"),
        pytest.param(b'{"input": {"command": "echo a"}} and {more', "a\n", id="only the first value counts"),
        pytest.param(b'{"else": 1, "input": {"command": "echo a"}}', "a\n", id="unknown keys are ignored"),
        pytest.param(b'{"input": {"__arg1": "{\\"command\\": \\"echo a\\"}"}}', "a\n", id="a wrapper is taken off"),
        pytest.param(b'{"raw_input": "`{\\"command\\": \\"echo a\\"}`"}', "a\n", id="stray quotes are taken off"),
        pytest.param(b'{"raw_input": "{\\"command\\": \\"echo \'a\\tb\'\\"}"}', "a\tb\n", id="raw control characters"),
        pytest.param(b"", "Missing required parameter: command", id="an empty body"),
        pytest.param(b"null", "Missing required parameter: command", id="null"),
        pytest.param(b'{"input": null}', "Missing required parameter: command", id="null input"),
        pytest.param(b'{"input": ""}', "Missing required parameter: command", id="an empty string as input"),
        pytest.param(b"{}", "Missing required parameter: command", id="no input"),
    ],
)  # fmt: skip
def test_the_input_is_found_where_the_agent_finds_it(sim: Simulator, body: bytes, expected: str) -> None:
    response = http_request(sim.agent_url, "POST", "/api/tools/shell", body)
    assert (response.status, response.json["output"]) == (200, expected)


def test_names_are_looked_up_in_any_case(sim: Simulator) -> None:
    assert run_tool(sim, "SheLL", command="pwd")["tool"]["name"] == "shell"
    assert sim.calls == [("shell", {"command": "pwd"})]


def test_an_answer_has_the_keys_of_the_agent(sim: Simulator) -> None:
    response = run_tool(sim, "shell", command="pwd")
    assert list(response) == ["tool", "raw_input", "output", "is_error", "duration_ms", "called_at"]
    assert response["raw_input"] == '{"command":"pwd"}'
    assert response["called_at"] == "2026-05-18T12:34:56.250000000+08:00"
    assert response["duration_ms"] == 0
    assert json.loads(response["tool"]["example_input"]) == {"command": "pwd"}


def test_html_characters_are_escaped_as_go_does(sim: Simulator) -> None:
    raw = exchange(sim.agent_url, tool_post("shell", {"command": "echo '<b>&'"}))
    assert b'"output":"\\u003cb\\u003e\\u0026\\n"' in raw


def test_the_catalogue_is_sorted_and_whole(sim: Simulator) -> None:
    entries = http_request(sim.agent_url, "GET", "/api/tools").json["tools"]
    names = [entry["name"] for entry in entries]
    assert names == sorted(names)
    assert {"keyboard_text", "mouse_move", "run_script"} < set(names), "tools that mcpboard must filter out"
    for entry in entries:
        assert entry["args_schema"]["type"] == "object"
        assert entry["http"] == {"method": "POST", "path": f"/api/tools/{entry['name']}"}
        assert isinstance(json.loads(entry["example_input"]), dict)


def test_the_device_status_is_config_webs(sim: Simulator) -> None:
    response = http_request(sim.config_web_url, "GET", "/api/device/status")
    assert response.headers["X-Aiden-API-Version"] == "1"
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert response.json["agent_status"]["state"] == "running"


def test_the_bridge_status_tells_a_phone_from_none(sim: Simulator) -> None:
    assert (
        http_request(sim.agent_url, "GET", "/api/phone-bridge/status").json["environment"]["battery"]["charging"]
        is True
    )
    sim.phone.bridge_connected = False
    status = http_request(sim.agent_url, "GET", "/api/phone-bridge/status").json
    assert status["connected"] is False
    assert "environment" not in status


def test_the_bundle_is_a_tar_of_three_flat_files(sim: Simulator) -> None:
    response = http_request(sim.config_web_url, "GET", "/api/logs/support")
    assert response.headers["Content-Type"] == "application/gzip"
    assert response.headers["Content-Length"] == str(len(response.body))
    assert "Content-Disposition" not in response.headers
    with tarfile.open(fileobj=io.BytesIO(response.body), mode="r:gz") as archive:
        members = archive.getmembers()
    assert [member.name for member in members[:2]] == ["langfuse.yaml", "agent.log"]
    assert re.fullmatch(r"llm-http-.+\.log", members[2].name)
    assert {(member.mode, member.mtime) for member in members} == {(0o644, 0)}


def test_the_live_page_shows_the_screen(sim: Simulator) -> None:
    page = http_request(sim.agent_url, "GET", "/")
    assert b'<img src="/screen.jpg"' in page.body
    picture = http_request(sim.agent_url, "GET", "/screen.jpg?123")
    assert picture.headers["Content-Type"] == "image/jpeg"
    assert picture.body.startswith(b"\xff\xd8\xff")


def test_the_calls_are_told_over_http(sim: Simulator) -> None:
    output(run_tool(sim, "screenshot"))
    assert http_request(sim.agent_url, "GET", "/simulator/calls").json == {
        "calls": [{"name": "screenshot", "input": {}}]
    }
