"""Edits in the text of a configuration: what is set, what stays to the byte, what is refused."""

from __future__ import annotations

import difflib
import importlib
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mcpboard.client_configs import CLIENT_CONFIGS, CONNECTION_KEYS, Target, Token
from mcpboard.errors import ConfigError
from mcpboard.laptop.connect import edits, json_edit

yaml: Any = importlib.import_module("yaml")  # comes without types

URL = "http://192.168.42.1:8080/mcp"
ENTRY = {"url": URL}
OURS = {"servers": {"phone-board": ENTRY}}
WRITABLE = [client for client in CLIENT_CONFIGS if client.format != "steps"]


def parsed(format: str, text: str) -> Any:
    if format == "json":
        return json.loads(text)
    return tomlkit.parse(text).unwrap() if format == "toml" else YAML(typ="safe", pure=True).load(text)


CODEX = {"mcp_servers": {"phone-board": {"url": URL, "tool_timeout_sec": 60}}}
BLOCK = f'\n[mcp_servers.phone-board]\nurl = "{URL}"\ntool_timeout_sec = 60\n'
HERMES = {"mcp_servers": {"phone-board": {"url": URL, "timeout": 120}}}
LINES = f'mcp_servers:\n  phone-board:\n    url: "{URL}"\n    timeout: 120\n'
ENTRIES: Mapping[str, Mapping[str, Any]] = {"json": OURS, "toml": CODEX, "yaml": HERMES}

IN_PLACE = [
    pytest.param("json", "", '{\n  "servers": {\n    "phone-board": {\n      "url": "URL"\n    }\n  }\n}\n', id="JSON: an empty file"),
    pytest.param("json", "{}", '{\n  "servers": {\n    "phone-board": {\n      "url": "URL"\n    }\n  }\n}', id="JSON: an empty object"),
    pytest.param("json", '{"a": 1.50, "b":"\\u00e9"}\n', '{"a": 1.50, "b":"\\u00e9",\n  "servers": {\n    "phone-board": {\n      "url": "URL"\n    }\n  }}\n', id="JSON: numbers and escapes as they were"),
    pytest.param("json", '{\n\t"servers": {\n\t\t"x": [1,\n2]\n\t}\n}\n', '{\n\t"servers": {\n\t\t"x": [1,\n2],\n\t\t"phone-board": {\n\t\t\t"url": "URL"\n\t\t}\n\t}\n}\n', id="JSON: tabs"),
    pytest.param("json", '{\r\n  "servers": {}\r\n}\r\n', '{\r\n  "servers": {\r\n    "phone-board": {\r\n      "url": "URL"\r\n    }\r\n  }\r\n}\r\n', id="JSON: line breaks of Windows"),
    pytest.param("json", '{"servers": {"phone-board": {"command": "npx", "args": []}, "z": {}}, "y": 2}', '{"servers": {"phone-board": {\n      "url": "URL"\n    }, "z": {}}, "y": 2}', id="JSON: another way to connect, replaced"),
    pytest.param("json", '{"servers": {"phone-board": {"url": "http://old/mcp", "autoApprove": ["screenshot"]}}}', '{"servers": {"phone-board": {\n      "url": "URL",\n      "autoApprove": [\n        "screenshot"\n      ]\n    }}}', id="JSON: what the owner added stays"),
    pytest.param("json", '{"servers": null}', '{"servers": {\n    "phone-board": {\n      "url": "URL"\n    }\n  }}', id="JSON: null"),
    pytest.param("toml", "", BLOCK[1:], id="TOML: an empty file"),
    pytest.param("toml", 'model = "x"  # mine\n', 'model = "x"  # mine\n' + BLOCK, id="TOML: what was there, with its comment"),
    pytest.param("toml", "a = 1", "a = 1\n" + BLOCK, id="TOML: no line break at the end"),
    pytest.param("toml", "a = 1\r\n", "a = 1\r\n" + BLOCK.replace("\n", "\r\n"), id="TOML: line breaks of Windows"),
    pytest.param("toml", '[mcp_servers.other]\ncommand = "x"\n\n[tui]\nx = 1\n', '[mcp_servers.other]\ncommand = "x"\n\n[tui]\nx = 1\n' + BLOCK, id="TOML: other servers, with something in between"),
    pytest.param("toml", '[mcp_servers.phone-board]\nurl = "http://old/mcp" # the board\ntool_timeout_sec = 300 # patient\n[z]\n', f'[mcp_servers.phone-board]\nurl = "{URL}" # the board\ntool_timeout_sec = 300 # patient\n[z]\n', id="TOML: an older entry, with its owner's patience"),
    pytest.param("yaml", "# mine\nmcp_servers:\n  other: # keep\n    url: 'x'\nz:\n- 1\n", f"# mine\nmcp_servers:\n  other: # keep\n    url: 'x'\n  phone-board:\n    url: \"{URL}\"\n    timeout: 120\nz:\n- 1\n", id="YAML: among other servers"),
    pytest.param("yaml", "mcp_servers:\n    phone-board:\n        url: http://old/mcp # the board\n        trust: untrusted\n", f"mcp_servers:\n    phone-board:\n        url: {URL} # the board\n        trust: untrusted\n        timeout: 120\n", id="YAML: an older entry, four spaces, with its owner's key"),
    pytest.param("yaml", "---\nlist:\n  - 1\nmcp_servers:\n", f"---\nlist:\n  - 1\nmcp_servers:\n  phone-board:\n    url: \"{URL}\"\n    timeout: 120\n", id="YAML: an empty table, a document's beginning"),
    pytest.param("yaml", "mcp_servers:\r\n  a:\r\n    url: x\r\n", f"mcp_servers:\r\n  a:\r\n    url: x\r\n  phone-board:\r\n    url: \"{URL}\"\r\n    timeout: 120\r\n", id="YAML: line breaks of Windows"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "before", "after"), IN_PLACE)
