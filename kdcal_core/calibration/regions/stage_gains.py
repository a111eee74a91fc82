"""The gain of a split of a stage's tree: how far it lowers the log loss, to second order.

With r the residual ``y_k - p_k`` of a class, v its curvature ``p_k (1 - p_k)`` and z its logit, all
weighted, an offset of its own for a region lowers the log loss by half of
:class:`OffsetGain`'s ``r**2 / v``. A line of its own, Platt's map, lowers it by half of
:class:`LineGain`'s score statistic ``s' I^-1 s`` with

    s = (sum r, sum r z),    I = (sum v, sum v z; sum v z, sum v z**2).

If only the slope of a region is wrong, its residuals sum to zero, and only the second gain shows
it. If offsets are wrong, the second gain uses half of its evidence on slopes and is slightly worse.
"""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.regions.cells import logit_of
from kdcal_core.data import FloatArray
from kdcal_core.partition.tree import RowStats

_LEAST_VARIANCE = 1e-6
# Share of the greatest possible determinant below which scores in a region are all but equal.
_EQUAL = 1e-9


class OffsetGain:
    """How much offsets in regions would lower the log loss, summed over the classes.

    A side's worth is ``r**2 / v``, twice the fall of the loss. For one class and rows that weigh
    alike it is :class:`kdcal_core.partition.tree.Residual`; that asks for evidence, in which a row
    of weight 2 counts as one row, while here it counts as the row twice.

    Parameters
    ----------
    happened : (n, C) array
        1 where the row is of the class, else 0.
    p : (n, C) array
        Its probability.
    weight : (n,) array

    Examples
    --------
    >>> score = OffsetGain(np.array([[1.0], [0.0]]), np.full((2, 1), 0.5), np.ones(2))
    >>> score.gain(np.array([[0.5, 0.25]])[:, None], np.array([[-0.5, 0.25]])[:, None]).tolist()
    [2.0]
    """

    def __init__(self, happened: FloatArray, p: FloatArray, weight: FloatArray) -> None:
        w = weight[:, None]
        self._stats = _stats([w * (happened - p), w * _curvature(p)])

    @property
    def stats(self) -> RowStats:
        """Residuals and curvatures of the classes side by side."""
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Chi-square of the sides less that of both together, summed over the classes."""
        return _of_offsets(left) + _of_offsets(right) - _of_offsets(left + right)

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual of the class that the categories differ in most."""
        residual, variance = _parts(sums, 2)
        return _telling(residual, variance)


class LineGain:
    """How much Platt's map in regions would lower the log loss, summed over the classes.

    Parameters
    ----------
    happened, p, weight : arrays
        As those of :class:`OffsetGain`.

    Examples
    --------
    Two regions, of reversed and of right scores; no offset separates them:

    >>> p = np.array([0.2, 0.8, 0.2, 0.8])[:, None]
    >>> score = LineGain(np.array([0.0, 1.0, 1.0, 0.0])[:, None], p, np.ones(4))
    >>> sums = score.stats.values.reshape(2, 2, 1, 5).sum(axis=1)
    >>> score.gain(sums[0], sums[1]).round(2).tolist()
    6.25
    """

    def __init__(self, happened: FloatArray, p: FloatArray, weight: FloatArray) -> None:
        residual, mass, logit = happened - p, weight[:, None] * _curvature(p), logit_of(p)
        logit = logit - (mass * logit).sum(axis=0) / mass.sum(axis=0)
        residual *= weight[:, None]
        self._stats = _stats([residual, residual * logit, mass, mass * logit, mass * logit**2])

    @property
    def stats(self) -> RowStats:
        """Both scores and the three entries of their information, each of the classes side by side.

        Logits are less their mean, which changes no gain.
        """
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Chi-square of the sides less that of both together, summed over the classes."""
        return _of_lines(left) + _of_lines(right) - _of_lines(left + right)

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual, or what it is of the logit, of the class that they differ in most."""
        residual, product, mass, _, square = _parts(sums, 5)
        return _telling(np.hstack([residual, product]), np.hstack([mass, square]))


def _of_offsets(sums: FloatArray) -> FloatArray:
    residual, mass = _parts(sums, 2)
    found: FloatArray = _over(residual**2, mass).sum(axis=-1)
    return found


def _of_lines(sums: FloatArray) -> FloatArray:
    residual, product, mass, first, square = _parts(sums, 5)
    determinant = mass * square - first**2
    both = square * residual**2 - 2.0 * first * residual * product + mass * product**2
    apart = determinant > _EQUAL * mass * square
    found: FloatArray = np.where(
        apart, _over(both, np.where(apart, determinant, 1.0)), _over(residual**2, mass)
    ).sum(axis=-1)
    return found


def _curvature(p: FloatArray) -> FloatArray:
    return np.maximum(p * (1.0 - p), _LEAST_VARIANCE)


def _stats(values: list[FloatArray]) -> RowStats:
    return RowStats(np.zeros(len(values[0]), dtype=np.uint8), 1, np.hstack(values))


def _parts(sums: FloatArray, count: int) -> list[FloatArray]:
    return np.split(sums[..., 0, :], count, axis=-1)


def _telling(score: FloatArray, mass: FloatArray) -> FloatArray:
    """Of several means of the categories, (b, C), the one that they differ in most, (b,)."""
    mean = _over(score, mass)
    return mean[..., np.argmax(_over(score**2, mass).sum(axis=0))]


def _over(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)
