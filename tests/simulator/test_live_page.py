"""The phone in a browser: its page, its moving picture, its switches."""

from __future__ import annotations

import json

import pytest

from mcpboard.simulator import Simulator
from mcpboard.simulator.phone.phone import RING_S
from tests.simulator.simulating import Clock, http_request, new_board


def test_the_page_shows_the_picture_and_needs_nothing_from_elsewhere(sim: Simulator) -> None:
    page = http_request(sim.agent_url, "GET", "/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert 'src="/screen.jpg"' in page.text
    assert "http:" not in page.text.replace('http-equiv="refresh"', "")
    assert "https:" not in page.text


def test_a_touch_rings_in_the_live_picture_only_and_only_for_a_moment() -> None:
    with new_board() as board:
        quiet = http_request(board.agent_url, "GET", "/screen.jpg").body
        board.phone.tap(500, 800)
        assert http_request(board.agent_url, "GET", "/screen.jpg").body != quiet
        clock = board.phone._clock
        assert isinstance(clock, Clock)
        clock.sleep(2 * RING_S)
        assert http_request(board.agent_url, "GET", "/screen.jpg").body == quiet


def test_the_phone_can_be_turned_and_darkened_over_http(sim: Simulator) -> None:
    seen = http_request(sim.agent_url, "POST", "/simulator/phone", b'{"landscape": true, "dark": true}').json
    assert (seen["landscape"], seen["dark"], seen["app"]) == (True, True, "Home")
    assert seen["tree"]["box"] == [0, 0, 1920, 886]
    again = http_request(sim.agent_url, "POST", "/simulator/phone", b'{"landscape": false}').json
    assert (again["landscape"], again["dark"]) == (False, True)
    assert http_request(sim.agent_url, "GET", "/simulator/phone").json == again


@pytest.mark.parametrize(
    ("post", "told"),
    [
        pytest.param("x", "Expecting value", id="no JSON"),
        pytest.param("[]", "expected an object of booleans", id="no object"),
        pytest.param('{"landscape": 1}', "expected an object of booleans", id="no boolean"),
        pytest.param('{"loud": true}', "no switch is called 'loud'; there are: landscape, dark", id="no such switch"),
    ],
)
def test_a_switch_that_is_none_is_refused(sim: Simulator, post: str, told: str) -> None:
    response = http_request(sim.agent_url, "POST", "/simulator/phone", post.encode())
    assert response.status == 400
    assert told in response.text


def test_other_methods_are_refused(sim: Simulator) -> None:
    assert http_request(sim.agent_url, "PUT", "/simulator/phone", b"{}").status == 405


def test_what_the_phone_shows_is_told(sim: Simulator) -> None:
    sim.phone.show("Notes")
    sim.phone.tap(450, 300)
    sim.phone.write("hello")
    told = http_request(sim.agent_url, "GET", "/simulator/phone").json
    assert (told["app"], told["text"]) == ("Notes", "hello")
    assert "hello" in json.dumps(told["tree"])
