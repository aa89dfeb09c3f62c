"""The eleven tools of the mission, a row each, in its order."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ToolFailed
from mcpboard.host.devices.status import StatusSurvey
from mcpboard.host.drivers.base import Driver
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.tools.specs import TOOLS
from mcpboard.host.vision import describe, find
from mcpboard.host.vision.service import NO_VISION, VisionService
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Icon, TextLine
from mcpboard.protocol.tools import Content, Image, Text, Tool

NO_TREE = "no UI tree on a board; use describe_screen"


@dataclass(frozen=True)
class DeviceTool:
    """A tool that holds its device: `work` is the one command that it makes of the driver."""

    tool: Tool
    work: Callable[[Driver, Arguments, str], Content]


@dataclass(frozen=True)
class VisionTool:
    """A tool that holds its device, too, and tells what is on the screen: its elements, and what the eyes see."""

    tool: Tool
    work: Callable[[Driver, Arguments, VisionService], Content]


@dataclass(frozen=True)
class StatusTool:
    """A tool that asks the survey and holds nothing."""

    tool: Tool
    work: Callable[[StatusSurvey, Mapping[str, Any]], Content]


# --- on a device -------------------------------------------------------------------------------


def _screenshot(driver: Driver, arguments: Arguments, device: str) -> Content:
    shot = driver.take_screenshot()
    picture = Image(base64.b64encode(shot.content).decode("ascii"), shot.mime)
    return Content((picture, Text(f"{shot.width}x{shot.height} {device}{shot.note and f'. {shot.note}'}")))


def _tap(driver: Driver, arguments: Arguments, device: str) -> Content:
    at = arguments.point(driver.size())
    driver.tap(at)
    return _said(f"tapped {at[0]},{at[1]} on {device}")


def _swipe(driver: Driver, arguments: Arguments, device: str) -> Content:
    size = driver.size()
    start, end = arguments.point(size, "start_x", "start_y"), arguments.point(size, "end_x", "end_y")
    driver.swipe(start, end, arguments.duration_ms("duration_ms"))
    return _said(f"swiped from {start[0]},{start[1]} to {end[0]},{end[1]} on {device}")


def _input_text(driver: Driver, arguments: Arguments, device: str) -> Content:
    text = arguments.typed("text")
    driver.input_text(text)
    return _said(f"typed {len(text)} characters on {device}")


def _launch_app(driver: Driver, arguments: Arguments, device: str) -> Content:
    app_id = arguments.text("app_id")
    driver.launch_app(app_id)
    return _said(f"launched {app_id} on {device}")


def _ui_tree(driver: Driver, arguments: Arguments, device: str) -> Content:
    tree = driver.ui_tree()
    if tree is None:
        raise ToolFailed(NO_TREE)
    told: dict[str, Any] = {"tree": tree.as_json()}
    if arguments.flag("include_app_info"):
        told["app"] = dict(driver.app_info())
    return Content((Text(_json(told)),), told)


# --- on its screen -------------------------------------------------------------------------------


def _find_text(driver: Driver, arguments: Arguments, eyes: VisionService) -> Content:
    query, tree = arguments.text("query"), _tree(driver, eyes)
    told = find.text_in_tree(tree, query) if tree is not None else []
    return _listed("matches", _looked(eyes, told, lambda: find.text_in_picture(eyes.lines(_picture(driver)), query)))


def _find_icon(driver: Driver, arguments: Arguments, eyes: VisionService) -> Content:
    name, tree = arguments.text("name"), _tree(driver, eyes)
    told = find.icon_in_tree(tree, name) if tree is not None else []
    return _listed("candidates", _looked(eyes, told, lambda: find.icon_in_picture(eyes.icons(_picture(driver)), name)))


def _looked(eyes: VisionService, told: list[find.Match], look: Callable[[], list[find.Match]]) -> list[find.Match]:
    """What the tree told, with what the picture shows where the tree left doubts."""
    if not eyes.available or find.sure(told):
        return told
    try:
        return find.together(told, look())
    except ToolFailed:
        if not told:
            raise
        return told


def _describe(driver: Driver, arguments: Arguments, eyes: VisionService) -> Content:
    tree, note = _tree(driver, eyes), ""
    lines: tuple[TextLine, ...] = ()
    icons: tuple[Icon, ...] = ()
    try:
        if eyes.available:
            picture = driver.take_screenshot().content
            lines, icons = eyes.lines(picture), eyes.icons(picture)
    except ToolFailed as failure:
        if tree is None:
            raise
        note = f"\n(from the UI tree alone: {failure})"
    told = describe.describe(tree, *driver.size(), lines, icons)
    text = told.text + note
    return Content((Text(text),), {"elements": told.elements, "truncated": told.truncated, "text": text})


def _tree(driver: Driver, eyes: VisionService) -> UiNode | None:
    """The elements on the screen, None for a device that has to be looked at; ToolFailed where nothing can look."""
    tree = driver.ui_tree()
    if tree is None and not eyes.available:
        raise ToolFailed(NO_VISION)
    return tree


def _picture(driver: Driver) -> bytes:
    return driver.take_screenshot().content


# --- on none -----------------------------------------------------------------------------------


def _list_devices(survey: StatusSurvey, arguments: Mapping[str, Any]) -> Content:
    return _listed("devices", survey.devices())


def _device_status(survey: StatusSurvey, arguments: Mapping[str, Any]) -> Content:
    told = survey.status(str(arguments["device_id"]))
    return Content((Text(_json(told)),), told)


def _said(words: str) -> Content:
    return Content((Text(words),))


def _listed(name: str, found: list[dict[str, Any]]) -> Content:
    """The list itself as text; structured content has to be an object."""
    return Content((Text(_json(found)),), {name: found})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


ROWS: tuple[DeviceTool | VisionTool | StatusTool, ...] = (
    DeviceTool(TOOLS["take_screenshot"], _screenshot),
    DeviceTool(TOOLS["tap"], _tap),
    DeviceTool(TOOLS["swipe"], _swipe),
    DeviceTool(TOOLS["input_text"], _input_text),
    DeviceTool(TOOLS["launch_app"], _launch_app),
    VisionTool(TOOLS["find_text"], _find_text),
    VisionTool(TOOLS["find_icon"], _find_icon),
    DeviceTool(TOOLS["get_ui_tree"], _ui_tree),
    VisionTool(TOOLS["describe_screen"], _describe),
    StatusTool(TOOLS["list_devices"], _list_devices),
    StatusTool(TOOLS["device_status"], _device_status),
)
