"""A simulated board for tests and demonstrations: the Agent's and Config Web's APIs over a drawn phone.

Needs Pillow (`pip install 'mcpboard[simulator]'`); the ModuleNotFoundError of this package says so in one line.
"""

from __future__ import annotations

try:
    import PIL  # noqa: F401
except ModuleNotFoundError as missing:
    remedy = "the simulator draws with Pillow: pip install 'mcpboard[simulator]'"
    raise ModuleNotFoundError(remedy, name=missing.name) from None

from mcpboard.simulator.board.board import Simulator
from mcpboard.simulator.board.faults import Fault, Faults
from mcpboard.simulator.board.runs import ExecutionHold, ReceivedRequest
from mcpboard.simulator.phone.elements import Node
from mcpboard.simulator.phone.phone import Phone

__all__ = ["ExecutionHold", "Fault", "Faults", "Node", "Phone", "ReceivedRequest", "Simulator"]
