"""The command line: ``kdcal diagnose`` and ``kdcal convert``.

Only argument parsing is imported here; each command imports what it needs when it runs.
"""

from __future__ import annotations

from kdcal_core.cli.main import main

__all__ = ["main"]
