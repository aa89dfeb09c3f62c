"""What the worker's requests make of the cloud's answers, whose sockets do not matter here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import responses
from requests.exceptions import ConnectionError, ConnectTimeout, ReadTimeout
from responses import matchers

from mcpboard.errors import ClientError, PeerBroken, PeerRefused, PeerTimeout, PeerUnreachable
from mcpboard.host.access.identity import identity
from mcpboard.host.cloud.api import LARGEST_RESPONSE, CloudApi
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.cloud.worker import Worker
from mcpboard.host.config import IDENTITY_FILE
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.vision.service import VisionService
from tests.host.cloud.rig import TAP
from tests.host.rig import Fake
from tests.support.http import LIMIT_S

URL = "http://127.0.0.1:9/cloud"
TOKEN = "t" * 32
Verb = Callable[[CloudApi], Any]

VERBS = [
    pytest.param(lambda api: api.heartbeat({"a": 1}), "/v1/hosts/h/heartbeat", {"a": 1}, id="heartbeat"),
    pytest.param(lambda api: api.claim(5.0, ["X"], 10.0), "/v1/hosts/h/claim", {"wait_s": 5.0, "free_device_ids": ["X"]}, id="claim"),
    pytest.param(lambda api: api.start("a/b", "L"), "/v1/assignments/a%2Fb/start", {"lease_id": "L"}, id="start"),
    pytest.param(lambda api: api.progress("a", "L", 2, "tap"), "/v1/assignments/a/progress", {"lease_id": "L", "step": 2, "note": "tap"}, id="progress"),
    pytest.param(lambda api: api.finish("a", {"ok": True}), "/v1/assignments/a/finish", {"ok": True}, id="finish"),
]  # fmt: skip

BAD = [
    pytest.param({"status": 401}, PeerRefused, 401, id="401"),
    pytest.param({"status": 409, "json": {}}, PeerRefused, 409, id="a lease that is lost"),
    pytest.param({"status": 500, "body": "boom"}, PeerRefused, 500, id="500"),
    pytest.param({"status": 308, "headers": {"Location": "http://127.0.0.1:9/x"}}, PeerRefused, 308, id="a redirect"),
    pytest.param({"body": "<html>"}, PeerBroken, None, id="a page"),
    pytest.param({"json": [1]}, PeerBroken, None, id="no object"),
    pytest.param({"body": b"[" * 100_000}, PeerBroken, None, id="nesting without end"),
    pytest.param({"body": b'{"a":"' + b"x" * LARGEST_RESPONSE + b'"}'}, PeerBroken, None, id="too large"),
    pytest.param({"json": {}, "headers": {"Content-Encoding": "gzip"}}, PeerBroken, None, id="compressed"),
    pytest.param({"body": ReadTimeout()}, PeerTimeout, None, id="late"),
    pytest.param({"body": ConnectTimeout()}, PeerUnreachable, None, id="no connection"),
    pytest.param({"body": ConnectionError()}, PeerBroken, None, id="cut off"),
]


@pytest.fixture
def api() -> Iterator[CloudApi]:
    with responses.mock, closing(CloudApi(Enrollment(URL, "h", TOKEN, 30.0, 25.0, 90.0))) as api:
        yield api


@pytest.mark.parametrize(("verb", "path", "body"), VERBS)
def test_each_request_goes_out_once_with_token_and_body(api: CloudApi, verb: Verb, path: str, body: Any) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Connection": "close"}
    match = [matchers.json_params_matcher(body), matchers.header_matcher(headers)]
    responses.post(URL + path, json={"known": True}, match=match)
    assert verb(api) in ({"known": True}, None)
    assert len(responses.calls) == 1


@pytest.mark.parametrize(("answer", "error", "status"), BAD)
@pytest.mark.parametrize(("verb", "path", "body"), VERBS)
def test_a_bad_answer_is_one_clear_error(
    api: CloudApi,
    verb: Verb,
    path: str,
    body: Any,
    answer: dict[str, Any],
    error: type[ClientError],
    status: int | None,
) -> None:
    """Asked once; and the token is in no message."""
    responses.post(URL + path, **answer)
    with pytest.raises(error) as failed:
        verb(api)
    assert failed.value.status == status
    assert TOKEN not in str(failed.value)
    assert len(responses.calls) == 1


def test_no_content_is_no_assignment(api: CloudApi) -> None:
    responses.post(f"{URL}/v1/hosts/h/claim", status=204)
    assert api.claim(5.0, ["X"], 10.0) is None


@pytest.mark.parametrize(
    ("started", "touched"),
    [
        pytest.param({"json": {}}, [("tap", (1, 2))], id="ours"),
        pytest.param({"status": 409, "json": {}}, [], id="no longer ours"),
        pytest.param({"status": 410}, [], id="gone"),
    ],
)
def test_the_worker_does_what_the_cloud_gives_out_once(
    tmp_path: Path, started: dict[str, Any], touched: list[Any]
) -> None:
    """From the claim to its end; a lease that is lost before the first step leaves the phone alone."""
    work = {"id": "a", "lease_id": "L", "device_id": "X", "timeout_s": 10, "steps": [TAP]}
    claims, asked_again, over = iter([work]), threading.Event(), threading.Event()

    def claim(_: object) -> tuple[int, dict[str, str], str]:
        found = next(claims, None)
        if found is not None:
            return 200, {}, json.dumps({"assignment": found})
        asked_again.set()
        over.wait(LIMIT_S)
        return 204, {}, ""

    phone, finished = Fake(), threading.Event()

    def finish(_: object) -> tuple[int, dict[str, str], str]:
        finished.set()
        return 200, {}, "{}"

    identity(tmp_path / IDENTITY_FILE)
    manager = DeviceManager()
    manager.add("X", "fake", phone)
    with (
        responses.RequestsMock(assert_all_requests_are_fired=False) as cloud,
        closing(VisionService(None, tmp_path)) as vision,
        closing(manager),
    ):
        cloud.post(f"{URL}/v1/hosts/h/heartbeat", json={})
        cloud.add_callback("POST", f"{URL}/v1/hosts/h/claim", claim)
        cloud.post(f"{URL}/v1/assignments/a/start", **started)
        cloud.post(f"{URL}/v1/assignments/a/progress", json={})
        cloud.add_callback("POST", f"{URL}/v1/assignments/a/finish", finish)
        enrolled = Enrollment(URL, "h", TOKEN, 30.0, 25.0, 90.0)
        with closing(Worker(manager, list, vision, enrolled, tmp_path)):
            assert (finished if touched else asked_again).wait(LIMIT_S)
            over.set()
        asked = [str(call.request.url).removeprefix(URL) for call in cloud.calls]
    assert phone.done == touched
    assert asked.count("/v1/assignments/a/start") == 1
    assert asked.count("/v1/assignments/a/finish") == len(touched)
