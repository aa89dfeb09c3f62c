"""Answers of the Agent and of Config Web, as they are and as they should not be, against what a client gets."""

from __future__ import annotations

import base64
import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from mcpboard.board import readers
from mcpboard.board.backend import BackendResponse
from mcpboard.board.tools import ROWS
from mcpboard.errors import (
    DONE,
    NOT_SENT,
    UNKNOWN,
    BackendBroken,
    BackendUnreachable,
    NotOffered,
    ToolError,
    ToolRefused,
)
from mcpboard.protocol.limits import OUTPUT_LIMIT, QUOTE_LIMIT
from mcpboard.protocol.tools import Content, Image, Text, compact

Reader = Callable[[Any], Content]

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01 not quite a picture"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR and so on"
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 and so on"
GIF = b"GIF89a\x01\x00\x01\x00 and so on"


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def shot(raw: bytes = JPEG, **more: Any) -> dict[str, Any]:
    return {"width": 498, "height": 1080, "format": "jpeg", "size": len(raw), "data": b64(raw), **more}


def reply(output: Any, **more: Any) -> BackendResponse:
    """A 200 of the Agent; an `output` that is no text becomes JSON in it, as the Agent does."""
    text = output if isinstance(output, str) else json.dumps(output)
    return sent({"tool": {"name": "x"}, "raw_input": "{}", "output": text, "is_error": False, **more})


def failure(message: str, code: str, category: str = "internal", **details: Any) -> BackendResponse:
    error = {"category": category, "code": code, "message": message} | ({"details": details} if details else {})
    return reply(message, is_error=True, error=message, tool_error=error)


def sent(value: Any) -> BackendResponse:
    return BackendResponse(200, "application/json", json.dumps(value).encode() + b"\n")


def image_and_text(content: Content) -> tuple[Image, str]:
    image, text = content.blocks
    assert isinstance(image, Image)
    assert isinstance(text, Text)
    return image, text.text


def only_text(content: Content) -> str:
    (block,) = content.blocks
    assert isinstance(block, Text)
    return block.text


def refusal_of(read: Reader, response: BackendResponse) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read(response)
    return caught.value


@pytest.mark.parametrize(("read", "output"), [
    pytest.param(readers.screenshot, shot(), id="a screenshot"),
    pytest.param(readers.screenshot, shot(ok=True, stable=False, screen_changed=False), id="a screen that never rests"),
    pytest.param(readers.action, shot(action_output="ok", screen_changed=False), id="a tap that changed nothing"),
    pytest.param(readers.action, shot(action_output='{"ok":true}'), id="text entered"),
    pytest.param(readers.output, shot(action_output='{"ok":true,"target":"Mail"}'), id="an app opened, newest board"),
])  # fmt: skip
def test_a_picture_comes_first_then_all_the_rest_as_short_text(read: Reader, output: dict[str, Any]) -> None:
    """JSON in the action_output is unfolded there."""
    content = read(reply(output))
    image, text = image_and_text(content)
    assert base64.b64decode(image.data) == JPEG
    assert content.structured is None
    assert not content.is_error
    caption, told = text.split("\n")
    assert caption == f"498x1080 pixels, {len(JPEG)} bytes, image/jpeg"
    action = output.get("action_output", "")
    unfolded = {"action_output": json.loads(action)} if action.startswith("{") else {}
    assert json.loads(told) == {key: value for key, value in output.items() if key != "data"} | unfolded


@pytest.mark.parametrize(("data", "raw", "mime"), [
    *((b64(raw), raw, mime) for raw, mime in ((JPEG, "image/jpeg"), (WEBP, "image/webp"), (GIF, "image/gif"), (GIF.replace(b"9", b"7"), "image/gif"))),
    *((b64(PNG[:size]), PNG[:size], "image/png") for size in (21, 22, 23)),  # with every padding
    ("data:image/jpeg;base64," + b64(PNG), PNG, "image/png"), ("DATA:;base64," + b64(PNG), PNG, "image/png"),
    ("\r\n".join([b64(PNG)[:20], b64(PNG)[20:], ""]), PNG, "image/png"),
])  # fmt: skip
def test_a_picture_is_unwrapped_labelled_and_measured_by_its_bytes(data: str, raw: bytes, mime: str) -> None:
    """Whatever the board says of the format, also where it says no size in pixels."""
    image, text = image_and_text(readers.screenshot(reply({"data": data, "format": "bmp", "width": "wide"})))
    assert image == Image(b64(raw), mime)
    assert text.startswith(f"{len(raw)} bytes, {mime}\n")


