"""The simulation lab: draw data, train a model, fit its kernel density versions, compare them.

This is one panel of the papers' simulation figures (Dey et al., Figs. 3 and 8) for one seed. The
model is their forest or their ReLU network (Tables 3 and 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration import (
    IsotonicConfidence,
    KernelDensityForest,
    KernelDensityGraph,
    KernelDensityNetwork,
    Located,
    SigmoidConfidence,
)
from kdcal_core.data import FloatArray, IntArray, stratified_folds
from kdcal_core.data.foreign_rows import sphere_points
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.simulation import CODED, SIMULATIONS, Simulated, true_posterior, trunk
from kdcal_core.tasks.decorators import check_ranges, task
from kdcal_core.tasks.foreign import RADII
from kdcal_core.tasks.graph import Kind
from kdcal_core.tasks.lab_networks import train_network

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier

    from kdcal_core.models import Model


def grow_forest(X: FloatArray, y: IntArray, n_trees: int, seed: int) -> RandomForestClassifier:
    """A forest of fully grown trees.

    Examples
    --------
    >>> grow_forest(np.array([[0.0], [1.0]]), np.array([0, 1]), 3, seed=0).n_estimators
    3
    """
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_trees, random_state=seed).fit(X, y)


Distance = Literal["geodesic", "euclidean"]
Asked = Literal["grid", "spheres", "test"]

DISTANCES: tuple[Distance, ...] = ("geodesic", "euclidean")
MAP_EDGE = 2.0  # the map of simulations in [-1, 1]^2 shows [-2, 2]^2 (Dey et al., Fig. 8)

_RANGES: dict[str, tuple[float, float]] = {
    "n": (20, 100_000),
    "n_features": (1, 1_000),
    "n_trees": (1, 2_000),
    "layers": (1, 10),
    "width": (1, 2_000),
    "epochs": (1, 5_000),
    "n_sphere": (1, 10_000),
    "n_test": (1, 100_000),
    "resolution": (2, 500),
    "radii": (0, 1e6),
    "seed": (0, 2**31),
}


@dataclass(frozen=True)
class LabSettings:
    """What is simulated.

    Attributes
    ----------
    simulation : str
        A key of `kdcal_core.simulation.SIMULATIONS`.
    n : int
        Rows drawn: the model is trained on seven tenths, and the others are held out.
    n_features : int
        Dimensions of "trunk"; the others have two.
    coded : bool
        Whether rows are drawn as by the authors' code, where that differs from their text
        (`kdcal_core.simulation.CODED`).
    model : str
        "forest" or "network".
    n_trees : int
        Trees of a forest; the papers grow 500.
    layers, width, epochs : int
        Hidden layers of a network, units in each, and maximum number of epochs. The papers have
        four layers of 1,000.
    output_layer : str
        As for `GraphSettings`.
    radii : tuple of float
        Radii of the spheres, in units of the largest norm of the rows drawn (Dey et al., section
        3.1).
    n_sphere, n_test : int
        Points on each sphere; rows of the test set.
    resolution : int
        Points along each axis of the map.
    seed : int
        Seed of the drawing, the training, the split and the spheres.
    """

    simulation: str = "gaussian_xor"
    n: int = 1000
    n_features: int = 10
    coded: bool = False
    model: Kind = "forest"
    n_trees: int = 500
    layers: int = 4
    width: int = 200
    epochs: int = 200
    output_layer: Literal["auto", "probability", "logit", "exclude"] = "auto"
    radii: tuple[float, ...] = RADII
    n_sphere: int = 1000
    n_test: int = 2000
    resolution: int = 101
    seed: int = 0


@dataclass(frozen=True)
class LabRecord:
    """The settings and facts of a simulation.

    Attributes
    ----------
    settings : LabSettings
    model : str
        What the model is, in words.
    n_fit, n_holdout : int
        Numbers of rows.
    reach : float
        Largest norm of the rows drawn, the unit of the radii.
    edge : float or None
        The map reaches from ``-edge`` to ``edge`` in the first two dimensions, with the others held
        at 0; None where there is only one.
    output_layer : str or None
        What a network's output adds to the geodesic graph's codes; None for a forest.
    """

    settings: LabSettings
    model: str
    n_fit: int
    n_holdout: int
    reach: float
    edge: float | None
    output_layer: Literal["probability", "logit", "exclude"] | None = None


@dataclass(frozen=True, eq=False)
class LabRows:
    """Points with the answers of all methods.

    Attributes
    ----------
    X : (m, d) float64
    truth : (m, 2) float64
        The true posterior; the prior outside the region of a simulation.
    model, isotonic, sigmoid : (m, 2) float64
        Probabilities of the model, and of the model calibrated on the held-out rows.
    located : dict
        Locations of the points in the "geodesic" and the "euclidean" graph, with ``model``.
    papers : dict
        Their locations in the papers' graphs.
    y : (m,) int64 or None
        Their classes, where they were drawn.
    """

    X: FloatArray
    truth: FloatArray
    model: FloatArray
    isotonic: FloatArray
    sigmoid: FloatArray
    located: dict[Distance, Located]
    papers: dict[Distance, Located]
    y: IntArray | None = None


@dataclass(frozen=True, eq=False)
class LabRun:
    """A simulation with its model's answers and the graphs that calibrate it.

    Attributes
    ----------
    record : LabRecord
    X, y : (n, d) float64 and (n,) int64
        The rows drawn.
    held : (n,) bool
        The rows that were held out.
    graphs : dict
        The fitted graph under "geodesic" and "euclidean".
    papers : dict
        The papers' versions, fitted on the same rows:
        :meth:`kdcal_core.calibration.KernelDensityForest.in_the_papers`.
    grid : LabRows or None
        The map, with x2 varying slowest; None where there is only one dimension.
    spheres : LabRows
        Points of all spheres, one sphere after the other.
    test : LabRows
        Fresh rows of the simulation.
    """

    record: LabRecord
    X: FloatArray
    y: IntArray
    held: NDArray[np.bool_]
    graphs: dict[Distance, KernelDensityGraph]
    papers: dict[Distance, KernelDensityGraph]
    grid: LabRows | None
    spheres: LabRows
    test: LabRows

    @property
    def settings(self) -> LabSettings:
        """What was simulated."""
        return self.record.settings

    @property
    def axis(self) -> FloatArray:
        """Coordinates of the map along each axis; empty without a map."""
        return map_axis(self.record)

    def as_map(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the map's points (G * G, ...) as (G, G, ...), x2 first."""
        side = self.settings.resolution
        return values.reshape(side, side, *values.shape[1:])

    def by_radius(self, proba: FloatArray) -> FloatArray:
        """Probabilities on each sphere, (R, n, 2), from those on all spheres."""
        return proba.reshape(len(self.settings.radii), -1, proba.shape[1])


