"""What the tests share: programs started and stopped, packages installed, servers in a thread."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of the repository
