"""The eleven tools of the host, a row each in the order of the tool list; a model reads `descriptions.json` of them."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard.errors import UNKNOWN, McpboardError, ToolFailed
from mcpboard.host.devices.status import DeviceStatuses
from mcpboard.host.drivers.base import Driver, failure_text, nothing_done
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.vision import describe, find
from mcpboard.host.vision.service import NO_VISION, VisionService
from mcpboard.host.vision.tree import LEVELS_SENT, UiNode, UnreadableTree
from mcpboard.host.vision.types import Icon, TextLine
from mcpboard.protocol.tools import Content, Image, Text, Tool

log = logging.getLogger(__name__)

NO_TREE = "no UI tree on a board; use describe_screen"
DESCRIPTIONS: Mapping[str, Any] = json.loads(Path(__file__).with_name("descriptions.json").read_bytes())
INSTRUCTIONS: str = DESCRIPTIONS["instructions"]


@dataclass(frozen=True)
class Use:
    """One use of a leased device: all that a tool may need, while no other call is at the device."""

    driver: Driver
    arguments: Arguments
    device: str
    vision: VisionService


@dataclass(frozen=True)
class Action:
    """One action of a device: `perform` makes it, `told` is the result once it is done."""

    perform: Callable[[], None]
    told: str


@dataclass(frozen=True)
class LookTool:
    """A tool that leases its device and tells what it shows."""

    tool: Tool
    work: Callable[[Use], Content]


@dataclass(frozen=True)
class ActionTool:
    """A tool that leases its device and moves it: `work` reads what it has to and touches nothing yet."""

    tool: Tool
    work: Callable[[Use], Action]


@dataclass(frozen=True)
class StatusTool:
    """A tool that reads the status of devices and leases none."""

    tool: Tool
    work: Callable[[DeviceStatuses, Mapping[str, Any]], Content]


LeasedTool = LookTool | ActionTool


def run(row: LeasedTool, driver: Driver, arguments: Arguments, device: str, vision: VisionService) -> Content:
    """Return the result of a tool, while no other call is at the device; an action is performed once.

    Raises InvalidParams, and ToolFailed for whatever else goes wrong. That of an action says what
    became of it: NOT_SENT before it began, and then what the driver says; UNKNOWN where that says
    nothing, because something broke after the device may have moved.
    """
    use = Use(driver, arguments, device, vision)
    if isinstance(row, LookTool):
        try:
            return row.work(use)
        except McpboardError:
            raise
        except BaseException as error:
            raise failure(row.tool.name, error) from error
    with nothing_done(f"{row.tool.name} was not begun"):
        action = row.work(use)
    try:
        action.perform()
    except BaseException as error:  # some libraries raise what is no Exception, and nobody else would answer
        delivery = (isinstance(error, ToolFailed) and error.delivery) or UNKNOWN
        raise failure(row.tool.name, error, delivery) from error
    notice = driver.notice()
    return Content((Text(action.told), Text(notice)) if notice else (Text(action.told),))


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


def _screenshot(use: Use) -> Content:
    shot = use.driver.take_screenshot()
    image = Image(base64.b64encode(shot.content).decode("ascii"), shot.mime)
    return Content((image, Text(f"{shot.width}x{shot.height} {use.device}{shot.note and f'. {shot.note}'}")))


def _tap(use: Use) -> Action:
    at = use.arguments.point(use.driver.size())
    return Action(lambda: use.driver.tap(at), f"tapped {at[0]},{at[1]} on {use.device}")


def _swipe(use: Use) -> Action:
    size = use.driver.size()
    start, end = use.arguments.point(size, "start_x", "start_y"), use.arguments.point(size, "end_x", "end_y")
    duration_ms = use.arguments.duration_ms("duration_ms")
    told = f"swiped from {start[0]},{start[1]} to {end[0]},{end[1]} on {use.device}"
    return Action(lambda: use.driver.swipe(start, end, duration_ms), told)


def _input_text(use: Use) -> Action:
    text = use.arguments.typed("text")
    return Action(lambda: use.driver.input_text(text), f"typed {len(text)} characters on {use.device}")


def _launch_app(use: Use) -> Action:
    app_id = use.arguments.text("app_id")
    return Action(lambda: use.driver.launch_app(app_id), f"launched {app_id} on {use.device}")


def _ui_tree(use: Use) -> Content:
    tree = use.driver.ui_tree()
    if tree is None:
        raise ToolFailed(NO_TREE)
    if tree.levels > LEVELS_SENT:
        use.arguments.notes.append(f"Elements deeper than {LEVELS_SENT} levels are listed at that level.")
    reply: dict[str, Any] = {"tree": tree.as_json()}
    if use.arguments.flag("include_app_info"):
        reply["app"] = dict(use.driver.app_info())
    return _json(reply, reply)


# --- on its screen -------------------------------------------------------------------------------


def _find_text(use: Use) -> Content:
    query = use.arguments.text("query")

    def in_picture(image: bytes) -> list[find.Match]:
        return find.text_in_picture(use.vision.lines(image), query)

    return _find(use, "matches", lambda tree: find.text_in_tree(tree, query), in_picture)


def _find_icon(use: Use) -> Content:
    name = use.arguments.text("name")

    def in_picture(image: bytes) -> list[find.Match]:
        return find.icon_in_picture(use.vision.icons(image), name)

    return _find(use, "candidates", lambda tree: find.icon_in_tree(tree, name), in_picture)


def _find(use: Use, key: str, in_tree: Callable[[UiNode], list[find.Match]],
          in_picture: Callable[[bytes], list[find.Match]]) -> Content:  # fmt: skip
    """Return the matches of the tree, with those of the screenshot where the tree left doubts."""
    tree = _tree(use)
    found = in_tree(tree) if tree is not None else []
    if use.vision.available and not find.sure(found):
        try:
            found = find.together(found, in_picture(use.driver.take_screenshot().content))
        except ToolFailed:
            if not found:
                raise
    return _json(found, {key: found})


def _describe(use: Use) -> Content:
    tree, note = _tree(use), ""
    lines: tuple[TextLine, ...] = ()
    icons: tuple[Icon, ...] = ()
    try:
        if use.vision.available:
            image = use.driver.take_screenshot().content
            lines, icons = use.vision.lines(image), use.vision.icons(image)
    except ToolFailed as failure:
        if tree is None:
            raise
        note = f"\n(from the UI tree only: {failure})"
    screen = describe.describe(tree, *use.driver.size(), lines, icons)
    text = screen.text + note
    return Content((Text(text),), {"elements": screen.elements, "truncated": screen.truncated, "text": text})


def _tree(use: Use) -> UiNode | None:
    """Return the elements on the screen, None for a device that has no such tree; ToolFailed without vision then.

    Where the tree cannot be read only the screenshot is used, and a note says so.
    """
    try:
        tree = use.driver.ui_tree()
    except UnreadableTree as error:
        if not use.vision.available:
            raise
        use.arguments.notes.append(f"(from the screenshot only: {error})")
        return None
    if tree is None and not use.vision.available:
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


def _tool(name: str) -> Tool:
    """Return what a model reads of the tool: title, description, hints and schema."""
    found = DESCRIPTIONS["tools"][name]
    required = found.get("required", {})
    properties = {**required, **found.get("optional", {})}
    if "{lease}" in found["description"]:
        properties |= DESCRIPTIONS["lease_arguments"]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    description = found["description"].format_map(DESCRIPTIONS["sentences"])
    return Tool(name, found["title"], description, schema, DESCRIPTIONS["hints"][found.get("hints", "looks")])


ROWS: tuple[LeasedTool | StatusTool, ...] = (
    LookTool(_tool("take_screenshot"), _screenshot),
    ActionTool(_tool("tap"), _tap),
    ActionTool(_tool("swipe"), _swipe),
    ActionTool(_tool("input_text"), _input_text),
    ActionTool(_tool("launch_app"), _launch_app),
    LookTool(_tool("find_text"), _find_text),
    LookTool(_tool("find_icon"), _find_icon),
    LookTool(_tool("get_ui_tree"), _ui_tree),
    LookTool(_tool("describe_screen"), _describe),
    StatusTool(_tool("list_devices"), _list_devices),
    StatusTool(_tool("device_status"), _device_status),
)
