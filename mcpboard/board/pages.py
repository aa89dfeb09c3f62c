"""GET /: one page without a script for whoever opens the board's address in a browser.

It says whether MCP is on, how the backends were, and what to paste into each known client, for the
very URL that the page was asked by. It holds nothing secret: where a token is wanted, forms refer
to it by a placeholder.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping
from ipaddress import AddressValueError, IPv6Address

from mcpboard import __version__
from mcpboard.client_configs import CLIENT_CONFIGS, ClientConfig, Target, Token
from mcpboard.errors import Refused
from mcpboard.protocol.messages import Reply

# What may stand in a URL between `http://` and the path: a name or IPv4 literal, or an IPv6 one in brackets.
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}))(?::(?P<port>[0-9]{1,5}))?")
_HIGHEST_PORT = 65535  # 16 bits in TCP

PLACEHOLDER = Token(file="TOKEN-FILE", value="TOKEN")

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--page:#fbfbfa;--card:#fff;--line:#d9dce0;--code:#f3f4f5;
--good:#1a7f37;--bad:#b42318;--accent:#0b5cad}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa4af;--page:#111417;--card:#181c20;--line:#2d333a;
--code:#0d1013;--good:#4cc26a;--bad:#ff7b72;--accent:#79b8ff}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:46rem;padding:1.5rem 1rem 3rem;background:var(--page);color:var(--ink);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}p{margin:.4rem 0}
.soft,footer,dt,summary small{color:var(--soft)}
.on,.ok{color:var(--good)}.off,.failing{color:var(--bad)}
dl{display:grid;grid-template-columns:auto 1fr;gap:.35rem 1.2rem;margin:1rem 0 0;padding:1rem;background:var(--card);
border:1px solid var(--line);border-radius:.6rem}dd{margin:0;overflow-wrap:anywhere}
details{background:var(--card);border:1px solid var(--line);border-radius:.6rem;margin:.5rem 0}
summary{cursor:pointer;padding:.65rem 1rem;font-weight:600}
summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:.6rem}
summary small{font-weight:400;margin-left:.4rem}
details>div{padding:0 1rem .9rem}
pre{background:var(--code);border:1px solid var(--line);border-radius:.4rem;padding:.7rem .8rem;margin:.5rem 0;
white-space:pre-wrap;overflow-wrap:anywhere;user-select:all}
code,pre{font:.875rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
p code,dd code,li code{overflow-wrap:anywhere}
ul,ol{margin:.4rem 0;padding-left:1.3rem}
footer{margin-top:2.5rem;font-size:.875rem}
"""

_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    # The page's own style sheet and nothing else: whatever might get into the page, it stays text.
    (
        "Content-Security-Policy",
        f"default-src 'none'; style-src 'sha256-{_DIGEST}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)


def home(host: str | None, mcp_enabled: bool, seen: Mapping[str, Mapping[str, object]], wants_token: bool) -> Reply:
    """The page for a browser that asked `host`; raises Refused where that is no address.

    `seen` is how each backend was last, in the words of `/health`.
    """
    target = Target(mcp_url(host), token=PLACEHOLDER if wants_token else None)
    return Reply(200, HEADERS, (_page(target, mcp_enabled, seen).encode(),))


def mcp_url(host: str | None) -> str:
    """The MCP URL at the address in a Host header; raises Refused for anything that is no address."""
    found = _HOST.fullmatch(host or "")
    if found is None or (found["port"] and not 1 <= int(found["port"]) <= _HIGHEST_PORT) or not _is_v6(found["v6"]):
        raise Refused(400, {"error": "the Host header is missing or is no address; open http://<board-ip>:<port>/"})
    return f"http://{host}/mcp"


def _is_v6(literal: str | None) -> bool:
    try:
        return literal is None or bool(IPv6Address(literal).packed)
    except AddressValueError:
        return False


# --- the page --------------------------------------------------------------------------------

_SWITCHED_OFF = "— set <code>mcp_enabled = true</code>, or use the switch in Config Web"
_WANTED = "wanted from every client: put yours where a form says <code>TOKEN</code>, or names a file or variable"
_OPEN = "none is wanted: whoever reaches this port can see and drive the phone"
_TITLES = {"agent": "Agent", "config_web": "Config Web"}
_WORDS = {"ok": '<b class="ok">ok</b>', "failing": '<b class="failing">failing</b>'}
_SYSTEMS = {"darwin": " (macOS)", "win32": " (Windows)"}


def _page(target: Target, mcp_enabled: bool, seen: Mapping[str, Mapping[str, object]]) -> str:
    state = '<b class="on">on</b>' if mcp_enabled else f'<b class="off">off</b> {_SWITCHED_OFF}'
    rows = [("MCP", state), ("URL", _code(target.url)), ("Token", _WANTED if target.token else _OPEN)]
    rows += [(_TITLES.get(name, html.escape(name)), _seen(each)) for name, each in seen.items()]
    token_flag = " --token-file FILE" if target.token else ""
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>mcpboard</title><style>{STYLE}</style></head>
<body>
<h1>mcpboard</h1>
<p class="soft">Model Context Protocol in front of the phone at this board.</p>
<dl>{"".join(f"<dt>{name}</dt><dd>{words}</dd>" for name, words in rows)}</dl>
<h2>Set up a client</h2>
{"".join(_client(form, target) for form in CLIENT_CONFIGS)}
<h2>If it does not connect</h2>
<ul>
<li>A proxy variable that catches this address is the usual cause: set <code>NO_PROXY</code> and <code>no_proxy</code>
to this address, written out.</li>
<li>On the laptop, {_code(f"mcpboard doctor {target.url}")} names the cause, and
{_code(f"mcpboard connect CLIENT {target.url} --write{token_flag}")} writes a form for you.</li>
<li>The address may change with the network; clients then need the new one.</li>
</ul>
<footer>mcpboard {html.escape(__version__)} · <code>/health</code> says the same for programs</footer>
</body>
</html>
"""


def _seen(seen: Mapping[str, object]) -> str:
    state = str(seen.get("state", ""))
    words = _WORDS.get(state, html.escape(state))
    ago = seen.get("seconds_ago")
    return words if ago is None else f"{words} when last asked, {html.escape(str(ago))} s ago"


def _client(form: ClientConfig, target: Target) -> str:
    where = "" if form.format == "steps" else f" <small>{html.escape(form.format.upper())}</small>"
    return (
        f'<details name="client"><summary>{html.escape(form.title)}{where}</summary><div>'
        f"{''.join(_told(form, target))}</div></details>\n"
    )


def _told(form: ClientConfig, target: Target) -> Iterable[str]:
    if form.format == "steps":
        yield f"<ol>{_items(form.steps(target))}</ol>"
    else:
        yield f"<p>In {_places(form)}:</p><pre>{html.escape(form.text(target))}</pre>"
    if form.command is not None:
        yield f"<p>or in a shell:</p><pre>{html.escape(form.command(target))}</pre>"
    if form.reload:
        yield f"<p>Then: {html.escape(form.reload)}.</p>"
    if form.notes:
        yield f'<ul class="soft">{_items(form.notes)}</ul>'


def _places(form: ClientConfig) -> str:
    return " or ".join(_code(place) + _SYSTEMS.get(system, "") for system, place in form.places.items())


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{html.escape(line)}</li>" for line in lines)


def _code(text: str) -> str:
    return f"<code>{html.escape(text)}</code>"
