"""Requests are let in by their head: no spelling of an authority in doubt, and the exact bearer token."""

from __future__ import annotations

import pytest

from mcpboard.net import parse_authority
from mcpboard.protocol.access import is_one_of, same_origin
from tests.protocol.http_messages import head, message
from tests.protocol.roles import HOST, Role

# Authorities of no address, each a trick that somebody once fell for.
JUNK = [
    # Names, and what looks like an address or localhost at one end of them.
    *("", "evil.example:8080", "127.0.0.1.nip.io:8080", "localhost.evil.example", "foo.localhost", "board.local"),
    *("192.168.42.1.evil.example", "127.0.0.1:8080.evil.example", "127.0.0.1.:8080", "localhost.:8080"),
    # Ports that are none.
    *("127.0.0.1:evil", "127.0.0.1:0x1f90", "127.0.0.1:+8080", "127.0.0.1:8e3", "127.0.0.1:", "127.0.0.1:80:80"),
    *("127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:008080"),
    # Digits, colons and letters of other scripts, the dotless i and the Kelvin sign among them.
    *("127.0.0.1\uff1a8080", "127.0.0.1:\u0668\u0660\u0668\u0660", "\u0661\u0662\u0667.0.0.1", "\uff11\uff12\uff17.0.0.1"),
    *("local\u0131host", "loca\u212ahost"),
    # User info.
    *("u@127.0.0.1:8080", "u:p@127.0.0.1"),
    # Numbers that some programs take for an address.
    *("0177.0.0.1", "127.0.0.01", "2130706433", "0x7f000001", "0x7f.0.0.1", "127.1", "127.0.0.256", "127.0.0.0.1"),
    # Something before or behind.
    *(" 127.0.0.1", "127.0.0.1 ", "127.0.0.1\n", "127.0.0.1/", "127.0.0.1:8080, 127.0.0.1:8080", "127.0.0.1%00", "127.0.0.1\x00"),
    # Brackets, zones and groups of IPv6.
    *("::1", "[::1", "::1]:8080", "[[::1]]", "[]", "[evil.example]", "[v1.x]", "[127.0.0.1]", "[127.0.0.1]x"),
    *("[fe80::1%usb0]", "[fe80::1%25usb0]:8080", "[1:2:3:4:5:6:7:8:9]", "[::1::]"),
]  # fmt: skip


@pytest.mark.parametrize("text", JUNK, ids=ascii)
def test_anything_but_an_address_is_no_authority_and_no_origin(text: str) -> None:
    """Both headers agree, and still it is refused: an equal spelling proves nothing."""
    assert parse_authority(text) is None
    assert not same_origin(f"http://{text}", text)
    assert not same_origin(f"https://{text}", "127.0.0.1:8080")
    assert not same_origin("http://127.0.0.1:8080", text)


GOOD = ["Bearer token-a", "bearer token-a", "BEARER token-a", "Bearer   token-a", "Bearer token-a "]
BAD = [
    *("Bearer\ttoken-a", "Bearer \ttoken-a", 'Bearer "token-a"', "Bearer TOKEN-A", "Bearer token-", "Bearer token-a1"),
    *("Bearer token-a token-b", "Bearer token-a, Bearer token-a", "Basic token-a", "token-a", "Bearer", "Bearer "),
    *(" Bearer token-a", "", None, "Bearer t\u014dken-a", "Bearer t\u00f6ken-a"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "status"), [*((sent, 200) for sent in GOOD), *((sent, 401) for sent in BAD)])
def test_the_token_is_exact_and_its_scheme_is_not(sent: str | None, status: int) -> None:
    assert Role(HOST).post(head(authorization=sent), message("ping")).status == status


def test_a_token_is_one_of_the_known_ones_wherever_it_stands_and_an_empty_one_never() -> None:
    known = [b"a", b"b", b"c", b""]
    assert [is_one_of(token, known) for token in (b"a", b"b", b"c", b"d", b"", None)] == [True] * 3 + [False] * 3
    assert not is_one_of(b"a", [])
