"""Pictures as the Agent sends them: base64 that is carried over to the client, never decoded."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Mapping

from mcpboard.protocol.tools import Image

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
    """The picture in `data`, base64 text with or without `data:` prefix and line breaks; None when it is none.

    The result's `data` is pure base64 and its label follows from the bytes.
    """
    if not isinstance(data, str):
        return None
    cleaned = _cleaned(data)
    mime = _label(cleaned) if _is_base64(cleaned) else None
    return Image(cleaned, mime) if mime else None


def byte_size(image: Image) -> int:
    """Bytes of the picture itself, known from its base64 without decoding it."""
    return len(image.data) // 4 * 3 - image.data.count("=", -2)


def _cleaned(data: str) -> str:
    if data[:5].lower() == "data:":
        data = data.partition(",")[2]
    return "".join(data.split()) if "\n" in data or "\r" in data else data


def _is_base64(data: str) -> bool:
    """True for whole groups of four, padded at the end alone; nothing of the text is copied."""
    padding = data.count("=", -2)
    well_cut = len(data) % 4 == 0 and data.find("=", 0, len(data) - padding) < 0
    return well_cut and data.isascii() and not any(map(data.__contains__, _FOREIGN))


def _label(data: str) -> str | None:
    head = a2b_base64(data[:_HEAD])
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in MAGIC.items() if head.startswith(magic)), None)
