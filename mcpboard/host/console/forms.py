"""The body of a form."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from mcpboard.errors import Refused

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 16  # our longest form has seven
LONGEST_FIELD = 2048  # characters; a URL


def parse(content_type: str | None, body: bytes) -> Mapping[str, str]:
    """The fields of a form, without the blanks around them; Refused for what no page of ours sends."""
    media = (content_type or "").partition(";")[0].strip().lower()
    if media != FORM:
        raise Refused(415, {"error": f"send a form as {FORM}"})
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(400, {"error": "the body is no form that a page of this console has"}) from None
    if any(len(value) > LONGEST_FIELD for _, value in pairs):
        raise Refused(400, {"error": f"a field has {LONGEST_FIELD} characters at most"})
    return {name: value.strip() for name, value in pairs}
