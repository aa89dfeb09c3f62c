"""Access to the console: every route against every visitor who may not look, or not write."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from werkzeug.wrappers import Request

from mcpboard.host.access import tokens
from mcpboard.host.console import auth
from mcpboard.host.console.auth import REPORT_SECONDS, LoginSessions
from mcpboard.host.console.routes import FRAGMENT, PUBLIC, URL_MAP
from tests.host.browser import Browser, path_of, settled
from tests.host.rig import Agent, Fake, agent
from tests.support.clock import Clock
from tests.support.http import LEGACY, Caller

RULES = list(URL_MAP.iter_rules())
GETS = [path_of(rule.endpoint) for rule in RULES if "GET" in (rule.methods or ())]
POSTS = [path_of(rule.endpoint) for rule in RULES if "POST" in (rule.methods or ())]
PRIVATE = [rule for rule in RULES if rule.endpoint not in PUBLIC]
PRIVATE_GETS = [path_of(rule.endpoint) for rule in PRIVATE if "GET" in (rule.methods or ())]
PRIVATE_POSTS = [path_of(rule.endpoint) for rule in PRIVATE if "POST" in (rule.methods or ())]
FRAGMENTS = [path_of(rule.endpoint) for rule in RULES if rule.endpoint.endswith(FRAGMENT)]


FOREIGN = ["http://evil.example", "http://127.0.0.1:1", "http://localhost.evil.example", "null", "https://[::1]"]


def test_a_foreign_origin_is_refused_on_every_route_and_ours_is_not(host: Agent) -> None:
    browser = host.browser()
    csrf = browser.get("/devices").csrf
    host.caller.open().call("tap", x=1, y=1, device_id="X")
    form = {"csrf": csrf, "token": host.token}
    for origin in FOREIGN:
        refused = {browser.get(path, Origin=origin).status for path in GETS}
        assert refused | {browser.post(path, form, Origin=origin).status for path in POSTS} == {403}, origin
    assert list(host.role.manager.leases()) == ["X"]
    assert browser.post("/devices/X/test", form, Origin=host.base).goes_to == "/devices/X"
    rebound = "rebound.example:8765"  # a name that somebody has made ours
    assert Browser(host.base).post("/login", form, Host=rebound, Origin=f"http://{rebound}").status == 403


@pytest.mark.parametrize("csrf", ["missing", "empty", "wrong", "of another login"])
def test_a_form_without_our_csrf_token_changes_nothing(host: Agent, csrf: str) -> None:
    browser, other = host.browser(), host.browser()
    host.caller.open().call("tap", x=1, y=1, device_id="X")
    given = {"missing": {}, "empty": {"csrf": ""}, "wrong": {"csrf": "0" * 64}}
    form = given.get(csrf, {"csrf": other.get("/devices").csrf})
    (owner,) = host.role.manager.leases().values()
    for path in POSTS:
        page = browser.post(path, {**form, "token": host.token, "owner": owner.label, "id": "Z", "kind": "simulated"})
        assert (page.status, "Nothing was changed" in page.text) == (403, True)
    assert host.role.manager.ids() == ["X", "Y"]
    assert list(host.role.manager.leases()) == ["X"]
    assert browser.get("/").status == 200, "still logged in"


def test_nobody_sees_or_changes_anything_without_a_login(host: Agent) -> None:
    """A visitor has a CSRF token for the login form, which must not do for the others."""
    browser = Browser(host.base)
    for path in PRIVATE_GETS:
        page = browser.get(path)
        assert page.status == (401 if path in FRAGMENTS else 303)
        assert (page.headers.get("location") or page.headers["hx-redirect"]) == "/login"
        assert page.body == b"" if path in FRAGMENTS else "target URL: /login." in page.text
    for path in PRIVATE_POSTS:
        page = browser.submit("/login", path, id="Z", kind="simulated")
        assert (page.status, "not logged in" in page.text) == (401, True)
    assert host.role.manager.ids() == ["X", "Y"]


def test_a_cookie_replayed_after_logout_is_refused_everywhere(host: Agent) -> None:
    browser = host.browser()
    csrf, kept = browser.get("/devices").csrf, dict(browser.cookies)
    assert browser.post("/logout", {"csrf": csrf}).goes_to == "/login"
    assert browser.cookies == {}, "the browser is told to forget it"
    replayed = Browser(host.base, kept)
    assert {replayed.get(path).status for path in PRIVATE_GETS} == {303, 401}
    form = {"csrf": csrf, "id": "Z", "kind": "simulated"}
    assert {replayed.post(path, form).status for path in PRIVATE_POSTS} == {401}
    assert host.role.manager.ids() == ["X", "Y"]


def test_a_restart_logs_everybody_out(tmp_path: Path) -> None:
    with agent(tmp_path / "data", X=Fake()) as first:
        browser = first.browser()
    with agent(tmp_path / "data", X=Fake()) as second:
        (value,) = browser.cookies.values()
        port = second.base.rpartition(":")[2]
        assert Browser(second.base, {f"mcpboard_console_{port}": value}).get("/").goes_to == "/login"


def test_a_wrong_token_does_not_log_in(host: Agent) -> None:
    """A client's does not, either."""
    right = host.token
    for wrong in ("wrong", "", right[:-1], right + "=", "é" * 43, tokens.add_named(host.folder, "client")):
        browser = Browser(host.base)
        page = browser.submit("/login", "/login", token=wrong)
        assert (page.status, "not the token of this host agent" in page.text) == (403, True)
        assert browser.get("/").goes_to == "/login"


