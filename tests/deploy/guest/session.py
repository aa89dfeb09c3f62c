"""Starts the service by its own script, works with it as a client would, and prints what that cost, a line each."""

import json
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from mcpboard.client import Client

SCRIPT = "/etc/init.d/S90mcpboard"
URL = "http://127.0.0.1:8080/mcp"
HEALTH = "http://127.0.0.1:8080/health"
HEALTH_S = 1.0  # seconds between two looks of whatever watches the board
IDLE_S = 10.0  # seconds of nothing but that, before the server counts as idle
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
START_S = 120.0  # an emulated board on a busy machine needs ten
CALLS = 1_000
MIX: Sequence[tuple[str, dict[str, object]]] = (("phone_bridge_status", {}), ("device_status", {}), ("screenshot", {}))


def tell(name: str, **facts: object) -> None:
    print("figure", json.dumps({"name": name, **facts}), flush=True)


def answers(url: str, body: bytes | None) -> bool:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_for(url: str, body: bytes | None = None) -> None:
    over = time.monotonic() + START_S
    pause = threading.Event()
    while not answers(url, body):
        if time.monotonic() > over:
            raise SystemExit(f"nothing answers at {url}")
        pause.wait(0.02)


def memory(pid: int) -> dict[str, int]:
    """RSS, PSS and private dirty memory in kB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    fields = {"rss": "Rss", "pss": "Pss", "private_dirty": "Private_Dirty"}
    return {name: kilobytes(field, text) for name, field in fields.items()}


def available() -> int:
    """kB that programs could still have."""
    return kilobytes("MemAvailable", Path("/proc/meminfo").read_text("ascii"))


def kilobytes(field: str, text: str) -> int:
    (found,) = re.findall(rf"^{field}:\s+(\d+)", text, re.MULTILINE)
    return int(found)


wait_for("http://127.0.0.1:8081/api/tools")

started = time.monotonic()
subprocess.run([SCRIPT, "start"], check=True, stdout=subprocess.DEVNULL)
wait_for(URL, PING)
tell("start", seconds=round(time.monotonic() - started, 2))

stop = threading.Event()
asked: list[bool] = []


def watch() -> None:
    """Ask for /health once a second until the session is over."""
    while not stop.wait(HEALTH_S):
        asked.append(answers(HEALTH, None))


watching = threading.Thread(target=watch, daemon=True)  # a session that fails ends
watching.start()
stop.wait(IDLE_S)

pid = int(Path("/run/mcpboard.pid").read_text("ascii"))
tell("idle", **memory(pid), available=available())

with Client(URL) as client:
    tell("session", tools=len(client.list_tools()), picture=len(client.call("screenshot", {}).images[0].content))

    started = time.monotonic()
    for number in range(CALLS):
        assert not client.call(*MIX[number % len(MIX)]).is_error
    seconds = time.monotonic() - started
    tell("after calls", **memory(pid), calls=CALLS, per_second=round(CALLS / seconds, 1), available=available())

    during: list[dict[str, int]] = []
    started = time.monotonic()
    (bundle,) = client.call("support_bundle", {}, progress=lambda *_: during.append(memory(pid))).blobs
    highest = {name: max(each[name] for each in during) for name in during[0]}
    tell("during a bundle", **highest, bytes=len(bundle.content), seconds=round(time.monotonic() - started, 1))

stop.set()
watching.join()
assert all(asked)
tell("health", asked=len(asked))

started = time.monotonic()
subprocess.run([SCRIPT, "stop"], check=True, stdout=subprocess.DEVNULL)
tell("stop", seconds=round(time.monotonic() - started, 2))
