"""The simulation lab: draw data, train a model, fit its kernel density versions, ask them all.

This is one panel of the papers' simulation figures (Dey et al., Figs. 3 and 8) at one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kdcal_core.calibration import (
    IsotonicConfidence,
    KernelDensityForest,
    KernelDensityNetwork,
    SigmoidConfidence,
)
from kdcal_core.data import FloatArray, IntArray, stratified_folds
from kdcal_core.diagnostics import sphere_points
from kdcal_core.progress import Progress, part_of
from kdcal_core.simulation import SIMULATIONS, Simulated, true_posterior, trunk
from kdcal_core.store import decode, encode, save
from kdcal_core.tasks.inputs import Request, request
from kdcal_core.tasks.lab_models import grow_forest, train_network
from kdcal_core.tasks.lab_results import (
    DISTANCES,
    MAP_EDGE,
    Asked,
    Distance,
    LabRecord,
    LabRows,
    LabRun,
    LabSettings,
    check_lab,
    map_axis,
)

if TYPE_CHECKING:
    from kdcal_core.models import Model

Estimator = KernelDensityForest | KernelDensityNetwork

_TEST_SEED = 1_000_003  # test rows are drawn by another seed than the rows of the fit


def lab_request(settings: LabSettings) -> Request:
    """The job that carries out a simulation.

    Raises
    ------
    InputError
        For settings out of range.

    Examples
    --------
    >>> lab_request(LabSettings(n=200)).title
    'Simulating Gaussian XOR'
    """
    check_lab(settings)
    said = encode(settings)
    return request(
        "kdcal_core.tasks.lab_run:simulate",
        f"Simulating {SIMULATIONS[settings.simulation].title}",
        {"settings": said},
        {"settings": said, "papers": "refitted"},
    )


def simulate(settings: dict[str, Any], folder: str, progress: Progress) -> dict[str, Any]:
    """Carry out a simulation, in a worker process, which leaves a `LabRun`.

    Parameters
    ----------
    settings : dict
        LabSettings as JSON.
    """
    run = explore(decode(LabSettings, settings), progress)
    save(Path(folder), run)
    return encode(run.record)


def explore(settings: LabSettings, progress: Progress) -> LabRun:
    """Carry out a simulation here.

    Raises
    ------
    InputError
        For settings out of range.
    """
    check_lab(settings)
    progress(0.0, "Drawing the rows")
    drawn = _draw(settings, settings.n, settings.seed)
    held = stratified_folds(drawn.y, 10, settings.seed) < 3  # three tenths (decision D28)
    X, y = drawn.X[~held], drawn.y[~held]
    model = _model(settings, X, y, part_of(progress, 0.0, 0.5))
    fresh = (drawn.X[held], drawn.y[held])
    fitted = _fit(settings, model, (X, y), fresh, part_of(progress, 0.5, 0.7))
    reach = float(np.linalg.norm(drawn.X, axis=1).max())
    edge = _edge(settings, drawn.X)
    geodesic = fitted.graphs["geodesic"]
    layer = geodesic.output_layer_ if isinstance(geodesic, KernelDensityNetwork) else None
    record = LabRecord(settings, model.kind, len(y), int(held.sum()), reach, edge, layer)
    asked = _asked(settings, record)
    rows = {}
    for at, (name, points) in enumerate(asked.items()):
        share = [0.7 + 0.3 * done / len(asked) for done in (at, at + 1)]
        truth = true_posterior(settings.simulation, points.X)
        rows[name] = fitted.ask(points, truth, part_of(progress, *share))
    graphs, papers = (
        {distance: each.graph_ for distance, each in some.items()}
        for some in (fitted.graphs, fitted.papers)
    )
    return LabRun(
        record,
        drawn.X,
        drawn.y,
        held,
        graphs,
        papers,
        rows.get("grid"),
        rows["spheres"],
        rows["test"],
    )


@dataclass(frozen=True, eq=False)
class _Points:
    X: FloatArray
    y: IntArray | None = None


@dataclass(frozen=True, eq=False)
class _Fitted:
    """All methods, fitted."""

    model: Model
    graphs: dict[Distance, Estimator]
    papers: dict[Distance, Estimator]
    isotonic: IsotonicConfidence
    sigmoid: SigmoidConfidence

    def ask(self, points: _Points, truth: FloatArray, progress: Progress) -> LabRows:
        """What all methods say of some points."""
        X = points.X
        proba = self.model.predict_proba(X)
        located, papers = (
            {
                distance: graph.locate(X, proba=proba, progress=part_of(progress, *share))
                for (distance, graph), share in zip(graphs.items(), shares, strict=True)
            }
            for graphs, shares in (
                (self.graphs, ((0.0, 0.25), (0.25, 0.5))),
                (self.papers, ((0.5, 0.75), (0.75, 1.0))),
            )
        )
        isotonic, sigmoid = (
            calibrator.predict_proba(proba) for calibrator in (self.isotonic, self.sigmoid)
        )
        return LabRows(X, truth, proba, isotonic, sigmoid, located, papers, points.y)


Labelled = tuple[FloatArray, IntArray]


def _fit(
    settings: LabSettings, model: Model, fit: Labelled, held: Labelled, progress: Progress
) -> _Fitted:
    graphs: dict[Distance, Estimator] = {}
    papers: dict[Distance, Estimator] = {}
    for at, distance in enumerate(DISTANCES):
        estimator: Estimator
        if settings.model == "network":
            layer = settings.output_layer
            estimator = KernelDensityNetwork(model, distance=distance, output_layer=layer)
        else:
            estimator = KernelDensityForest(model, distance=distance)
        first, last = at / len(DISTANCES), (at + 1) / len(DISTANCES)
        middle = (first + last) / 2
        graphs[distance] = estimator.fit(*fit, *held, progress=part_of(progress, first, middle))
        papers[distance] = estimator.in_the_papers(
            *fit, *held, progress=part_of(progress, middle, last)
        )
    proba = model.predict_proba(held[0])
    calibrators = [each().fit(proba, held[1]) for each in (IsotonicConfidence, SigmoidConfidence)]
    return _Fitted(model, graphs, papers, *calibrators)


def _draw(settings: LabSettings, n: int, seed: int) -> Simulated:
    if settings.simulation == "trunk":
        return trunk(n, seed=seed, n_features=settings.n_features)
    return SIMULATIONS[settings.simulation].function(n, seed=seed)


def _model(settings: LabSettings, X: FloatArray, y: IntArray, progress: Progress) -> Model:
    from kdcal_core.models import wrap_model

    progress(0.0, "Training the model")
    if settings.model == "forest":
        return wrap_model(grow_forest(X, y, settings.n_trees, settings.seed), task="classification")
    network = train_network(
        X,
        y,
        layers=settings.layers,
        width=settings.width,
        epochs=settings.epochs,
        seed=settings.seed,
        progress=progress,
    )
    return wrap_model(network, classes=("0", "1"), task="classification")


def _edge(settings: LabSettings, X: FloatArray) -> float | None:
    """How far the map reaches along both axes: twice as far as the data."""
    if SIMULATIONS[settings.simulation].in_box:
        return MAP_EDGE
    return 2.0 * float(np.abs(X[:, :2]).max()) if X.shape[1] > 1 else None


def _asked(settings: LabSettings, record: LabRecord) -> dict[Asked, _Points]:
    """The points that all methods are asked about."""
    fresh = _draw(settings, settings.n_test, settings.seed + _TEST_SEED)
    n_features = fresh.X.shape[1]
    directions = sphere_points(settings.n_sphere, n_features, record.reach, settings.seed)
    spheres = np.concatenate([radius * directions for radius in settings.radii])
    asked: dict[Asked, _Points] = {"spheres": _Points(spheres), "test": _Points(fresh.X, fresh.y)}
    if record.edge is not None:
        axis = map_axis(record)
        grid = np.zeros((len(axis) ** 2, n_features))
        grid[:, 0], grid[:, 1] = np.tile(axis, len(axis)), np.repeat(axis, len(axis))
        asked["grid"] = _Points(grid)
    return asked
