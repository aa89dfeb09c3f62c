"""Who may import whom: the directions and the nevers of the house, kept by walking the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import ROOT

PACKAGE = ROOT / "mcpboard"


@dataclass(frozen=True)
class Import:
    """One import: in which file and line, of what, and whether inside a function."""

    file: str  # below the package, with slashes
    line: int
    module: str
    inside: bool
    typing_only: bool

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports() -> Iterator[Import]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield from _imports_of(path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text("utf-8")))


def _imports_of(file: str, tree: ast.AST, inside: bool = False, typing_only: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for module in _modules(node):
                yield Import(file, node.lineno, module, inside, typing_only)
        deeper = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        guarded = typing_only or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        yield from _imports_of(file, node, deeper, guarded)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]


ALL = list(imports())


def room(file: str) -> str:
    """The first folder of a file, or its own name at the top."""
    return file.split("/")[0].removesuffix(".py")


# Folder or top module -> those that it may import. Itself is always allowed.
CORE = {"errors", "net", "text"}
SHARED = {"doctor", "client", "client_configs", "serving", "transport", "config", "protocol", *CORE}
DIRECTIONS: dict[str, set[str]] = {
    "errors": set(),
    "net": {"errors"},
    "text": set(),
    "protocol": CORE,
    "transport": {"protocol", *CORE},
    "config": {"protocol", *CORE},
    "serving": {"protocol", *CORE},
    "client": {"transport", "protocol", *CORE},
    "client_configs": CORE,
    "doctor": CORE,
    "board": SHARED,
    "host": SHARED,
    "laptop": SHARED,
    "simulator": set(),
    "cli": {"board", "host", "laptop", "simulator", *SHARED},
    "__main__": {"cli"},
    "__init__": set(),
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_each_room_imports_only_the_folders_below_it(name: str) -> None:
    allowed = DIRECTIONS[name] | {name, "__version__"}
    wrong = [
        each.where
        for each in ALL
        if room(each.file) == name and each.module.split(".")[0] == "mcpboard" and _target(each) not in allowed
    ]
    if name == "host":  # the one door between them: simulated devices are phones of the simulator
        wrong = [each for each in wrong if not each.startswith("host/drivers/simulated.py")]
    assert not wrong


def _target(each: Import) -> str:
    return (each.module.split(".") + [""])[1]


def test_every_folder_has_a_direction() -> None:
    assert {room(each.file) for each in ALL} <= set(DIRECTIONS)


def test_there_is_no_import_cycle() -> None:
    """Imports for typing and inside functions count like all others."""
    graph = _module_graph()
    assert not _cycle(graph)


def _module_graph() -> dict[str, set[str]]:
    """Module -> modules of ours that it imports by name."""
    modules = {_dotted(path): path for path in PACKAGE.rglob("*.py")}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for each in ALL:
        target = each.module if each.module in modules else each.module.rpartition(".")[0]
        if target in modules:
            graph[_dotted(PACKAGE / each.file)].add(target)
    graph["mcpboard"] = set()
    return graph


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules that a cycle goes through or leads to; empty when there is none."""
    left = dict(graph)
    while ends := [name for name, targets in left.items() if not targets & left.keys() - {name}]:
        for name in ends:
            del left[name]
    return sorted(left)


WAITING = {"socket", "threading", "time", "os", "logging", "random", "secrets", "requests", "werkzeug", "waitress"}


def test_the_core_imports_nothing_that_can_wait() -> None:
    assert not _offenders(WAITING, allowed=lambda file: not file.startswith("protocol/"))