@pytest.mark.parametrize("data", [
    pytest.param(None, id="null"),
    pytest.param("", id="nothing"),
    pytest.param(7, id="a number"),
    pytest.param("<html><body>500</body></html>", id="a page"),
    pytest.param(b64(b"<html>an error page</html>"), id="a page in base64"),
    pytest.param(b64(PNG)[:-1], id="base64 cut short"),
    pytest.param(b64(PNG) + "====", id="too much padding"),
    pytest.param("=" + b64(PNG)[1:], id="padding at the front"),
    pytest.param(b64(PNG)[:20] + '"}' + b64(PNG)[22:], id="a quote in the middle"),
    pytest.param(b64(PNG)[:20] + "é" + b64(PNG)[21:], id="a letter beyond ASCII"),
    pytest.param(b64(PNG)[:20] + "-_" + b64(PNG)[22:], id="the alphabet for addresses"),
    pytest.param(b64(PNG)[:20] + "=" + b64(PNG)[21:], id="padding in the middle"),
    pytest.param("\ud83d" * 8, id="lone surrogates"),
    pytest.param("data:image/png;base64", id="a prefix alone"),
])  # fmt: skip
def test_what_is_no_picture_is_never_sent_as_one(data: Any) -> None:
    """An observation without one is an error; an action is still a success, and says so."""
    error = refusal_of(readers.screenshot, reply(shot() | {"data": data}))
    assert isinstance(error, BackendBroken)
    assert "screenshot is missing" in error.text
    assert len(error.text) < 1000
    content = readers.action(reply(shot(action_output="ok") | {"data": data}))
    assert not content.is_error
    for words in ('"action_output":"ok"', "screenshot is missing", "do not repeat"):
        assert words in only_text(content)


@pytest.mark.parametrize(("read", "value"), [
    pytest.param(readers.output, {"ok": True, "text": "a\r\nb\n"}, id="a clipboard with line ends"),
    pytest.param(readers.output, {"ok": True, "text": "error: only a text"}, id="a clipboard that talks of errors"),
    pytest.param(readers.output, {"ok": True, "text": "שלום 👩‍👧 \u0301"}, id="a clipboard beyond ASCII"),
    pytest.param(readers.output, {"ok": True, "text": "x" * (1 << 20)}, id="a clipboard of 1 MiB"),
    pytest.param(
        readers.output, {"ok": True, "target": "Mail", "steps": [], "vlm_calls": 2}, id="an app found by search"
    ),
    pytest.param(readers.status, {"connected": False, "data": "x"}, id="no phone"),
    pytest.param(readers.status, {"ok": True, "agent_status": {"startup_error": "error: x"}}, id="a sick Agent"),
])  # fmt: skip
def test_plain_json_is_told_as_text_and_structured_alike(read: Reader, value: dict[str, Any]) -> None:
    """And as a model can read it: no script is escaped."""
    content = read(reply(value) if read is readers.output else sent(value))
    assert only_text(content) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert content.structured == value


LARGE_JPEG = b64(JPEG + bytes(range(256)) * 390)
ARCHIVE = b64(b"\x1f\x8b" + bytes(range(256)) * 20)
PICTURE, FILE = "(JPEG, 99 kB, left out)", "(base64, 5 kB, left out)"
STEP = {"tool": "screenshot", "output": json.dumps(shot(JPEG) | {"data": LARGE_JPEG})}
NOTED = {"tool": "screenshot", "output": json.dumps(shot(JPEG) | {"data": PICTURE})}


