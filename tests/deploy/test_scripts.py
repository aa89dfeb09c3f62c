"""The shell scripts that are shipped, read by those who know shells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy import tree

# Path -> the shell that runs it, and what shellcheck cannot know: procd reads START and STOP (2034), libraries of
# OpenWrt are not here (1091), config_foreach calls by name (2317).
SCRIPTS = {
    "buildroot/package/mcpboard/S90mcpboard": ("sh", ""),
    "openwrt/mcpboard/files/mcpboard.init": ("dash", "2034,1091"),
    "openwrt/mcpboard/files/mcpboard.defaults": ("dash", "1091,2317"),
    "openwrt/mcpboard/test.sh": ("dash", ""),
    "debian/build": ("dash", ""),
    "mcpb/build": ("dash", ""),
    "debian/postinst": ("dash", ""),
    "debian/prerm": ("dash", ""),
    "debian/postrm": ("dash", ""),
}


def test_the_list_is_whole() -> None:
    found = {path for path in tree.DEPLOY.rglob("*") if path.is_file() and path.read_bytes().startswith(b"#!/bin/sh")}
    assert {path.relative_to(tree.DEPLOY).as_posix() for path in found} == set(SCRIPTS)


@pytest.mark.tools
@pytest.mark.parametrize("path", SCRIPTS)
def test_shellcheck_finds_nothing(path: str) -> None:
    shell, unknowable = SCRIPTS[path]
    options = ["-s", shell, *(["-e", unknowable] if unknowable else [])]
    tree.run(tree.tool("shellcheck", "shellcheck"), *options, tree.DEPLOY / path)


@pytest.mark.tools
@pytest.mark.parametrize("path", SCRIPTS)
def test_busyboxs_shell_can_read_it(path: str) -> None:
    tree.run(tree.tool("busybox", "busybox-static"), "ash", "-n", Path(tree.DEPLOY, path))
