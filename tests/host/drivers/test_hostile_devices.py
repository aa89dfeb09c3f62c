"""Images larger than any screen, output without end, and UI trees that no screen has: read up to a limit, and no longer."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import struct
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mcpboard.errors import NOT_SENT, UNKNOWN
from mcpboard.host.drivers.android import AndroidDriver, uiautomator
from mcpboard.host.drivers.android.adb import TooMuchOutput
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.board import BoardDriver
from mcpboard.host.drivers.images import DARKEST_BYTES, LONGEST_SIDE, MOST_PIXELS, image_size, is_black, mime_type
from mcpboard.host.drivers.iphone import IPhoneDriver, xcuitest
from mcpboard.host.vision import describe, find, text_match
from mcpboard.host.vision.icons.synonyms import shapes_called
from mcpboard.host.vision.tree import LEVELS_SENT, MOST_ELEMENTS, MOST_LEVELS, UiNode, UnreadableTree
from mcpboard.host.vision.types import TextLine
from mcpboard.text import DEEP_LIMIT, nesting
from tests.host.drivers import Reply, answering, refused
from tests.host.drivers import png as whole_png
from tests.host.drivers.fake_adb import PHONE, fake_adb, packet, shell
from tests.host.drivers.fake_wda import FakePhone, fake_wda
from tests.host.rig import agent
from tests.host.vision.fakes import FakeEngine
from tests.support.http import LEGACY, LIMIT_S, MODERN

T = TypeVar("T")


def memory_of(work: Callable[[], object]) -> int:
    """Return the most bytes that Python held for `work` at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- images --------------------------------------------------------------------------------------

IMAGE_MEMORY = 8 << 20  # bytes; a hundredth of what the largest image here has unpacked


