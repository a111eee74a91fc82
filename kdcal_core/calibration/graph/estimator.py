"""The base of the estimators: fit on a model's polytopes, predict new rows, save and load.

An estimator is saved without its model. The file holds a few rows and a fingerprint of the model's
answers for them, so any other model is refused.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration.graph.fit_graph import Wishes, settle
from kdcal_core.calibration.graph.gamma_floor_blend import Blend, Selection
from kdcal_core.calibration.graph.gaussians import Located
from kdcal_core.calibration.graph.graph import (
    PAPERS_LOG_FLOOR,
    PAPERS_VARIANCE_FLOOR,
    GraphRecord,
    KernelDensityGraph,
    graph_from_parts,
    graph_parts,
)
from kdcal_core.calibration.graph.placement import (
    Distance,
    FitRows,
    OutputLayer,
    Placement,
    class_indices,
    own_columns,
    own_labels,
    partition_codes,
    rows_from_json,
    rows_to_json,
    split_off,
    take,
    warn_of_other_activations,
    warn_of_overlap,
    warn_of_unseen_classes,
)
from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.errors import InputError, warn
from kdcal_core.models import Model, fingerprint, wrap_model
from kdcal_core.models.coordinates import (
    CoordinatesRecord,
    Scale,
    coordinates_from_parts,
    coordinates_parts,
)
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes
from kdcal_core.progress import Progress, part_of
from kdcal_core.statistics import Dependence
from kdcal_core.store import decode, errors_name_file, read_archive, write_archive


class FittedGraph:
    """Fitted attributes, read from the graph so that each number is stored only once."""

    graph_: KernelDensityGraph
    _placement: Placement

    def _fitted_graph(self) -> KernelDensityGraph:
        check_is_fitted(self, "graph_")
        return self.graph_

    @property
    def gamma_(self) -> float:
        """The chosen or given gamma of Eq. 18."""
        return self._fitted_graph().gamma

    @property
    def log_floor_(self) -> float:
        """log b of Eq. 8, set from the data or given."""
        return self._fitted_graph().log_floor

    @property
    def blend_(self) -> Blend | None:
        """Weights of the model and of the class ratio inside the data; None for the ratio alone."""
        return self._fitted_graph().blend

    @property
    def centres_(self) -> FloatArray:
        """Centres of the polytopes in scaled coordinates, (p, d)."""
        return self._fitted_graph().centres

    @property
    def variances_(self) -> FloatArray:
        """Variances of the polytopes without the floor, (p, d)."""
        return self._fitted_graph().variances

    @property
    def class_masses_(self) -> FloatArray:
        """Smoothed class counts n~_ry at the chosen gamma, (p, K) (Eq. 16)."""
        return self._fitted_graph().chosen_masses

    @property
    def prior_(self) -> FloatArray:
        """Prior of the classes, (K,)."""
        return self._fitted_graph().prior

    @property
    def n_polytopes_(self) -> int:
        """Number of polytopes that contain fit rows."""
        return self._fitted_graph().n_polytopes

    @property
    def distance_(self) -> Distance:
        """The distance in use, which "auto" chose."""
        check_is_fitted(self, "graph_")
        return self._placement.distance

    @property
    def n_ties_(self) -> int:
        """Number of held-out rows with ties in the kernel."""
        held = self._fitted_graph().holdout
        return 0 if held is None else int(held.tied.sum())

    @property
    def selection_(self) -> Selection:
        """Held-out log loss over the grid of exponents."""
        return self._fitted_graph().selection()


_PROBES = 64


class KernelDensityEstimator(FittedGraph, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """The common base of :class:`KernelDensityForest` and :class:`KernelDensityNetwork`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [object],
        "distance": [StrOptions({"geodesic", "euclidean", "auto"})],
        "inside": [StrOptions({"blend", "ratio"})],
        "gamma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "variance_floor": [
            StrOptions({"auto", "spacing"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "log_floor": [StrOptions({"quantile"}), Interval(Real, None, None, closed="left")],
        "floor_quantile": [Interval(Real, 0, 1, closed="neither")],
        "prior": [None, "array-like"],
        "scale": ["boolean", StrOptions({"standard"})],
        "holdout_share": [Interval(Real, 0, 1, closed="neither")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    _papers: ClassVar[dict[str, Any]] = {
        "inside": "ratio",
        "gamma": "auto",
        "variance_floor": PAPERS_VARIANCE_FLOOR,
        "prior": None,
        "scale": True,
    }

    def __init__(
        self,
        model: Any,
        *,
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
        self.model = model
        self.distance = distance
        self.inside = inside
        self.gamma = gamma
        self.variance_floor = variance_floor
        self.log_floor = log_floor
        self.floor_quantile = floor_quantile
        self.prior = prior
        self.scale = scale
        self.holdout_share = holdout_share
        self.random_state = random_state

    def __sklearn_clone__(self) -> Self:
        # The model is fitted and must not be cloned: a clone would lose its fit.
        return type(self)(**self.get_params(deep=False))

    @abstractmethod
    def _first_layer(self) -> OutputLayer | None:
        """The part of a network's output in its codes; None for a forest."""

    def _choose(
        self, model: Model, rows: FitRows, held: FitRows | None, progress: Progress
    ) -> tuple[FitRows, FitRows | None, OutputLayer | None]:
        """The rows with the codes to fit on, and the part of the output in these."""
        return rows, held, self._first_layer()

    def fit(
        self,
        X: Any,
        y: Any,
        X_holdout: Any = None,
        y_holdout: Any = None,
        *,
        sample_weight: Any = None,
        sample_weight_holdout: Any = None,
        dependence: Dependence | None = None,
        dependence_holdout: Dependence | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """Fit densities on the model's polytopes; choose gamma and floor on held-out rows.

        Parameters
        ----------
        X : pandas.DataFrame or (n, n_features) array
            The model's inputs: rows that it was trained on if there are other rows to hold out, or
            else rows that it was not trained on.
        y : (n,) array
            Labels, that is, the model's classes by name or number.
        X_holdout, y_holdout : optional
            Rows that neither the model nor this fit has seen. By default ``holdout_share`` of the
            rows is split off, stratified by class and seeded by ``random_state``; clusters stay
            whole, and of rows in time the last ones are held out.
        sample_weight, sample_weight_holdout : arrays, optional
            Positive weights of the n rows, and of the held-out ones where they are given. Held-out
            rows count as their effective number in floor, blend and standard error; log n in Eq. 18
            counts every row once.
        dependence, dependence_holdout : Dependence, optional
            Of the n rows, and of the held-out ones where they are given. Dependent rows count as
            the effective number of rows in floor, blend and standard error. Densities, and log n in
            Eq. 18, count every row.
        progress : callable (share from 0 to 1, note), optional
            An exception that it raises stops the fit.
        executor : concurrent.futures.Executor, optional
            Runs the blocks of the kernel, for example in processes.

        Raises
        ------
        InputError
            If the model has no partition of this kind, rows or labels do not match it, the prior is
            not a distribution, or there is too little memory.

        Notes
        -----
        Measured on eight tables of 569 to 4,000 rows (half for training, a quarter to calibrate, a
        quarter to evaluate, three seeds, class ratio alone inside), for forests and networks:
        graphs on the training rows with the calibration rows held out had a mean error of 0.137 and
        0.125 and a mean log loss of 0.37 and 0.32. Graphs on 70% of the calibration rows had errors
        of 0.160 and 0.146 and log losses of 0.48 and 0.48. The models had errors of 0.127 and 0.123
        and log losses of 0.35 and 0.52.
        """
        self._validate_params()
        if (X_holdout is None) != (y_holdout is None):
            raise InputError(
                "Held-out rows need labels and labels need rows",
                fix="Give X_holdout and y_holdout, or neither.",
            )
        report = part_of(progress, 0.0, 1.0)
        report(0.0, "Reading the model's partition")
        model = wrap_model(self.model, task="classification")
        columns = own_columns(X, model)
        index = class_indices(y, model.classes, len(columns))
        own = own_labels(y, index, model.classes)
        # codes before the split, so that an error names the caller's row
        rows, held = self._read(model, columns, index, dependence, sample_weight), None
        if X_holdout is None:
            mask = split_off(index, self.holdout_share, self.random_state, dependence)
            if mask.any():
                rows, held = rows.part(~mask), rows.part(mask)
        else:
            X_held = own_columns(X_holdout, model)
            y_held = class_indices(y_holdout, model.classes, len(X_held))
            warn_of_overlap(columns, index, X_held, y_held)
            if len(y_held):
                held = self._read(model, X_held, y_held, dependence_holdout, sample_weight_holdout)
        if held is None:
            warn(
                "There are too few rows to hold any out: gamma is the largest given one, "
                "a floor set from the data is the paper's constant instead, and the model's "
                "probabilities are not blended in.",
                stacklevel=2,
            )
        blends = self.inside == "blend" and held is not None
        warn_of_unseen_classes(rows.y, model.classes, blends=blends)
        warn_of_other_activations(model)
        rows, held, layer = self._choose(model, rows, held, part_of(report, 0.0, 0.1))
        self._placement, self.graph_ = settle(
            model, rows, held, layer, self._wishes(), part_of(report, 0.1, 1.0), executor
        )
        self.classes_ = own
        self.n_features_in_ = model.n_features
        spread = np.linspace(0, len(rows.y) - 1, min(len(rows.y), _PROBES)).astype(np.int64)
        self._probe = take(rows.X, spread)
        return self

    def in_the_papers(
        self,
        X: Any = None,
        y: Any = None,
        X_holdout: Any = None,
        y_holdout: Any = None,
        *,
        log_floor: float = PAPERS_LOG_FLOOR,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """The papers' estimator for the same model and distance, fitted on the given rows.

        It uses the class ratio alone inside the data, lambda of 1e-6, coordinates divided by the
        largest norm, a fixed floor, the output layer's bits in the activation paths of a network,
        and the exponent with the least held-out log loss under that floor. It is a separate fit and
        takes as long as :meth:`fit`: kdcal's defaults give other polytopes and another exponent, so
        no setting of a fitted graph gives the papers' curve.

        Parameters
        ----------
        X, y, X_holdout, y_holdout, progress, executor
            As for :meth:`fit`.
        log_floor : float, default=-1e7
            log b of Eq. 8; the papers' tables print -1e-7.

        Raises
        ------
        InputError
            As for :meth:`fit`, and if no rows are given, because neither a fitted estimator nor its
            file keeps the fit rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from kdcal_core.calibration import KernelDensityForest
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
        >>> papers = KernelDensityForest(forest).in_the_papers(X[1::2], y[1::2])
        >>> papers.log_floor_, papers.blend_ is None
        (-10000000.0, True)
        """
        if X is None or y is None:
            raise InputError(
                "The papers' estimator is a separate fit, and a fitted graph does not keep the "
                "rows of the fit",
                fix="Give the training rows with their labels: in_the_papers(X, y), and held-out "
                "rows where there are some.",
            )
        other = type(self)(
            **{**self.get_params(deep=False), **self._papers, "log_floor": log_floor}
        )
        return other.fit(X, y, X_holdout, y_holdout, progress=progress, executor=executor)

    def predict_proba(self, X: Any) -> FloatArray:
        """Posterior of each class, (n, K) in the order of ``classes_`` (Dey et al., Eqs. 8, 9)."""
        return self._fitted_graph().posterior(self.locate(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the largest posterior, (n,), in the form of the fit's labels (Eq. 10).

        Far from the data that is the class with the largest prior, or among nearly equal priors the
        class that the densities and the model put first (:meth:`KernelDensityGraph.posterior`).
        """
        graph = self._fitted_graph()
        labels: NDArray[Any] = self.classes_[graph.predict(self.locate(X))]
        return labels

    def log_density(self, X: Any) -> FloatArray:
        """Log class-conditional densities before the floor, (n, K) (Eq. 19)."""
        return self._fitted_graph().log_density(self.locate(X))

    def is_unknown(self, X: Any) -> NDArray[np.bool_]:
        """Whether each row's density lies below the floor, (n,).

        With the floor set from the data, a new row like the held-out ones is flagged with
        probability at most ``floor_quantile``, or 1 / (h + 1) where h rows are too few for that.
        """
        return self._fitted_graph().unknown(self.locate(X))

    def nearest_polytope(self, X: Any) -> IntArray:
        """The polytope that represents each row, (n,), an index into ``centres_`` (Eq. 6)."""
        return self.locate(X).index

    def locate(
        self,
        X: Any,
        *,
        proba: FloatArray | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """Locate rows in the partition, which is the slow part and the same for all settings.

        Parameters
        ----------
        X : table of m rows
        proba : (m, K) array, optional
            The model's probabilities for them, if known; otherwise they are computed if the graph
            blends.
        progress, executor : optional
            As for :meth:`fit`.

        Raises
        ------
        InputError
            If the rows do not match the model.
        """
        graph = self._fitted_graph()
        if proba is None and graph.blend is not None:
            proba = self._placement.model.predict_proba(own_columns(X, self._placement.model))
        return self._placement.locate(
            X, graph.centres, proba=proba, progress=progress, executor=executor
        )

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one versioned file of arrays and JSON, without pickle.

        The file does not hold the model, which :meth:`load` recognises by its fingerprint on up to
        64 fit rows. The file therefore holds rows of the data.
        """
        check_is_fitted(self, "graph_")
        about, arrays = estimator_parts(self)
        write_archive(path, type(self).__name__, about, arrays)

    @classmethod
    def load(cls, path: str | Path, model: Any) -> Self:
        """Read a file of :meth:`save`, and attach the model.

        Raises
        ------
        InputError
            If the file is of another kind, broken, contradicts itself, or belongs to another model.
        """
        about, arrays = read_archive(path, cls.__name__)
        with errors_name_file(path):
            return estimator_from_parts(cls, about, arrays, model)

    def _read(
        self, model: Model, X: Any, y: IntArray, dependence: Dependence | None, weight: Any
    ) -> FitRows:
        codes = partition_codes(model, X, self._first_layer())
        mass = check_weight(weight, len(y))
        equal = mass.min() == mass.max()
        return FitRows(X, y, codes, dependence, None if equal else mass)

    def _wishes(self) -> Wishes:
        return Wishes(
            distance=self.distance,
            inside=self.inside,
            gamma=self.gamma,
            variance_floor=self.variance_floor,
            log_floor=self.log_floor,
            floor_quantile=self.floor_quantile,
            prior=self.prior,
            scale=self.scale,
            seed=self.random_state,
        )


_Estimator = TypeVar("_Estimator", bound=KernelDensityEstimator)


@dataclass(frozen=True)
class _Labels:
    """The model's classes, and numpy's name of their type."""

    values: list[Any]
    type: str


@dataclass(frozen=True)
class _Description:
    """The description of an estimator in a file, without its arrays."""

    graph: GraphRecord
    coordinates: CoordinatesRecord
    parameters: dict[str, Any]
    labels: _Labels
    probe: dict[str, Any]
    fingerprint: str
    output_layer: OutputLayer | None
    layer_widths: tuple[int, ...] | None
    distance: Distance | None = None  # None in older files: that of the parameters


def estimator_parts(
    estimator: KernelDensityEstimator,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """JSON values and arrays from which :func:`estimator_from_parts` rebuilds the estimator."""
    graph, arrays = graph_parts(estimator.graph_)
    placement = estimator._placement
    coordinates, of_coordinates = coordinates_parts(placement.coordinates)
    codes = placement.polytopes
    labels = estimator.classes_
    about = _Description(
        graph=graph,
        coordinates=coordinates,
        parameters=_parameters(estimator),
        labels=_Labels(labels.tolist(), labels.dtype.str),
        probe=rows_to_json(estimator._probe),
        fingerprint=fingerprint(placement.model, estimator._probe),
        output_layer=placement.output_layer,
        layer_widths=None if isinstance(codes, LeafCodes) else tuple(codes.layer_widths),
        distance=placement.distance,
    )
    arrays |= of_coordinates
    arrays["codes"] = codes.leaves if isinstance(codes, LeafCodes) else codes.words
    return asdict(about), arrays


def estimator_from_parts(
    cls: type[_Estimator], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], model: Any
) -> _Estimator:
    """The fitted estimator that the parts describe, with its model.

    Raises
    ------
    InputError
        If the estimator belongs to another model.
    LookupError, TypeError, ValueError, AttributeError, OverflowError
        If parts are missing or contradict each other.
    """
    description = decode(
        _Description,
        {one.name: about[one.name] for one in fields(_Description) if one.name in about},
    )
    estimator = cls(model, **description.parameters)
    estimator._validate_params()
    estimator.graph_ = graph = graph_from_parts(description.graph, arrays)
    placement = Placement(
        wrap_model(model, task="classification"),
        description.output_layer,
        coordinates_from_parts(description.coordinates, arrays),
        _codes(description.layer_widths, arrays["codes"]),
        description.distance or _given_distance(estimator),
    )
    estimator._placement = placement
    estimator.classes_ = _labels(description.labels)
    estimator.n_features_in_ = placement.model.n_features
    estimator._probe = rows_from_json(description.probe)
    if (
        len(placement.polytopes) != graph.n_polytopes
        or placement.coordinates.n_dimensions != graph.centres.shape[1]
        or len(estimator.classes_) != len(graph.classes)
    ):
        raise ValueError("the parts do not fit each other")
    _check_model(estimator, description.fingerprint)
    return estimator


def _given_distance(estimator: KernelDensityEstimator) -> Distance:
    """The distance of the parameters, for files that were written before "auto" existed."""
    if estimator.distance == "auto":
        raise ValueError("the chosen distance is missing")
    return estimator.distance


def _check_model(estimator: KernelDensityEstimator, expected: str) -> None:
    model = estimator._placement.model
    try:
        same = fingerprint(model, estimator._probe) == expected
        estimator.locate(estimator._probe)
    except InputError:  # a model with other features or another partition cannot take the rows
        same = False
    if not same or model.classes != estimator.graph_.classes:
        raise InputError(
            "The saved file belongs to another model",
            fix="Load it with the model that it was fitted for, or fit again for this one.",
        )


def _parameters(estimator: KernelDensityEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    del parameters["model"]
    return {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in parameters.items()
    }


def _labels(written: _Labels) -> NDArray[Any]:
    kind = np.dtype(written.type)
    if kind.kind not in "biufUO":
        raise ValueError("labels of this type are never saved")
    labels = np.array(written.values, dtype=None if kind.kind == "U" else kind)
    if labels.ndim != 1 or len(set(labels.tolist())) != len(labels) or (labels != labels).any():
        raise ValueError("labels are not one of each class")
    return labels


def _codes(layer_widths: tuple[int, ...] | None, array: NDArray[Any]) -> Codes:
    """Codes from an array; the partition's functions check their values."""
    if layer_widths is None:
        if array.dtype != np.int32 or array.ndim != 2:
            raise ValueError("leaf codes are of another kind")
        return LeafCodes(array)
    if array.dtype != np.uint64 or array.ndim != 2:
        raise ValueError("activation codes are of another kind")
    return ActivationCodes(array, layer_widths)
