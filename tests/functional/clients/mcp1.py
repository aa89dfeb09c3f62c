"""Visit a board with the Python `mcp` SDK 1.x. Usage: mcp1.py URL"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


def plain(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def visit(url: str) -> dict[str, Any]:
    async with streamablehttp_client(url) as (reading, writing, _), ClientSession(reading, writing) as session:
        version = (await session.initialize()).protocolVersion
        await session.send_ping()
        seen = {
            "version": version,
            "tools": [tool.name for tool in (await session.list_tools()).tools],
            "status": plain(await session.call_tool("phone_bridge_status", {})),
            "picture": plain(await session.call_tool("screenshot", {})),
            "bundle": plain(await session.call_tool("support_bundle", {})),
        }
        try:
            await session.call_tool("no_such_tool", {})
        except McpError as error:
            seen["unknown"] = error.error.code
        return seen


print(json.dumps(asyncio.run(visit(sys.argv[1]))))
