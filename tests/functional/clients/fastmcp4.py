"""Visit a board with `fastmcp` 4.x. Usage: fastmcp4.py URL"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from mcp import MCPError


def plain(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def visit(url: str) -> dict[str, Any]:
    async with Client(url) as client:
        seen = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in await client.list_tools()],
            "status": plain(await client.call_tool_mcp("phone_bridge_status", {})),
            "picture": plain(await client.call_tool_mcp("screenshot", {})),
            "bundle": plain(await client.call_tool_mcp("support_bundle", {})),
        }
        try:
            await client.call_tool_mcp("no_such_tool", {})
        except MCPError as error:
            seen["unknown"] = error.error.code
        return seen


print(json.dumps(asyncio.run(visit(sys.argv[1]))))
