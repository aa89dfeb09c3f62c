"""`mcpboard tools` and `mcpboard call`: the tools of a server, and one call of one, from a shell."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mcpboard.cli import tool_arguments
from mcpboard.cli.config import Verbs, add_verb, print_columns
from mcpboard.config.files import read_file
from mcpboard.errors import ClientError, ConfigError
from mcpboard.protocol.limits import TOKEN_FILE_LIMIT
from mcpboard.text import json_object, printable

if TYPE_CHECKING:
    from mcpboard.client import Attachment, Client, Picture, Progress

MIB = 1 << 20  # bytes
WORTH_A_LINE = MIB // 4  # bytes; only a bundle takes long enough for its progress to be read

# Media type -> the ending that a hint proposes for the file of a screenshot or bundle.
EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "application/gzip": ".tar.gz"}


def add_to(verbs: Verbs) -> None:
    """Add the verbs `tools` and `call`."""
    example = "mcpboard tools http://192.168.42.1:8080/mcp"
    tools = add_verb(verbs, "tools", "List the tools of an MCP server.", example, list_tools)
    _add_connection(tools)
    tools.add_argument("--json", action="store_true", help="as the server describes them")
    example = "mcpboard call http://192.168.42.1:8080/mcp screenshot -o screen.jpg"
    call = add_verb(verbs, "call", "Call one tool of an MCP server.", example, call_tool)
    _add_connection(call)
    call.add_argument("tool", metavar="TOOL", help="its name, as `tools` lists it")
    call.add_argument(
        "arguments", metavar="KEY=VALUE", nargs="*", help="arguments, read by the tool's schema",
        default=(),  # or argparse would name them among what is missing
    )  # fmt: skip
    call.add_argument("--json", metavar="ARGS", help="arguments as one JSON object; KEY=VALUE goes over it")
    call.add_argument("-o", "--output", metavar="FILE", help="where to save the screenshot or file that comes back")


def _add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="such as http://192.168.42.1:8080/mcp")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server requires")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="limit for the whole answer (default: 320)")


def _client(arguments: argparse.Namespace) -> Client:
    from mcpboard.client import Client
    from mcpboard.transport.http import TIMEOUT_SECONDS

    timeout = TIMEOUT_SECONDS if arguments.timeout is None else arguments.timeout
    if not 0 < timeout <= 86400:  # a day, in seconds; sockets take no NaN and no infinity
        raise ConfigError("--timeout: seconds above 0 are expected, a day at the most")
    token = None if arguments.token_file is None else token_from(arguments.token_file)
    return Client(arguments.url, token, timeout=timeout)


def token_from(path: str) -> str:
    """Return the bearer token in a file that holds nothing else, or as the host agent writes it; raises ConfigError."""
    try:
        token = read_file(path, TOKEN_FILE_LIMIT).decode("ascii").strip()
    except ConfigError as error:
        raise ConfigError(f"--token-file cannot be read: {error}") from None
    except UnicodeDecodeError:
        token = ""
    if token.startswith("{"):  # the host agent's own file
        member = (json_object(token) or {}).get("token")
        token = member if isinstance(member, str) else ""
    if not token.isprintable() or not token:
        raise ConfigError(f"--token-file: {path} must hold one line of visible ASCII characters, the token")
    return token


def _failed(url: str, error: ClientError) -> int:
    print(f"mcpboard: {url}: {error}", file=sys.stderr)
    return 1


# --- tools ---------------------------------------------------------------------------------------


def list_tools(arguments: argparse.Namespace) -> int:
    """Print name, title and required arguments of every tool, or the whole list as JSON."""
    try:
        with _client(arguments) as client:
            tools = client.list_tools()
    except ClientError as error:
        return _failed(arguments.url, error)
    if arguments.json:
        try:
            print(json.dumps(tools, indent=2))
        except RecursionError:
            print(f"mcpboard: {arguments.url}: the list is nested too deeply to be printed", file=sys.stderr)
            return 1
        return 0
    rows = [("TOOL", "TITLE", "NEEDS")]
    for tool in tools:
        required = tool_arguments.schema_of(tool).get("required")
        needs = ", ".join(map(str, required)) if isinstance(required, list) else ""
        rows.append((printable(tool["name"]), printable(str(tool.get("title", ""))), printable(needs)))
    print_columns(rows)
    return 0


# --- call ----------------------------------------------------------------------------------------


def call_tool(arguments: argparse.Namespace) -> int:
    """Call the tool once; print its text, save what it brings, and say by the exit code how it went."""
    output: str | None = arguments.output
    if output is not None:  # while nothing was sent: the call may move a phone
        place = output if os.path.exists(output) else os.path.dirname(os.path.abspath(output))
        if os.path.isdir(output) or not os.access(place, os.W_OK):
            raise ConfigError(f"-o: {output} cannot be written; nothing was sent")
    written = tool_arguments.pairs(arguments.arguments)
    given = tool_arguments.json_object(arguments.json) if arguments.json is not None else {}
    try:
        with _client(arguments) as client, _progress(arguments.tool) as progress:
            if written:
                # Arguments of one that is not listed stay text: the server is the one to refuse it.
                tool = next((tool for tool in client.list_tools() if tool["name"] == arguments.tool), {})
                given |= tool_arguments.typed(written, tool)
            result = client.call(arguments.tool, given, progress=progress)
    except ClientError as error:
        return _failed(arguments.url, error)
    for text in result.texts:
        print(printable(text, keep="\n\t") if sys.stdout.isatty() else text)
    brought: list[Picture | Attachment] = [*result.images, *result.blobs]
    if output is not None:
        return _save(brought, output) or int(result.is_error)
    for item in brought:
        name = arguments.tool.replace("_", "-") + EXTENSIONS.get(item.mime, ".bin")
        print(f"{printable(item.mime)}, {len(item.content)} bytes; add -o {printable(name)} to save it")
    return int(result.is_error)


def _save(brought: Sequence[Picture | Attachment], output: str) -> int:
    """Write the first of what was brought; return 1 when there is nothing to write."""
    if not brought:
        print(f"mcpboard: the answer brought no screenshot and no file; {output} is left as it was", file=sys.stderr)
        return 1
    first = brought[0]
    try:
        with open(output, "wb") as file:
            file.write(first.content)
    except OSError as error:
        raise ConfigError(f"-o: {output} cannot be written: {error.strerror}") from None
    print(f"{output}: {printable(first.mime)}, {len(first.content)} bytes", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _progress(tool: str) -> Iterator[Progress | None]:
    """Give a function that shows progress in a line that goes away at the end; None unless on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(received: int, total: int | None) -> None:
        if received >= WORTH_A_LINE:
            of = f" of {total / MIB:.1f}" if total else ""
            print(f"\r{printable(tool)}: {received / MIB:.1f}{of} MiB", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # erase the line
