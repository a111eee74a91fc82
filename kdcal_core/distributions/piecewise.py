"""Distribution functions that are linear between points, with a tail beyond each end.

A tail is measured outwards from the outermost point of its row. Searches and picks work on all rows
of a table together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.distributions.distribution import PredictiveDistribution
from kdcal_core.distributions.parametric import log_normal_density

_FEW = 16


def count_up_to(ascending: FloatArray, at: FloatArray, side: Literal["left", "right"]) -> IntArray:
    """How many values of a row are <= ``at`` ("right") or < ``at`` ("left").

    Parameters
    ----------
    ascending : (n, k) or (1, k)
        Every row in ascending order.
    at : (n, g) or (1, g)

    Returns
    -------
    (n, g), or (1, g) if both are shared
        Computed by bisection in all rows together, without a loop over rows or an (n, g, k) array.

    Examples
    --------
    >>> count_up_to(np.array([[1.0, 2.0, 2.0, 3.0]]), np.array([[0.0, 2.0, 9.0]]), "right").tolist()
    [[0, 3, 4]]
    """
    if len(ascending) == 1:
        return np.searchsorted(ascending[0], at, side=side).astype(np.int64)
    n, k = ascending.shape
    compare = np.less_equal if side == "right" else np.less
    if k <= _FEW:  # faster than bisection
        few = np.zeros((n, at.shape[1]), dtype=np.uint8)
        for column in ascending.T:
            few += compare(column[:, np.newaxis], at).view(np.uint8)
        return few.astype(np.int64)
    flat, before = _flat(ascending)
    count = np.zeros((n, at.shape[1]), dtype=np.int64)
    # binary digits of the count, the largest first
    for digit in reversed(range(k.bit_length())):
        tried = count + (1 << digit)
        place = np.minimum(tried, k) + before
        reached = compare(flat.take(place), at)
        reached &= tried <= k
        count += reached.astype(np.int64) << digit
    return count


def _flat(table: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """A table's values one after another, and the place before each row's first, (n, 1)."""
    n, k = table.shape
    return table.reshape(-1), k * np.arange(n)[:, np.newaxis] - 1


def pick(table: NDArray[Any], places: IntArray) -> NDArray[Any]:
    """``table[row, places[row, g]]`` for all rows; either argument may be one row for all."""
    picked: NDArray[Any]
    if len(table) == 1:
        picked = table[0][places]
    elif len(places) == 1:
        picked = table[:, places[0]]
    elif table.flags.c_contiguous:
        flat, before = _flat(table)
        picked = flat.take(places + (before + 1))
    else:  # one value for many places, which would have to be written out
        picked = np.take_along_axis(table, places, axis=1)
    return picked


def rows_ascend(values: FloatArray, block: int = 2**17) -> bool:
    """Whether every row ascends; read in blocks, because the rows may be in a file."""
    n, k = values.shape
    size = max(1, block // k)
    for start in range(0, n, size):
        flat = values[start : start + size].reshape(-1)
        ascends = flat[1:] >= flat[:-1]
        ascends[k - 1 :: k] = True  # from one row to the next
        if not ascends.all():
            return False
    return True


class Piecewise(PredictiveDistribution):
    """F at ``levels`` (q,) is given by ``points`` (n, q), ascending in every row.

    Equal points make an atom. If a row has no tail at an end, that end is the end of its support.
    """

    @property
    @abstractmethod
    def _levels(self) -> FloatArray: ...

    @property
    @abstractmethod
    def _points(self) -> FloatArray: ...

    @abstractmethod
    def _tails(self) -> tuple[Tail, Tail]:
        """The tails below the smallest and above the largest point."""

    @property
    def continuous(self) -> bool:
        points = self._points
        tied = bool((points[:, 1:] == points[:, :-1]).any()) or points.shape[1] == 1
        return not tied

    def __len__(self) -> int:
        return len(self._points)

    @property
    def _width(self) -> int:
        return int(self._points.shape[1])

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._cdf_from(y, count_up_to(self._points, y, "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._cdf_from(y, count_up_to(self._points, y, "left"))

    def _cdf_from(self, y: FloatArray, count: NDArray[np.int64]) -> FloatArray:
        levels, points = self._levels, self._points
        last = len(levels) - 1
        before, after = np.clip(count - 1, 0, last), np.clip(count, 0, last)
        low, high = pick(points, before), pick(points, after)
        way = np.clip(_ratio(y - low, high - low), 0, 1)
        inside = levels[before] + way * (levels[after] - levels[before])
        lower, upper = self._tails()
        below = lower.survival(np.maximum(points[:, :1] - y, 0.0))
        above = 1.0 - upper.survival(np.maximum(y - points[:, -1:], 0.0))
        return np.where(count == 0, below, np.where(count > last, above, inside))

    def _ppf(self, p: FloatArray) -> FloatArray:
        levels, points = self._levels, self._points
        last = len(levels) - 1
        after = np.clip(np.searchsorted(levels, p), 0, last)
        before = np.maximum(after - 1, 0)
        step = levels[after] - levels[before]
        way = np.clip(
            np.divide(p - levels[before], step, out=np.ones_like(p), where=step > 0), 0, 1
        )
        low, high = pick(points, before), pick(points, after)
        answer: FloatArray = np.where(way == 1, high, low + way * (high - low))
        lower, upper = self._tails()
        below = points[:, :1] - lower.distance(p)
        above = points[:, -1:] + upper.distance(1.0 - p)
        answer = np.where(p < levels[0], below, answer)
        return np.where(p > levels[-1], above, answer)

    def _crps(self, y: FloatArray) -> FloatArray:
        """The integral of F^2 below y and of (1 - F)^2 above y, piece by piece."""
        points, levels = self._points, self._levels
        low, high = points[:, :-1], points[:, 1:]
        start, end = levels[:-1], levels[1:]
        split = np.clip(y, low, high)
        at = start + (end - start) * _ratio(split - low, high - low)
        inside = (split - low) * _mean_square(start, at)
        inside += (high - split) * _mean_square(1 - at, 1 - end)
        answer: FloatArray = inside.sum(axis=1, keepdims=True)
        lower, upper = self._tails()
        answer = answer + lower.crps(np.maximum(points[:, :1] - y, 0.0))
        return answer + upper.crps(np.maximum(y - points[:, -1:], 0.0))


def _mean_square(start: FloatArray, end: FloatArray) -> FloatArray:
    """Mean square of a linear function from ``start`` to ``end``."""
    return (start**2 + start * end + end**2) / 3


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, and 0 for 0 / 0."""
    return np.where(part == 0, 0.0, part / whole)