@pytest.mark.parametrize(("given", "shown"), [
    ({"steps": [STEP]}, {"steps": [NOTED]}), ({"steps": [{"result": [STEP]}]}, {"steps": [{"result": [NOTED]}]}),
    ({"steps": [json.dumps(STEP)]}, {"steps": [json.dumps(NOTED)]}), ({"image": LARGE_JPEG}, {"image": PICTURE}),
    ({"image": "data:image/jpeg;base64," + LARGE_JPEG}, {"image": PICTURE}), ({"note": f"seen {LARGE_JPEG}, done"}, {"note": f"seen {PICTURE}, done"}),
    ({"image": "\n".join([LARGE_JPEG[:76], LARGE_JPEG[76:]])}, {"image": PICTURE}), ({"image": json.dumps(LARGE_JPEG).replace("/", "\\/")}, {"image": f'"{PICTURE}"'}),
    ({"log": ARCHIVE, "more": [ARCHIVE]}, {"log": FILE, "more": [FILE]}),
    *(({"image": b64(raw * 2)}, {"image": f"({name}, {len(raw) * 2} bytes, left out)"}) for name, raw in (("PNG", PNG), ("GIF", GIF), ("WebP", WEBP))),
    *(({"x": text},) * 2 for text in ("x" * 5000, "0123456789abcdef" * 400, "-" * 5000, "/data/app/" * 500, "word " * 2000, ARCHIVE[:4000])),
])  # fmt: skip
def test_base64_inside_a_result_is_never_text(given: dict[str, Any], shown: dict[str, Any]) -> None:
    """In the text, in structured content, beside a picture, in a failure and in the details of an error."""
    content = readers.output(reply({"ok": True, **given}))
    assert content.structured == {"ok": True, **shown} == json.loads(only_text(content))
    _, caption = image_and_text(readers.action(reply(shot(action_output=json.dumps(given)))))
    assert json.loads(caption.split("\n")[1])["action_output"] == shown
    written = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    assert readers.status(sent(given)).structured == shown
    for response in (reply({"ok": False, **given}), reply(shot(action_output=json.dumps({"ok": False, **given})))):
        assert written[1:] in refusal_of(readers.action, response).text
    error = refusal_of(readers.action, failure(json.dumps(given), "canceled", **given))
    assert error.text == f"{written}\ncode: canceled, category: internal\ndetails: {written}"


def test_a_clipboard_is_what_was_copied_and_a_senseless_answer_is_quoted_without_its_picture() -> None:
    content = readers.output(reply({"ok": True, "text": ARCHIVE}))
    assert content.structured == {"ok": True, "text": ARCHIVE}
    error = refusal_of(readers.status, BackendResponse(500, "text/plain", b"camera: " + LARGE_JPEG.encode()))
    assert error.text.endswith("camera: (JPEG, left out)")


def test_text_that_is_no_json_stays_text() -> None:
    content = readers.output(reply("opened NaN\n"))
    assert only_text(content) == "opened NaN\n"
    assert content.structured is None


@pytest.mark.parametrize(("read", "output"), [
    pytest.param(readers.action, shot(action_output='{"ok":false,"suggestion":"use focus"}'), id="text not entered"),
    pytest.param(readers.output, shot(action_output='{"ok":false,"reason":"not found"}'), id="an app not found, newest"),
    pytest.param(readers.output, {"ok": False, "target": "Mail", "reason": "not found"}, id="an app not found"),
    pytest.param(readers.output, "error: no model is configured", id="the old prefix"),
    pytest.param(readers.output, "Error: no model", id="the old prefix in capitals"),
    pytest.param(readers.action, shot(action_output="ERROR: hid"), id="the old prefix inside"),
    pytest.param(readers.screenshot, shot(ok=False), id="a screenshot that is not ok"),
    pytest.param(readers.status, {"ok": False, "error": "busy"}, id="a status that is not ok"),
])  # fmt: skip
def test_a_failure_dressed_as_success_is_an_error_with_every_word(read: Reader, output: Any) -> None:
    error = refusal_of(read, sent(output) if read is readers.status else reply(output))
    assert isinstance(error, ToolRefused)
    assert error.delivery == UNKNOWN
    assert b64(JPEG) not in error.text
    inner = output.get("action_output", "") if isinstance(output, dict) else output
    for word in (*inner.replace('"', " ").split(), *(["target"] if "target" in output else [])):
        assert word.strip("{}:,") in error.text