def test_a_text_is_changed_in_place(format: str, before: str, after: str) -> None:
    assert edits.with_entry(format, before, ENTRIES[format]) == after.replace("URL", URL)


# A file as one client or library writes it; `@` is where the entry comes, with `+` the comma before it. `url` stands for it.
CLIENTS_FILES = [
    pytest.param("json", '{\n\t// servers of this project\n\t"servers": {\n\t\t"fetch": {\n\t\t\t"command": "uvx", // or npx\n\t\t\t"args": ["a//b", "/*c*/"],\n\t\t},@,\n\t},\n\t"inputs": [],\n}\n', id="VS Code: comments, tabs, trailing commas"),
    pytest.param("json", '{\n  "servers": {\n    "fetch": {\n      "command": "uvx"\n    }+ // the only one@\n  }\n}\n', id="VS Code: a comment behind the last"),
    pytest.param("json", '{\r\n    "servers": { // none yet@\r\n    }\r\n}', id="VS Code: comments alone, Windows"),
    pytest.param("json", '{\n  "theme": "dark", /* mine */\n  "theme": "light",\n  "servers": {\n    "a": {}+@\n  }\n}\n', id="a key elsewhere that stands there twice"),
    pytest.param("toml", 'model = "o3"\nmcp_servers.fetch.command = "uvx" # dotted\nmcp_servers.fetch.args = ["-q"]\n\n[projects."/home/me/a b"]\ntrust_level = "trusted"\n@', id="Codex: dotted keys"),
    pytest.param("toml", '[mcp_servers."left phone"]\ncommand = "uvx"\nargs    = [\n  "a", # one\n]\n[mcp_servers."left phone".env]\nA = \'1\'\n@', id="Codex: quoted names, tables in tables"),
    pytest.param("toml", '\ufeff' + 'a = 1979-05-27T07:32:00Z\nb = 1_000\nc = """\nmany\n"""\n@', id="TOML: values of every sort"),
    pytest.param("yaml", "mcp_servers:\n  fetch:\n    enabled: true\n    type: stdio\n    description: ''\n    timeout: 300\n    bundled: null\n    available_tools: []\n@GOOSE_MODEL: \"caf\\xE9\"\nGOOSE_MODE: auto\n", id="Goose: serde's nulls and escapes"),
    pytest.param("yaml", "mcp_servers:\n  fetch:\n    args:\n    - -y\n    - x\n    command: npx\n@model: a value that is longer than the eighty columns at which some libraries fold a line into two\n", id="PyYAML: lists without indentation, long lines"),
    pytest.param("yaml", "%YAML 1.2\n---\nmcp_servers:\n    fetch:   {command: npx, args: [-y, x]}\n@z:      1   # aligned\n...\n", id="ruamel: a directive, flow, aligned values, an end"),
    pytest.param("yaml", "a: 1\n@...\n", id="YAML: an end and no table"),
    pytest.param("yaml", "a: 1\na: 2\nmcp_servers:\n  a:\n    url: x\n@", id="YAML: a key elsewhere that stands there twice"),
    pytest.param("yaml", "model:\n  default: x\n# mcp_servers: none\nmcp_servers: {} # empty\nz:\n  |\n  text: not a key\n", id="Hermes: an empty table"),
    pytest.param("yaml", "mcp_servers:\n  a: &it\n    url: x\n  b: *it\n  # c: off\n", id="YAML: anchors, a comment at the end"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "marked"), CLIENTS_FILES)
