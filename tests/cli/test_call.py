"""`mcpboard tools` and `mcpboard call`, run in this process against a server on a port of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.cli import main, tool_arguments
from mcpboard.errors import ConfigError
from tests.functional.test_client import DISCOVERED, http_answer, says
from tests.support import ROOT
from tests.support.peer import BUNDLE, PICTURE, Peer, Raw, serving
from tests.support.piped import ENVIRONMENT

TOKEN = "a-token-of-some-length"


@pytest.fixture
def peer() -> Iterator[Peer]:
    with serving(Peer()) as peer:
        yield peer


def echoed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


# --- tools ---------------------------------------------------------------------------------------


def test_tools_are_shown_as_a_table(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", peer.url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["TOOL", "TITLE", "NEEDS"]
    assert lines[2] == "echo            Say it back  text"
    assert len(lines) == 6


def test_tools_are_printed_as_the_server_describes_them(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", peer.url, "--json"]) == 0
    assert [tool["name"] for tool in echoed(capsys)][:2] == ["status", "echo"]


# --- call ----------------------------------------------------------------------------------------


def test_text_goes_to_the_output(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", peer.url, "status"]) == 0
    assert capsys.readouterr().out == "all is well\n"
    assert peer.methods == ["server/discover", "tools/call"]


def test_arguments_are_typed_by_the_schema(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["text=12", "x=1.5", "n=-3", "on=true", 'at={"y": 1}', 'keys=["a"]', "more=7"]
    assert main(["call", peer.url, "echo", *words]) == 0
    sent = {"text": "12", "x": 1.5, "n": -3, "on": True, "at": {"y": 1}, "keys": ["a"], "more": "7"}
    assert echoed(capsys) == sent


def test_arguments_may_be_json_and_words_go_over_it(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", peer.url, "echo", "x=2", "--json", '{"text": "a", "x": 1}']) == 0
    assert echoed(capsys) == {"text": "a", "x": 2}


@pytest.mark.parametrize(("tool", "content", "mime", "name"), [
    pytest.param("screenshot", PICTURE, "image/jpeg", "screenshot.jpg", id="a screenshot"),
    pytest.param("support_bundle", BUNDLE, "application/gzip", "support-bundle.tar.gz", id="a bundle"),
])  # fmt: skip
def test_what_a_tool_brings_is_saved_or_offered(
    peer: Peer, capsys: pytest.CaptureFixture[str], tmp_path: Path, tool: str, content: bytes, mime: str, name: str
) -> None:
    assert main(["call", peer.url, tool]) == 0
    assert f"{mime}, {len(content)} bytes; add -o {name} to save it" in capsys.readouterr().out
    assert main(["call", peer.url, tool, "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes() == content
    assert capsys.readouterr().err == f"{tmp_path / name}: {mime}, {len(content)} bytes\n"


HALF = http_answer(
    b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"a\\ud83db"}],"resultType":"complete"}}'
)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_half_a_surrogate_pair_is_printed_as_a_replacement_character(encoding: str) -> None:
    """Or as its number, when the output cannot hold that character."""
    with Raw(says(DISCOVERED), says(HALF)) as raw:
        done = subprocess.run(
            [sys.executable, "-m", "mcpboard", "call", raw.url, "get_clipboard"],
            check=False, capture_output=True, cwd=ROOT, env={**ENVIRONMENT, "PYTHONIOENCODING": encoding},
        )  # fmt: skip
    expected = "a\N{REPLACEMENT CHARACTER}b" if encoding == "utf-8" else r"a\ufffdb"
    assert (done.returncode, done.stdout.decode().rstrip(), done.stderr) == (0, expected, b"")


def test_a_list_that_is_too_deep_to_be_printed_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    deep = b'{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":%s%s}]}}' % (b"[" * 990, b"]" * 990)
    for words, code in ([], 0), (["--json"], 1):
        with Raw(says(DISCOVERED), says(http_answer(deep))) as raw:
            assert main(["tools", raw.url, *words]) == code
    assert capsys.readouterr().err.count("\n") == 1


def test_nothing_to_save_is_a_failure(peer: Peer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["call", peer.url, "status", "-o", str(tmp_path / "x")]) == 1
    assert "brought no screenshot and no file" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_progress_and_colours_are_for_a_terminal_alone(
    peer: Peer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["call", peer.url, "fail"]) == 1
    assert capsys.readouterr() == ("the phone is \x1b[31masleep\n", "")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    main(["call", peer.url, "fail"])
    assert capsys.readouterr().out == "the phone is \N{REPLACEMENT CHARACTER}[31masleep\n"
    main(["call", peer.url, "support_bundle"])
    err = capsys.readouterr().err
    assert "support_bundle: 1.3 of 1.3 MiB" in err
    assert err.endswith("\r\x1b[K")


def test_a_refusal_is_one_line_and_ends_in_one(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", peer.url, "nope", "x=1"]) == 1
    line = f"mcpboard: {peer.url}: unknown tool: nope (JSON-RPC error -32602); nothing was executed\n"
    assert capsys.readouterr() == ("", line)


def test_nobody_there_is_one_line_and_ends_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(Peer()) as gone:
        url = gone.url
    assert main(["tools", url]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_token_is_read_from_its_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with serving(Peer(authorize=lambda header: "me" if header == f"Bearer {TOKEN}" else None)) as peer:
        assert main(["call", peer.url, "status", "--token-file", str(tmp_path / "token")]) == 0
        assert main(["call", peer.url, "status"]) == 1
    assert "--token-file" in capsys.readouterr().err


# --- wrong usage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "says"), [
    pytest.param(["x"], "KEY=VALUE", id="a word without a sign"),
    pytest.param(["=1"], "KEY=VALUE", id="a value without a key"),
    pytest.param(["x=1", "x=2"], "x is given twice", id="a key twice"),
    pytest.param(["x=abc"], "x must be a number", id="no number"),
    pytest.param(["x=nan"], "x must be a number", id="a number that is not finite"),
    pytest.param(["n=1.5"], "n must be a whole number", id="half a number"),
    pytest.param(["on=yes"], "on must be true or false", id="no truth value"),
    pytest.param(["at=[1]"], "at must be a JSON object", id="a list for an object"),
    pytest.param(["keys={}"], "keys must be a JSON list", id="an object for a list"),
    pytest.param([f"keys={'[' * 100_000}"], "keys must be a JSON list", id="brackets without end"),
    pytest.param(["--json", "[1]"], "an object is expected", id="a list of arguments"),
    pytest.param(["--json", "{"], "that is not JSON", id="half an object"),
    pytest.param(["--json", '{"x": NaN}'], "that is not JSON", id="JSON with NaN"),
    pytest.param(["--timeout", "0"], "above 0", id="no time"),
    pytest.param(["--timeout", "nan"], "above 0", id="a time that is none"),
    pytest.param(["--token-file", "/nowhere/token"], "cannot be read", id="no token file"),
    pytest.param(["-o", "/nowhere/x.jpg"], "nothing was sent", id="no folder for the screenshot"),
    pytest.param(["-o", "/"], "nothing was sent", id="a folder for a file"),
])  # fmt: skip
def test_wrong_usage_ends_in_two_and_nothing_is_called(
    peer: Peer, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["call", peer.url, "echo", *words]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert "tools/call" not in peer.methods


@pytest.mark.parametrize("content", [
    pytest.param(b"one\ntwo\n", id="two lines"),
    pytest.param(b"\n", id="nothing"),
    pytest.param(b"schl\xc3\xbcssel", id="letters that no header carries"),
])  # fmt: skip
def test_a_token_file_that_holds_no_token(
    peer: Peer, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token").write_bytes(content)
    os.mkfifo(tmp_path / "fifo")
    for name, said in (("token", "must hold one line"), ("fifo", "is a FIFO")):
        assert main(["tools", peer.url, "--token-file", str(tmp_path / name)]) == 2
        assert said in capsys.readouterr().err
    assert not peer.methods


def test_a_tool_that_is_not_named_is_all_that_is_missing(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["call", peer.url])
    assert capsys.readouterr().err.endswith("the following arguments are required: TOOL\n")


def test_a_url_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "192.168.42.1"]) == 2
    assert "http://192.168.42.1:8080/mcp" in capsys.readouterr().err


def test_a_file_that_turns_out_not_to_be_writable_is_named(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", peer.url, "screenshot", "-o", "/dev/full"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("schema", [None, {}, {"properties": 1}, {"properties": {"x": 1}}, {"properties": {"x": {}}}])
def test_without_a_usable_schema_all_is_text(schema: object) -> None:
    assert tool_arguments.typed({"x": "1"}, {"name": "t", "inputSchema": schema}) == {"x": "1"}


def test_numbers_stay_whole_where_they_are() -> None:
    tool = {"inputSchema": {"properties": {"x": {"type": "number"}}}}
    assert repr(tool_arguments.typed({"x": "12"}, tool)["x"]) == "12"
    with pytest.raises(ConfigError):
        tool_arguments.typed({"x": "1" * 5000 + "x"}, tool)
