"""What clients that cannot be run here send before their first call, and what they need to hear.

Each opening is written from what its client is known to do, captured from the client or read in its source: the probes, the header that is missing or disagrees, the fallback that must not be provoked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
BOTH = "application/json, text/event-stream"
STREAM = "text/event-stream"
MODERN, LEGACY, OLDER = "2026-07-28", "2025-11-25", "2025-06-18"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == JSON
        return json.loads(self.body)


@dataclass(frozen=True)
class Step:
    """One request, and what must be true of its answer."""

    method: str
    path: str
    check: Callable[[Answer], None]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def rpc_method(self) -> str | None:
        """What the body asks for, None where there is no body."""
        found: str | None = json.loads(self.body)["method"] if self.body else None
        return found


# --- what must come back ---------------------------------------------------------------------


def not_allowed(answer: Answer) -> None:
    """405, which every client takes for `no stream here`; 404 reads as a wrong URL, a page as a wrong server."""
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.json


def not_allowed_bare(answer: Answer) -> None:
    """The same to HEAD, without the body."""
    assert (answer.status, answer.headers["allow"], answer.body) == (405, "POST", b"")


def no_sign_in(answer: Answer) -> None:
    """404 in JSON: anything else starts a sign-in."""
    assert answer.status == 404
    assert answer.json
    assert not {"location", "www-authenticate"} & set(answer.headers)


def taken(answer: Answer) -> None:
    """202 and nothing at all."""
    assert (answer.status, answer.body, answer.headers["content-length"]) == (202, b"", "0")
    assert "content-type" not in answer.headers


def result_of(answer: Answer) -> Any:
    """The result in an answer that makes nobody fall back to SSE, and hands out no session."""
    assert answer.status == 200, answer.body
    assert "mcp-session-id" not in answer.headers
    return answer.json["result"]


def agreed(answer: Answer) -> None:
    """The version that a board speaks to all who shake hands, whatever older one they asked for."""
    assert result_of(answer)["protocolVersion"] == LEGACY


def discovered(answer: Answer) -> None:
    assert MODERN in result_of(answer)["supportedVersions"]


def listed(answer: Answer) -> None:
    """Every tool and every argument has a description, and every tool says what it may do."""
    for tool in result_of(answer)["tools"]:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert "readOnlyHint" in tool["annotations"]
        assert all(each.get("description") for each in tool["inputSchema"].get("properties", {}).values()), tool


# --- what is sent ----------------------------------------------------------------------------


def get(check: Callable[[Answer], None] = not_allowed, path: str = "/mcp", accept: str = STREAM) -> Step:
    return Step("GET", path, check, {"Accept": accept})


def post(message: Mapping[str, Any], check: Callable[[Answer], None], **headers: str | None) -> Step:
    """A POST; `headers` with underscores, None leaves one out that is usual."""
    usual: dict[str, str | None] = {"Content-Type": JSON, "Accept": BOTH}
    chosen = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {name: value for name, value in chosen.items() if value is not None}
    return Step("POST", "/mcp", check, sent, json.dumps({"jsonrpc": "2.0", **message}).encode())


def initialize(number: int | str, asked: str, name: str, **headers: str | None) -> Step:
    params = {"protocolVersion": asked, "capabilities": {"roots": {}}, "clientInfo": {"name": name, "version": "1"}}
    return post({"id": number, "method": "initialize", "params": params}, agreed, **headers)


def initialized(version: str | None = LEGACY) -> Step:
    return post({"method": "notifications/initialized"}, taken, MCP_Protocol_Version=version)


def tools(number: int | str, version: str | None = LEGACY, **headers: str | None) -> Step:
    return post({"id": number, "method": "tools/list"}, listed, MCP_Protocol_Version=version, **headers)


def modern(number: int | str, method: str, check: Callable[[Answer], None], name: str, **meta: Any) -> Step:
    """A request of the modern revision, whole."""
    prefix = "io.modelcontextprotocol/"
    client = {"name": name, "version": "1"}
    envelope = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientInfo": client, f"{prefix}clientCapabilities": {}}
    params = {"_meta": {**envelope, **{f"{prefix}{key}": value for key, value in meta.items()}}}
    message = {"id": number, "method": method, "params": params}
    return post(message, check, MCP_Protocol_Version=MODERN, Mcp_Method=method)


SIGN_IN = [
    get(no_sign_in, f"/.well-known/{path}", JSON)
    for path in (
        "oauth-protected-resource/mcp", "oauth-protected-resource", "oauth-authorization-server/mcp",
        "oauth-authorization-server", "openid-configuration",
    )
]  # fmt: skip

OPENINGS: dict[str, Sequence[Step]] = {
    "Claude Code": [
        *SIGN_IN,
        modern("server-discover-probe-1", "server/discover", discovered, "claude-code"),
        initialize(0, OLDER, "claude-code"),  # still, after it has discovered us
        initialized(LEGACY),
        tools(1, LEGACY),  # the newest handshake version, whatever was agreed on
        get(),
        modern(2, "tools/list", listed, "claude-code"),
    ],
    "Cursor": [
        initialize(0, OLDER, "cursor-vscode"),
        initialized(None),
        get(),  # the fallback: 404 here reads `failed to open SSE stream`
        tools(1, OLDER),
        *SIGN_IN[:2],
    ],
    "VS Code": [
        initialize(1, LEGACY, "Visual Studio Code"),
        initialized(),
        get(),
        tools(2),
    ],
    "Codex CLI": [
        initialize(0, OLDER, "codex-mcp-client", Accept="text/event-stream, application/json"),
        initialized(OLDER),
        get(),
        tools(1, OLDER, Accept="text/event-stream, application/json"),
    ],
    "Gemini CLI": [
        initialize(0, OLDER, "gemini-cli-mcp-client", Accept=None),  # one release left Accept out
        initialized(),
        get(accept="*/*"),
        tools(1, LEGACY, Accept=None),
    ],
    "Hermes Agent": [
        Step("HEAD", "/mcp", not_allowed_bare),
        get(accept="*/*"),  # a page here would have the server rejected
        initialize(0, LEGACY, "hermes"),
        initialized(),
        modern(1, "server/discover", discovered, "hermes"),
        modern(2, "tools/list", listed, "hermes"),
    ],
    "Goose": [
        modern(0, "server/discover", discovered, "goose", logLevel="info"),
        modern(1, "tools/list", listed, "goose"),
    ],
    "LM Studio": [
        initialize(0, OLDER, "lmstudio", Content_Type="application/json; charset=utf-8"),
        initialized(),
        get(),
        tools(1, LEGACY, Mcp_Session_Id="of-a-server-before"),
        Step("DELETE", "/mcp", not_allowed, {"Mcp-Session-Id": "of-a-server-before"}),
    ],
    "Open WebUI": [
        *SIGN_IN[:1],
        initialize(0, LEGACY, "mcp"),
        initialized(),
        *[get()] * 5,  # some versions try again and again
        tools(1),
    ],
}  # fmt: skip
