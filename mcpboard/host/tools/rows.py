"""The eleven tools of the host, a row each, in the order of the tool list."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import UNKNOWN, McpboardError, ToolFailed
from mcpboard.host.devices.status import DeviceStatuses
from mcpboard.host.drivers.base import Driver, failure_text, nothing_done
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.tools.descriptions import TOOLS
from mcpboard.host.vision import describe, find
from mcpboard.host.vision.service import NO_VISION, VisionService
from mcpboard.host.vision.tree import LEVELS_SENT, UiNode, UnreadableTree
from mcpboard.host.vision.types import Icon, TextLine
from mcpboard.protocol.tools import Content, Image, Text, Tool

log = logging.getLogger(__name__)

NO_TREE = "no UI tree on a board; use describe_screen"


@dataclass(frozen=True)
class DeviceTool:
    """A tool that leases its device: `work` is the one command that it makes of the driver."""

    tool: Tool
    work: Callable[[Driver, Arguments, str], Content]


@dataclass(frozen=True)
class Action:
    """One action of a device: `perform` makes it, `told` is the result once it is done."""

    perform: Callable[[], None]
    told: str


@dataclass(frozen=True)
class ActionTool:
    """A tool that leases its device and moves it: `work` reads what it has to and touches nothing yet."""

    tool: Tool
    work: Callable[[Driver, Arguments, str], Action]


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


LeasedTool = DeviceTool | ActionTool | VisionTool


def run(row: LeasedTool, driver: Driver, arguments: Arguments, device: str, vision: VisionService) -> Content:
    """Return the result of a tool, while no other call is at the device; an action is performed once.

    Raises InvalidParams, and ToolFailed for whatever else goes wrong. That of an action says what
    became of it: NOT_SENT before it began, and then what the driver says; UNKNOWN where that says
    nothing, because something broke after the device may have moved.
    """
    if isinstance(row, ActionTool):
        with nothing_done(f"{row.tool.name} was not begun"):
            action = row.work(driver, arguments, device)
        try:
            action.perform()
        except BaseException as error:  # some libraries raise what is no Exception, and nobody else would answer
            delivery = (isinstance(error, ToolFailed) and error.delivery) or UNKNOWN
            raise failure(row.tool.name, error, delivery) from error
        notice = driver.notice()
        return Content((Text(action.told), Text(notice)) if notice else (Text(action.told),))
    try:
        return (
            row.work(driver, arguments, vision) if isinstance(row, VisionTool) else row.work(driver, arguments, device)
        )
    except McpboardError:
        raise
    except BaseException as error:
        raise failure(row.tool.name, error) from error


def failure(tool: str, error: BaseException, delivery: str | None = None) -> ToolFailed:
    """Return what a caller gets of an error: its words, and what became of an action.

    One that was not raised on purpose is logged by its type and place: its message may hold what a log must not.
    """
    if not isinstance(error, McpboardError):
        *_, last = traceback.extract_tb(error.__traceback__)
        log.warning("%s: %s in %s:%s", tool, type(error).__name__, last.filename, last.lineno)
    return ToolFailed(
        failure_text(error), delivery=delivery, data=error.data if isinstance(error, ToolFailed) else None
    )


# --- on a device -------------------------------------------------------------------------------


def _screenshot(driver: Driver, arguments: Arguments, device: str) -> Content:
    shot = driver.take_screenshot()
    image = Image(base64.b64encode(shot.content).decode("ascii"), shot.mime)
    return Content((image, Text(f"{shot.width}x{shot.height} {device}{shot.note and f'. {shot.note}'}")))


def _tap(driver: Driver, arguments: Arguments, device: str) -> Action:
    at = arguments.point(driver.size())
    return Action(lambda: driver.tap(at), f"tapped {at[0]},{at[1]} on {device}")


def _swipe(driver: Driver, arguments: Arguments, device: str) -> Action:
    size = driver.size()
    start, end = arguments.point(size, "start_x", "start_y"), arguments.point(size, "end_x", "end_y")
    duration_ms = arguments.duration_ms("duration_ms")
    told = f"swiped from {start[0]},{start[1]} to {end[0]},{end[1]} on {device}"
    return Action(lambda: driver.swipe(start, end, duration_ms), told)


def _input_text(driver: Driver, arguments: Arguments, device: str) -> Action:
    text = arguments.typed("text")
    return Action(lambda: driver.input_text(text), f"typed {len(text)} characters on {device}")


def _launch_app(driver: Driver, arguments: Arguments, device: str) -> Action:
    app_id = arguments.text("app_id")
    return Action(lambda: driver.launch_app(app_id), f"launched {app_id} on {device}")


def _ui_tree(driver: Driver, arguments: Arguments, device: str) -> Content:
    tree = driver.ui_tree()
    if tree is None:
        raise ToolFailed(NO_TREE)
    if tree.levels > LEVELS_SENT:
        arguments.notes.append(f"Elements deeper than {LEVELS_SENT} levels are listed at that level.")
    reply: dict[str, Any] = {"tree": tree.as_json()}
    if arguments.flag("include_app_info"):
        reply["app"] = dict(driver.app_info())
    return _json(reply, reply)


# --- on its screen -------------------------------------------------------------------------------


def _find_text(driver: Driver, arguments: Arguments, vision: VisionService) -> Content:
    query, tree = arguments.text("query"), _tree(driver, vision, arguments)
    in_tree = find.text_in_tree(tree, query) if tree is not None else []

    def look() -> list[find.Match]:
        return find.text_in_picture(vision.lines(driver.take_screenshot().content), query)

    matches = _completed(in_tree, vision, look)
    return _json(matches, {"matches": matches})


def _find_icon(driver: Driver, arguments: Arguments, vision: VisionService) -> Content:
    name, tree = arguments.text("name"), _tree(driver, vision, arguments)
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
    tree, note = _tree(driver, vision, arguments), ""
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


def _tree(driver: Driver, vision: VisionService, arguments: Arguments) -> UiNode | None:
    """Return the elements on the screen, None for a device that has no such tree; ToolFailed without vision then.

    Where the tree cannot be read only the screenshot is used, and a note says so.
    """
    try:
        tree = driver.ui_tree()
    except UnreadableTree as error:
        if not vision.available:
            raise
        arguments.notes.append(f"(from the screenshot only: {error})")
        return None
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


ROWS: tuple[LeasedTool | StatusTool, ...] = (
    DeviceTool(TOOLS["take_screenshot"], _screenshot),
    ActionTool(TOOLS["tap"], _tap),
    ActionTool(TOOLS["swipe"], _swipe),
    ActionTool(TOOLS["input_text"], _input_text),
    ActionTool(TOOLS["launch_app"], _launch_app),
    VisionTool(TOOLS["find_text"], _find_text),
    VisionTool(TOOLS["find_icon"], _find_icon),
    DeviceTool(TOOLS["get_ui_tree"], _ui_tree),
    VisionTool(TOOLS["describe_screen"], _describe),
    StatusTool(TOOLS["list_devices"], _list_devices),
    StatusTool(TOOLS["device_status"], _device_status),
)