def png(width: int, height: int, rows: bytes = b"", bits: int = 8, color: int = 6, more: Iterable[tuple[bytes, bytes]] = ()) -> bytes:  # fmt: skip
    """A PNG that says what it is told to, with these packed rows, and `more` chunks before them."""
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    chunks = ((b"IHDR", head), *more, (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


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
LARGE_FRAME = frame(60_000, 60_000)
# A small frame where a reader that counts wrongly looks first; every decoder takes the one behind it.
HIDDEN = b"\0" * 2 + b"\xff\xc0" + struct.pack(">HBHHB", 8, 8, 4, 4, 3)
TOO_LARGE = [
    pytest.param(BOMB, "30000x30000", id="a PNG of 900 million pixels"),
    pytest.param(png(2**31 - 1, 2**31 - 1), "2147483647x2147483647", id="a PNG of as many as can be written"),
    pytest.param(png(LONGEST_SIDE + 1, 1), "20001x1", id="a row that is too long"),
    pytest.param(png(8000, MOST_PIXELS // 8000 + 1), "8000x5001", id="one row too many"),
    pytest.param(jpeg((0xE0, b"JFIF\0" + bytes(9)), LARGE_FRAME), "60000x60000", id="a JPEG"),
    pytest.param(jpeg(frame(60_000, 60_000, 0xC2)), "60000x60000", id="a progressive JPEG"),
    pytest.param(jpeg(LARGE_FRAME, fill=3), "60000x60000", id="several FF before a marker"),
    pytest.param(b"\xff\xd8\xff\xd0" + jpeg(LARGE_FRAME)[2:], "60000x60000", id="a marker without a length"),
    pytest.param(jpeg((0xE1, HIDDEN), LARGE_FRAME), "60000x60000", id="a small picture inside the large one"),
]
NO_IMAGE = "no JPEG and no PNG"
FOREIGN = [
    pytest.param(b"GIF89a\xff\xff\xff\xff\0\0\0;", NO_IMAGE, id="GIF"),
    pytest.param(png(10, 10)[:20], NO_IMAGE, id="a cut PNG"),
    pytest.param(b"\xff\xd8\xff\x01" + jpeg(frame(10, 10))[2:], NO_IMAGE, id="a JPEG with a marker for nobody"),
    pytest.param(png(10, 10).replace(b"IHDR", b"IDAT"), NO_IMAGE, id="a PNG without its head"),
    pytest.param(png(0, 10), NO_IMAGE, id="no pixel"),
    pytest.param(jpeg(frame(10, 10))[:6], NO_IMAGE, id="a cut JPEG"),
    pytest.param(b"\xff\xd8" + b"\xff" * 1000, NO_IMAGE, id="nothing but FF"),
    pytest.param(jpeg(*[(0xFE, b"")] * 9_999, frame(10, 10)), NO_IMAGE, id="a JPEG with more pieces than any has"),
    pytest.param(jpeg(frame(10, 10), fill=99_999), NO_IMAGE, id="a JPEG after a hundred thousand FF"),
    pytest.param(png(10, 10, more=[(b"tEXt", b"a\0b")] * 9_999), NO_IMAGE, id="a PNG with more chunks than any has"),
    pytest.param(b"", NO_IMAGE, id="nothing"),
]


@pytest.mark.parametrize(("image", "message"), TOO_LARGE + FOREIGN)
def test_only_whole_images_that_a_screen_may_have_reach_a_decoder(image: bytes, message: str) -> None:
    refused(lambda: image_size(image), message)


def test_the_largest_screens_are_taken_and_named_by_their_bytes() -> None:
    profile = [(0xE2, b"ICC_PROFILE\0" + bytes(1 << 10))] * 255
    described = [(b"iTXt", b"XML\0\0\0\0\0" + b"x" * (300 << 10))]
    for image, size, mime in (
        (png(7680, 4320), (7680, 4320), "png"),
        (png(10, 20, more=described), (10, 20), "png"),
        (jpeg(frame(4320, 7680)), (4320, 7680), "jpeg"),
        (jpeg(*profile, frame(10, 20)), (10, 20), "jpeg"),
    ):
        assert (image_size(image), mime_type(image)) == (size, f"image/{mime}")


def test_a_bomb_from_a_phone_is_not_unpacked() -> None:
    phone = FakePhone()
    phone.faults["/screenshot"] = lambda: base64.b64encode(BOMB).decode()
    with fake_adb({"shell": shell(BOMB)}) as server, fake_wda(phone) as url:
        android, iphone = AndroidDriver(PHONE, server.adb), IPhoneDriver(url)
        for take in (android.take_screenshot, android.peek, iphone.peek):
            assert memory_of(lambda take=take: refused(take, "30000x30000")) < IMAGE_MEMORY  # type: ignore[misc]


def test_what_is_black_is_told_by_any_kind_of_png_and_nothing_else_is() -> None:
    """Each row begins with its filter; an alpha channel is no light; rows beyond the head are never held at once."""
    rows = {0: bytes(4 * 11), 2: bytes(4 * 31), 6: b"".join(b"\0" + b"\0\0\0\xff" * 10 for _ in range(4))}
    for color, content in rows.items():
        assert is_black(png(10, 4, zlib.compress(content), color=color))
        assert not is_black(png(10, 4, zlib.compress(content[:-2] + b"\1" + content[-1:]), color=color))
    assert not is_black(png(10, 4, b"no rows"))
    assert not is_black(png(8000, 5000, zeros(5000 * 8001), color=0)), "it takes too much to know"
    endless = png(1000, 1000, zeros(150 << 20), color=2)
    assert len(endless) < DARKEST_BYTES
    assert memory_of(lambda: is_black(endless)) < IMAGE_MEMORY
    assert is_black(endless)


def test_without_pillow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.PngImagePlugin", None)
    refused(lambda: image_size(png(1, 1)), "pip install 'mcpboard[host]'")


# --- output without end ----------------------------------------------------------------------------

PIECE = bytes(1 << 16)
MEMORY = 24 << 20  # bytes; what is read of a tree, held three times over at most
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNK = b"10000\r\n" + b" " * (1 << 16) + b"\r\n"


def endless(before: bytes, piece: bytes) -> Reply:
    """Send until the other side hangs up, whatever it asked."""

    def send(peer: socket.socket) -> None:
        peer.settimeout(LIMIT_S)
        if before.startswith(HEAD):
            peer.recv(1 << 16)
        peer.sendall(before)
        while True:
            peer.sendall(piece)

    return send


@pytest.mark.parametrize("kind", [1, 2, 9], ids=["output", "complaints", "packets of no kind"])
def test_a_phone_that_prints_for_ever_is_left(kind: int) -> None:
    with fake_adb({"shell": endless(b"OKAY", packet(kind, PIECE))}) as server:
        phone = AndroidDriver(PHONE, server.adb)
        assert memory_of(lambda: refused(phone.app_info, "sent more than", error=TooMuchOutput)) < MEMORY
        assert memory_of(lambda: refused(phone.ui_tree, "sent more than", error=UnreadableTree)) < MEMORY
        refused(lambda: phone.launch_app("org.example/.Main"), "sent more than", delivery=UNKNOWN)


ENDLESS = [
    pytest.param(endless(HEAD + b'\r\n{"value":"', b"x" * (1 << 16)), id="without a length"),
    pytest.param(endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK), id="in chunks"),
]


@pytest.mark.parametrize("answer", ENDLESS)
def test_who_sends_for_ever_over_http_is_left(answer: Reply) -> None:
    with answering(answer) as port:
        url = f"http://127.0.0.1:{port}"
        iphone, board = IPhoneDriver(url), BoardDriver(f"{url}/mcp")
        assert memory_of(lambda: refused(iphone.app_info, "than the limit")) < MEMORY
        # Of a tree, twice as much is read.
        assert memory_of(lambda: refused(iphone.ui_tree, "than the limit", error=UnreadableTree)) < 2 * MEMORY
        assert iphone.probe().state == "offline"
        refused(lambda: board.launch_app("Notes"), "over the limit", delivery=NOT_SENT)  # it is the handshake


def test_more_text_than_a_screen_has_is_not_compared_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word of it takes its time, and a device could keep the processor for minutes."""
    compared: list[int] = []

    def similarity(ours: str, theirs: str) -> float:
        compared.append(len(ours))
        return 0.0

    monkeypatch.setattr(text_match, "_similarity", similarity)
    box = (0, 0, 99, 99)
    texts = [*(f"{number} " + "words of no end " * 25 for number in range(300)), "Save changes", "x" * 10**5]
    tree = UiNode("screen", box, children=tuple(UiNode("button", box, text) for text in texts))
    assert [match["text"] for match in find.text_in_tree(tree, "save changes")] == ["Save changes"]
    assert sum(compared) <= find.MOST_WITH_SLIPS + 1000
    compared.clear()
    assert [match["name"] for match in find.icon_in_tree(tree, "save changes")] == ["Save changes"]
    assert sum(compared) <= (find.MOST_WITH_SLIPS + 1000) * (1 + len(shapes_called("save changes")))
    compared.clear()
    describe.describe(tree, 99, 99, tuple(TextLine(f"line {number}", 0.9, box) for number in range(100)))
    assert len(compared) <= 100 * describe.MOST_AROUND


# --- UI trees --------------------------------------------------------------------------------------

MUSL_STACK = 128 * 1024  # bytes of a thread's stack
SIZE = 100, 200
NODE = "<node class='android.view.View' text='t' bounds='[0,0][99,199]'>"
RECT = {"x": 0, "y": 0, "width": 39, "height": 84}


def on_a_small_stack(work: Callable[[], T]) -> T:
    """Return the result of `work` in a thread as musl makes them; a recursion in C would end the process there."""
    before = threading.stack_size(MUSL_STACK)
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result(LIMIT_S)
    finally:
        threading.stack_size(before)


def xml(inner: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{inner}</hierarchy>"


def read_xml(document: str) -> UiNode:
    return uiautomator.parse_tree(document, SIZE, SIZE)


@contextmanager
def android(levels: int) -> Iterator[Driver]:
    """A phone with so many levels of elements."""
    document = xml(NODE * levels + "</node>" * levels).encode()
    with fake_adb({"shell,v2,raw:f=": shell(document), "shell,v2,raw:screencap": shell(whole_png(*SIZE))}) as server:
        yield AndroidDriver(PHONE, server.adb)


@contextmanager
def iphone(levels: int) -> Iterator[Driver]:
    phone = FakePhone()
    head = f'{{"type":"Other","label":"t","isVisible":"1","rect":{json.dumps(RECT)},"children":['
    document = ('{"value":' + head * levels + "]}" * levels + ',"sessionId":"S"}').encode()
    phone.faults["/source"] = lambda: document
    with fake_wda(phone) as url:
        yield IPhoneDriver(url)


Deep = Callable[[int], contextlib.AbstractContextManager[Driver]]
DEVICES = pytest.mark.parametrize("device", [android, iphone])


@DEVICES
def test_a_thousand_levels_are_read_and_sent_without_a_stack(device: Deep) -> None:
    """Read, searched, described and written as JSON, whose levels official clients can read."""
    # The root of Android's document is a level, too, and no element.
    with device(MOST_LEVELS - 1) as driver:
        tree = on_a_small_stack(driver.ui_tree)
    assert tree is not None
    assert tree.levels == MOST_LEVELS
    assert on_a_small_stack(lambda: len(find.text_in_tree(tree, "t"))) == 50
    assert on_a_small_stack(lambda: describe.describe(tree, *SIZE).truncated)
    text = on_a_small_stack(lambda: json.dumps(tree.as_json()))
    assert text.count('"role"') == MOST_LEVELS
    levels, _ = nesting(text)
    assert levels <= 2 * LEVELS_SENT + 2 < 127 - 4  # which is where parsers of Rust give up; four are around the tree
    for levels in (MOST_LEVELS + 1, 5 * MOST_LEVELS):
        with device(levels) as driver:
            refused(lambda: on_a_small_stack(driver.ui_tree), "nested deeper than", error=UnreadableTree)  # noqa: B023


def test_elements_below_the_last_level_stay_in_order() -> None:
    tree = UiNode("0", (0, 0, 1, 1))
    for level in range(1, 100):
        tree = UiNode(f"-{level}", (0, 0, 1, 1), children=(tree, UiNode(f"+{level}", (0, 0, 1, 1))))
    sent = tree.as_json()
    for _ in range(LEVELS_SENT - 2):
        sent = sent["children"][0]
    assert [each["role"] for each in sent["children"]] == [
        *(f"-{level}" for level in range(100 - LEVELS_SENT, 0, -1)), "0", *(f"+{level}" for level in range(1, 102 - LEVELS_SENT)),
    ]  # fmt: skip
    assert not any(each["children"] for each in sent["children"])


ODD_XML = [
    pytest.param('<!DOCTYPE x [<!ENTITY a "b">]>' + xml("&a;"), "a declaration", id="an entity"),
    pytest.param(xml("<![CDATA[x]]>"), "a declaration", id="CDATA"),
    pytest.param(xml("&a;"), "is broken", id="an entity of nobody"),
    pytest.param(xml(NODE), "is broken", id="cut off"),
    pytest.param(xml(NODE + "</node>") * 2, "is broken", id="two of them"),
    pytest.param(xml("<n/>" * (MOST_ELEMENTS + 1)), f"more than {MOST_ELEMENTS} elements", id="too many elements"),
]


@pytest.mark.parametrize(("document", "problem"), ODD_XML)
def test_hostile_documents_are_refused(document: str, problem: str) -> None:
    refused(lambda: on_a_small_stack(lambda: read_xml(document)), problem, error=UnreadableTree)


CHARACTERS = [
    pytest.param("&#55357;&#56832;", "\N{GRINNING FACE}", id="an emoji as two halves"),
    pytest.param("&#xD83D;&#xDE00;", "\N{GRINNING FACE}", id="in hexadecimal"),
    pytest.param("&#55357;", "\ufffd", id="half an emoji"),
    pytest.param("\ud83d!", "\ufffd!", id="half an emoji as it is"),
    pytest.param("&#0;\x1b&#x1b;&#xFFFF;&#1114112;", "\ufffd" * 5, id="what XML does not allow"),
    pytest.param("&#65;&#10;&#x1F600;", "A\n\N{GRINNING FACE}", id="what it allows"),
]


@pytest.mark.parametrize(("written", "text"), CHARACTERS)
def test_an_odd_character_costs_that_character_only(written: str, text: str) -> None:
    (node,) = read_xml(xml(f"<node text='{written}' bounds='[0,0][9,9]'/>")).children
    assert node.text == text


def test_odd_bounds_leave_an_element_out() -> None:
    for bounds in (f"[0,0][{'9' * 5000},9]", "[-1,-1][0,0]", "[9,9][0,0]", "[a,0][1,1]", ""):
        assert read_xml(xml(f"<node bounds='{bounds}'/>")).children == ()


DEEP_LABEL: Any = []  # to print it would recurse
for _ in range(DEEP_LIMIT):
    DEEP_LABEL = [DEEP_LABEL]
BARE = UiNode("view", (0, 0, *SIZE))
ODD_JSON: list[Any] = [
    (None, ()), ([], ()), ({"type": 5, "rect": "x"}, ()), ({"children": "x"}, ()), ({"rect": {"x": 1e999, "y": 0}}, ()),
    ({"type": DEEP_LABEL, "rect": RECT, "label": DEEP_LABEL, "name": {"a": DEEP_LABEL}, "value": None}, (BARE,)),
]  # fmt: skip


@pytest.mark.parametrize(("source", "children"), ODD_JSON, ids=map(str, range(len(ODD_JSON))))
def test_odd_elements_of_an_iphone_do_no_harm(source: Any, children: tuple[UiNode, ...]) -> None:
    assert on_a_small_stack(lambda: xcuitest.parse_tree(source, SIZE, (39, 84))).children == children


def test_too_many_elements_of_an_iphone_are_refused() -> None:
    wide = {"type": "Other", "rect": RECT, "children": [{} for _ in range(MOST_ELEMENTS)]}
    refused(lambda: xcuitest.parse_tree(wide, SIZE, SIZE), "elements", error=UnreadableTree)


# --- UI trees over MCP -----------------------------------------------------------------------------

SEARCHES: tuple[tuple[str, dict[str, str]], ...] = (("find_text", {"query": "t"}), ("find_icon", {"name": "t"}), ("describe_screen", {}))  # fmt: skip


@pytest.mark.parametrize(("device", "version"), [(android, LEGACY), (iphone, MODERN)], ids=[LEGACY, MODERN])
def test_a_deep_screen_is_told_to_clients(tmp_path: Path, device: Deep, version: str) -> None:
    with device(600) as driver, agent(tmp_path, phone=driver) as host:
        caller = host.caller.modern() if version == MODERN else host.caller.open()
        answer = caller.call("get_ui_tree")
        levels, _ = nesting(json.dumps(answer.json))
        assert levels < 127
        assert json.dumps(answer.result["structuredContent"]).count('"role"') >= 599
        assert f"Elements deeper than {LEVELS_SENT} levels are listed at that level." in answer.text
        assert len(caller.call("find_text", query="t").result["structuredContent"]["matches"]) == 50
        assert "truncated" in caller.call("describe_screen").text


@DEVICES
def test_the_picture_answers_for_a_tree_that_cannot_be_read(tmp_path: Path, device: Deep) -> None:
    """And where nobody reads pictures, the reason is told."""
    with device(3000) as driver:
        vision = FakeEngine().service(tmp_path / "icons")
        with contextlib.closing(vision), agent(tmp_path / "seeing", phone=driver, vision=vision) as host:
            for tool, arguments in SEARCHES:
                text = host.caller.call(tool, **arguments).text
                assert re.search(r"\(from the screenshot only: .*nested deeper", text)
        with agent(tmp_path / "blind", phone=driver) as host:
            for tool, arguments in (*SEARCHES, ("get_ui_tree", {})):
                assert "nested deeper than" in host.caller.call(tool, **arguments).error["message"]
