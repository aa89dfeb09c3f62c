"""From a response of the backend to content, or to the ToolError that says what went wrong."""

# The Agent answers HTTP 200 for success and failure alike, with JSON in a string in JSON, and some
# failures look like successes; all of that is undone here, once. Every reader takes a whole response
# and either returns content or raises ToolError, never anything else. `docs/agent-api.md` has the table.

from __future__ import annotations

import contextlib
import json
import math
from binascii import a2b_base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, BackendBroken, BackendUnreachable, NotOffered, ToolRefused
from mcpboard.protocol.limits import CONTAINERS_LIMIT, OUTPUT_LIMIT, QUOTE_LIMIT, QUOTED_BYTES, VALUES_LIMIT
from mcpboard.protocol.tools import Content, Image, Text
from mcpboard.text import may_hold_base64, one_line, read_json, well_formed, without_base64

if TYPE_CHECKING:
    from mcpboard.board.backend import BackendResponse

_HINT = 40  # characters of something that should have been an image: enough to recognize a page

# HTTP status -> error and remedy. With these the backend says that it did not begin.
REJECTIONS = {
    400: (ToolRefused, "The board did not understand the request; check the arguments"),
    404: (NotOffered, "This board does not offer the tool; do without it"),
    405: (ToolRefused, "The board does not take the tool this way; its software may be of another version"),
    503: (BackendUnreachable, "The board's software is shutting down; try again in some seconds"),
}

# Codes with which the Agent refuses before anything moves. All others, and codes not known here,
# may come in the middle of an action (`subtool_failed`) or after it (`bridge_timeout`).
NOTHING_MOVED = frozenset(
    {
        *("invalid_arguments", "tool_not_found", "unknown_app", "quick_action_unknown", "app_no_launch_target"),
        *("bridge_not_connected", "app_not_installed", "module_unavailable"),
        *("permission_denied", "app_backgrounded"),
        *("quick_action_reserved", "quick_action_unsupported_platform", "wheel_gesture_limit"),
    }
)


def status(response: BackendResponse) -> Content:
    """Return the JSON object of a plain GET, as text and as structured content."""
    reply = _object(response)
    _refuse_failure(reply)
    return _plain(reply)


def screenshot(response: BackendResponse) -> Content:
    """Return a screenshot and its caption; an observation without an image is an error."""
    output = _output(response)
    image = _image(output)
    if image is None:
        raise BackendBroken(f"{_why_no_image(output)}. The board said: {one_line(_caption(output), QUOTE_LIMIT)}")
    return _with_image(image, output)


def action(response: BackendResponse) -> Content:
    """Return the result of an action and the screen after it; a success also when only the image is missing."""
    return _action_content(_output(response))


def output(response: BackendResponse) -> Content:
    """Return the JSON or text of a tool to which only newer boards add a screenshot, with it where it is."""
    found = _output(response)
    wrapped = isinstance(found, dict) and found.keys() & {"data", "action_output"}
    return _action_content(found) if wrapped else _plain(found)


def shell(response: BackendResponse) -> Content:
    """Return the output of a command as it is; the words `ok` and `error:` in it mean nothing."""
    reply = _object(response)
    if _failed(reply):
        refusal = _refusal(reply)
        # A command that ended with a status has run, which is more than the code says.
        if refusal.text.lower().startswith("error: exit status"):
            refusal.delivery = DONE
        raise refusal
    return Content((Text(_capped(_output_text(response, reply))),))


def reject(response: BackendResponse) -> NoReturn:
    """Raise the ToolError that fits a response which is not what was asked for."""
    error_type, remedy = REJECTIONS.get(response.status, (None, ""))
    beginning = response.body[:QUOTED_BYTES].decode("utf-8", "replace")
    quote = one_line(without_base64(beginning, is_whole=False), QUOTE_LIMIT) or "(nothing)"
    if error_type:
        raise error_type(f"{remedy}. It answered HTTP {response.status}: {quote}", delivery=NOT_SENT)
    raise BackendBroken(
        f"The board gave an answer that makes no sense here: HTTP {response.status}, "
        f"{response.content_type or 'no content type'}: {quote}"
    )


