"""Which proxy variables catch a host, as the libraries of clients read them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mcpboard.config import proxy_variables
from mcpboard.doctor import CheckState
from mcpboard.laptop.doctor import proxies

HOST = "192.168.42.1"
PROXY = "http://me:secret@proxy.example:3128/"

CASES = [
    pytest.param({}, HOST, CheckState.OK, "no proxy", id="nothing set"),
    pytest.param({"HTTP_PROXY": PROXY}, HOST, CheckState.FAILED, "HTTP_PROXY", id="a proxy"),
    pytest.param({"http_proxy": PROXY}, HOST, CheckState.FAILED, "http_proxy", id="in lower case"),
    pytest.param({"all_proxy": "socks5://proxy.example"}, HOST, CheckState.FAILED, "all_proxy", id="for everything"),
    pytest.param({"HTTP_PROXY": PROXY, "all_proxy": PROXY}, HOST, CheckState.FAILED, "HTTP_PROXY and all_proxy send clients", id="two"),
    pytest.param({"HTTPS_PROXY": PROXY}, HOST, CheckState.OK, "no proxy", id="for https alone"),
    pytest.param({"HTTP_PROXY": ""}, HOST, CheckState.OK, "no proxy", id="an empty one"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": HOST}, HOST, CheckState.OK, "NO_PROXY excepts", id="excepted"),
    pytest.param({"HTTP_PROXY": PROXY, "no_proxy": f"a, {HOST}"}, HOST, CheckState.OK, "no_proxy excepts", id="among others"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": f"{HOST}:8080"}, HOST, CheckState.OK, "excepts", id="with a port"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "*"}, HOST, CheckState.OK, "excepts", id="everything excepted"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "localhost,.lan"}, HOST, CheckState.FAILED, "sends", id="others excepted"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "168.42.1"}, HOST, CheckState.FAILED, "sends", id="the end of an address"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "192.168.42.0/24"}, HOST, CheckState.FAILED, "range", id="a range"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, HOST, CheckState.FAILED, "sends", id="another range"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "x/y/z"}, HOST, CheckState.FAILED, "sends", id="no range at all"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": ".lan"}, "board.lan", CheckState.OK, "excepts", id="a domain"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "*.lan"}, "board.lan", CheckState.OK, "excepts", id="a pattern"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "an"}, "board.lan", CheckState.FAILED, "sends", id="the end of a name"),
    pytest.param({"HTTP_PROXY": PROXY, "NO_PROXY": "[fe80::1]:8080"}, "fe80::1", CheckState.OK, "excepts", id="IPv6"),
    pytest.param({"HTTP_PROXY": "http://[::1"}, HOST, CheckState.FAILED, "that it names", id="a proxy that is no URL"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "host", "state", "message"), CASES)
def test_what_catches_the_board_is_named(
    variables: Mapping[str, str], host: str, state: CheckState, message: str
) -> None:
    result = proxies.evaluate(proxies.probe(variables, "http", host, "linux"))
    assert result.state is state
    assert message in result.message
    assert "secret" not in result.message + result.remedy
    assert (host in result.remedy) == (state is CheckState.FAILED)


@pytest.mark.parametrize(
    ("system", "command"), [("linux", "export NO_PROXY"), ("darwin", "export NO_PROXY"), ("win32", "setx NO_PROXY")]
)
def test_the_remedy_is_a_command_of_the_system(system: str, command: str) -> None:
    assert proxies.evaluate(proxies.probe({"HTTP_PROXY": PROXY}, "http", HOST, system)).remedy.startswith(command)


def test_an_https_server_is_caught_by_its_own_variable() -> None:
    assert proxies.probe({"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY}, "https", HOST, "linux").catching == (
        "HTTPS_PROXY",
    )


def test_only_proxy_variables_are_taken_from_the_environment() -> None:
    environ = {"HTTP_PROXY": "a", "no_proxy": "b", "HTTP_PROXY_USER": "c", "PATH": "d", "Https_Proxy": "e"}
    assert proxy_variables(environ) == {"HTTP_PROXY": "a", "no_proxy": "b", "Https_Proxy": "e"}
