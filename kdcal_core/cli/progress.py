"""The progress of a long command, on one line of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kdcal_core.progress import Progress
from kdcal_core.text import printable

_WIDTH = 79  # a full line would break on some terminals


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """A function that shows progress on stderr if that is a terminal, and ends the line."""
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
