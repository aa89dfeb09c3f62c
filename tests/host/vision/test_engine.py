"""The vision engine itself, run by a Python that has the extra, with the network cut."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host.access.tokens import read_main_token
from tests.host.vision import measured, screens
from tests.host.vision.measured import UNSEEN
from tests.support import ROOT, provision
from tests.support.http import Caller
from tests.support.served import Board

pytestmark = [pytest.mark.tools, pytest.mark.slow]

START_S = 60.0  # seconds until an agent serves, and reads its first picture, on a busy machine


# The hardest of six looks, and one of either kind of families; `make bench` has them all.
LOOK, KNOWN_FAMILY, UNSEEN_FAMILY = "grey on grey", "mdi", "iconoir"


def test_the_words_of_a_screen_are_read() -> None:
    """At least 26 of 27 strings, English, Chinese and digits, each as a line of its own."""
    results = measured.texts(LOOK)["looks"][LOOK]
    assert results["of"] == 27
    assert len(results["missed"]) <= results["of"] - measured.FEWEST_STRINGS, results["missed"]


def test_reading_takes_a_bounded_amount_of_memory() -> None:
    assert measured.texts(LOOK)["mb"] <= measured.MEGABYTES


@pytest.mark.parametrize(
    ("family", "least"),
    [(KNOWN_FAMILY, measured.KNOWN), (UNSEEN_FAMILY, measured.UNKNOWN)],
    ids=["known", "never seen"],
)
def test_icons_are_named_at_first_sight(family: str, least: float) -> None:
    """On light, dark and coloured grounds, 40 to 96 pixels large."""
    results = measured.icons(KNOWN_FAMILY, UNSEEN_FAMILY)["families"][family]
    assert results["of"] > 100
    assert 1 - len(results["wrong"]) / results["of"] >= least, results["wrong"]


# --- the file of drawings --------------------------------------------------------------------------

FILE = ROOT / "mcpboard/host/vision/icons/icons.npz"
MOST_BYTES = 1_500_000  # of the file; a wheel has it at a fifth


def test_the_drawings_are_built_again_to_the_byte(tmp_path: Path) -> None:
    """From the same versions, whoever builds them; no drawing of an unseen family is in it."""
    out = tmp_path / "icons.npz"
    command: list[str | Path] = ["env", f"PYTHONPATH={ROOT}", measured.python(), ROOT / "deploy/icons/build.py"]
    provision.run([*command, "--node-modules", measured.node_modules(), "--out", out], limit_s=60.0)
    assert out.read_bytes() == FILE.read_bytes()
    assert len(FILE.read_bytes()) < MOST_BYTES


def test_the_notice_names_every_family_and_its_licence() -> None:
    notice = (FILE.parent / "NOTICE").read_text("utf-8")
    for package, version, licence in measured.families():
        assert (f"{package} {version} ({licence})" in notice) == (package not in UNSEEN)


# --- odd pictures, and the user's own icons -----------------------------------------------------------


@pytest.fixture(scope="module")
def odds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("own")
    screens.own_icons(folder)
    return measured.odds(folder)


def test_odd_pictures_are_refused_or_found_empty(odds: dict[str, Any]) -> None:
    for name in ("nothing", "no picture"):
        assert odds[name] == "the device sent something that is no JPEG and no PNG; take the screenshot again"
    assert "of 20000x2001 pixels; more than 40 million" in odds["too large"]
    for name in ("black", "one pixel", "a line", "wide and black", "with alpha", "grey, 16 bits"):
        assert odds[name] == [0, 0], name
    assert odds["half a picture"]  # whatever the decoder makes of it, it is an answer


def test_the_users_own_icons_are_named_by_the_names_of_their_files(odds: dict[str, Any]) -> None:
    ((x, y),), ((left, top),) = odds["own"]["my app"], odds["own"]["logo"]
    assert abs(x - 300) + abs(y - 500) + abs(left - 700) + abs(top - 1500) < 20
    assert (odds["without"], odds["shapes"]) == ([], True)


# --- the host role with the vision extra --------------------------------------------------------------------


@contextmanager
def host(folder: Path, *devices: str) -> Iterator[Caller]:
    """A real agent with the extra and one device, as a person runs it."""
    command = [str(measured.python()), "-m", "mcpboard", "host"]
    environ = {"PATH": os.defpath, "LC_ALL": "C", "PYTHONWARNINGS": "error"}
    provision.run([*command, "devices", "add", "phone", "--data", folder, *devices], limit_s=START_S, cwd=ROOT)
    with subprocess.Popen(
        [*command, "--port", "0", "--data", str(folder)], cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE
    ) as child:
        guard = threading.Timer(START_S, child.kill)
        guard.start()
        try:
            assert child.stdout is not None
            yield Caller(child.stdout.readline().split()[-1], read_main_token(folder)).open()
        finally:
            child.terminate()
            assert child.wait(START_S) == 0
            guard.cancel()
            guard.join()


def test_a_board_is_read_over_mcp(board: Board, tmp_path: Path) -> None:
    """From the simulated phone's video picture to words and icons with the places to tap; the agent ends well."""
    with host(tmp_path / "data", "--kind", "board", "--url", board.url) as client:
        (match, *_) = client.call("find_text", query="Settings").result["structuredContent"]["matches"]
        assert (match["text"], match["match"], match["source"]) == ("Settings", "exact", "ocr")
        (icon, *_) = client.call("find_icon", name="envelope").result["structuredContent"]["candidates"]
        assert (icon["name"], icon["confident"]) == ("mail", True)
        assert icon["center"][1] > 950  # in the dock, where nothing is written
        table = client.call("describe_screen").text
        assert f'text "Settings" @{match["center"][0]},{match["center"][1]}' in table
        assert 'icon "mail" @' in table
