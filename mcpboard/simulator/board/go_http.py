"""HTTP responses as the board's server, which is written in Go, sends them."""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import formatdate
from http.client import responses
from typing import Any

BUFFERED = 2048  # bytes; a reply that fits in Go's buffer gets a Content-Length, a longer one is chunked
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
CHUNKED = ("Transfer-Encoding", "chunked")
BOARD_ZONE = timezone(timedelta(hours=8))
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True)
class GoReply:
    """One HTTP response. `length` is sent as Content-Length; None lets the size decide between it and chunks."""

    status: int
    body: bytes | Iterable[bytes] = b""
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    length: int | None = None
    framing: str | None = None  # "chunked" or "length" against Go's own choice
    keep: int | None = None  # bytes of the body after which the connection is cut
    bytes_per_second: float | None = None


def go_json(value: Any) -> str:
    """Return JSON as Go's encoder writes it: compact, UTF-8, with the three HTML characters escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return re.sub("[<>&\u2028\u2029]", lambda match: _ESCAPES[match[0]], _scalar(text))


def _scalar(text: str) -> str:
    """Replace lone surrogates, which Go strings cannot hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def json_reply(value: Any, status: int = 200, content_type: str = JSON) -> GoReply:
    return GoReply(status, (go_json(value) + "\n").encode(), content_type)


def text_error(status: int, message: str) -> GoReply:
    """Return what Go's `http.Error` sends: the message, a newline, and a word against sniffing."""
    return GoReply(status, _scalar(message + "\n").encode(), headers=(("X-Content-Type-Options", "nosniff"),))


def timestamp(seconds: float) -> str:
    """Return RFC 3339 in the board's zone, nine digits of fraction."""
    whole_seconds = int(seconds)
    stamp = datetime.fromtimestamp(whole_seconds, BOARD_ZONE)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{int((seconds - whole_seconds) * 1e9):09d}+08:00"


def whole(reply: GoReply) -> bytes:
    """Return the body in one piece."""
    return reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)


NOT_FOUND = text_error(404, "404 page not found")


def frame(reply: GoReply) -> tuple[str, str]:
    """Return the header that tells where the body ends, chosen as Go does."""
    length = reply.length
    if length is None and isinstance(reply.body, bytes):
        chosen = reply.framing or ("length" if len(reply.body) <= BUFFERED else "chunked")
        length = len(reply.body) if chosen == "length" else None
    return CHUNKED if length is None else ("Content-Length", str(length))


def head(reply: GoReply, framing: tuple[str, str], *, closes: bool) -> bytes:
    """Return status line and headers, without a `Server` header, as the board's server has none."""
    lines = [f"HTTP/1.1 {reply.status} {responses.get(reply.status, 'Unknown')}"]
    headers = [("Content-Type", reply.content_type), *reply.headers, ("Date", formatdate(usegmt=True)), framing]
    headers += [("Connection", "close")] if closes else []
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def pieces(reply: GoReply) -> Iterator[bytes]:
    """Yield the body in the pieces it is written in: whole when it is, in tenths of a second when it drips.

    After `keep` bytes there is no more.
    """
    blocks = [reply.body] if isinstance(reply.body, bytes) else reply.body
    step = None if reply.bytes_per_second is None else max(1, int(reply.bytes_per_second / 10))
    left = reply.keep
    for block in blocks:
        for piece in (block[at : at + step] for at in range(0, len(block), step)) if step else (block,):
            yield piece if left is None else piece[:left]
            if left is not None:
                left -= len(piece)
                if left <= 0:
                    return


def reset(connection: socket.socket) -> None:
    """Close with an RST instead of a FIN, which tells the peer that what it sent may be lost."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
