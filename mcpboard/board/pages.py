"""The board's own pages, which never wait for anything: `/health` for programs, `/` for people."""

# `/` is one page without a script for whoever opens the board's address in a browser. It says whether
# MCP is on, how the backends were, and what to paste into each known client, for the very URL that the
# page was asked by. It holds nothing secret: where a token is required, config entries refer to it by a
# placeholder.

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from html import escape
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from string import Template
from typing import Any

from mcpboard import __version__
from mcpboard.client_configs import CLIENT_CONFIGS, ClientConfig, Target, Token, filled
from mcpboard.errors import Refused
from mcpboard.net import HIGHEST_PORT
from mcpboard.protocol.endpoint import JSON
from mcpboard.protocol.messages import Reply
from mcpboard.protocol.tools import compact

States = Mapping[str, Mapping[str, Any]]  # of each backend, as its `state` tells them

# What may stand in a URL between `http://` and the path: a name or IPv4 literal, or an IPv6 one in brackets.
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}))(?::(?P<port>[0-9]{1,5}))?")

PLACEHOLDER = Token(file="TOKEN-FILE", value="TOKEN")

# Read once, when the server starts: no request looks at a file for its page.
_FOLDER = Path(__file__).parent
HOME = Template((_FOLDER / "templates" / "home.html").read_text("utf-8"))
STYLE = (_FOLDER / "static" / "home.css").read_text("utf-8")
_STYLE_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    # The page's own style sheet and nothing else: whatever might get into the page, it stays text.
    (
        "Content-Security-Policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)


def health(mcp_enabled: bool, states: States) -> Reply:
    """Return the page for programs that watch the board."""
    told = {"name": "mcpboard", "version": __version__, "mcp_enabled": mcp_enabled, "backends": states}
    return Reply(200, (JSON,), (compact(told),))


# --- the page for people ---------------------------------------------------------------------

_HOW_TO_ENABLE = "— set <code>mcp_enabled = true</code>, or use the switch in Config Web"
_TOKEN = (
    "required from every client: put yours where a config entry says <code>TOKEN</code>, or names a file or variable"
)
_NO_TOKEN = "none is required: whoever reaches this port can see and drive the phone"
_TITLES = {"agent": "Agent", "config_web": "Config Web"}
_STATES = {"ok": '<b class="ok">ok</b>', "failing": '<b class="failing">failing</b>', "not asked yet": "not asked yet"}
_SYSTEMS = {"darwin": " (macOS)", "win32": " (Windows)"}


def home(host: str | None, mcp_enabled: bool, states: States, requires_token: bool) -> Reply:
    """Return the page for a browser that asked `host`; raises Refused where that is no address."""
    target = Target(mcp_url(host), token=PLACEHOLDER if requires_token else None)
    facts = {
        "MCP": '<b class="on">on</b>' if mcp_enabled else f'<b class="off">off</b> {_HOW_TO_ENABLE}',
        "URL": _code(target.url),
        "Token": _TOKEN if requires_token else _NO_TOKEN,
    }
    for name, last in states.items():
        ago = f" when last asked, {last['seconds_ago']} s ago" if "seconds_ago" in last else ""
        facts[_TITLES[name]] = _STATES[last["state"]] + ago
    text = HOME.substitute(
        style=STYLE,
        facts="".join(f"<dt>{name}</dt><dd>{shown}</dd>" for name, shown in facts.items()),
        clients="".join(_client(config, target) for config in CLIENT_CONFIGS),
        url=escape(target.url),
        token_flag=" --token-file FILE" if requires_token else "",
        version=escape(__version__),
    )
    return Reply(200, HEADERS, (text.encode(),))


def mcp_url(host: str | None) -> str:
    """Return the MCP URL at the address in a Host header; raises Refused for anything that is no address."""
    found = _HOST.fullmatch(host or "")
    valid = found is not None and (not found["port"] or 1 <= int(found["port"]) <= HIGHEST_PORT)
    if found is not None and found["v6"]:
        try:
            IPv6Address(found["v6"])
        except AddressValueError:
            valid = False
    if not valid:
        raise Refused(400, {"error": "the Host header is missing or is no address; open http://<board-ip>:<port>/"})
    return f"http://{host}/mcp"


def _client(config: ClientConfig, target: Target) -> str:
    """Return what to do for one client, folded under its name."""
    title = escape(config.title)
    if config.format == "steps":
        parts = [f"<ol>{_items(filled(config.steps, target))}</ol>"]
    else:
        title += f" <small>{escape(config.format.upper())}</small>"
        usual = [(s, each) for s, places in config.places.items() for each in places if not each.startswith("$")]
        places = " or ".join(_code(place) + _SYSTEMS.get(system, "") for system, place in usual)
        parts = [f"<p>In {places}:</p><pre>{escape(config.text(target))}</pre>"]
    if config.command:
        parts.append(f"<p>or in a shell:</p><pre>{escape(config.shell_command(target))}</pre>")
    if config.reload:
        parts.append(f"<p>Then: {escape(config.reload)}.</p>")
    if config.notes:
        parts.append(f'<ul class="soft">{_items(config.notes)}</ul>')
    return f'<details name="client"><summary>{title}</summary><div>{"".join(parts)}</div></details>\n'


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
