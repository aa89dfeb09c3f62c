"""The board's settings files, read again and again: what each says, or said before it was damaged.

Each file and each key counts by itself. `docs/settings.md` has the whole table.
"""

from __future__ import annotations

from mcpboard.config.board import AGENT, SWITCHES, misspelt_off, rows, strays
from mcpboard.config.files import Document, FileMissing, Files
from mcpboard.config.schema import OURS, Found, Layer, from_table
from mcpboard.errors import ConfigError

KEPT = "(until then the last good settings stay effective)"
CLOSED = "(until then MCP and the shell stay disabled)"


def _switched_on(layer: Layer, last: Layer | None) -> set[str]:
    """Return the switches that a file says are on, and did not before."""
    on = {key for key in SWITCHES if key in layer and layer[key].value}
    return {key for key in on if not (last and key in last and last[key].value)}


def named_by(key: str, source: str) -> str | None:
    """Return what names the file whose path the setting `key` is, as an error says it; None for the default."""
    return None if source == "default" else source if source.startswith("--") else key


class OwnFile:
    """Our own file: `ours` is its table [mcpboard], `agents` the Agent's table in it.

    `problems` are a line for each thing that is wrong with it; of what is wrong the last good values
    stay. `enables` are the switches that its last change turned on.
    """

    def __init__(self, path: str, named_by: str | None) -> None:
        self.path = path
        self._named_by = named_by
        self._was_there = False
        self.problems: list[str] = []
        self.ours: Layer = {}
        self.agents: Layer = {}
        self.enables: set[str] = set()

    def read(self, files: Files) -> None:
        """Read it; it may be missing where nobody named it and it never was there."""
        try:
            document = files.toml(self.path, self._named_by)
            if document is None and self._was_there:
                raise FileMissing(f"{self.path}: no such file any more; restore it, or restart the server")
        except ConfigError as error:
            self.problems, self.enables = [str(error)], set()
            return
        self._was_there = document is not None
        document = document or Document(self.path, {})
        self.problems = strays(document)
        self.ours = self._table(OURS, document, self.ours)
        last, self.agents = self.agents, self._table(AGENT, document, self.agents)
        self.enables = _switched_on(self.agents, last)

    def _table(self, name: str, document: Document, last: Layer) -> Layer:
        faults: dict[str, str] = {}
        layer = from_table(rows(name), document, name, faults)
        # A known key that is missing may be mistyped, and one of those that are unknown.
        kept = last if self.problems else {key: last[key] for key in faults if key in last}
        self.problems = list(dict.fromkeys([*self.problems, *faults.values()]))
        return {**kept, **layer}


class AgentFile:
    """The Agent's file: `layer` is what it sets, None while there is no such file.

    `problems` are lines for the log. `unread` maps each switch that could not be read since the start
    to the reason: it is off until then. `enables` are the switches that the last change turned on or
    made readable. `fault` is the reason where MCP is disabled though the file does not say so.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.layer: Layer | None = None
        self.document: Document | None = None
        self.unread: dict[str, str] = {}
        self.enables: set[str] = set()
        self.fault: str | None = None
        self.path = ""
        self._was_at = ""  # the path where there was a file

    def read(self, files: Files, named: Found, effective: Layer) -> None:
        """Read the file at the path `named`; `effective` are the settings until now, none at the start.

        Raises ConfigError only at the start, for a file that somebody named and that is not there.
        """
        path, source = named
        self.path = path
        self.document, self.fault, self.problems, self.enables = None, None, [], set()
        try:
            self.document = files.toml(path, None if effective else named_by("agent_config", source))
        except FileMissing:  # where somebody named it, at the start
            raise
        except ConfigError as error:
            self.fault = str(error)
            if not effective:
                self.layer = dict.fromkeys(SWITCHES, Found(False, path))
                self.unread = dict.fromkeys(SWITCHES, self.fault)
            self.problems = [f"{error} {CLOSED if self.unread else KEPT}"]
            return
        if self.document is not None:
            self._was_at = path
            self._take(self.document, effective)
            return
        self.layer = None
        if path == self._was_at or self.unread or source != "default":
            self.fault = f"{path}: no such file; what is disabled stays disabled until a file enables it"
            self.problems = [f"{self.fault}, or the server restarts"]

    def _take(self, document: Document, effective: Layer) -> None:
        faults: dict[str, str] = {}
        layer = from_table(rows(AGENT), document, AGENT, faults)
        if "mcp_enabled" not in layer and (elsewhere := misspelt_off(document)):
            self.fault = f"{document.path}: {elsewhere}; MCP is disabled until that is corrected"
            self.problems.append(self.fault)
            layer["mcp_enabled"] = Found(False, document.path)
        unread = {key: faults[key] for key in SWITCHES if key in faults and (not effective or key in self.unread)}
        for key in faults.keys() - layer.keys():
            if key in unread:
                layer[key] = Found(False, document.path)
            elif effective:
                layer[key] = effective[key]
        self.fault = self.fault or faults.get("mcp_enabled")
        until = {key: f"(until then {key} stays false)" if key in unread else KEPT for key in faults}
        self.problems += dict.fromkeys(f"{fault} {until[key]}" for key, fault in faults.items())
        self.enables = _switched_on(layer, self.layer) | self.unread.keys() - unread.keys()
        self.layer, self.unread = layer, unread
