"""The verb `simulate`: what it prints, how it ends, what it needs."""

from __future__ import annotations

import json
import signal
import socket
import sys
import urllib.request

import pytest

from mcpboard.cli import main
from mcpboard.cli.laptop import demo
from tests.support.processes import LIMIT_S, MCPBOARD, run, started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_one_json_line_and_simulates_until_a_signal(number: signal.Signals) -> None:
    with started(*MCPBOARD, "simulate") as simulator:
        urls = json.loads(simulator.line)
        assert list(urls) == ["agent", "config_web"]
        for url in (urls["agent"] + "/api/tools", urls["config_web"] + "/api/device/status"):
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                assert answer.status == 200
        assert (simulator.end(number), simulator.errors) == (0, "")


def simulate(*words: str, without: str = "") -> str:
    """What a `simulate` that refuses says, with the module `without` missing."""
    program = (
        "import sys; from mcpboard.cli import main; without, *words = sys.argv[1:];"
        "sys.modules.update({without: None} if without else {}); sys.exit(main(['simulate', *words]))"
    )
    done = run(sys.executable, "-c", program, without, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr


@pytest.mark.parametrize(("module", "said"), [("PIL", "pip install 'mcpboard[simulator]'"), ("mcpboard.simulator", "came without the simulator")])  # fmt: skip
def test_what_is_missing_is_told(module: str, said: str) -> None:
    assert said in simulate(without=module)


@pytest.mark.parametrize("option", ["--agent-port", "--config-web-port"])
def test_a_port_in_use_is_one_line(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        number = str(other.getsockname()[1])
        said = simulate(option, number)
    assert number in said
    assert "choose other ports" in said


@pytest.mark.parametrize("words", [("simulate", "--agent-port"), ("simulate", "--config-web-port"), ("demo", "--port")])
@pytest.mark.parametrize("number", ["65536", "-1", "8080x", ""])
def test_a_port_that_cannot_be_is_wrong_usage(
    words: tuple[str, ...], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The system itself would take 65536 for 0 and serve somewhere else."""
    with pytest.raises(SystemExit) as ended:
        main([*words[:-1], f"{words[-1]}={number}"])
    assert ended.value.code == 2
    assert "a port is 0 to 65535" in capsys.readouterr().err


def test_the_demo_takes_any_free_port_when_its_own_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(demo, "PORT", taken)
        (listener,) = demo.listeners(None)
        with listener:
            assert listener.getsockname()[1] not in (0, taken)


def test_the_demo_names_its_own_flag_when_a_port_is_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["demo", "--port", str(other.getsockname()[1])]) == 2
    assert "choose another with --port" in capsys.readouterr().err
