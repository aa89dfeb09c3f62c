"""Measure the layout of the package with one ruler: `make house` prints the table, test_house.py keeps what is reached.

Everything is counted from the source as text, except for the last measure, which runs one
`screenshot` of the board's role against the simulator and counts the files that it enters.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "mcpboard"
TESTS = ROOT / "tests"

SHORT_MODULE = 60  # lines; a reader opens it and finds a fragment
LONG_MODULE = 400  # lines
COMMON_FUNCTION = 25  # lines that nine of ten functions stay within
LONG_FUNCTION = 60  # lines

# One per role: the same thing of each role under the same name.
RECURRING_MODULES = frozenset({"config", "doctor", "tools", "board", "probes", "rules"})

QUESTION = re.compile(r"(What|Whether|Who|How)\b")
# Words by which documents were cited that no reader of the repository has.
OUTSIDE = re.compile(
    r"\bcontracts?[:,]|\(decision \d|\bdecisions? \d+\b|\brows? \d+\b|\bfacts? \d|\bthe mission\b|\bBL-\d+"
)

Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One source file, parsed; `name` is its path below the folder that is measured."""

    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @property
    def stem(self) -> str:
        return self.name.rpartition("/")[2].removesuffix(".py")

    @cached_property
    def lines(self) -> int:
        return self.source.count("\n")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in self.nodes if isinstance(node, Functions)]

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        owners = [node for node in self.nodes if isinstance(node, (ast.Module, ast.ClassDef, *Functions))]
        firsts = [node.body[0] for node in owners if node.body]
        values = [first.value for first in firsts if isinstance(first, ast.Expr)]
        return [value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]

    @cached_property
    def code_lines(self) -> set[int]:
        """Numbers of the lines that hold code: no blank line, comment or docstring."""
        found: set[int] = set()
        empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in empty:
                found.update(range(token.start[0], token.end[0] + 1))
        for docstring in self.docstrings:
            found.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
        return found

    def length(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        """Lines of code in `function`, its head included and its docstring not."""
        return len(self.code_lines & set(range(function.lineno, (function.end_lineno or 0) + 1)))

    @cached_property
    def called_once(self) -> list[str]:
        """Private functions and methods that one spot of their own file names, and nothing else does."""
        mentions = Counter(node.id for node in self.nodes if isinstance(node, ast.Name))
        mentions.update(node.attr for node in self.nodes if isinstance(node, ast.Attribute))
        private = [each.name for each in self.functions if each.name.startswith("_") and not each.name.endswith("__")]
        return [f"{self.name}:{name}" for name in private if mentions[name] == 1]

    @cached_property
    def questions(self) -> list[str]:
        """Docstrings that open with a question word instead of saying what is done."""
        return [f"{self.name}:{each.lineno}" for each in self.docstrings if QUESTION.match(str(each.value).lstrip())]

    @cached_property
    def outside(self) -> list[str]:
        """Lines that cite a document which is not in the repository."""
        return [f"{self.name}:{at}" for at, line in enumerate(self.source.split("\n"), 1) if OUTSIDE.search(line)]


def modules(folder: Path = PACKAGE) -> list[Module]:
    """Every source file below `folder`."""
    found = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
    return [Module(path.relative_to(folder).as_posix(), path.read_text("utf-8")) for path in found]


def recurring(names: Iterable[str]) -> list[str]:
    """The names that come more than once."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def class_names(found: Iterable[Module]) -> Iterator[str]:
    """The name of every class, private ones too, as often as it is defined."""
    for module in found:
        yield from (node.name for node in module.nodes if isinstance(node, ast.ClassDef))


def share(part: int, whole: int) -> float:
    """Percent."""
    return 100 * part / whole if whole else 0.0


@dataclass(frozen=True)
class Measure:
    """One row of the table: what is counted, the value, its limit, and where to look first."""

    name: str
    value: float
    limit: float
    places: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        return self.value <= self.limit


def measures() -> Mapping[str, Measure]:
    """Every measure of the package by its name, in the order of the table."""
    found = modules()
    inner = [module for module in found if module.stem != "__init__"]
    functions = [(module, each) for module in found for each in module.functions]
    lengths = {f"{module.name}:{each.name}": module.length(each) for module, each in functions}
    code = sum(len(module.code_lines) for module in found)
    once = [place for module in found for place in module.called_once]
    short = [module.name for module in inner if module.lines < SHORT_MODULE]
    long = sorted((place for place in lengths if lengths[place] > LONG_FUNCTION), key=lengths.__getitem__, reverse=True)
    large = [module.name for module in inner if module.lines > LONG_MODULE]
    classes = recurring(class_names(found))
    names = recurring(module.stem for module in inner if module.stem not in RECURRING_MODULES)
    loose = sorted(path.name for path in PACKAGE.glob("*.py"))
    table = (
        Measure("functions per 100 code lines", round(share(len(functions), code), 1), 10),
        Measure("private functions called once, % of all", round(share(len(once), len(functions)), 1), 20, tuple(once)),
        Measure("lines of code in nine of ten functions", sorted(lengths.values())[len(lengths) * 9 // 10], 25),
        Measure("lines of code in the longest function", max(lengths.values()), LONG_FUNCTION, tuple(long)),
        Measure("modules under 60 lines, %", round(share(len(short), len(inner)), 1), 12, tuple(short)),
        Measure("lines in the longest module", max(each.lines for each in inner), LONG_MODULE, tuple(large)),
        Measure("class names defined twice", len(classes), 0, tuple(classes)),
        Measure("module names used twice", len(names), 0, tuple(names)),
        Measure("modules at the top of the package", len(loose), 8, tuple(loose)),
        _all(found, "docstrings that open with a question word", "questions"),
        _all(found, "references to documents outside the repository", "outside"),
        Measure("files entered by one screenshot", len(entered := files_entered()), 14, tuple(entered)),
        Measure("code lines of the package", code, 14_500),
        Measure("lines of the tests", sum(module.lines for module in modules(TESTS)), 27_000),
    )
    return {each.name: each for each in table}


def files_entered() -> list[str]:
    """Return the files of the package that one `screenshot` enters, from the application's call to its response."""
    # Here, so that the source can be measured where the package's dependencies are not installed.
    from werkzeug.test import create_environ

    from mcpboard import board, config
    from mcpboard.simulator import Simulator

    params = {"name": "screenshot", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code.co_filename)

    with Simulator() as simulator:
        flags = {"agent_base_url": simulator.agent_url, "mcp_config_web_base_url": simulator.config_web_url}
        settings = config.load(flags, {})
        application = board.build(lambda: settings)
        for _ in range(2):  # the first call imports what it needs
            environ = create_environ("/mcp", "http://127.0.0.1:8080", method="POST", json=message)
            environ["waitress.client_disconnected"] = bool
            entered.clear()
            sys.setprofile(note)
            try:
                reply = application(environ, lambda status, headers: None)
            finally:
                sys.setprofile(None)
            assert b'"type":"image"' in b"".join(reply)
            getattr(reply, "close", bool)()
    return sorted(path.removeprefix(f"{PACKAGE}/") for path in entered if path.startswith(f"{PACKAGE}/"))


def _all(found: Iterable[Module], name: str, places: str) -> Measure:
    everywhere = tuple(place for module in found for place in getattr(module, places))
    return Measure(name, len(everywhere), 0, everywhere)


def main(words: list[str]) -> None:
    """Print the table, with `--places` also where each measure over its limit comes from."""
    for each in measures().values():
        print(f"{'ok  ' if each.met else 'OVER'}  {each.name:<50} {each.value:>8,} (limit {each.limit:,})")
        if "--places" in words and not each.met:
            print("".join(f"        {place}\n" for place in each.places), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
