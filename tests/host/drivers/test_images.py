"""Images larger than any screen, told by their head before anything is unpacked, and heads that lie."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from collections.abc import Callable

import pytest

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.images import DARKEST_BYTES, LONGEST_SIDE, MOST_PIXELS, image_size, is_black, mime_type
from mcpboard.host.drivers.iphone import IPhoneDriver
from tests.host.drivers import memory_of
from tests.host.drivers.fake_adb import PHONE, fake_adb, shell
from tests.host.drivers.fake_wda import FakePhone, fake_wda

MEMORY = 8 << 20  # bytes; a hundredth of what the largest image here has unpacked


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, rows: bytes = b"", bits: int = 8, color: int = 6) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    """So many bytes of zero, packed without ever being there."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(count >> 20))
    return packed + packer.compress(bytes(count & 0xFFFFF)) + packer.flush()


def jpeg(*segments: tuple[int, bytes], fill: int = 1) -> bytes:
    return b"\xff\xd8" + b"".join(
        b"\xff" * fill + bytes([marker]) + struct.pack(">H", len(body) + 2) + body for marker, body in segments
    )


def frame(width: int, height: int, marker: int = 0xC0) -> tuple[int, bytes]:
    return marker, struct.pack(">BHHB", 8, height, width, 3)


BOMB = png(30_000, 30_000, zeros(30_000 * 3751), bits=1, color=0)  # 900 million pixels in some 100 KiB

LARGE = [
    pytest.param(BOMB, id="a PNG of 900 million pixels"),
    pytest.param(png(2**31 - 1, 2**31 - 1), id="a PNG of as many as can be written"),
    pytest.param(png(LONGEST_SIDE + 1, 1), id="a row that is too long"),
    pytest.param(png(8000, MOST_PIXELS // 8000 + 1), id="one row too many"),
    pytest.param(jpeg((0xE0, b"JFIF\0" + bytes(9)), frame(60_000, 60_000)), id="a JPEG"),
    pytest.param(jpeg(frame(60_000, 60_000, 0xC2)), id="a progressive JPEG"),
]


@pytest.mark.parametrize("image", LARGE)
def test_more_pixels_than_a_screen_has_are_refused(image: bytes) -> None:
    with pytest.raises(ToolFailed, match=r"a screenshot of \d+x\d+ pixels; more than 40 million"):
        image_size(image)


def test_the_largest_screens_are_taken() -> None:
    assert image_size(png(7680, 4320)) == (7680, 4320)
    assert image_size(jpeg(frame(4320, 7680))) == (4320, 7680)


# A small frame where a reader that counts wrongly looks first, and the one that every decoder takes.
HIDDEN = b"\0" * 2 + b"\xff\xc0" + struct.pack(">HBHHB", 8, 8, 4, 4, 3)
LYING = [
    pytest.param(jpeg(frame(60_000, 60_000), fill=3), id="several FF before a marker"),
    pytest.param(b"\xff\xd8\xff\xd0" + jpeg(frame(60_000, 60_000))[2:], id="a marker without a length"),
    pytest.param(jpeg((0xE1, HIDDEN), frame(60_000, 60_000)), id="a small picture inside the large one"),
]


@pytest.mark.parametrize("image", LYING)
def test_the_size_is_the_one_that_decoders_take(image: bytes) -> None:
    with pytest.raises(ToolFailed, match="60000x60000"):
        image_size(image)


FOREIGN = [
    pytest.param(b"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff", id="WebP"),
    pytest.param(b"GIF89a\xff\xff\xff\xff\0\0\0;", id="GIF"),
    pytest.param(b"BM" + b"\0" * 60, id="BMP"),
    pytest.param(b"II*\0" + b"\0" * 60, id="TIFF"),
    pytest.param(png(10, 10)[:20], id="a cut PNG"),
    pytest.param(png(10, 10)[:25], id="a PNG that is cut behind its size"),
    pytest.param(b"\xff\xd8\xff\x01" + jpeg(frame(10, 10))[2:], id="a JPEG with a marker for nobody"),
    pytest.param(png(10, 10).replace(b"IHDR", b"IDAT"), id="a PNG without its head"),
    pytest.param(png(0, 10), id="no pixel"),
    pytest.param(jpeg(frame(10, 10))[:6], id="a cut JPEG"),
    pytest.param(jpeg((0xDA, b"\0" * 8), frame(10, 10)), id="a scan before its frame"),
    pytest.param(b"\xff\xd8" + b"\xff" * 1000, id="nothing but FF"),
    pytest.param(b"", id="nothing"),
]


@pytest.mark.parametrize("image", FOREIGN)
def test_what_is_no_whole_png_or_jpeg_never_reaches_a_decoder(image: bytes) -> None:
    with pytest.raises(ToolFailed, match="no JPEG and no PNG"):
        image_size(image)


def test_the_media_type_is_that_of_the_bytes() -> None:
    assert (mime_type(png(1, 1)), mime_type(jpeg(frame(1, 1)))) == ("image/png", "image/jpeg")


def refused(take: Callable[[], object]) -> None:
    with pytest.raises(ToolFailed, match="30000x30000"):
        take()


def test_a_bomb_from_an_android_phone_is_not_unpacked() -> None:
    with fake_adb({"shell": shell(BOMB)}) as server:
        phone: Driver = AndroidDriver(PHONE, server.adb)
        assert memory_of(lambda: refused(phone.take_screenshot)) < MEMORY
        assert memory_of(lambda: refused(phone.peek)) < MEMORY


def test_a_bomb_from_an_iphone_is_not_unpacked() -> None:
    wda = FakePhone()
    wda.faults["/screenshot"] = lambda: base64.b64encode(BOMB).decode()
    with fake_wda(wda) as url:
        assert memory_of(lambda: refused(IPhoneDriver(url).peek)) < MEMORY


def test_what_is_black_is_told_by_any_kind_of_png_and_nothing_else_is() -> None:
    """Each row begins with its filter; an alpha channel is no light."""
    rows = {0: bytes(4 * 11), 2: bytes(4 * 31), 6: b"".join(b"\0" + b"\0\0\0\xff" * 10 for _ in range(4))}
    for color, content in rows.items():
        assert is_black(png(10, 4, zlib.compress(content), color=color))
        assert not is_black(png(10, 4, zlib.compress(content[:-2] + b"\1" + content[-1:]), color=color))
    assert not is_black(png(10, 4, b"no rows"))
    assert not is_black(png(8000, 5000, zeros(5000 * 8001), color=0)), "it takes too much to know"


def test_without_pillow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.PngImagePlugin", None)
    with pytest.raises(ToolFailed, match=r"pip install 'mcpboard\[host\]'"):
        image_size(png(1, 1))


def test_rows_beyond_the_head_are_never_held_at_once() -> None:
    """A PNG of a few pixels that goes on for 150 MiB."""
    image = png(1000, 1000, zeros(150 << 20), color=2)
    assert len(image) < DARKEST_BYTES
    assert memory_of(lambda: is_black(image)) < MEMORY
    assert is_black(image)
