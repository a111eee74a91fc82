"""A classifier and its calibrator as one classifier of scikit-learn."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    indexable,
)

from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.calibrators import calibrator_entry
from kdcal_core.calibration.fitting import Calibrated, calibrated, fit_calibrator
from kdcal_core.data import FloatArray, ScoredSet, as_pandas
from kdcal_core.data.array_checks import refuse_rows
from kdcal_core.data.frames import refuse_sparse
from kdcal_core.errors import InputError


class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated.

    Behaves as any classifier of scikit-learn: in a `Pipeline`, under `GridSearchCV`, with
    `cross_val_predict`.

    Parameters
    ----------
    model : classifier
        Anything with ``fit`` and ``predict_proba``.
    calibrator : Calibrator or str, default="recommended"
        A calibrator, which is cloned, or a key of :data:`kdcal_core.calibration.CALIBRATORS`.
    cv : int, splitter, iterable or "prefit", default=5
        Folds: the calibrator is fitted on probabilities of rows that the model of their fold has
        not seen, and the model is then fitted on all rows. "prefit": the model is fitted already,
        and the rows that ``fit`` gets are fresh ones for the calibrator alone.
    seed : int, default=0
        Of the division into a number of folds.

    Attributes
    ----------
    classes_ : (K,) array
    model_ : classifier
        Fitted on all rows, or ``model`` itself.
    calibrator_ : Calibrator
        Fitted.
    n_features_in_, feature_names_in_
        Those of ``model_``, if it has them.

    Notes
    -----
    ``predict`` gives the class of :class:`~kdcal_core.calibration.fitting.Calibrated`: the model's
    own where the calibrator keeps it, so that only the confidence changes (Salamon et al., section
    XI).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedModel(GaussianNB(), "temperature").fit(X, y)
    >>> model.predict_proba(X).shape, round(model.score(X, y), 2)
    ((150, 3), 0.96)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [HasMethods("predict_proba")],
        "calibrator": [Calibrator, str],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        model: Any,
        calibrator: Calibrator | str = "recommended",
        *,
        cv: Any = 5,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.calibrator = calibrator
        self.cv = cv
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the calibrator, and the model unless it is fitted already.

        Parameters
        ----------
        X : (n, d) array-like or DataFrame
        y : (n,) array-like
            Classes of any type.
        sample_weight : (n,) array-like, optional
            For the calibrator, and for the model if it takes weights; 0 or more.

        Raises
        ------
        InputError
            If a class has too few rows for the folds, or the calibrator needs more; for negative
            weights.
        """
        self._validate_params()
        if self._reads_columns():
            refuse_sparse(X)
        inputs = _frame(X)
        X, y = indexable(X, column_or_1d(as_pandas(y), warn=True))
        check_classification_targets(y)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if weight is not None:
            refuse_rows(weight < 0.0, "A weight is negative", "Give weights of 0 or more.")
        if len(y) == 0:
            raise InputError("There are no rows", fix="Give rows with their classes.")
        if self.cv == "prefit":
            check_is_fitted(self.model)
            self.model_ = self.model
            proba = _probabilities(self.model_, X)
        else:
            proba = self._held_out(X, y, weight)
            self.model_ = _fitted(self.model, X, y, weight)
        self.classes_ = np.asarray(self.model_.classes_)
        counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        rows = ScoredSet(
            proba[counted],
            _indices(y, self.classes_)[counted],
            tuple(map(str, self.classes_)),
            digest="",
            name="calibration",
            weight=None if weight is None else weight[counted],
        )
        if inputs is not None:
            inputs = inputs.iloc[counted]
        self.calibrator_ = fit_calibrator(self._new_calibrator(), rows, inputs)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities, (n, K), in the order of ``classes_``."""
        return self._calibrated(X).proba

    def predict(self, X: Any) -> Any:
        """The predicted class of each row, (n,)."""
        predicted = self._calibrated(X).predicted
        return self.classes_[predicted]

    def predict_confidence(self, X: Any) -> FloatArray:
        """The probability that the predicted class is right, (n,)."""
        return self._calibrated(X).confidence

    @property
    def n_features_in_(self) -> int:
        """Number of features of the model."""
        check_is_fitted(self)
        return int(self.model_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, if the model was fitted on a frame."""
        check_is_fitted(self)
        return self.model_.feature_names_in_

    def _calibrated(self, X: Any) -> Calibrated:
        check_is_fitted(self)
        inputs = _frame(X)
        return calibrated(self.calibrator_, _probabilities(self.model_, X), inputs)

    def _new_calibrator(self) -> Calibrator:
        if isinstance(self.calibrator, str):
            return calibrator_entry(self.calibrator).factory()
        fresh: Calibrator = clone(self.calibrator)
        return fresh

    def _reads_columns(self) -> bool:
        if isinstance(self.calibrator, Calibrator):
            return self.calibrator.needs_inputs
        with suppress(InputError):  # which fit raises
            return calibrator_entry(self.calibrator).factory().needs_inputs
        return False

    def _held_out(self, X: Any, y: Any, weight: Any) -> FloatArray:
        """Probabilities of each row by the model of the other folds."""
        names, counts = np.unique(y if weight is None else y[weight > 0], return_counts=True)
        if len(names) < 2:
            raise InputError(
                f"All rows are of one class, {', '.join(map(str, names)) or 'or have no weight'}",
                fix="A classifier needs rows of at least two classes.",
            )
        if isinstance(self.cv, Integral):
            if counts.min() < self.cv:
                raise InputError(
                    f"Class {names[counts.argmin()]} has {counts.min()} rows, too few for "
                    f"{self.cv} folds",
                    fix="Give more rows or fewer folds, or fit the model first and use "
                    'cv="prefit".',
                )
            folds = StratifiedKFold(int(self.cv), shuffle=True, random_state=self.seed)
        else:
            folds = check_cv(self.cv, y, classifier=True)
        proba = np.empty((len(y), len(names)))
        for train, held in folds.split(np.zeros(len(y)), y):
            some = None if weight is None else weight[train]
            model = _fitted(self.model, _safe_indexing(X, train), y[train], some)
            proba[held] = _probabilities(model, _safe_indexing(X, held))
        return proba

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.model)
        tags.input_tags.sparse = inner.input_tags.sparse and not self._reads_columns()
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _fitted(model: Any, X: Any, y: Any, weight: Any) -> Any:
    fresh = clone(model)
    if weight is not None and has_fit_parameter(fresh, "sample_weight"):
        return fresh.fit(X, y, sample_weight=weight)
    return fresh.fit(X, y)


def _probabilities(model: Any, X: Any) -> FloatArray:
    return np.asarray(model.predict_proba(X), dtype=np.float64)


def _indices(y: Any, classes: Any) -> Any:
    """The index of each label among the classes, which the model has sorted or not."""
    order = np.argsort(classes)
    at = np.clip(np.searchsorted(classes[order], y), 0, len(classes) - 1)
    found = order[at]
    if (unknown := classes[found] != y).any():
        row = int(unknown.argmax())
        raise InputError(
            f"Row {row + 1} has the class {str(y[row])[:80]!r}, which the model does not know",
            fix="Leave such rows out, or fit the model on them too.",
        )
    return found


def _frame(X: Any) -> pd.DataFrame | None:
    """The features as a frame, for calibrators that read them."""
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    X = None if issparse(X) else np.asarray(X)
    if X is None or X.ndim != 2:
        return None
    return pd.DataFrame(X, columns=[f"x{at}" for at in range(X.shape[1])])
