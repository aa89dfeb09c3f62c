"""The front page over the real server: what it says, to whom, and what it never says."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from mcpboard.board import pages
from mcpboard.client_configs import CLIENT_CONFIGS
from mcpboard.errors import Refused
from tests.support import rig
from tests.support.http import Caller

SECRET = b"a-secret-of-the-board-itself"


def get(client: Caller, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, Mapping[str, str], str]:
    """Status, headers in lower case, and body of one request."""
    response = client.send(method, b"", path, **headers)
    return response.status, response.headers, response.body.decode()


def test_the_page_holds_the_form_of_every_client_for_the_url_that_was_asked() -> None:
    with rig.in_front_of() as client:
        status, headers, page = get(client, Host="192.168.42.1:8090")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    for form in CLIENT_CONFIGS:
        assert f"<summary>{form.title}" in page
    said = html.unescape(page)
    assert said.count('"http://192.168.42.1:8090/mcp"') >= 8
    assert "192.168.42.1:8080" not in said


def test_each_json_form_on_the_page_is_json() -> None:
    with rig.in_front_of() as client:
        page = get(client, Host="192.168.42.1:8080")[2]
    found = [html.unescape(text) for text in re.findall(r"<pre>(\{.*?)</pre>", page, re.DOTALL)]
    assert len(found) == sum(form.format == "json" for form in CLIENT_CONFIGS)
    assert all(json.loads(text) for text in found)


@pytest.mark.parametrize(("fields", "words"), [
    pytest.param({}, '<b class="on">on</b>', id="on"),
    pytest.param({"mcp_enabled": False}, '<b class="off">off</b>', id="off"),
])  # fmt: skip
def test_the_switch_is_told(fields: Mapping[str, Any], words: str) -> None:
    with rig.in_front_of(**fields) as client:
        assert words in get(client)[2]


def test_the_backends_are_told_as_last_seen() -> None:
    with rig.in_front_of() as client:
        assert get(client)[2].count("not asked yet") == 2
        assert client.call("phone_bridge_status").is_error
        assert re.search(r"<dt>Agent</dt><dd><b class=\"failing\">failing</b> when last asked, \d", get(client)[2])


def test_nothing_secret_is_on_the_page_and_no_token_is_asked_for_it() -> None:
    with rig.in_front_of(token=SECRET, token_file="/etc/mcpboard/token-of-the-board") as client:
        status, _, page = get(client)
    assert status == 200
    assert "Bearer TOKEN" in page
    assert "PHONE_BOARD_TOKEN" in page
    assert SECRET.decode() not in page
    assert "/etc/mcpboard" not in page


@pytest.mark.parametrize(
    ("fields", "flag"),
    [pytest.param({}, "", id="an open board"), pytest.param({"token": SECRET}, " --token-file FILE", id="a token")],
)
def test_the_command_that_writes_a_form_is_for_this_very_board(fields: Mapping[str, Any], flag: str) -> None:
    with rig.in_front_of(**fields) as client:
        page = get(client, Host="192.168.42.1:8090")[2]
    command = f"mcpboard connect CLIENT http://192.168.42.1:8090/mcp --write{flag}"
    assert f"<code>{command}</code>" in page


def test_no_script_and_nothing_from_elsewhere_can_run() -> None:
    with rig.in_front_of() as client:
        _, headers, page = get(client)
    assert not re.search(r"<script|<link|<img|<iframe|\son[a-z]+=|\ssrc=|\shref=|\sstyle=", page)
    policy = headers["content-security-policy"]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style
    assert base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert 'name="viewport"' in page


@pytest.mark.parametrize(("method", "headers", "status"), [
    pytest.param("GET", {}, 200, id="a browser that opens the page"),
    pytest.param("HEAD", {}, 200, id="HEAD"),
    pytest.param("POST", {}, 405, id="POST"),
    pytest.param("DELETE", {}, 405, id="DELETE"),
    pytest.param("GET", {"Origin": "http://192.168.42.1:8080", "Host": "192.168.42.1:8080"}, 200, id="the same origin"),
    pytest.param("GET", {"Origin": "http://evil.example"}, 403, id="a page of another site"),
    pytest.param("GET", {"Origin": "null"}, 403, id="a page without an origin"),
])  # fmt: skip
def test_who_may_read_the_page(method: str, headers: Mapping[str, str], status: int) -> None:
    with rig.in_front_of() as client:
        found, fields, body = get(client, method=method, **headers)
    assert found == status
    assert (body == "") == (method == "HEAD")
    assert ("allow" in fields) == (status == 405)


@pytest.mark.parametrize(("host", "url"), [
    pytest.param("192.168.42.1:8080", "http://192.168.42.1:8080/mcp", id="an address with its port"),
    pytest.param("192.168.42.1", "http://192.168.42.1/mcp", id="port 80"),
    pytest.param("[fe80::1]:8080", "http://[fe80::1]:8080/mcp", id="IPv6"),
    pytest.param("[::ffff:192.168.42.1]", "http://[::ffff:192.168.42.1]/mcp", id="a mapped address"),
    pytest.param("board.local:8080", "http://board.local:8080/mcp", id="a name"),
])  # fmt: skip
def test_the_url_is_the_one_that_was_asked_by(host: str, url: str) -> None:
    assert pages.mcp_url(host) == url


@pytest.mark.parametrize("host", [
    pytest.param(None, id="none"),
    pytest.param("", id="an empty one"),
    pytest.param('"><script>alert(1)</script>', id="markup"),
    pytest.param("192.168.42.1:8080, evil.example", id="two of them"),
    pytest.param("me@192.168.42.1", id="user info"),
    pytest.param("192.168.42.1/path", id="a path"),
    pytest.param("192.168.42.1:0", id="port 0"),
    pytest.param("192.168.42.1:65536", id="a port beyond all"),
    pytest.param("[::1", id="half a bracket"),
    pytest.param("[:::]", id="no IPv6"),
    pytest.param("fe80::1", id="IPv6 without brackets"),
    pytest.param("192.168.42.1\n", id="a line break"),
    pytest.param("a" * 300, id="a name too long"),
    pytest.param("١٩٢.168.42.1", id="digits of another script"),
])  # fmt: skip
def test_a_host_that_is_no_address_is_refused(host: str | None) -> None:
    with pytest.raises(Refused) as caught:
        pages.mcp_url(host)
    assert caught.value.status == 400


def test_a_page_that_the_browser_has_already_is_not_sent_again() -> None:
    with rig.in_front_of() as client:
        host = "192.168.42.1:8080"
        _, headers, _ = get(client, Host=host)
        again = get(client, Host=host, **{"If-None-Match": headers["etag"]})
        changed = get(client, Host="192.168.42.1:8090", **{"If-None-Match": headers["etag"]})
    assert (again[0], again[2]) == (304, "")
    assert changed[0] == 200
