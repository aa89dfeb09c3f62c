"""Write tool results as JSON text in parts, so that no image is ever escaped and no bundle ever held."""

from __future__ import annotations

from collections.abc import Mapping

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ToolError
from mcpboard.protocol.jsonrpc import Id, result_head
from mcpboard.protocol.tools import Content, Part, Text, compact

# What a model has to know after an action that failed, or it repeats a touch that took place.
ADVICE: Mapping[str, str] = {
    NOT_SENT: "Nothing of this call reached the phone; it can be called again.",
    DONE: "The action took place; do not repeat it.",
    UNKNOWN: "Whether it took place is not known; look at the screen before you repeat it.",
}


def error_content(error: ToolError, acts: bool) -> Content:
    """Return the result that tells a model what went wrong; for a tool that `acts` also what became of the action."""
    if not acts:
        return Content((Text(error.text),), error.structured or None, is_error=True)
    message = Text(f"{error.text}\n{ADVICE[error.delivery]}")
    return Content((message,), {**error.structured, "delivery": error.delivery}, is_error=True)


def result_parts(request_id: Id, content: Content, fixed: bytes) -> tuple[Part, ...]:
    """Return the whole JSON-RPC message around `content`; `fixed` is the run of members that never vary."""
    parts: list[Part] = [result_head(request_id) + b'{"content":[']
    for number, block in enumerate(content.blocks):
        if number:
            parts.append(b",")
        parts += block.parts()
    parts.append(b"],")
    if content.structured is not None:
        parts.append(b'"structuredContent":' + compact(content.structured) + b",")
    if content.is_error:
        parts.append(b'"isError":true,')
    parts.append(fixed + b"}}")
    return tuple(parts)
