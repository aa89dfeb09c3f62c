"""Clients that people use, in front of a board: what each agrees on, and that everything it asks for arrives."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpboard.board.tools import allowed
from tests import provision
from tests.served import Board

pytestmark = pytest.mark.tools

MODERN, LEGACY = "2026-07-28", "2025-11-25"
REFUSED = -32602  # our code for a tool that does not exist
UNASKED = "tool_not_found"  # the inspector's own word: it looks into the list first
VISIT_S = 60.0  # seconds; a visit takes two on an idle machine
SCRIPTS = Path(__file__).parent / "clients"

NODE = {"node": "22.23.3"}
SDK1 = {**NODE, "@modelcontextprotocol/sdk": "1.32.2"}
CLIENT2 = {**NODE, "@modelcontextprotocol/client": "2.4.0"}
INSPECTOR = {**NODE, "@modelcontextprotocol/inspector": "2.12.0"}

Visit = dict[str, Any]
Visitor = Callable[[str], Visit]


def python(script: str, requirement: str, *arguments: str) -> Visitor:
    """Visits with a Python script that finds `requirement`."""

    def visit(url: str) -> Visit:
        command: provision.Command = [provision.python_prefix(requirement), "-I", SCRIPTS / script, *arguments, url]
        seen: Visit = json.loads(provision.run(command, limit_s=VISIT_S))
        return seen

    return visit


def node(script: str, packages: dict[str, str], *arguments: str) -> Visitor:
    """Visits with a module that finds `packages`: read from standard input, it imports from the working folder."""

    def visit(url: str) -> Visit:
        prefix = provision.node_prefix(packages)
        command: provision.Command = [prefix / "node_modules/.bin/node", "--input-type=module", "-", *arguments, url]
        module = (SCRIPTS / script).read_bytes()
        seen: Visit = json.loads(provision.run(command, limit_s=VISIT_S, cwd=prefix, stdin=module))
        return seen

    return visit


# Who comes, and the protocol version that it must agree on: a wrong refusal shows in nothing else (contract, fact 6).
# Last, what it makes of a tool that does not exist.
CLIENTS = [
    pytest.param(python("mcp2.py", "mcp==2.3.0", "auto"), MODERN, REFUSED, id="Python mcp 2.3, as it comes"),
    pytest.param(
        python("mcp2.py", "mcp==2.3.0", "legacy"), LEGACY, REFUSED, id="Python mcp 2.3, asked for a handshake"
    ),
    pytest.param(python("mcp1.py", "mcp==1.30.0"), LEGACY, REFUSED, id="Python mcp 1.30"),
    pytest.param(python("mcp1.py", "mcp==1.23.3"), LEGACY, REFUSED, id="Python mcp 1.23"),
    pytest.param(python("fastmcp4.py", "fastmcp==4.2.3"), MODERN, REFUSED, id="fastmcp 4.2, as it comes"),
    pytest.param(node("sdk1.mjs", SDK1), LEGACY, REFUSED, id="TypeScript sdk 1.32"),
    pytest.param(node("client2.mjs", CLIENT2, "auto"), MODERN, REFUSED, id="TypeScript client 2.4, asked to probe"),
    pytest.param(node("client2.mjs", CLIENT2, "legacy"), LEGACY, REFUSED, id="TypeScript client 2.4, as it comes"),
    pytest.param(node("inspector.mjs", INSPECTOR, "auto"), MODERN, UNASKED, id="inspector 2.12, asked to probe"),
    pytest.param(node("inspector.mjs", INSPECTOR, "legacy"), LEGACY, UNASKED, id="inspector 2.12, as it comes"),
]


@pytest.mark.parametrize(("visitor", "version", "unknown"), CLIENTS)
def test_a_client_agrees_on_its_version_and_gets_all_it_asks_for(
    board: Board, visitor: Visitor, version: str, unknown: int | str
) -> None:
    """One visit: handshake, list, a small call, a picture, a bundle, and a tool that does not exist."""
    seen = visitor(board.url)
    assert seen["version"] == version
    assert seen["tools"] == [row.tool.name for row in allowed(shell=False)]
    assert seen["status"]["structuredContent"] == json.loads(seen["status"]["content"][0]["text"])
    assert_picture(seen["picture"])
    assert_bundle(seen["bundle"])
    assert seen["unknown"] == unknown


def assert_picture(result: dict[str, Any]) -> None:
    """A whole JPEG beside a line of text, and no structured content (contract, fact 7)."""
    image, text = result["content"]
    jpeg = base64.b64decode(image["data"], validate=True)
    assert image["mimeType"] == "image/jpeg"
    assert (jpeg[:3], jpeg[-2:]) == (b"\xff\xd8\xff", b"\xff\xd9")
    assert text["type"] == "text"
    assert "structuredContent" not in result


def assert_bundle(result: dict[str, Any]) -> None:
    """A gzip tar with files in it."""
    archive = next(block["resource"] for block in result["content"] if block["type"] == "resource")
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive["blob"], validate=True)), mode="r:gz") as files:
        assert files.getnames()
