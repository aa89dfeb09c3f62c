"""Who may import whom: the directions and the nevers of the house, kept by walking the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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


def imports(file: str, tree: ast.AST, inside: bool = False, typing_only: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
            for alias in node.names:
                yield Import(file, node.lineno, package + alias.name, inside, typing_only)
        deeper = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        guarded = typing_only or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        yield from imports(file, node, deeper, guarded)


# File below the package -> its source, parsed.
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))
}
ALL = [each for file, tree in TREES.items() for each in imports(file, tree)]


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
    ours = [each for each in ALL if room(each.file) == name and each.module.split(".")[0] == "mcpboard"]
    wrong = [each.where for each in ours if (each.module.split(".") + [""])[1] not in allowed]
    # The one door between them: simulated devices are phones of the simulator.
    assert not [where for where in wrong if not where.startswith("host/drivers/simulated.py")]


def test_every_folder_has_a_direction() -> None:
    assert {room(each.file) for each in ALL} <= set(DIRECTIONS)


def test_there_is_no_import_cycle() -> None:
    """Imports for typing and inside functions count like all others; what is left leads to a cycle, or is one."""
    names = {file: f"mcpboard/{file}".removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in TREES}
    left: dict[str, set[str]] = {name: set() for name in names.values()}
    for each in ALL:
        target = each.module if each.module in left else each.module.rpartition(".")[0]
        if target in left and names[each.file] != "mcpboard":
            left[names[each.file]].add(target)
    while ends := [name for name, targets in left.items() if not targets & left.keys() - {name}]:
        for name in ends:
            del left[name]
    assert not left


WAITING = {"socket", "threading", "time", "os", "logging", "random", "secrets", "requests", "werkzeug", "waitress"}


def test_the_core_imports_nothing_that_can_wait() -> None:
    assert not offenders(WAITING, lambda file: not file.startswith("protocol/"))


ONLY: Mapping[str, Callable[[str], bool]] = {
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
    assert not offenders({module}, ONLY[module])


def offenders(modules: set[str], allowed: Callable[[str], bool]) -> list[str]:
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


def attributes(*names: str) -> set[tuple[str, str]]:
    """File and owner of every attribute of one of these names."""
    found = ((file, node) for file, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {(file, ast.unparse(node.value)) for file, node in found if node.attr in names}


def test_only_config_reads_the_environment() -> None:
    assert {file for file, owner in attributes("environ", "getenv") if owner == "os"} <= {"config/__init__.py"}


def test_only_the_command_line_configures_logging() -> None:
    configured = attributes("basicConfig", "addHandler", "setLevel", "dictConfig")
    assert {room(file) for file, _ in configured} <= {"cli"}


FIXED = {
    "setup.cfg", "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
    ".gitignore", ".git-blame-ignore-revs", ".pre-commit-config.yaml", ".github", ".ci", "docs", "mcpboard", "tests", "deploy",
}  # fmt: skip


def test_the_top_level_holds_what_was_agreed_and_nothing_else() -> None:
    made = (".egg-info", "__pycache__", "_cache", "build", "dist", "out", "demo", ".hypothesis", ".coverage", ".git")
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".venv")}
    assert {name for name in found if not name.endswith(made)} <= FIXED


def test_the_standard_library_of_the_core_is_short() -> None:
    """Five or so modules are enough for a protocol; a new one here is worth a thought."""
    used = {each.module.split(".")[0] for each in ALL if each.file.startswith("protocol/")} & sys.stdlib_module_names
    assert used <= {
        "__future__", "base64", "binascii", "collections", "dataclasses", "hmac", "ipaddress", "itertools", "json", "math",
        "re", "typing",
    }  # fmt: skip
