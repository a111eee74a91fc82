"""What a model gains over trivial rules: the most frequent class, and the classes' shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.distribution_scores import paired_difference
from kdcal_core.statistics import brier_losses, log_losses


def gain_over_most_frequent(
    rows: ScoredSet, known: ScoredSet | None = None, *, level: float = 0.95
) -> Estimate:
    """Accuracy minus that of always predicting the most frequent class, paired by row.

    Parameters
    ----------
    rows : ScoredSet
        The rows that are judged.
    known : ScoredSet, optional
        The set that says which class is the most frequent. Without it these rows do, and the
        interval allows for the choice among their classes.
    level : float

    Examples
    --------
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> rows = ScoredSet(proba, np.tile([0, 1], 50), ("a", "b"), "", "evaluation")
    >>> gain_over_most_frequent(rows).value
    0.5
    """
    right = (rows.proba.argmax(axis=1) == rows.y).astype(float)

    def gain(label: int, level: float) -> Estimate:
        always = (rows.y == label).astype(float)
        return paired_difference(right, always, weight=rows.design, level=level)

    if known is not None:
        return of_accuracy(gain(commonest_class(known), level))
    return least_gain(gain, np.unique(rows.y).tolist(), level)


def commonest_class(rows: ScoredSet) -> int:
    """The most frequent true class of a set."""
    return int(np.bincount(rows.y, weights=rows.weight).argmax())


def least_gain(
    gain: Callable[[int, float], Estimate], present: Sequence[int], level: float
) -> Estimate:
    """:func:`gain_over_most_frequent` of the class, among those present, that gains least.

    ``gain`` gives, for a class and a level, accuracy minus that of always predicting the class.
    """
    found = [gain(one, level) for one in present]
    strict = 1.0 - (1.0 - level) / len(present)
    least = min(found, key=lambda one: one.value)
    low = min(one.low for one in found)
    high = min(gain(one, strict).high for one in present)
    chosen = ", corrected for the choice of the class" * (len(present) > 1)
    return of_accuracy(replace(least, low=low, high=high, interval=f"{least.interval}{chosen}"))


def of_accuracy(found: Estimate) -> Estimate:
    return replace(
        found,
        name="Accuracy minus that of always predicting the most frequent class",
        label="Accuracy gained",
        percent=True,
        lower_is_better=False,
    )


def gains_over_shares(
    rows: ScoredSet, known: ScoredSet | None = None, *, level: float = 0.95
) -> tuple[Estimate, Estimate]:
    """Log loss and Brier score gained over stating the classes' shares for every row.

    Paired by row.

    Parameters
    ----------
    rows : ScoredSet
        The rows that are judged.
    known : ScoredSet, optional
        The set whose shares are stated; without it these rows' own. They are taken as given.
    level : float

    Examples
    --------
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> rows = ScoredSet(proba, np.tile([0, 1], 50), ("a", "b"), "", "evaluation")
    >>> [round(one.value, 2) for one in gains_over_shares(rows)]
    [0.53, 0.45]
    """
    log, brier = (
        paired_difference(base, own, weight=rows.design, level=level)
        for base, own in share_losses(rows, known)
    )
    return as_gains(log, brier)


def share_losses(
    rows: ScoredSet, known: ScoredSet | None = None
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Log loss and Brier score of each row (n,): of the classes' shares, and of the model."""
    other = rows if known is None else known
    counts = np.bincount(other.y, weights=other.weight, minlength=len(other.classes))
    base = np.broadcast_to(stated_shares(counts), rows.proba.shape)
    log, brier = (
        (losses(base, rows.y), losses(rows.proba, rows.y)) for losses in (log_losses, brier_losses)
    )
    return log, brier


def as_gains(log: Estimate, brier: Estimate) -> tuple[Estimate, Estimate]:
    """Differences of both losses under the names of :func:`gains_over_shares`."""
    log, brier = (
        replace(
            one,
            name=f"{title} of the classes' shares, minus that of the model",
            label="Gain",
            lower_is_better=False,
        )
        for one, title in ((log, "Log loss"), (brier, "Brier score"))
    )
    return log, brier


def stated_shares(counts: FloatArray | IntArray) -> FloatArray:
    """Share of every class (K,) from the rows of each."""
    # half a row more in each class, so that a class without rows is not called impossible
    return np.asarray((counts + 0.5) / (counts + 0.5).sum())