def test_a_file_that_a_client_wrote_gets_the_entry_and_stays_to_the_byte(format: str, marked: str) -> None:
    """Where `@` says; the loaded document is the old one with the entry. The same again changes nothing."""
    mark = "\ufeff" if marked.startswith("\ufeff") else ""
    marked = marked.removeprefix(mark)
    before = marked.replace("+", "").replace("@,", "").replace("@", "")
    after = edits.with_entry(format, before, ENTRIES[format])
    assert edits.with_entry(format, after, ENTRIES[format]) == after
    load = edits.LANGUAGES[format].load
    old, new = load(before), load(after)
    (table,) = ENTRIES[format]
    assert new == {**old, table: {**(old.get(table) or {}), **ENTRIES[format][table]}}
    if "@" in marked:
        start, end = (part.replace("+", ",") for part in marked.split("@"))
        assert (after[: len(start)], after[len(after) - len(end) :]) == (start, end)
    else:
        for line in before.replace("mcp_servers: {} #", "mcp_servers: #").splitlines(keepends=True):
            assert line in after


# What clients keep beside servers: nothing, empty, long and foreign text, numbers, lists in tables in lists.
HELD: Mapping[str, Any] = {
    "mcp_servers": {
        "fetch": {"command": "uvx", "args": ["-y", "mcp server"], "env": {"A_B": "1"}, "bundled": None},
        "left phone": {"url": "http://127.0.0.1:1/mcp?a=b#c", "enabled": False, "timeout": 1.5, "headers": {}},
    },
    "GOOSE_MODEL": "café 你好 🎉",
    "long": "a value that is longer than the eighty columns, " * 4,
    "many": "first line\n  second: line\n# no comment\n",
    "rules": [{"match": ["*.md", "- x"], "then": {"do": [1, [2, 3], {}]}}, [], "null", "2026-12-01"],
}


def by_pyyaml(**options: Any) -> Callable[[Any], str]:
    return lambda document: str(yaml.safe_dump(document, **options))


def by_ruamel(mapping: int, sequence: int, offset: int) -> Callable[[Any], str]:
    def write(document: Any) -> str:
        stream, writer = io.StringIO(), YAML(typ="rt", pure=True)
        writer.indent(mapping=mapping, sequence=sequence, offset=offset)
        writer.dump(document, stream)
        return stream.getvalue()

    return write


