"""The command line: ``kdcal diagnose``, ``calibrate``, ``score`` and ``convert``.

Only argument parsing is imported here; each command imports what it needs when it runs.
"""

from __future__ import annotations

from kdcal_core.cli.main import main

__all__ = ["main"]


def __dir__() -> list[str]:
    return sorted(__all__)
