"""One interface to fit and apply any calibrator, whatever data it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from kdcal_core.blocks import one_thread
from kdcal_core.calibration.calibrator_base import Calibrator, top_label
from kdcal_core.calibration.calibrators import calibrator_entry
from kdcal_core.data import FloatArray, IntArray, ScoredSet, as_pandas
from kdcal_core.errors import InputError, warn
from kdcal_core.models import Model
from kdcal_core.progress import Progress

Training = tuple[pd.DataFrame, IntArray]

TREES = ("tree", "forest", "boosted", "auc")
"""Partitions by trees, which can also be grown on the activations of a hidden layer."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Calibrated rows.

    Attributes
    ----------
    proba : (n, K) array
        Calibrated probabilities, rows summing to one.
    predicted : (n,) int array
        The model's predicted class if the calibrator keeps it (top-label calibrators,
        temperatures), otherwise the class with the largest calibrated probability.
    confidence : (n,) array
        The probability of that class.
    """

    proba: FloatArray
    predicted: IntArray
    confidence: FloatArray


def fit_calibrator(
    calibrator: Calibrator | str,
    rows: ScoredSet,
    X: pd.DataFrame | None = None,
    *,
    training: Training | None = None,
    model: Model | None = None,
    layer: str | None = None,
    progress: Progress | None = None,
) -> Calibrator:
    """Fit a calibrator, or a new one for a key, with those of the given data that it needs.

    Parameters
    ----------
    calibrator : Calibrator or str
        A calibrator, which is fitted in place, or a key of
        :data:`kdcal_core.calibration.CALIBRATORS`.
    rows : ScoredSet
        The calibration set.
    X : pandas.DataFrame of n rows, optional
        Its features, for calibrators that read them.
    training : (DataFrame, (m,) int array), optional
        Features and classes of the model's training rows, on which partitions are grown.
    model : Model, optional
        The open model, for calibrators that use it.
    layer : str, optional
        A hidden layer of the model whose activations replace the features as inputs (Durfee et al.,
        section 5), for partitions by trees.
    progress : callable, optional
        Called by slow calibrators with the share done in [0, 1] and a sentence; may raise to
        cancel.

    Raises
    ------
    InputError
        If there is no such calibrator, or data that it needs are missing or do not match the rows.

    Warns
    -----
    InputWarning
        If there are fewer rows than the calibrator needs; its ``notes_`` say the same.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.calibration import ClasswiseHistogram
    >>> proba, y = np.tile([0.2, 0.8], (200, 1)), np.tile([0, 1, 1, 1], 50)
    >>> rows = ScoredSet(proba, y, ("no", "yes"), "digest", "calibration")
    >>> histogram = fit_calibrator(ClasswiseHistogram(shrinkage=None), rows)
    >>> calibrated(histogram, proba[:1]).proba.round(2).tolist()
    [[0.25, 0.75]]
    """
    if isinstance(calibrator, str):
        calibrator = calibrator_entry(calibrator).factory()
    given: dict[str, Any] = {}
    if calibrator.needs_inputs:
        X = _inputs(X, rows.n_rows)
    if layer is not None:
        check_layer(calibrator)
        X = layer_inputs(model, X, layer)
        if training is not None:
            training = layer_inputs(model, training[0], layer), training[1]
    if calibrator.needs_inputs:
        given["X"] = X
    if training is not None and has_fit_parameter(calibrator, "X_partition"):
        given["X_partition"], given["y_partition"] = training
    if has_fit_parameter(calibrator, "model"):
        given["model"] = model
    if has_fit_parameter(calibrator, "progress"):
        given["progress"] = progress
    calibrator._class_names = rows.classes  # only for the notes of this fit
    try:
        with one_thread("blas"):  # the sums of several depend on how many there are
            fitted: Calibrator = calibrator.fit(
                rows.proba, rows.y, sample_weight=rows.design, **given
            )
    finally:
        calibrator._class_names = None
    if (few := fitted.few_rows(rows.n_rows)) is not None:
        warn(few, stacklevel=2)
    return fitted


def check_layer(calibrator: Calibrator) -> None:
    """Refuse a calibrator that cannot be fitted on the activations of a hidden layer.

    Examples
    --------
    >>> from kdcal_core.calibration.calibrators import calibrator_entry
    >>> check_layer(calibrator_entry("heterogeneous_forest").factory())
    >>> check_layer(calibrator_entry("platt").factory())
    Traceback (most recent call last):
    kdcal_core.errors.InputError: This calibrator does not divide the rows by trees, ...
    """
    if getattr(calibrator, "partition", None) not in TREES:
        raise InputError(
            "This calibrator does not divide the rows by trees, so it cannot use a hidden layer",
            fix="Leave the layer out, or choose a calibrator by regions of trees.",
        )


def layer_inputs(model: Model | None, X: Any, layer: str) -> pd.DataFrame:
    """The activations of a hidden layer for rows, (n, units), in columns "unit 1", "unit 2", ...

    Raises
    ------
    InputError
        If there is no model, or it has no such layer.
    """
    from kdcal_core.calibration.regions import layer_frame

    if model is None:
        raise InputError(
            f"The regions are built on the model's hidden layer {layer[:80]!r}, and no model was "
            "given",
            fix="Give the model too.",
        )
    return layer_frame(model, X, layer)


def calibrated(calibrator: Calibrator, proba: Any, X: pd.DataFrame | None = None) -> Calibrated:
    """Apply a fitted calibrator to rows.

    Parameters
    ----------
    proba : (n, K) array or data frame, or (n,)
        The model's probabilities, as for the fit.
    X : pandas.DataFrame of n rows, optional
        Their features, for calibrators that read them.

    Raises
    ------
    InputError
        If the values are not probabilities, or features are missing or do not match.
    """
    proba = calibrator._checked(proba)
    inputs = (_inputs(X, len(proba)),) if calibrator.needs_inputs else ()
    found: FloatArray = calibrator.predict_proba(proba, *inputs)
    predicted, _ = top_label(proba if calibrator.keeps_prediction else found)
    return Calibrated(found, predicted, found[np.arange(len(found)), predicted])


def _inputs(X: pd.DataFrame | None, n_rows: int) -> pd.DataFrame:
    if X is None:
        raise InputError(
            "This calibrator reads the features of the rows, and none were given",
            fix="Give the rows' features, or choose a calibrator that reads only probabilities.",
        )
    X = as_pandas(X)
    if len(X) != n_rows:
        raise InputError(
            f"There are features of {len(X):,} rows for the probabilities of {n_rows:,}",
            fix="Give one row of features for each row of probabilities.",
        )
    return X
