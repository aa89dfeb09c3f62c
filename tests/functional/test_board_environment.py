"""Where the board role has to run: bare environments, nowhere to write, no IPv6, a proxy that nobody may use."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.functional.namespaces import namespace
from tests.support import rig
from tests.support.gohttp import GoServer
from tests.support.http import Caller
from tests.support.processes import BARE, MCPBOARD, run, started

HEBREW = "שלום 👩‍👩‍👧"

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # for ip, unshare and mount themselves
CLOSED_STDIN = ("sh", "-c", 'exec "$@" <&-', "sh")
# In a mount namespace of its own; it starts only when the root really is read-only.
READ_ONLY = ("unshare", "-m", "sh", "-c", 'mount -o remount,bind,ro / && ! touch /tmp/written 2>&- && exec "$@"', "sh")


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=20) as running:
        running.phone.show("Notes")
        yield running


def works(client: Caller, simulator: Simulator) -> bool:
    """Tell if a session goes well from end to end: list, picture, typing, bundle."""
    listed = len(client.ask("tools/list")["tools"])
    picture = base64.b64decode(client.call("screenshot").result["content"][0]["data"])
    typed = client.call("enter_text", text=HEBREW, focus={"x": 500, "y": 300})
    bundle = client.call("support_bundle")
    return (
        listed == 12
        and picture.startswith(b"\xff\xd8\xff")
        and not typed.is_error
        and simulator.phone.text == HEBREW
        and bundle.kinds == ["text", "resource"]
    )


ENVIRONMENTS = [
    pytest.param({"LC_ALL": "C"}, (), id="the C locale"),
    pytest.param({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, (), id="ASCII and nothing else"),
    pytest.param({}, (), id="no variable at all, so no HOME and no PATH"),
    pytest.param({}, CLOSED_STDIN, id="a closed stdin"),
    pytest.param({"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}, (), id="a HOME and a TMPDIR that are not there"),
]


@pytest.mark.parametrize(("environ", "before"), ENVIRONMENTS)
def test_a_bare_environment_is_enough(
    simulator: Simulator, tmp_path: Path, environ: dict[str, str], before: tuple[str, ...]
) -> None:
    file = rig.settings_file(tmp_path, simulator.agent_url, simulator.config_web_url)
    with rig.process(file, *before, environ=environ) as served:
        assert works(served.client, simulator)


def test_no_randomness_is_needed_to_serve(simulator: Simulator, tmp_path: Path) -> None:
    """At a first boot the kernel may have none for minutes, and whoever asks for it waits."""
    (tmp_path / "sitecustomize.py").write_text("import os\nos.urandom = os.getrandom = None\n")
    file = rig.settings_file(tmp_path, simulator.agent_url, simulator.config_web_url)
    with rig.process(file, environ={"PYTHONPATH": str(tmp_path)}) as served:
        assert works(served.client, simulator)


@pytest.mark.tools
def test_a_root_that_cannot_be_written_to_is_enough(simulator: Simulator, tmp_path: Path) -> None:
    """The board role writes nothing, not even bytecode."""
    file = rig.settings_file(tmp_path, simulator.agent_url, simulator.config_web_url)
    with rig.process(file, *READ_ONLY) as served:
        assert works(served.client, simulator)


@pytest.mark.tools
@pytest.mark.parametrize("listen", ["0.0.0.0:0", "127.0.0.1:0", "*:0"])
def test_no_ipv6_no_variables_no_stdin_and_nowhere_to_write(tmp_path: Path, listen: str) -> None:
    """Everything missing at once; even a wildcard falls back to the family that is there."""
    with namespace("bare") as bare:
        bare.run(Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text, "1")
        with pytest.raises(ConfigError):
            bare.run(server.listeners, [("::1", 0)])
        simulator = Simulator(speed=20)
        bare.run(simulator.start)
        simulator.phone.show("Notes")
        file = rig.settings_file(tmp_path, simulator.agent_url, simulator.config_web_url, listen=listen)
        inside = ("ip", "netns", "exec", bare.name)
        try:
            with rig.process(file, *inside, *READ_ONLY, *CLOSED_STDIN, environ={"LC_ALL": "C", "PATH": PATH}) as served:
                client = Caller(f"http://127.0.0.1:{served.client.address[1]}/mcp")
                assert bare.run(works, client, simulator)
        finally:
            simulator.stop()


def test_a_proxy_in_the_environment_is_never_asked(simulator: Simulator, tmp_path: Path) -> None:
    """Calls to the board go straight to loopback, without a name or password from anywhere."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login someone password something\n")
    (tmp_path / ".netrc").chmod(0o600)
    with GoServer(lambda went: went.error("502 Bad Gateway", "proxied")) as proxy:
        names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        environ = {**os.environ, **dict.fromkeys(names, proxy.url), "NO_PROXY": "localhost", "no_proxy": "localhost"}
        environ |= {"HOME": str(tmp_path), "REQUESTS_CA_BUNDLE": "/nonexistent", "NETRC": str(tmp_path / ".netrc")}
        file = rig.settings_file(tmp_path, simulator.agent_url, simulator.config_web_url)
        with rig.process(file, environ=environ) as served:
            assert works(served.client, simulator)
        assert proxy.connections == 0
    assert not any("authorization" in request.headers for request in simulator.requests)