class Tail(ABC):
    """The tail beyond one end of n rows; distances are positive outwards, (n, g) or (1, g).

    Attributes
    ----------
    mass : float
        Probability beyond the end.
    scale : (n, 1)
        Zero if a row has no tail; its end is then the end of the support and has the mass.
    """

    mass: float
    scale: FloatArray

    def survival(self, distance: FloatArray) -> FloatArray:
        """Probability beyond the distance."""
        return np.where(self.scale > 0, self._survival(self._units(distance)), 0.0)

    def distance(self, survival: FloatArray) -> FloatArray:
        """The distance beyond which that probability lies."""
        with np.errstate(invalid="ignore"):
            beyond = self.scale * self._distance(np.minimum(survival, self.mass))
        return np.where(self.scale > 0, beyond, 0.0)

    def log_density(self, distance: FloatArray) -> FloatArray:
        """Log density at the distance; minus infinity if a row has no tail."""
        density = self._log_density(self._units(distance)) - np.log(self._safe)
        return np.where(self.scale > 0, density, -np.inf)

    def crps(self, distance: FloatArray) -> FloatArray:
        """This tail's part of the CRPS of an outcome at the distance; inside the end it is 0."""
        units = self._units(distance)
        part = self._safe * (self._beyond(units) + self._within(units))
        return np.where(self.scale > 0, part, distance)

    @property
    def _safe(self) -> FloatArray:
        return np.where(self.scale > 0, self.scale, 1.0)

    def _units(self, distance: FloatArray) -> FloatArray:
        units: FloatArray = distance / self._safe
        return units

    # in units of the scale

    @abstractmethod
    def _survival(self, units: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _distance(self, survival: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _log_density(self, units: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _beyond(self, units: FloatArray) -> FloatArray:
        """Integral of the squared survival from ``units`` outwards."""

    @abstractmethod
    def _within(self, units: FloatArray) -> FloatArray:
        """Integral of (1 - survival)^2 from the end to ``units``."""


class NormalTail(Tail):
    """Tail of a normal distribution whose end lies ``start`` standard deviations from its mean."""

    def __init__(self, mass: float, scale: FloatArray) -> None:
        self.mass, self.scale, self.start = mass, scale, float(-ndtri(mass))

    def _survival(self, units: FloatArray) -> FloatArray:
        return np.asarray(ndtr(-self.start - units))

    def _distance(self, survival: FloatArray) -> FloatArray:
        return np.asarray(-ndtri(survival) - self.start)

    def _log_density(self, units: FloatArray) -> FloatArray:
        return np.asarray(log_normal_density(self.start + units))

    def _beyond(self, units: FloatArray) -> FloatArray:
        return squared_normal_tail(self.start + units)

    def _within(self, units: FloatArray) -> FloatArray:
        end = np.array(-self.start)
        return squared_normal_tail(-self.start - units) - squared_normal_tail(end)


class ParetoTail(Tail):
    """Generalised Pareto: survival mass (1 + distance / (shape scale))^(-shape).

    With the mean excess of ``shape`` samples as scale it is the predictive distribution of the next
    excess of an exponential tail; its own mean excess is finite for a shape above 1.
    """

    def __init__(self, mass: float, scale: FloatArray, shape: float) -> None:
        self.mass, self.scale, self.shape = mass, scale, shape

    def _log_growth(self, units: FloatArray) -> FloatArray:
        return np.log1p(units / self.shape)

    def _survival(self, units: FloatArray) -> FloatArray:
        return np.asarray(self.mass * np.exp(-self.shape * self._log_growth(units)))

    def _distance(self, survival: FloatArray) -> FloatArray:
        fewer = np.log(self.mass) - np.log(survival)
        return np.asarray(self.shape * np.expm1(fewer / self.shape))

    def _log_density(self, units: FloatArray) -> FloatArray:
        return np.asarray(np.log(self.mass) - (self.shape + 1) * self._log_growth(units))

    def _beyond(self, units: FloatArray) -> FloatArray:
        return self.mass**2 * self._integral(2 * self.shape, units)

    def _within(self, units: FloatArray) -> FloatArray:
        start, k = np.zeros(1), self.shape
        once = self._integral(k, start) - self._integral(k, units)
        twice = self._integral(2 * k, start) - self._integral(2 * k, units)
        return units - 2 * self.mass * once + self.mass**2 * twice

    def _integral(self, power: float, units: FloatArray) -> FloatArray:
        """Integral of (1 + u / shape)^(-power) from ``units`` outwards."""
        grown = np.exp((1 - power) * self._log_growth(units))
        return np.asarray(self.shape / (power - 1) * grown)


def squared_normal_tail(z: FloatArray) -> FloatArray:
    """Integral of (1 - Phi)^2 from z to infinity, Phi the standard normal distribution function."""
    tail, height = ndtr(-z), np.exp(log_normal_density(z))
    integral: FloatArray = -z * tail**2 + 2 * height * tail - ndtr(-np.sqrt(2) * z) / np.sqrt(np.pi)
    return integral
