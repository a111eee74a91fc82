"""Numbers on the screen: as many decimals as their interval supports."""

from __future__ import annotations

from kdcal_core.diagnostics import Estimate, number_text


def number(estimate: Estimate, value: float | None = None) -> str:
    """The estimate's value, or another value in the same form."""
    shown = estimate.value if value is None else value
    return number_text(shown, estimate.high - estimate.low, estimate.percent)


def interval(estimate: Estimate) -> str:
    """The interval as "low to high"."""
    return f"{number(estimate, estimate.low)} to {number(estimate, estimate.high)}"
