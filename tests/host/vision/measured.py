"""What `measure` finds out, run by a Python of its own that has the vision extra; and the rows of the bench."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from tests.support import ROOT, provision

REQUIREMENTS = ("rapidocr==3.10.0", "onnxruntime==1.32.0", "resvg-py==0.5.0", "werkzeug==3.1.9", "waitress==3.0.2")
LIMIT_S = 240.0  # seconds for a measurement; a quiet machine needs twenty
NO_NETWORK = ("unshare", "--map-root-user", "--net")  # but a loopback of its own, which is down
UNSEEN = {"iconoir", "eva-icons"}  # packages that are not in the file of drawings

FEWEST_STRINGS = 26  # of 27 on each screen
KNOWN, UNKNOWN = 0.95, 0.8  # of 1, named rightly at first sight
SECONDS_A_SCREEN = 3.4  # of OCR, shown and not asserted
MEGABYTES = 800  # of the whole process: 450 to 660 were seen, as chance has it in the engine's allocator


def no_network() -> None:
    """Fail where a program cannot be started without network, as in some containers."""
    provision.run([*NO_NETWORK, "true"], limit_s=LIMIT_S)


def python() -> Path:
    """A Python with the extra, the core's packages and the builder's rasteriser."""
    return provision.python_prefix(*REQUIREMENTS)


def families() -> list[tuple[str, str, str]]:
    """Package, version and licence of every family, known and unseen, as the builder names them."""
    written = (ROOT / "deploy/icons/build.py").read_text("utf-8")
    return re.findall(r'Family\(\s*"([^"]+)", "([0-9.]+)", "([^"]+)"', written)


@functools.lru_cache
def node_modules() -> Path:
    """The drawings of all of them."""
    wanted = {package: version for package, version, _ in families()}
    assert set(wanted) >= UNSEEN
    return provision.node_prefix(wanted) / "node_modules"


def run(*arguments: str | Path) -> dict[str, Any]:
    """Run the program with no network and return its object."""
    command = [*NO_NETWORK, python(), "-W", "error", "-m", "tests.host.vision.measure", *arguments]
    results: dict[str, Any] = json.loads(provision.run(command, limit_s=LIMIT_S, cwd=ROOT))
    return results


def rows() -> list[tuple[str, str, str, str, bool]]:
    """Metric, measured, beside, target and whether it was reached: of the OCR and of the icons."""
    read, drawn = run("texts"), run("icons", node_modules())
    looks, kinds = read["looks"].values(), drawn["families"].values()
    found = min(look["of"] - len(look["missed"]) for look in looks)
    seconds = sorted(look["s"] for look in looks)
    shares = [(kind["seen"], 1 - len(kind["wrong"]) / kind["of"]) for kind in kinds]
    known, unseen = (min(share for seen, share in shares if seen == wanted) for wanted in (True, False))
    slowest = max(kind["s"] for kind in kinds)
    return [
        ("OCR, worst of six screens", f"{found} of 27 strings", "", f">= {FEWEST_STRINGS}", found >= FEWEST_STRINGS),
        ("OCR, a screen", f"{seconds[0]:.1f}-{seconds[-1]:.1f} s", "", f"<= {SECONDS_A_SCREEN} s", seconds[-1] <= SECONDS_A_SCREEN),
        ("OCR, memory of the process", f"{read['mb']} MB", "", f"<= {MEGABYTES} MB", read["mb"] <= MEGABYTES),
        ("icons of known families", f"{known:.1%}", "", f">= {KNOWN:.0%}", known >= KNOWN),
        ("icons of unseen families", f"{unseen:.1%}", "", f">= {UNKNOWN:.0%}", unseen >= UNKNOWN),
        ("icons, a screen of sixty", f"{slowest:.2f} s, {drawn['mb']} MB", "", "<= 1 s", slowest <= 1),
    ]  # fmt: skip
