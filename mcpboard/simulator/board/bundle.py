"""The support bundle: a small real archive, or one of an exact size that never stands whole in memory."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zlib
from collections.abc import Iterator

FILES = {
    "langfuse.yaml": b"# pretend episode\nsteps:\n  - tool: screenshot\n",
    "agent.log": b'level=INFO msg="agent ready" addr=:8080\n',
    "llm-http-20260518-123456.log": b'POST /v1/messages\n{"prompt": "pretend"}\n',
}
_STORED = 65535  # bytes in a deflate block that is not compressed, the most its length field can say
_FIXED = 10 + 2 + 8  # bytes of gzip header, length of its extra field, and trailer
_FILLER_BLOCK = 1 << 16  # bytes of noise, repeated


def small() -> bytes:
    """The archive of a board that has little to tell: three flat files, mode 0644, no times."""
    return gzip.compress(_tar(FILES), mtime=0)


def smallest_sized() -> int:
    """The least number of bytes that `sized` can make."""
    return _FIXED + 5 + len(_tar(FILES)) + 512


def sized(size: int, seed: int = 0) -> Iterator[bytes]:
    """A valid gzip tar of exactly `size` bytes, in blocks; ValueError under `smallest_sized()`.

    Nothing is compressed, so the size is arithmetic: the last log is filled up, the header's extra
    field takes what a tar's blocks of 512 leave over.
    """
    if size < smallest_sized():
        raise ValueError(f"a bundle of {size} bytes holds no archive; the least is {smallest_sized()}")
    raw = _raw_size(size)
    extra = size - _FIXED - raw - 5 * _blocks(raw)
    yield b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff" + struct.pack("<H", extra) + bytes(extra)
    yield from _deflated(_padded(_sized_tar(raw, seed)), raw)


def _blocks(raw: int) -> int:
    return -(-raw // _STORED)


def _raw_size(size: int) -> int:
    """The longest tar, in whole blocks of 512, that fits."""
    raw = (size - _FIXED) // 512 * 512
    while _FIXED + raw + 5 * _blocks(raw) > size:
        raw -= 512
    return raw


def _tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _sized_tar(raw: int, seed: int) -> Iterator[bytes]:
    """A tar of `raw` bytes: the first two files as they are, the log as long as the rest allows."""
    names = list(FILES)
    for name in names[:2]:
        yield _member(name, len(FILES[name])) + _to_512(FILES[name])
    used = sum(512 + len(_to_512(FILES[name])) for name in names[:2])
    length = raw - used - 512 - 1024  # one more header, and the two empty blocks that end a tar
    yield _member(names[2], length)
    yield from _noise(length, seed)
    yield bytes(1024)


def _member(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member.tobuf(tarfile.USTAR_FORMAT)


def _to_512(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def _noise(length: int, seed: int) -> Iterator[bytes]:
    block = random.Random(seed).randbytes(_FILLER_BLOCK)
    for _ in range(length // _FILLER_BLOCK):
        yield block
    yield block[: length % _FILLER_BLOCK]


def _padded(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of exactly _STORED, the last one shorter."""
    waiting = bytearray()
    for block in blocks:
        waiting += block
        while len(waiting) >= _STORED:
            yield bytes(waiting[:_STORED])
            del waiting[:_STORED]
    if waiting:
        yield bytes(waiting)


def _deflated(blocks: Iterator[bytes], raw: int) -> Iterator[bytes]:
    """Deflate without compression, and the trailer that lets a reader check the whole."""
    checksum, left = 0, raw
    for block in blocks:
        checksum, left = zlib.crc32(block, checksum), left - len(block)
        yield struct.pack("<BHH", left == 0, len(block), len(block) ^ 0xFFFF) + block
    yield struct.pack("<II", checksum, raw & 0xFFFFFFFF)
