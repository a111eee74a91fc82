"""Which rows a method is fitted on and which it is judged by, and its answers put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kdcal_core.calibration import Calibrated
from kdcal_core.data import IntArray, ScoredSet
from kdcal_core.data.splits import stratified_folds
from kdcal_core.errors import InputError
from kdcal_core.evaluation.comparison import Judge
from kdcal_core.evaluation.far import FarRows
from kdcal_core.evaluation.fits import Answer, Part, Rows
from kdcal_core.evaluation.paired import LEAST_ROWS
from kdcal_core.review import ReviewData


def judging_rows(
    review: ReviewData, judge: Judge, folds: int, seed: int
) -> tuple[ScoredSet, IntArray]:
    """The rows that judge, and the fold of each (0 on the evaluation set).

    Raises
    ------
    InputError
        Where there is no evaluation set, it has one row or other classes, or rows are too few for
        the folds.
    """
    if judge == "cross-fitted":
        rows = review.calibration
        return rows, stratified_folds(rows.y, folds, seed)
    if review.evaluation is None:
        raise InputError("There is no evaluation set", fix="Load one, or judge by cross-fitting.")
    if review.evaluation.classes != review.calibration.classes:
        raise InputError(
            "The evaluation set has other classes than the calibration set",
            fix="Give both sets the same classes in the same order.",
        )
    if review.evaluation.n_rows < 2:
        raise InputError(
            "One row cannot judge calibrators",
            fix=f"Give an evaluation set of at least {LEAST_ROWS} rows, or judge by cross-fitting.",
        )
    return review.evaluation, np.zeros(review.evaluation.n_rows, dtype=np.int64)


def parts_of(
    review: ReviewData, rows: ScoredSet, fold: IntArray, far: FarRows | None
) -> list[Part]:
    """One part for each fold left out, and last the fit on the whole calibration set."""
    asked: dict[str, Rows] = {} if far is None else {"far": (far.proba, far.X)}
    X = _inputs(review, "calibration")
    if rows is not review.calibration:
        asked["judged"] = rows.proba, _inputs(review, "evaluation")
        return [Part("the calibration set", review.calibration, X, asked, timed=True)]
    n_folds = int(fold.max()) + 1
    parts = [
        Part(
            f"fold {i + 1} of {n_folds}",
            _subset(rows, np.flatnonzero(fold != i)),
            _taken(X, np.flatnonzero(fold != i)),
            {"judged": (rows.proba[fold == i], _taken(X, np.flatnonzero(fold == i)))},
        )
        for i in range(n_folds)
    ]
    return [*parts, Part("all rows", rows, X, asked, timed=True)]


def joined(answers: Sequence[Answer], fold: IntArray) -> Calibrated:
    """What one method says of the rows that judge, in their order."""
    judged = [one.answers["judged"] for one in answers if "judged" in one.answers]
    order = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    return Calibrated(
        np.concatenate([one.proba for one in judged])[order],
        np.concatenate([one.predicted for one in judged])[order],
        np.concatenate([one.confidence for one in judged])[order],
    )


def _inputs(review: ReviewData, which: str) -> pd.DataFrame | None:
    """Features of a set; None where no column is one."""
    frame = review.inputs.get(which)
    return None if frame is None or frame.shape[1] == 0 else frame.reset_index(drop=True)


def _taken(X: pd.DataFrame | None, index: IntArray) -> pd.DataFrame | None:
    return None if X is None else X.iloc[index].reset_index(drop=True)


def _subset(rows: ScoredSet, index: IntArray) -> ScoredSet:
    """Some of the rows. Nothing is cached by it, so that the whole set's digest may stand."""
    return ScoredSet(
        rows.proba[index],
        rows.y[index],
        rows.classes,
        rows.digest,
        rows.name,
        None if rows.weight is None else rows.weight[index],
    )
