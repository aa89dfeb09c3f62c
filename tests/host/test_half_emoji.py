"""Half an emoji in what a phone or an app says: whatever leaves the host is UTF-8 and JSON that strict parsers take."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpboard.cli.host import devices
from mcpboard.cli.logs import OneLine
from mcpboard.errors import ToolFailed
from mcpboard.host.devices import registry
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers import factory
from mcpboard.host.drivers.base import Probe
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import TextLine
from mcpboard.simulator.cloud.scheduler import Scheduler
from tests.host.browser import settled
from tests.host.cloud.rig import taking_part
from tests.host.rig import Fake, agent
from tests.host.vision.fakes import FakeEngine
from tests.support.http import LEGACY, MODERN

HALF, WHOLE = "\ud83d", "\ufffd"


class Speaking(Fake):
    """A phone with half an emoji in every text of its own."""

    def ui_tree(self) -> UiNode | None:
        child = UiNode("button", (0, 0, 10, 20), f"text {HALF}", f"desc {HALF}", f"id {HALF}", clickable=True)
        return UiNode("screen", (0, 0, 100, 200), children=(child,))

    def app_info(self) -> Mapping[str, Any]:
        return {"id": f"app {HALF}", "name": HALF}

    def probe(self) -> Probe:
        return Probe(f"state {HALF}", {"model": f"model {HALF}", "error": f"error {HALF}"})

    def launch_app(self, app_id: str) -> None:
        raise ToolFailed(f"no app {app_id} {HALF}")

    def input_text(self, text: str) -> None:
        raise OSError(f"cannot type {HALF}")


def refuse_halves(answer: Any) -> None:
    """Fail for any string that UTF-8 has no way to write."""
    json.dumps(answer, ensure_ascii=False).encode("utf-8")


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("get_ui_tree", {"include_app_info": True}, f"text {WHOLE}"),
    ("find_text", {"query": "text"}, f"text {WHOLE}"),
    ("find_icon", {"name": "text"}, f"text {WHOLE}"),
    ("describe_screen", {}, f"text {WHOLE}"),
    ("find_text", {"query": "save"}, f"Save {WHOLE}"),
    ("list_devices", {}, f"state {WHOLE}"),
    ("device_status", {"device_id": "phone"}, f"model {WHOLE}"),
]


ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("launch_app", {"app_id": "Notes"}, f"no app Notes {WHOLE}"),
    ("input_text", {"text": "x"}, f"cannot type {WHOLE}"),
]


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_results_and_errors_of_every_tool_are_well_formed(tmp_path: Path, version: str) -> None:
    """Text that was read from a screenshot included."""
    engine = FakeEngine((TextLine(f"Save {HALF}", 0.98, (10, 100, 90, 120)),))
    with (
        contextlib.closing(engine.service(tmp_path / "icons")) as vision,
        agent(tmp_path / "data", phone=Speaking(), vision=vision) as host,
    ):
        caller = host.caller.modern() if version == MODERN else host.caller.open()
        for tool, arguments, told in CALLS:
            answer = caller.call(tool, **arguments)
            refuse_halves(answer.json)
            assert told in answer.text
            assert told in json.dumps(answer.result["structuredContent"], ensure_ascii=False)
        for tool, arguments, told in ERRORS:
            answer = caller.call(tool, **arguments)
            refuse_halves(answer.json)
            assert told in answer.error["message"]


def test_pages_are_well_formed(tmp_path: Path) -> None:
    """A page that cannot be encoded would be an HTTP 500."""
    phone = Speaking()
    phone.fault = ToolFailed(f"no picture {HALF}")
    with agent(tmp_path / "data", phone=phone) as host:
        browser = host.browser()
        for path in ("/", "/devices", "/devices/phone"):
            assert browser.get(path).status == 200
        settled()
        pages = {path: browser.get(path) for path in ("/", "/devices", "/devices/phone", "/live/devices/0")}
        for page in pages.values():
            assert page.status == 200
            assert f"state {WHOLE}" in page.body.decode("utf-8")
        assert f"no picture {WHOLE}" in pages["/devices/phone"].body.decode("utf-8")


def test_reports_to_the_cloud_are_well_formed_also_from_the_disk(tmp_path: Path) -> None:
    """A UI tree of a hundred levels is in an outcome that waits: the host that comes back must read it, too."""

    class Deep(Speaking):
        def ui_tree(self) -> UiNode | None:
            tree = super().ui_tree()
            for _ in range(100):
                assert tree is not None
                tree = UiNode("view", (0, 0, 100, 200), HALF, children=(tree,))
            return tree

    launch = {"tool": "launch_app", "arguments": {"app_id": f"Notes {HALF}"}}
    with Scheduler() as scheduler:
        with taking_part(tmp_path / "data", scheduler, X=Deep()):
            scheduler.fail("finish", 503, times=50)
            job = scheduler.dispatch("X", [{"tool": "get_ui_tree"}, launch])
            scheduler.wait_for_request("finish")
        (file,) = (tmp_path / "data" / "outbox").glob("*.json")
        assert b"\\ud83d" not in file.read_bytes()
        scheduler.recover()
        with taking_part(tmp_path / "data", scheduler, X=Deep()):
            outcome = scheduler.outcome(job)
        for post in (*scheduler.posts("heartbeat"), *scheduler.posts("finish")):
            refuse_halves(dict(post.body))
    assert outcome["failure_reason"] == f"no app Notes {WHOLE} {WHOLE}"
    assert outcome["results"][0]["text"].count('"role"') == 102


def test_the_command_line_prints_what_a_phone_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = argparse.Namespace(id="phone", data=str(tmp_path), config=None)
    registry.add(tmp_path, DeviceSpec("phone", "android", serial=f"S {HALF}\x1b[2J"))
    assert devices.list_devices(arguments) == 0
    assert capfd.readouterr().out == f"phone  kind=android  serial=S {WHOLE}{WHOLE}[2J\n"
    monkeypatch.setattr(factory, "driver", lambda *_: Speaking())
    assert devices.test(arguments) == 1
    printed = json.loads(capfd.readouterr().out)
    refuse_halves(printed)
    assert printed["model"] == f"model {WHOLE}"


@pytest.mark.parametrize("text", [f"phone {HALF}", f"two\n{HALF}"], ids=ascii)
def test_log_lines_are_well_formed(text: str) -> None:
    record = logging.LogRecord("mcpboard", logging.WARNING, "", 0, text, None, None)
    written = OneLine("%(message)s").format(record)
    assert written.encode("utf-8").isascii()
    assert "\\ud83d" in written