def test_the_login_brings_a_new_cookie_that_no_script_can_read(host: Agent) -> None:
    browser = Browser(host.base)
    page = browser.get("/login")
    (before,) = browser.cookies.items()
    page = browser.post("/login", {"csrf": page.csrf, "token": f"  {host.token}\n"})
    (after,) = browser.cookies.items()
    assert before[0] == after[0] and before[1] != after[1]
    assert Browser(host.base, dict([before])).get("/").goes_to == "/login"
    attributes = {part.strip() for part in page.headers["set-cookie"].split(";")[1:]}
    assert attributes == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert host.token not in page.headers["set-cookie"]


def test_a_cookie_opens_no_mcp_and_a_bearer_token_no_page(host: Agent) -> None:
    """A web page cannot set the Authorization header, but a browser sends cookies by itself."""
    (pair,) = host.browser().cookies.items()
    response = Caller(host.url).send("POST", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Cookie="=".join(pair))
    assert (response.status, response.json) == (401, {"error": "invalid token"})
    assert Browser(host.base).get("/", Authorization=f"Bearer {host.token}").goes_to == "/login"


def test_no_page_and_no_header_holds_a_secret(host: Agent) -> None:
    """Tokens, and the ids of sessions but for the prefix that everybody may see."""
    named = tokens.add_named(host.folder, "client")
    session = host.caller.open()
    session.call("tap", x=1, y=1, device_id="X")
    browser = host.browser()
    for path in ("/", "/devices/X"):
        browser.get(path)
    settled()
    shown = [browser.get(path) for path in GETS] + [
        Browser(host.base).get("/login"),
        Browser(host.base).post("/login", {}),
    ]
    everything = "\n".join(f"{page.headers} {page.body.decode('utf-8', 'replace')}" for page in shown)
    assert str(session.session)[:8] in everything
    for secret in (host.token, named, str(session.session), *browser.cookies.values()):
        assert secret[8:24] not in everything


POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


@pytest.mark.parametrize("logged_in", [True, False], ids=["logged in", "logged out"])
def test_every_response_keeps_itself_to_itself(host: Agent, logged_in: bool) -> None:
    for path in (*GETS, *POSTS):
        browser = host.browser() if logged_in else Browser(host.base)
        for page in (browser.get(path), browser.post(path, {})):
            assert page.headers["content-security-policy"] == POLICY
            assert page.headers["x-content-type-options"] == "nosniff"
            assert page.headers["referrer-policy"] == "same-origin"
            assert page.headers["cross-origin-resource-policy"] == "same-origin"
            assert path.startswith("/static") or page.headers["cache-control"] == "no-store"


def test_other_methods_are_told_which_are_served(host: Agent) -> None:
    browser = host.browser()
    for path in {*GETS, *POSTS}:
        served = {*(("GET", "HEAD") if path in GETS else ()), *(("POST",) if path in POSTS else ())}
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - served:
            page = browser.get(path, method)
            assert (page.status, page.headers["allow"]) == (405, ", ".join(sorted(served)))
            assert f"Not this way {method} is not served here. MCP is served at /mcp." in page.text


