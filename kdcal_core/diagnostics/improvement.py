"""Comparing methods over data sets: relative improvement, and its median."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import bdtr

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.results import Estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError


def relative_improvement(parent: Any, method: Any) -> FloatArray:
    """(E_p - E_M) / E_p, paper 000 Eq. 21: 1 is no error left, 0 no change, below 0 worse.

    Parameters
    ----------
    parent, method : float or array-like
        Errors (error rate, ECE, OCE) from 0 on; shapes that broadcast.

    Returns
    -------
    numpy.ndarray
        Where the parent makes no error: 0 for a method that makes none either, and minus
        infinity for one that does, so that medians and ranks stay right.

    Raises
    ------
    InputError
        For an error that is missing, infinite or negative; of a list the row is named.

    Examples
    --------
    >>> relative_improvement([0.2, 0.1, 0.0, 0.0], [0.1, 0.2, 0.0, 0.1]).tolist()
    [0.5, -1.0, 0.0, -inf]
    """
    parent, method = _errors(parent, "parent"), _errors(method, "method")
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (parent - method) / parent
    return np.asarray(np.where((parent == 0.0) & (method == 0.0), 0.0, change))


def median_improvement(parent: Any, method: Any, *, level: float = 0.95) -> Estimate:
    """Median over data sets of :func:`relative_improvement`, one error a data set.

    The interval lies between order statistics and holds for any distribution; up to five data
    sets at level 0.95 it is the whole range, minus infinity to 1.

    Examples
    --------
    >>> median_improvement([0.2, 0.1, 0.4], [0.1, 0.1, 0.1]).value
    0.5
    """
    check_level(level)
    change = np.sort(np.atleast_1d(relative_improvement(parent, method)).ravel())
    n = len(change)
    if n == 0:
        raise InputError("There are no data sets", fix="Give at least one error of each.")
    # the k-th smallest lies above the median with probability P(fewer than k of n are below it)
    k = int((bdtr(np.arange(n), n, 0.5) <= (1.0 - level) / 2.0).sum())
    middle = change[[(n - 1) // 2, n // 2]]
    return Estimate(
        name="Median relative improvement on the parent (paper 000 Eq. 21)",
        label="Improvement",
        value=float(middle[0] if middle[0] == middle[1] else middle.mean()),
        low=float(change[k - 1]) if k > 0 else -np.inf,
        high=float(change[n - k]) if k > 0 else 1.0,
        n=n,
        level=level,
        interval="order statistics",
        percent=True,
        lower_is_better=False,
    )


def _errors(values: Any, noun: str) -> FloatArray:
    errors = np.asarray(values, dtype=np.float64)
    faulty = ~((errors >= 0.0) & (errors < np.inf))
    if faulty.any():
        raise InputError(
            f"An error of the {noun} is missing, infinite or negative",
            fix="Errors are finite numbers from 0 on.",
            row=int(np.argmax(faulty)) + 1 if errors.ndim == 1 else None,
        )
    return errors
