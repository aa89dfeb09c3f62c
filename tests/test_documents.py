"""README and docs/ say what the code does: tables compared, commands run, links followed."""

from __future__ import annotations

import configparser
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcpboard
from mcpboard import host, text
from mcpboard.board.backend import BACKENDS
from mcpboard.board.forward import LANE_CAPACITY
from mcpboard.board.readers import NOTHING_MOVED
from mcpboard.board.tools import ROWS
from mcpboard.client_configs import CLIENT_CONFIGS
from mcpboard.config.board import SETTINGS
from mcpboard.config.schema import Setting
from mcpboard.host.config import HOST_SETTINGS
from mcpboard.host.tools.rows import ROWS as HOST_ROWS
from mcpboard.laptop import relay
from mcpboard.protocol import limits
from mcpboard.serving import server
from mcpboard.simulator.board.faults import KINDS
from tests.protocol import test_rows
from tests.protocol.http_messages import head, message
from tests.protocol.roles import BOARD, Role
from tests.support import ROOT
from tests.support.processes import MCPBOARD, started

README = (ROOT / "README.md").read_text("utf-8")
PAGES = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}


def section(title: str, page: str = README) -> str:
    """The text below the heading `title`, up to the next heading of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title}"
    return found[1]


def table_rows(text: str) -> list[list[str]]:
    """The cells of every body row of the tables in `text`."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|- ")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
    return [row for row in rows if row[0].startswith("`")]


def test_the_tools_table_is_the_allowlist() -> None:
    listed = [(name.strip("`"), backend) for name, _, backend in table_rows(section("Tools"))]
    assert listed == [(row.tool.name, f"`{row.method} {row.path}`") for row in ROWS]


def _setting_row(row: Setting) -> list[str]:
    default = "none" if row.default is None else json.dumps(row.default)
    flag = f"`{row.flag}`".replace("|", r"\|") if row.flag else ""
    return [f"`{row.key}`", f"`{default}`", row.unit, row.meaning, flag]


def test_the_settings_tables_are_those_of_the_code() -> None:
    assert table_rows(section("Reference", PAGES["settings"])) == [
        _setting_row(row) for row in (*SETTINGS, *HOST_SETTINGS)
    ]


def test_the_places_of_the_clients_files_are_those_of_the_code() -> None:
    names = {"": "Linux, others", "darwin": "macOS", "win32": "Windows"}
    assert table_rows(section("Where each client looks", PAGES["clients"])) == [
        [f"`{each.key}`", names[system] if len(each.places) > 1 else "all", ", ".join(f"`{place}`" for place in places)]
        for each in CLIENT_CONFIGS
        for system, places in each.places.items()
    ]


def test_the_host_s_tools_are_those_of_the_code() -> None:
    written = table_rows(section("Its tools", PAGES["host"]))
    assert [row[0].strip("`") for row in written] == [row.tool.name for row in HOST_ROWS]


def test_the_faults_of_the_simulated_board_are_those_of_the_code() -> None:
    """Each kind, with its settings and their defaults."""
    for kind, _, cell in (rows := table_rows(section("Faults", PAGES["simulator"]))):
        defaults = dict(re.findall(r"`(\w+)` ([^,(]+[^,( ])", cell))
        told = {name: default.removesuffix(" bytes") for name, default in defaults.items()}
        assert told == {name: _as_told(value) for name, value in KINDS[kind.strip("`")].items()}
    assert [kind.strip("`") for kind, _, _ in rows] == list(KINDS)


def _as_told(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_the_decision_table_is_that_of_the_tests() -> None:
    """Each row of each, and each pair of HTTP status and JSON-RPC code that the cases of a row want."""
    cases = defaultdict(set)
    for case in test_rows.CASES:
        cases[case.row].add((str(case.status), str(case.code or "–")))
    written = defaultdict(set)
    for row, _, status, code, _, _ in _decisions():
        written[int(row)].add((status, code))
    assert sorted(written) == sorted({*cases, *test_rows.ELSEWHERE})
    assert {row: written[row] for row in cases} == cases


def test_every_decision_has_a_source() -> None:
    """A link, or a reason in words."""
    page = PAGES["protocol"]
    bare = [row for row, situation, *_, source in _decisions()
            if not source.startswith(("[", "decision: ")) and not situation.startswith("part of row ")]  # fmt: skip
    assert not bare
    links = re.findall(r"\]\[([\w-]+)\]", page)
    assert set(links) == set(re.findall(r"^\[([\w-]+)\]: https://", page, re.MULTILINE))


def _decisions() -> list[list[str]]:
    lines = section("The decision table", PAGES["protocol"]).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)]


