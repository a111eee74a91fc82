"""Predicted quantiles as predictive distribution."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions import _rowwise
from kdcal_core.distributions._piecewise import Piecewise
from kdcal_core.distributions._shapes import checked_levels, checked_table
from kdcal_core.distributions._tails import NormalTail, Tail
from kdcal_core.distributions.base import Rows
from kdcal_core.distributions.normal import log_normal_density
from kdcal_core.errors import InputError, InputWarning

MANY_ROWS = 20
"""Rows that do not all cross at the same step by chance."""


class Quantiles(Piecewise):
    """Quantiles at q levels a row.

    Parameters
    ----------
    levels : (q,) array
        At least two different levels strictly between 0 and 1, in any order.
    values : (n, q) array
        The quantiles, in the order of ``levels``.

    Attributes
    ----------
    levels : (q,)
        Ascending.
    values : (n, q)
        Ascending in every row.

    Raises
    ------
    InputError
        Where a level is impossible, given twice or the only one, a quantile is not finite, or
        quantiles descend in most rows, cross at half of the steps of every row, or at the same
        step in all of 20 rows or more: then the columns are reversed or swapped.

    Warns
    -----
    InputWarning
        Where quantiles cross otherwise: names the first row and the shares of rows and of
        neighbouring levels. They are sorted.

    Notes
    -----
    Between the levels the quantile function is linear. Beyond the outermost levels it is the
    tail of the normal distribution that goes through the two outermost quantiles on that side, so
    that outcomes outside get PIT values inside (0, 1), uniform ones for a normal prediction. Mean,
    standard deviation and CRPS are exact for this distribution. Two equal quantiles make an atom,
    and at the end of the row end the support.

    Examples
    --------
    >>> predicted = Quantiles([0.1, 0.5, 0.9], [[-1.0, 0.0, 2.0]])
    >>> predicted.cdf([[-1.0, 0.0, 1.0]]).round(4).tolist()
    [[0.1, 0.5, 0.7]]
    >>> predicted.ppf(0.3).round(4).tolist()
    [-0.5]
    """

    family: ClassVar[str] = "quantiles"
    levels: FloatArray
    values: FloatArray

    def __init__(self, levels: ArrayLike, values: ArrayLike) -> None:
        given = np.atleast_1d(checked_levels(levels, open_ended=True))
        table = checked_table(values, "quantile")
        if given.shape != table.shape[1:]:
            raise InputError(
                f"There are {given.size} levels and {table.shape[1]} quantiles a row",
                fix="Give one column of quantiles for each level.",
            )
        order = np.argsort(given)
        if (order[:-1] > order[1:]).any():
            given, table = given[order], table[:, order]
        _check_levels(given)
        if not _rowwise.ascending(table):
            _judge_crossing(table)
            table = np.sort(table, axis=1)
        self.levels, self.values = given, table

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.levels, chosen.values = self.levels, self.values[rows]
        return chosen

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"levels": self.levels, "values": self.values}

    @property
    def _levels(self) -> FloatArray:
        return self.levels

    @property
    def _points(self) -> FloatArray:
        return self.values

    @property
    def resolved(self) -> float:
        return 1 - 2 * float(max(self.levels[0], 1 - self.levels[-1]))

    def _tails(self) -> tuple[Tail, Tail]:
        z = ndtri(self.levels)
        lower = (self.values[:, [1]] - self.values[:, [0]]) / (z[1] - z[0])
        upper = (self.values[:, [-1]] - self.values[:, [-2]]) / (z[-1] - z[-2])
        ends = float(self.levels[0]), float(1 - self.levels[-1])
        return NormalTail(ends[0], lower), NormalTail(ends[1], upper)

    def _log_density(self, y: FloatArray) -> FloatArray:
        count = _rowwise.count_up_to(self.values, y, "right")
        after = np.clip(count, 1, len(self.levels) - 1)
        gap = _rowwise.pick(self.values, after) - _rowwise.pick(self.values, after - 1)
        answer = np.log(self.levels[after] - self.levels[after - 1]) - np.log(gap)
        lower, upper = self._tails()
        below = lower.log_density(np.maximum(self.values[:, :1] - y, 0.0))
        above = upper.log_density(np.maximum(y - self.values[:, -1:], 0.0))
        answer = np.where(count == 0, below, np.where(count == len(self.levels), above, answer))
        atom = count - _rowwise.count_up_to(self.values, y, "left") > 1
        return np.where(atom, np.inf, answer)

    def _mean(self) -> FloatArray:
        return self._moments()[0]

    def _std(self) -> FloatArray:
        return np.sqrt(self._moments()[1])

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance, exact, taken about a value in the middle of each row."""
        centre = self.values[:, [len(self.levels) // 2]]
        around = self.values - centre
        low, high, step = around[:, :-1], around[:, 1:], np.diff(self.levels)
        first = ((low + high) / 2 * step).sum(axis=1)
        second = ((low**2 + low * high + high**2) / 3 * step).sum(axis=1)
        for tail, end, side in zip(self._tails(), (0, -1), (-1.0, 1.0), strict=True):
            assert isinstance(tail, NormalTail)
            # of the normal tail from its end outwards: its mass, and its first and second moment
            height = side * float(np.exp(log_normal_density(np.array(tail.start))))
            scale = tail.scale[:, 0]
            location = around[:, end] - side * scale * tail.start
            first += location * tail.mass + scale * height
            second += (
                location**2 * tail.mass
                + 2 * location * scale * height
                + scale**2 * (tail.mass + side * tail.start * height)
            )
        return centre[:, 0] + first, np.maximum(second - first**2, 0)


def _check_levels(ascending: FloatArray) -> None:
    if ascending.size < 2:
        raise InputError(
            "One quantile says nothing of the spread", fix="Give quantiles at two levels or more."
        )
    twice = np.flatnonzero(np.diff(ascending) == 0)
    if twice.size:
        raise InputError(
            f"The level {ascending[twice[0]]:g} is given twice", fix="Keep one column for a level."
        )


def _judge_crossing(values: FloatArray) -> None:
    """Refuse quantiles that look like columns of wrong levels; warn of those that cross a little.

    A model of 99 levels may well cross somewhere in every row. Columns are in a wrong order where
    in most rows the highest lies below the lowest, where every row crosses at half of its steps,
    or where all of many rows cross at the same step.
    """
    falls = np.diff(values, axis=1) < 0
    crossing, reversed_ = falls.any(axis=1), values[:, -1] < values[:, 0]
    n, count = len(values), int(crossing.sum())
    swapped = n >= MANY_ROWS and bool(falls.all(axis=0).any())
    if reversed_.mean() > 0.5 or (count == n and (swapped or falls.mean() >= 0.5)):
        reverse = int(reversed_.sum())
        what = (
            f"The quantile of the highest level lies below that of the lowest in {reverse:,} of "
            f"{n:,} rows"
            if reverse > n / 2
            else f"The quantiles cross in all {n:,} rows"
        )
        raise InputError(
            what,
            fix="Check which column holds which level: are the columns reversed? If the model does "
            "give quantiles that cross, sort those of each row first.",
        )
    warnings.warn(
        f"The quantiles cross in {crossing.mean():.1%} of the rows ({count:,} of {n:,}), first in "
        f"row {int(np.flatnonzero(crossing)[0]) + 1:,}, and {falls.mean():.2%} of all "
        "neighbouring levels descend. They were sorted.",
        InputWarning,
        stacklevel=3,
    )
