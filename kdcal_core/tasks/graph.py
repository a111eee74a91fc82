"""Fit the kernel density version of a review's model, and locate the judged rows in it.

Gamma, variance and floor can be changed later without a fit: measures use the version given by a
`GraphSetting`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityGraph,
    KernelDensityNetwork,
    Located,
)
from kdcal_core.calibration.graph.forest_and_network import KernelDensityCalibrator
from kdcal_core.calibration.graph.gamma_floor_blend import Blend
from kdcal_core.data import FloatArray, IntArray, row_dependence, weight_column
from kdcal_core.errors import InputError, quiet
from kdcal_core.jobs.executors import chosen_executor
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Review
from kdcal_core.statistics import dependence_of, design_of
from kdcal_core.store import load
from kdcal_core.tasks.decorators import ALL_ROWS, Sets, require_model, review_task

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.models import Model


Kind = Literal["forest", "network"]


@dataclass(frozen=True)
class GraphSettings:
    """What the fit depends on; gamma, variance and floor can be changed later without a fit.

    Attributes
    ----------
    distance : str
        "geodesic", "euclidean" for the papers' comparison, or "auto" for whichever has the smaller
        held-out log loss.
    output_layer : str
        What a network's output adds to the codes: "probability", "logit" or "exclude", or "auto"
        for the estimator's choice. A forest has no output layer.
    seed : int
        Seed of the split into fit and held-out rows, where there is no training table.
    """

    distance: Literal["geodesic", "euclidean", "auto"] = "geodesic"
    output_layer: Literal["auto", "probability", "logit", "exclude"] = "auto"
    seed: int = 0


@dataclass(frozen=True)
class GraphFacts:
    """Facts about a graph, without its arrays.

    Attributes
    ----------
    n_polytopes : int
    exponents, gammas : tuple of float
        The fitted grid, ascending: gamma * log n, and gamma.
    gamma, variance_floor : float
        Values in use.
    floor_quantile : float or None
    prior : tuple of float
        Class shares of the fit rows.
    blend : Blend or None
    """

    n_polytopes: int
    exponents: tuple[float, ...]
    gammas: tuple[float, ...]
    gamma: float
    variance_floor: float
    floor_quantile: float | None
    prior: tuple[float, ...]
    blend: Blend | None

    @classmethod
    def of(cls, graph: KernelDensityGraph) -> GraphFacts:
        """The facts of a fitted graph."""
        return cls(
            graph.n_polytopes,
            tuple(graph.exponents.tolist()),
            tuple(graph.gammas.tolist()),
            graph.gamma,
            graph.variance_floor,
            graph.floor_quantile,
            tuple(graph.prior.tolist()),
            graph.blend,
        )

    @property
    def chosen(self) -> int:
        """The index of gamma in the grid."""
        return int(np.argmin(np.abs(np.array(self.gammas) - self.gamma)))


@dataclass(frozen=True)
class GraphRecord:
    """The settings and facts of a fit.

    Attributes
    ----------
    settings : GraphSettings
    kind : str
        "forest" or "network".
    fitted_on : str
        "training": the model's training rows, with the calibration set held out; "calibration":
        seven tenths of the calibration set, with the other three held out.
    judged_on : str
        "evaluation": the evaluation set; "holdout": the held-out calibration rows. These were also
        used to choose gamma and the floor, which flatters results on them a little.
    classes : tuple of str
        Class names of the review. Untrusted text.
    n_fit, n_holdout, n_judged : int
        Numbers of rows.
    notes : tuple of str
        What the reader should know, in sentences.
    facts : GraphFacts
    output_layer : str or None
        What a network's output adds to the codes; None for a forest.
    distance : str
        The distance in use, which "auto" chose.
    """

    settings: GraphSettings
    kind: Kind
    fitted_on: Literal["training", "calibration"]
    judged_on: Literal["evaluation", "holdout"]
    classes: tuple[str, ...]
    n_fit: int
    n_holdout: int
    n_judged: int
    notes: tuple[str, ...]
    facts: GraphFacts
    output_layer: Literal["probability", "logit", "exclude"] | None = None
    distance: Literal["geodesic", "euclidean"] = "geodesic"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with all that a page needs to judge them with any setting of the graph.

    Attributes
    ----------
    proba : (m, K) float64
        The model's probabilities.
    located : Located or None
        Location of the rows in the graph's partition, with ``proba``; None for a model without a
        partition.
    y : (m,) int64 or None
        True classes, where they are known.
    """

    proba: FloatArray
    located: Located | None
    y: IntArray | None = None

    def __len__(self) -> int:
        return len(self.proba)

    def part(self, start: int, stop: int) -> Rows:
        """Consecutive rows, as views."""
        rows, at = slice(start, stop), self.located
        proba = self.proba[rows]
        located = None if at is None else Located(at.x[rows], at.index[rows], at.tied[rows], proba)
        return Rows(proba, located, None if self.y is None else self.y[rows])


