"""Joint, confusion and reverse confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom, hypergeom

from kdcal_core.calibration.calibrator_base import top_label
from kdcal_core.data import FloatArray, IntArray, check_labels, check_proba, check_weight
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.estimate import LEAST_ROWS
from kdcal_core.statistics import clopper_pearson
from kdcal_core.text import number_text


@dataclass(frozen=True, eq=False)
class Confusion:
    """Salamon et al., Fig. 1: counts, and their two normalisations. Rows true, columns predicted.

    ``joint`` is (K, K) counts (weights summed); ``confusion`` is normalised by row (true
    class), ``reverse`` by column (predicted class): its diagonal is Conf1, Eq. 1. A class
    without rows gives NaN. ``effective`` (K,) is Kish's effective number of each predicted
    class's rows; None where rows have no weights.
    """

    joint: FloatArray
    confusion: FloatArray
    reverse: FloatArray
    effective: FloatArray | None = None


def confusion(
    proba_or_pred: Any, y: Any, n_classes: int | None = None, sample_weight: Any = None
) -> Confusion:
    """Counts of true (rows) against predicted class (columns); Salamon et al., Fig. 1.

    The reverse confusion matrix divides each column by its sum; its diagonal is the share of a
    class's predictions that are right, Conf1 (Salamon et al., Eq. 1).

    Parameters
    ----------
    proba_or_pred : (n, K) probabilities or (n,) predicted classes, 0 to K - 1
    y : (n,) true classes, 0 to K - 1
    n_classes : int, optional
        K; taken from the probabilities where they are given. With predicted classes and no
        ``n_classes``, the largest class seen plus one.
    sample_weight : (n,) array, optional

    Raises
    ------
    InputError
        For arrays not of this form; the message names the row.

    Examples
    --------
    >>> result = confusion([0, 0, 1, 1], [0, 1, 1, 1], 2)
    >>> result.joint.tolist(), result.reverse.diagonal().tolist()
    ([[1.0, 0.0], [1.0, 2.0]], [0.5, 1.0])
    """
    predicted, n_classes = _predicted(proba_or_pred, y, n_classes)
    y = check_labels(y, n_classes, n_rows=len(predicted))
    weight = check_weight(sample_weight, len(predicted))
    joint = bin_sums(y * n_classes + predicted, n_classes**2, weight)
    joint = joint.reshape(n_classes, n_classes)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_row = joint / joint.sum(axis=1, keepdims=True)
        by_column = joint / joint.sum(axis=0, keepdims=True)
    if sample_weight is None:
        return Confusion(joint, by_row, by_column)
    square = bin_sums(predicted, n_classes, weight**2)
    effective = joint.sum(axis=0) ** 2 / np.where(square > 0.0, square, 1.0)
    return Confusion(joint, by_row, by_column, effective)


def confusion_finding(
    result: Confusion, class_names: Sequence[str] | None = None, level: float = 0.95
) -> str:
    """The predicted class that is right less often than the others, if chance does not explain it.

    Every class with ten predictions or more is compared with all others by Fisher's exact test,
    one-sided, corrected for the number of classes tested (Bonferroni). The true class of most
    of its errors is named if equal shares do not explain it, with the same correction. With
    row weights predictions count by Kish's effective number.

    Examples
    --------
    >>> from kdcal_core.diagnostics import confusion
    >>> predicted, true = [0] * 40 + [1] * 40, [0] * 20 + [1] * 60
    >>> confusion_finding(confusion(predicted, true, 2), ("cat", "dog"))
    'A prediction of class cat is right 50% of the time (20 of 40), the others 100%.'
    >>> confusion_finding(confusion([0, 0, 0, 1], [0, 1, 1, 1], 2), ("cat", "dog"))
    'No predicted class is right less often than the others beyond chance; of all 4 predictions \
50% are right (7% to 93%).'
    """
    total, right = result.joint.sum(axis=0), result.joint.diagonal()
    whole, hits = float(total.sum()), float(right.sum())
    if hits >= whole:
        return f"All {whole:,.0f} predictions are right."
    names = [f"class {name}" for name in class_names or range(len(total))]
    predicted = np.flatnonzero(total > 0)
    share = total if result.effective is None else result.effective
    rows = np.rint(np.where(total > 0, share, 0.0))
    correct = np.rint(rows * np.nan_to_num(result.reverse.diagonal()))
    looked = np.flatnonzero(rows >= LEAST_ROWS)
    # probability of so few right rows in this class if right and wrong rows were mixed at random
    p = np.asarray(hypergeom.cdf(correct[looked], rows.sum(), correct.sum(), rows[looked]))
    worst = int(looked[np.argmin(p)]) if len(looked) else int(predicted[0])
    if len(predicted) == 1 or p.min(initial=1.0) * max(len(looked), 1) >= 1.0 - level:
        low, high = clopper_pearson(hits / whole, rows.sum(), level)
        width = float(high - low)
        rate, least, most = (number_text(float(v), width, True) for v in (hits / whole, low, high))
        lead = (
            f"All predictions are of {names[worst]}"
            if len(predicted) == 1
            else "No predicted class is right less often than the others beyond chance"
        )
        are = f"{rate} are right ({least} to {most})"
        return f"{lead}; of all {whole:,.0f} predictions {are}."
    others = (hits - right[worst]) / (whole - total[worst])
    return (
        f"A prediction of {names[worst]} is right {100 * right[worst] / total[worst]:.0f}% of the "
        f"time ({right[worst]:,.0f} of {total[worst]:,.0f}), the others {100 * others:.0f}%"
        f"{_taken_for(result.joint[:, worst], worst, names, level)}."
    )


def _taken_for(column: FloatArray, worst: int, names: Sequence[str], level: float) -> str:
    """The true class of most errors of a prediction, if chance does not explain it."""
    errors = column.copy()
    errors[worst] = 0.0
    most, wrong, choices = int(np.argmax(errors)), float(errors.sum()), len(errors) - 1
    if choices < 2:
        return ""
    p = binom.sf(np.rint(errors[most]) - 1.0, np.rint(wrong), 1.0 / choices)
    if p * choices >= 1.0 - level:
        return ""
    return f"; {errors[most]:,.0f} of its {wrong:,.0f} errors are {names[most]}"


def _predicted(proba_or_pred: Any, y: Any, n_classes: int | None) -> tuple[IntArray, int]:
    if np.ndim(proba_or_pred) == 2:
        proba = check_proba(proba_or_pred, n_classes=n_classes)
        return top_label(proba)[0], proba.shape[1]
    if n_classes is None:
        n_classes = 1 + int(max(np.max(proba_or_pred), np.max(y)))
    return check_labels(proba_or_pred, n_classes), n_classes
