"""How Buildroot wants its files to look, as far as it can be told from outside; read from the rules, not copied."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.deploy import tree

PACKAGE = tree.BUILDROOT / "package/mcpboard"
MK, CONFIG_IN, S_SCRIPT = PACKAGE / "mcpboard.mk", PACKAGE / "Config.in", PACKAGE / "S90mcpboard"

WIDTH = 72  # columns of a help text, a tab counting eight

HEADER = f"{'#' * 80}\n#\n# mcpboard\n#\n{'#' * 80}\n\n"

ALL = sorted(path for path in tree.DEPLOY.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.relative_to(tree.DEPLOY).as_posix())
def test_a_file_ends_with_one_newline_and_no_line_with_a_blank(path: Path) -> None:
    content = path.read_text("ascii")
    assert content.endswith("\n")
    assert not content.endswith("\n\n")
    assert not [line for line in content.split("\n") if line != line.rstrip()]


def test_a_recipe_begins_with_its_box_and_ends_with_its_macro() -> None:
    recipe = MK.read_text("ascii")
    assert recipe.startswith(HEADER)
    assert recipe.endswith("\n\n$(eval $(python-package))\n")


def test_a_recipes_variables_carry_the_packages_name_and_blanks_around_the_equals_sign() -> None:
    assigned = re.findall(r"^(\w+)(\s*\+?=.*)", MK.read_text("ascii"), re.MULTILINE)
    assert assigned
    assert not [name for name, _ in assigned if not name.startswith("MCPBOARD_")]
    assert not [rest for _, rest in assigned if not re.match(r" \+?= |\ = \\$", rest)]


def test_a_recipes_lines_are_indented_with_tabs_alone() -> None:
    indented = [line for line in MK.read_text("ascii").split("\n") if line[:1].isspace()]
    assert indented
    assert not [line for line in indented if not re.match(r"\t+\S", line)]


def test_a_recipe_names_no_python_among_its_dependencies() -> None:
    """The macro brings them, and what only runs is selected in Config.in."""
    assert "_DEPENDENCIES" not in MK.read_text("ascii")


def test_attributes_stand_behind_one_tab_and_help_behind_two_blanks_more() -> None:
    indented = [line for line in CONFIG_IN.read_text("ascii").split("\n") if line[:1].isspace()]
    assert not [line for line in indented if not re.match(r"\t(  )?\S", line)]


def test_attributes_keep_their_order() -> None:
    order = ("bool", "prompt", "default", "depends", "select", "help")
    for block in CONFIG_IN.read_text("ascii").split("\n\n"):
        found = [line.split()[0] for line in block.split("\n") if re.match(r"\t\S", line)]
        assert found == sorted(found, key=order.index)


def test_help_texts_are_narrow_and_the_packages_own_ends_with_its_page() -> None:
    lines = [line for line in CONFIG_IN.read_text("ascii").split("\n") if line.startswith("\t  ")]
    assert not [line for line in lines if len(line.expandtabs(8)) > WIDTH]
    assert re.search(r"loopback\.\n\n\t  https://\S+\n", CONFIG_IN.read_text("ascii"))


def test_each_line_of_the_hash_file_has_its_form() -> None:
    lines = (PACKAGE / "mcpboard.hash").read_text("ascii").splitlines()
    assert not [line for line in lines if not re.fullmatch(r"# .+|sha256  [0-9a-f]{64}  \S+", line)]


def test_the_s_script_is_named_like_its_daemon_and_keeps_its_pid_where_all_do() -> None:
    script = S_SCRIPT.read_text("ascii")
    daemon = tree.first(r'^DAEMON="([^"]+)"$', script)
    assert re.fullmatch(rf"S\d\d{daemon}", S_SCRIPT.name)
    assert '\nPIDFILE="/var/run/$DAEMON.pid"\n' in script


def test_the_s_script_is_indented_with_tabs_and_uses_long_options() -> None:
    script = S_SCRIPT.read_text("ascii")
    assert not re.search(r"^ ", script, re.MULTILINE)
    assert not re.search(r"start-stop-daemon(?: \S+)* -[a-zA-Z]\b", script)


@pytest.mark.parametrize("name", ["S90mcpboard", "mcpboard.mk", "Config.in", "mcpboard.toml", "mcpboard.hash"])
def test_nothing_in_the_package_folder_is_executable(name: str) -> None:
    """The S-script becomes so when it is installed."""
    assert not stat.S_IMODE((PACKAGE / name).stat().st_mode) & 0o111


def test_the_external_tree_says_who_it_is() -> None:
    lines = (tree.BUILDROOT / "external.desc").read_text("ascii").splitlines()
    name, description = (line.partition(": ") for line in lines)
    assert (name[0], description[0]) == ("name", "desc")
    assert re.fullmatch(r"[A-Za-z0-9_]+", name[2])
    assert len(description[2]) <= 40
