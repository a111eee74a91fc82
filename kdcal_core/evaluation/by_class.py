"""Calibrators by predicted class: their losses on the rows they were fitted on and on others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration import (
    CALIBRATORS,
    Calibrated,
    methods_by_class,
    score_calibrator,
    top_label,
)
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import MethodLosses, top_label_losses
from kdcal_core.errors import InputError
from kdcal_core.evaluation.held_out import held_out_answers
from kdcal_core.evaluation.methods import methods_of
from kdcal_core.progress import Progress
from kdcal_core.review import ReviewData


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of methods by predicted class, fitted on the calibration set.

    Attributes
    ----------
    resubstitution : MethodLosses
        On the rows of the fit themselves, as in the paper. This flatters methods that can fit
        noise.
    cross_fitted : MethodLosses
        On the calibration set; each row is judged by calibrators fitted on the other folds.
    evaluation : MethodLosses or None
        On the evaluation set, with calibrators fitted on the whole calibration set.
    """

    resubstitution: MethodLosses
    cross_fitted: MethodLosses
    evaluation: MethodLosses | None


def losses_by_class(
    rows: ScoredSet,
    evaluation: ScoredSet | None,
    methods: Sequence[str],
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Losses:
    """Mean top-label losses of methods by predicted class (Salamon et al., Figs. 17 to 19).

    Parameters
    ----------
    rows : ScoredSet
        The calibration set.
    evaluation : ScoredSet or None
        Rows that were not used for fitting.
    methods : sequence of str
        Keys of calibrators that need only probabilities.
    folds, seed : int
        Number of folds and seed of the cross-fitting.
    progress : callable, optional
        Called with the share done and a sentence; may raise to cancel.

    Raises
    ------
    InputError
        For an unknown method, one that cannot be fitted, or sets with different classes.

    Notes
    -----
    The confidence is the probability that each method gives to the class that the model predicts.
    Fits, folds and answers are those of :func:`kdcal_core.evaluation.compare`.

    Examples
    --------
    >>> proba, y = np.tile([0.8, 0.2], (20, 1)), np.arange(20) % 2
    >>> rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration")
    >>> found = losses_by_class(rows, None, ["uncalibrated", "confidence"], folds=2)
    >>> found.cross_fitted.overall_nll.round(2).tolist()
    [0.92, 0.84]
    """
    if not methods:
        raise InputError("No method is given", fix=f"Methods are {', '.join(methods_by_class())}.")
    for key in methods:
        score_calibrator(key)  # raises for one that needs more than probabilities
    if evaluation is not None and evaluation.classes != rows.classes:
        raise InputError(
            "The evaluation set has other classes than the calibration set",
            fix="Give both sets the same classes in the same order.",
        )
    asked = {"refitted": rows} | ({} if evaluation is None else {"evaluation": evaluation})
    found = held_out_answers(
        methods_of(methods, seed),
        ReviewData(rows, None, rows.classes, {}),
        judge="cross-fitted",
        folds=folds,
        seed=seed,
        also={name: (one.proba, None) for name, one in asked.items()},
        progress=progress,
    )
    if failed := [key for key in methods if key in found.failed]:
        raise InputError(f"{CALIBRATORS[failed[0]].name}: {found.failed[failed[0]].rstrip('.')}")
    at = {one.key: place for place, one in enumerate(found.methods)}

    def losses(judged: ScoredSet, said: Callable[[int], Calibrated], words: str) -> MethodLosses:
        predicted, _ = top_label(judged.proba)
        confidences = {
            key: np.clip(said(at[key]).proba[np.arange(judged.n_rows), predicted], 0.0, 1.0)
            for key in methods
        }
        return top_label_losses(
            confidences,
            predicted,
            judged.y,
            n_classes=len(judged.classes),
            rows=words,
            labels=[CALIBRATORS[key].label for key in confidences],
            sample_weight=judged.design,
        )

    if progress is not None:
        progress(1.0, "Comparison done")
    return Losses(
        losses(
            rows,
            lambda place: found.fits[place][-1].answers["refitted"],
            "calibration set, refitted on itself",
        ),
        losses(rows, found.said.__getitem__, f"calibration set, cross-fitted ({folds} folds)"),
        None
        if evaluation is None
        else losses(
            evaluation,
            lambda place: found.fits[place][-1].answers["evaluation"],
            "evaluation set",
        ),
    )
