"""The client matrix of the README is what the tests run."""

from __future__ import annotations

from tests.functional import matrix
from tests.support import ROOT


def test_the_readme_says_what_is_tested_and_what_is_not() -> None:
    _, _, rest = (ROOT / "README.md").read_text("utf-8").partition("<!-- client matrix -->\n")
    written, end, _ = rest.partition("\n<!-- /client matrix -->")
    assert end, "README.md has no client matrix; python -m tests.functional.matrix prints it"
    assert written.strip() == matrix.table()