# --- the Agent's envelope --------------------------------------------------------------------


def _object(response: BackendResponse) -> dict[str, Any]:
    """Return the JSON object that a good response is; everything else is rejected."""
    found: object = None
    if response.status == 200:
        with contextlib.suppress(ValueError):
            # Not by `finite_json`, whose own name for the body would keep it while its text is parsed.
            found = read_json(response.take_body(), _decoder, containers=CONTAINERS_LIMIT, values=VALUES_LIMIT)
    if not isinstance(found, dict):
        reject(response)
    return found


def _output(response: BackendResponse) -> object:
    """Return the output of a tool that did not fail: JSON unfolded, also inside `action_output`, or its text."""
    reply = _object(response)
    if _failed(reply):
        raise _refusal(reply)
    found = _parsed(_output_text(response, reply))
    if isinstance(found, dict) and isinstance(found.get("action_output"), str):
        found["action_output"] = _parsed(found["action_output"])
    _refuse_failure(found)
    return found


def _output_text(response: BackendResponse, reply: Mapping[str, Any]) -> str:
    text = reply.get("output")
    if not isinstance(text, str):
        reject(response)
    return text


def _failed(reply: Mapping[str, Any]) -> bool:
    return reply.get("is_error") not in (None, False)


def _refusal(reply: Mapping[str, Any]) -> ToolRefused:
    """Return the error for a reply with `is_error`: every word the Agent said, each once, and its code."""
    error = reply.get("tool_error")
    error = error if isinstance(error, dict) else {}  # older Agents have none
    texts = (error.get("message"), reply.get("output"), reply.get("error"))
    messages = dict.fromkeys(_caption(_parsed(text)) for text in texts if isinstance(text, str) and text)
    code = {key: without_base64(error[key]) for key in ("code", "category") if isinstance(error.get(key), str)}
    details = error.get("details")
    lines = [_capped("\n".join(messages) or "The board says that the tool failed, and gives no reason")]
    if code:
        lines.append(", ".join(f"{key}: {value}" for key, value in code.items()))
    if details:
        lines.append(f"details: {_capped(_as_text(_without_base64(details)))}")
    if isinstance(details, dict) and details.get("action_completed") is True:
        delivery = DONE
    else:
        delivery = NOT_SENT if str(error.get("code")) in NOTHING_MOVED else UNKNOWN
    return ToolRefused("\n".join(lines), delivery=delivery, structured=code)


def _refuse_failure(output: object) -> None:
    """Raise ToolRefused for a failure that came dressed as a success."""
    inner = output.get("action_output") if isinstance(output, dict) else None
    for value in (output, inner):
        says_error = isinstance(value, str) and value.lstrip()[:6].lower() == "error:"
        if says_error or (isinstance(value, dict) and value.get("ok") is False):
            raise ToolRefused(f"The board says that it did not work: {_caption(output)}")


# --- output as content -----------------------------------------------------------------------


def _plain(output: object) -> Content:
    text = _as_text(output)
    if not may_hold_base64(text):  # as nearly always
        return Content((Text(text),), structured=output if isinstance(output, dict) else None)
    shown = _without_base64(output)
    if isinstance(output, dict) and "text" in output:
        shown["text"] = output["text"]  # of the clipboard: what a person copied, a certificate perhaps
    return Content((Text(_as_text(shown)),), structured=shown if isinstance(shown, dict) else None)


def _action_content(output: object) -> Content:
    image = _image(output)
    if image:
        return _with_image(image, output)
    advice = "the action is done, do not repeat it; call screenshot to see the screen"
    return Content((Text(f"{_caption(output)}\n{_why_no_image(output)}: {advice}."),))


def _with_image(image: Image, output: Any) -> Content:
    """Return image, then caption, and nothing structured: one client would drop the image for it."""
    size = f"{byte_size(image)} bytes, {image.mime}"
    width, height = output.get("width"), output.get("height")
    if isinstance(width, int) and isinstance(height, int):
        size = f"{width}x{height} pixels, {size}"
    return Content((image, Text(f"{size}\n{_caption(output)}")))


