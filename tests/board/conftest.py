"""What tests of the board's role share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import responses


@pytest.fixture
def no_sockets() -> Iterator[None]:
    """Have `responses` answer every backend."""
    with responses.mock:
        yield
