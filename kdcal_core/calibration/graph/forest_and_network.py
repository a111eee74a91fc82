"""Kernel density forest and network, and the calibrator that uses the one for its model."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from numbers import Real
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.graph.estimator import KernelDensityEstimator
from kdcal_core.calibration.graph.fit_graph import settle
from kdcal_core.calibration.graph.graph import KernelDensityGraph
from kdcal_core.calibration.graph.placement import (
    FitRows,
    OutputLayer,
    own_columns,
    split_off,
    take,
)
from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.errors import InputError, quiet
from kdcal_core.models import Model, wrap_model
from kdcal_core.models.coordinates import Scale
from kdcal_core.models.protocol import HasCodes
from kdcal_core.partition import LeafCodes
from kdcal_core.progress import Progress, part_of
from kdcal_core.statistics import Dependence, dependence_of
from kdcal_core.store import storable
from kdcal_core.store.estimators import demand


@storable
class KernelDensityForest(KernelDensityEstimator):
    """Kernel density graph on the leaves of a forest (Dey et al.: KDF).

    Inside the data the posterior blends the model's probabilities with the class ratio of the row's
    polytope, whose counts are smoothed over similar polytopes. Outside the data it is the prior.

    Parameters
    ----------
    model : Model, or a fitted tree, forest or boosted model
        Any model that :func:`kdcal_core.models.wrap_model` takes. It is never fitted or cloned.
    distance : {"geodesic", "euclidean", "auto"}, default="geodesic"
        Distance to the polytope that represents a row: one minus the share of trees that agree
        (Eqs. 11 and 13), with ties by Euclidean distance, or the Euclidean distance to the centres.
        "auto" takes whichever has the smaller held-out log loss.
    inside : {"blend", "ratio"}, default="blend"
        The posterior inside the data. "blend" combines the class ratio of the polytope g and the
        model's probabilities p as the softmax of a log p + b log g, with a and b of the smallest
        held-out log loss (:class:`Blend`); b is 0 unless it lowers that loss by more than two
        standard errors. "ratio" is the class ratio alone.
    gamma : "auto", float or array of floats, default="auto"
        Exponent gamma * log n of the kernel (Eq. 18). With "auto" or an array, the value with the
        least held-out log loss is chosen, or the largest of equal ones.
    variance_floor : "auto", "spacing" or float, default="auto"
        Lambda of Eq. 15, added to each variance, in squared coordinates; 1e-6 in the papers.
        "spacing" is the mean squared gap between the centres of neighbouring polytopes for each
        coordinate (:func:`neighbour_spacing`), plus 1e-6. "auto" is "spacing" where the floor is
        set from the data, and 1e-6 where it is fixed, because the papers' two constants belong
        together. Most polytopes hold one row: with 1e-6, only the nearest held-out rows would then
        set the floor from the data, and the density of a wide polytope would exceed it far away.
        With 1,000 rows of Trunk in two dimensions, the confidence of a forest's graph at radius 2
        is 0.71 with 1e-6 and 0.50, the prior, with "spacing", at the same error and log loss.
    log_floor : "quantile" or float, default="quantile"
        Log of the constant b of Eq. 8: -1e7 in the papers, minus infinity for no floor. "quantile"
        sets b / log n to the ``floor_quantile`` of the held-out densities.
    floor_quantile : float in (0, 1), default=0.01
        Share of ordinary rows that may be treated as unknown. The posterior's constant is lower
        than this floor, so that about a tenth of them falls back to the prior, unless rows made at
        1.5 times the distance of the farthest fit row need more
        (:attr:`KernelDensityGraph.log_fallback`).
    prior : (K,) array, optional
        Prior of the classes in the model's order; by default their shares among the fit rows. With
        ``inside="blend"`` a class without rows counts as half a row, so that few rows do not
        exclude a class; in the papers its prior is 0.
    scale : bool or "standard", default=True
        True: divide coordinates by the largest norm of a fit row (the papers' protocol).
        "standard": first centre each coordinate and divide it by its standard deviation, as tables
        with mixed units need.
    holdout_share : float in (0, 1), default=0.3
        Share of the rows to hold out where ``fit`` gets no held-out rows.
    random_state : int, default=0
        Seed of that split.

    Attributes
    ----------
    graph_ : KernelDensityGraph
        The fitted graph, whose settings can be changed without a fit.
    classes_ : (K,) array
        The classes in the form of the fit's labels, in the model's order.
    n_features_in_ : int
    gamma_, log_floor_ : float
    blend_ : Blend or None
    centres_, variances_ : (p, d) arrays
    class_masses_ : (p, K) array
    prior_ : (K,) array
    n_polytopes_, n_ties_ : int
    selection_ : Selection

    Notes
    -----
    The defaults differ from the papers' estimator, which is also available:

    ==============  ==========  =================================================
    parameter       papers      default
    ==============  ==========  =================================================
    inside          "ratio"     "blend"
    variance_floor  1e-6        "auto": the spacing of the polytopes
    log_floor       -1e7        "quantile": ``floor_quantile`` of held-out rows
    scale           True        True; "standard" for features of several units
    ==============  ==========  =================================================

    On ten tables with five seeds the defaults had a log loss of 0.251 for forests, where one
    temperature had 0.253, and 0.240 for networks (0.254); the error was more than 0.005 above the
    model's in 9 of 100 runs, in 6 of them because an ordinary row that falls back gets the class
    with the largest prior (tests/benchmarks/RESULTS_kernel_density.md). With the blend the
    posterior varies within a polytope where the model's probabilities do, and needs them for each
    row. The blend is fitted for the class shares of the fit rows; a different ``prior`` is applied
    afterwards by Bayes' rule.

    Gaussians use the input columns: numbers unchanged, categories one-hot, and missing numbers
    replaced by the median with a coordinate that marks them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
    >>> calibrated = KernelDensityForest(forest).fit(X[1::2], y[1::2])
    >>> calibrated.predict_proba(1000 + X[:1]).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    >>> bool(calibrated.is_unknown(1000 + X[:1])[0])
    True
    """

    def _first_layer(self) -> None:
        return None


_TRIAL_ROWS = 5000


@storable
class KernelDensityNetwork(KernelDensityEstimator):
    """Kernel density graph on the activation patterns of a ReLU network (Dey et al.: KDN).

    For an encoder with a dense ReLU head the Gaussians use the inputs of the head, and the kernel
    uses the head's layers (Dey et al., section 3.2).

    Parameters
    ----------
    model : Model, torch.nn.Module or fitted MLPClassifier
        Any model with ReLU layers that :func:`kdcal_core.models.wrap_model` takes.
    output_layer : {"auto", "probability", "logit", "exclude"}, default="auto"
        Whether the output is part of the activation path: as bits of probabilities above 1/K, as
        bits of logits above zero, or not at all. "auto" is "exclude" where the model's
        probabilities are blended in, and otherwise "probability" or "exclude", whichever has the
        smaller held-out log loss on up to 5,000 rows.
    distance, inside, gamma, variance_floor, log_floor, floor_quantile, prior, scale, \
holdout_share, random_state
        As for :class:`KernelDensityForest`; the kernel is the share of activation paths on which
        two rows agree (Eq. 12).

    Attributes
    ----------
    output_layer_ : {"probability", "logit", "exclude"}
        The value in use.
    all others
        As for :class:`KernelDensityForest`.

    Notes
    -----
    With the output's bits the kernel almost never joins rows of different predicted classes, which
    keeps the model's accuracy. But if a network has memorised its training rows, each of their
    polytopes then belongs to one class, and the kernel density version is as over-confident as the
    network. On eight tables (three seeds each, fitted on training rows, class ratio alone) the mean
    log loss was 0.82 with the bits and 0.36 without, and the mean error 0.128 and 0.141; "auto" had
    0.32 and 0.125, the networks themselves 0.52 and 0.123. With the blend the bits are not needed:
    on nine tables and four seeds, the error was 0.117 with and without them, and the log loss 0.33
    with and 0.32 without.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neural_network import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier((20, 20), random_state=0, max_iter=1000).fit(X[::2], y[::2])
    >>> calibrated = KernelDensityNetwork(net).fit(X[1::2], y[1::2])
    >>> calibrated.predict_proba(1000 + X[:1]).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelDensityEstimator._parameter_constraints,
        "output_layer": [StrOptions({"auto", "probability", "logit", "exclude"})],
    }

    _papers: ClassVar[dict[str, Any]] = {
        **KernelDensityEstimator._papers,
        "output_layer": "probability",
    }

    def __init__(
        self,
        model: Any,
        *,
        output_layer: Literal["auto"] | OutputLayer = "auto",
        distance: Literal["geodesic", "euclidean", "auto"] = "geodesic",
        inside: Literal["blend", "ratio"] = "blend",
        gamma: Any = "auto",
        variance_floor: Any = "auto",
        log_floor: Any = "quantile",
        floor_quantile: float = 0.01,
        prior: Any = None,
        scale: Scale = True,
        holdout_share: float = 0.3,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            model,
            distance=distance,
            inside=inside,
            gamma=gamma,
            variance_floor=variance_floor,
            log_floor=log_floor,
            floor_quantile=floor_quantile,
            prior=prior,
            scale=scale,
            holdout_share=holdout_share,
            random_state=random_state,
        )
        self.output_layer = output_layer

    @property
    def output_layer_(self) -> OutputLayer:
        """The part of the output in the activation path."""
        check_is_fitted(self, "graph_")
        return cast(OutputLayer, self._placement.output_layer)

    def _first_layer(self) -> OutputLayer:
        if self.output_layer != "auto":
            return self.output_layer
        return "exclude" if self.inside == "blend" else "probability"

    def _choose(
        self, model: Model, rows: FitRows, held: FitRows | None, progress: Progress
    ) -> tuple[FitRows, FitRows | None, OutputLayer | None]:
        if self.output_layer != "auto" or self.inside == "blend" or held is None:
            return rows, held, self._first_layer()
        few = rows.sample(_TRIAL_ROWS, self.random_state)
        few_held = held.sample(_TRIAL_ROWS, self.random_state)
        wishes = self._wishes()
        _, with_bits = settle(
            model, few, few_held, "probability", wishes, part_of(progress, 0.0, 0.5)
        )
        few, few_held = few.without_output_layer(), few_held.without_output_layer()
        _, without = settle(model, few, few_held, "exclude", wishes, part_of(progress, 0.5, 1.0))
        if with_bits.selection().log_loss.min() <= without.selection().log_loss.min():
            return rows, held, "probability"
        return rows.without_output_layer(), held.without_output_layer(), "exclude"


