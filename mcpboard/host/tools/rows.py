"""The eleven tools of the host, a row each, in the order of the tool list."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ToolFailed
from mcpboard.host.devices.status import DeviceStatuses
from mcpboard.host.drivers.base import Driver
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.tools.descriptions import TOOLS
from mcpboard.host.vision import describe, find
from mcpboard.host.vision.service import NO_VISION, VisionService
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Icon, TextLine
from mcpboard.protocol.tools import Content, Image, Text, Tool

NO_TREE = "no UI tree on a board; use describe_screen"


@dataclass(frozen=True)
class DeviceTool:
    """A tool that leases its device: `work` is the one command that it makes of the driver."""

    tool: Tool
    work: Callable[[Driver, Arguments, str], Content]


@dataclass(frozen=True)
class VisionTool:
    """A tool that leases its device, too, and tells what is on the screen: from its UI tree, and by vision."""

    tool: Tool
    work: Callable[[Driver, Arguments, VisionService], Content]


@dataclass(frozen=True)
class StatusTool:
    """A tool that reads the status of devices and leases none."""

    tool: Tool
    work: Callable[[DeviceStatuses, Mapping[str, Any]], Content]


# --- on a device -------------------------------------------------------------------------------


def _screenshot(driver: Driver, arguments: Arguments, device: str) -> Content:
    shot = driver.take_screenshot()
    image = Image(base64.b64encode(shot.content).decode("ascii"), shot.mime)
    return Content((image, Text(f"{shot.width}x{shot.height} {device}{shot.note and f'. {shot.note}'}")))


def _tap(driver: Driver, arguments: Arguments, device: str) -> Content:
    at = arguments.point(driver.size())
    driver.tap(at)
    return _acted(driver, f"tapped {at[0]},{at[1]} on {device}")


def _swipe(driver: Driver, arguments: Arguments, device: str) -> Content:
    size = driver.size()
    start, end = arguments.point(size, "start_x", "start_y"), arguments.point(size, "end_x", "end_y")
    driver.swipe(start, end, arguments.duration_ms("duration_ms"))
    return _acted(driver, f"swiped from {start[0]},{start[1]} to {end[0]},{end[1]} on {device}")


def _input_text(driver: Driver, arguments: Arguments, device: str) -> Content:
    text = arguments.typed("text")
    driver.input_text(text)
    return _acted(driver, f"typed {len(text)} characters on {device}")


def _launch_app(driver: Driver, arguments: Arguments, device: str) -> Content:
    app_id = arguments.text("app_id")
    driver.launch_app(app_id)
    return _acted(driver, f"launched {app_id} on {device}")


def _acted(driver: Driver, told: str) -> Content:
    notice = driver.notice()
    return Content((Text(told), Text(notice)) if notice else (Text(told),))


def _ui_tree(driver: Driver, arguments: Arguments, device: str) -> Content:
    tree = driver.ui_tree()
    if tree is None:
        raise ToolFailed(NO_TREE)
    reply: dict[str, Any] = {"tree": tree.as_json()}
    if arguments.flag("include_app_info"):
        reply["app"] = dict(driver.app_info())
    return _json(reply, reply)


# --- on its screen -------------------------------------------------------------------------------


def _find_text(driver: Driver, arguments: Arguments, vision: VisionService) -> Content:
    query, tree = arguments.text("query"), _tree(driver, vision)
    in_tree = find.text_in_tree(tree, query) if tree is not None else []

    def look() -> list[find.Match]:
        return find.text_in_picture(vision.lines(driver.take_screenshot().content), query)

    matches = _completed(in_tree, vision, look)
    return _json(matches, {"matches": matches})


def _find_icon(driver: Driver, arguments: Arguments, vision: VisionService) -> Content:
    name, tree = arguments.text("name"), _tree(driver, vision)
    in_tree = find.icon_in_tree(tree, name) if tree is not None else []

    def look() -> list[find.Match]:
        return find.icon_in_picture(vision.icons(driver.take_screenshot().content), name)

    candidates = _completed(in_tree, vision, look)
    return _json(candidates, {"candidates": candidates})


def _completed(
    in_tree: list[find.Match], vision: VisionService, look: Callable[[], list[find.Match]]
) -> list[find.Match]:
    """Return the matches of the tree, with those of the screenshot where the tree left doubts."""
    if not vision.available or find.sure(in_tree):
        return in_tree
    try:
        return find.together(in_tree, look())
    except ToolFailed:
        if not in_tree:
            raise
        return in_tree


def _describe(driver: Driver, arguments: Arguments, vision: VisionService) -> Content:
    tree, note = _tree(driver, vision), ""
    lines: tuple[TextLine, ...] = ()
    icons: tuple[Icon, ...] = ()
    try:
        if vision.available:
            image = driver.take_screenshot().content
            lines, icons = vision.lines(image), vision.icons(image)
    except ToolFailed as failure:
        if tree is None:
            raise
        note = f"\n(from the UI tree only: {failure})"
    screen = describe.describe(tree, *driver.size(), lines, icons)
    text = screen.text + note
    return Content((Text(text),), {"elements": screen.elements, "truncated": screen.truncated, "text": text})


def _tree(driver: Driver, vision: VisionService) -> UiNode | None:
    """Return the elements on the screen, None for a device that has no such tree; ToolFailed without vision then."""
    tree = driver.ui_tree()
    if tree is None and not vision.available:
        raise ToolFailed(NO_VISION)
    return tree


# --- on none -----------------------------------------------------------------------------------


def _list_devices(statuses: DeviceStatuses, arguments: Mapping[str, Any]) -> Content:
    devices = statuses.devices()
    return _json(devices, {"devices": devices})  # as text the list itself; structured content has to be an object


def _device_status(statuses: DeviceStatuses, arguments: Mapping[str, Any]) -> Content:
    status = statuses.status(str(arguments["device_id"]))
    return _json(status, status)


def _json(value: object, structured: Mapping[str, Any]) -> Content:
    return Content((Text(json.dumps(value, ensure_ascii=False)),), structured)


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
