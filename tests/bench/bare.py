"""Bare waitress with the server's own settings: the least that any answer of that size costs.

`python -m tests.bench.bare BYTES SETTINGS` prints the port and serves until it is killed. The settings come as JSON,
so that nothing of ours is imported here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from waitress.server import create_server


def application(size: int) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """A WSGI app that reads what is sent and answers `size` bytes."""
    body = b"x" * size
    headers = [("Content-Type", "application/json"), ("Content-Length", str(size))]

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ["wsgi.input"].read()
        start_response("200 OK", headers)
        return [body]

    return answer


if __name__ == "__main__":
    server = create_server(application(int(sys.argv[1])), host="127.0.0.1", port=0, **json.loads(sys.argv[2]))
    print(server.effective_port, flush=True)
    server.run()
