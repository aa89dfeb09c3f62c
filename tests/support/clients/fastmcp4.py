"""Visit a server with `fastmcp` 4.x. Usage: fastmcp4.py SERVER..."""

from __future__ import annotations

import asyncio
import sys

import steps
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import MCPError


async def visit(program: str, *arguments: str) -> None:
    server = (
        StdioTransport(program, [*arguments], keep_alive=False)
        if arguments
        else StreamableHttpTransport(program, headers=steps.headers())
    )
    async with Client(server) as client:
        requests = {"tools/list": client.list_tools_mcp, "tools/call": client.call_tool_mcp}
        await steps.follow(client.protocol_version, requests, MCPError)


asyncio.run(visit(*sys.argv[1:]))