@pytest.mark.tools
def test_a_backend_on_ipv6_loopback_alone_is_found_by_name() -> None:
    """Needs a machine with IPv6, at least on loopback."""
    with (
        Simulator(host="::1", speed=20) as simulator,
        rig.in_front_of(
            f"http://localhost:{simulator.agent_url.rpartition(':')[2]}", simulator.config_web_url
        ) as client,
    ):
        assert not client.call("screenshot").is_error
        assert not client.call("device_status").is_error


@pytest.mark.tools
def test_a_board_is_reached_at_the_link_local_address_of_its_cable(tmp_path: Path) -> None:
    """By every way in, with the interface spelled as URLs want it, as curl takes it, too, and by its number."""
    with namespace("cable") as cable:
        cable.ip(
            "link add usb0 type veth peer name usb1",
            "link set usb0 up",
            "link set usb1 up",
            "addr add fe80::1/64 dev usb0 nodad",
        )
        inside, number = ("ip", "netns", "exec", cable.name), cable.run(socket.if_nametoindex, "usb0")
        environ = {**BARE, "PATH": PATH, "HOME": str(tmp_path)}
        with started(*inside, *MCPBOARD, "serve", "--listen", "[fe80::1%usb0]:0", env=environ) as board:
            announced = board.url
            zones = ["%25usb0", "%usb0", f"%25{number}"]
            urls = [announced.replace("%25usb0", zone) for zone in zones]
            assert announced.startswith("http://[fe80::1%25usb0]:")
            for url in urls:
                listed = run(*inside, *MCPBOARD, "tools", url, env=environ)
                assert "screenshot" in listed.stdout, listed
                checked = run(*inside, *MCPBOARD, "doctor", url, "--json", env=environ)
                states = {each["check"]: each["state"] for each in json.loads(checked.stdout)["checks"]}
                assert (states["route"], states["tcp"], states["handshake"]) == ("ok", "ok", "ok"), checked.stdout
            line = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
            bridged = run(*inside, *MCPBOARD, "bridge", announced, input=line, env=environ)
            assert '"screenshot"' in bridged.stdout, bridged
            with started(*inside, *MCPBOARD, "relay", announced, "--listen", "127.0.0.1:0", env=environ) as relay:
                near = "http://127.0.0.1:" + relay.line.partition("relaying http://127.0.0.1:")[2].partition("/")[0]
                # As a page of the relay would: to the board it is one of its own.
                page = cable.run(partial(Caller(f"{near}/mcp").get, "/health", Origin=near))
                assert page.status == 200, page


def test_a_backend_that_drops_what_it_is_sent_is_given_up_soon() -> None:
    """A full backlog drops connection attempts in place of refusing them; two seconds at most."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        crowd = [socket.socket() for _ in range(4)]
        try:
            for one in crowd:
                one.setblocking(False)
                one.connect_ex(deaf.getsockname())
            with rig.in_front_of(url) as client:
                began = time.monotonic()
                failed = client.call("keyboard_tap", keys=["enter"])
                assert time.monotonic() - began < 2.5
        finally:
            for one in crowd:
                one.close()
    assert failed.is_error
    assert "cannot be reached" in failed.text
    assert failed.delivery == "not_sent"
