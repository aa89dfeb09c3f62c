"""Tool results as JSON text in parts, so that no picture is ever escaped and no bundle ever held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ToolError
from mcpboard.protocol.jsonrpc import Id, result_head
from mcpboard.protocol.tools import Content, Part, Text, compact

# What a model has to know after an action that failed (decision 8).
ADVICE: Mapping[str, str] = {
    NOT_SENT: "Nothing of this call reached the phone; it can be called again.",
    DONE: "The action took place; do not repeat it.",
    UNKNOWN: "Whether it took place is not known; look at the screen before you repeat it.",
}


def error_content(error: ToolError, acts: bool) -> Content:
    """The result that tells a model what went wrong; for a tool that `acts` also what became of it."""
    if not acts:
        return Content((Text(error.text),), error.structured or None, is_error=True)
    told = Text(f"{error.text}\n{ADVICE[error.delivery]}")
    return Content((told,), {**error.structured, "delivery": error.delivery}, is_error=True)


def result_parts(request_id: Id, content: Content, fixed: bytes) -> tuple[Part, ...]:
    """A whole JSON-RPC answer around `content`; `fixed` is the run of members that never vary."""
    return tuple(_run(request_id, content, fixed))


def _run(request_id: Id, content: Content, fixed: bytes) -> Iterable[Part]:
    yield result_head(request_id) + b'{"content":['
    for number, block in enumerate(content.blocks):
        if number:
            yield b","
        yield from block.parts()
    yield b"],"
    if content.structured is not None:
        yield b'"structuredContent":' + compact(content.structured) + b","
    if content.is_error:
        yield b'"isError":true,'
    yield fixed + b"}}"
