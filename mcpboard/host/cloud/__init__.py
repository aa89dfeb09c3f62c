"""The host's half of a cloud that gives out assignments; off unless this host was enrolled."""

from __future__ import annotations

import platform
from pathlib import Path

from mcpboard import __version__
from mcpboard.errors import ClientError, ConfigError
from mcpboard.host.access.identity import identity
from mcpboard.host.cloud import api, enrollment
from mcpboard.host.devices import registry


def enroll(url: str, line: str, identity_path: Path, proxy: str | None = None) -> enrollment.Enrollment:
    """Register this host at `url` with the enrolment token on `line`, and keep what comes back.

    Takes effect at the next start of the host agent. Raises ConfigError, with the remedy, for
    anything that is in the way; the token is in no message and no file.
    """
    folder = identity_path.parent
    url, token = enrollment.checked_url(url), enrollment.checked_token(line)
    this_host = identity(identity_path)
    if enrollment.read(folder) is not None:
        raise enrollment.already_enrolled(folder)
    host = {
        "name": this_host.name,
        "version": __version__,
        "platform": platform.system().lower(),
        "devices": [{"id": each.id, "kind": each.kind} for each in registry.specs(folder)],
    }
    try:
        response = api.register(api.CloudHttp(url, proxy=proxy), token, host)
    except ClientError as error:
        remedy = (
            "ask for a new enrolment token" if error.status in (401, 403) else "nothing has changed here; try again"
        )
        raise ConfigError(f"{url}: not enrolled: {api.short(error)}; {remedy}") from None
    enrolled = enrollment.parse_enrollment(url, response)
    enrollment.write(folder, enrolled)
    return enrolled
