"""The version of the package (PEP 440) in the grammars of apk and Debian."""

from __future__ import annotations

import re

_PEP440 = re.compile(
    r"(?P<release>\d+(\.\d+)*)((?P<stage>a|b|rc)(?P<number>\d+))?(\.post(?P<post>\d+))?(\.dev(?P<dev>\d+))?"
)
_STAGES = {"a": "alpha", "b": "beta", "rc": "rc"}


def apk(version: str) -> str:
    """The same version for apk, in the same order; ValueError for what it cannot say (epochs, local parts)."""
    found = _PEP440.fullmatch(version)
    if found is None:
        raise ValueError(f"{version} has no form in apk")
    suffixes = f"_{_STAGES[found['stage']]}{found['number']}" if found["stage"] else ""
    if found["post"]:
        suffixes += f"_p{found['post']}"
    if found["dev"]:
        # A development version comes before the first alpha; after a suffix, _pre comes before that suffix alone.
        suffixes = (suffixes or "_alpha0") + f"_pre{found['dev']}"
    return found["release"] + suffixes


def debian(version: str) -> str:
    """The same version for dpkg, where ~ sorts before the end, and ~~ before ~."""
    return re.sub(r"\.dev(?=\d)", "~~dev", re.sub(r"(?<=\d)(?=(a|b|rc)\d)", "~", version))
