"""Confidence by class as rows are added: curves of a quarter, half and all of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration import ConfidenceCurve, TopLabelKDE
from kdcal_core.data import stratified_folds
from kdcal_core.diagnostics.summaries import distinct_rows
from kdcal_core.errors import quiet
from kdcal_core.review import Which
from kdcal_core.tasks.decorators import Sets, review_task, the_set

QUARTERS = (1, 2, 4)


@dataclass(frozen=True, eq=False)
class ClassGrowth:
    """Curves of some predicted classes, fitted on a quarter, on half and on all of the rows.

    Attributes
    ----------
    curves : tuple of tuple of ConfidenceCurve
        By the number of rows, ascending, and by class.
    """

    curves: tuple[tuple[ConfidenceCurve, ...], ...]


@review_task("Confidence by class: adding rows", reads=the_set)
def class_growth(
    sets: Sets, *, which: Which, labels: Sequence[int], bandwidth: str | float, seed: int
) -> ClassGrowth:
    """The kernel density curves of some classes as the rows grow; each set holds the one before.

    Quarters are drawn at random, stratified by true class, and dependent rows are in one.
    """
    rows = sets.summary(which)
    distinct = None if rows is None else distinct_rows(rows)
    curves = []
    if distinct is not None:
        proba, y, count = distinct
        rng = np.random.default_rng(seed)
        parts = rng.multinomial(np.rint(count).astype(np.int64), [0.25] * 4)
    else:
        scored = sets.read(which)
        quarter = stratified_folds(scored.y, 4, seed, scored.dependence)
    for at, quarters in enumerate(QUARTERS):
        sets.progress(at / len(QUARTERS), f"Fitting on {quarters} of 4 quarters")
        kde = TopLabelKDE(bandwidth)
        with quiet():  # the page shows the notes of the curve of all rows
            if distinct is not None:
                some = parts[:, :quarters].sum(axis=1)
                kde.fit_counts(proba[some > 0], y[some > 0], some[some > 0])
            else:
                mine = scored.only(quarter < quarters)
                kde.fit(mine.proba, mine.y, sample_weight=mine.design)
        curves.append(tuple(kde.curve(label) for label in labels))
    return ClassGrowth(tuple(curves))
