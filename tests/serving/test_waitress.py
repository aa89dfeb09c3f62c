"""Settings of waitress, each with the behavior that we rely on, and the insides that our code holds on to."""

from __future__ import annotations

import tempfile
import threading

import pytest
from waitress.adjustments import Adjustments

from mcpboard.protocol.limits import BODY_LIMIT
from mcpboard.serving.connection import Channel
from mcpboard.serving.server import CONNECTIONS, THREADS, TOOL_CALLS, WAITRESS, Server, listeners
from tests.serving.served import Served
from tests.support.http import LIMIT_S, call, message, request


def test_no_proxy_is_ever_trusted() -> None:
    assert not {name for name in WAITRESS if "proxy" in name or "forwarded" in name}
    assert Adjustments(**WAITRESS).trusted_proxy is None
    assert Adjustments(**WAITRESS).clear_untrusted_proxy_headers


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_limit_counts_a_listener_and_its_trigger(count: int) -> None:
    """The map holds two entries a listener, which is what the arithmetic and the drain rest on."""
    sockets = listeners([("127.0.0.1", 0)] * count)
    running = Server(lambda environ, start: [], sockets)
    assert len(running._map) == 2 * count
    assert len(running._listeners) == count
    assert {listener.adj.connection_limit for listener in running._listeners} == {CONNECTIONS + 2 * count}
    assert {listener.channel_class for listener in running._listeners} == {Channel}
    running.stop()
    running.run()
    assert not running._map


def test_a_body_as_large_as_it_may_be_makes_no_file(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_: made.append(1))
    body = message("ping").ljust(WAITRESS["max_request_body_size"] - 1)
    assert served.post(body).status == 413
    assert made == []


def test_a_request_cannot_make_the_answer_to_a_ping_long(served: Served) -> None:
    """An id is echoed, and six bytes of JSON may stand for two of the request."""
    body = b'{"jsonrpc":"2.0","method":"ping","id":"' + "é".encode() * ((BODY_LIMIT - 100) // 2) + b'"}'
    response = served.post(body)
    assert response.status == 400
    assert len(response.body) < 1024


def test_ping_waits_for_no_call(served: Served) -> None:
    """More callers than threads: the surplus is told at once, and ping finds a thread."""
    clients = [served.client() for _ in range(THREADS + 4)]
    for number, client in enumerate(clients):
        client.send(request(call("block", number)))
    served.limit.wait_for(TOOL_CALLS)
    assert served.pings()
    served.role.release.set()
    responses = [client.response().json["result"] for client in clients]
    for client in clients:
        client.__exit__()
    assert sum("isError" in response for response in responses) == len(clients) - TOOL_CALLS
    assert served.limit.acquired == TOOL_CALLS


def test_the_workers_end_with_the_server() -> None:
    before = threading.active_count()
    sockets = listeners([("127.0.0.1", 0)])
    running = Server(lambda environ, start: [], sockets)
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("waitress")]
    assert len(workers) == THREADS
    running.stop()
    running.run()
    assert not running._tasks.threads, "run returns after the last of them has given back what it held"
    for worker in workers:
        worker.join(LIMIT_S)
    assert threading.active_count() == before
    running.stop()  # again, and too late: no harm
