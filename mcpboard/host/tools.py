"""The eleven tools of the mission, a row each, in its order."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ToolFailed
from mcpboard.host.arguments import Arguments
from mcpboard.host.drivers.base import Driver
from mcpboard.host.eyes import describe, find
from mcpboard.host.eyes.tree import Node
from mcpboard.host.manual import TOOLS
from mcpboard.host.survey import Survey
from mcpboard.protocol.tools import Content, Image, Text, Tool

NO_EYES = (
    "this device tells no UI tree, and finding things in its picture needs the vision extra where the host agent runs: "
    "pip install 'mcpboard[vision]'; until then look at take_screenshot yourself"
)
NO_TREE = "no UI tree on a board; use describe_screen"


@dataclass(frozen=True)
class Holding:
    """A tool that holds its device: `work` is the one command that it makes of the driver."""

    tool: Tool
    work: Callable[[Driver, Arguments, str], Content]


@dataclass(frozen=True)
class Looking:
    """A tool that asks the survey and holds nothing."""

    tool: Tool
    work: Callable[[Survey, Mapping[str, Any]], Content]


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


def _find_text(driver: Driver, arguments: Arguments, device: str) -> Content:
    query = arguments.text("query")
    return _listed("matches", find.find_text(_seen(driver), query))


def _find_icon(driver: Driver, arguments: Arguments, device: str) -> Content:
    name = arguments.text("name")
    return _listed("candidates", find.find_icon(_seen(driver), name))


def _ui_tree(driver: Driver, arguments: Arguments, device: str) -> Content:
    tree = driver.ui_tree()
    if tree is None:
        raise ToolFailed(NO_TREE)
    told: dict[str, Any] = {"tree": tree.as_json()}
    if arguments.flag("include_app_info"):
        told["app"] = dict(driver.app_info())
    return Content((Text(_json(told)),), told)


def _describe(driver: Driver, arguments: Arguments, device: str) -> Content:
    told = describe.describe(_seen(driver), *driver.size())
    return Content((Text(told.text),), {"elements": told.elements, "truncated": told.truncated, "text": told.text})


def _seen(driver: Driver) -> Node:
    tree = driver.ui_tree()
    if tree is None:
        raise ToolFailed(NO_EYES)
    return tree


# --- on none -----------------------------------------------------------------------------------


def _list_devices(survey: Survey, arguments: Mapping[str, Any]) -> Content:
    return _listed("devices", survey.devices())


def _device_status(survey: Survey, arguments: Mapping[str, Any]) -> Content:
    told = survey.status(str(arguments["device_id"]))
    return Content((Text(_json(told)),), told)


def _said(words: str) -> Content:
    return Content((Text(words),))


def _listed(name: str, found: list[dict[str, Any]]) -> Content:
    """The list itself as text; structured content has to be an object."""
    return Content((Text(_json(found)),), {name: found})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


ROWS: tuple[Holding | Looking, ...] = (
    Holding(TOOLS["take_screenshot"], _screenshot),
    Holding(TOOLS["tap"], _tap),
    Holding(TOOLS["swipe"], _swipe),
    Holding(TOOLS["input_text"], _input_text),
    Holding(TOOLS["launch_app"], _launch_app),
    Holding(TOOLS["find_text"], _find_text),
    Holding(TOOLS["find_icon"], _find_icon),
    Holding(TOOLS["get_ui_tree"], _ui_tree),
    Holding(TOOLS["describe_screen"], _describe),
    Looking(TOOLS["list_devices"], _list_devices),
    Looking(TOOLS["device_status"], _device_status),
)
