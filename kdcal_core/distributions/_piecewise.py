"""Distribution functions that run linearly between points, with a tail beyond either end."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions import _rowwise
from kdcal_core.distributions._tails import Tail
from kdcal_core.distributions.base import PredictiveDistribution


class Piecewise(PredictiveDistribution):
    """F at ``levels`` (q,) is given by ``points`` (n, q), ascending in every row.

    Equal points make an atom. Where a row has no tail at an end, the end is that of its support.
    """

    @property
    @abstractmethod
    def _levels(self) -> FloatArray: ...

    @property
    @abstractmethod
    def _points(self) -> FloatArray: ...

    @abstractmethod
    def _tails(self) -> tuple[Tail, Tail]:
        """Below the least point and above the greatest."""

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
        return self._cdf_from(y, _rowwise.count_up_to(self._points, y, "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._cdf_from(y, _rowwise.count_up_to(self._points, y, "left"))

    def _cdf_from(self, y: FloatArray, count: NDArray[np.int64]) -> FloatArray:
        levels, points = self._levels, self._points
        last = len(levels) - 1
        before, after = np.clip(count - 1, 0, last), np.clip(count, 0, last)
        low, high = _rowwise.pick(points, before), _rowwise.pick(points, after)
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
        low, high = _rowwise.pick(points, before), _rowwise.pick(points, after)
        answer: FloatArray = np.where(way == 1, high, low + way * (high - low))
        lower, upper = self._tails()
        below = points[:, :1] - lower.distance(p)
        above = points[:, -1:] + upper.distance(1.0 - p)
        answer = np.where(p < levels[0], below, answer)
        return np.where(p > levels[-1], above, answer)

    def _crps(self, y: FloatArray) -> FloatArray:
        """The integral of F^2 up to y and of (1 - F)^2 from y on, piece by piece."""
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
    """Mean of the square of what runs linearly from ``start`` to ``end``."""
    return (start**2 + start * end + end**2) / 3


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, and 0 for 0 / 0."""
    return np.where(part == 0, 0.0, part / whole)
