"""The support bundle: a real archive of an exact size that never stands whole in memory."""

from __future__ import annotations

import random
import struct
import tarfile
import zlib
from collections.abc import Iterator

FILES = {
    "langfuse.yaml": b"# simulated episode\nsteps:\n  - tool: screenshot\n",
    "agent.log": b'level=INFO msg="agent ready" addr=:8080\n',
}
LOG = "llm-http-20260518-123456.log"  # as long as the bundle is to be
SMALL = 10_000  # bytes of the bundle of a board that has little to tell; none is smaller
_STORED = 65535  # bytes in a deflate block that is not compressed, the most its length field can say
_FIXED = 10 + 2 + 8  # bytes of gzip header, length of its extra field, and trailer
_FILLER_BLOCK = 1 << 16  # bytes of noise, repeated


def sized(size: int) -> Iterator[bytes]:
    """Yield a valid gzip tar of exactly `size` bytes (SMALL at least), in blocks: flat files, mode 0644, no times.

    Nothing is compressed, so the size is arithmetic: the last log is filled up, the header's extra
    field takes what a tar's blocks of 512 leave over.
    """
    raw = (size - _FIXED) // 512 * 512  # the longest tar that fits beside five bytes for each deflate block
    while (extra := size - _FIXED - raw - 5 * -(-raw // _STORED)) < 0:
        raw -= 512
    yield b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff" + struct.pack("<H", extra) + bytes(extra)
    checksum, left, waiting = 0, raw, bytearray()
    for part in _tar(raw):
        waiting += part
        while len(waiting) >= _STORED or (waiting and len(waiting) == left):
            block = bytes(waiting[:_STORED])
            del waiting[:_STORED]
            checksum, left = zlib.crc32(block, checksum), left - len(block)
            yield struct.pack("<BHH", left == 0, len(block), len(block) ^ 0xFFFF) + block
    yield struct.pack("<II", checksum, raw & 0xFFFFFFFF)  # the trailer that lets a reader check the whole


def _tar(raw: int) -> Iterator[bytes]:
    """Yield a tar of `raw` bytes: the first two files as they are, the log as long as the rest allows."""
    left = raw
    for name, content in FILES.items():
        member = _header(name, len(content)) + content + bytes(-len(content) % 512)
        left -= len(member)
        yield member
    length = left - 512 - 1024  # one more header, and the two empty blocks that end a tar
    yield _header(LOG, length)
    noise = random.Random(0).randbytes(_FILLER_BLOCK)
    for _ in range(length // _FILLER_BLOCK):
        yield noise
    yield noise[: length % _FILLER_BLOCK]
    yield bytes(1024)


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member.tobuf(tarfile.USTAR_FORMAT)
