"""What is known of an input column: its name, its kind, and what each of its codes stands for.

A column is read as numbers or as category names, whatever dtype it came in; its bins and the
categories that keep a code of their own are found from its values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store import storable

MAX_BINS = 254  # one more code says missing, and all of them fit into a byte
CODES = 256
OTHER = "other"


def _none() -> NDArray[np.float64]:
    return np.empty(0)


@storable
@dataclass(frozen=True, eq=False)
class InputColumn:
    """A column of the inputs as a tree sees it.

    Attributes
    ----------
    name : str
        As in the table, hence untrusted: escape it before it reaches a screen.
    kind : "number" or "category"
        Truth values are categories.
    edges : (bins - 1,) float64
        Of a number: a value x has code i where ``edges[i - 1] < x <= edges[i]``.
    categories : tuple of str
        Of a category: the name behind each code, the most frequent first.
    pooled : bool
        Whether the last category stands for all that have no code of their own.
    has_missing : bool
        Whether a value was missing where the column was read first.

    Examples
    --------
    >>> age = InputColumn("age", "number", edges=np.array([28.0, 41.0]))
    >>> age.bins, age.missing_code
    (3, 3)
    """

    name: str
    kind: Literal["number", "category"]
    edges: NDArray[np.float64] = field(default_factory=_none)
    categories: tuple[str, ...] = ()
    pooled: bool = False
    has_missing: bool = False

    @property
    def bins(self) -> int:
        """Number of codes that are not the missing one."""
        return len(self.edges) + 1 if self.kind == "number" else len(self.categories)

    @property
    def missing_code(self) -> int:
        """The code of a missing value, the last one."""
        return self.bins

    def same_as(self, other: InputColumn) -> bool:
        """Whether the codes of both mean the same."""
        return self is other or (
            (self.name, self.kind, self.categories, self.pooled)
            == (other.name, other.kind, other.categories, other.pooled)
            and np.array_equal(self.edges, other.edges)
        )

    def check(self) -> None:
        """Raise :class:`InputError` where the description contradicts itself."""
        if self.kind == "number":
            edges = self.edges
            sound = (
                isinstance(edges, np.ndarray)
                and edges.ndim == 1
                and edges.dtype == np.float64
                and len(edges) < MAX_BINS
                and bool(np.isfinite(edges).all())
                and bool((np.diff(edges) > 0).all())
                and not self.categories
            )
        else:
            names = self.categories
            sound = (
                self.kind == "category"
                and len(self.edges) == 0
                and len(names) <= MAX_BINS
                and all(isinstance(name, str) for name in names)
                # a pooled "other" may bear the name of a category
                and len(set(names[:-1])) == len(names[:-1])
                and (self.pooled or len(set(names)) == len(names))
                and not (self.pooled and not names)
            )
        flags = isinstance(self.pooled, bool) and isinstance(self.has_missing, bool)
        if not (sound and flags and isinstance(self.name, str)):
            raise InputError(
                "The description of an input column contradicts itself",
                fix="Fit again from the data.",
                column=str(self.name),
            )


Kind = Literal["number", "category", "empty"]

NUMBERS = ("integer", "floating", "mixed-integer-float")


def kind_of(values: pd.Series[Any], name: str, file: str | None) -> Kind:
    """Number or category, and "empty" where a column of objects holds nothing at all."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return "category"
    if pd.api.types.is_object_dtype(dtype):
        return _kind_of_objects(values, name, file)
    if pd.api.types.is_string_dtype(dtype):
        return "category"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "number"
    raise _unusable(str(dtype), name, file)


def _kind_of_objects(values: pd.Series[Any], name: str, file: str | None) -> Kind:
    found = pd.api.types.infer_dtype(values, skipna=True)
    if found == "empty":
        return "empty"
    if found in ("string", "boolean"):
        return "category"
    if found in NUMBERS:
        return "number"
    raise _unusable(found, name, file)


def _unusable(found: str, name: str, file: str | None) -> InputError:
    dates = found.startswith(("date", "time", "period"))
    return InputError(
        "A column of the inputs holds dates or times"
        if dates
        else f"A column of the inputs holds neither numbers nor categories but {found} values",
        fix="Turn it into numbers, for example days since a date, or leave it out."
        if dates
        else "Turn it into numbers or text, or leave it out.",
        file=file,
        column=name,
    )


