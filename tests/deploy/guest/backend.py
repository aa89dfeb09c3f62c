"""The board's two loopback APIs in little memory: answers recorded from the simulated board, and a bundle of any size."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ANSWERS = {tuple(each["asked"]): each for each in json.loads(Path("/opt/board/answers.json").read_text("utf-8"))}
BLOCK = b"\x1f\x8b\x08\x00" * (16 << 10)  # 64 KiB that begin as a gzip archive does


class Recorded(BaseHTTPRequestHandler):
    """Answers what was recorded for method and path."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer()

    def _answer(self) -> None:
        answer = ANSWERS[self.command, self.path]
        self.send_response(200)
        self.send_header("Content-Type", answer["type"])
        blocks = answer.get("blocks", 0)
        body = answer.get("body", "").encode("utf-8")
        self.send_header("Content-Length", str(len(BLOCK) * blocks or len(body)))
        self.end_headers()
        self.wfile.write(body)
        for _ in range(blocks):
            self.wfile.write(BLOCK)

    def log_message(self, *_: object) -> None:
        """Nothing: the console is for the figures."""


AGENT, CONFIG_WEB = (ThreadingHTTPServer(("127.0.0.1", port), Recorded) for port in (8081, 80))
threading.Thread(target=CONFIG_WEB.serve_forever).start()
AGENT.serve_forever()
