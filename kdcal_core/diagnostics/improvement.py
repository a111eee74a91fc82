"""Comparing methods over data sets: relative improvement."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError


def relative_improvement(model: Any, method: Any) -> FloatArray:
    """(E_p - E_M) / E_p, Dey et al., Eq. 21: 1 is no error left, 0 no change, below 0 worse.

    Parameters
    ----------
    model, method : float or array-like
        Errors (error rate, ECE, OCE) from 0 on; shapes that broadcast.

    Returns
    -------
    numpy.ndarray
        If the model makes no error: 0 for a method without errors, and minus infinity for one
        with errors, so that medians and ranks stay right.

    Raises
    ------
    InputError
        For an error that is missing, infinite or negative; of a list the row is named.

    Examples
    --------
    >>> relative_improvement([0.2, 0.1, 0.0, 0.0], [0.1, 0.2, 0.0, 0.1]).tolist()
    [0.5, -1.0, 0.0, -inf]
    """
    model, method = _errors(model, "model"), _errors(method, "method")
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (model - method) / model
    return np.asarray(np.where((model == 0.0) & (method == 0.0), 0.0, change))


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
