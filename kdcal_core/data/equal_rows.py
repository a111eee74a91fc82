"""Rows that two sets have in common: one rule and one sentence for any two sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from scipy.special import betainc

from kdcal_core.data.schema import FloatArray, IntArray

_ERRORS = 5.0  # standard errors beyond which matches are no chance
_FEW = 20  # rows that may all differ in an ordinary column
_LOOKED_AT = 1_000  # rows, before all are
_ALARMS = 0.05  # share of draws in which chance may be taken for copies where few rows are equal


@dataclass(frozen=True)
class EqualRows:
    """How many rows of one set are also in another, and how many chance gives.

    Attributes
    ----------
    rows : int
        Rows of the one set that equal some row of the other.
    n : int
        Rows of the one set.
    expected : float
        Matching pairs that chance gives, by how often rows of the other equal each other.
    pairs : int
        Matching pairs found.
    error : float
        Standard error of ``pairs - expected`` where the sets are drawn independently.
    least : int
        Fewest pairs that are no chance where few rows or none are equal within the sets.
    by : str
        What is equal in them: "features" or "probabilities", and the class.
    """

    rows: int
    n: int
    expected: float
    pairs: int
    error: float
    least: int = 0
    by: Literal["features", "probabilities"] = "features"

    @property
    def beyond_chance(self) -> bool:
        """Whether there are more matches than equal rows by chance would give."""
        return bool(self.pairs > self.expected + _ERRORS * self.error and self.pairs >= self.least)

    @property
    def share(self) -> tuple[float, float, float]:
        """Share of the rows that are copies: about how many, at least and at most, 0 to 1.

        Examples
        --------
        >>> EqualRows(40, 140, 0.0, 40, 0.0).share[0].__round__(3)
        0.286
        """
        more = self.pairs - self.expected
        least = more - _ERRORS * self.error if self.beyond_chance else 0.0
        found = (more if self.beyond_chance else 0.0, least, max(more, 0.0) + self._hidden)
        value, low, high = (
            min(max(one, 0.0), float(self.rows or self.n)) / self.n for one in found
        )
        return value, low, min(high, 1.0)

    @property
    def _hidden(self) -> float:
        """Pairs beyond the expected ones that would not stand out."""
        return max(_ERRORS * self.error, self.least - 1.0 - self.expected)

    def words(self, which: str, other: str, harm: str) -> str | None:
        """A sentence about them, with the count and what chance gives; None where none match.

        Parameters
        ----------
        which, other : str
            The two sets, such as "evaluation set" and "calibration set".
        harm : str
            What rows in both sets cause; said where there are more than chance gives.

        Examples
        --------
        >>> found = EqualRows(40, 140, 0.0, 40, 0.0)
        >>> found.words("evaluation set", "calibration set", "that flatters")
        '40 rows of the evaluation set are in the calibration set too (40 pairs, chance gives 0): \
that flatters.'
        >>> found = EqualRows(448, 6000, 427.0, 530, 21.0)
        >>> found.words("evaluation set", "calibration set", "").split(";")[0]
        '448 of 6,000 rows of the evaluation set equal one of the calibration set (530 pairs, \
chance gives 427)'
        """
        if not self.rows:
            return None
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs:,} pairs"
        counted = f"({pairs}, chance gives {_about(self.expected)})"
        many = self.rows > 1
        if self.beyond_chance:
            text = f"{self.rows:,} rows" if many else "1 row"
            are = "are" if many else "is"
            return f"{text} of the {which} {are} in the {other} too {counted}: {harm}."
        if self.by == "features":
            alike = f"equal{'' if many else 's'} one of the {other}"
        else:
            alike = f"{'have' if many else 'has'} the probabilities and class of one of the {other}"
        return (
            f"{self.rows:,} of {self.n:,} rows of the {which} {alike} {counted}; that is no sign "
            f"that the sets share rows, though up to about {self._hidden:,.0f} shared ones "
            "would not stand out."
        )


def equal_rows(
    first: NDArray[np.uint64],
    second: NDArray[np.uint64],
    unseen: float = 0.0,
    *,
    fine: bool = True,
) -> EqualRows:
    """How many of ``second`` are in ``first``, and how many pairs match compared with chance.

    Rows of few distinct values equal each other by chance. How often they do is estimated from both
    sets: with c pairs of equal rows among the T = n (n - 1) / 2 + m (m - 1) / 2 within them, c n m
    / T of the n m pairs across would match if the sets were drawn independently. A small first set
    alone may have no equal rows, and still many pairs with a large second one. c is itself a count
    and varies by its square root. Pairs that share a row are not independent: where a few values
    are frequent, the count also varies by n m sd(q) (1/n + 1/m)^(1/2), where q is the share of a
    row's value.

    Where a few rows or none are equal within the sets, their number says little about chance: 200
    and 200 rows of 20,000 equally likely values share one in 86% of draws, and in 15% no two are
    equal within the sets. Unless the rows are ``fine``, pairs then count as more than chance only
    where so many of all equal pairs lie across the sets in less than 5% of draws.

    Parameters
    ----------
    first, second : (n,) and (m,) arrays of :func:`row_keys`
    unseen : float
        Equal pairs that are added to those within the sets, where none may be chance too.
    fine : bool
        Whether no rows are equal by chance unless rows within the sets are (:func:`are_fine`).

    Examples
    --------
    >>> found = equal_rows(np.array([1, 2, 3], np.uint64), np.array([3, 3, 4], np.uint64))
    >>> found.rows, found.pairs, found.expected
    (2, 2, 1.5)
    """
    values, count = np.unique(first, return_counts=True)
    place = np.minimum(np.searchsorted(values, second), len(values) - 1)
    hit = values[place] == second
    n, m = len(first), len(second)
    _, others = np.unique(second, return_counts=True)
    equal = unseen + sum(float((c * (c - 1.0) / 2.0).sum()) for c in (count, others))
    within = n * (n - 1) / 2.0 + m * (m - 1) / 2.0
    expected = equal / max(within, 1.0) * n * m
    share = count / n
    uneven = float((share * (share - (share**2).sum()) ** 2).sum())
    drawn = expected + expected**2 / max(equal, 1.0)
    error = (drawn + (n * m) ** 2 * uneven * (1.0 / n + 1.0 / m)) ** 0.5
    least = 0 if fine else _least(equal, n * m / max(n * m + within, 1.0))
    return EqualRows(int(hit.sum()), m, expected, int(count[place[hit]].sum()), error, least)


def _least(within: float, share: float) -> int:
    """Fewest pairs across that less than 5% of draws have, given those within the sets."""
    across = np.arange(1, 1000)
    # the chance that a binomial number of across + within pairs is no less than across
    rare = np.asarray(betainc(across, int(within) + 1, share)) < _ALARMS
    return int(across[np.argmax(rare)]) if rare.any() else 0


def are_fine(*tables: Any) -> bool:
    """Whether some column is measured so finely that rows are hardly ever equal by chance.

    Most of its values have more than six significant digits in every table.

    Examples
    --------
    >>> are_fine(np.array([[0.1234567], [2.2345678]]), np.array([[3.7654321]]))
    True
    >>> are_fine(np.array([[1234567], [0.25]]))
    False
    """
    frames = [t if isinstance(t, pd.DataFrame) else pd.DataFrame(np.asarray(t)) for t in tables]
    return any(
        all(at < frame.shape[1] and _is_fine(frame.iloc[:, at]) for frame in frames)
        for at in range(frames[0].shape[1])
    )


def _is_fine(column: pd.Series[Any]) -> bool:
    if not types.is_float_dtype(column.dtype):
        return False
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.abs(values[np.isfinite(values) & (values != np.trunc(values))])
    unit = 10.0 ** (np.floor(np.log10(values)) - 5.0)
    steps = values / unit
    long = np.abs(steps - np.rint(steps)) > 1e-4
    return bool(long.sum() > len(column) / 2)


def without_identifiers(*tables: pd.DataFrame) -> tuple[pd.DataFrame, ...] | None:
    """The tables without the columns that number or name the rows of each of them.

    Such a column holds whole numbers or text, of which no two rows of a table have the same. A copy
    of a row may have another one. None where there is no such column, or no other.

    Examples
    --------
    >>> one = pd.DataFrame({"loan": range(100, 130), "age": [20, 30, 40] * 10})
    >>> two = pd.DataFrame({"loan": range(500, 530), "age": [20, 35, 50] * 10})
    >>> [list(table) for table in without_identifiers(one, two)]
    [['age'], ['age']]
    >>> without_identifiers(one[["age"]], two[["age"]]) is None
    True
    """
    width = min(table.shape[1] for table in tables)
    rest = [
        at for at in range(width) if not all(_names_rows(table.iloc[:, at]) for table in tables)
    ]
    if not rest or len(rest) == width:
        return None
    return tuple(table.iloc[:, rest] for table in tables)


def _names_rows(column: pd.Series[Any]) -> bool:
    if types.is_bool_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype):
        return False
    known = column.dropna()
    if len(known) <= _FEW or known.iloc[:_LOOKED_AT].duplicated().any():
        return False
    if types.is_numeric_dtype(column.dtype) and (known.to_numpy(dtype=np.float64) % 1 > 0).any():
        return False
    return bool(known.is_unique)


def row_keys(table: Any, y: IntArray | None = None) -> NDArray[np.uint64]:
    """One number a row, equal for equal rows whatever their columns' types and names.

    Parameters
    ----------
    table : data frame or (n, d) array
    y : (n,) array, optional
        The class of each row, which then has to be equal too.

    Examples
    --------
    >>> one, other = row_keys(pd.DataFrame({"a": [1, 2]})), row_keys(np.array([[1.0], [3.0]]))
    >>> (one == other).tolist()
    [True, False]
    """
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(np.asarray(table))
    whole = _plain(frame)
    if y is not None:
        whole["class"] = np.asarray(y)
    hashed = pd.util.hash_pandas_object(whole, index=False)
    return np.asarray(hashed.to_numpy(), dtype=np.uint64)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers as floats and all else as text; all columns at once where all are numbers."""
    numeric = [types.is_numeric_dtype(kind) for kind in frame.dtypes]
    if all(numeric):
        return pd.DataFrame(_floats(frame))
    columns = (frame.iloc[:, at] for at in range(frame.shape[1]))
    return pd.DataFrame(
        {
            at: _floats(column) if is_number else _texts(column)
            for at, (column, is_number) in enumerate(zip(columns, numeric, strict=True))
        }
    )


def _floats(numbers: pd.DataFrame | pd.Series[Any]) -> FloatArray:
    # zero is added, so that -0.0 becomes 0.0
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0


def _texts(column: pd.Series[Any]) -> NDArray[np.object_]:
    return column.astype("string").fillna("").to_numpy(dtype=object)


def _about(expected: float) -> str:
    return f"{expected:,.0f}" if expected >= 10.0 else f"{expected:.2g}"
