"""Every address of the console with the name of its view, and what a form that is sent there may be."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from werkzeug.exceptions import BadRequest, UnsupportedMediaType
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request

from mcpboard.protocol.limits import BODY_LIMIT

# An endpoint is the name of a method of `Views`; a mark names the state of a fragment that the browser has. werkzeug
# serves HEAD where it serves GET.
URL_MAP = Map(
    [
        Rule("/", endpoint="dashboard", methods=["GET"]),
        Rule("/login", endpoint="login_form", methods=["GET"]),
        Rule("/login", endpoint="login", methods=["POST"]),
        Rule("/logout", endpoint="logout", methods=["POST"]),
        Rule("/devices", endpoint="devices", methods=["GET"]),
        Rule("/devices", endpoint="add", methods=["POST"]),
        Rule("/devices/<device_id>", endpoint="device", methods=["GET"]),
        Rule("/devices/<device_id>/screenshot/<string(maxlength=16):mark>", endpoint="screenshot", methods=["GET"]),
        Rule("/devices/<device_id>/test", endpoint="test", methods=["POST"]),
        Rule("/devices/<device_id>/release", endpoint="release_form", methods=["GET"]),
        Rule("/devices/<device_id>/release", endpoint="release", methods=["POST"]),
        Rule("/devices/<device_id>/remove", endpoint="remove_form", methods=["GET"]),
        Rule("/devices/<device_id>/remove", endpoint="remove", methods=["POST"]),
        Rule("/live/dashboard/<string(maxlength=16):mark>", endpoint="dashboard_fragment", methods=["GET"]),
        Rule("/live/devices/<string(maxlength=16):mark>", endpoint="devices_fragment", methods=["GET"]),
        Rule("/live/device/<device_id>/<string(maxlength=16):mark>", endpoint="device_fragment", methods=["GET"]),
        Rule(
            "/live/screenshot/<device_id>/<string(maxlength=16):mark>", endpoint="screenshot_fragment", methods=["GET"]
        ),
        Rule("/static/<file>", endpoint="static", methods=["GET"]),
    ]
)
PUBLIC = frozenset({"login_form", "login", "static"})  # endpoints that need no login
FRAGMENT = "_fragment"  # how the endpoints end that the pages poll

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 16  # our longest form has seven
LONGEST_FIELD = 2048  # characters; a URL
_HALF_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

_addresses = URL_MAP.bind("")


def url_for(endpoint: str, **values: str) -> str:
    """Return the path of an endpoint; values that its rule does not have become the query."""
    return _addresses.build(endpoint, values)


def check_form(request: Request) -> None:
    """Raise HTTPException unless `request.form` is one that a page of ours may have sent, each field once and whole.

    Other media types are refused unread: of a multipart form werkzeug would write parts to a temporary file.
    """
    if request.mimetype != FORM:
        raise UnsupportedMediaType(f"send a form as {FORM}")
    request.max_content_length = request.max_form_memory_size = BODY_LIMIT  # bytes
    body = request.get_data()
    # werkzeug passes on what it cannot decode, and in some versions an empty form: a token would arrive as another one.
    try:
        unquote_to_bytes(body).decode()
    except UnicodeDecodeError:
        raise BadRequest("the form is not UTF-8") from None
    if _HALF_ESCAPE.search(body):
        raise BadRequest("the form has a % without two hex digits behind it")
    if body.count(b"&") >= MOST_FIELDS:
        raise BadRequest(f"a form has {MOST_FIELDS} fields at most")
    for name, values in request.form.lists():
        if len(values) > 1:
            raise BadRequest(f"a form has each field once, this one has {name[:40]} {len(values)} times")
        if len(values[0]) > LONGEST_FIELD:
            raise BadRequest(f"a field has {LONGEST_FIELD} characters at most")
