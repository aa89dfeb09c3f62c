"""The openings of clients that cannot be run here, replayed as raw HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.functional.openings import OPENINGS, Answer, Step
from tests.support.http import LIMIT_S
from tests.support.served import Board


@pytest.mark.parametrize("steps", [pytest.param(steps, id=client) for client, steps in OPENINGS.items()])
def test_each_step_of_an_opening_is_answered_as_its_client_needs_it(board: Board, steps: Sequence[Step]) -> None:
    """On one connection that is kept, as clients do; every answer carries the request's id."""
    address = urlsplit(board.url)
    with closing(http.client.HTTPConnection(str(address.hostname), address.port, timeout=LIMIT_S)) as connection:
        for step in steps:
            connection.request(step.method, step.path, step.body, dict(step.headers))
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, headers, response.read())
            step.check(answer)
            if answer.body and step.body:
                assert answer.json["id"] == json.loads(step.body)["id"]