@dataclass(frozen=True, eq=False)
class GraphRun:
    """A fitted graph with the rows to judge it on.

    Attributes
    ----------
    record : GraphRecord
    graph : KernelDensityGraph
        Arrays only, so gamma, variance and floor can be changed without a fit.
    rows : Rows
        The judged rows: the model's probabilities, locations in the partition, true classes.
    positions : (m,) int64
        Their positions in the set's table, from 0.
    """

    record: GraphRecord
    graph: KernelDensityGraph
    rows: Rows
    positions: IntArray


Estimator = KernelDensityForest | KernelDensityNetwork

_ESTIMATOR = "estimator.zip"
_FEWEST = 10
_UNKNOWN_ALPHA = 0.01  # share of ordinary rows that may count as unknown


def _needs_codes(review: Review) -> None:
    require_model(review)
    model = review.model
    assert model is not None
    if not model.has_codes:
        others = ", ".join(model.other_activations)
        why = f": its activations are not ReLU ({others})" if others else ""
        raise InputError(
            f"This model ({model.kind}) does not divide its inputs into polytopes{why}, so it "
            "has no kernel density version",
            fix="Its own confidence can still be seen far from the data, and its probabilities "
            "can still be calibrated.",
        )


@review_task(
    "Fitting the kernel density version",
    reads=ALL_ROWS,
    needs=_needs_codes,
    edition="calibrator, no class ruled out, facts and distance, half a nat, clusters, weights",
)
def fit_graph(sets: Sets, settings: GraphSettings) -> GraphRun:
    """Fit the graph of a review.

    Raises
    ------
    InputError
        For rows that do not fit the model or the review's classes, or too little memory.
    """
    from kdcal_core.review.scoring import in_file, in_rows_of, predict

    reader, progress, path = sets.reader, sets.progress, sets.folder
    assert path is not None  # of every job
    progress(0.0, "Opening the model")
    model = reader.model()
    calibrator = KernelDensityCalibrator(
        settings.seed, distance=settings.distance, output_layer=settings.output_layer
    )
    X, y = reader.labelled("calibration")
    roles = reader.roles
    columns = tuple(one for one in (roles.time or roles.cluster, roles.weight) if one is not None)
    weight = together = None
    if columns:
        frame = sets.frame("calibration", columns)
        weight = weight_column(frame, roles)
        together = dependence_of(design_of(None, row_dependence(frame, roles)))
    given: dict[str, Any] = {"sample_weight": design_of(weight, together)}
    inside = np.ones(len(y), dtype=bool)
    if reader.has("training"):
        given["X_partition"], given["y_partition"] = reader.labelled("training")
    elif len(y) < _FEWEST:
        raise InputError(
            f"There are {len(y)} rows, too few to fit on some and hold out others",
            fix=f"Give {_FEWEST} rows at least; for a review the training set helps as well.",
        )
    else:
        inside = calibrator.held_out(y, together)
    with chosen_executor() as executor, quiet():  # the calibrator's notes say the same
        with in_file(reader.name("calibration")), in_rows_of(X):
            proba = predict(model, X, model.classes, part_of(progress, 0.0, 0.05))
        with in_file(reader.name(reader.reference)), in_rows_of(given.get("X_partition", X)):
            given |= {"progress": part_of(progress, 0.05, 0.9), "executor": executor}
            calibrator.fit(proba, y, X, model=model, **given)
        if reader.has("evaluation"):
            X, y = reader.labelled("evaluation")
            inside = np.ones(len(y), dtype=bool)
        estimator = calibrator.estimator_
        rows = placed(model, X[inside], y[inside], estimator, part_of(progress, 0.9, 1.0))
    estimator.save(path / _ESTIMATOR)
    record = GraphRecord(
        settings=settings,
        kind="forest" if isinstance(estimator, KernelDensityForest) else "network",
        fitted_on="training" if reader.has("training") else "calibration",
        judged_on="evaluation" if reader.has("evaluation") else "holdout",
        classes=reader.review.classes,
        n_fit=estimator.graph_.n,
        n_holdout=estimator.graph_.n_holdout,
        n_judged=len(rows),
        output_layer=estimator.output_layer_
        if isinstance(estimator, KernelDensityNetwork)
        else None,
        distance=estimator.distance_,
        notes=tuple(dict.fromkeys(calibrator.notes_)),
        facts=GraphFacts.of(estimator.graph_),
    )
    return GraphRun(record, estimator.graph_, rows, np.flatnonzero(inside))


