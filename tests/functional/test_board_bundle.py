"""support_bundle over real sockets: whole or visibly not, with flat memory, within its limits."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.board import forward
from mcpboard.simulator import Simulator
from mcpboard.simulator.board import bundle
from tests.support import rig
from tests.support.http import Caller, InvalidResponse, Response

MIB = 1 << 20


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def client(simulator: Simulator) -> Iterator[Caller]:
    with rig.in_front_of(simulator.agent_url, simulator.config_web_url) as client:
        yield client


def blob_of(result: Response) -> bytes:
    return base64.b64decode(result.result["content"][1]["resource"]["blob"], validate=True)


@pytest.mark.parametrize("announced", [pytest.param(True, id="with a length"), pytest.param(False, id="without")])
@pytest.mark.parametrize("size", [bundle.SMALL, 28 * MIB])
def test_a_bundle_arrives_whole(simulator: Simulator, client: Caller, size: int, announced: bool) -> None:
    """Every byte, an exact Content-Length where the source gives one, chunks where not."""
    simulator.faults.set("bundle", "support_bundle", 1, bytes=size, length=announced)
    result = client.call("support_bundle")
    expected = hashlib.sha256()
    for block in bundle.sized(size):
        expected.update(block)
    assert hashlib.sha256(blob_of(result)).digest() == expected.digest()
    # Less than a block has come whole before the head goes out, whatever the source said.
    assert result.headers.get("content-length") == (str(len(result.body)) if announced else None)
    resource = result.result["content"][1]["resource"]
    assert resource["mimeType"] == "application/gzip"
    assert resource["uri"].startswith("mcpboard://support-bundle/") and resource["uri"].endswith("Z.tar.gz")
    assert "nothing removed" in result.text
    assert result.kinds == ["text", "resource"]


@pytest.mark.parametrize("announced", [pytest.param(True, id="with a length"), pytest.param(False, id="without")])
def test_half_a_bundle_is_never_taken_for_a_whole_one(simulator: Simulator, client: Caller, announced: bool) -> None:
    """Config Web dies midway: the connection breaks off, so no client can think that it has it all."""
    simulator.faults.set("bundle", "support_bundle", 1, bytes=3 * MIB, length=announced, dies_after=3 * MIB - 1)
    with rig.log_lines() as lines:
        with pytest.raises(InvalidResponse):
            client.call("support_bundle")
        lines.wait_for("reply broken off after")
        lines.wait_for("support_bundle: ok")
    assert blob_of(client.call("support_bundle")) == b"".join(bundle.sized(bundle.SMALL))
    assert len(simulator.requests) == 2


def test_a_bundle_announced_over_the_limit_is_refused_before_the_first_byte(simulator: Simulator) -> None:
    simulator.faults.set("bundle", "support_bundle", 1, bytes=2 * MIB)
    with rig.in_front_of(config_web=simulator.config_web_url, support_bundle_max_bytes=MIB) as client:
        refused = client.call("support_bundle")
        assert not client.call("support_bundle").is_error
    assert refused.is_error
    assert f"limit of {MIB} bytes (support_bundle_max_bytes)" in refused.text


def test_a_bundle_that_grows_over_the_limit_is_broken_off_there(simulator: Simulator) -> None:
    simulator.faults.set("bundle", "support_bundle", 1, bytes=20 * MIB, length=False)
    with rig.in_front_of(config_web=simulator.config_web_url, support_bundle_max_bytes=MIB) as client:
        received = 0
        with client.begin("support_bundle") as pending, pytest.raises(InvalidResponse):
            for piece in pending.pieces(pending.head()[1]):
                received += len(piece)
        assert not client.call("support_bundle").is_error
    assert MIB // 2 < received <= MIB * 4 // 3 + 1000


def test_exactly_the_limit_passes(simulator: Simulator) -> None:
    simulator.faults.set("bundle", "support_bundle", 2, bytes=MIB)
    with rig.in_front_of(config_web=simulator.config_web_url, support_bundle_max_bytes=MIB) as client:
        assert len(blob_of(client.call("support_bundle"))) == MIB
    with rig.in_front_of(config_web=simulator.config_web_url, support_bundle_max_bytes=MIB - 1) as client:
        assert client.call("support_bundle").is_error


def test_the_limit_follows_its_file(simulator: Simulator, tmp_path: Path) -> None:
    def limit(size: int) -> Path:
        return rig.settings_file(tmp_path, config_web=simulator.config_web_url, support_bundle_max_bytes=size)

    simulator.faults.set("bundle", "support_bundle", bytes=MIB)
    watched = config.SettingsWatcher({"config": str(limit(1000))}, environ={})
    with rig.serving(watched.current) as client:
        assert client.call("support_bundle").is_error
        limit(2 * MIB)
        assert len(blob_of(client.call("support_bundle"))) == MIB


def test_a_source_that_drips_ends_with_its_total_time(
    simulator: Simulator, client: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream ends after ten minutes at the latest; here after half a second."""
    monkeypatch.setattr(forward, "BUNDLE_TOTAL_S", 0.5)
    simulator.faults.set("bundle", "support_bundle", 1, bytes=10 * MIB, bytes_per_second=200_000)
    with pytest.raises(InvalidResponse):
        client.call("support_bundle")
    assert not client.call("support_bundle").is_error