LEAST_LOG_FLOOR = -1e300
"""The least fixed log b: no row is unknown."""


@storable
class KernelDensityCalibrator(Calibrator):
    """The kernel density graph of a reviewed model (Dey et al.).

    It is a :class:`KernelDensityForest` or a :class:`KernelDensityNetwork`, depending on the
    model's partition. Inside the data it blends the model's probabilities with the class ratio of
    the row's polytope; outside it is the prior. Pages, comparison, exported files and command line
    all use this class and so show the same numbers.

    Densities are fitted on the model's training rows if these are given, with the calibration set
    held out to choose exponent, floor and blend. Otherwise they are fitted on seven tenths of the
    calibration set, with the other three held out. Coordinates are standardised, because columns
    differ in units: in raw units, a shift of a small-valued column by twenty standard deviations
    may go unnoticed.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the split and of the sample of polytopes for the spacing.
    distance : {"geodesic", "euclidean", "auto"}, default="geodesic"
        As for :class:`KernelDensityForest`.
    output_layer : {"auto", "probability", "logit", "exclude"}, default="auto"
        As for :class:`KernelDensityNetwork`; not used for a forest.
    floor_quantile : float in (0, 1), default=0.01
        Share of ordinary rows that may be treated as unknown.
    log_floor : float, optional
        A fixed log b of Eq. 8 instead of a floor from the held-out rows: -1e7 in the papers.
    prior : (K,) array, optional
        Prior of the classes; by default their shares among the fit rows. This, floor and quantile
        are set after the fit, as on the pages, and do not change its exponent and blend.

    Attributes
    ----------
    estimator_ : KernelDensityForest or KernelDensityNetwork
        The fitted estimator, with the model.
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
        "floor_quantile": KernelDensityNetwork._parameter_constraints["floor_quantile"],
        "log_floor": [None, Interval(Real, LEAST_LOG_FLOOR, 0, closed="both")],
        "prior": [None, tuple, list, np.ndarray],
    }
    _trained = False

    def __init__(
        self,
        random_state: int = 0,
        *,
        distance: Literal["geodesic", "euclidean", "auto"] = "geodesic",
        output_layer: Literal["auto"] | OutputLayer = "auto",
        floor_quantile: float = 0.01,
        log_floor: float | None = None,
        prior: Any = None,
    ) -> None:
        self.random_state = random_state
        self.distance = distance
        self.output_layer = output_layer
        self.floor_quantile = floor_quantile
        self.log_floor = log_floor
        self.prior = prior

    def rows_needed(self, n_classes: int) -> int:
        # the floor is this quantile of the held-out rows, so one of them must lie below it
        settings = KernelDensityForest(None).get_params(deep=False)
        held = 1.0 if self._trained else float(settings["holdout_share"])
        return math.ceil(1.0 / (self.floor_quantile * held))

    def held_out(self, y: IntArray, dependence: Dependence | None = None) -> NDArray[np.bool_]:
        """Which calibration rows :meth:`fit` holds out if it gets no training rows, (n,).

        Examples
        --------
        >>> int(KernelDensityCalibrator().held_out(np.repeat([0, 1], [10, 20])).sum())
        9
        """
        share = float(KernelDensityForest(None).get_params(deep=False)["holdout_share"])
        return split_off(y, share, self.random_state, dependence)

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
        executor: Executor | None = None,
    ) -> Self:
        """Fit on the calibration set and, if given, on the model's training rows.

        Parameters
        ----------
        proba : (n, K) array
            The model's probabilities; rows sum to one.
        y : (n,) array of int
            True classes as column indices.
        X : DataFrame or array of n rows
            The model's inputs.
        sample_weight : (n,) array or RowDesign, optional
            Clusters are held out whole, and dependent rows, or rows of unequal weight, count as the
            effective number of rows in floor, blend and standard error. Training rows count once.
        X_partition, y_partition : DataFrame or array of m rows and (m,) array, optional
            The model's training rows with their true classes, as in ``y``.
        model : Model, or what :func:`kdcal_core.models.wrap_model` takes
        progress : callable, optional
            Called with the share done in [0, 1] and a sentence; may raise to cancel.
        executor : concurrent.futures.Executor, optional
            Runs blocks of rows in place of threads; the result is the same.

        Raises
        ------
        InputError
            If there is no model, it has no partition or other classes, or an array does not have
            this form.
        """
        self._validate_params()
        proba, y = self._learnt(proba, y)
        opened = _opened(model, proba.shape[1])
        self.n_classes_ = proba.shape[1]
        self.notes_ = ()
        # labels by name, because indices could be mistaken for numeric class names
        names = np.array(opened.classes)
        rows: tuple[Any, ...] = X, names[y]
        weight, dependence = check_weight(sample_weight, len(proba)), dependence_of(sample_weight)
        of_rows: dict[str, Any] = {"sample_weight": weight, "dependence": dependence}
        if (X_partition is None) != (y_partition is None):
            raise InputError(
                "Training rows need labels and labels need rows",
                fix="Give X_partition and y_partition, or neither.",
            )
        self._trained = X_partition is not None
        if X_partition is not None:
            trained = self._labels_of(y_partition, len(X_partition))
            rows = X_partition, names[trained], *rows
            of_rows = {f"{name}_holdout": given for name, given in of_rows.items()}
        with quiet() as said:
            self.estimator_ = self._estimator(opened, X).fit(
                *rows, **of_rows, progress=progress, executor=executor
            )
        self.estimator_.graph_ = self._at_settings(self.estimator_.graph_)
        for sentence in said:
            self._note(sentence, warns=True)
        self._note_few(len(y))
        return self

    def _at_settings(self, graph: KernelDensityGraph) -> KernelDensityGraph:
        if self.log_floor is not None:
            return graph.with_settings(log_floor=self.log_floor, prior=self.prior)
        quantile = self.floor_quantile if graph.n_holdout else None
        return graph.with_settings(floor_quantile=quantile, prior=self.prior)

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
        proba = self._checked(proba)
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
            fix="Add the model, or choose a calibrator that reads only probabilities.",
        )
    opened: Model = wrap_model(model, task="classification")
    if len(opened.classes) != n_classes:
        raise InputError(
            f"The model has {len(opened.classes)} classes, the probabilities have {n_classes}",
            fix="Give this model's probabilities.",
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
