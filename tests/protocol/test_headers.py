"""The ladder: rung by rung, and which rung speaks first when two things are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from mcpboard.errors import HeaderMismatch, InvalidEnvelope, ProtocolError, UnsupportedVersion
from mcpboard.protocol.headers import LOG_LEVEL_KEY, StandardHeaders, check, check_version, decoded_name
from mcpboard.protocol.jsonrpc import Request
from mcpboard.protocol.versions import KNOWN, LEGACY, MODERN, TOLERATED, RequestVersion, negotiate
from tests.protocol.http_messages import UNSENT, meta

UNKNOWN = "2099-01-01"


def climb(
    sent: StandardHeaders, method: str = "tools/list", envelope: Any = UNSENT, strict: bool = False, **params: Any
) -> RequestVersion:
    """Return what the ladder makes of a request with these headers and this `_meta`."""
    with_meta = params if envelope is UNSENT else {**params, "_meta": envelope}
    return check(sent, Request(1, method, with_meta), strict_meta=strict)


# --- rung 1: headers agree with each other and with the body -------------------------------

RUNG_1 = [
    pytest.param(StandardHeaders(), "tools/list", meta(), "Protocol-Version is missing", id="an envelope and no version header"),
    pytest.param(StandardHeaders(None, "x"), "x", {}, "Protocol-Version is missing", id="a method header and no version header"),
    pytest.param(StandardHeaders(MODERN, "x"), "x", meta(UNKNOWN), "but the body says '2099-01-01'", id="two versions"),
    pytest.param(StandardHeaders(), "x", meta(LEGACY), "Version is missing but the body", id="a legacy version in the body alone"),
    pytest.param(StandardHeaders(MODERN), "x", meta(), "Mcp-Method is missing", id="no method header"),
    pytest.param(StandardHeaders(MODERN, "y"), "x", meta(), "Mcp-Method is 'y' but the body says 'x'", id="two methods"),
    pytest.param(StandardHeaders(LEGACY, "y"), "x", {}, "Mcp-Method is 'y'", id="two methods in the legacy revision"),
    pytest.param(StandardHeaders(MODERN, "tools/call"), "tools/call", meta(), "Mcp-Name is missing", id="no name header"),
    pytest.param(StandardHeaders(MODERN, "tools/call", "x"), "tools/call", {}, "the body says missing", id="no name in the body"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "method", "envelope", "says"), RUNG_1)
def test_rung_1_headers_and_body_agree(sent: StandardHeaders, method: str, envelope: Any, says: str) -> None:
    with pytest.raises(HeaderMismatch, match=says) as caught:
        climb(sent, method, envelope)
    assert len(caught.value.message) < 250


@pytest.mark.parametrize("name", [None, 5, ["status"], {"a": 1}, True], ids=repr)
def test_rung_1_a_name_that_is_no_text_never_agrees(name: Any) -> None:
    with pytest.raises(HeaderMismatch):
        climb(StandardHeaders(MODERN, "tools/call", str(name)), "tools/call", name=name)


def test_rung_1_a_name_nested_beyond_all_printing_is_a_mismatch() -> None:
    name: Any = []
    for _ in range(100_000):
        name = [name]
    with pytest.raises(HeaderMismatch, match="the body says no text"):
        climb(StandardHeaders(MODERN, "tools/call", "x"), "tools/call", name=name)


SENTINELS = [
    pytest.param("status", "status", id="a plain name"),
    pytest.param("", "", id="an empty value"),
    pytest.param("=?base64?dMO2w7Zs?=", "t\u00f6\u00f6l", id="letters beyond ASCII"),
    pytest.param("=?base64?IGEg?=", " a ", id="spaces around"),
    pytest.param("=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?x?=", id="a name that looks encoded"),
    pytest.param("=?base64??=", "", id="an empty name"),
    pytest.param("=?base64?AA==?=", "\x00", id="a control character"),
    pytest.param("=?BASE64?dMO2w7Zs?=", "=?BASE64?dMO2w7Zs?=", id="a shouted prefix is literal"),
    pytest.param("=?Base64?YQ==?=", "=?Base64?YQ==?=", id="a capital in the prefix is literal"),
    pytest.param("=?base64?YQ==", "=?base64?YQ==", id="no suffix is literal"),
    pytest.param("YQ==?=", "YQ==?=", id="no prefix is literal"),
    pytest.param("=?base64?=", "=?base64?=", id="a prefix that runs into its suffix is literal"),
    pytest.param(" =?base64?YQ==?=", " =?base64?YQ==?=", id="a space before the prefix is literal"),
    pytest.param("=?utf-8?YQ==?=", "=?utf-8?YQ==?=", id="another encoding is literal"),
]


@pytest.mark.parametrize(("value", "name"), SENTINELS)
def test_rung_1_the_name_header_is_decoded(value: str, name: str) -> None:
    assert decoded_name(value) == name
    assert climb(StandardHeaders(MODERN, "tools/call", value), "tools/call", name=name).modern


UNDECODABLE = {
    "no padding": "SGVsbG8",
    "half the padding": "YQ=",
    "too much padding": "YWJj=",
    "padding alone": "==",
    "a sign outside the alphabet": "SGVs!G8=",
    "a space inside": "SGVs bG8=",
    "a line break inside": "SGVs\nbG8=",
    "the alphabet of URLs": "_-8=",
    "bits that are left over": "YR==",
    "no UTF-8": "/w==",
    "half a surrogate pair": "7aC9",
    "letters beyond ASCII": "\u00e9\u00e9\u00e9\u00e9",
}


@pytest.mark.parametrize("payload", UNDECODABLE.values(), ids=UNDECODABLE)
def test_rung_1_a_badly_encoded_name_is_a_mismatch(payload: str) -> None:
    with pytest.raises(HeaderMismatch, match="well-formed"):
        decoded_name(f"=?base64?{payload}?=")


# --- rung 2: the version is one we speak ---------------------------------------------------


@pytest.mark.parametrize("version", [None, *sorted(KNOWN)])
def test_rung_2_known_versions_pass(version: str | None) -> None:
    check_version(version)


@pytest.mark.parametrize("version", [UNKNOWN, "", "v1", "2026-07-28 ", "2026-07-28, 2026-07-28", "\ud83d", "x" * 9_000])
def test_rung_2_an_unknown_version_is_told_what_is_spoken(version: str) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        climb(StandardHeaders(version))
    assert caught.value.data == {"supported": [MODERN, LEGACY], "requested": version}
    assert len(caught.value.message) < 200


# --- rung 3: the envelope is whole ---------------------------------------------------------

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.mark.parametrize("level", LEVELS)
def test_rung_3_the_eight_log_levels_pass(level: str) -> None:
    assert climb(StandardHeaders(MODERN, "tools/list"), envelope=meta(**{LOG_LEVEL_KEY: level})).enveloped


@pytest.mark.parametrize(
    "extra", [{LOG_LEVEL_KEY: "loud"}, {"io.modelcontextprotocol/clientInfo": 5}], ids=["level", "client"]
)
def test_rung_3_the_optional_keys_are_judged_in_modern_traffic_alone(extra: dict[str, Any]) -> None:
    """Also by header alone; a legacy request may put there what it likes."""
    with pytest.raises(InvalidEnvelope):
        climb(StandardHeaders(MODERN), envelope=extra)
    with pytest.raises(InvalidEnvelope):
        climb(StandardHeaders(LEGACY), envelope=meta(LEGACY, **extra))
    assert not climb(StandardHeaders(LEGACY), envelope=extra).modern
    assert not climb(StandardHeaders(), envelope=extra).modern


def test_rung_3_capabilities_count_only_beside_a_version() -> None:
    """Without one nobody looked at their type, so a tool must not get to see them."""
    assert climb(StandardHeaders(MODERN, "x"), "x", meta(capabilities={"sampling": {}})).capabilities == {
        "sampling": {}
    }
    assert climb(StandardHeaders(LEGACY), "x", meta(LEGACY, {"sampling": {}})).capabilities == {"sampling": {}}
    assert climb(StandardHeaders(LEGACY), "x", meta(None, "anything")).capabilities == {}
    assert climb(StandardHeaders(), "x", meta(None, {"sampling": {}})).capabilities == {}


# --- which rung speaks first ---------------------------------------------------------------

PRECEDENCE = [
    pytest.param(StandardHeaders(MODERN, "x"), meta("v999.0.0"), HeaderMismatch, id="two versions, one of them unknown"),
    pytest.param(StandardHeaders(UNKNOWN, "y"), {}, HeaderMismatch, id="two methods and an unknown version"),
    pytest.param(StandardHeaders(MODERN, "y"), meta(capabilities=None), HeaderMismatch, id="two methods and no capabilities"),
    pytest.param(StandardHeaders(MODERN, "y"), "x", HeaderMismatch, id="two methods and a _meta that is text"),
    pytest.param(StandardHeaders(MODERN, "y"), meta(5), HeaderMismatch, id="two methods and a version that is a number"),
    pytest.param(StandardHeaders(UNKNOWN), "x", UnsupportedVersion, id="an unknown version and a _meta that is text"),
    pytest.param(StandardHeaders(UNKNOWN), meta(UNKNOWN, None), UnsupportedVersion, id="an unknown version and no capabilities"),
    pytest.param(StandardHeaders(UNKNOWN), meta(5), UnsupportedVersion, id="an unknown header and a version that is a number"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "envelope", "expected"), PRECEDENCE)
def test_the_lower_rung_speaks_first(sent: StandardHeaders, envelope: Any, expected: type[ProtocolError]) -> None:
    with pytest.raises(ProtocolError) as caught:
        climb(sent, "x", envelope)
    assert type(caught.value) is expected


# --- what passes ---------------------------------------------------------------------------

PASSES = [
    pytest.param(StandardHeaders(), UNSENT, RequestVersion(False, False, None), id="nothing at all"),
    pytest.param(StandardHeaders(), {}, RequestVersion(False, False, None), id="an empty _meta"),
    pytest.param(StandardHeaders(LEGACY), UNSENT, RequestVersion(False, False, LEGACY), id="the legacy header"),
    pytest.param(StandardHeaders(LEGACY, "x"), UNSENT, RequestVersion(False, False, LEGACY), id="the legacy header and the method"),
    pytest.param(StandardHeaders(LEGACY), meta(LEGACY), RequestVersion(False, False, LEGACY), id="an enveloped legacy request"),
    pytest.param(StandardHeaders(MODERN), UNSENT, RequestVersion(True, False, MODERN), id="the modern header alone"),
    pytest.param(StandardHeaders(MODERN, "x"), UNSENT, RequestVersion(True, False, MODERN), id="both modern headers"),
    pytest.param(StandardHeaders(MODERN, "x", "junk"), meta(), RequestVersion(True, True, MODERN), id="a whole modern request"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "envelope", "version"), PASSES)
def test_the_revision_is_decided_by_the_request_alone(
    sent: StandardHeaders, envelope: Any, version: RequestVersion
) -> None:
    assert climb(sent, "x", envelope) == version


STRICT = [
    pytest.param(StandardHeaders(MODERN), UNSENT, HeaderMismatch, id="the modern header alone"),
    pytest.param(StandardHeaders(MODERN), meta(None), HeaderMismatch, id="the modern header and capabilities"),
    pytest.param(StandardHeaders(MODERN, "x"), UNSENT, InvalidEnvelope, id="both headers and no _meta"),
    pytest.param(StandardHeaders(MODERN, "x"), {"progressToken": 1}, InvalidEnvelope, id="both headers and a progress token"),
    pytest.param(StandardHeaders(MODERN, "x"), meta(), None, id="a whole modern request"),
    pytest.param(StandardHeaders(LEGACY), UNSENT, None, id="the legacy header"),
    pytest.param(StandardHeaders("2025-03-26"), {}, None, id="an older header"),
    pytest.param(StandardHeaders(), UNSENT, None, id="nothing at all"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "envelope", "expected"), STRICT)
def test_strict_meta_wants_the_whole_envelope_of_modern_traffic(
    sent: StandardHeaders, envelope: Any, expected: type[ProtocolError] | None
) -> None:
    if expected is None:
        climb(sent, "x", envelope, strict=True)
    else:
        with pytest.raises(expected):
            climb(sent, "x", envelope, strict=True)


@pytest.mark.parametrize("version", [None, MODERN, LEGACY, UNKNOWN, "", "banana"])
@pytest.mark.parametrize("strict", [False, True])
def test_the_header_of_a_plain_handshake_is_not_judged(version: str | None, strict: bool) -> None:
    assert climb(StandardHeaders(version), "initialize", strict=strict) == RequestVersion(False, False, version)


NEGOTIATED = [
    *(pytest.param(version, (), version, id=f"offered {version}") for version in (MODERN, LEGACY)),
    *(pytest.param(version, (), LEGACY, id=f"older {version}") for version in TOLERATED),
    *(pytest.param(word, (), LEGACY, id=f"unknown {word!r}") for word in (UNKNOWN, "banana", "")),
    pytest.param("2025-06-18", {"2025-06-18"}, "2025-06-18", id="an older one that the role echoes"),
    pytest.param("2025-03-26", {"2025-06-18"}, LEGACY, id="an older one that the role does not echo"),
]


@pytest.mark.parametrize(("asked", "echoed", "answer"), NEGOTIATED)
def test_initialize_settles_on_a_version(asked: str, echoed: set[str], answer: str) -> None:
    assert negotiate(asked, echoed) == answer
