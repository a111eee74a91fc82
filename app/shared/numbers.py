"""Numbers on the screen: as many decimals as their interval supports."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kdcal_core.diagnostics import Estimate
from kdcal_core.text import number_text


def number(estimate: Estimate, value: float | None = None) -> str:
    """The estimate's value, or another value in the same form."""
    shown = estimate.value if value is None else value
    return number_text(shown, estimate.high - estimate.low, estimate.percent, estimate.largest)


def interval(estimate: Estimate) -> str:
    """The interval as "low to high", or that there is none."""
    if np.isnan(estimate.low):
        return "no interval"
    return f"{number(estimate, estimate.low)} to {number(estimate, estimate.high)}"


def column_format(values: ArrayLike) -> str:
    """How a table shows a column of measured numbers: separators, or four figures if all are small.

    Examples
    --------
    >>> column_format([138.4705, 1451.4895]), column_format([0.0001234, -0.02])
    ('localized', '%.4g')
    """
    known = np.abs(np.asarray(values, dtype=np.float64))
    return "localized" if np.nanmax(known, initial=0.0) >= 1.0 else "%.4g"
