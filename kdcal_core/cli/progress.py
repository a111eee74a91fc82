"""How far a long command is, on one line of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kdcal_core.progress import Progress
from kdcal_core.text import printable

_WIDTH = 79  # a full line would break on some terminals


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """What shows progress on stderr, where that is a terminal; its line is ended afterwards."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def show(share: float, note: str) -> None:
        nonlocal shown
        shown = True
        percent = f"{share:4.0%} " if share > 0.0 else ""
        line = printable(f"{percent}{note}", _WIDTH)
        print(f"\r{line:<{_WIDTH}}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print(file=sys.stderr)
