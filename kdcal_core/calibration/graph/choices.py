"""Gammas, prior, variance and floor as the user gives them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.partition import default_exponents


def log_n(n: int) -> float:
    """Natural log n, that of 3 for fewer rows (decision D2)."""
    return float(np.log(max(n, 3)))


def chosen_exponents(gamma: Any, n: int) -> FloatArray:
    """The grid of gamma * log n, ascending: the default one for "auto", else of the gammas given.

    Raises
    ------
    InputError
        A gamma is not a finite number above zero, or there is none.
    """
    if isinstance(gamma, str):
        return default_exponents()
    gammas = np.unique(_numbers(gamma))
    if not len(gammas) or not (np.isfinite(gammas) & (gammas > 0)).all():
        raise InputError(
            "A gamma is not a finite number above zero",
            fix='Give one, a list of them, or "auto".',
        )
    return np.asarray(gammas * log_n(n))


UNSEEN = 0.5
"""How many rows a class without a row counts as, where no class is to be ruled out."""


def class_shares(counts: IntArray, *, rules_out: bool) -> FloatArray:
    """Share of each class among the rows of the fit, (K,).

    Parameters
    ----------
    counts : (K,) array of int
    rules_out : bool
        Whether a class without a row has share 0, as in the papers; else it counts as half a row,
        because few rows do not show that the class is absent.

    Examples
    --------
    >>> import numpy as np
    >>> class_shares(np.array([12, 7, 0]), rules_out=False).round(3).tolist()
    [0.615, 0.359, 0.026]
    """
    rows = counts if rules_out else np.where(counts > 0, counts, UNSEEN)
    share: FloatArray = rows / rows.sum()
    return share


def checked_prior(prior: Any, empirical: FloatArray) -> FloatArray:
    """The prior given, or the empirical one, (K,).

    Raises
    ------
    InputError
        It is not a distribution over the K classes.

    Examples
    --------
    >>> import numpy as np
    >>> checked_prior([0.2, 0.8], np.array([0.5, 0.5])).tolist()
    [0.2, 0.8]
    """
    if prior is None:
        return empirical
    given = _numbers(prior)
    if given.shape != empirical.shape:
        raise InputError(
            f"The prior has {len(given):,} values, the model has {len(empirical):,} classes",
            fix="Give one probability for each class, in the model's order.",
        )
    if not ((given >= 0).all() and abs(given.sum() - 1.0) <= 1e-6):
        raise InputError(
            "The prior is not a distribution: its values must not be negative and must sum to 1",
            fix="Divide the values by their sum.",
        )
    return np.asarray(given / given.sum())


def checked_variance(given: float | None, present: float) -> float:
    if given is None:
        return present
    if not 0 < given < np.inf:
        raise InputError(
            f"The variance floor is {given:g}", fix="Give a number above zero, such as 1e-6."
        )
    return float(given)


def checked_quantile(quantile: float) -> float:
    if not 0 < quantile < 1:
        raise InputError(
            f"The floor's quantile is {quantile:g}", fix="Give a share between 0 and 1."
        )
    return float(quantile)


def checked_log_floor(log_floor: float) -> float:
    if np.isnan(log_floor):
        raise InputError("The floor is not a number", fix="Give log b, or minus infinity.")
    return float(log_floor)


def _numbers(values: Any) -> FloatArray:
    """A number or a list of numbers, as an array; NaN for anything else."""
    return np.asarray(pd.to_numeric(pd.Series(np.ravel(values)), errors="coerce"), dtype=np.float64)