NOWHERE = ["/elsewhere", "/.well-known/oauth-protected-resource", "/devices/", "/devices/a/b", "/devices//X", "/devices/X//", "/static/../x",
           "/live/devices/" + "x" * 17, "/mcp//", "/%ff"]  # fmt: skip


@pytest.mark.parametrize("path", NOWHERE)
def test_what_is_no_page_is_answered_as_ever(host: Agent, path: str) -> None:
    page = host.browser().get(path)
    assert (page.status, page.html) == (404, '{"error": "not found: MCP is served at /mcp"}')


def test_without_jinja2_the_console_says_what_to_install_and_mcp_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with agent(tmp_path / "data", X=Fake()) as host:
        browser = Browser(host.base)
        pages = [browser.get(path) for path in GETS] + [browser.post(path, {"token": host.token}) for path in POSTS]
        for page in (*pages, browser.get("/logout"), browser.get("/", "PUT")):
            assert (page.status, page.headers["content-type"]) == (503, "text/plain; charset=utf-8")
            assert page.html.count("\n") == 1
            assert "pip install 'mcpboard[host]'" in page.html
        assert Browser(host.base).get("/", Origin="http://evil.example").status == 403
        assert host.caller.open(LEGACY).call("tap", x=1, y=1).text


# --- logins, without a browser -------------------------------------------------------------------


def test_a_login_ends_a_working_day_after_its_last_look() -> None:
    clock = Clock()
    logins = LoginSessions(clock)
    visitor = logins.open()
    clock.pass_by(auth.IDLE_SECONDS)
    assert logins.knows(visitor), "the look counts"
    clock.pass_by(auth.IDLE_SECONDS + 1)
    assert not logins.knows(visitor)
    logins.set_flash(visitor, "nobody reads this")
    assert logins.take_flash(visitor) == ""


def test_a_login_ends_with_its_token(host: Agent) -> None:
    """Whoever replaces the token because somebody knows it gets rid of the logins, too."""
    browser = host.browser()
    csrf = browser.get("/devices").csrf
    document = host.folder / tokens.TOKEN_FILE
    document.write_text(document.read_text().replace(host.token, "f" * len(host.token)))
    assert browser.get("/devices").goes_to == "/login"
    assert browser.post("/devices/X/test", {"csrf": csrf}).status == 401
    assert host.browser().get("/devices").status == 200


def test_the_login_used_longest_ago_makes_room() -> None:
    clock = Clock()
    logins = LoginSessions(clock)
    first, second = logins.open(), logins.open()
    for _ in range(auth.MOST_LOGINS - 2):
        clock.pass_by(1)
        logins.open()
    assert logins.knows(first)
    logins.open()
    assert (logins.knows(first), logins.knows(second)) == (True, False)


HOSTS = {"127.0.0.1:8765": 8765, "[::1]:8765": 8765, "localhost": 80, "a.name.that.opens.nothing:8765": 80, "": 80}


@pytest.mark.parametrize("host_header", HOSTS)
def test_two_agents_of_one_machine_keep_their_cookies_apart(host_header: str) -> None:
    assert auth.cookie_name(Request({"HTTP_HOST": host_header})) == f"mcpboard_console_{HOSTS[host_header]}"


# --- many wrong tokens -------------------------------------------------------------------------


def log_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "with a wrong token" in record.getMessage()]


def test_a_flood_of_wrong_tokens_is_one_line_for_each_interval(host: Agent, caplog: pytest.LogCaptureFixture) -> None:
    """And the owner gets in all the time."""
    stranger = Browser(host.base)
    csrf = stranger.get("/login").csrf
    for _ in range(100):
        assert stranger.post("/login", {"csrf": csrf, "token": "wrong"}).status == 403
    assert log_lines(caplog) == ["console: 1 login with a wrong token"]
    host.browser()
    for _ in range(2):
        host.clock.pass_by(REPORT_SECONDS)
        host.role.console.sweep()
    assert log_lines(caplog)[1:] == ["console: 99 logins with a wrong token"]
    stranger.post("/login", {"csrf": csrf, "token": "wrong"})
    assert log_lines(caplog)[2:] == ["console: 1 login with a wrong token"], "those that come alone are told at once"
