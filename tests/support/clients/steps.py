"""What every Python visit does once it is connected.

A line in is `[method, name, arguments]`, a line out the result, or `{"error": ...}` with what the client was told.
The first line out is the protocol version that was agreed on. The server is named by the words of the command
line: a URL alone, or a program and its arguments, to be started and spoken to over its standard input and output.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Requests = Mapping[str, Callable[..., Awaitable[Any]]]


async def follow(version: Any, requests: Requests, refused: type[Exception]) -> None:
    """Say the version, then carry out the lines of standard input until it ends; `refused` is the client's error."""
    say({"version": version})
    while line := await asyncio.to_thread(sys.stdin.readline):
        method, *words = json.loads(line)
        try:
            say(plain(await requests[method](*words)))
        except refused as failure:
            say({"error": plain(failure.error)})  # type: ignore[attr-defined]


def headers() -> dict[str, str]:
    """The token that the server wants, as a header; it comes in the environment, which `ps` does not show."""
    token = os.environ.get("VISITOR_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def plain(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def say(seen: Any) -> None:
    print(json.dumps(seen), flush=True)