def test_the_calls_of_the_board_are_those_of_the_code() -> None:
    """Tool, request, backend, time limit and lane; then the slots of each lane."""
    calls, _, lanes = section("The calls", PAGES["agent-api"]).partition("### Lanes")
    assert table_rows(calls) == [
        [
            f"`{row.tool.name}`",
            f"`{row.method} {row.path}` on {BACKENDS[row.backend][0]}",
            f"{row.deadline_s:g}",
            row.lane,
        ]
        for row in ROWS
    ]
    assert table_rows(lanes) == [[f"`{lane}`", str(slots)] for lane, slots in LANE_CAPACITY.items()]


def test_the_examples_of_messages_are_json_and_the_refused_one_is_as_shown() -> None:
    examples = [json.loads(block) for name in ("protocol", "agent-api")
                for block in re.findall(r"^```json\n(.*?)^```", PAGES[name], re.MULTILINE | re.DOTALL)]  # fmt: skip
    (shown,) = [each for each in examples if "error" in each and "jsonrpc" in each]
    assert Role(BOARD).post(head("2099-01-01"), message("tools/list", id=3)).json == shown


def test_an_author_of_an_agent_is_told_each_argument_and_each_harmless_code() -> None:
    page = section("`POST /api/tools/{name}`", PAGES["agent-api"])
    for name, arguments, _ in (rows := table_rows(page.partition("### Output of each tool")[2])):
        tool = next(row.tool for row in ROWS if row.tool.name == name.strip("`"))
        assert re.findall(r"`(\w+)`", arguments) == list(tool.input_schema["properties"])
    assert [name.strip("`") for name, *_ in rows] == [
        row.tool.name for row in ROWS if row.path.startswith("/api/tools")
    ]
    assert sorted(NOTHING_MOVED) == [
        code.strip("`") for line in page.splitlines() for code in line.split(" · ") if " · " in line
    ]


def test_every_page_that_code_names_is_there() -> None:
    sources = [path for folder in ("mcpboard", "tests") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in sources for name in re.findall(r"\bdocs/([\w-]+)\.md\b", path.read_text("utf-8"))}
    assert {"protocol", "agent-api"} <= named <= {*PAGES, "NAME"}


def test_the_page_of_commands_is_what_they_say_of_themselves() -> None:
    """`make pages` writes it."""
    assert PAGES["cli"] == runpy.run_path(str(ROOT / "docs/commands.py"))["page"]()


def test_every_page_is_in_the_site_and_in_the_readme() -> None:
    navigation = (ROOT / "deploy/site/mkdocs.yml").read_text("utf-8")
    assert not [name for name in PAGES if f": {name}.md\n" not in navigation]
    assert not [name for name in PAGES if name != "index" and f"(docs/{name}.md" not in README]


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 200


def test_one_version_everywhere() -> None:
    """The version is written once in the code, and the newest changes are those of that version."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    assert parser["metadata"]["version"] == "attr: mcpboard.__version__"
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest
    assert newest[1] == mcpboard.__version__


DOCS = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")))


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """Links, and paths of sources in backquotes."""
    text = page.read_text("utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    named = re.findall(r"`((?:mcpboard|tests|deploy)/[\w./-]+)`", text)
    missing = [link for link in links if link and not (page.parent / link).exists()]
    assert not missing + [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.name)
def test_every_heading_that_a_page_links_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s:]*)#([^)\s]+)\)", page.read_text("utf-8"))
    missing = [(link, anchor) for link, anchor in links if anchor not in anchors(page.parent / link if link else page)]
    assert not missing


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as forges and MkDocs make it of their words."""
    titles = re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_tables_of_limits_are_those_of_the_code() -> None:
    """Every limit with its value, and none that does not exist."""
    rows = table_rows(PAGES["limits"])
    written = {row[0].strip("`"): int(row[1].split()[0].replace(",", "")) for row in rows}
    code = {**vars(text), **vars(limits)}
    assert written == {name: value for name, value in code.items() if name.isupper() and name[0] != "_"}
    assert len(rows) == len(written)


def test_the_numbers_of_each_server_are_those_of_the_code() -> None:
    """Connections, slots and threads; what the sentence about spare threads says follows from them."""
    page = PAGES["hostile-traffic"]
    table = page.partition("| | board | relay | host agent |\n")[2].partition("\n\n")[0]
    written = [[[int(number) for number in re.findall(r"\d+", cell)] for cell in line.split("|")[2:5]]
               for line in table.splitlines()[1:]]  # fmt: skip
    board_calls = sum(LANE_CAPACITY.values())
    assert written == [
        [[server.CONNECTIONS], [server.CONNECTIONS], [host.CONNECTIONS]],
        [[board_calls], [relay.CALLS, relay.OTHERS], [host.MOST_CALLS]],
        [[server.THREADS], [relay.THREADS], [host.THREADS]],
    ]
    assert server.THREADS - board_calls == relay.SPARE == 2
    assert host.THREADS - host.MOST_CALLS == 8
    assert "Two threads more than slots (eight on a host)" in page


