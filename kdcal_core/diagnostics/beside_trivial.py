"""What a model gains over trivial rules: the most frequent class, and the classes' shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.data import FloatArray, ScoredSet
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
    if known is not None:
        commonest = int(np.bincount(known.y, weights=known.weight).argmax())
        return _gain_over_class(rows, commonest, level)
    present = np.unique(rows.y).tolist()
    found = [_gain_over_class(rows, one, level) for one in present]
    strict = 1.0 - (1.0 - level) / len(present)
    least = min(found, key=lambda one: one.value)
    low = min(one.low for one in found)
    high = min(_gain_over_class(rows, one, strict).high for one in present)
    chosen = ", corrected for the choice of the class" * (len(present) > 1)
    return replace(least, low=low, high=high, interval=f"{least.interval}{chosen}")


def _gain_over_class(rows: ScoredSet, label: int, level: float) -> Estimate:
    found = paired_difference(
        (rows.proba.argmax(axis=1) == rows.y).astype(float),
        (rows.y == label).astype(float),
        weight=rows.design,
        level=level,
    )
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
    base = np.broadcast_to(_shares(rows if known is None else known), rows.proba.shape)
    found = []
    for title, losses in (("Log loss", log_losses), ("Brier score", brier_losses)):
        gained = paired_difference(
            losses(base, rows.y), losses(rows.proba, rows.y), weight=rows.design, level=level
        )
        name = f"{title} of the classes' shares, minus that of the model"
        found.append(replace(gained, name=name, label="Gain", lower_is_better=False))
    return found[0], found[1]


def _shares(rows: ScoredSet) -> FloatArray:
    """Share of every class, (K,)."""
    # half a row more in each class, so that a class without rows is not called impossible
    counts = np.bincount(rows.y, weights=rows.weight, minlength=len(rows.classes)) + 0.5
    return np.asarray(counts / counts.sum())
