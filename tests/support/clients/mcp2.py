"""Visit a server with the Python `mcp` SDK 2.x. Usage: mcp2.py MODE SERVER..."""

from __future__ import annotations

import asyncio
import sys

import steps
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def visit(mode: str, program: str, *arguments: str) -> None:
    http = create_mcp_http_client(headers=steps.headers())
    server = (
        StdioServerParameters(command=program, args=[*arguments])
        if arguments
        else streamable_http_client(program, http_client=http)
    )
    async with http, Client(server, mode=mode) as client:
        requests = {"ping": client.send_ping, "tools/list": client.list_tools, "tools/call": client.call_tool}
        await steps.follow(client.protocol_version, requests, MCPError)


asyncio.run(visit(*sys.argv[1:]))
