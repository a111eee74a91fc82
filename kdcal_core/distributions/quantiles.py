"""Predicted quantiles as predictive distribution."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions import _rowwise
from kdcal_core.distributions._shapes import checked_levels, checked_table
from kdcal_core.distributions.base import PredictiveDistribution, Rows
from kdcal_core.distributions.normal import log_normal_density
from kdcal_core.errors import InputError, InputWarning


class Quantiles(PredictiveDistribution):
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
        Where a level is impossible, given twice or the only one, or a quantile is not finite.

    Warns
    -----
    InputWarning
        Where quantiles cross: names the first such row and the share of such rows. They are
        sorted.

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
            _warn_of_crossing(table)
            table = np.sort(table, axis=1)
        self.levels, self.values = given, table

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.levels, chosen.values = self.levels, self.values[rows]
        return chosen

    @property
    def continuous(self) -> bool:
        return not (self.values[:, 1:] == self.values[:, :-1]).any()

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"levels": self.levels, "values": self.values}

    @property
    def _width(self) -> int:
        return int(self.values.shape[1])

    def _tail(self, first: int, second: int) -> tuple[FloatArray, FloatArray, float]:
        """The end's quantile (n, 1), its normal tail's std (n, 1), and its place z in it."""
        z = ndtri(self.levels[[first, second]])
        end, inner = self.values[:, [first]], self.values[:, [second]]
        return end, (inner - end) / (z[1] - z[0]), float(z[0])

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._cdf_from(y, _rowwise.count_up_to(self.values, y, "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._cdf_from(y, _rowwise.count_up_to(self.values, y, "left"))

    def _cdf_from(self, y: FloatArray, count: NDArray[np.int64]) -> FloatArray:
        after = np.clip(count, 1, len(self.levels) - 1)
        low, high = _rowwise.pick(self.values, after - 1), _rowwise.pick(self.values, after)
        way = np.clip(_ratio(y - low, high - low), 0, 1)
        inside = self.levels[after - 1] + way * (self.levels[after] - self.levels[after - 1])
        # without a tail the outermost quantile is the support's end
        below = np.where(self._tail(0, 1)[1] > 0, ndtr(self._lower_z(y)), 0.0)
        above = np.where(self._tail(-1, -2)[1] > 0, ndtr(self._upper_z(y)), 1.0)
        return np.where(count == 0, below, np.where(count == len(self.levels), above, inside))

    def _lower_z(self, y: FloatArray) -> FloatArray:
        """Place in the lower normal tail, at most that of the lowest quantile."""
        end, std, z = self._tail(0, 1)
        return z + _ratio(np.minimum(y - end, 0), std)

    def _upper_z(self, y: FloatArray) -> FloatArray:
        end, std, z = self._tail(-1, -2)
        return z + _ratio(np.maximum(y - end, 0), std)

    def _ppf(self, p: FloatArray) -> FloatArray:
        after = np.clip(np.searchsorted(self.levels, p), 1, len(self.levels) - 1)
        start, end = self.levels[after - 1], self.levels[after]
        way = np.clip((p - start) / (end - start), 0, 1)
        low, high = _rowwise.pick(self.values, after - 1), _rowwise.pick(self.values, after)
        answer: FloatArray = low + way * (high - low)
        for outside, first, second in (
            (p < self.levels[0], 0, 1),
            (p > self.levels[-1], -1, -2),
        ):
            quantile, std, z = self._tail(first, second)
            beyond = np.where(std > 0, quantile + std * (ndtri(p) - z), quantile)
            answer = np.where(outside, beyond, answer)
        return answer

    def _log_density(self, y: FloatArray) -> FloatArray:
        count = _rowwise.count_up_to(self.values, y, "right")
        after = np.clip(count, 1, len(self.levels) - 1)
        gap = _rowwise.pick(self.values, after) - _rowwise.pick(self.values, after - 1)
        answer = np.log(self.levels[after] - self.levels[after - 1]) - np.log(gap)
        for outside, tail_z, std in (
            (count == 0, self._lower_z(y), self._tail(0, 1)[1]),
            (count == len(self.levels), self._upper_z(y), self._tail(-1, -2)[1]),
        ):
            beyond = np.where(std > 0, log_normal_density(tail_z) - np.log(std), -np.inf)
            answer = np.where(outside, beyond, answer)
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
        for inner in (1, -2):
            end, std, z = self._tail(0 if inner == 1 else -1, inner)
            # of the normal tail from z outwards: its mass, and its first and second moment
            mass = float(ndtr(z if inner == 1 else -z))
            height = float(np.exp(log_normal_density(np.array(z)))) * (-1 if inner == 1 else 1)
            location = (end - centre - std * z)[:, 0]
            scale = std[:, 0]
            first += location * mass + scale * height
            second += (
                location**2 * mass + 2 * location * scale * height + scale**2 * (mass + z * height)
            )
        return centre[:, 0] + first, np.maximum(second - first**2, 0)

    def _crps(self, y: FloatArray) -> FloatArray:
        """The integral of F^2 up to y and of (1 - F)^2 from y on, piece by piece."""
        low, high = self.values[:, :-1], self.values[:, 1:]
        start, end = self.levels[:-1], self.levels[1:]
        split = np.clip(y, low, high)
        at = start + (end - start) * _ratio(split - low, high - low)
        inside = (split - low) * _mean_square(start, at)
        inside += (high - split) * _mean_square(1 - at, 1 - end)
        answer: FloatArray = inside.sum(axis=1, keepdims=True)
        answer = answer + self._crps_beyond(self._tail(0, 1), self._lower_z(y), y, side=-1.0)
        return answer + self._crps_beyond(self._tail(-1, -2), self._upper_z(y), y, side=1.0)

    def _crps_beyond(
        self, tail: tuple[FloatArray, FloatArray, float], z: FloatArray, y: FloatArray, side: float
    ) -> FloatArray:
        """One tail's part, seen from outside: ``side`` -1 for the lower and 1 for the upper."""
        end, std, z_end = tail
        distance = np.maximum(side * (y - end), 0)
        outward, outward_end = side * z, side * z_end
        safe = np.where(std > 0, outward, outward_end)
        # beyond the outcome the tail's own mass, between quantile and outcome all but it
        beyond = _squared_tail(safe)
        between = _squared_tail(-safe) - _squared_tail(np.array(-outward_end))
        return np.where(std > 0, std * (beyond + between), distance)


def _squared_tail(z: FloatArray) -> FloatArray:
    """Integral of (1 - Phi)^2 from z to infinity, Phi the standard normal distribution function."""
    tail, height = ndtr(-z), np.exp(log_normal_density(z))
    integral: FloatArray = -z * tail**2 + 2 * height * tail - ndtr(-np.sqrt(2) * z) / np.sqrt(np.pi)
    return integral


def _mean_square(start: FloatArray, end: FloatArray) -> FloatArray:
    """Mean of the square of what runs linearly from ``start`` to ``end``."""
    return (start**2 + start * end + end**2) / 3


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, and 0 for 0 / 0."""
    return np.where(part == 0, 0.0, part / whole)


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


def _warn_of_crossing(values: FloatArray) -> None:
    crossing = (np.diff(values, axis=1) < 0).any(axis=1)
    warnings.warn(
        f"The quantiles cross in {crossing.mean():.1%} of the rows, first in row "
        f"{int(np.flatnonzero(crossing)[0]) + 1:,}. They were sorted.",
        InputWarning,
        stacklevel=3,
    )
