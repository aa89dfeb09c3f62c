"""Visit a server with curl, one process per request. Usage: curl.py VERSION URL"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

REQUEST_S = "30"  # seconds
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def ask(version: str, url: str, method: str, params: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": version}
    if version == "2026-07-28":
        params = {**params, "_meta": ENVELOPE}
        headers |= {"Mcp-Method": method, "Mcp-Name": params.get("name", "")}
    words = [word for name, value in headers.items() if value for word in ("-H", f"{name}: {value}")]
    command = ["curl", "--noproxy", "*", "-sS", "-m", REQUEST_S, *words, "--data-binary", "@-", url]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = json.loads(
        subprocess.run(command, input=json.dumps(message).encode(), check=True, capture_output=True).stdout
    )
    return answer["result"] if "result" in answer else {"error": answer["error"]}


def agreed(version: str, url: str) -> Any:
    """The version that the server takes: offered in a handshake, or found among those that it discovers to us."""
    if version == "2026-07-28":
        return ask(version, url, "server/discover", {})["supportedVersions"][0]
    client = {"name": "curl", "version": "8"}
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return ask(version, url, "initialize", asked)["protocolVersion"]


def visit(version: str, url: str) -> None:
    print(json.dumps({"version": agreed(version, url)}), flush=True)
    for line in sys.stdin:
        method, *words = json.loads(line)
        params = dict(zip(("name", "arguments"), words, strict=False))
        print(json.dumps(ask(version, url, method, params)), flush=True)


visit(*sys.argv[1:])
