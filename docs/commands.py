"""Make docs/cli.md of what the commands say of themselves (`make pages`)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from mcpboard.cli import HOST_MENU, HOST_PROGRAM, MENU, PROGRAM, parser_for

HEAD = """# Commands

`mcpboard VERB --help` says the same in a terminal; this page is made by `make pages`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a tool, a check or the output failed |
| 2 | wrong usage or settings; one line on standard error says what |
| 130 | interrupted |
| 141 | nobody reads the output |
"""


def page() -> str:
    """Return the page in Markdown: every verb with its sentence, its example and its arguments."""
    parts = [HEAD]
    for program, menu in ((PROGRAM, MENU), (HOST_PROGRAM, HOST_MENU)):
        verbs = _verbs(parser_for((), program))
        for title, group in menu.items():
            parts.append(f"## {program}, {title}\n" if program == PROGRAM else f"## {program}\n")
            for name in group:
                parts += _described(f"{program} {name}", verbs[name])
    return "\n".join(parts)


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}


def _described(command: str, verb: argparse.ArgumentParser, level: str = "###") -> Iterator[str]:
    yield f"{level} {command}\n"
    yield f"{verb.description}\n"
    if verb.epilog:
        yield f"```sh\n{verb.epilog.removeprefix('example: ')}\n```\n"
    rows = [row for row in map(_row, verb._actions) if row]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])
    for name, action in _verbs(verb).items():
        yield from _described(f"{command} {name}", action, "####")


def _row(action: argparse.Action) -> str:
    if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
        return ""
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    name = f"{', '.join(action.option_strings)}{value}" if action.option_strings else str(action.metavar)
    meaning = (action.help or "").replace("%(default)s", str(action.default))
    return f"| `{name}` | {meaning} |".replace("stderr|syslog|FILE", r"stderr\|syslog\|FILE")


def main() -> None:
    """Write the page."""
    (Path(__file__).parent / "cli.md").write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