@pytest.mark.parametrize(("code", "details", "delivery"), [
    *((code, {}, NOT_SENT) for code in ("invalid_arguments", "module_unavailable", "app_backgrounded")),
    ("bridge_not_connected", {"fallback": "use touch_gesture"}, NOT_SENT),
    ("quick_action_reserved", {"action": "x"}, NOT_SENT),
    *((code, {}, UNKNOWN) for code in ("bridge_timeout", "deadline_exceeded", "canceled", "bridge_write_failed", "a_code_of_tomorrow")),
    ("subtool_failed", {"failed_step": 2}, UNKNOWN),
    ("tool_execution_failed", {}, UNKNOWN),
    ("tool_execution_failed", {"action_completed": False}, UNKNOWN),
    ("tool_execution_failed", {"action_completed": True}, DONE),  # only the picture failed
])  # fmt: skip
@pytest.mark.parametrize("read", [readers.action, readers.output, readers.shell])
def test_the_code_says_what_became_of_the_action(read: Reader, code: str, details: dict[str, Any], delivery: str) -> None:  # fmt: skip
    error = refusal_of(read, failure("it went wrong", code, "some_category", **details))
    assert isinstance(error, ToolRefused)
    assert error.delivery == delivery
    assert error.structured == {"code": code, "category": "some_category"}
    for word in ("it went wrong", code, "some_category", *map(str, details), *map(str, details.values())):
        assert word.lower() in error.text.lower()


@pytest.mark.parametrize(("message", "words"), [
    pytest.param("point is required for tap", "point is required for tap", id="a text"),
    pytest.param('{"ok": false, "suggestion": "tap the field first"}', "tap the field first", id="JSON"),
])  # fmt: skip
def test_each_word_of_a_refusal_is_said_once_and_no_detail_is_lost(message: str, words: str) -> None:
    error = refusal_of(readers.action, failure(message, "canceled", data="kept"))
    assert error.text.count(words) == 1
    assert "kept" in error.text


@pytest.mark.parametrize("read", [readers.screenshot, readers.action, readers.output, readers.shell])
@pytest.mark.parametrize(("value", "word"), [
    pytest.param({"output": "frame service: STALE_FRAME", "is_error": True}, "STALE_FRAME", id="output alone"),
    pytest.param({"output": "", "error": "hid: write failed", "is_error": True}, "hid", id="error alone"),
    pytest.param({"output": "a", "error": "b", "is_error": True, "tool_error": "c"}, "a\nb", id="two texts"),
    pytest.param({"is_error": True}, "no reason", id="no word at all"),
    pytest.param({"output": None, "is_error": True, "tool_error": {"code": 7}}, "no reason", id="a code that is none"),
    pytest.param({"output": "", "is_error": True, "tool_error": {"code": ["x"]}}, "no reason", id="a list of codes"),
])  # fmt: skip
def test_errors_of_older_boards_are_told(read: Reader, value: dict[str, Any], word: str) -> None:
    error = refusal_of(read, sent(value))
    assert isinstance(error, ToolRefused)
    assert error.delivery == UNKNOWN
    assert error.structured == {}
    assert word in error.text


@pytest.mark.parametrize("text", [
    "hello\n\n", "error: not ours", '{"ok":false}', '{\n  "session_id": "1"\n}', "", pytest.param("x" * OUTPUT_LIMIT, id="just as much as fits"),
])  # fmt: skip
def test_output_of_a_command_passes_as_it_is(text: str) -> None:
    content = readers.shell(reply(text))
    assert only_text(content) == text
    assert content.structured is None


@pytest.mark.parametrize("letter", ["x", "é", "👩"], ids=["one byte", "two bytes", "four bytes"])
def test_long_output_of_a_command_is_cut_between_letters_with_a_note(letter: str) -> None:
    text = only_text(readers.shell(reply("." + letter * OUTPUT_LIMIT)))
    kept, _, note = text.rpartition("\n")
    assert set(kept[1:]) == {letter}
    assert OUTPUT_LIMIT - 4 < len(kept.encode()) <= OUTPUT_LIMIT
    assert f"{1 + len(letter.encode()) * OUTPUT_LIMIT} bytes" in note


