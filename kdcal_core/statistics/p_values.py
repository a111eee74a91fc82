"""Rank tests, and p values corrected for many tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError


def one_sided_wilcoxon(a: Any, b: Any, paired: bool = False) -> float:
    """p value against "``a`` is not larger than ``b``": small where ``a`` is the larger.

    Parameters
    ----------
    a, b : (n,), (m,) array-like
        Improvements of two methods; infinities rank like any number.
    paired : bool
        False: the rank-sum test that the earlier version of Dey et al. states (Mann and Whitney's
        U). True: the signed-rank test, the one for methods run on the same data sets; equal pairs
        say nothing and are left out, and where all are equal p is 1.

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


def _values(values: Any, noun: str) -> NDArray[np.float64]:
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


def holm(p_values: Any) -> NDArray[np.float64]:
    """Holm's adjusted p values (1979): valid whatever the tests' dependence.

    Where tests with an adjusted p value below ``a`` count as significant, the chance that any of
    them is a false alarm is at most ``a``.

    Parameters
    ----------
    p_values : (m,) array-like
        From 0 to 1.

    Returns
    -------
    (m,) array
        In the same order, from 0 to 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def step_down(statistic: NDArray[np.float64], null: NDArray[np.float64]) -> NDArray[np.float64]:
    """p values corrected by the step-down largest statistic (Westfall and Young 1993), (c,).

    Less strict than :func:`holm` where the tests depend on one another.

    Parameters
    ----------
    statistic : (c,) array
        Larger values are evidence against a hypothesis.
    null : (B, c) array
        The same statistics in B draws in which all hypotheses are true.

    Examples
    --------
    >>> null = np.array([[1.0, 5.0], [4.0, 1.0], [2.0, 2.0]])
    >>> step_down(np.array([4.5, 3.0]), null).tolist()
    [0.5, 0.5]
    """
    order = np.argsort(statistic, kind="stable")
    # the largest over a hypothesis and all with smaller statistics
    largest = np.maximum.accumulate(null[:, order], axis=1)
    p = (1 + (largest >= statistic[order]).sum(axis=0)) / (len(null) + 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p[::-1])[::-1]
    return adjusted
