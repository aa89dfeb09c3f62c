"""The front page over the real server: what it says, to whom, and what it never says."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping

import pytest

from mcpboard.board import pages
from mcpboard.client_configs import CLIENT_CONFIGS
from mcpboard.errors import Refused
from tests.support import rig
from tests.support.http import Caller

SECRET = b"a-secret-of-the-board-itself"


def get(client: Caller, **headers: str) -> tuple[int, Mapping[str, str], str]:
    """Status, headers in lower case, and body of the page."""
    response = client.get("/", **headers)
    return response.status, response.headers, response.body.decode()


def test_the_page_holds_the_form_of_every_client_for_the_url_that_was_asked() -> None:
    with rig.in_front_of() as client:
        status, headers, page = get(client, Host="192.168.42.1:8090")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    for form in CLIENT_CONFIGS:
        assert f"<summary>{form.title}" in page
    assert html.unescape(page).count('"http://192.168.42.1:8090/mcp"') >= 8
    assert "<code>mcpboard connect CLIENT http://192.168.42.1:8090/mcp --write</code>" in page
    found = [html.unescape(text) for text in re.findall(r"<pre>(\{.*?)</pre>", page, re.DOTALL)]
    assert len(found) == sum(form.format == "json" for form in CLIENT_CONFIGS)
    assert all(json.loads(text) for text in found)


def test_the_switch_and_the_backends_are_told_as_they_are() -> None:
    with rig.in_front_of() as client:
        assert '<b class="on">on</b>' in get(client)[2]
        assert get(client)[2].count("not asked yet") == 2
        assert client.call("phone_bridge_status").is_error
        assert re.search(r"<dt>Agent</dt><dd><b class=\"failing\">failing</b> when last asked, \d", get(client)[2])
    with rig.in_front_of(mcp_enabled=False) as client:
        assert '<b class="off">off</b>' in get(client)[2]


def test_nothing_secret_is_on_the_page_and_no_token_is_asked_for_it() -> None:
    with rig.in_front_of(token=SECRET, token_file="/etc/mcpboard/token-of-the-board") as client:
        status, _, page = get(client)
    assert status == 200
    assert all(words in page for words in ("Bearer TOKEN", "PHONE_BOARD_TOKEN", " --write --token-file FILE</code>"))
    assert SECRET.decode() not in page
    assert "/etc/mcpboard" not in page


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


@pytest.mark.parametrize("host", ["192.168.42.1:8080", "192.168.42.1", "[fe80::1]:8080", "[::ffff:192.168.42.1]", "board.local:8080"])  # fmt: skip
def test_the_url_is_the_one_that_was_asked_by(host: str) -> None:
    assert pages.mcp_url(host) == f"http://{host}/mcp"


@pytest.mark.parametrize("host", [
    None, "", '"><script>alert(1)</script>', "192.168.42.1:8080, evil.example", "me@192.168.42.1", "192.168.42.1/path",
    "192.168.42.1:0", "192.168.42.1:65536", "[::1", "[:::]", "fe80::1", "192.168.42.1\n", "a" * 300, "١٩٢.168.42.1",
])  # fmt: skip
def test_a_host_that_is_no_address_is_refused(host: str | None) -> None:
    """So nothing from outside gets into the page."""
    with pytest.raises(Refused) as caught:
        pages.mcp_url(host)
    assert caught.value.status == 400