SERIALIZERS = {
    "PyYAML": by_pyyaml(),
    "PyYAML, in order and as it is": by_pyyaml(sort_keys=False, allow_unicode=True, width=1000),
    "PyYAML, flow inside": by_pyyaml(default_flow_style=None, indent=4),
    "PyYAML, from beginning to end": by_pyyaml(explicit_start=True, explicit_end=True),
    "PyYAML, quoted": by_pyyaml(default_style='"'),
    "ruamel": by_ruamel(2, 2, 0),
    "ruamel, wide": by_ruamel(4, 6, 4),
}


@pytest.mark.parametrize("server", ["phone-board", "fetch", "left phone"])
@pytest.mark.parametrize(
    "held", [HELD, {**HELD, "mcp_servers": {}}, {"z": 1}], ids=["servers", "no server", "no table"]
)
@pytest.mark.parametrize("write", SERIALIZERS.values(), ids=SERIALIZERS)
def test_what_a_library_wrote_gets_the_entry_as_that_library_reads_it(
    write: Callable[[Any], str], held: Mapping[str, Any], server: str
) -> None:
    """In lines of its own, or in place of an older entry; every other line stays, in its order."""
    before = write(dict(held))
    after = edits.with_entry("yaml", before, {"mcp_servers": {server: ENTRY}})
    old = held.get("mcp_servers", {})
    kept = {key: value for key, value in old.get(server, {}).items() if key not in CONNECTION_KEYS}
    expected = {**held, "mcp_servers": {**old, server: {**ENTRY, **kept}}}
    for load in (yaml.safe_load, YAML(typ="safe", pure=True).load):
        assert load(after) == expected
    if server not in old and old:
        changes = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
        assert [change[0] for change in changes if change[0] != "equal"] == ["insert"]
    assert edits.with_entry("yaml", after, {"mcp_servers": {server: ENTRY}}) == after


