"""Requests are let in by their head: the same-origin rule in every spelling, on every path, and the bearer token."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from mcpboard.net import parse_authority
from mcpboard.protocol.access import bearer, is_one_of, same_origin
from tests.protocol.http_messages import head, message
from tests.protocol.roles import HOST, POLICIES, PRINCIPALS, Role

# Authorities that are an address or localhost, and what they mean.
READABLE = [
    ("127.0.0.1", (IPv4Address("127.0.0.1"), None)),
    ("127.0.0.1:8080", (IPv4Address("127.0.0.1"), 8080)),
    ("0.0.0.0:8080", (IPv4Address("0.0.0.0"), 8080)),
    ("127.0.0.1:1", (IPv4Address("127.0.0.1"), 1)),
    ("127.0.0.1:65535", (IPv4Address("127.0.0.1"), 65535)),
    ("localhost", ("localhost", None)),
    ("LocalHost:80", ("localhost", 80)),
    ("[::1]", (IPv6Address("::1"), None)),
    ("[::1]:8080", (IPv6Address("::1"), 8080)),
    ("[0:0:0:0:0:0:0:1]:8080", (IPv6Address("::1"), 8080)),
    ("[FE80::ABcd]", (IPv6Address("fe80::abcd"), None)),
    ("[::ffff:192.168.42.1]:8080", (IPv6Address("::ffff:c0a8:2a01"), 8080)),
]

# Authorities of no address, each a trick that somebody once fell for.
JUNK = {
    "nothing": "",
    "a name": "evil.example:8080",
    "an address as the start of a name": "127.0.0.1.nip.io:8080",
    "localhost as the start of a name": "localhost.evil.example",
    "localhost as the end of a name": "foo.localhost",
    "a name under .local": "board.local",
    "our address as the start of a name": "192.168.42.1.evil.example",
    "a name behind the port": "127.0.0.1:8080.evil.example",
    "a word as port": "127.0.0.1:evil",
    "a hexadecimal port": "127.0.0.1:0x1f90",
    "a port with a sign": "127.0.0.1:+8080",
    "a port with an exponent": "127.0.0.1:8e3",
    "a bare colon": "127.0.0.1:",
    "two ports": "127.0.0.1:80:80",
    "port nought": "127.0.0.1:0",
    "a port beyond the last": "127.0.0.1:65536",
    "a port of five nines": "127.0.0.1:99999",
    "a port of six digits": "127.0.0.1:008080",
    "a full-width colon": "127.0.0.1\uff1a8080",
    "Arabic digits as port": "127.0.0.1:\u0668\u0660\u0668\u0660",
    "Arabic digits as address": "\u0661\u0662\u0667.0.0.1",
    "full-width digits": "\uff11\uff12\uff17.0.0.1",
    "user info": "u@127.0.0.1:8080",
    "user info with a password": "u:p@127.0.0.1",
    "a dot at the end of an address": "127.0.0.1.:8080",
    "a dot at the end of localhost": "localhost.:8080",
    "an octal part": "0177.0.0.1",
    "a leading nought": "127.0.0.01",
    "one number": "2130706433",
    "one hexadecimal number": "0x7f000001",
    "hexadecimal parts": "0x7f.0.0.1",
    "a short spelling": "127.1",
    "a part beyond the last": "127.0.0.256",
    "five parts": "127.0.0.0.1",
    "a space before": " 127.0.0.1",
    "a space after": "127.0.0.1 ",
    "a line break after": "127.0.0.1\n",
    "a slash after": "127.0.0.1/",
    "two addresses joined": "127.0.0.1:8080, 127.0.0.1:8080",
    "an IPv6 address without brackets": "::1",
    "an open bracket": "[::1",
    "a closing bracket alone": "::1]:8080",
    "double brackets": "[[::1]]",
    "empty brackets": "[]",
    "a name in brackets": "[evil.example]",
    "a future address": "[v1.x]",
    "an IPv4 address in brackets": "[127.0.0.1]",
    "something behind the bracket": "[127.0.0.1]x",
    "a zone id": "[fe80::1%usb0]",
    "an encoded zone id": "[fe80::1%25usb0]:8080",
    "nine groups": "[1:2:3:4:5:6:7:8:9]",
    "two gaps": "[::1::]",
    "a percent sign": "127.0.0.1%00",
    "a NUL": "127.0.0.1\x00",
    "a dotless i": "local\u0131host",
    "the Kelvin sign": "loca\u212ahost",
}


@pytest.mark.parametrize(("text", "meaning"), READABLE, ids=[text for text, _ in READABLE])
def test_an_address_or_localhost_is_read(text: str, meaning: object) -> None:
    assert parse_authority(text) == meaning


@pytest.mark.parametrize("text", JUNK.values(), ids=JUNK)
def test_anything_else_is_no_authority_and_no_origin(text: str) -> None:
    """Both headers agree, and still it is refused: an equal spelling proves nothing."""
    assert parse_authority(text) is None
    assert not same_origin(f"http://{text}", text)
    assert not same_origin(f"https://{text}", "127.0.0.1:8080")
    assert not same_origin("http://127.0.0.1:8080", text)


OWN = "192.168.42.1:8080"
ACCEPTED = {
    "no Origin": (None, OWN),
    "no Origin and a name": (None, "board.lan:8080"),
    "no Origin and no port": (None, "192.168.42.1"),
    "no Origin and junk": (None, "127.0.0.1:evil"),
    "no Origin and an empty Host": (None, ""),
    "no Origin and no Host": (None, None),
    "the same address and port": (f"http://{OWN}", OWN),
    "the scheme is not compared": (f"https://{OWN}", OWN),
    "no port on either side": ("http://192.168.42.1", "192.168.42.1"),
    "the default port in Host": ("http://192.168.42.1", "192.168.42.1:80"),
    "the default port in Origin": ("http://192.168.42.1:80", "192.168.42.1"),
    "no port on either side of https": ("https://192.168.42.1", "192.168.42.1"),
    "the default port of https in Host": ("https://192.168.42.1", "192.168.42.1:443"),
    "localhost": ("http://localhost:8080", "localhost:8080"),
    "LOCALHOST": ("http://LOCALHOST:8080", "localhost:8080"),
    "HTTP in capitals": ("HTTP://localhost:8080", "localhost:8080"),
    "IPv6": ("http://[::1]:8080", "[::1]:8080"),
    "IPv6 spelt out": ("http://[::1]:8080", "[0:0:0:0:0:0:0:1]:8080"),
    "IPv6 without a port": ("http://[::1]", "[::1]:80"),
    "IPv6 in both cases": ("http://[FE80::AB]:8080", "[fe80::ab]:8080"),
    "mapped IPv4 on both sides": ("http://[::ffff:192.168.42.1]:8080", "[::ffff:c0a8:2a01]:8080"),
    "the address of all interfaces": ("http://0.0.0.0:8080", "0.0.0.0:8080"),
}
REFUSED = {
    "a rebound name": ("http://evil.example:8080", "evil.example:8080"),
    "another site": ("https://evil.example", OWN),
    "another address": ("http://192.168.42.2:8080", OWN),
    "another port": ("http://192.168.42.1:9090", OWN),
    "loopback against the address": ("http://127.0.0.1:8080", OWN),
    "localhost against loopback": ("http://localhost:8080", "127.0.0.1:8080"),
    "the default port of the other scheme": ("https://192.168.42.1", "192.168.42.1:80"),
    "http on the port of https": ("http://192.168.42.1", "192.168.42.1:443"),
    "a default port against ours": ("http://192.168.42.1", OWN),
    "the opaque origin": ("null", "null"),
    "an empty Origin": ("", ""),
    "an Origin of one space": (" ", OWN),
    "a file": ("file://", OWN),
    "a file of this address": (f"file://{OWN}", OWN),
    "a browser extension": ("chrome-extension://abcdef", "abcdef"),
    "another browser's extension": ("moz-extension://x", OWN),
    "an editor's web view": ("vscode-webview://x", OWN),
    "a web socket": (f"ws://{OWN}", OWN),
    "a scheme without a host": ("http://", ""),
    "no scheme but slashes": (f"//{OWN}", OWN),
    "no scheme": (OWN, OWN),
    "a star": ("*", "*"),
    "a longer scheme": (f"xhttp://{OWN}", OWN),
    "a long s in the scheme": (f"http\u017f://{OWN}", OWN),
    "a slash at the end": (f"http://{OWN}/", OWN),
    "a path": (f"http://{OWN}/mcp", OWN),
    "a query": (f"http://{OWN}?x", OWN),
    "a fragment": (f"http://{OWN}#x", OWN),
    "a line break at the end": (f"http://{OWN}\n", OWN),
    "a backslash": (f"http:\\\\{OWN}", OWN),
    "two Origins joined": (f"http://{OWN}, http://{OWN}", OWN),
    "two Hosts joined": (f"http://{OWN}", f"{OWN}, {OWN}"),
    "no Host": (f"http://{OWN}", None),
    "an empty Host": (f"http://{OWN}", ""),
    "mapped IPv4 against plain": ("http://[::ffff:192.168.42.1]:8080", OWN),
    "plain IPv4 against mapped": (f"http://{OWN}", "[::ffff:192.168.42.1]:8080"),
    "a foreign page on the address of all interfaces": ("http://evil.example", "0.0.0.0:8080"),
}


@pytest.mark.parametrize(("origin", "host"), ACCEPTED.values(), ids=ACCEPTED)
def test_this_origin_is_ours(origin: str | None, host: str | None) -> None:
    assert same_origin(origin, host)


@pytest.mark.parametrize(("origin", "host"), REFUSED.values(), ids=REFUSED)
def test_this_origin_is_refused(origin: str, host: str | None) -> None:
    assert not same_origin(origin, host)


METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]


@pytest.mark.parametrize("policy", ["board", "host"])
def test_a_foreign_page_is_refused_by_every_method(policy: str) -> None:
    """Before method and token are looked at, and without an id."""
    for origin, host in REFUSED.values():
        for method in METHODS:
            got = Role(POLICIES[policy]).post(head(http=method, origin=origin, host=host), message("ping"))
            assert (got.status, got.code) == (403, -32600)
            assert "id" not in got.json


@pytest.mark.parametrize("policy", ["board", "host"])
def test_an_origin_of_ours_gets_through_to_the_next_gate(policy: str) -> None:
    for origin, host in ACCEPTED.values():
        assert Role(POLICIES[policy]).post(head(http="GET", origin=origin, host=host)).status == 405


def test_mcp_is_switched_off_before_the_origin_counts() -> None:
    assert Role(POLICIES["board that is off"]).post(head(origin="null"), message("ping")).status == 404


# --- the token ---

TOKENS = {
    "as it should be": ("Bearer token-a", True),
    "a small scheme": ("bearer token-a", True),
    "a shouted scheme": ("BEARER token-a", True),
    "more spaces": ("Bearer   token-a", True),
    "a space at the end": ("Bearer token-a ", True),
    "a tab between": ("Bearer\ttoken-a", False),
    "a tab behind a space": ("Bearer \ttoken-a", False),
    "quotes": ('Bearer "token-a"', False),
    "the token in capitals": ("Bearer TOKEN-A", False),
    "half the token": ("Bearer token-", False),
    "more than the token": ("Bearer token-a1", False),
    "two tokens": ("Bearer token-a token-b", False),
    "two headers joined": ("Bearer token-a, Bearer token-a", False),
    "another scheme": ("Basic token-a", False),
    "no scheme": ("token-a", False),
    "no token": ("Bearer", False),
    "an empty token": ("Bearer ", False),
    "a leading space": (" Bearer token-a", False),
    "an empty header": ("", False),
    "no header": (None, False),
    "letters beyond Latin-1": ("Bearer t\u014dken-a", False),
    "letters of Latin-1": ("Bearer t\u00f6ken-a", False),
}


@pytest.mark.parametrize(("sent", "passes"), TOKENS.values(), ids=TOKENS)
def test_the_token_is_exact_and_its_scheme_is_not(sent: str | None, passes: bool) -> None:
    assert is_one_of(bearer(sent), PRINCIPALS) is passes
    got = Role(HOST).post(head(authorization=sent), message("ping"))
    assert got.status == (200 if passes else 401)
    if not passes:
        assert (got.body, got.headers) == (b'{"error": "invalid token"}', {"WWW-Authenticate": "Bearer"})


@pytest.mark.parametrize(
    "known", [[], [b""], [b"", b"token-a"]], ids=["no token", "an empty token", "an empty one first"]
)
def test_an_empty_token_matches_nothing(known: list[bytes]) -> None:
    assert not is_one_of(b"", known)
    assert not is_one_of(None, known)


def test_every_known_token_is_found_wherever_it_stands() -> None:
    assert all(is_one_of(token, [b"a", b"b", b"c"]) for token in (b"a", b"b", b"c"))
    assert not is_one_of(b"d", [b"a", b"b", b"c"])