def numbers_of(values: pd.Series[Any], name: str, file: str | None) -> NDArray[np.float64]:
    """The values as contiguous float64, NaN where missing."""
    try:
        return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except OverflowError as error:
        raise InputError(
            "A column of the inputs holds whole numbers above 1e308",
            fix="Give smaller ones; where they only name things, give them as text.",
            file=file,
            column=name,
        ) from error


def categories_of(values: pd.Series[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Each row's index into the names, -1 where missing, and the names."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, found = values.cat.codes.to_numpy(), values.cat.categories
    else:
        codes, found = pd.factorize(values)
    return np.asarray(codes, dtype=np.int64), [str(name) for name in found]


def unusable_columns(frame: pd.DataFrame) -> dict[str, str]:
    """Columns that cannot partition the inputs, each with the reason in words.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30], "day": pd.to_datetime(["2026-01-01"] * 2)})
    >>> unusable_columns(frame)
    {'day': 'A column of the inputs holds dates or times'}
    """
    reasons = {}
    for position, name in enumerate(frame.columns):
        try:
            kind_of(frame.iloc[:, position], str(name), None)
        except InputError as error:
            reasons[str(name)] = error.what
    return reasons


DIGITS = 17  # a double needs no more
SLACK = 0.25  # of a bin, by which an edge may leave its quantile for a shorter number


def find_edges(values: NDArray[np.float64], max_bins: int) -> NDArray[np.float64]:
    """Edges between all distinct values, or between quantiles where there are too many.

    What is not finite is left out. An edge is the shortest decimal there is between the values on
    its two sides, or within a quarter of a bin of its quantile, so that what is said of a split
    is short and yet exactly what it does.

    Examples
    --------
    >>> find_edges(np.array([1.0, 2.0, 2.0, 5.0]), 254).tolist()
    [1.0, 3.0]
    >>> find_edges(np.array([0.1234, 0.1299]), 254).tolist()
    [0.126]
    """
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= max_bins:
        return short_between(distinct[:-1], distinct[1:])
    # a value lies at the middle of its ranks, so that frequent ones fill bins alone
    place = (np.cumsum(counts) - counts / 2) * (max_bins / counts.sum())
    ends = np.arange(1, max_bins)
    low = np.searchsorted(place, ends - SLACK) - 1
    high = np.searchsorted(place, ends + SLACK)
    inside = (low >= 0) & (high < len(distinct))
    return np.unique(short_between(distinct[low[inside]], distinct[high[inside]]))


def short_between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of fewest digits near the middle that is at least ``low`` and below ``high``."""
    middle = low / 2 + high / 2
    edges = np.where((middle >= low) & (middle < high), middle, low)
    size = np.abs(np.where(middle == 0, 1.0, middle))
    exponent = np.floor(np.log10(size)).astype(np.int64)
    waiting = np.ones(len(low), dtype=bool)
    for digits in range(DIGITS):
        places = digits - 1 - exponent
        unit = 10.0 ** np.minimum(np.abs(places), 300)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.where(
                places >= 0, np.floor(middle * unit) / unit, np.floor(middle / unit) * unit
            )
        # without a digit there is only zero, or minus one, for what is smaller than one
        found = waiting & (rounded >= low) & (rounded < high) & ((digits > 0) | (size < 1))
        edges[found] = rounded[found]
        waiting &= ~found
    return edges


def find_categories(
    counts: NDArray[np.int64], names: list[str], max_bins: int
) -> tuple[tuple[str, ...], bool]:
    """The names that occur, the most frequent first, and whether the rarest are one "other".

    Examples
    --------
    >>> find_categories(np.array([1, 3, 2, 0]), ["a", "b", "c", "d"], 2)
    (('b', 'other'), True)
    """
    seen = sorted(np.flatnonzero(counts), key=lambda at: (-counts[at], names[at]))
    kept = [names[at] for at in seen]
    if len(kept) <= max_bins:
        return tuple(kept), False
    return (*kept[: max_bins - 1], OTHER), True
