"""How far a long computation is: one callable, passed down from the caller."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, str], None]
"""Called with the share done, 0 to 1, and the current step; it may raise to cancel."""


def part_of(progress: Progress | None, start: float, stop: float) -> Progress:
    """Progress of a step that takes the share from ``start`` to ``stop`` of the whole.

    Examples
    --------
    >>> part_of(lambda share, note: print(share, note), 0.5, 1.0)(0.5, "halfway through")
    0.75 halfway through
    >>> part_of(None, 0.5, 1.0)(0.5, "nobody listens")
    """

    def report(share: float, note: str) -> None:
        if progress is not None:
            progress(start + share * (stop - start), note)

    return report


def silent(share: float, note: str) -> None:
    """Report to nobody.

    Examples
    --------
    >>> silent(0.5, "Growing trees")
    """
