"""Three real adb daemons behind a real adb server, driven over MCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.host.drivers.adb import Adb
from mcpboard.host.drivers.android import Android

from .lab import FIRST_PORT, Phone, Room, room

pytestmark = [pytest.mark.tools]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with room(tmp_path_factory.mktemp("lab")) as found:
        yield found


def test_smoke(lab: Room) -> None:
    phone = Phone(lab, FIRST_PORT)
    phone.start()
    adb = Adb(port=lab.port)
    driver = Android(phone.serial, adb)
    print(driver.probe())
    print(driver.take_screenshot())
    driver.tap((5, 7))
    driver.swipe((5, 7), (8, 9), 300)
    driver.input_text("it's $HOME \"q\" `x` 100%sure %% | ; \\ *\n\tz")
    driver.launch_app("Settings")
    print(driver.ui_tree())
    print(driver.app_info(), phone.calls)