def placed(
    model: Model,
    X: pd.DataFrame,
    y: IntArray | None,
    estimator: Estimator | None,
    progress: Progress,
) -> Rows:
    """The model's probabilities for rows, and their locations in the estimator's partition."""
    from kdcal_core.review.scoring import in_rows_of, predict

    with in_rows_of(X):
        proba = predict(model, X, model.classes, part_of(progress, 0.0, 0.3))
        if estimator is None:
            return Rows(proba, None, y)
        report = part_of(progress, 0.3, 1.0)
        return Rows(proba, estimator.locate(X, proba=proba, progress=report), y)


def load_estimator(folder: str, model: Model) -> Estimator:
    """The estimator that `fit_graph` stored, joined with its model.

    Raises
    ------
    InputError
        Where it is missing, damaged or of another model.
    """
    path = Path(folder)
    record = load(path, GraphRun).record
    kinds = {"forest": KernelDensityForest, "network": KernelDensityNetwork}
    loaded: Estimator = kinds[record.kind].load(path / _ESTIMATOR, model)
    return loaded


@dataclass(frozen=True)
class GraphSetting:
    """A fitted graph with the settings that can be changed without a fit.

    Attributes
    ----------
    folder : str
        Folder of the finished `GraphRun`.
    gamma : float
        One of the graph's gammas.
    variance_factor : float
        Factor of the graph's own variance floor.
    alpha : float
        Share of ordinary rows that may count as unknown; sets the floor.
    log_floor : float or None
        A fixed log b, in place of the floor that alpha sets.
    prior : tuple of float or None
        Prior of the classes; None for their shares among the fit rows.
    """

    folder: str
    gamma: float
    variance_factor: float
    alpha: float
    log_floor: float | None = None
    prior: tuple[float, ...] | None = None

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> GraphSetting:
        """The setting that the arguments of a measure hold."""
        prior = given.get("prior")
        return cls(**{**given, "prior": None if prior is None else tuple(prior)})

    @classmethod
    def own(cls, folder: Path, facts: GraphFacts) -> GraphSetting:
        """The setting that a fit chose itself."""
        return cls(str(folder), facts.gamma, 1.0, facts.floor_quantile or _UNKNOWN_ALPHA)


@dataclass(frozen=True, eq=False)
class Version:
    """The kernel density version with a setting; its answers are kept for the next request."""

    sets: Sets
    setting: GraphSetting

    @classmethod
    def of(cls, sets: Sets, graph: dict[str, Any] | None) -> Version | None:
        """The version for a `GraphSetting` as JSON; None for None."""
        return None if graph is None else cls(sets, GraphSetting.from_json(graph))

    @property
    def run(self) -> GraphRun:
        """The finished fit."""
        return opened_fit(self.sets, self.setting.folder)

    @property
    def graph(self) -> KernelDensityGraph:
        """The graph with the setting; it shares its arrays with the others of its fit."""
        chosen = self.setting

        def make() -> KernelDensityGraph:
            fitted = self.run.graph
            return fitted.with_settings(
                gamma=chosen.gamma,
                variance_floor=fitted.variance_floor * chosen.variance_factor,
                floor_quantile=chosen.alpha if chosen.log_floor is None else None,
                log_floor=chosen.log_floor,
                prior=chosen.prior,
            )

        found: KernelDensityGraph = self.sets.keep(("graph", chosen), make)
        return found

    @property
    def floor(self) -> float:
        """Log density below which a row counts as unknown."""
        return self.graph.effective_log_floor

    def posterior(self, rows: str, located: Located | None) -> FloatArray:
        """Probabilities of rows, (m, K); ``rows`` names the rows among others."""
        assert located is not None  # a graph was fitted, so there is a partition
        found: FloatArray = self.sets.keep(
            ("posterior", self.setting, rows), lambda: self.graph.posterior(located)
        )
        return found

    def log_density(self, rows: str, located: Located | None) -> FloatArray:
        """Log marginal density of rows, (m,); it does not depend on alpha."""
        assert located is not None  # as in `posterior`
        chosen = self.setting
        key = (
            "log density",
            chosen.folder,
            chosen.gamma,
            chosen.variance_factor,
            chosen.prior,
            rows,
        )
        found: FloatArray = self.sets.keep(key, lambda: self.graph.log_marginal(located))
        return found

    def unknown(self, rows: str, located: Located | None) -> NDArray[np.bool_]:
        """Which rows count as unknown, (m,)."""
        below: NDArray[np.bool_] = self.log_density(rows, located) < self.floor
        return below


def opened_fit(sets: Sets, folder: str) -> GraphRun:
    """The finished fit in a folder, whose files are checked once while it is kept."""
    found: GraphRun = sets.keep(("fit", folder), lambda: load(folder, GraphRun))
    return found