def test_every_folder_of_the_package_is_explained() -> None:
    """By the table of docs/architecture.md, so that a stranger finds a file by its first guess."""
    table = PAGES["architecture"].partition("## Who imports whom")[0]
    top = [path for path in (ROOT / "mcpboard").iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    inner = [path for folder in top for path in folder.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert not [path.name for path in (*top, *inner) if f"{path.name}/`" not in table]


def test_the_public_names_of_the_package_are_listed() -> None:
    assert mcpboard.__all__ == ["__version__"]


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    everything = "\n".join(page.read_text("utf-8") for page in DOCS)
    openwrts = {"defconfig", "menuconfig", "package"}
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", everything, re.MULTILINE)) <= targets | openwrts


def test_the_words_that_the_bridge_s_table_quotes_are_said() -> None:
    table = section("Bridge and relay", PAGES["troubleshooting"])
    source = "".join(path.read_text("utf-8") for path in (ROOT / "mcpboard").rglob("*.py"))
    symptoms = "\n".join(line.split(" | ")[0] for line in table.splitlines() if line.startswith("| "))
    quoted = [words for words in re.findall(r"`([^`]+)`", symptoms) if " " in words and not re.search(r"\d", words)]
    assert len(quoted) == 4
    assert not [words for words in quoted if words not in source]


def test_people_behind_a_proxy_are_told_the_literal_address() -> None:
    """Some clients take no ranges, some ignore the variable; curl shows whether the board itself answers."""
    advice = PAGES["clients"]
    assert all(f"`{name}=192.168.42.1`" in advice for name in ("NO_PROXY", "no_proxy"))
    assert "some ignore\nthe variable" in advice
    assert "`curl --noproxy '*'`" in advice


# --- what the README shows is run ----------------------------------------------------------------

URL = "http://192.168.42.1:8080/mcp"
DEMO = "http://127.0.0.1:8080/mcp"
LIMIT = 60  # seconds; each command takes well under one


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """`mcpboard demo` as a person starts it: what it said, and the URL it serves."""
    folder = tmp_path_factory.mktemp("demo")
    with started(*MCPBOARD, "demo", "--port", "0", "--folder", str(folder), env=os.environ) as program:
        said = program.told_until("Ctrl-C")
        url = re.search(r"http://127\.0\.0\.1:\d+/mcp", said)
        assert url, said
        yield said, url[0]
        assert program.end() == 0


def shell_blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_demo_saves_a_picture_and_prints_the_url(demo: tuple[str, str]) -> None:
    said, url = demo
    picture = re.search(r"\(screenshot\) -> (\S+),", said)
    assert picture
    assert Path(picture[1]).read_bytes().startswith(b"\xff\xd8\xff")
    assert f"Paste this into a client:   {url}" in said


@pytest.mark.slow
def test_what_pages_for_newcomers_show_prints_and_saves_what_they_say(demo: tuple[str, str], tmp_path: Path) -> None:
    """Every command is run with the demo's URL, a block after the other."""
    command = tmp_path / "mcpboard"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m mcpboard "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    printed = []
    _, *blocks = shell_blocks(section("60 seconds without a board"))  # the first is `make demo`
    blocks += shell_blocks(section("What a request looks like", PAGES["clients"]))
    blocks += shell_blocks(section("`mcpboard tools URL` and `mcpboard call URL TOOL`: from a shell", PAGES["laptop"]))
    for block in blocks:
        script = "set -e -o pipefail\n" + block.replace(DEMO, demo[1]).replace(URL, demo[1])
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)

    legacy, calls, modern, more_calls = printed
    initialized, listed = (json.loads(line) for line in legacy.replace("}{", "}\n{").splitlines())
    assert initialized["result"]["protocolVersion"] == "2025-11-25"
    assert [tool["name"] for tool in listed["result"]["tools"]] == [r.tool.name for r in ROWS if r.tool.name != "shell"]
    assert (tmp_path / "screen.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    with tarfile.open(tmp_path / "support-bundle.tar.gz") as bundle:
        assert len(bundle.getnames()) == 3
    assert json.loads(modern)["result"]["supportedVersions"] == ["2026-07-28", "2025-11-25"]
    assert "phone_bridge_status" in calls
    assert "phone_bridge_status" in more_calls
