"""Logistic regression of few columns on soft targets: Newton's method on all rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from kdcal_core.data import FloatArray

_SUBSAMPLE = 20_000


def fit_logistic(
    columns: Sequence[FloatArray], target: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Slopes and offset of expit(slopes . columns + offset), and its mean log loss.

    The targets are Platt's, (n1 + 1) / (n1 + 2) for a yes and 1 / (n0 + 2) for a no, so that the
    minimum is finite even if the classes are separated or one is absent.

    Parameters
    ----------
    columns : p arrays (n,)
        p may be zero.
    target : (n,) array of 0 and 1
    weight : (n,) array of positive weights

    Returns
    -------
    (p + 1,) array
        Slopes, and the offset last.
    float
        The mean log loss against the soft targets.

    Notes
    -----
    The search starts from the answer of an even subsample, which saves full passes.
    """
    n_yes = float(weight @ target)
    n_no = float(weight.sum()) - n_yes
    soft = np.where(target > 0, (n_yes + 1) / (n_yes + 2), 1 / (n_no + 2))
    at = np.zeros(len(columns) + 1)
    at[-1] = np.log((n_yes + 1) / (n_no + 1))
    stride = len(soft) // _SUBSAMPLE
    if stride > 1:
        few = [column[::stride] for column in columns]
        at, _ = _newton(at, few, soft[::stride], weight[::stride])
    return _newton(at, columns, soft, weight)


def _newton(
    at: FloatArray, columns: Sequence[FloatArray], soft: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Newton's method with halved steps on the weighted log loss."""
    share = weight / weight.sum()
    linear = np.array([*(share @ (soft * column) for column in columns), share @ soft])

    def odds(at: FloatArray) -> FloatArray:
        total = np.full(len(soft), at[-1])
        for slope, column in zip(at, columns, strict=False):
            total += slope * column
        return total

    def loss(at: FloatArray) -> float:
        return float(share @ np.logaddexp(0.0, odds(at)) - linear @ at)

    value = loss(at)
    for _ in range(100):
        fitted = expit(odds(at))
        mass = share * fitted
        gradient = np.array([*(mass @ column for column in columns), mass.sum()]) - linear
        step = np.linalg.solve(_curvature(columns, mass * (1 - fitted)), gradient)
        size = 1.0
        while (new := loss(at - size * step)) > value and size > 1e-6:
            size /= 2
        if new >= value:
            break
        at, gain, value = at - size * step, value - new, new
        if gain < 1e-14:
            break
    return at, value


def _curvature(columns: Sequence[FloatArray], bend: FloatArray) -> FloatArray:
    """Second derivatives, with a very small ridge for columns that do not vary."""
    p = len(columns)
    found = 1e-12 * np.eye(p + 1)
    found[p, p] += bend.sum()
    for j, column in enumerate(columns):
        bent = bend * column
        found[j, p] = found[p, j] = bent.sum()
        for k in range(j, p):
            found[j, k] += bent @ columns[k]
            found[k, j] = found[j, k]
    return found
