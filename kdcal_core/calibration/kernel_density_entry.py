"""The kernel density graph behind the manners of every other calibrator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration.base import Calibrator
from kdcal_core.calibration.kernel_density.base import KernelDensityEstimator
from kdcal_core.calibration.kernel_density.forest import KernelDensityForest
from kdcal_core.calibration.kernel_density.network import KernelDensityNetwork
from kdcal_core.calibration.kernel_density.rows import own_columns, take
from kdcal_core.calibration.state import demand
from kdcal_core.data import FloatArray, check_labels, check_proba, check_weight
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.parents import Parent, wrap_parent
from kdcal_core.parents.base import HasCodes
from kdcal_core.partition import LeafCodes

Progress = Callable[[float, str], None]


class KernelDensityCalibrator(Calibrator):
    """A kernel density graph fitted on the calibration set (papers 000 and 001).

    :class:`KernelDensityForest` or :class:`KernelDensityNetwork`, whichever the parent's
    partition asks for, with default settings: inside the data it blends the parent's
    probabilities with the class ratio of the row's polytope, outside it falls back to the prior.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the split into rows of the fit and rows held out to choose its settings.

    Attributes
    ----------
    estimator_ : KernelDensityForest or KernelDensityNetwork
        Holds the parent.
    notes_ : tuple of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
    >>> calibrator = KernelDensityCalibrator()
    >>> calibrator = calibrator.fit(forest.predict_proba(X[1::2]), y[1::2], X[1::2], parent=forest)
    >>> far = 1000 + X[:1]
    >>> calibrator.predict_proba(forest.predict_proba(far), far).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    """

    needs_inputs: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "random_state": [Interval(Integral, 0, None, closed="left")]
    }

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def rows_needed(self, n_classes: int) -> int:
        # the floor is this quantile of the rows that are held out: one of them must lie below it
        settings = KernelDensityForest(None).get_params(deep=False)
        share = float(settings["floor_quantile"]) * float(settings["holdout_share"])
        return math.ceil(1.0 / share)

    def fit(
        self,
        proba: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        *,
        parent: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on the calibration set.

        Parameters
        ----------
        proba : (n, K) array
            The parent's probabilities; rows sum to one.
        y : (n,) array of int
            True classes as column indices.
        X : DataFrame or array of n rows
            What the parent takes.
        sample_weight : (n,) array, optional
            Must be equal throughout: densities of weighted rows are not defined here.
        parent : Parent, or what :func:`kdcal_core.parents.wrap_parent` takes
        progress : callable, optional
            Told the share done in [0, 1] and a sentence; may raise to cancel.

        Raises
        ------
        InputError
            There is no parent, it has no partition or other classes, rows are weighted, or an
            array is not of this form.
        """
        self._validate_params()
        proba = check_proba(proba)
        y = check_labels(y, proba.shape[1], n_rows=len(proba))
        weight = check_weight(sample_weight, len(proba))
        if weight.min() != weight.max():
            raise InputError(
                "A kernel density graph cannot weigh rows",
                fix="Take the role of the weight away, or choose another calibrator.",
            )
        opened = _opened(parent, proba.shape[1])
        self.n_classes_ = proba.shape[1]
        self.notes_ = ()
        # labels by name: where classes are named by numbers, indices would be taken for names
        names = np.array(opened.classes)[y]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InputWarning)
            kind = _kind(opened, X)
            self.estimator_ = kind(parent=opened, random_state=self.random_state).fit(
                X, names, progress=progress
            )
        for one in caught:
            if issubclass(one.category, InputWarning):
                self._note(str(one.message), warn=True)
        self._note_few(len(y))
        return self

    def predict_proba(self, proba: Any, X: Any) -> FloatArray:
        """Calibrated probabilities, (n, K), rows summing to one.

        Raises
        ------
        InputError
            The rows do not fit the parent.
        """
        check_is_fitted(self, "estimator_")
        proba = check_proba(proba, n_classes=self.n_classes_)
        located = self.estimator_.locate(X, proba=proba)
        return self.estimator_.graph_.posterior(located)

    def check_state(self) -> None:
        super().check_state()
        estimator = getattr(self, "estimator_", None)
        demand(isinstance(estimator, KernelDensityEstimator), "estimator_")
        demand(len(self.estimator_.graph_.classes) == self.n_classes_, "estimator_")


def _opened(parent: Any, n_classes: int) -> Parent:
    if parent is None:
        raise InputError(
            "A kernel density graph asks the model itself, and there is none",
            fix="Add the model, or choose a calibrator that reads probabilities alone.",
        )
    opened: Parent = wrap_parent(parent, task="classification")
    if len(opened.classes) != n_classes:
        raise InputError(
            f"The model knows {len(opened.classes)} classes, the probabilities are of {n_classes}",
            fix="Give the probabilities of this model.",
        )
    return opened


def _kind(parent: Parent, X: Any) -> type[KernelDensityForest] | type[KernelDensityNetwork]:
    if not isinstance(parent, HasCodes):
        raise InputError(
            f"This model ({parent.kind}) is not read as a partition of its inputs",
            fix="Choose another calibrator; kernel density graphs need trees or ReLU layers.",
        )
    one = parent.codes(take(own_columns(X, parent), np.arange(1)))
    return KernelDensityForest if isinstance(one, LeafCodes) else KernelDensityNetwork
