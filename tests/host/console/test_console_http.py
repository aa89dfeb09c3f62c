"""The console as an HTTP server: its addresses, forms, cookies and static files, whatever a client sends."""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path
from typing import IO, Any

import pytest
from werkzeug import wsgi
from werkzeug.formparser import FormDataParser

from mcpboard.host.console import URL_MAP, templating
from mcpboard.host.console.routes import FORM, MOST_FIELDS, PUBLIC
from mcpboard.host.console.views import STATIC, Views
from mcpboard.protocol.limits import BODY_LIMIT
from tests.host.browser import Browser
from tests.host.rig import Agent, agent
from tests.support.http import chunked, request

# --- addresses -----------------------------------------------------------------------------------


def test_every_endpoint_has_a_view_and_an_address_of_its_own() -> None:
    rules = list(URL_MAP.iter_rules())
    assert len({rule.endpoint for rule in rules}) == len(rules)
    assert {rule.endpoint for rule in rules} >= PUBLIC
    assert not [rule.endpoint for rule in rules if not callable(getattr(Views, rule.endpoint, None))]


@pytest.mark.parametrize("template", sorted(templating.TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_no_template_writes_an_address_out(template: Path) -> None:
    assert not re.findall(r"""["']/[a-z/"'{]""", template.read_text("utf-8"))


def test_head_has_the_head_of_get_and_no_body(host: Agent) -> None:
    browser = host.browser()
    for path in ("/devices", "/static/console.css", "/devices/X", "/devices/gone"):
        whole, head = browser.get(path), browser.get(path, "HEAD")
        assert (head.status, head.body) == (whole.status, b"")
        assert int(head.headers["content-length"]) > 0
        assert head.headers["content-type"] == whole.headers["content-type"]


def test_an_id_that_no_device_can_have_is_unknown_and_stays_text(host: Agent) -> None:
    page = host.browser().get("/devices/%3Cscript%3E%0d%0aX-Evil:1")
    assert (page.status, page.headers["hx-redirect"]) == (404, "/devices")
    assert "unknown device: &lt;script&gt;" in page.html
    assert "x-evil" not in page.headers


# --- forms ---------------------------------------------------------------------------------------

BODIES = [
    pytest.param(b"csrf=x", "application/json", 415, id="JSON"),
    pytest.param(b"csrf=x", "application/x-url-encoded", 415, id="a type that old versions took"),
    pytest.param(b"csrf=x", f"{FORM}, application/json", 415, id="two types"),
    pytest.param(b"csrf=x", "", 415, id="no type"),
    pytest.param(b"csrf=\xff", FORM, 400, id="bytes that are no form"),
    pytest.param(b"csrf=%ed%a0%80", FORM, 400, id="half a surrogate pair"),
    pytest.param(b"csrf=%c3&x=%a9", FORM, 400, id="a character cut in two"),
    pytest.param(b"%zz=x", FORM, 400, id="a name with an escape that is none"),
    pytest.param(b"&".join(b"a%d=1" % each for each in range(MOST_FIELDS + 1)), FORM, 400, id="too many fields"),
    pytest.param(b"&" * 100_000, FORM, 400, id="very many empty fields"),
    pytest.param(b"csrf=" + b"x" * 2049, FORM, 400, id="a field too long"),
    pytest.param(b"csrf=" + b"%C3%A9" * 2048, FORM, 403, id="a field just long enough"),
    pytest.param(b"csrf=" + b"x" * BODY_LIMIT, FORM, 413, id="a body over the limit"),
    pytest.param(b"", FORM, 403, id="nothing"),
    pytest.param(b"=x&x", f"{FORM}; charset=utf-16", 403, id="a charset that is not looked at"),
]


@pytest.mark.parametrize(("body", "media_type", "status"), BODIES)
def test_a_body_that_no_page_of_ours_sends_is_refused(host: Agent, body: bytes, media_type: str, status: int) -> None:
    assert host.browser().send("/devices", body, Content_Type=media_type).status == status


def test_a_form_of_another_type_is_not_even_parsed(host: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """werkzeug would write a file of 500,000 bytes and more to the disk, before anybody has looked at the CSRF token."""
    browser = host.browser()
    monkeypatch.setattr(FormDataParser, "parse", lambda *_: pytest.fail("parsed"))
    body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n' + b"x" * 300_000 + b"\r\n--x--"
    for path in ("/login", "/devices"):
        assert browser.send(path, body, Content_Type="multipart/form-data; boundary=x").status == 415
        page = browser.send(path, body, "GET", Content_Type="multipart/form-data; boundary=x")
        assert page.status in (200, 303), "a GET has no form, whatever comes with it"


@pytest.mark.parametrize("damage", ["%ff", "%zz", "%", "%c3", "+%80"])
def test_a_token_that_was_damaged_on_the_way_opens_nothing(host: Agent, damage: str) -> None:
    """Even where werkzeug hands on the very text that was sent, as it does for what it cannot decode."""
    browser = Browser(host.base)
    form = f"csrf={browser.get('/login').csrf}&token={host.token}{damage}"
    assert browser.send("/login", form.encode(), Content_Type=FORM).status == 400
    assert browser.get("/").goes_to == "/login"


@pytest.mark.parametrize("first", ["good", "wrong"])
@pytest.mark.parametrize("name", ["csrf", "token"])
def test_a_field_that_is_sent_twice_is_refused(host: Agent, name: str, first: str) -> None:
    """Nobody may have to guess which of them counts."""
    browser = Browser(host.base)
    good = {"csrf": browser.get("/login").csrf, "token": host.token}
    pairs = [(each, good[each]) for each in good if each != name]
    both = [(name, good[name]), (name, "wrong")]
    pairs += both if first == "good" else reversed(both)
    page = browser.send("/login", "&".join("=".join(pair) for pair in pairs).encode(), Content_Type=FORM)
    assert (page.status, f"this one has {name} 2 times" in page.html) == (400, True)
    assert browser.get("/").goes_to == "/login"


def test_a_form_in_chunks_is_one_like_any_other(host: Agent) -> None:
    browser = Browser(host.base)
    form = f"csrf={browser.get('/login').csrf}&token={host.token}".encode()
    (cookie,) = ("=".join(each) for each in browser.cookies.items())
    for body, ours, status in ((form, cookie, 303), (form, "", 403), (b"csrf=" + b"x" * BODY_LIMIT, cookie, 413)):
        lines = (f"Content-Type: {FORM}", "Transfer-Encoding: chunked", f"Cookie: {ours}")
        with host.caller.connect() as connection:
            connection.send(request(chunked(body, 1 << 16), *lines, path="/login", sized=False, host=host.base[7:]))
            assert connection.response().status == status


# --- cookies -------------------------------------------------------------------------------------

# What browsers send to every port of an address, `{}` being our cookie.
COOKIES = [
    pytest.param("{}", id="ours alone"),
    pytest.param('a="b;c"; {{"x": 1}}; =; {}; mcpboard_console_1=x', id="quotes and braces"),
    pytest.param('a="b; {}', id="half quoted"),
    pytest.param('a="; {}; b="', id="between two half quoted ones"),
    pytest.param('a="b\\"; {}; c="d"', id="an escaped quote"),
    pytest.param("a=\xff\xfe; {}", id="bytes that are no UTF-8"),
    pytest.param("\xe9=1; {}; \xe9", id="a name that is no ASCII"),
    pytest.param("a=\xc3\xa9; {}", id="UTF-8"),
    pytest.param(";".join(f"a{each}={each}" for each in range(100)) + ";{}", id="a hundred"),
    pytest.param(";;; ;=;a;a;{};;", id="empty ones"),
    pytest.param("a=x" + " " * 8000 + "y; {}", id="very many spaces"),
    pytest.param("{}; {}", id="ours twice"),
]


@pytest.mark.parametrize("header", COOKIES)
def test_cookies_of_other_programs_at_this_address_do_not_hide_ours(host: Agent, header: str) -> None:
    browser = host.browser()
    ours = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    assert browser.get("/", Cookie=header.format(ours, ours)).status == 200
    assert browser.get("/", Cookie=header.format("other=1", "other=1")).goes_to == "/login"


def test_a_cookie_that_is_none_of_ours_brings_the_login(host: Agent) -> None:
    browser, name = Browser(host.base), f"mcpboard_console_{host.caller.address[1]}"
    for value in ("", '"', "x", "x" * 6000, "\xff", '"\\377\\', "%00", "=", "a b"):
        assert browser.get("/", Cookie=f"{name}={value}").goes_to == "/login"
        assert browser.get("/login", Cookie=f"{name}={value}").status == 200


def test_of_two_cookies_of_our_name_the_first_counts_and_who_has_one_is_given_none(host: Agent) -> None:
    ((name, value),) = host.browser().cookies.items()
    stranger = Browser(host.base)
    assert stranger.get("/", Cookie=f"{name}={value}; {name}=x").status == 200
    assert stranger.get("/", Cookie=f"{name}=x; {name}={value}").goes_to == "/login"
    assert "set-cookie" in stranger.get("/login").headers
    assert "set-cookie" not in stranger.get("/login").headers


# --- static files --------------------------------------------------------------------------------

TYPES = {"console.css": "text/css", "console.js": "text/javascript", "htmx.min.js": "text/javascript", "icon.svg": "image/svg+xml"}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_static_file_comes_whole_whatever_the_system_calls_its_type(
    host: Agent, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The registry of Windows may have a script as text/plain, which no browser would run."""
    monkeypatch.setattr(mimetypes, "guess_type", lambda *_, **__: ("text/plain", None))
    page = Browser(host.base).get(f"/static/{name}")
    assert (page.status, page.body) == (200, (STATIC / name).read_bytes())
    assert (page.headers["content-type"], page.headers["cache-control"]) == (
        f"{TYPES[name]}; charset=utf-8",
        "max-age=3600",
    )
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_static_file_that_the_browser_has_is_not_sent_again(host: Agent) -> None:
    browser = Browser(host.base)
    whole = browser.get("/static/console.js")
    for condition in (
        {"If-None-Match": whole.headers["etag"]},
        {"If-None-Match": f'"x", W/{whole.headers["etag"]}'},
        {"If-Modified-Since": whole.headers["last-modified"]},
    ):
        page = browser.get("/static/console.js", **condition)
        assert (page.status, page.body) == (304, b"")
        assert page.headers["content-security-policy"] == whole.headers["content-security-policy"]
    assert browser.get("/static/console.js", If_None_Match='"x"').status == 200


def test_a_part_of_a_static_file_is_sent_where_it_is_asked_for(host: Agent) -> None:
    browser, path = Browser(host.base), "/static/htmx.min.js"
    whole = browser.get(path).body
    page = browser.get(path, Range="bytes=10-19")
    assert (page.status, page.body, page.headers["content-range"]) == (206, whole[10:20], f"bytes 10-19/{len(whole)}")
    assert browser.get(path, Range="bytes=0-1", If_Range='"another"').body == whole
    page = browser.get(path, Range=f"bytes={len(whole)}-")
    assert (page.status, page.headers["content-range"]) == (416, f"bytes */{len(whole)}")


ODD = [
    "bytes=99999999999999999999999-", "bytes=-0,-,5-1", "bytes=\xb2-\xb3", "bytes=0-0,1-1", "bytes", "=", '"', "W/", "*", ",",
    "bytes=" + "0-0," * 1000, "bytes=-99999999999999999999", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
    "Mon, 01 Jan 2024 00:00:00 +99999999999999999999", "Mon, 01 Jan 0000 00:00:00 GMT", "Thu, 31 Feb 2024 00:00:00 GMT",
    "\xff", '"\xff', 'W/"', "x" * 4000, "9" * 5000,
]  # fmt: skip


def test_odd_conditions_and_ranges_are_no_error_of_ours(host: Agent) -> None:
    browser = host.browser()
    for value in ODD:
        for path in ("/static/icon.svg", "/login", "/devices/X"):
            for header in (
                "Range",
                "If-Range",
                "If-None-Match",
                "If-Match",
                "If-Modified-Since",
                "If-Unmodified-Since",
            ):
                page = browser.get(path, **{"Range": "bytes=0-3", header: value})
                assert page.status in (200, 206, 303, 304, 412, 416), (path, header, value)


OUTSIDE = [
    "/static/..", "/static/.", "/static/", "/static/../views.py", "/static/%2e%2e/views.py", "/static/..%2fviews.py",
    "/static/%2e%2e%2fstatic%2fconsole.css", "/static/..%5cviews.py", "/static/..\\static\\console.css",
    "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/%2f..%2fconsole.css", "/static/C:%5cconsole.css",
    "/static/console.css%00", "/static/%00.css", "/static/console.css%00.css", "/static/console.css/", "/static/NOTICE",
    "/static/console.py", "/static/.css", "/static/%ff.css", "/static/" + "x" * 300 + ".css", "/static/%252e%252e%252fx.css",
]  # fmt: skip


def test_nothing_but_the_static_files_is_served(host: Agent) -> None:
    for path in OUTSIDE:
        assert Browser(host.base).get(path).status == 404, path


def test_a_static_file_is_closed_however_its_request_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is left open is a descriptor lost, and a ResourceWarning, which ends a test."""
    opened: list[IO[bytes]] = []

    def wrap_file(environ: Any, file: IO[bytes]) -> Any:
        opened.append(file)
        return wsgi.wrap_file(environ, file)

    monkeypatch.setattr("werkzeug.utils.wrap_file", wrap_file)
    path = "/static/htmx.min.js"
    with agent(tmp_path / "data") as host:
        browser = Browser(host.base)
        etag = browser.get(path).headers["etag"]
        assert browser.get(path, "HEAD").status == 200
        assert browser.get(path, If_None_Match=etag).status == 304
        assert browser.get(path, Range="bytes=5-9").status == 206
        assert browser.get(path, "HEAD", Range="bytes=5-9").status == 206
        assert browser.get(path, Range="bytes=999999-").status == 416
        with host.caller.connect() as leaving:
            leaving.send(host.caller.request("GET", path=path))
            assert leaving.sock.recv(1)
    assert len(opened) == 7
    assert all(file.closed for file in opened)


# --- pages ---------------------------------------------------------------------------------------


def test_a_page_that_nobody_keeps_has_no_etag(host: Agent) -> None:
    browser = host.browser()
    for path in ("/", "/devices", "/live/devices/0"):
        page = browser.get(path)
        assert page.headers["cache-control"] == "no-store"
        assert "etag" not in page.headers
        assert page.headers["content-type"] == "text/html; charset=utf-8"
