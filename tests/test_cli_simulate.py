"""The verb `simulate`, with a stand-in for the simulator: what it prints, how it ends, what it needs."""

from __future__ import annotations

import json
import sys
import threading
import types

import pytest

from mcpboard.cli import main


@pytest.fixture
def simulator(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in that notes what is done with it."""
    noted: list[str] = []

    class Simulator:
        agent_url, config_web_url = "http://127.0.0.1:1", "http://127.0.0.1:2"

        def __init__(self, agent_port: int, config_web_port: int) -> None:
            noted.append(f"{agent_port} {config_web_port}")

        def start(self) -> None:
            noted.append("start")

        def stop(self) -> None:
            noted.append("stop")

    module = types.ModuleType("mcpboard.simulator")
    module.Simulator = Simulator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mcpboard.simulator", module)
    return noted


def test_it_prints_one_json_line_and_stops_at_sigint(
    self, simulator: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(self: threading.Event, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", interrupt)
    assert main(["simulate", "--agent-port", "5"]) == 0
    assert json.loads(capsys.readouterr().out) == {"agent": "http://127.0.0.1:1", "config_web": "http://127.0.0.1:2"}
    assert simulator == ["5 0", "start", "stop"]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        pytest.param("PIL", "cure: pip install 'mcpboard[simulator]'", id="no Pillow"),
        pytest.param("mcpboard.simulator", "came without the simulator", id="a board's installation"),
    ],
)
def test_what_is_missing_is_one_line(
    self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str, said: str
) -> None:
    class Blocked:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "mcpboard.simulator":
                raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.delitem(sys.modules, "mcpboard.simulator", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Blocked(), *sys.meta_path])
    assert main(["simulate"]) == 2
    assert said in capsys.readouterr().err
