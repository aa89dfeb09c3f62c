"""The tree of errors: as it is drawn, and what each says of an action."""

from __future__ import annotations

import inspect
import re

import pytest

from mcpboard import errors
from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ClientError, McpboardError, ToolError

BRANCH = re.compile(r"^# (?P<lead>[│ ]*)[├└]── (?P<name>\w+)")


def drawn() -> list[tuple[str, str]]:
    """(error, the one it hangs from), read off the picture at the head of the module."""
    path = ["McpboardError"]
    found = []
    for branch in filter(None, map(BRANCH.match, inspect.getsource(errors).splitlines())):
        path[len(branch["lead"]) // 4 + 1 :] = [branch["name"]]
        found.append((path[-1], path[-2]))
    return found


def grown(root: type[McpboardError] = McpboardError) -> list[tuple[str, str]]:
    """The same, from the classes of the module."""
    ours = [kind for kind in root.__subclasses__() if kind.__module__ == errors.__name__]
    return [pair for kind in ours for pair in [(kind.__name__, root.__name__), *grown(kind)]]


def test_the_tree_grows_as_it_is_drawn() -> None:
    assert sorted(drawn()) == sorted(grown())


@pytest.mark.parametrize(
    ("error", "delivery"),
    [
        *((error("x"), NOT_SENT) for error in (errors.BadArgument, errors.Busy, errors.BackendUnreachable, errors.NotOffered)),
        *((error("x"), UNKNOWN) for error in (errors.BackendTimeout, errors.BackendBroken, errors.ToolRefused)),
        (errors.BackendTimeout("x", delivery=NOT_SENT), NOT_SENT),
        (errors.ToolRefused("x", delivery=DONE), DONE),
        *((error("x"), UNKNOWN) for error in (errors.PeerTimeout, errors.PeerBroken)),
        (errors.PeerUnreachable("x"), NOT_SENT),
    ],
)  # fmt: skip
def test_an_error_says_what_became_of_the_action(error: ToolError | ClientError, delivery: str) -> None:
    assert (error.delivery, error.text, str(error)) == (delivery, "x", "x")