REFUSED = [
    pytest.param("json", '{"servers": {}, "servers": {}}', "servers stands there twice", id="JSON: the table twice"),
    pytest.param("json", '{"servers": {"phone-board": { // mine\n"url": "x"}}}', "has comments in it", id="JSON: comments in the entry"),
    pytest.param("json", "{ /* mine }", "line 1 is not JSON", id="JSON: a comment without end"),
    pytest.param("json", '{"a": NaN}', "NaN", id="JSON: no number"),
    pytest.param("json", "[]", "no table", id="JSON: a list at the top"),
    pytest.param("json", '{"servers": []}', "servers is there, but is no table", id="JSON: a list for the table"),
    pytest.param("json", "[" * 100_000, "nested too deeply", id="JSON: nested without end"),
    pytest.param("json", '{"a": 1} {"b": 2}', "is not JSON", id="JSON: two documents"),
    pytest.param("toml", "a = \n", "not valid TOML", id="TOML: no TOML"),
    pytest.param("toml", "a = 1\na = 2\n", "not valid TOML", id="TOML: a key twice"),
    pytest.param("toml", "mcp_servers = 1\n", "no table", id="TOML: a value for the table"),
    pytest.param("yaml", "a: [1\n", "not valid YAML", id="YAML: no YAML"),
    pytest.param("yaml", "mcp_servers: {}\nmcp_servers: {}\n", "not valid YAML", id="YAML: the table twice"),
    pytest.param("yaml", "a: 1\n---\nb: 2\n", "not valid YAML", id="YAML: two documents"),
    pytest.param("yaml", "- 1\n", "no table", id="YAML: a list at the top"),
    pytest.param("yaml", "mcp_servers: 1\n", "no table", id="YAML: a value for the table"),
    pytest.param("yaml", "mcp_servers: { a:   {url: x} }\n", "layout would not survive", id="YAML: a layout of its own"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text", "words"), REFUSED)
def test_a_text_that_cannot_be_kept_is_refused(format: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        edits.with_entry(format, text, ENTRIES[format])


def test_items_of_a_list_are_told_apart_by_their_ids() -> None:
    mine, other = {"id": "token", "type": "promptString"}, {"id": "other"}
    ours = {"inputs": [mine]}
    assert json.loads(edits.with_entry("json", '{"inputs": [{"id": "other"}]}', ours)) == {"inputs": [other, mine]}
    assert json.loads(edits.with_entry("json", '{"inputs": [{"id": "token", "old": 1}, 7]}', ours)) == {
        "inputs": [7, mine]
    }
    with pytest.raises(ConfigError, match="no list"):
        edits.with_entry("json", '{"inputs": 1}', ours)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    document=st.dictionaries(st.text(max_size=4) | st.just("servers"), JSON_VALUES, max_size=4),
    indent=st.sampled_from([None, 2, 4, "\t"]),
)
@pytest.mark.slow
def test_any_json_gets_the_entry_and_loses_nothing(document: dict[str, Any], indent: int | str | None) -> None:
    text = json.dumps(document, indent=indent)
    if not isinstance(document.get("servers", {}), (dict, type(None))):
        return
    expected = {**document, "servers": {**(document.get("servers") or {}), "phone-board": ENTRY}}
    after = edits.with_entry("json", text, OURS)
    assert json.loads(after) == expected
    assert edits.with_entry("json", after, OURS) == after


def test_a_value_is_put_where_the_path_says() -> None:
    assert (
        json_edit.put('{"a": {"b": [1, {"c": 2}], "d": "}"}}', ("a", "d"), 3) == '{"a": {"b": [1, {"c": 2}], "d": 3}}'
    )


def test_an_inline_table_of_servers_is_changed_or_refused_but_never_lost() -> None:
    text = 'mcp_servers = { other = { url = "x" } } # mine\n'
    try:
        after = edits.with_entry("toml", text, CODEX)
    except ConfigError:
        return
    assert parsed("toml", after)["mcp_servers"] == {"other": {"url": "x"}, **CODEX["mcp_servers"]}
    assert "# mine" in after


YAML_CASES = [
    pytest.param("", LINES, id="an empty file"),
    pytest.param("# only a comment\n", "# only a comment\n", id="only a comment"),
    pytest.param("a: 1 # mine\nb:   'two'\n", "a: 1 # mine\nb:   'two'\n", id="a layout that nobody else has"),
    pytest.param("a:\n- 1\n-   2\n", "a:\n- 1\n-   2\n", id="an odd list"),
]


@pytest.mark.parametrize(("before", "kept"), YAML_CASES)
def test_yaml_gets_a_new_table_at_its_end(before: str, kept: str) -> None:
    after = edits.with_entry("yaml", before, HERMES)
    assert after.startswith(kept)
    assert after.endswith(LINES)
    assert parsed("yaml", after)["mcp_servers"] == HERMES["mcp_servers"]


# --- all of them ---------------------------------------------------------------------------------

TARGETS = [
    pytest.param(Target(URL), id="open"),
    pytest.param(Target(URL, "left-phone", Token("/home/me/token", "a-secret-of-some-length")), id="with a token"),
    pytest.param(Target("http://[fe80::1]:8090/mcp", program=("C:\\Program Files\\mcpboard.exe",)), id="IPv6, Windows"),
]


@pytest.mark.parametrize("client", WRITABLE, ids=lambda client: client.key)
@pytest.mark.parametrize("target", TARGETS)
def test_each_form_survives_its_own_parser_and_a_second_write(client: Any, target: Target) -> None:
    document: Mapping[str, Any] = client.document(target)
    assert parsed(client.format, client.text(target)) == document
    once = edits.with_entry(client.format, "", document)
    assert parsed(client.format, once) == document
    assert edits.with_entry(client.format, once, document) == once


@pytest.mark.parametrize("client", WRITABLE, ids=lambda client: client.key)
def test_a_change_of_address_and_back_to_no_token(client: Any) -> None:
    with_token = client.document(Target(URL, token=Token("/t", "a-secret-of-some-length")))
    moved = client.document(Target("http://10.0.0.7:8080/mcp"))
    after = edits.with_entry(client.format, edits.with_entry(client.format, "", with_token), moved)
    assert parsed(client.format, after)[client.table] == moved[client.table]
    assert "a-secret-of-some-length" not in after
