"""From an answer of the backend to content, or to the ToolError that says what went wrong.

The Agent answers HTTP 200 for success and failure alike, with JSON in a string in JSON, and some
failures look like successes; all of that is undone here, once. Every reader takes a whole answer
and either returns content or raises ToolError, never anything else. (contracts: agent-api,
decisions 3-6, 8 and 18, facts 1.4, 1.5 and 2)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from mcpboard.board.pictures import byte_size, image_of
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
from mcpboard.protocol.tools import Content, Image, Text
from mcpboard.text import one_line

if TYPE_CHECKING:
    from mcpboard.board.arrival import BackendResponse

FOREIGN_LIMIT = 500  # characters of a foreign body that an error repeats (decision 18)
TEXT_LIMIT = 256 * 1024  # bytes of shell output, as UTF-8, that a reply carries (decision 4)
_HINT = 40  # characters of something that should have been a picture: enough to recognise a page


# HTTP status -> error and cure. With these the backend says that it did not begin (facts 1.5).
TURNED_DOWN: Mapping[int, tuple[type[ToolError], str]] = {
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


def status(answer: BackendResponse) -> Content:
    """The JSON object of a plain GET, as text and as structured content."""
    found = _object(answer)
    _refuse_failure(found)
    return _plain(found)


def picture(answer: BackendResponse) -> Content:
    """A screenshot and its caption; an observation without a picture is an error."""
    found = _output(answer)
    image = _image(found)
    if image is None:
        raise BackendBroken(f"{_no_picture(found)}. The board said: {one_line(_told(found), FOREIGN_LIMIT)}")
    return _pictured(image, found)


def aftermath(answer: BackendResponse) -> Content:
    """What an action came to, and the screen after it; still a success when only the picture is missing."""
    return _after(_output(answer))


def output(answer: BackendResponse) -> Content:
    """What a tool says to which only newer boards add a picture: its JSON or text, or its aftermath."""
    found = _output(answer)
    wrapped = isinstance(found, dict) and found.keys() & {"data", "action_output"}
    return _after(found) if wrapped else _plain(found)


def shell(answer: BackendResponse) -> Content:
    """Output of a command as it is; the words `ok` and `error:` in it mean nothing."""
    reply = _object(answer)
    if _failed(reply):
        refusal = _refusal(reply)
        # A command that ended with a status has run, which is more than the code says.
        if refusal.text.lower().startswith("error: exit status"):
            refusal.delivery = DONE
        raise refusal
    return Content((Text(_capped(_output_text(answer, reply))),))


def turned_down(answer: BackendResponse) -> NoReturn:
    """For an answer that is not what was asked for: always raises the ToolError that fits it."""
    kind, cure = TURNED_DOWN.get(answer.status, (None, ""))
    # Four bytes are the longest character of UTF-8, so this much always holds what is quoted.
    quote = one_line(answer.body[: 4 * FOREIGN_LIMIT].decode("utf-8", "replace"), FOREIGN_LIMIT) or "(nothing)"
    if kind:
        raise kind(f"{cure}. It answered HTTP {answer.status}: {quote}", delivery=NOT_SENT)
    raise BackendBroken(
        f"The board gave an answer that makes no sense here: HTTP {answer.status}, "
        f"{answer.content_type or 'no content type'}: {quote}"
    )


def _plain(found: object) -> Content:
    return Content((Text(_as_text(found)),), structured=found if isinstance(found, dict) else None)


def _image(found: object) -> Image | None:
    return image_of(found.get("data")) if isinstance(found, dict) else None


def _after(found: object) -> Content:
    image = _image(found)
    if image:
        return _pictured(image, found)
    advice = "the action is done, do not repeat it; call screenshot to see the screen"
    return Content((Text(f"{_told(found)}\n{_no_picture(found)}: {advice}."),))


def _pictured(image: Image, found: Any) -> Content:
    """Picture, then caption, and nothing structured: one client would drop the picture for it."""
    size = f"{byte_size(image)} bytes, {image.mime}"
    width, height = found.get("width"), found.get("height")
    if isinstance(width, int) and isinstance(height, int):
        size = f"{width}x{height} pixels, {size}"
    return Content((image, Text(f"{size}\n{_told(found)}")))


def _no_picture(found: object) -> str:
    data = found.get("data") if isinstance(found, dict) else None
    if not data:
        return "The picture is missing"
    return f"The picture is missing (no JPEG, PNG, WebP or GIF in base64, it begins {data!r:.{_HINT}})"


def _told(found: object) -> str:
    """What a tool put out, as text; never the base64 of a picture."""
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if key != "data"}
    return _as_text(found)


def _as_text(found: object) -> str:
    """Text as it is, all else as compact JSON in which a model can read every script."""
    return found if isinstance(found, str) else _encoder.encode(found)


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _failed(reply: Mapping[str, Any]) -> bool:
    return reply.get("is_error") not in (None, False)


def _refusal(reply: Mapping[str, Any]) -> ToolRefused:
    """The error for a reply with `is_error`: every word the Agent said, each once, and its code."""
    error = reply.get("tool_error")
    error = error if isinstance(error, dict) else {}  # older Agents have none
    said = (error.get("message"), reply.get("output"), reply.get("error"))
    words = dict.fromkeys(_told(_parsed(text)) for text in said if isinstance(text, str) and text)
    code = {key: error[key] for key in ("code", "category") if isinstance(error.get(key), str)}
    lines = [_capped("\n".join(words) or "The board says that the tool failed, and gives no reason")]
    if code:
        lines.append(", ".join(f"{key}: {value}" for key, value in code.items()))
    if error.get("details"):
        lines.append(f"details: {_capped(_as_text(error['details']))}")
    return ToolRefused("\n".join(lines), delivery=_delivery(error), structured=code)


def _delivery(error: Mapping[str, Any]) -> str:
    details = error.get("details")
    if isinstance(details, dict) and details.get("action_completed") is True:
        return DONE
    return NOT_SENT if str(error.get("code")) in NOTHING_MOVED else UNKNOWN


def _refuse_failure(found: object) -> None:
    """Raise ToolRefused for a failure that came dressed as a success."""
    inner = found.get("action_output") if isinstance(found, dict) else None
    if any(_admits_failure(said) for said in (found, inner)):
        raise ToolRefused(f"The board says that it did not work: {_told(found)}")


def _admits_failure(said: object) -> bool:
    if isinstance(said, dict):
        return said.get("ok") is False
    return isinstance(said, str) and said.lstrip()[:6].lower() == "error:"


def _output(answer: BackendResponse) -> object:
    """What a tool that did not fail put out: JSON unfolded, also inside `action_output`, or its text."""
    reply = _object(answer)
    if _failed(reply):
        raise _refusal(reply)
    found = _parsed(_output_text(answer, reply))
    if isinstance(found, dict) and isinstance(found.get("action_output"), str):
        found["action_output"] = _parsed(found["action_output"])
    _refuse_failure(found)
    return found


def _output_text(answer: BackendResponse, reply: Mapping[str, Any]) -> str:
    text = reply.get("output")
    if not isinstance(text, str):
        turned_down(answer)
    return text


def _object(answer: BackendResponse) -> dict[str, Any]:
    """The JSON object that a good answer is; everything else is turned down."""
    try:
        found = finite_json(answer.body) if answer.status == 200 else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        turned_down(answer)
    return found


def _parsed(text: str) -> object:
    try:
        return finite_json(text)
    except (ValueError, RecursionError):
        return text


def finite_json(document: str | bytes) -> object:
    """The value of a JSON document; ValueError also for NaN and infinity, which could not be sent on."""
    if isinstance(document, bytes):
        document = document.decode(json.detect_encoding(document))
    return _decoder.decode(document)


def _finite(spelling: str) -> float:
    number = float(spelling)
    if not math.isfinite(number):
        raise ValueError(f"{spelling} is not a finite number")
    return number


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _capped(text: str) -> str:
    """`text`, or its beginning with a note when it is over the limit; cut between characters."""
    whole = text.encode("utf-8", "replace")
    if len(whole) <= TEXT_LIMIT:
        return text
    kept = whole[:TEXT_LIMIT].decode("utf-8", "ignore")
    return (
        f"{kept}\n[cut after {TEXT_LIMIT} of {len(whole)} bytes; "
        "write the output to a file and read it in parts to see the rest]"
    )
