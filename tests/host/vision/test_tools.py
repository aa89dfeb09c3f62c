"""The three tools that look, over MCP: on a device with a tree, on one without, with the vision extra and without."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpboard.errors import ToolFailed
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Icon, TextLine
from tests.host.rig import Fake, agent
from tests.host.vision.fakes import FakeEngine
from tests.support.http import Caller, Response

RESULTS = ((TextLine("Save changes", 0.98, (10, 100, 90, 120)),), (Icon((40, 40, 60, 60), (("camera", 0.97),)),))
LOOKING = {"find_text": {"query": "save"}, "find_icon": {"name": "camera"}, "describe_screen": {}}


class Blank(Fake):
    """A device that tells no tree, as a board."""

    def ui_tree(self) -> UiNode | None:
        super().ui_tree()
        return None


@contextmanager
def caller(folder: Path, driver: Fake, engine: FakeEngine | None) -> Iterator[Caller]:
    with contextlib.ExitStack() as stack:
        vision = None if engine is None else stack.enter_context(contextlib.closing(engine.service(folder / "icons")))
        yield stack.enter_context(agent(folder / "data", vision=vision, phone=driver)).caller.open()


def found(answer: Response) -> list[str]:
    ((_, matches),) = answer.result["structuredContent"].items()
    return [match.get("text") or match["name"] for match in matches]


def test_a_device_without_a_tree_is_looked_at(tmp_path: Path) -> None:
    with caller(tmp_path, Blank(), FakeEngine(*RESULTS)) as client:
        assert found(client.call("find_text", query="save")) == ["Save changes"]
        assert found(client.call("find_icon", name="photo")) == ["camera"]
        table = client.call("describe_screen")
        assert table.text.splitlines()[1:] == ['[1] icon "camera" @50,50', '[2] text "Save changes" @50,110']
        assert table.result["structuredContent"]["elements"] == 2


@pytest.mark.parametrize("tool", LOOKING)
def test_without_vision_it_says_what_to_install(tmp_path: Path, tool: str) -> None:
    with caller(tmp_path, Blank(), None) as client:
        error = client.call(tool, **LOOKING[tool]).error
    assert error["code"] == -32000
    assert "pip install 'mcpboard[vision]'" in error["message"]


def test_without_vision_a_tree_is_enough(tmp_path: Path) -> None:
    phone = Fake()
    with caller(tmp_path, phone, None) as client:
        assert found(client.call("find_text", query="settings")) == ["Settings"]
        assert found(client.call("find_icon", name="gear")) == ["Settings"]
        assert found(client.call("find_text", query="save")) == []
        assert 'icon "Settings"' in client.call("describe_screen").text
    assert ("take_screenshot",) not in phone.done


def test_what_the_tree_is_sure_of_needs_no_picture(tmp_path: Path) -> None:
    phone = Fake()
    with caller(tmp_path, phone, FakeEngine(*RESULTS)) as client:
        assert found(client.call("find_text", query="settings")) == ["Settings"]
        assert ("take_screenshot",) not in phone.done
        assert found(client.call("find_text", query="save")) == ["Save changes"]
        assert ("take_screenshot",) in phone.done


def test_a_screen_is_described_from_tree_and_picture(tmp_path: Path) -> None:
    with caller(tmp_path, Fake(), FakeEngine(*RESULTS)) as client:
        assert [line.split(" ", 1)[1] for line in client.call("describe_screen").text.splitlines()[1:]] == [
            'icon "Settings" @5,10', 'icon "camera" @50,50', 'text "Save changes" @50,110',
        ]  # fmt: skip


def test_a_picture_that_cannot_be_read_costs_no_tree(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.fault = ToolFailed("that is no picture")
    with caller(tmp_path, Fake(), engine) as client:
        assert found(client.call("find_text", query="sittings")) == ["Settings"]
        table = client.call("describe_screen").text
        assert 'icon "Settings"' in table
        assert "(from the UI tree only: that is no picture)" in table
        assert client.call("find_text", query="save").error["message"] == "that is no picture"
    with caller(tmp_path, Blank(), engine) as client:
        assert client.call("describe_screen").error["message"] == "that is no picture"
