"""The client matrix of docs/clients.md, made from the tables that the tests run.

Usage: python -m tests.functional.matrix
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcpboard.client_configs import CLIENT_CONFIGS
from tests.functional.openings import OPENINGS, Step
from tests.support.visitors import CLIENTS, LEGACY, MODERN

HEADER = ("client", "directly", "through `mcpboard bridge`", "known from")
NOT_ITS_WAY = "–"


def table() -> str:
    """The matrix in Markdown, one client a line."""
    rows = [HEADER, ("---",) * len(HEADER), *_run(), *_replayed(), *_written()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| --- |", "|---|").replace(" --- |", "---|")


def _run() -> Iterator[Sequence[str]]:
    for client in CLIENTS:
        direct = client.direct or "refuses: it knows older revisions only"
        yield str(client), direct, client.bridged or NOT_ITS_WAY, "tested: the client itself"


def _replayed() -> Iterator[Sequence[str]]:
    for client, steps in OPENINGS.items():
        yield client, _versions(steps), "not tested", "tested: its opening replayed; config entry only beyond that"


def _versions(steps: Sequence[Step]) -> str:
    """The revisions that an opening settles on, in its own order."""
    methods = [step.rpc_method for step in steps]
    found = {MODERN: "server/discover", LEGACY: "initialize"}
    used = sorted((methods.index(method), version) for version, method in found.items() if method in methods)
    return ", then ".join(version for _, version in used)


def _written() -> Iterator[Sequence[str]]:
    for client in CLIENT_CONFIGS:
        if client.title not in OPENINGS:
            yield client.title, NOT_ITS_WAY, "not tested", "config entry only"


if __name__ == "__main__":
    print(table())