def map_axis(record: LabRecord) -> FloatArray:
    """Coordinates of a run's map along each axis; empty without a map."""
    if record.edge is None:
        return np.zeros(0)
    return np.linspace(-record.edge, record.edge, record.settings.resolution)


def check_one_of(what: str, chosen: str, names: Iterable[str]) -> None:
    """Refuse a name that is not among these."""
    names = [*names]
    if chosen not in names:
        raise InputError(
            f"There is no {what} {chosen!r}", fix=f"Choose one of: {', '.join(names)}."
        )


def check_lab(settings: LabSettings) -> LabSettings:
    """Return the settings, or raise where one is out of range."""
    check_one_of("simulation", settings.simulation, SIMULATIONS)
    check_ranges(settings, _RANGES)
    if not settings.radii:
        raise InputError("There is no radius", fix="Give at least one.")
    # where both agree it is the same job
    return replace(settings, coded=settings.coded and settings.simulation in CODED)


Estimator = KernelDensityForest | KernelDensityNetwork

_TEST_SEED = 1_000_003  # test rows are drawn with another seed than the fit rows


@task(
    lambda arguments: f"Simulating {SIMULATIONS[arguments['settings'].simulation].title}",
    settle=check_lab,
    edition="papers refitted, temperature of half a nat",
)
def simulate(settings: LabSettings, progress: Progress) -> LabRun:
    """Run a simulation.

    Raises
    ------
    InputError
        For settings out of range.

    Examples
    --------
    >>> simulate.request(LabSettings(n=200)).title
    'Simulating Gaussian XOR'
    """
    progress(0.0, "Drawing the rows")
    drawn = drawn_rows(settings, settings.n, settings.seed)
    held = stratified_folds(drawn.y, 10, settings.seed) < 3  # three tenths
    X, y = drawn.X[~held], drawn.y[~held]
    model = _model(settings, X, y, part_of(progress, 0.0, 0.5))
    fresh = (drawn.X[held], drawn.y[held])
    fitted = fit_methods(settings, model, (X, y), fresh, part_of(progress, 0.5, 0.7))
    reach = float(np.linalg.norm(drawn.X, axis=1).max())
    edge = _edge(settings, drawn.X)
    geodesic = fitted.graphs["geodesic"]
    layer = geodesic.output_layer_ if isinstance(geodesic, KernelDensityNetwork) else None
    record = LabRecord(settings, model.kind, len(y), int(held.sum()), reach, edge, layer)
    asked = _asked(settings, record)
    rows = {}
    for at, (name, points) in enumerate(asked.items()):
        share = [0.7 + 0.3 * done / len(asked) for done in (at, at + 1)]
        truth = true_posterior(settings.simulation, points.X, **draw_settings(settings))
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
class FittedMethods:
    """All methods, fitted."""

    model: Model
    graphs: dict[Distance, Estimator]
    papers: dict[Distance, Estimator]
    isotonic: IsotonicConfidence
    sigmoid: SigmoidConfidence

    def ask(self, points: _Points, truth: FloatArray, progress: Progress) -> LabRows:
        """The answers of all methods for some points."""
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


def fit_methods(
    settings: LabSettings, model: Model, fit: Labelled, held: Labelled, progress: Progress
) -> FittedMethods:
    """Isotonic, sigmoid, and both graphs with their papers' versions, for the settings' model."""
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
    return FittedMethods(model, graphs, papers, *calibrators)


def draw_settings(settings: LabSettings) -> dict[str, float]:
    """The settings of the simulation that are not its default, for rows and posterior."""
    return CODED.get(settings.simulation, {}) if settings.coded else {}


def drawn_rows(settings: LabSettings, n: int, seed: int) -> Simulated:
    """Rows of the simulation.

    Examples
    --------
    >>> drawn_rows(LabSettings("trunk", n_features=3), 20, seed=0).X.shape
    (20, 3)
    """
    if settings.simulation == "trunk":
        return trunk(n, seed=seed, n_features=settings.n_features)
    function = SIMULATIONS[settings.simulation].function
    return function(n, seed=seed, **draw_settings(settings))


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
    """The half-width of the map along both axes: twice that of the data."""
    if SIMULATIONS[settings.simulation].in_box:
        return MAP_EDGE
    return 2.0 * float(np.abs(X[:, :2]).max()) if X.shape[1] > 1 else None


def _asked(settings: LabSettings, record: LabRecord) -> dict[Asked, _Points]:
    """The points for which all methods are computed."""
    fresh = drawn_rows(settings, settings.n_test, settings.seed + _TEST_SEED)
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
