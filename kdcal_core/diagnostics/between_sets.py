"""Differences between estimates of different rows."""

from __future__ import annotations

import math
from dataclasses import replace

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.scores import auroc, target_gap
from kdcal_core.diagnostics.targets import targets


def unpaired_difference(estimate: Estimate, other: Estimate) -> Estimate:
    """An estimate minus one of other rows, with the interval of Zou and Donner (2008).

    The two intervals, each with its own shape, give that of the difference; both are taken as
    independent. Of the same rows it is therefore too wide, where the two rise and fall together.

    Examples
    --------
    >>> now = Estimate("ECE", "ECE", 0.05, 0.03, 0.08, 900)
    >>> then = Estimate("ECE", "ECE", 0.02, 0.01, 0.04, 900)
    >>> found = unpaired_difference(now, then)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.03, 0.002, 0.062)
    """
    value = estimate.value - other.value
    low = math.hypot(estimate.value - estimate.low, other.high - other.value)
    high = math.hypot(estimate.high - estimate.value, other.value - other.low)
    return replace(
        estimate,
        name=f"{estimate.name}, minus that of other rows",
        value=value,
        low=value - low,
        high=value + high,
        n=min(estimate.n, other.n),
        interval=f"{estimate.interval}; of the difference by Zou and Donner",
        expected=None,
    )


def differences_between_sets(
    rows: ScoredSet, other: ScoredSet, event: int | None = None, *, level: float = 0.95
) -> tuple[Estimate, Estimate]:
    """Mean stated probability minus rate, and AUROC: those of one set minus those of another.

    Parameters
    ----------
    rows, other : ScoredSet
        Sets without common rows.
    event : int, optional
        The class whose probability is stated; without it the confidence in the predicted class.
    level : float

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> rows, other = (
    ...     ScoredSet(proba, np.tile(y, 50), ("a", "b"), "", name)
    ...     for y, name in (([0, 1], "evaluation"), ([1, 1], "calibration"))
    ... )
    >>> round(differences_between_sets(rows, other)[0].value, 2)
    -0.5
    """
    gaps, areas = [], []
    for one in (rows, other):
        kind = "confidence" if event is None else "class"
        (target,) = targets(one.proba, one.y, one.weight, kind, event)  # type: ignore[arg-type]
        gaps.append(target_gap(target, level))
        areas.append(
            auroc(one.proba, one.y, level=level, sample_weight=one.weight, classes=one.classes)
        )
    gap, area = unpaired_difference(*gaps), unpaired_difference(*areas)
    return (
        replace(gap, label="Difference between the sets"),
        replace(area, label="Difference between the sets"),
    )
