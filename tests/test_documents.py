"""The README says what the code does: tables compared, commands run."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import pytest

import mcpboard
from mcpboard.board.tools import ROWS
from mcpboard.settings import AGENT, OURS, SETTINGS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below the heading `title`, up to the next heading of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, f"README has no section {title}"
    return found[1]


def table_rows(text: str) -> list[list[str]]:
    """The cells of every body row of the tables in `text`."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|- ")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
    return [row for row in rows if row[0].startswith("`")]


def test_the_tools_table_is_the_allowlist() -> None:
    listed = [(name.strip("`"), backend) for name, _, backend in table_rows(section("Tools"))]
    assert listed == [(row.tool.name, f"`{row.method} {row.path}`") for row in ROWS]


def _setting_row(row: object) -> list[str]:
    default = "none" if row.default is None else json.dumps(row.default)  # type: ignore[attr-defined]
    flag = f"`{row.flag}`".replace("|", r"\|") if row.flag else ""  # type: ignore[attr-defined]
    return [f"`{row.key}`", f"`{default}`", row.unit, row.meaning, flag]  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", [OURS, AGENT])
def test_the_settings_tables_are_those_of_the_code(table: str) -> None:
    written = table_rows(section("Settings"))
    for row in SETTINGS:
        if row.table == table:
            assert _setting_row(row) in written


def test_no_setting_is_described_that_does_not_exist() -> None:
    assert len(table_rows(section("Settings"))) == len(SETTINGS)


def test_one_version_everywhere() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    newest = re.search(r"^### (\S+)", section("Changes"), re.MULTILINE)
    assert newest
    assert {parser["metadata"]["version"], newest[1]} == {mcpboard.__version__}


def test_the_public_names_of_the_package_are_listed() -> None:
    assert mcpboard.__all__ == ["__version__"]


def test_every_make_target_named_in_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= targets
