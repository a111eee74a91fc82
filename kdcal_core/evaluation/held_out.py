"""Methods' answers for rows that they were not fitted on, by a split or by cross-fitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration import Calibrated
from kdcal_core.data import IntArray, ScoredSet, fit_and_held, random_folds
from kdcal_core.diagnostics.targets import check_choice
from kdcal_core.errors import InputError
from kdcal_core.evaluation.methods import Answer, Method, Part, Rows, Task, run_tasks
from kdcal_core.evaluation.paired import LEAST_ROWS
from kdcal_core.progress import Progress
from kdcal_core.review import ReviewData

Judge = Literal["evaluation", "cross-fitted"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Methods' answers for the judged rows; no method was fitted on the rows that it answers for.

    Attributes
    ----------
    judge : {"evaluation", "cross-fitted"}
    rows : ScoredSet of n rows
        The judged rows.
    fold : (n,) int array
        The fold of each row; 0 on the evaluation set.
    methods : tuple of Method
        Methods that could be fitted on every part.
    said : tuple of Calibrated
        One for each method, in the order of ``rows``.
    fits : tuple of tuple of Answer
        For each method, the answers of each fold, and last those of the fit on the whole
        calibration set.
    failed : dict of method key to sentence
    """

    judge: Judge
    rows: ScoredSet
    fold: IntArray
    methods: tuple[Method, ...]
    said: tuple[Calibrated, ...]
    fits: tuple[tuple[Answer, ...], ...]
    failed: dict[str, str]


def held_out_answers(
    methods: Sequence[Method],
    review: ReviewData,
    *,
    judge: Judge | None = None,
    folds: int = 5,
    seed: int = 0,
    also: Mapping[str, Rows] | None = None,
    timed: bool = False,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> HeldOut:
    """Fit methods on a review's calibration set and apply them to rows held out from the fit.

    Parameters
    ----------
    methods : sequence of Method
        As returned by :func:`kdcal_core.evaluation.methods_of`.
    review : ReviewData
        Calibrators that need more than probabilities (features, training rows, the open model) take
        it from the review where it has them.
    judge : {"evaluation", "cross-fitted"}, optional
        "evaluation" fits once and applies the fit to the evaluation set; it is the default where
        there is one. "cross-fitted" applies to each row of the calibration set a fit on the other
        folds.
    folds, seed : int
        Number of folds, which are the same for all methods; and the seed.
        Rows that depend on one another are in one fold.
    also : mapping of str to (probabilities, features or None), optional
        Further rows, to which the fit on the whole calibration set is applied. The last ``Answer``
        holds the results under the same names.
    timed : bool
        Whether to measure the speed of predictions.
    progress : callable, optional
        Called with the share done and a sentence; may raise to cancel.
    executor : concurrent.futures.Executor, optional
        Its workers fit the methods.

    Raises
    ------
    InputError
        Where there are too few rows or the sets do not match. A method that cannot be fitted is
        named in ``failed``, and the others are still fitted.

    Examples
    --------
    >>> from kdcal_core.evaluation import methods_of
    >>> proba, y = np.tile([0.8, 0.2], (20, 1)), np.arange(20) % 2
    >>> rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration")
    >>> found = held_out_answers(
    ...     methods_of(["sts"]), ReviewData(rows, None, rows.classes, {}), folds=2
    ... )
    >>> [one.key for one in found.methods], found.said[0].confidence[:2].tolist()
    (['uncalibrated', 'sts'], [0.8, 0.8])
    """
    if judge is None:
        judge = "cross-fitted" if review.evaluation is None else "evaluation"
    check_choice("judge", judge, ("evaluation", "cross-fitted"))
    rows, fold = judging_rows(review, judge, folds, seed)
    parts = parts_of(review, rows, fold, also or {}, timed)
    tasks = [
        Task(one, part, review.training, review.model if one.asks_model else None)
        for part in parts
        for one in methods
    ]
    done = run_tasks(tasks, progress, executor)
    answers = {one.key: done[at :: len(methods)] for at, one in enumerate(methods)}
    failed = {key: words for key, found in answers.items() if (words := _failure(found))}
    left = tuple(one for one in methods if one.key not in failed)
    fits = tuple(tuple(one for one in answers[method.key] if one is not None) for method in left)
    said = tuple(joined(found, fold) for found in fits)
    return HeldOut(judge, rows, fold, left, said, fits, failed)


def _failure(answers: Sequence[Answer | None]) -> str | None:
    """The first reason why a method could not be fitted, as a sentence."""
    return next((one.failure for one in answers if one is not None and one.failure), None)


def judging_rows(
    review: ReviewData, judge: Judge, folds: int, seed: int
) -> tuple[ScoredSet, IntArray]:
    """The rows on which methods are judged, and the fold of each (0 on the evaluation set).

    Raises
    ------
    InputError
        Where there is no evaluation set, where it has one row or other classes, or where there are
        too few rows for the folds.
    """
    if judge == "cross-fitted":
        rows = review.calibration
        return rows, random_folds(rows.n_rows, folds, seed, rows.grouping)
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
    review: ReviewData, rows: ScoredSet, fold: IntArray, also: Mapping[str, Rows], timed: bool
) -> list[Part]:
    """One part for each fold left out, then one for the fit on the whole calibration set."""
    asked = dict(also)
    X = _inputs(review, "calibration")
    if rows is not review.calibration:
        asked["judged"] = rows.proba, _inputs(review, "evaluation")
        return [Part("the calibration set", review.calibration, X, asked, timed)]
    n_folds = int(fold.max()) + 1
    parts = [
        Part(
            f"fold {i + 1} of {n_folds}",
            rows.only(fit),
            _taken(X, fit),
            {"judged": (rows.proba[held], _taken(X, held))},
        )
        for i, (fit, held) in enumerate(fit_and_held(fold))
    ]
    return [*parts, Part("all rows", rows, X, asked, timed)]


def joined(answers: Sequence[Answer], fold: IntArray) -> Calibrated:
    """One method's answers for the judged rows, in their order."""
    judged = [one.answers["judged"] for one in answers if "judged" in one.answers]
    order = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    return Calibrated(
        np.concatenate([one.proba for one in judged])[order],
        np.concatenate([one.predicted for one in judged])[order],
        np.concatenate([one.confidence for one in judged])[order],
    )


def _inputs(review: ReviewData, which: str) -> pd.DataFrame | None:
    """Features of a set; None where no column is a feature."""
    frame = review.inputs.get(which)
    return None if frame is None or frame.shape[1] == 0 else frame.reset_index(drop=True)


def _taken(X: pd.DataFrame | None, index: IntArray) -> pd.DataFrame | None:
    return None if X is None else X.iloc[index].reset_index(drop=True)
