"""The protocol revisions: which are spoken, which are tolerated, and what `initialize` settles on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

MODERN = "2026-07-28"  # stateless: every request carries its own version
LEGACY = "2025-11-25"  # the `initialize` handshake

# Advertised by server/discover and in every -32022, newest first.
SUPPORTED = (MODERN, LEGACY)

# Served as legacy because a POST looks the same, never advertised because they once implied batching.
TOLERATED = ("2025-06-18", "2025-03-26", "2024-11-05")

KNOWN = frozenset(SUPPORTED + TOLERATED)


def negotiate(requested: str, echoed: Collection[str] = ()) -> str:
    """Return the version that `initialize` settles on: the requested one when we offer it, else the legacy one.

    `echoed` are older versions that a role promises besides.
    """
    return requested if requested in SUPPORTED or requested in echoed else LEGACY


class RequestVersion(NamedTuple):
    """Version that one request came in: decided per request, never per connection.

    `modern` is 2026-07-28 traffic, with its envelope (`enveloped`) or by header only;
    `header` is the header's value, None when there was none.
    """

    modern: bool
    enveloped: bool
    header: str | None
    capabilities: Mapping[str, Any] = {}  # of the client, as its envelope declares them; nobody writes to it
