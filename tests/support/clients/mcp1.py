"""Visit a server with the Python `mcp` SDK 1.x. Usage: mcp1.py SERVER..."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import steps
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def streams(program: str, *arguments: str) -> AbstractAsyncContextManager[Any]:
    if arguments:
        return stdio_client(StdioServerParameters(command=program, args=[*arguments]))
    return streamablehttp_client(program, headers=steps.headers())


async def visit(*server: str) -> None:
    async with streams(*server) as (reading, writing, *_), ClientSession(reading, writing) as session:
        version = (await session.initialize()).protocolVersion
        requests = {"ping": session.send_ping, "tools/list": session.list_tools, "tools/call": session.call_tool}
        await steps.follow(version, requests, McpError)


asyncio.run(visit(*sys.argv[1:]))