def _image(output: object) -> Image | None:
    return image_of(output.get("data")) if isinstance(output, dict) else None


def _why_no_image(output: object) -> str:
    data = output.get("data") if isinstance(output, dict) else None
    if not data:
        return "The screenshot is missing"
    return f"The screenshot is missing (no JPEG, PNG, WebP or GIF in base64, it begins {data!r:.{_HINT}})"


def _caption(output: object) -> str:
    """Return the output of a tool as text; never the base64 of an image."""
    if isinstance(output, dict):
        output = {key: value for key, value in output.items() if key != "data"}
    return _as_text(_without_base64(output))


def _without_base64(value: Any) -> Any:
    """Return JSON of at most 64 levels with a note in place of every picture or file: a step may have brought one."""
    if isinstance(value, str):
        return without_base64(value)
    if isinstance(value, dict):
        return {key: _without_base64(part) for key, part in value.items()}
    return [_without_base64(part) for part in value] if isinstance(value, list) else value


def _as_text(output: object) -> str:
    """Return text as it is, all else as compact JSON in which a model can read every script."""
    return output if isinstance(output, str) else _encoder.encode(output)


def _capped(text: str) -> str:
    """Return `text`, or its beginning with a note when it is over the limit; cut between characters."""
    whole = well_formed(text).encode("utf-8")
    if len(whole) <= OUTPUT_LIMIT:
        return text
    kept = whole[:OUTPUT_LIMIT].decode("utf-8", "ignore")
    return (
        f"{kept}\n[cut after {OUTPUT_LIMIT} of {len(whole)} bytes; "
        "write the output to a file and read it in parts to see the rest]"
    )


# --- JSON ------------------------------------------------------------------------------------


def _parsed(text: str) -> object:
    try:
        return finite_json(text)
    except ValueError:
        return text


def finite_json(document: str | bytes) -> object:
    """Return the value of a JSON document, at most 64 levels deep and of 10,000 lists and objects.

    ValueError for anything else, also for NaN and infinity, which could not be sent on.
    """
    return read_json(document, _decoder, containers=CONTAINERS_LIMIT, values=VALUES_LIMIT)


def _finite(spelling: str) -> float:
    number = float(spelling)
    if not math.isfinite(number):
        raise ValueError(f"{spelling} is not a finite number")
    return number


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


# --- images: base64 that is carried over to the client, never decoded ------------------------

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
# Every other ASCII character. The C library finds one in a long text so fast that looking for all
# of them takes a quarter of what walking the text once would.
_FOREIGN = tuple(character for character in map(chr, range(128)) if character not in _ALPHABET)
_HEAD = 16  # base64 characters, 12 bytes: as far as the longest magic reaches

# First bytes -> label. What the sender says of the format is not asked: a wrong label makes some
# providers refuse the whole conversation.
MAGIC: Mapping[bytes, str] = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image_of(data: object) -> Image | None:
    """Return the image in `data`, base64 text with or without `data:` prefix and line breaks; None for all else.

    The result's `data` is pure base64 and its label follows from the bytes.
    """
    if not isinstance(data, str):
        return None
    if data[:5].lower() == "data:":
        data = data.partition(",")[2]
    if "\n" in data or "\r" in data:
        data = "".join(data.split())
    # Whole groups of four, padded only at the end; nothing of the text is copied.
    padding = data.count("=", -2)
    well_cut = len(data) % 4 == 0 and data.find("=", 0, len(data) - padding) < 0
    if not (well_cut and data.isascii()) or any(map(data.__contains__, _FOREIGN)):
        return None
    head = a2b_base64(data[:_HEAD])
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Image(data, "image/webp")
    label = next((label for magic, label in MAGIC.items() if head.startswith(magic)), None)
    return Image(data, label) if label else None


def byte_size(image: Image) -> int:
    """Return the bytes of the image itself, known from its base64 without decoding it."""
    return len(image.data) // 4 * 3 - image.data.count("=", -2)
