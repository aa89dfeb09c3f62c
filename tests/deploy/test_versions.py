"""Versions in the grammars of the packages."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess

import pytest

from tests.deploy import tree, versions

# Oldest first.
TABLE = (
    ("1.2.0.dev3", "1.2.0_alpha0_pre3", "1.2.0~~dev3"),
    ("1.2.0a1", "1.2.0_alpha1", "1.2.0~a1"),
    ("1.2.0b2.dev1", "1.2.0_beta2_pre1", "1.2.0~b2~~dev1"),
    ("1.2.0b2", "1.2.0_beta2", "1.2.0~b2"),
    ("1.2.0rc1", "1.2.0_rc1", "1.2.0~rc1"),
    ("1.2.0", "1.2.0", "1.2.0"),
    ("1.2.0.post1", "1.2.0_p1", "1.2.0.post1"),
    ("1.2.1", "1.2.1", "1.2.1"),
)
APK_GRAMMAR = r"[0-9]+(\.[0-9]+)*[a-z]?(_(alpha|beta|pre|rc|cvs|svn|git|hg|p)[0-9]*)*(~[0-9a-f]+)?(-r[0-9]+)?"


@pytest.mark.parametrize(("ours", "apk", "_debian"), TABLE)
def test_a_version_is_written_as_apk_reads_it(ours: str, apk: str, _debian: str) -> None:
    assert versions.apk(ours) == apk
    assert re.fullmatch(APK_GRAMMAR, apk)


@pytest.mark.parametrize("ours", ["1!1.2.0", "1.2.0+board", "1.2.0-1", "latest"])
def test_what_apk_cannot_say_is_refused(ours: str) -> None:
    with pytest.raises(ValueError, match="no form in apk"):
        versions.apk(ours)


@pytest.mark.parametrize(("ours", "_apk", "debian"), TABLE)
def test_a_version_is_written_as_dpkg_reads_it(ours: str, _apk: str, debian: str) -> None:
    assert versions.debian(ours) == debian


@pytest.mark.tools
@pytest.mark.parametrize(("older", "newer"), list(itertools.pairwise(debian for _, _, debian in TABLE)))
def test_dpkg_sorts_them_as_we_do(older: str, newer: str) -> None:
    tree.run(tree.tool("dpkg", "dpkg"), "--compare-versions", older, "lt", newer)


@pytest.mark.parametrize(
    ("ours", "apk"),
    [("1.2.0a1", "1.2.0_alpha1"), ("1.2.0b2", "1.2.0_beta2"), ("1.2.0rc1", "1.2.0_rc1"), ("1.2.0", "1.2.0")],
)
def test_the_feeds_own_check_recognises_what_the_program_prints(ours: str, apk: str) -> None:
    """OpenWrt's CI hands PKG_VERSION-rN to test.sh, which compares it with `mcpboard --version`."""
    script = tree.first(r"\| (sed -E '[^']+')\)", (tree.OPENWRT / "mcpboard/test.sh").read_text("utf-8"))
    shell = shutil.which("sh")
    assert shell
    printed = subprocess.run([shell, "-c", script], input=ours, capture_output=True, text=True, check=True, timeout=10)
    assert printed.stdout.strip() == apk
