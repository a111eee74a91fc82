"""Comparing methods over data sets: relative improvement, its median, and rank tests."""

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


def one_sided_wilcoxon(a: Any, b: Any, paired: bool = False) -> float:
    """p value against "``a`` is not larger than ``b``": small where ``a`` is the larger.

    Parameters
    ----------
    a, b : (n,), (m,) array-like
        Improvements of two methods; infinities rank like any number.
    paired : bool
        False: the rank-sum test that paper 001 states (Mann and Whitney's U). True: the
        signed-rank test, the one for methods run on the same data sets (decision D31); equal
        pairs say nothing and are left out, and where all are equal p is 1.

    Raises
    ------
    InputError
        For a missing value (the row is named), no values, or pairs of unequal number.

    Examples
    --------
    >>> one_sided_wilcoxon([3.0, 4.0, 5.0], [0.0, 1.0, 2.0])
    0.05
    >>> one_sided_wilcoxon([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], paired=True)
    1.0
    """
    from scipy.stats import mannwhitneyu, wilcoxon  # slow to import

    a, b = _values(a, "first"), _values(b, "second")
    if not paired:
        return float(mannwhitneyu(a, b, alternative="greater").pvalue)
    if len(a) != len(b):
        raise InputError(
            f"There are {len(a)} and {len(b)} values, but pairs are compared",
            fix="Give one value of each method for each data set.",
        )
    unequal = a != b
    if not unequal.any():
        return 1.0
    return float(wilcoxon(a[unequal] - b[unequal], alternative="greater").pvalue)


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


def _values(values: Any, noun: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise InputError(
            f"The {noun} values have shape {array.shape}", fix="Give a list of numbers."
        )
    missing = np.isnan(array)
    if missing.any():
        raise InputError(
            f"One of the {noun} values is missing",
            fix="Leave its data set out of both.",
            row=int(np.argmax(missing)) + 1,
        )
    return array
