"""Clients that people use, in front of a board: what each agrees on, and that everything it asks for arrives."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from typing import Any

import pytest

from mcpboard.board.tools import allowed
from tests.support.served import Board
from tests.support.visitors import CLIENTS, Client, VisitFailed, Visitor, bridge_program, visit

pytestmark = pytest.mark.tools


def those(way: str, *, connect: bool = True) -> list[Any]:
    """The clients that can connect that way, or those that cannot."""
    return [pytest.param(each, id=str(each)) for each in CLIENTS if bool(getattr(each, way)) == connect]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bridge_program(tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("client", those("direct"))
def test_a_client_agrees_on_its_version_and_gets_all_it_asks_for(board: Board, client: Client) -> None:
    with visit(client, [board.url]) as visitor:
        assert visitor.version == client.direct
        assert_all_it_asks_for(visitor, client)


@pytest.mark.parametrize("client", those("bridged"))
def test_the_same_through_the_bridge(board: Board, client: Client, program: str) -> None:
    with visit(client, [program, board.url]) as visitor:
        assert visitor.version == client.bridged
        assert_all_it_asks_for(visitor, client)


@pytest.mark.parametrize("client", those("direct", connect=False))
def test_a_client_too_old_for_a_board_says_so(board: Board, client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    """It breaks off the handshake itself; the bridge is its cure, as the table shows."""
    with pytest.raises(VisitFailed), visit(client, [board.url]):
        pass
    assert "Unsupported protocol version" in capfd.readouterr().err


def assert_all_it_asks_for(visitor: Visitor, client: Client) -> None:
    """List, a small call, a picture, a bundle, a tool that does not exist, and a ping where there is one."""
    tools = visitor.ask("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == [row.tool.name for row in allowed(shell=False)]
    status = visitor.ask("tools/call", "phone_bridge_status", {})
    assert status["structuredContent"] == json.loads(status["content"][0]["text"])
    assert_picture(visitor.ask("tools/call", "screenshot", {}))
    assert_bundle(visitor.ask("tools/call", "support_bundle", {}))
    assert visitor.ask("tools/call", "no_such_tool", {})["error"]["code"] == client.unknown
    if client.pings:
        assert visitor.ask("ping") == {}


def assert_picture(result: dict[str, Any]) -> None:
    """A whole JPEG beside a line of text, and no structured content, beside which one client drops the image."""
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
