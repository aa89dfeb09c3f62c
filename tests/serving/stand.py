"""A server in a process of its own, for what only a process can show: `python -m tests.serving.stand HOST...`.

Prints the port of each listener, one line each, and writes a line to stderr when a call begins.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from mcpboard.protocol.messages import Outcome, ToolCall
from mcpboard.protocol.tools import Content, Text
from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.server import TOOL_CALLS, listeners, serve
from tests.serving.role import FakeRole


class SpokenRole(FakeRole):
    """A role that says when a call begins; `block` lasts as many seconds as it is asked to."""

    def run(self, call: ToolCall) -> Outcome:
        print(f"begun {call.name}", file=sys.stderr, flush=True)
        if call.name == "block":
            self.release.wait(call.arguments["seconds"])
            return Outcome(Content((Text("done"),)))
        return super().run(call)


def main(hosts: list[str]) -> int:
    logging.basicConfig(level=logging.ERROR)
    sockets = listeners([(host, 0) for host in hosts])
    role = SpokenRole()
    app: Any = Application(lambda: role, ConcurrencyLimit(TOOL_CALLS), *role.pages())
    ports = "\n".join(str(sock.getsockname()[1]) for sock in sockets)
    return serve(app, sockets, lambda: print(ports, flush=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
