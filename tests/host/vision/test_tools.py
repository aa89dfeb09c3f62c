"""The three tools that look, over MCP: on a device with a tree, on one without, with the vision extra and without."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import ToolFailed
from mcpboard.host.vision.service import NO_VISION
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Icon, TextLine
from tests.host.rig import Fake, agent
from tests.host.vision.fakes import FakeEngine
from tests.support.http import Response

LINE, CAMERA = TextLine("Save changes", 0.98, (10, 100, 90, 120)), Icon((40, 40, 60, 60), (("camera", 0.97),))
SETTINGS, DRAWN, SAVE = 'icon "Settings" @5,10', 'icon "camera" @50,50', 'text "Save changes" @50,110'


class Blank(Fake):
    """A device that tells no tree, as a board."""

    def ui_tree(self) -> UiNode | None:
        super().ui_tree()
        return None


TEXT, ICON, ALL = ("find_text", "query"), ("find_icon", "name"), ("describe_screen", "device_id")
GOOD, BAD = "", "that is no picture"  # how the engine fails; None where there is no engine
ROWS = [  # device, engine, tool, what it is asked, what comes, and how many screenshots were taken
    pytest.param(Blank, GOOD, TEXT, "save", ["Save changes"], 1, id="text of a picture"),
    pytest.param(Blank, GOOD, ICON, "photo", ["camera"], 1, id="an icon of a picture"),
    pytest.param(Blank, GOOD, ALL, "phone", [DRAWN, SAVE], 1, id="all of a picture"),
    pytest.param(Blank, None, TEXT, "save", NO_VISION, 0, id="text of nothing"),
    pytest.param(Blank, None, ICON, "camera", NO_VISION, 0, id="an icon of nothing"),
    pytest.param(Blank, None, ALL, "phone", NO_VISION, 0, id="all of nothing"),
    pytest.param(Fake, None, TEXT, "settings", ["Settings"], 0, id="text of a tree"),
    pytest.param(Fake, None, TEXT, "save", [], 0, id="text that is not in a tree"),
    pytest.param(Fake, None, ICON, "gear", ["Settings"], 0, id="an icon of a tree"),
    pytest.param(Fake, None, ALL, "phone", [SETTINGS], 0, id="all of a tree"),
    pytest.param(Fake, GOOD, TEXT, "settings", ["Settings"], 0, id="what the tree is sure of needs no picture"),
    pytest.param(Fake, GOOD, TEXT, "save", ["Save changes"], 1, id="text of the picture, beside a tree"),
    pytest.param(Fake, GOOD, ALL, "phone", [SETTINGS, DRAWN, SAVE], 1, id="all of both"),
    pytest.param(Fake, BAD, TEXT, "sittings", ["Settings"], 1, id="a bad picture costs no tree"),
    pytest.param(Fake, BAD, TEXT, "save", BAD, 1, id="unless the tree has nothing"),
    pytest.param(Fake, BAD, ALL, "phone", [SETTINGS, f"(from the UI tree only: {BAD})"], 1, id="nor the table"),
    pytest.param(Blank, BAD, ALL, "phone", BAD, 1, id="a bad picture alone"),
]


@pytest.mark.parametrize(("device", "fault", "tool", "query", "expected", "pictures"), ROWS)
def test_what_is_seen(
    tmp_path: Path,
    device: type[Fake],
    fault: str | None,
    tool: tuple[str, str],
    query: str,
    expected: Any,
    pictures: int,
) -> None:
    phone, engine = device(), FakeEngine((LINE,), (CAMERA,))
    engine.fault = ToolFailed(fault) if fault else None
    with (
        contextlib.closing(engine.service(tmp_path / "icons")) as vision,
        agent(tmp_path / "data", vision=None if fault is None else vision, phone=phone) as host,
    ):
        answer = host.caller.open().call(tool[0], **{tool[1]: query})
    assert found(answer) == expected
    assert phone.done.count(("take_screenshot",)) == pictures


def found(answer: Response) -> Any:
    """The error, the matches, or the lines of the table."""
    if "error" in answer.json:
        assert answer.error["code"] == -32000
        return answer.error["message"]
    members = answer.result["structuredContent"]
    if "text" in members:
        assert answer.text == members["text"]
        return [line.split("] ")[-1] for line in members["text"].splitlines()[1:]]
    ((_, matches),) = members.items()
    return [match.get("text") or match["name"] for match in matches]