@pytest.mark.parametrize("output", ["no such file", "x" * OUTPUT_LIMIT], ids=["short", "long, and cut"])
def test_a_command_that_failed_has_run_and_shows_its_output(output: str) -> None:
    error = refusal_of(readers.shell, failure(f"Error: exit status 2\nStderr:\n{output}", "tool_execution_failed"))
    assert error.delivery == DONE
    assert output[:1000] in error.text
    assert "tool_execution_failed" in error.text
    assert len(error.text) < OUTPUT_LIMIT + 300


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.tool.name)
@pytest.mark.parametrize(("status", "body", "kind", "delivery"), [
    pytest.param(404, b"Unknown tool: enter_text\n", NotOffered, NOT_SENT, id="an unknown tool"),
    pytest.param(400, b"Invalid request: EOF\n", ToolRefused, NOT_SENT, id="a bad request"),
    pytest.param(405, b"Method not allowed\n", ToolRefused, NOT_SENT, id="the wrong method"),
    pytest.param(503, b"Server is shutting down\n", BackendUnreachable, NOT_SENT, id="shutting down"),
    pytest.param(302, b"", BackendBroken, UNKNOWN, id="a redirect"),
    pytest.param(401, b"who are you", BackendBroken, UNKNOWN, id="a question for a password"),
    pytest.param(500, b'{"ok":false,"error":"tar failed"}', BackendBroken, UNKNOWN, id="an error in JSON"),
    pytest.param(500, b"<html>" + b"x" * (1 << 20), BackendBroken, UNKNOWN, id="an error page of 1 MB"),
    (204, b"", BackendBroken, UNKNOWN),
    *((200, body, BackendBroken, UNKNOWN) for body in (b"<html>hello</html>", b"", b"[]", b'{"output":"ok"', b'{"output":"\xff"}')),
    *((200, b'{"output":"ok","x":%b}' % number, BackendBroken, UNKNOWN) for number in (b"NaN", b"1e999")),
    pytest.param(200, b"[" * 100_000, BackendBroken, UNKNOWN, id="nesting without end"),
])  # fmt: skip
def test_every_row_turns_senseless_answers_into_an_error_that_quotes_them(
    row: Any, status: int, body: bytes, kind: type[ToolError], delivery: str
) -> None:
    """Never a cheerful success, never an exception that is not ours, never a flood."""
    error = refusal_of(row.read, BackendResponse(status, "text/plain", body))
    assert type(error) is kind
    assert error.delivery == delivery
    assert str(status) in error.text
    assert body[:10].decode("utf-8", "replace").strip() in error.text
    assert len(error.text) < QUOTE_LIMIT + 200


@pytest.mark.parametrize("read", [readers.screenshot, readers.action, readers.output, readers.shell])
@pytest.mark.parametrize("value", [{}, {"output": {"ok": True}}, {"output": None}, {"output": 7, "is_error": False}])
def test_output_that_is_no_text_makes_no_sense(read: Reader, value: dict[str, Any]) -> None:
    error = refusal_of(read, sent(value))
    assert isinstance(error, BackendBroken)
    assert error.delivery == UNKNOWN


def test_a_quote_is_500_characters_of_whatever_width() -> None:
    error = refusal_of(readers.status, BackendResponse(500, "", ("👩" * 1000).encode()))
    assert error.text.count("👩") == QUOTE_LIMIT
    assert "\ufffd" not in error.text


@pytest.mark.parametrize("output", [
    "null", "7", "[]", '"text"', "{}", '{"action_output":null}', '{"action_output":{"ok":1}}', "1e999", "\ud83d",
])  # fmt: skip
@pytest.mark.parametrize("read", [readers.action, readers.output, readers.shell])
def test_odd_outputs_of_actions_that_worked_can_be_sent_on(read: Reader, output: str) -> None:
    content = read(reply(output))
    assert only_text(content)
    assert all(content.blocks[0].parts())
    assert compact(content.structured)


@pytest.mark.parametrize("brackets", [0, 100])
def test_a_picture_is_held_twice_at_the_most_while_it_is_read(brackets: int) -> None:
    """And once more for the moment in which many brackets are counted; Pythons before 3.11 keep the body as well."""
    data = b64(JPEG + bytes(1_000_000))
    body = json.dumps({"output": json.dumps({"data": data, "tree": [[]] * brackets}), "is_error": False}).encode()
    tracemalloc.start()
    try:
        response = BackendResponse(200, "application/json", memoryview(body).tobytes())
        content = readers.screenshot(response)
        parts = content.blocks[0].parts()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(parts[1]) == len(data)  # type: ignore[arg-type]
    most = 2 + bool(brackets) + (sys.version_info < (3, 11))
    assert peak / len(data) < most + 0.3  # a string with escapes is read into a buffer that grows
    assert len(response.body) == 2000


@pytest.mark.parametrize("value", ['"%06d":0', '"%09d":1.5', '"%06d":"%%d"'])
def test_an_answer_of_very_many_values_is_not_parsed(value: str) -> None:
    """350,000 names took 60 MB more than their text."""
    document = "{" + ",".join(value % number for number in range(100_001)) + "}"
    with pytest.raises(ValueError, match="more than 100000 values"):
        readers.finite_json(document)
