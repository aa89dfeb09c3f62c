"""The bundle for Claude Desktop, and the registry's server.json."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import sys
import venv
from pathlib import Path

import pytest

from mcpboard.cli import parser_for
from mcpboard.client_configs import USB_URL
from tests.deploy import tree
from tests.support import provision
from tests.support.served import Board
from tests.support.visitors import CLIENTS, visit

MCPB = {"node": "22.23.3", "@anthropic-ai/mcpb": "2.1.2"}
BUILD_S = 120.0  # seconds; a wheel takes five, the bundle's pip ten on a slow line
NEVER_IN_A_BRIDGE = ("board", "host", "serving", "simulator")
MAIN = tree.DEPLOY / "mcpb/server/main.py"


# --- the bundle ------------------------------------------------------------------------------


CONFIGURE = """
import { readFileSync } from "node:fs";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";
const [folder, url] = process.argv.slice(1);
const manifest = JSON.parse(readFileSync(`${folder}/manifest.json`, "utf8"));
const options = { manifest, extensionPath: folder, systemDirs: {}, userConfig: { url }, pathSeparator: "/" };
console.log(JSON.stringify(await getMcpConfigForManifest(options)));
"""


@pytest.mark.tools
@pytest.mark.slow
def test_the_bundle_is_pure_python_and_an_sdk_client_sees_the_phone_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: Board
) -> None:
    """Unpacked as a client does it, started as Claude Desktop would, by a Python with the standard library alone."""
    prefix = provision.node_prefix(MCPB)
    mcpb, node, bundle = prefix / "node_modules/.bin/mcpb", prefix / "node_modules/.bin/node", tmp_path / "unpacked"
    environ = {**os.environ, "MCPB": str(mcpb), "PYTHON": sys.executable}
    tree.run(tree.DEPLOY / "mcpb/build", tmp_path, environ=environ, timeout=BUILD_S)  # which validates it, too
    tree.run(mcpb, "unpack", tmp_path / f"mcpboard-{tree.VERSION}.mcpb", bundle)

    assert json.loads((bundle / "manifest.json").read_text("utf-8"))["version"] == tree.VERSION
    held = {path.relative_to(bundle / "server/lib").as_posix() for path in (bundle / "server/lib").rglob("*.py")}
    python = {path for path in tree.package_files() if path.endswith(".py")}
    ours = {path for path in python if path.split("/")[1] not in NEVER_IN_A_BRIDGE}
    assert {path for path in held if path.startswith("mcpboard/")} == ours
    assert not [path for path in bundle.rglob("*") if path.suffix in (".so", ".pyd", ".pyc")]

    command: provision.Command = [node, "--input-type=module", "--eval", CONFIGURE, "--", bundle, board.url]
    server = json.loads(provision.run(command, limit_s=BUILD_S, cwd=prefix))
    venv.create(tmp_path / "bare", symlinks=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bare/bin'}{os.pathsep}{os.environ['PATH']}")
    client = next(each for each in CLIENTS if each.name == "TypeScript sdk 1.32")
    with visit(client, [server["command"], *server["args"]]) as visitor:
        assert visitor.version == client.bridged
        assert visitor.ask("tools/call", "screenshot", {})["content"][0]["type"] == "image"


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        pytest.param([], [], id="no token"),
        pytest.param([""], [], id="an empty token file"),
        pytest.param(["${user_config.token_file}"], [], id="a setting that the client did not fill in"),
        pytest.param(["/home/me/token"], ["--token-file", "/home/me/token"], id="a token file"),
    ],
)
def test_a_setting_left_out_is_no_flag(given: list[str], flags: list[str]) -> None:
    words = runpy.run_path(str(MAIN))["words"](USB_URL, *given)
    assert words == ["bridge", USB_URL, "--longest-line", str(10 << 20), *flags]
    parser_for().parse_args(words)


def test_an_old_python_can_read_what_tells_it_that_it_is_old() -> None:
    ast.parse(MAIN.read_text("utf-8"), feature_version=(3, 4))


# --- the registry ----------------------------------------------------------------------------


def test_the_registrys_entry_keeps_the_documented_rules_and_its_arguments_are_ours() -> None:
    """Written from the documented fields: no package ships the schema, and it cannot be fetched here."""
    text = (tree.DEPLOY / "registry/server.json").read_text("utf-8")
    entry = json.loads(text.replace("@VERSION@", tree.VERSION))
    assert re.fullmatch(r"https://[a-z.]+/schemas/\d{4}-\d\d-\d\d/server\.schema\.json", entry["$schema"])
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 3 <= len(entry["name"]) <= 200
    assert 1 <= len(entry["description"]) <= 100
    assert 1 <= len(entry["title"]) <= 100
    assert set(entry) <= {"$schema", "name", "title", "description", "version", "packages"}
    # By this the registry knows that who has the name has the package on PyPI, whose description is the README.
    assert f"mcp-name: {entry['name']} -->" in (tree.ROOT / "README.md").read_text("utf-8")
    (package,) = entry["packages"]
    assert package["version"] == entry["version"] == tree.VERSION
    assert (package["registryType"], package["transport"]) == ("pypi", {"type": "stdio"})
    words = []  # on the command line of a person who fills in everything
    for each in package["packageArguments"]:
        assert each["type"] == "named" or {"value", "valueHint"} & set(each)
        assert each.get("format", "string") in ("string", "number", "boolean", "filepath")
        words += [each["name"]] if each["type"] == "named" else []
        words.append(each.get("value") or each.get("default") or "filled-in")
    chosen = parser_for().parse_args(words)
    assert (chosen.url, chosen.token_file) == (USB_URL, "filled-in")
