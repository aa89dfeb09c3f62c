"""The client matrix of docs/clients.md is what the tests run."""

from __future__ import annotations

from tests.functional import matrix
from tests.support import ROOT


def test_the_page_of_clients_says_what_is_tested_and_what_is_not() -> None:
    _, _, rest = (ROOT / "docs/clients.md").read_text("utf-8").partition("<!-- client matrix -->\n")
    written, end, _ = rest.partition("\n<!-- /client matrix -->")
    assert end, "docs/clients.md has no client matrix; python -m tests.functional.matrix prints it"
    assert written.strip() == matrix.table()
