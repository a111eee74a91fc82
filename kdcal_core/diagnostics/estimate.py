"""One number with its interval, its sample size and its full name, and the words for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from kdcal_core.shown import Shown
from kdcal_core.statistics import clopper_pearson
from kdcal_core.text import number_text, range_text

CONFIDENCE_GAP, EVENT_GAP = "Confidence gap", "Probability minus rate"
CLOPPER_PEARSON = "Clopper-Pearson"
LEAST_ROWS = 10  # fewer rows never make a headline


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
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
        Rows used.
    interval : str
        How the interval was computed: "percentile bootstrap, 1,000 draws", "Clopper-Pearson", ...
    expected : float or None
        Reference value to compare the estimate with: the mean for a perfectly calibrated model
        with these confidences and this number of rows (the finite-sample floor), or the stated
        level of a coverage. None if there is none.
    percent : bool
        Whether it is shown as a percentage.
    lower_is_better : bool or None
        None if neither direction is better (mean max confidence).
    target : float or None
        The best value, where the nearer one is better: 0 of a signed gap, 1 of a slope, the stated
        level of a coverage. None if there is none.
    expected_words : str
        What ``expected`` is, in words that follow the number: "expected by chance", "stated".

    Notes
    -----
    ``float()``, ``round()`` and a format such as ``:.3f`` take the value. Without a format, the
    text has the interval too.

    Examples
    --------
    >>> ece = Estimate("Confidence ECE", "ECE", 0.0212, 0.01, 0.0318, 569)
    >>> float(ece), round(ece, 3), f"{ece:.1%}"
    (0.0212, 0.021, '2.1%')
    >>> ece
    ECE: 0.021 (0.010 to 0.032)
      Estimator: Confidence ECE
      Interval: at 95%; 569 rows
    >>> print(f"ECE {ece}")
    ECE 0.021 (0.010 to 0.032)
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
    expected_words: str = "expected by chance"
    target: float | None = None

    def __eq__(self, other: object) -> bool:
        """Whether both say the same. Numbers that both lack (NaN) are the same."""
        if type(other) is not Estimate:
            return NotImplemented
        return self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    @property
    def _said(self) -> tuple[Any, ...]:
        return tuple(None if one != one else one for one in astuple(self))

    @property
    def largest(self) -> float:
        """The largest magnitude of value and interval, which are written in the same form."""
        known = [abs(v) for v in (self.value, self.low, self.high) if math.isfinite(v)]
        return max(known, default=0.0)

    def __float__(self) -> float:
        return float(self.value)

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(float(self), ndigits)

    def __format__(self, form: str) -> str:
        return format(float(self), form) if form else str(self)

    def __str__(self) -> str:
        return estimate_text(self)

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield self.label, estimate_text(self)
        yield "Estimator", self.name
        how = f", {self.interval}" if has_interval(self) and self.interval else ""
        yield "Interval", f"at {100 * self.level:g}%{how}; {rows_text(self)}"


def share_estimate(
    name: str, label: str, share: float, rows: float, n: int, level: float = 0.95, **given: Any
) -> Estimate:
    """A share of ``n`` rows, with Clopper-Pearson's interval for ``rows`` effective rows.

    Parameters
    ----------
    **given
        Further fields of :class:`Estimate`.

    Examples
    --------
    >>> found = share_estimate("Share", "Share", 0.5, 10, 10)
    >>> round(found.low, 3), round(found.high, 3)
    (0.187, 0.813)
    """
    low, high = (float(end) for end in clopper_pearson(share, rows, level))
    made: dict[str, Any] = {"interval": CLOPPER_PEARSON, "percent": True, **given}
    return Estimate(name, label, float(share), low, high, n, level, **made)


def of_event(estimate: Estimate) -> Estimate:
    """An estimate of stated confidences, named as one of the event's probability.

    Examples
    --------
    >>> of_event(Estimate("Confidence ECE: l1 norm", "ECE", 0.1, 0.0, 0.2, 50)).name
    "ECE of the event's probability: l1 norm"
    """
    what, colon, how = estimate.name.partition(":")
    what, comma, more = what.partition(",")
    for other in (" of the top label", " of the full vector"):
        what = what.removesuffix(other)
    what = f"{what.removeprefix('Confidence ')} of the event's probability{comma}{more}"
    return replace(estimate, name=f"{what}{colon}{how}")


EFFECTIVE = "effective rows"
"""What the name of an interval says where ``n`` is a number of independent rows of equal weight."""


def rows_text(estimate: Estimate) -> str:
    """How many rows are behind a number, or as how many independent ones they count.

    Examples
    --------
    >>> rows_text(Estimate("Share", "Share", 0.5, 0.4, 0.6, 1200, interval="Clopper-Pearson"))
    '1,200 rows'
    >>> made = "Clopper-Pearson, effective rows"
    >>> rows_text(Estimate("Share", "Share", 0.5, 0.4, 0.6, 90, interval=made))
    '90 effective rows'
    """
    return f"{estimate.n:,} {EFFECTIVE if EFFECTIVE in estimate.interval else 'rows'}"


def value_text(estimate: Estimate, value: float | None = None) -> str:
    """The estimate's value, or another number, with decimals that match the interval's width.

    Examples
    --------
    >>> accuracy = Estimate("Accuracy", "Accuracy", 0.931, 0.921, 0.94, 900, percent=True)
    >>> value_text(accuracy), value_text(accuracy, 0.9)
    ('93.1%', '90.0%')
    """
    shown = estimate.value if value is None else value
    width = estimate.high - estimate.low
    return number_text(shown, width, estimate.percent, estimate.largest)


def has_interval(estimate: Estimate) -> bool:
    """Whether an estimate is a number with an interval.

    Examples
    --------
    >>> has_interval(Estimate("MCE", "MCE", 0.4, np.nan, np.nan, 90))
    False
    """
    return bool(np.isfinite(estimate.value) and not np.isnan(estimate.low))


def interval_text(estimate: Estimate, apart_from: Sequence[float] = ()) -> str:
    """The interval as "low to high", or "no interval".

    An end that is not one of the limits that it is to be kept ``apart_from`` is not written as one.

    Examples
    --------
    >>> interval_text(Estimate("Accuracy", "Accuracy", 0.931, 0.921, 0.94, 900, percent=True))
    '92.1% to 94.0%'
    >>> interval_text(Estimate("Gap", "Gap", -0.04, -0.08, -0.0004, 900))  # not 0.00
    '−0.08 to −0.0004'
    """
    if not has_interval(estimate):
        return "no interval"
    ends, largest = (estimate.low, estimate.high), estimate.largest
    return range_text(*ends, estimate.percent, largest, apart_from)


def reference_text(estimate: Estimate) -> str:
    """The reference value and what it is; empty if there is none.

    Examples
    --------
    >>> reference_text(Estimate("ECE", "ECE", 0.0212, 0.0, 0.031, 569, expected=0.019))
    '0.019 expected by chance'
    >>> held = Estimate("Coverage", "Coverage", 0.94, 0.92, 0.96, 500, expected=0.95,
    ...                 percent=True, expected_words="stated")
    >>> reference_text(held)
    '95.0% stated'
    >>> reference_text(Estimate("Gain", "Gain", 0.19, 0.17, 0.21, 600, expected=0.0))
    '0 expected by chance'
    """
    if estimate.expected is None:
        return ""
    if estimate.expected == 0.0:  # a definition, of which no decimals were measured
        return f"0{'%' * estimate.percent} {estimate.expected_words}"
    return f"{value_text(estimate, estimate.expected)} {estimate.expected_words}"


def estimate_text(
    estimate: Estimate, *, chance: bool = True, apart_from: Sequence[float] = ()
) -> str:
    """Value, interval and, unless ``chance`` is False, the value to compare with, if there is one.

    ``apart_from`` as in :func:`interval_text`.

    Examples
    --------
    >>> estimate_text(Estimate("Accuracy", "Accuracy", 0.931, 0.921, 0.94, 900, percent=True))
    '93.1% (92.1% to 94.0%)'
    >>> estimate_text(Estimate("Accuracy", "Accuracy", 1.0, np.nan, np.nan, 8, percent=True))
    '100.0% (no interval)'
    >>> estimate_text(Estimate("Log loss", "Log loss", 1.3, 0.9, 1.8, 20))
    '1.3 (0.9 to 1.8)'
    >>> estimate_text(Estimate("CRPS", "CRPS", 1e-6, 0.0, 2e-6, 100))
    '1 × 10⁻⁶ (0 to 2 × 10⁻⁶)'
    >>> estimate_text(Estimate("ECE", "ECE", 0.0212, 0.0, 0.031, 569, expected=0.019))
    '0.021 (0.000 to 0.031; 0.019 expected by chance)'
    """
    if not np.isfinite(estimate.value):
        return estimate.interval or "not defined"
    parts = [interval_text(estimate, apart_from), reference_text(estimate) if chance else ""]
    return f"{value_text(estimate)} ({'; '.join(filter(None, parts))})"


def headline_estimate(estimates: Sequence[Estimate]) -> Estimate | None:
    """The estimate that a finding names: a clear confidence gap, else the ECE.

    A finding of "within noise" would contradict a gap whose interval excludes 0.
    """
    named = {estimate.label: estimate for estimate in estimates}
    gap = named.get(CONFIDENCE_GAP, named.get(EVENT_GAP))
    if gap is not None and (gap.low > 0.0 or gap.high < 0.0):
        return gap
    return named.get("ECE")
