"""Joining a cloud: the verb, its file, the URLs and responses that are refused, and the proxy."""

from __future__ import annotations

import json
import select
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import ConfigError, PeerUnreachable
from mcpboard.host import cloud
from mcpboard.host import config as host_config
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.api import CloudHttp, connect_through
from mcpboard.host.cloud.enrollment import ENROLLMENT_FILE, checked_url
from mcpboard.host.config import IDENTITY_FILE
from mcpboard.simulator.cloud.scheduler import Scheduler
from mcpboard.transport.deadline import Deadline
from tests.host.cloud.rig import enrolled
from tests.support.http import LIMIT_S
from tests.support.processes import HOST, run


def enroll(folder: Path, url: str, token: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return run(*HOST, "enrol", url, "--data", str(folder), *flags, input=token)


# --- the verb and its file -------------------------------------------------------------------------


def test_the_verb_reads_the_token_from_stdin_and_keeps_what_the_cloud_gave(
    tmp_path: Path, scheduler: Scheduler
) -> None:
    folder = tmp_path / "data"
    done = enroll(folder, scheduler.url + "/", scheduler.enrol_token + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"enrolled at {scheduler.url} as host-" in done.stdout
    file = folder / ENROLLMENT_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    written = json.loads(file.read_text("utf-8"))
    assert written["host_token"] in scheduler.secrets
    assert scheduler.enrol_token not in file.read_text("utf-8")
    assert not any(secret in done.stdout for secret in scheduler.secrets)
    (post,) = scheduler.posts("register")
    assert sorted(post.body) == ["devices", "enrol_token", "name", "platform", "version"]
    assert post.body["platform"] == sys.platform


MISTAKES = [
    pytest.param("ftp://cloud.example", "s3cret", "only https", id="another scheme"),
    pytest.param("http://cloud.example", "s3cret", "readable on the way", id="http to somewhere else"),
    pytest.param("cloud.example", "s3cret", "is https://HOST", id="no scheme"),
    pytest.param("https://me:pw@cloud.example", "s3cret", "no name or password", id="a password in the URL"),
    pytest.param("https://cloud.example/?a=b", "s3cret", "nothing behind", id="a query"),
    pytest.param("https://cloud.example:x", "s3cret", "no URL", id="no port"),
    pytest.param("http://127.0.0.1:9", "", "one line with the enrolment token", id="no token"),
    pytest.param("http://127.0.0.1:9", "two words", "one line with the enrolment token", id="a space in the token"),
    pytest.param("http://127.0.0.1:9", "a" * 5000, "one line with the enrolment token", id="a token that never ends"),
    pytest.param("http://127.0.0.1:9", "s3cret", "not enrolled: no connection", id="nobody there"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "token", "message"), MISTAKES)
def test_a_mistake_is_told_in_a_line_without_the_token(tmp_path: Path, url: str, token: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        cloud.enroll(url, token, tmp_path / "data" / IDENTITY_FILE)
    assert "\n" not in str(refused.value)
    for secret in (token, "pw"):
        assert not secret or secret not in str(refused.value)
    assert not (tmp_path / "data" / ENROLLMENT_FILE).exists()


GOOD = [
    "https://cloud.example",
    "https://cloud.example:8443/hosts",
    "http://127.0.0.1:80",
    "http://[::1]:1",
    "http://localhost",
]


@pytest.mark.parametrize("url", GOOD)
def test_urls_that_keep_the_token_private_are_taken(url: str) -> None:
    assert checked_url(url + "/") == url


def test_a_wrong_token_is_told_with_its_remedy(tmp_path: Path, scheduler: Scheduler) -> None:
    done = enroll(tmp_path / "data", scheduler.url, "wrong-enrolment-secret\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "HTTP 403; ask for a new enrolment token" in done.stderr
    assert "wrong-enrolment-secret" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_nobody_enrolls_twice(tmp_path: Path, scheduler: Scheduler) -> None:
    first = enrolled(tmp_path / "data", scheduler)
    with pytest.raises(ConfigError, match="enrolled already; delete the file first"):
        enrolled(tmp_path / "data", scheduler)
    assert len(scheduler.posts("register")) == 1
    assert enrollment.read(tmp_path / "data") == first
    assert first.host_token not in repr(first)


RESPONSES = [
    pytest.param({}, "no usable id", id="nothing in it"),
    pytest.param({"host_id": "../x", "host_token": "t" * 32}, "no usable id", id="an id that is a path"),
    pytest.param({"host_id": "h", "host_token": "a b"}, "no usable token", id="a token with a space"),
    pytest.param({"host_id": "h", "host_token": 7}, "no usable token", id="a token that is a number"),
]


@pytest.mark.parametrize(("response", "message"), RESPONSES)
def test_a_response_that_makes_no_sense_enrolls_nobody(response: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        enrollment.parse_enrollment("https://cloud.example", response)


TIMES = [
    pytest.param({}, (30.0, 25.0, 90.0), id="none"),
    pytest.param({"heartbeat_s": 5, "claim_wait_s": 10.5, "lease_s": 60}, (5.0, 10.5, 60.0), id="as the cloud says"),
    pytest.param({"heartbeat_s": 600, "claim_wait_s": 600, "lease_s": 1e9}, (30.0, 50.0, 3600.0), id="too long"),
    pytest.param({"heartbeat_s": 0, "claim_wait_s": -1, "lease_s": 0}, (1.0, 1.0, 10.0), id="too short"),
    pytest.param({"heartbeat_s": "5", "claim_wait_s": True, "lease_s": float("nan")}, (30.0, 25.0, 90.0), id="no numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "kept"), TIMES)
def test_times_stay_within_their_bounds(sent: dict[str, Any], kept: tuple[float, ...]) -> None:
    """A heartbeat later than every 30 seconds would leave the cloud in the dark for longer than promised."""
    found = enrollment.parse_enrollment("https://cloud.example", {"host_id": "h", "host_token": "t", **sent})
    assert (found.heartbeat_s, found.claim_wait_s, found.lease_s) == kept


@pytest.mark.parametrize("content", ["", "[]", '{"url": "http://cloud.example", "host_id": "h", "host_token": "t"}'])
def test_a_file_that_cannot_be_used_names_itself_and_the_remedy(tmp_path: Path, content: str) -> None:
    (tmp_path / ENROLLMENT_FILE).write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=rf"{ENROLLMENT_FILE}: .*delete it"):
        enrollment.read(tmp_path)


def test_a_loose_mode_is_tightened(tmp_path: Path, scheduler: Scheduler) -> None:
    enrolled(tmp_path / "data", scheduler)
    file = tmp_path / "data" / ENROLLMENT_FILE
    file.chmod(0o644)
    assert enrollment.read(tmp_path / "data") is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


# --- the proxy -------------------------------------------------------------------------------------


class Proxy:
    """An HTTP proxy that knows CONNECT alone, and responds as it is told to."""

    def __init__(self, response: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.asked: list[bytes] = []
        self._response = response
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(LIMIT_S)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, name="proxy")

    def _serve(self) -> None:
        near, _ = self._listener.accept()
        with near:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += near.recv(4096)
            self.asked.append(head)
            near.sendall(self._response)
            if b" 200 " not in self._response:
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            with socket.create_connection((host.strip("[]"), int(port))) as far:
                _pass_on(near, far)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(LIMIT_S)
        self._listener.close()
        assert not self._thread.is_alive()


def _pass_on(near: socket.socket, far: socket.socket) -> None:
    other = {near: far, far: near}
    while True:
        ready, _, _ = select.select([near, far], [], [], LIMIT_S)
        for sock in ready:
            content = sock.recv(65536)
            if not content:
                return
            other[sock].sendall(content)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of 127.0.0.1, in one file."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", "-x509", *kind, *subject, "-keyout", str(file), "-out", str(file.with_suffix(".crt"))]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S)
    file.write_bytes(file.read_bytes() + file.with_suffix(".crt").read_bytes())
    return file


@contextmanager
def over_tls(certificate: Path) -> Iterator[str]:
    """An https server for one POST, which is answered with its own body; gives its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(LIMIT_S)

    def serve() -> None:
        plain, _ = listener.accept()
        with plain, context.wrap_socket(plain, server_side=True) as near, near.makefile("rb") as incoming:
            length = 0
            while (line := incoming.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            near.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + incoming.read(length))

    thread = threading.Thread(target=serve, name="https server")
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/base"
    finally:
        thread.join(LIMIT_S)
        listener.close()


@pytest.mark.parametrize("through_proxy", [True, False], ids=["through the proxy", "directly"])
def test_https_goes_through_the_proxy_of_cloud_proxy_and_stays_end_to_end(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, through_proxy: bool
) -> None:
    """The proxy sees where to, and nothing else; a proxy of the environment is never asked."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    body = {"enrol_token": "secret"}
    with over_tls(certificate) as url:
        if not through_proxy:
            assert CloudHttp(url).post("/v1/hosts/register", body) == body
            return
        with Proxy() as proxy:
            assert CloudHttp(url, proxy=proxy.url).post("/v1/hosts/register", body) == body
    target = url.removeprefix("https://").removesuffix("/base")
    assert proxy.asked == [f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()]


def test_a_cloud_on_this_machine_needs_no_proxy(scheduler: Scheduler, tmp_path: Path) -> None:
    found = cloud.enroll(scheduler.url, scheduler.enrol_token, tmp_path / "d" / IDENTITY_FILE, "http://127.0.0.1:9")
    assert found.url == scheduler.url


REFUSALS = [
    pytest.param(b"HTTP/1.1 407 x\r\n\r\n", "refused with HTTP 407 Proxy Authentication Required", id="it requires a name"),
    pytest.param(b"HTTP/1.0 503 x\r\nA: b\r\n\r\n", "refused with HTTP 503", id="it cannot"),
    pytest.param(b"SSH-2.0-x\r\n\r\n", "does not speak HTTP", id="it is none"),
    pytest.param(b"HTTP/1.1 2", "no whole answer", id="it breaks off"),
    pytest.param(b"HTTP/1.1 500 " + b"x" * 20000, "no whole answer", id="it never ends"),
]  # fmt: skip


@pytest.mark.parametrize(("response", "message"), REFUSALS)
def test_a_proxy_that_refuses_is_named(response: bytes, message: str) -> None:
    with Proxy(response) as proxy, pytest.raises(PeerUnreachable, match=message):
        CloudHttp("https://cloud.example", proxy=proxy.url).post("/x", {})


def test_a_silent_proxy_is_given_up_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimeoutError):
            connect_through(proxy, "cloud.example", 443, Deadline(0.2))


SETTINGS = [
    pytest.param('"http://proxy.example:3128/"', "http://proxy.example:3128", id="with a slash"),
    pytest.param('"http://[::1]:3128"', "http://[::1]:3128", id="an IPv6 address"),
    pytest.param('"https://proxy.example"', None, id="https to the proxy"),
    pytest.param('"http://me:pw@proxy.example"', None, id="with a password"),
    pytest.param('"proxy.example:3128"', None, id="no URL"),
    pytest.param('"http://proxy.example/x"', None, id="with a path"),
    pytest.param('"http://proxy.example:0"', None, id="port 0"),
    pytest.param('"http://proxy.example:99999"', None, id="no port"),
    pytest.param("3128", None, id="a number"),
]


@pytest.mark.parametrize(("written", "kept"), SETTINGS)
def test_the_key_cloud_proxy(tmp_path: Path, written: str, kept: str | None) -> None:
    file = tmp_path / "mcpboard.toml"
    file.write_text(f"[host]\ncloud_proxy = {written}\n", "utf-8")
    if kept is not None:
        assert host_config.load({"config": str(file)}, {}).cloud_proxy == kept
        return
    with pytest.raises(ConfigError, match="a proxy such as") as refused:
        host_config.load({"config": str(file)}, {})
    assert "pw" not in str(refused.value)


def test_without_the_key_there_is_no_proxy_whatever_the_environment_says() -> None:
    assert host_config.load({}, {"HTTPS_PROXY": "http://proxy.example:3128"}).cloud_proxy is None
