"""The same two tools by the official Python SDK, in its quickest mode, in front of the same backend.

Run by the Python of a prefix that holds `mcp`; imports nothing of ours. Arguments: backend port.
"""

from __future__ import annotations

import json
import socket
import sys

import httpx2
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ImageContent, TextContent

agent = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{sys.argv[1]}", trust_env=False)
server = MCPServer("bench")


@server.tool()
async def phone_bridge_status() -> CallToolResult:
    """The state of the companion app."""
    found = (await agent.get("/api/phone-bridge/status")).text
    return CallToolResult(content=[TextContent(type="text", text=found)])


@server.tool()
async def screenshot() -> CallToolResult:
    """A picture of the screen."""
    answer = (await agent.post("/api/tools/screenshot", json={"input": {}})).json()
    found = json.loads(answer["output"])
    return CallToolResult(content=[ImageContent(type="image", data=found["data"], mime_type="image/jpeg")])


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    # asyncio sets this itself on sockets that it makes; without it every answer waits 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
