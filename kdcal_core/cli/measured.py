"""The measurements of one scored set, for the printed table and the JSON file."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    Confusion,
    Estimate,
    Reliability,
    all_estimates,
    confusion,
    confusion_finding,
    reliability,
    reliability_finding,
    telling,
)


@dataclass(frozen=True, eq=False)
class Measured:
    """One set's results.

    ``notes`` are cautions for the reader. ``diagram`` is the reliability diagram of all
    rows; ``by_class`` holds one curve of a single bin for each predicted class: its rows, mean
    confidence, and share right.
    """

    scored: ScoredSet
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    by_class: Reliability
    diagram: Reliability
    confusion: Confusion


def measure(
    scored: ScoredSet, *, notes: tuple[str, ...] = (), n_bins: int, level: float
) -> Measured:
    """Everything that ``kdcal diagnose`` reports about a set.

    Parameters
    ----------
    scored : ScoredSet
    notes : tuple of str
        Cautions about the rows.
    n_bins : int
        Bins of the reliability diagram.
    level : float
        Level of all intervals and bands, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.3, 0.7]] * 50)
    >>> scored = ScoredSet(proba, np.array([0, 1] * 50), ("a", "b"), "digest", "evaluation")
    >>> result = measure(scored, n_bins=10, level=0.95)
    >>> result.findings[1]
    'All 100 predictions are right.'
    >>> [int(curve.count[0]) for curve in result.by_class.curves]
    [50, 50]
    """
    proba, y, weight = scored.proba, scored.y, scored.weight
    diagram = reliability(proba, y, n_bins=n_bins, level=level, sample_weight=weight)
    by_class = reliability(
        proba, y, kind="top-label", n_bins=1, level=level, sample_weight=weight, smooth=False
    )
    counts = confusion(proba, y, sample_weight=weight)
    estimates = all_estimates(scored, level=level)
    findings = (
        reliability_finding(diagram, telling(estimates)),
        confusion_finding(counts, scored.classes),
    )
    return Measured(scored, findings, notes, estimates, by_class, diagram, counts)
