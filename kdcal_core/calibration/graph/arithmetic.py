"""Safe quotients and logarithms of the graph, and checks of its settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError


def log_n(n: int) -> float:
    """Natural log n, that of 3 for fewer rows (decision D2)."""
    return float(np.log(max(n, 3)))


def inside(log_marginal: FloatArray, log_floor: Any) -> FloatArray:
    """M / (M + c), how much the polytope counts against the prior."""
    with np.errstate(invalid="ignore"):
        share = expit(log_marginal - log_floor)
    # Without density and floor nothing is known, so the result is the prior.
    result: FloatArray = np.where(np.isneginf(log_marginal), 0.0, share)
    return result


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Quotient, zero where the whole is zero."""
    quotient: FloatArray = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    return quotient


def safe_log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        logarithm: FloatArray = np.log(values)
    return logarithm


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
