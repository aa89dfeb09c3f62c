"""The decision table of docs/protocol.md, compared with the core line by line."""

from __future__ import annotations

from collections import Counter

import pytest

from mcpboard.protocol.messages import RequestHead
from tests.protocol import rows_access, rows_calls, rows_messages, rows_versions
from tests.protocol.roles import Case

CASES = [*rows_access.CASES, *rows_messages.CASES, *rows_versions.CASES, *rows_calls.CASES]

# Rows without a case of their own, each with the reason.
ELSEWHERE = {
    15: "the core never sees Accept: its head has no field for it",
    16: "merged into row 15",
    87: "the core never sees Mcp-Param-*: its head has no field for them",
    88: "a client that hangs up is a matter of sockets",
    89: "merged into row 88",
}


@pytest.mark.parametrize("case", CASES, ids=[f"row {case.row}: {case.phrase}" for case in CASES])
def test_the_row_is_kept(case: Case) -> None:
    case.check()


def test_every_row_has_a_case_or_a_reason_and_a_phrase_of_its_own() -> None:
    assert sorted({case.row for case in CASES} ^ set(ELSEWHERE)) == list(range(1, 91))
    assert [each for each, count in Counter((case.row, case.phrase) for case in CASES).items() if count > 1] == []


def test_the_head_has_no_room_for_what_must_not_count() -> None:
    """Accept, Sec-Fetch-*, Last-Event-ID, Mcp-Param-* and forwarded addresses cannot sway the core."""
    names = "method host origin authorization content_type content_encoding content_length session standard"
    assert list(RequestHead._fields) == names.split()
