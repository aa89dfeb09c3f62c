"""Access to the console: every route against every visitor who may not look, or not write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.wrappers import Request

from mcpboard.host.access import tokens
from mcpboard.host.console import auth
from mcpboard.host.console.auth import REPORT_SECONDS, LoginSessions
from mcpboard.host.console.routes import FRAGMENT, PUBLIC, URL_MAP
from tests.host.console.rig import Agent, Browser, agent, path_of, settled
from tests.host.rig import Fake, result, threads
from tests.support.clock import Clock
from tests.support.http import LEGACY, Caller


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Agent]:
    with agent(tmp_path / "data", X=Fake()) as found:
        yield found


RULES = list(URL_MAP.iter_rules())
GETS = [path_of(rule.endpoint) for rule in RULES if "GET" in (rule.methods or ())]
POSTS = [path_of(rule.endpoint) for rule in RULES if "POST" in (rule.methods or ())]
EVERY = [*(("GET", path) for path in GETS), *(("POST", path) for path in POSTS)]
PRIVATE = [rule for rule in RULES if rule.endpoint not in PUBLIC]
PRIVATE_GETS = [path_of(rule.endpoint) for rule in PRIVATE if "GET" in (rule.methods or ())]
PRIVATE_POSTS = [path_of(rule.endpoint) for rule in PRIVATE if "POST" in (rule.methods or ())]
FRAGMENTS = [path_of(rule.endpoint) for rule in RULES if rule.endpoint.endswith(FRAGMENT)]


def status_of(browser: Browser, method: str, path: str, csrf: str, **headers: str) -> int:
    if method == "POST":
        return browser.post(path, {"csrf": csrf, "token": "wrong"}, **headers).status
    return browser.get(path, **headers).status


FOREIGN = ["http://evil.example", "http://127.0.0.1:1", "http://localhost.evil.example", "null", "https://[::1]"]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_origin_is_refused_on_every_route(host: Agent, origin: str) -> None:
    browser = host.browser()
    csrf = browser.get("/devices").csrf
    host.caller.open().call("tap", x=1, y=1)
    refused = {each: status_of(browser, *each, csrf, Origin=origin) for each in EVERY}
    assert set(refused.values()) == {403}, refused
    assert list(host.role.manager.leases()) == ["X"]
    assert browser.get("/").status == 200


def test_our_own_origin_is_not(host: Agent) -> None:
    browser = host.browser()
    csrf = browser.get("/devices").csrf
    assert browser.get("/", Origin=host.base).status == 200
    assert browser.post("/devices/X/test", {"csrf": csrf}, Origin=host.base).goes_to == "/devices/X"


def test_a_name_that_was_rebound_to_us_can_not_even_try_a_token(host: Agent) -> None:
    name = "rebound.example:8765"
    form = {"csrf": "", "token": host.token}
    assert Browser(host.base).post("/login", form, Host=name, Origin=f"http://{name}").status == 403


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("csrf", ["missing", "empty", "wrong", "of another login"])
def test_a_form_without_our_csrf_token_changes_nothing(host: Agent, path: str, csrf: str) -> None:
    browser, other = host.browser(), host.browser()
    host.caller.open().call("tap", x=1, y=1)
    given = {"missing": {}, "empty": {"csrf": ""}, "wrong": {"csrf": "0" * 64}}
    form = given.get(csrf, {"csrf": other.get("/devices").csrf})
    (owner,) = host.role.manager.leases().values()
    page = browser.post(path, {**form, "token": host.token, "owner": owner.label, "id": "Y", "kind": "simulated"})
    assert page.status == 403
    assert "Nothing was changed" in page.text
    assert host.role.manager.ids() == ["X"]
    assert list(host.role.manager.leases()) == ["X"]
    assert browser.get("/").status == 200, "still logged in"


@pytest.mark.parametrize("path", PRIVATE_GETS)
def test_nobody_sees_anything_without_a_login(host: Agent, path: str) -> None:
    page = Browser(host.base).get(path)
    assert page.status == (401 if path in FRAGMENTS else 303)
    assert (page.headers.get("location") or page.headers["hx-redirect"]) == "/login"
    assert (page.content == b"") == (path in FRAGMENTS)
    assert page.content == b"" or "target URL: /login." in page.text


@pytest.mark.parametrize("path", PRIVATE_POSTS)
def test_nobody_changes_anything_without_a_login(host: Agent, path: str) -> None:
    """A visitor has a CSRF token for the login form, which must not do for the others."""
    browser = Browser(host.base)
    page = browser.submit("/login", path, id="Y", kind="simulated")
    assert page.status == 401
    assert "not logged in" in page.text
    assert host.role.manager.ids() == ["X"]


def test_a_cookie_replayed_after_logout_is_refused_everywhere(host: Agent) -> None:
    browser = host.browser()
    csrf, kept = browser.get("/devices").csrf, dict(browser.cookies)
    assert browser.post("/logout", {"csrf": csrf}).goes_to == "/login"
    assert browser.cookies == {}, "the browser is told to forget it"
    replayed = Browser(host.base, kept)
    assert {replayed.get(path).status for path in PRIVATE_GETS} == {303, 401}
    assert {replayed.post(path, {"csrf": csrf, "id": "Y", "kind": "simulated"}).status for path in PRIVATE_POSTS} == {
        401
    }
    assert host.role.manager.ids() == ["X"]


def test_a_restart_logs_everybody_out(tmp_path: Path) -> None:
    with agent(tmp_path / "data", X=Fake()) as first:
        browser = first.browser()
    with agent(tmp_path / "data", X=Fake()) as second:
        (value,) = browser.cookies.values()
        port = second.base.rpartition(":")[2]
        assert Browser(second.base, {f"mcpboard_console_{port}": value}).get("/").goes_to == "/login"


WRONG = [
    pytest.param(lambda host: "wrong", id="another word"),
    pytest.param(lambda host: "", id="nothing"),
    pytest.param(lambda host: host.token[:-1], id="one character short"),
    pytest.param(lambda host: host.token + "=", id="one character long"),
    pytest.param(lambda host: "é" * 43, id="no ASCII"),
    pytest.param(lambda host: tokens.add_named(host.folder, "client"), id="a client's token"),
]


@pytest.mark.parametrize("make", WRONG)
def test_a_wrong_token_does_not_log_in(host: Agent, make: object) -> None:
    assert callable(make)
    browser = Browser(host.base)
    page = browser.submit("/login", "/login", token=make(host))
    assert page.status == 403
    assert "not the token of this host agent" in page.text
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


def test_a_console_cookie_opens_no_mcp(host: Agent) -> None:
    """A web page cannot set the Authorization header, but a browser sends cookies by itself."""
    (pair,) = host.browser().cookies.items()
    response = Caller(host.url, None).send("POST", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Cookie="=".join(pair))
    assert (response.status, response.json) == (401, {"error": "invalid token"})


def test_a_bearer_token_opens_no_page(host: Agent) -> None:
    assert Browser(host.base).get("/", Authorization=f"Bearer {host.token}").goes_to == "/login"


def test_no_page_and_no_header_holds_a_secret(host: Agent) -> None:
    """Tokens, and the ids of sessions but for the prefix that everybody may see."""
    named = tokens.add_named(host.folder, "client")
    session = host.caller.open()
    session.call("tap", x=1, y=1)
    minted = host.caller.call("list_devices", session_id="new")
    browser = host.browser()
    for path in ("/", "/devices/X"):
        browser.get(path)
    settled()
    shown = [browser.get(path) for path in GETS] + [
        Browser(host.base).get("/login"),
        Browser(host.base).post("/login", {}),
    ]
    everything = "\n".join(f"{page.headers} {page.content.decode('utf-8', 'replace')}" for page in shown)
    assert str(session.session)[:8] in everything
    for secret in (host.token, named, str(session.session), *browser.cookies.values()):
        assert secret[8:24] not in everything
    assert minted is not None


POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


@pytest.mark.parametrize(("method", "path"), EVERY)
@pytest.mark.parametrize("logged_in", [True, False], ids=["logged in", "logged out"])
def test_every_response_keeps_itself_to_itself(host: Agent, method: str, path: str, logged_in: bool) -> None:
    browser = host.browser() if logged_in else Browser(host.base)
    page = browser.get(path) if method == "GET" else browser.post(path, {})
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cross-origin-resource-policy"] == "same-origin"
    assert path.startswith("/static") or page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", sorted({*GETS, *POSTS}))
def test_other_methods_are_told_which_are_served(host: Agent, path: str) -> None:
    browser = host.browser()
    served = {*(("GET", "HEAD") if path in GETS else ()), *(("POST",) if path in POSTS else ())}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - served:
        page = browser.get(path, method)
        assert (page.status, page.headers["allow"]) == (405, ", ".join(sorted(served)))
        assert f"Not this way {method} is not served here." in page.text


@pytest.mark.parametrize(
    "path",
    [
        "/elsewhere",
        "/.well-known/oauth-protected-resource",
        "/devices/",
        "/devices/a/b",
        "/devices//X",
        "/devices/X//",
        "/static/../x",
        "/live/devices/" + "x" * 17,
        "/mcp//",
        "/%ff",
    ],  # fmt: skip
)
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


def test_a_flash_message_is_shown_once() -> None:
    logins = LoginSessions(Clock())
    visitor = logins.open()
    logins.set_flash(visitor, "done")
    assert (logins.take_flash(visitor), logins.take_flash(visitor)) == ("done", "")


HOSTS = [
    pytest.param("127.0.0.1:8765", "mcpboard_console_8765", id="a port"),
    pytest.param("[::1]:8765", "mcpboard_console_8765", id="IPv6"),
    pytest.param("localhost", "mcpboard_console_80", id="the usual port"),
    pytest.param("any.name:8765", "mcpboard_console_80", id="a name, which opens nothing"),
    pytest.param("", "mcpboard_console_80", id="no Host"),
]


@pytest.mark.parametrize(("host_header", "name"), HOSTS)
def test_two_agents_of_one_machine_keep_their_cookies_apart(host_header: str, name: str) -> None:
    assert auth.cookie_name(Request({"HTTP_HOST": host_header})) == name


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
    host.clock.pass_by(REPORT_SECONDS)
    host.role.console.sweep()
    host.role.console.sweep()
    assert log_lines(caplog) == ["console: 1 login with a wrong token", "console: 99 logins with a wrong token"]
    host.browser()


def test_wrong_tokens_now_and_then_are_all_told(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    wrong = LoginSessions(clock)
    for seconds in (0.0, REPORT_SECONDS - 1, 1.0, REPORT_SECONDS):
        clock.pass_by(seconds)
        wrong.note_wrong()
    assert [int(line.split()[1]) for line in log_lines(caplog)] == [1, 2, 1]


def test_wrong_tokens_of_many_threads_are_counted_once_each(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    wrong = LoginSessions(clock)

    def note_many() -> None:
        for _ in range(100):
            wrong.note_wrong()

    with threads() as pool:
        for each in [pool.submit(note_many) for _ in range(8)]:
            result(each)
    clock.pass_by(REPORT_SECONDS)
    wrong.report()
    assert sum(int(line.split()[1]) for line in log_lines(caplog)) == 800
    assert len(log_lines(caplog)) == 2
