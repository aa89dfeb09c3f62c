"""Names in headers, and what else the ladder of the modern revision does that no row of the table shows."""

from __future__ import annotations

from typing import Any

import pytest

from mcpboard.errors import HeaderMismatch
from mcpboard.protocol.headers import StandardHeaders, check, decoded_name, encoded_name
from mcpboard.protocol.jsonrpc import Request
from mcpboard.protocol.versions import LEGACY, MODERN, RequestVersion
from tests.protocol.http_messages import meta

# Mcp-Name -> the name of the tool.
NAMES = {
    "status": "status",
    "": "",
    "=?base64?dMO2w7Zs?=": "t\u00f6\u00f6l",
    "=?base64?IGEg?=": " a ",
    "=?base64?PT9iYXNlNjQ/eD89?=": "=?base64?x?=",
    "=?base64??=": "",
    "=?base64?AA==?=": "\x00",
    # Not quite the form of an encoded name, so literal.
    **{literal: literal for literal in ("=?BASE64?YQ==?=", "=?Base64?YQ==?=", "=?base64?YQ==", "YQ==?=", "=?base64?=", " =?base64?YQ==?=", "=?utf-8?YQ==?=")},
}  # fmt: skip


@pytest.mark.parametrize(("value", "name"), NAMES.items(), ids=ascii)
def test_the_name_header_is_decoded(value: str, name: str) -> None:
    assert decoded_name(value) == name


# Padding that is missing or too much, foreign signs and alphabets, left-over bits, no UTF-8, half a surrogate pair.
UNDECODABLE = [
    "SGVsbG8",
    "YQ=",
    "YWJj=",
    "==",
    "SGVs!G8=",
    "SGVs bG8=",
    "SGVs\nbG8=",
    "_-8=",
    "YR==",
    "/w==",
    "7aC9",
    "\u00e9" * 4,
]


@pytest.mark.parametrize("payload", UNDECODABLE, ids=ascii)
def test_a_badly_encoded_name_is_a_mismatch(payload: str) -> None:
    with pytest.raises(HeaderMismatch, match="well-formed"):
        decoded_name(f"=?base64?{payload}?=")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        *((name, True) for name in ("screenshot", "a b", "=?base64?x")),
        *((name, False) for name in ("", "a\tb", "\u624b\u673a", " a ", "=?base64??=")),
    ],
    ids=ascii,
)
def test_names_are_encoded_only_where_a_header_needs_it(name: str, plain: bool) -> None:
    assert (encoded_name(name) == name) is plain
    assert decoded_name(encoded_name(name)) == name


@pytest.mark.parametrize(
    ("sent", "envelope", "version"),
    [
        (StandardHeaders(), {}, RequestVersion(False, False, None)),
        (StandardHeaders(), meta(None, {"sampling": {}}), RequestVersion(False, False, None)),
        (StandardHeaders(LEGACY, "x"), {}, RequestVersion(False, False, LEGACY)),
        (StandardHeaders(LEGACY), meta(None, "anything"), RequestVersion(False, False, LEGACY)),
        (StandardHeaders(LEGACY), meta(LEGACY, {"sampling": {}}), RequestVersion(False, False, LEGACY, {"sampling": {}})),
        (StandardHeaders(MODERN), {}, RequestVersion(True, False, MODERN)),
        (StandardHeaders(MODERN, "x"), meta(capabilities={"a": {}}), RequestVersion(True, True, MODERN, {"a": {}})),
    ],
)  # fmt: skip
def test_capabilities_count_only_beside_a_version(sent: StandardHeaders, envelope: Any, version: RequestVersion) -> None:  # fmt: skip
    """Without one nobody looked at their type, so a tool must not get to see them."""
    assert check(sent, Request(1, "x", {"_meta": envelope})) == version
