"""Joint, confusion and reverse confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.calibration.base import top_label
from kdcal_core.data import IntArray, check_labels, check_proba, check_weight
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.results import Confusion


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


def _predicted(proba_or_pred: Any, y: Any, n_classes: int | None) -> tuple[IntArray, int]:
    if np.ndim(proba_or_pred) == 2:
        proba = check_proba(proba_or_pred, n_classes=n_classes)
        return top_label(proba)[0], proba.shape[1]
    if n_classes is None:
        n_classes = 1 + int(max(np.max(proba_or_pred), np.max(y)))
    return check_labels(proba_or_pred, n_classes), n_classes
