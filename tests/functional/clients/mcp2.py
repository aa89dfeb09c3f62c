"""Visit a board with the Python `mcp` SDK 2.x. Usage: mcp2.py MODE URL"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import MCPError
from mcp.client import Client


def plain(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def visit(mode: str, url: str) -> dict[str, Any]:
    async with Client(url, mode=mode) as client:
        seen = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            "status": plain(await client.call_tool("phone_bridge_status", {})),
            "picture": plain(await client.call_tool("screenshot", {})),
            "bundle": plain(await client.call_tool("support_bundle", {})),
        }
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as error:
            seen["unknown"] = error.error.code
        return seen


print(json.dumps(asyncio.run(visit(*sys.argv[1:]))))
