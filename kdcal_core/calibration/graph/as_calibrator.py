"""The kernel density graph with the interface of all calibrators."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration.calibrator_base import Calibrator, demand
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.graph.estimator import KernelDensityEstimator
from kdcal_core.calibration.graph.fit_rows import own_columns, split_off, take
from kdcal_core.calibration.graph.forest_and_network import (
    KernelDensityForest,
    KernelDensityNetwork,
)
from kdcal_core.calibration.graph.placement import OutputLayer
from kdcal_core.data import FloatArray, IntArray, check_labels, check_proba, check_weight
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import Model, wrap_model
from kdcal_core.models.protocol import HasCodes
from kdcal_core.partition import LeafCodes
from kdcal_core.progress import Progress
from kdcal_core.store import storable

UNWEIGHTED = "The kernel density version counts every row once: weights are not used."
"""The note if rows have weights."""


@storable
class KernelDensityCalibrator(Calibrator):
    """The kernel density graph of a reviewed model (Dey et al.).

    :class:`KernelDensityForest` or :class:`KernelDensityNetwork`, by the kind of the model's
    partition: inside the data it blends the model's probabilities with the class ratio
    of the row's polytope, outside it falls back to the prior. Pages, comparison, exported files
    and command line all use this class, so that they show the same numbers.

    Densities are fitted on the model's training rows where these are given, with the calibration
    set held out to choose exponent, floor and blend; else on seven tenths of the calibration set,
    with the other three held out. Coordinates are standardised, because the columns of a table
    have units of their own: on raw units a column of small numbers may move by twenty standard
    deviations unnoticed.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the split, and of the polytopes whose spacing is measured.
    distance : {"geodesic", "euclidean"}, default="geodesic"
        As for :class:`KernelDensityForest`.
    output_layer : {"auto", "probability", "logit", "exclude"}, default="auto"
        As for :class:`KernelDensityNetwork`; a forest has none.

    Attributes
    ----------
    estimator_ : KernelDensityForest or KernelDensityNetwork
        Holds the model.
    notes_ : tuple of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
    >>> calibrator = KernelDensityCalibrator()
    >>> calibrator = calibrator.fit(forest.predict_proba(X[1::2]), y[1::2], X[1::2], model=forest)
    >>> far = 1000 + X[:1]
    >>> calibrator.predict_proba(forest.predict_proba(far), far).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    """

    _why_no_onnx = "it needs the model for the region of each row"
    needs_inputs: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "random_state": KernelDensityNetwork._parameter_constraints["random_state"],
        "distance": KernelDensityNetwork._parameter_constraints["distance"],
        "output_layer": KernelDensityNetwork._parameter_constraints["output_layer"],
    }
    _trained = False

    def __init__(
        self,
        random_state: int = 0,
        *,
        distance: Literal["geodesic", "euclidean"] = "geodesic",
        output_layer: Literal["auto"] | OutputLayer = "auto",
    ) -> None:
        self.random_state = random_state
        self.distance = distance
        self.output_layer = output_layer

    def rows_needed(self, n_classes: int) -> int:
        # the floor is this quantile of the held-out rows: one of them must lie below it
        settings = KernelDensityForest(None).get_params(deep=False)
        held = 1.0 if self._trained else float(settings["holdout_share"])
        return math.ceil(1.0 / (float(settings["floor_quantile"]) * held))

    def held_out(self, y: IntArray) -> NDArray[np.bool_]:
        """Which calibration rows :meth:`fit` holds out where it gets no training rows, (n,).

        Examples
        --------
        >>> int(KernelDensityCalibrator().held_out(np.repeat([0, 1], [10, 20])).sum())
        9
        """
        share = float(KernelDensityForest(None).get_params(deep=False)["holdout_share"])
        return split_off(y, share, self.random_state)

    def fit(
        self,
        proba: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        *,
        X_partition: Any = None,
        y_partition: Any = None,
        model: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on the calibration set, and on the model's training rows where there are any.

        Parameters
        ----------
        proba : (n, K) array
            The model's probabilities; rows sum to one.
        y : (n,) array of int
            True classes as column indices.
        X : DataFrame or array of n rows
            What the model takes.
        sample_weight : (n,) array, optional
            Not used: every row counts once, and ``notes_`` say so where they differ.
        X_partition, y_partition : DataFrame or array of m rows and (m,) array of int, optional
            The model's training rows with their true classes as column indices.
        model : Model, or what :func:`kdcal_core.models.wrap_model` takes
        progress : callable, optional
            Called with the share done in [0, 1] and a sentence; may raise to cancel.

        Raises
        ------
        InputError
            There is no model, it has no partition or other classes, or an array is not of this
            form.
        """
        self._validate_params()
        proba = check_proba(proba)
        y = check_labels(y, proba.shape[1], n_rows=len(proba))
        weight = check_weight(sample_weight, len(proba))
        opened = _opened(model, proba.shape[1])
        self.n_classes_ = proba.shape[1]
        self.notes_ = ()
        # labels by name: with numbers as class names, indices would be mistaken for names
        names = np.array(opened.classes)
        rows: tuple[Any, ...] = X, names[y]
        if (X_partition is None) != (y_partition is None):
            raise InputError(
                "Training rows need labels and labels need rows",
                fix="Give X_partition and y_partition, or neither.",
            )
        self._trained = X_partition is not None
        if X_partition is not None:
            trained = check_labels(y_partition, proba.shape[1], n_rows=len(X_partition))
            rows = X_partition, names[trained], *rows
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InputWarning)
            self.estimator_ = self._estimator(opened, X).fit(*rows, progress=progress)
        for one in caught:
            if issubclass(one.category, InputWarning):
                self._note(str(one.message), warn=True)
        if weight.min() != weight.max():
            self._note(UNWEIGHTED, warn=True)
        self._note_few(len(y))
        return self

    def _estimator(self, model: Model, X: Any) -> KernelDensityEstimator:
        if not isinstance(model, HasCodes):
            raise InputError(
                f"This model ({model.kind}) is not read as a partition of its inputs",
                fix="Choose another calibrator; kernel density graphs need trees or ReLU layers.",
            )
        one = model.codes(take(own_columns(X, model), np.arange(1)))
        common: dict[str, Any] = {
            "distance": self.distance,
            "scale": "standard",
            "random_state": self.random_state,
        }
        if isinstance(one, LeafCodes):
            return KernelDensityForest(model, **common)
        return KernelDensityNetwork(model, output_layer=self.output_layer, **common)

    def predict_proba(self, proba: Any, X: Any) -> FloatArray:
        """Calibrated probabilities, (n, K), rows summing to one.

        Raises
        ------
        InputError
            The rows do not fit the model.
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


def _opened(model: Any, n_classes: int) -> Model:
    if model is None:
        raise InputError(
            "A kernel density graph needs the model itself, and no model was given",
            fix="Add the model, or choose a calibrator that reads probabilities alone.",
        )
    opened: Model = wrap_model(model, task="classification")
    if len(opened.classes) != n_classes:
        raise InputError(
            f"The model knows {len(opened.classes)} classes, the probabilities are of {n_classes}",
            fix="Give the probabilities of this model.",
        )
    return opened


CalibratorEntry(
    "kernel_density",
    "Kernel density graph, blended with the model",
    "Kernel density",
    KernelDensityCalibrator,
    "Dey et al., Simple Calibration via Geodesic Kernels; and the earlier Deep Discriminative "
    "to Kernel Density Graph",
    "Inside the data the model's probabilities blended with the class ratio of the row's "
    "polytope; outside the prior.",
    "kernel density",
    compared=False,
    offered=True,
    needs=("inputs", "model"),
).offer()
