"""Numbers on the screen: as many decimals as their interval supports."""

from __future__ import annotations

from collections.abc import Sequence

from kdcal_core.diagnostics import Estimate, number_text


def number(estimate: Estimate, value: float | None = None) -> str:
    """The estimate's value, or another value in the same form."""
    shown = estimate.value if value is None else value
    return number_text(shown, estimate.high - estimate.low, estimate.percent)


def interval(estimate: Estimate) -> str:
    """The interval as "low to high"."""
    return f"{number(estimate, estimate.low)} to {number(estimate, estimate.high)}"


def telling(estimates: Sequence[Estimate]) -> Estimate | None:
    """Of the tiles, the one that speaks for calibration: the gap where it is clear, else the ECE.

    A headline of noise above a gap whose interval is without 0 would contradict itself.
    """
    named = {estimate.label: estimate for estimate in estimates}
    gap = named.get("Confidence gap")
    if gap is not None and (gap.low > 0 or gap.high < 0):
        return gap
    return named.get("ECE")
