"""Numbers on the screen: as many decimals as their interval supports."""

from __future__ import annotations

import math

from kdcal_core.diagnostics import Estimate


def decimals(estimate: Estimate) -> int:
    """Decimals that show about two digits of the interval's width, 0 to 4."""
    width = (estimate.high - estimate.low) * (100 if estimate.percent else 1)
    if not math.isfinite(width) or width <= 0:
        return 1 if estimate.percent else 3
    return min(max(1 - math.floor(math.log10(width)), 0), 2 if estimate.percent else 4)


def number(estimate: Estimate, value: float | None = None) -> str:
    """The estimate's value, or another value in the same form."""
    shown = estimate.value if value is None else value
    if not math.isfinite(shown):
        return "none"
    return f"{shown:.{decimals(estimate)}{'%' if estimate.percent else 'f'}}"


def interval(estimate: Estimate) -> str:
    """The interval as "low to high"."""
    return f"{number(estimate, estimate.low)} to {number(estimate, estimate.high)}"


def change(estimate: Estimate, parent: Estimate) -> str:
    """The change against the uncalibrated parent, in words."""
    return f"{number(parent)} before calibration"
