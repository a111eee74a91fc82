"""What a report leaves out where it would be too large to pass on; plotly alone takes 4.8 MB."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kdcal_core.text import counted, listed

MOST_BYTES = 6_000_000
"""A report is smaller than this."""

MOST_PARTS, MOST_LINES, MOST_CHARACTERS, MOST_QUESTION = 40, 100, 500, 20_000
"""Where lists and texts are shortened: parts of a check and estimates, lines of the history, and
characters of a text and of the configuration."""

_Line = TypeVar("_Line")


@dataclass(frozen=True)
class LeftOut:
    """What a report leaves out; the audit's content and record hold all of it.

    Attributes
    ----------
    tables, hovers, pictures : frozenset of str
        Ids of the charts without their data, their texts under the pointer, and their picture.
    texts : bool
        Whether long lists and texts are shortened.
    """

    tables: frozenset[str] = frozenset()
    hovers: frozenset[str] = frozenset()
    texts: bool = False
    pictures: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """What is left out, in a sentence; empty where nothing is.

        Examples
        --------
        >>> LeftOut().words
        ''
        >>> LeftOut(frozenset({"chart-1"})).words.partition(". ")[0]
        'So that it stays below 6 MB, this report leaves out the data of 1 chart'
        """
        said = [
            f"the {what} of {counted(len(charts), 'chart')}"
            for what, charts in (
                ("data", self.tables),
                ("texts under the pointer", self.hovers),
                ("picture", self.pictures),
            )
            if charts
        ]
        said += ["the rest of long lists and texts"] * self.texts
        if not said:
            return ""
        return (
            f"So that it stays below {MOST_BYTES / 1e6:g} MB, this report leaves out "
            f"{listed(said)}. The content of the audit (audit.json) and its record hold them."
        )

    def first(self, lines: Sequence[_Line], most: int = MOST_PARTS) -> Sequence[_Line]:
        """The lines that a list shows: its first ones where it is shortened."""
        return lines[:most] if self.texts else lines

    def ends(self, lines: Sequence[_Line]) -> Sequence[_Line]:
        """As `first`, of lines in the order of time: the first and the last ones."""
        if not self.texts or len(lines) <= MOST_LINES:
            return lines
        half = MOST_LINES // 2
        return [*lines[:half], *lines[-half:]]

    def text(self, text: str, most: int = MOST_CHARACTERS) -> str:
        """A text as it is shown."""
        return f"{text[:most]}…" if self.texts and len(text) > most else text


WHOLE = LeftOut()
"""Of a report that is small enough."""


@dataclass(frozen=True)
class ChartBytes:
    """How large the parts of a chart are."""

    id: str
    table: int
    hover: int
    picture: int


def steps_of(charts: Sequence[ChartBytes]) -> tuple[LeftOut, ...]:
    """What to leave out, each more than the one before; of charts the largest first.

    Data first, which the content holds too, then texts under the pointer, which no print has, long
    lists and texts, and pictures last: their findings and words stay.

    Examples
    --------
    >>> small, large = ChartBytes("a", 9, 9, 9), ChartBytes("b", 99, 0, 99)
    >>> for one in steps_of([small, large]):
    ...     print(sorted(one.tables), sorted(one.hovers), one.texts, sorted(one.pictures))
    [] [] False []
    ['b'] [] False []
    ['a', 'b'] [] False []
    ['a', 'b'] ['a'] False []
    ['a', 'b'] ['a'] True []
    ['a', 'b'] ['a'] True ['b']
    ['a', 'b'] ['a'] True ['a', 'b']
    """
    steps = [WHOLE]
    for part in ("table", "hover", "picture"):
        for one in sorted(charts, key=lambda one: (-getattr(one, part), one.id)):
            if getattr(one, part):
                last, name = steps[-1], f"{part}s"
                more: dict[str, Any] = {name: getattr(last, name) | {one.id}}
                steps.append(replace(last, **more))
        if part == "hover":
            steps.append(replace(steps[-1], texts=True))
    return tuple(steps)


def fitted(charts: Callable[[], Sequence[ChartBytes]], render: Callable[[LeftOut], bytes]) -> bytes:
    """The page that leaves out least of those that are small enough; the smallest if none is."""
    page = render(WHOLE)
    if len(page) < MOST_BYTES:
        return page
    steps = steps_of(charts())
    at = bisect_left(steps, True, key=lambda one: len(render(one)) < MOST_BYTES)
    return render(steps[min(at, len(steps) - 1)])
