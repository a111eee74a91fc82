"""What runs in the worker of ``kdcal calibrate``: the fit, its judgement, and the file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration.files import CardEstimate, DataMark, make_card, save_calibrator
from kdcal_core.calibration.fitting import Calibrated, calibrated, fit_calibrator
from kdcal_core.calibration.registry import calibrator_entry
from kdcal_core.data import ScoredSet, digest_arrays, stratified_folds
from kdcal_core.diagnostics import Estimate, brier, log_loss, summary
from kdcal_core.diagnostics.comparison.overlap import overlap
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.review import Review, Workspace
from kdcal_core.review.reviewed import ReviewData, review_data

Progress = Callable[[float, str], None]

_FOLDS = 5


def fit_and_save(
    home: str, review_id: str, key: str, out: str, seed: int, progress: Progress
) -> dict[str, Any]:
    """Fit the calibrator of this key on a scored review, judge it and write its file.

    Parameters
    ----------
    home : str
        Folder of the workspace.
    out : str
        The file to write.
    seed : int
        Of the folds.

    Returns
    -------
    dict
        ``key``, ``rows``, ``notes``, and ``estimates`` as the file's card has them.

    Raises
    ------
    InputError
        The calibrator needs what the review does not have, or the rows do not do.
    """
    workspace = Workspace(Path(home))
    review = workspace.read(review_id)
    entry = calibrator_entry(key)
    data = review_data(workspace, review_id, with_parent="parent" in entry.needs)
    rows, X = data.calibration, data.inputs.get("calibration")
    progress(0.0, f"Fitting: {entry.name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the notes say the same
        fitted = fit_calibrator(key, rows, X, training=data.training, parent=data.parent)
        estimates, notes = _judged(key, fitted, data, seed, progress)
    card = make_card(
        key,
        fitted,
        classes=data.classes,
        data=_marks(review),
        parent=review.parent,
        features=[] if X is None else [str(name) for name in X.columns],
        estimates=estimates,
        notes=[*(_left_aside(review, data) if fitted.needs_inputs else []), *notes],
        seed=seed,
    )
    save_calibrator(fitted, out, card)
    return {
        "key": key,
        "rows": rows.n_rows,
        "notes": card.notes,
        "estimates": [asdict(one) for one in estimates],
    }


def _judged(
    key: str, fitted: Any, data: ReviewData, seed: int, progress: Progress
) -> tuple[list[CardEstimate], list[str]]:
    """What the calibrator gains on rows that it was not fitted on."""
    if data.evaluation is not None:
        rows = data.evaluation
        found = calibrated(fitted, rows.proba, data.inputs.get("evaluation"))
        return _gains(rows, found, "evaluation set", seed), _shared(data)
    try:
        found = _cross_fitted(key, data, seed, progress)
    except InputError as error:
        return [], [f"What it gains was not judged by cross-fitting: {error.what}."]
    judged = f"cross-fitted on the calibration set, {_FOLDS} folds"
    return _gains(data.calibration, found, judged, seed), []


def _left_aside(review: Review, data: ReviewData) -> list[str]:
    """What is to be said where some columns are read of no table, as not all tables have them."""
    columns = [str(name)[:80] for name in data.groups["calibration"].columns]
    if not columns or (review.roles is not None and review.roles.features):
        return []
    more = f" and {len(columns) - 1:,} more" if len(columns) > 1 else ""
    return [f"Not every table has the column {columns[0]!r}{more}: left aside, as if in none."]


def _shared(data: ReviewData) -> list[str]:
    """What is to be said where the evaluation set has rows of the calibration set."""
    found = overlap(data)
    return [] if found is None or found.words is None else [found.words]


def _cross_fitted(key: str, data: ReviewData, seed: int, progress: Progress) -> Calibrated:
    """Each row calibrated by a fit on the other folds."""
    rows, X = data.calibration, data.inputs.get("calibration")
    fold = stratified_folds(rows.y, _FOLDS, seed)
    proba, predicted = np.empty_like(rows.proba), np.empty_like(rows.y)
    confidence = np.empty(rows.n_rows)
    for k in range(_FOLDS):
        progress((k + 1) / (_FOLDS + 1), f"Judging: fold {k + 1} of {_FOLDS}")
        others, own = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        fitted = fit_calibrator(
            key,
            _taken(rows, others),
            _rows_of(X, others),
            training=data.training,
            parent=data.parent,
        )
        found = calibrated(fitted, rows.proba[own], _rows_of(X, own))
        proba[own], predicted[own] = found.proba, found.predicted
        confidence[own] = found.confidence
    return Calibrated(proba, predicted, confidence)


def _gains(rows: ScoredSet, found: Calibrated, judged: str, seed: int) -> list[CardEstimate]:
    """Measures of the parent and of the calibrated probabilities on the same rows."""
    keeps = bool((found.predicted == rows.proba.argmax(axis=1)).all())
    after = ScoredSet(found.proba, rows.y, rows.classes, rows.digest, rows.name, weight=rows.weight)
    # a calibrator that keeps the predicted class is judged on its confidence in that class
    tiles = summary(rows, found.confidence, seed=seed) if keeps else summary(after, seed=seed)
    pairs = [
        *zip(summary(rows, seed=seed), tiles, strict=True),
        *((measure(rows), measure(after)) for measure in (_log_loss, _brier)),
    ]
    return [
        CardEstimate(one.name, one.label, before.value, one.value, one.low, one.high, one.n, judged)
        for before, one in pairs
    ]


def _log_loss(rows: ScoredSet) -> Estimate:
    return log_loss(rows.proba, rows.y, sample_weight=rows.weight)


def _brier(rows: ScoredSet) -> Estimate:
    return brier(rows.proba, rows.y, sample_weight=rows.weight)


def _taken(rows: ScoredSet, at: Any) -> ScoredSet:
    weight = None if rows.weight is None else rows.weight[at]
    proba, y = rows.proba[at], rows.y[at]
    digest = digest_arrays(proba, y, weight)
    return ScoredSet(proba, y, rows.classes, digest, rows.name, weight)


def _rows_of(X: pd.DataFrame | None, at: Any) -> pd.DataFrame | None:
    return None if X is None else X.iloc[at]


def _marks(review: Review) -> dict[str, DataMark]:
    tables = dict(review.tables)
    if review.training is not None:
        tables["training"] = review.training
    return {
        which: DataMark(table.name, table.digest, table.n_rows) for which, table in tables.items()
    }
