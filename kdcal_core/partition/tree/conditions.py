"""What a rule asks of one column, as codes and in plain words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition.tree.columns import InputColumn
from kdcal_core.text import listed

NAMED, NAMED_SHORT = 3, 2  # categories that a rule names before it counts the others
MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Condition:
    """The values of one column that a rule lets through.

    Attributes
    ----------
    column : InputColumn
    allowed : (256,) bool
        Which codes pass; of a number's codes a run of neighbours, the missing one apart.
    """

    column: InputColumn
    allowed: NDArray[np.bool_]

    @property
    def low(self) -> float | None:
        """Of a number: values are above this; None where nothing bounds them."""
        first = self._run[0] if len(self._run) else 0
        return float(self.column.edges[first - 1]) if first else None

    @property
    def high(self) -> float | None:
        """Of a number: values are at most this; None where nothing bounds them."""
        last = self._run[-1] if len(self._run) else self.column.bins - 1
        return float(self.column.edges[last]) if last < self.column.bins - 1 else None

    @property
    def categories(self) -> tuple[str, ...]:
        """Of a category: the names that pass, the most frequent first."""
        return tuple(self.column.categories[code] for code in self._run) if self._named else ()

    @property
    def missing(self) -> bool:
        """Whether a missing value passes."""
        return bool(self.allowed[self.column.missing_code])

    @property
    def words(self) -> str:
        """The condition in words, with the column's and the categories' names as they are.

        Examples
        --------
        >>> age = InputColumn("age", "number", edges=np.array([28.0, 41.0]))
        >>> Condition(age, np.arange(256) == 1).words
        'age is above 28 and up to 41'
        >>> job = InputColumn("job", "category", categories=("Sales", "Craft", "Clerk"))
        >>> Condition(job, np.arange(256) != 0).words
        'job is not Sales'
        """
        return self._words(NAMED)

    @property
    def label(self) -> str:
        """The condition where there is little room: one or two categories, the others counted.

        Examples
        --------
        >>> job = InputColumn("job", "category", categories=("Sales", "Craft", "Clerk", "x", "y"))
        >>> Condition(job, np.isin(np.arange(256), [0, 1, 2])).label
        'job is not x or y'
        >>> many = InputColumn("job", "category", categories=tuple("abcdefgh"))
        >>> Condition(many, np.arange(256) < 4).label
        'job is a, b or 2 more'
        """
        return self._words(NAMED_SHORT)

    def _words(self, named: int) -> str:
        told = self._named_words(named) if self._named else self._range_words()
        return f"{self.column.name} {told}"

    @property
    def _named(self) -> bool:
        return self.column.kind == "category"

    @property
    def _run(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.allowed[: self.column.bins])

    def _range_words(self) -> str:
        low, high = self.low, self.high
        if not len(self._run):
            return "is missing"
        if low is None and high is None:
            return "is anything" if self.missing else "is not missing"
        parts = [] if low is None else [f"above {_digits(low)}"]
        parts += [] if high is None else [f"up to {_digits(high)}"]
        also = " or missing" if self.missing and self.column.has_missing else ""
        return f"is {' and '.join(parts)}{also}"

    def _named_words(self, named: int) -> str:
        names = [name or '""' for name in self.column.categories]
        if self.column.has_missing:
            names.append(MISSING)
        passes = self.allowed[: len(names)]
        inside = [name for name, passed in zip(names, passes, strict=True) if passed]
        outside = [name for name, passed in zip(names, passes, strict=True) if not passed]
        if not outside:
            return "is anything"
        if len(outside) < len(inside):
            return f"is not {listed(outside, named, last='or')}"
        return f"is {listed(inside, named, last='or')}"


def _digits(value: float) -> str:
    return f"{value:,.15g}"