ONLY = {
    "waitress": lambda file: file.startswith("serving/"),
    "werkzeug": lambda file: file.startswith(("serving/", "host/console/")),
    "requests": lambda file: file.startswith("transport/"),
    "urllib3": lambda file: file.startswith("transport/"),
    "signal": lambda file: file == "serving/server.py" or file.startswith("cli/"),
    "tomllib": lambda file: file == "config/files.py",
    "tomli": lambda file: file == "config/files.py",
    "jinja2": lambda file: file == "host/console/templating.py",
    "rapidocr": lambda file: file == "host/vision/engine.py",
    "cv2": lambda file: file in ("host/vision/icons/blobs.py", "host/vision/engine.py"),
    "numpy": lambda file: file.startswith("host/vision/"),
    "PIL": lambda file: file.startswith(("simulator/", "host/vision/")) or file == "host/drivers/images.py",
}


@pytest.mark.parametrize("module", ONLY)
def test_each_library_is_named_in_its_own_place_only(module: str) -> None:
    assert not _offenders({module}, allowed=ONLY[module])


def _offenders(modules: set[str], allowed: object) -> list[str]:
    assert callable(allowed)
    named = [each for each in ALL if each.module.split(".")[0] in modules and not each.typing_only]
    return [each.where for each in named if not allowed(each.file)]


def test_nothing_imports_the_command_line() -> None:
    inner = [each for each in ALL if (each.module + ".").startswith("mcpboard.cli.")]
    assert not [each.where for each in inner if room(each.file) not in ("cli", "__main__")]


# File -> modules it may import inside a function: first use, and optional extras.
LATE = {
    "transport/__init__.py": {"mcpboard"},
    "laptop/connect/toml_yaml_edit.py": {"tomlkit", "ruamel"},
    "host/drivers/factory.py": {"mcpboard"}, "host/console/templating.py": {"jinja2"},
    "host/drivers/images.py": {"PIL"}, "host/vision/service.py": {"mcpboard"},
}  # fmt: skip


def test_imports_inside_functions_stand_at_their_marked_spots_only() -> None:
    late = [each for each in ALL if each.inside and not each.typing_only and room(each.file) != "cli"]
    assert not [each.where for each in late if each.module.split(".")[0] not in LATE.get(each.file, set())]


def test_only_config_reads_the_environment() -> None:
    found = _source_matches(lambda node: isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"), "os")
    assert {file for file, _ in found} <= {"config/__init__.py"}


def test_only_the_command_line_configures_logging() -> None:
    words = ("basicConfig", "addHandler", "setLevel", "dictConfig")
    found = _source_matches(lambda node: isinstance(node, ast.Attribute) and node.attr in words)
    assert {file.split("/")[0] for file, _ in found} <= {"cli"}


def _source_matches(claim: object, owner: str | None = None) -> list[tuple[str, int]]:
    assert callable(claim)
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            owned = owner is None or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == owner)
            if owned and claim(node):
                found.append((path.relative_to(PACKAGE).as_posix(), getattr(node, "lineno", 0)))
    return found


FIXED = {
    "setup.cfg", "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
    ".gitignore", ".git-blame-ignore-revs", ".pre-commit-config.yaml", ".github", ".ci", "docs", "mcpboard", "tests", "deploy",
}  # fmt: skip


def test_the_top_level_holds_what_was_agreed_and_nothing_else() -> None:
    kept = {path.name for path in ROOT.iterdir() if path.name not in (".git",) and not _ignored(path.name)}
    assert kept <= FIXED


def _ignored(name: str) -> bool:
    endings = ("__pycache__", ".egg-info", "_cache", "build", "dist", "out", "demo", ".hypothesis", ".coverage")
    return name.startswith(".venv") or name.endswith(endings)


def test_the_standard_library_of_the_core_is_short() -> None:
    """Five or so modules are enough for a protocol; a new one here is worth a thought."""
    used = {each.module.split(".")[0] for each in ALL if each.file.startswith("protocol/")} & sys.stdlib_module_names
    assert used <= {
        "__future__", "base64", "binascii", "collections", "dataclasses", "hmac", "ipaddress", "itertools", "json", "math",
        "re", "typing",
    }  # fmt: skip
