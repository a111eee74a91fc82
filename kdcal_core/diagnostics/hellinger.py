"""The Hellinger distance between posteriors, for simulations whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, check_proba
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import bounded_mean_interval


def hellinger_distances(p: Any, q: Any) -> FloatArray:
    """Hellinger distance of each row's two distributions over K classes, (n,) in [0, 1].

    The square root of half the sum of squares of sqrt(p) - sqrt(q) (decision D26).

    Parameters
    ----------
    p, q : (n, K) array-like
        Probabilities, each row summing to one.

    Raises
    ------
    InputError
        For values that are not probabilities (the row is named), or two shapes that differ.

    Examples
    --------
    >>> hellinger_distances([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]).tolist()
    [1.0, 0.0]
    """
    p, q = check_proba(p), check_proba(q)
    if p.shape != q.shape:
        raise InputError(
            f"The probabilities have shapes {p.shape} and {q.shape}",
            fix="Give both for the same rows and classes.",
        )
    square = 0.5 * np.square(np.sqrt(p) - np.sqrt(q)).sum(axis=1)
    return np.asarray(np.sqrt(np.minimum(square, 1.0)))


def hellinger_distance(p: Any, q: Any, *, level: float = 0.95) -> Estimate:
    """Mean over the rows of :func:`hellinger_distances`, with its interval.

    Examples
    --------
    >>> hellinger_distance([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]).value
    0.5
    """
    check_level(level)
    distances = hellinger_distances(p, q)
    value, low, high = bounded_mean_interval(distances, np.ones(len(distances)), 0.0, 1.0, level)
    return Estimate(
        name="Mean Hellinger distance between posteriors",
        label="Hellinger distance",
        value=value,
        low=low,
        high=high,
        n=len(distances),
        level=level,
        interval="normal, four rows at the ends of the range added",
    )
