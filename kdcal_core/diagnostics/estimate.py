"""One number with its interval, its sample size and its full name, and the words for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.text import number_text

CONFIDENCE_GAP, EVENT_GAP = "Confidence gap", "Probability minus rate"
LEAST_ROWS = 10  # fewer rows never make a headline


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, its sample size and its full name.

    Attributes
    ----------
    name : str
        Full name of the estimator: target, bins, norm. Example: "Confidence ECE, l1 norm, 15
        equal-width bins, debiased".
    label : str
        Short name for a tile: "ECE".
    value, low, high : float
        The estimate and its interval at confidence ``level``.
    n : int
        Rows that entered it.
    interval : str
        How the interval was made: "percentile bootstrap, 1,000 draws", "Clopper-Pearson", ...
    expected : float or None
        Mean value for a perfectly calibrated model with these very confidences and row count:
        the finite-sample floor. None where the notion does not apply.
    percent : bool
        Whether it is shown as a percentage.
    lower_is_better : bool or None
        None where neither direction is better (mean max confidence).
    """

    name: str
    label: str
    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    interval: str = ""
    expected: float | None = None
    percent: bool = False
    lower_is_better: bool | None = True

    @property
    def largest(self) -> float:
        """The largest magnitude among value and interval: they are written in one form."""
        known = [abs(v) for v in (self.value, self.low, self.high) if math.isfinite(v)]
        return max(known, default=0.0)


def value_text(estimate: Estimate, value: float | None = None) -> str:
    """The estimate's value, or another number in the same form: decimals after its interval.

    Examples
    --------
    >>> accuracy = Estimate("Accuracy", "Accuracy", 0.931, 0.921, 0.94, 900, percent=True)
    >>> value_text(accuracy), value_text(accuracy, 0.9)
    ('93.1%', '90.0%')
    """
    shown = estimate.value if value is None else value
    width = estimate.high - estimate.low
    return number_text(shown, width, estimate.percent, estimate.largest)


def interval_text(estimate: Estimate) -> str:
    """The interval as "low to high", or that there is none.

    Examples
    --------
    >>> interval_text(Estimate("Accuracy", "Accuracy", 0.931, 0.921, 0.94, 900, percent=True))
    '92.1% to 94.0%'
    """
    if np.isnan(estimate.low):
        return "no interval"
    return f"{value_text(estimate, estimate.low)} to {value_text(estimate, estimate.high)}"


def estimate_text(estimate: Estimate, *, chance: bool = True) -> str:
    """Value, interval and, where it applies and ``chance`` is asked for, what chance would give.

    Examples
    --------
    >>> estimate_text(Estimate("Accuracy", "Accuracy", 0.931, 0.921, 0.94, 900, percent=True))
    '93.1% (92.1% to 94.0%)'
    >>> estimate_text(Estimate("Accuracy", "Accuracy", 1.0, np.nan, np.nan, 8, percent=True))
    '100.0% (no interval)'
    >>> estimate_text(Estimate("Log loss", "Log loss", 1.3, 0.9, 1.8, 20))
    '1.3 (0.9 to 1.8)'
    >>> estimate_text(Estimate("CRPS", "CRPS", 1e-6, 0.0, 2e-6, 100))
    '1e-06 (0 to 2e-06)'
    >>> estimate_text(Estimate("ECE", "ECE", 0.0212, 0.0, 0.031, 569, expected=0.019))
    '0.021 (0.000 to 0.031; 0.019 expected by chance)'
    """
    if not np.isfinite(estimate.value):
        return estimate.interval or "not defined"
    expected = ""
    if chance and estimate.expected is not None:
        expected = f"; {value_text(estimate, estimate.expected)} expected by chance"
    return f"{value_text(estimate)} ({interval_text(estimate)}{expected})"


def headline_estimate(estimates: Sequence[Estimate]) -> Estimate | None:
    """The estimate that a finding names: a clear confidence gap, else the ECE.

    A finding of "within noise" would contradict a gap whose interval does not hold 0.
    """
    named = {estimate.label: estimate for estimate in estimates}
    gap = named.get(CONFIDENCE_GAP, named.get(EVENT_GAP))
    if gap is not None and (gap.low > 0.0 or gap.high < 0.0):
        return gap
    return named.get("ECE")
