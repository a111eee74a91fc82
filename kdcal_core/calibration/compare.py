"""All methods on the same rows: Salamon et al., Fig. 17."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kdcal_core.calibration._bandwidth import SIGN_CHANGES
from kdcal_core.calibration.base import TopLabelCalibrator, top_label
from kdcal_core.calibration.calibrators import CALIBRATORS, methods_by_class, score_calibrator
from kdcal_core.calibration.kde import TopLabelKDE
from kdcal_core.calibration.losses import MethodLosses, top_label_losses
from kdcal_core.data import FloatArray, IntArray, ScoredSet, check_weight
from kdcal_core.data.splits import stratified_folds
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.progress import Progress


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Losses of all methods, and the calibrators behind them.

    Attributes
    ----------
    resubstitution : MethodLosses
        On the calibration set by calibrators fitted on the same rows, as in the paper. It favours
        methods that can fit noise.
    cross_fitted : MethodLosses
        On the calibration set, each row by calibrators fitted on the other folds.
    evaluation : MethodLosses or None
        On the evaluation set, by the calibrators fitted on the whole calibration set.
    calibrators : dict of str to fitted TopLabelCalibrator
        Fitted on the whole calibration set.
    """

    resubstitution: MethodLosses
    cross_fitted: MethodLosses
    evaluation: MethodLosses | None
    calibrators: dict[str, TopLabelCalibrator] = field(repr=False)


def compare_methods(
    fit_set: ScoredSet,
    eval_set: ScoredSet | None = None,
    *,
    methods: Sequence[str] | None = None,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> MethodComparison:
    """Mean top-label losses of each method by predicted class (Salamon et al., Figs. 17 to 19).

    Parameters
    ----------
    fit_set : ScoredSet
        The calibration set.
    eval_set : ScoredSet, optional
        Rows that were not used in fitting.
    methods : sequence of str, optional
        Keys of the registry; those it marks ``compared`` where not given.
    folds, seed : int
        Of the cross-fitting; folds are stratified by true class.
    progress : callable, optional
        Called with the share done in [0, 1] and a sentence; may raise to cancel.

    Raises
    ------
    InputError
        For an unknown method, or sets with different classes.

    Notes
    -----
    The fits on the whole calibration set warn as usual; those of single folds do not.
    """
    keys = _keys(methods)
    if eval_set is not None and eval_set.classes != fit_set.classes:
        raise InputError(
            "The evaluation set has other classes than the calibration set",
            fix="Give both sets the same classes in the same order.",
        )
    weight = check_weight(fit_set.weight, fit_set.n_rows)
    advance = _Steps(progress, (folds + 1) * len(keys))
    fitted = _fit_all(keys, fit_set.proba, fit_set.y, weight, advance, "all rows")
    fold = stratified_folds(fit_set.y, folds, seed)
    crossed = {key: np.empty(fit_set.n_rows) for key in keys}
    for i in range(folds):
        held_out = fold == i
        if not held_out.any():
            continue
        kept = ~held_out
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            part = _fit_all(
                keys,
                fit_set.proba[kept],
                fit_set.y[kept],
                weight[kept],
                advance,
                f"fold {i + 1} of {folds}",
            )
        for key in keys:
            crossed[key][held_out] = part[key].predict_confidence(fit_set.proba[held_out])
    advance.done()
    return MethodComparison(
        _losses(_predict(fitted, fit_set), fit_set, "calibration set, refitted on itself"),
        _losses(crossed, fit_set, f"calibration set, cross-fitted ({folds} folds)"),
        None
        if eval_set is None
        else _losses(_predict(fitted, eval_set), eval_set, "evaluation set"),
        fitted,
    )


class _Steps:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._at = progress, total, 0

    def __call__(self, sentence: str) -> None:
        if self._progress is not None:
            self._progress(min(self._at / self._total, 1.0), sentence)
        self._at += 1

    def done(self) -> None:
        if self._progress is not None:
            self._progress(1.0, "Comparison done")


def _keys(methods: Sequence[str] | None) -> list[str]:
    if methods is None:
        return [key for key, entry in CALIBRATORS.items() if entry.compared]
    if not methods:
        raise InputError("No method is given", fix=f"Methods are {', '.join(methods_by_class())}.")
    for key in methods:
        score_calibrator(key)
    return list(methods)


def _fit_all(
    keys: list[str], proba: FloatArray, y: IntArray, weight: FloatArray, advance: _Steps, where: str
) -> dict[str, TopLabelCalibrator]:
    fitted: dict[str, TopLabelCalibrator] = {}
    searched: TopLabelKDE | None = None
    for key in keys:
        entry = CALIBRATORS[key]
        advance(f"Fitting {entry.name} on {where}")
        calibrator: Any = score_calibrator(key)
        if isinstance(calibrator, TopLabelKDE) and calibrator.bandwidth in SIGN_CHANGES:
            # one search finds the bandwidths of all three rules
            searched = searched or calibrator.fit(proba, y, weight)
            fitted[key] = searched.with_rule(calibrator.bandwidth)
        else:
            fitted[key] = calibrator.fit(proba, y, weight)
    return fitted


def _predict(fitted: dict[str, TopLabelCalibrator], rows: ScoredSet) -> dict[str, FloatArray]:
    return {key: calibrator.predict_confidence(rows.proba) for key, calibrator in fitted.items()}


def _losses(confidences: dict[str, FloatArray], rows: ScoredSet, what: str) -> MethodLosses:
    predicted, _ = top_label(rows.proba)
    return top_label_losses(
        confidences,
        predicted,
        rows.y,
        n_classes=len(rows.classes),
        rows=what,
        labels=[CALIBRATORS[key].label for key in confidences],
        sample_weight=rows.weight,
    )
