"""A role of nothing but switches: its tools block, return much, break off or crash, as a test asks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from werkzeug.routing import Rule

from mcpboard.errors import InvalidParams, ToolRefused
from mcpboard.protocol.endpoint import JSON, Endpoint
from mcpboard.protocol.messages import Arrived, CloseSession, OpenSession, Outcome, Policy, Reply, RequestHead, ToolCall
from mcpboard.protocol.tools import Blob, Content, Image, Text, Tool, ToolList
from mcpboard.serving.app import View, page_rules
from mcpboard.serving.concurrency import ConcurrencyLimit, ConcurrencySlot
from tests.support.http import LIMIT_S

SECRET = "nobody may read this"

Play = Callable[["FakeRole", Mapping[str, Any]], Content]  # what a tool does


class Source:
    """Raw bytes on demand: `size` of them, `length` announced, an exception in the middle if asked for."""

    def __init__(self, size: int, length: int | None, dies_with: Exception | None = None, block: int = 48 * 1024) -> None:  # fmt: skip
        self.length = length
        self.closed = 0
        self.closes_with: Exception | None = None
        self._size = size
        self._dies_with = dies_with
        self._block = block

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, self._size, self._block):
            yield bytes(min(self._block, self._size - start))
        if self._dies_with is not None:
            raise self._dies_with

    def close(self) -> None:
        self.closed += 1
        if self.closes_with is not None:
            raise self.closes_with


class FakeRole:
    """The role that is served in these tests; remembers what was run, lost and borrowed."""

    def __init__(self, **policy: Any) -> None:
        self.ran: list[str] = []
        self.begun: queue.Queue[str] = queue.Queue()
        self.lost: queue.Queue[str] = queue.Queue()
        self.receipts: queue.Queue[Arrived] = queue.Queue()  # of the replies that were handed over
        self.sources: list[Source] = []
        self.release = threading.Event()
        self.broken: Exception | None = None  # raised wherever the role is asked for anything but a call
        self.dies_with: Exception | None = None  # by the source of the next `file`
        tools = [
            Tool(each, each, f"does {each}", {"type": "object"}, {"readOnlyHint": each == "look"}) for each in TOOLS
        ]
        named = {"name": "pretend", "title": "Pretend", "version": "1"}
        self._endpoint = Endpoint(Policy(named, "for tests", **policy), ToolList(tools))

    def endpoint(self) -> Endpoint:
        return self._endpoint

    def refreshed_endpoint(self) -> Endpoint:
        self._break()
        return self._endpoint

    def pages(self) -> tuple[list[Rule], Mapping[str | int, View]]:
        return page_rules({"/health": self.health})

    def health(self, head: RequestHead) -> Reply:
        self._break()
        return Reply(200, (JSON,), (b'{"name":"pretend"}',))

    def open_session(self, step: OpenSession) -> str:
        self._break()
        return "session-1"

    def close_session(self, step: CloseSession) -> None:
        self._break()

    def run(self, call: ToolCall) -> Outcome:
        self.ran.append(call.name)
        self.begun.put(call.name)
        content = TOOLS[call.name](self, call.arguments)
        return Outcome(content, lambda arrived: self.receipts.put(arrived) if arrived else self.lost.put(call.name))

    def _break(self) -> None:
        if self.broken is not None:
            raise self.broken


def echo(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
    return Content((Text("done"),))


def block(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
    assert role.release.wait(LIMIT_S)
    return Content((Text("done"),))


def picture(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
    return Content((Image("A" * arguments["size"], "image/jpeg"),))


def file(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
    size = arguments["size"]
    role.sources.append(Source(size, arguments.get("length", size), role.dies_with))
    return Content((Blob("pretend://file", "application/gzip", role.sources[-1]),))


def unwritable(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
    """Return a result that cannot be JSON, with a source that has to be closed all the same."""
    return replace(file(role, {"size": 10}), structured={SECRET: float("nan")})


def recurse(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
    return recurse(role, arguments)


def raising(error: type[Exception], *text: str) -> Play:
    def tool(role: FakeRole, arguments: Mapping[str, Any]) -> Content:
        raise error(*text)

    return tool


TOOLS: dict[str, Play] = {
    **{tool.__name__: tool for tool in (echo, block, picture, file, unwritable, recurse)},
    "crash": raising(RuntimeError, SECRET),
    "look": raising(RuntimeError, SECRET),  # changes nothing
    "exhaust": raising(MemoryError),
    "refuse": raising(ToolRefused, "the phone said no"),
    "protocol": raising(InvalidParams, "no such device"),
}


class CountedLimit(ConcurrencyLimit):
    """A limit whose slots can be waited for, and that counts how often one was acquired and released."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.acquired = self.released = 0
        self._changed = threading.Condition()

    def acquire(self, acts: bool = True, tool: str = "") -> ConcurrencySlot:
        slot = super().acquire(acts, tool)
        release = slot.release

        def counted() -> None:
            release()
            with self._changed:
                self.released += 1
                self._changed.notify_all()

        slot.release = counted  # type: ignore[method-assign]
        with self._changed:
            self.acquired += 1
            self._changed.notify_all()
        return slot

    @property
    def in_use(self) -> int:
        """The slots that are taken at this moment."""
        return len(self.held)

    def wait_for(self, in_use: int) -> None:
        """Return once that many slots are in use; fails the test when it never happens."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.in_use == in_use, LIMIT_S), f"{self.in_use} are in use"
