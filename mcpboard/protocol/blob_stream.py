"""Take the long base64 strings out of a JSON response while it arrives in pieces."""

# A support bundle is one string of tens of megabytes. Parsed with the rest it would be held three
# times; here it is decoded as it comes and held once, as bytes, and the JSON text keeps a placeholder.

from __future__ import annotations

import base64
import re

from mcpboard.errors import PeerBroken
from mcpboard.protocol.limits import ANSWER_LIMIT, BLOB_LIMIT

SHORT = 64 << 10  # characters; a shorter string stays in the text, where the parser reads it

# Quotes inside a JSON string are escaped, so this can only be a member's name and the start of its
# value. The look-behind spares a name that merely ends so.
_OPENING = re.compile(rb'(?<!\\)"blob"[ \t\r\n]{0,4}:[ \t\r\n]{0,4}"')
_LONGEST_OPENING = 16  # bytes; what matches may lie across two pieces


def placeholder(number: int) -> str:
    """Return what stands in the text for the blob of that number; `#` is no base64, so nothing else reads so."""
    return f"#{number}"


class BlobStream:
    """Takes pieces of JSON text, at most 64 KiB each; gives the text with placeholders, and the blobs as bytes.

    Raises PeerBroken where a limit is passed or a blob is not base64.
    """

    def __init__(self, text_limit: int = ANSWER_LIMIT, blob_limit: int = BLOB_LIMIT) -> None:
        self.blobs: list[bytearray] = []
        self._text = bytearray()
        self._searched = 0  # bytes of the text that hold no opening which still matters
        self._carry: bytes | None = None  # base64 short of a group of four; None outside a blob
        self._text_limit = text_limit
        self._blob_room = blob_limit

    @property
    def text(self) -> bytes:
        """The JSON text so far."""
        return bytes(self._text)

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the response."""
        if self._carry is None:
            self._read(piece)
        else:
            self._decode(self._carry, piece)

    def _read(self, piece: bytes) -> None:
        self._text += piece
        if len(self._text) > self._text_limit:
            raise PeerBroken(f"the answer is over the limit of {self._text_limit} bytes")
        while match := _OPENING.search(self._text, self._searched):
            start, end = match.end(), self._text.find(b'"', match.end())
            if (len(self._text) if end < 0 else end) - start >= SHORT:
                beginning = bytes(self._text[start:])
                self._text[start:] = placeholder(len(self.blobs)).encode("ascii")
                self._searched = len(self._text)
                self.blobs.append(bytearray())
                self._decode(b"", beginning)
                return
            if end < 0:
                return  # not over yet, so it may still turn out to be a long one
            self._searched = start
        self._searched = max(self._searched, len(self._text) - _LONGEST_OPENING)

    def _decode(self, carry: bytes, piece: bytes) -> None:
        string, quote, rest = piece.partition(b'"')
        groups = carry + string.replace(b"\\", b"")  # some encoders escape the slash
        whole = len(groups) if quote else len(groups) - len(groups) % 4
        try:
            decoded = base64.b64decode(groups[:whole], validate=True)
        except ValueError as error:
            raise PeerBroken("the answer holds a file that is not base64") from error
        self._blob_room -= len(decoded)
        if self._blob_room < 0:
            raise PeerBroken("the file in the answer is over the limit for one answer")
        self.blobs[-1] += decoded
        if quote:
            self._carry = None
            self._read(quote + rest)
        else:
            self._carry = groups[whole:]
