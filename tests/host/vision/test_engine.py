"""The vision engine itself, run by a Python that has the extra, with the network cut."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mcpboard.host.access.tokens import read_main_token
from tests.host.vision import measured
from tests.support import ROOT, provision
from tests.support.http import Caller
from tests.support.processes import first_line
from tests.support.served import Board

pytestmark = [pytest.mark.tools, pytest.mark.slow]

START_S = 60.0  # seconds until an agent serves, and reads its first picture, on a busy machine
FILE = ROOT / "mcpboard/host/vision/icons/icons.npz"
MOST_BYTES = 1_500_000  # of the file of drawings; a wheel has it at a fifth


def test_the_words_of_a_screen_are_read_in_bounded_memory() -> None:
    """At least 26 of 27 strings, English, Chinese and digits, each as a line of its own; `make bench` has six looks."""
    results = measured.run("texts", "grey on grey")  # the hardest
    read = results["looks"]["grey on grey"]
    assert read["of"] == 27
    assert len(read["missed"]) <= 27 - measured.FEWEST_STRINGS, read["missed"]
    assert results["mb"] <= measured.MEGABYTES


def test_icons_are_named_at_first_sight() -> None:
    """On light, dark and coloured grounds, 40 to 96 pixels large; `make bench` has all families."""
    results = measured.run("icons", measured.node_modules(), "mdi", "iconoir")["families"]
    for family, least in (("mdi", measured.KNOWN), ("iconoir", measured.UNKNOWN)):
        count, wrong = results[family]["of"], results[family]["wrong"]
        assert count > 100
        assert 1 - len(wrong) / count >= least, (family, wrong)


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
        assert (f"{package} {version} ({licence})" in notice) == (package not in measured.UNSEEN)


def test_odd_pictures_are_refused_or_empty_and_own_icons_have_the_names_of_their_files(tmp_path: Path) -> None:
    odds = measured.run("odds", tmp_path)
    assert "of 20000x2001 pixels; more than 40 million" in odds["too large"]
    for name in ("black", "one pixel", "a line", "wide and black", "with alpha", "grey, 16 bits"):
        assert odds[name] == [0, 0], name
    assert odds["half a picture"]  # whatever the decoder makes of it, it is an answer
    (logo, own), (app, other) = odds["own"]
    assert (logo, own, app, other) == (
        "logo",
        pytest.approx([700, 1500], abs=9),
        "my app",
        pytest.approx([300, 500], abs=9),
    )
    assert (odds["without"], odds["shapes"]) == ([], True)


def test_a_board_is_read_over_mcp(board: Board, tmp_path: Path) -> None:
    """From the simulated phone's video picture to words and icons with the places to tap; the agent ends well."""
    command, data = [str(measured.python()), "-m", "mcpboard", "host"], ["--data", str(tmp_path)]
    added = ["devices", "add", "phone", "--kind", "board", "--url", board.url]
    provision.run([*command, *added, *data], limit_s=START_S, cwd=ROOT)
    environ = {"PATH": os.defpath, "LC_ALL": "C", "PYTHONWARNINGS": "error"}
    with subprocess.Popen(
        [*command, "--port", "0", *data], cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE
    ) as child:
        try:
            client = Caller(first_line(child, START_S).split()[-1], read_main_token(tmp_path)).open()
            (match, *_) = client.call("find_text", query="Settings").result["structuredContent"]["matches"]
            (icon, *_) = client.call("find_icon", name="envelope").result["structuredContent"]["candidates"]
            table = client.call("describe_screen").text
        finally:
            child.terminate()
            assert child.wait(START_S) == 0
    assert (match["text"], match["match"], match["source"]) == ("Settings", "exact", "ocr")
    assert (icon["name"], icon["confident"]) == ("mail", True)
    assert icon["center"][1] > 950  # in the dock, where nothing is written
    assert f'text "Settings" @{match["center"][0]},{match["center"][1]}' in table
    assert 'icon "mail" @' in table
