"""Every method's answers and measures in a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration import KernelDensityGraph
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    DistanceCurve,
    Estimate,
    confidence_by_distance,
    confidence_calibration_error,
    hellinger_distance,
    log_loss,
    mean_max_confidence,
)
from kdcal_core.errors import InputError
from kdcal_core.simulation import SIMULATIONS
from kdcal_core.statistics import clopper_pearson
from kdcal_core.tasks.lab import DISTANCES, Distance, LabRows, LabRun

Method = Literal[
    "model",
    "isotonic",
    "sigmoid",
    "geodesic",
    "euclidean",
    "geodesic_paper",
    "euclidean_paper",
]

METHODS: dict[Method, str] = {
    "model": "Model",
    "isotonic": "Isotonic",
    "sigmoid": "Sigmoid",
    "geodesic": "Kernel density, geodesic",
    "euclidean": "Kernel density, Euclidean",
    "geodesic_paper": "Geodesic, as in the papers",
    "euclidean_paper": "Euclidean, as in the papers",
}
LAB_MEASURES = ("error", "hellinger", "box", "ece", "log_loss", "confidence")
PAPER_LOG_FLOOR = -1e7  # log b
PAPER_VARIANCE_FLOOR = 1e-6  # Dey et al., Tables 3 and 4
PRINTED_LOG_FLOOR = -1e-7  # as printed in the papers' tables
FAR = 2.0  # the radius at which confidence far away is reported
SURE = 0.9
LEVEL = 0.95


@dataclass(frozen=True)
class GraphChoice:
    """Settings of the graphs that need no fit; None keeps the value chosen from the data.

    Attributes
    ----------
    position : int or None
        Index of the exponent in the grid.
    floor_quantile : float or None
        Sets the floor to this quantile of the held-out rows' log densities.
    log_floor : float or None
        A fixed log b instead.
    variance_floor : float or None
    ratio_only : bool
        Uses only the class ratio of the polytope inside the data, without the model's probabilities
        for the row. This is the papers' fit, in which the output layer of a network is part of the
        activation paths. An exponent that is not given is chosen with the current floor.
    """

    position: int | None = None
    floor_quantile: float | None = None
    log_floor: float | None = None
    variance_floor: float | None = None
    ratio_only: bool = False

    def applied(self, run: LabRun, distance: Distance) -> KernelDensityGraph:
        """The run's graph for a distance with these settings.

        Raises
        ------
        InputError
            For values out of range, or two floors.
        """
        graph, quantile = run.graphs[distance], self.floor_quantile
        if self.ratio_only:
            own, graph = graph, run.papers[distance]
            if self.variance_floor is None:
                shape = own.variance_shape
                graph = replace(graph, variance_floor=own.variance_floor, variance_shape=shape)
            if self.log_floor is None and quantile is None:
                quantile = own.floor_quantile
        position = self.position
        if position is not None and not 0 <= position < len(graph.gammas):
            raise InputError(
                f"The grid has no exponent {position + 1:,}",
                fix=f"Choose one of its {len(graph.gammas)} exponents.",
            )
        moved = graph.with_settings(
            gamma=None if position is None else float(graph.gammas[position]),
            variance_floor=self.variance_floor,
            log_floor=self.log_floor,
            floor_quantile=quantile,
        )
        if self.ratio_only and position is None:
            moved = moved.with_settings(gamma=moved.selection().best_gamma)
        return moved


def fitted_position(graph: KernelDensityGraph) -> int:
    """The index of the chosen exponent in the grid."""
    return int(np.argmin(np.abs(graph.gammas - graph.gamma)))


@dataclass(frozen=True, eq=False)
class Answers:
    """Probabilities (m, 2) of some points, and the predicted class of each, (m,)."""

    proba: FloatArray
    predicted: IntArray


@dataclass(frozen=True, eq=False)
class LabAnswers:
    """One method's answers on the map (None without a map), on all spheres and the test rows."""

    grid: Answers | None
    spheres: Answers
    test: Answers


def fixed_answers(run: LabRun) -> dict[Method, LabAnswers]:
    """The methods that no setting changes: model, isotonic, sigmoid, and the papers' fit."""
    found: dict[Method, LabAnswers] = {}
    for method in ("model", "isotonic", "sigmoid"):
        found[method] = LabAnswers(
            None if run.grid is None else _stated(run.grid, method),
            _stated(run.spheres, method),
            _stated(run.test, method),
        )
    papers: dict[Distance, Method] = {
        "geodesic": "geodesic_paper",
        "euclidean": "euclidean_paper",
    }
    for distance, method in papers.items():
        found[method] = _asked(run, distance, run.papers[distance], as_in_papers=True)
    return found


def graph_answers(run: LabRun, choice: GraphChoice) -> dict[Distance, LabAnswers]:
    """Both graphs with the current settings, without a fit."""
    return {
        distance: _asked(
            run, distance, choice.applied(run, distance), as_in_papers=choice.ratio_only
        )
        for distance in DISTANCES
    }


def all_answers(run: LabRun, choice: GraphChoice) -> dict[Method, LabAnswers]:
    """Every method of `METHODS`, in their order."""
    moved = graph_answers(run, choice)
    found: dict[Method, LabAnswers] = {
        **fixed_answers(run),
        "geodesic": moved["geodesic"],
        "euclidean": moved["euclidean"],
    }
    return {method: found[method] for method in METHODS}


def measured(run: LabRun, answers: LabAnswers, *, n_boot: int = 200) -> dict[str, Estimate]:
    """The measures of Dey et al., section 2.9, for one method, each with its interval.

    Error, calibration error (top label, 15 equal-width bins), log loss and "hellinger", the
    Hellinger distance to the true posterior, on the test rows. "box" is that distance on the map's
    points in [-1, 1]^2, as in the papers; its interval treats them as drawn at random. It includes
    places without rows, such as the middle of "circle", where the prior is as good an answer. On
    "trunk", which has no box, it equals "hellinger". "confidence" is that on the sphere of radius
    2, in units of the data's largest norm.

    Parameters
    ----------
    n_boot : int
        Number of draws for the interval of the calibration error.

    Returns
    -------
    dict
        By the keys of `LAB_MEASURES`.
    """
    test, y = answers.test, run.test.y
    assert y is not None
    right = test.predicted == y
    confidence = test.proba.max(axis=1)
    far = run.by_radius(answers.spheres.proba)[far_position(run)]
    return {
        "error": _error(right),
        "hellinger": hellinger_distance(test.proba, run.test.truth),
        "box": _hellinger_in_the_box(run, answers),
        "ece": confidence_calibration_error(confidence, right, n_boot=n_boot),
        "log_loss": log_loss(test.proba, y),
        "confidence": replace(mean_max_confidence(far), label=f"Confidence at radius {FAR:g}"),
    }


def data_box(run: LabRun) -> tuple[float, float, float, float]:
    """Bounds of the data in the first two dimensions: x0, x1, y0, y1.

    They are those of the simulation's square, or the range of the rows drawn.
    """
    if SIMULATIONS[run.settings.simulation].in_box:
        return -1.0, 1.0, -1.0, 1.0
    low, high = run.X[:, :2].min(axis=0), run.X[:, :2].max(axis=0)
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def far_position(run: LabRun) -> int:
    """Index of the run's radius nearest to `FAR`."""
    return int(np.argmin(np.abs(np.array(run.settings.radii) - FAR)))


def distance_curves(
    run: LabRun, answers: Mapping[Method, LabAnswers]
) -> dict[Method, DistanceCurve]:
    """Confidence against distance (Dey et al., Fig. 3), with the middle half of the points."""
    settings = run.settings
    return {
        method: confidence_by_distance(
            run.by_radius(each.spheres.proba), settings.radii, seed=settings.seed
        )
        for method, each in answers.items()
    }


def sure_outside(run: LabRun, answers: LabAnswers) -> float:
    """Share of the map outside the data's box where the confidence is above 90%.

    NaN where there is no map.
    """
    if run.grid is None or answers.grid is None:
        return float("nan")
    outside = ~_inside(run, run.grid)
    return float((answers.grid.proba[outside].max(axis=1) > SURE).mean())


def switch_distances(graph: KernelDensityGraph) -> FloatArray:
    """Distance from each centre at which a polytope's density falls to the constant of Eq. 8, (p,).

    It is in units of the data's largest norm, averaged over the directions, and 0 where the density
    is below it even at the centre. Beyond this distance the prior outweighs the polytope
    (Dey et al., Eq. 8). For a single row, with log b = -1e7 and a variance floor of 1e-6, it is the
    root of 20, 4.47, in any dimension.
    """
    masses, n_features = graph.chosen_masses, graph.centres.shape[1]
    totals = masses.sum(axis=0)
    shares = np.divide(masses, totals, out=np.zeros_like(masses), where=totals > 0)
    variances = graph.variances + graph.added_variance
    with np.errstate(divide="ignore"):
        height = np.log(shares @ graph.prior) - 0.5 * np.log(2.0 * np.pi * variances).sum(axis=1)
    room = np.maximum(height - graph.log_fallback, 0.0)
    return np.asarray(np.sqrt(2.0 * room * n_features / (1.0 / variances).sum(axis=1)))


def _asked(
    run: LabRun, distance: Distance, graph: KernelDensityGraph, *, as_in_papers: bool
) -> LabAnswers:
    def answer(rows: LabRows) -> Answers:
        located = (rows.papers if as_in_papers else rows.located)[distance]
        return Answers(graph.posterior(located), graph.predict(located))

    grid = None if run.grid is None else answer(run.grid)
    return LabAnswers(grid, answer(run.spheres), answer(run.test))


def _stated(rows: LabRows, method: Method) -> Answers:
    proba: FloatArray = getattr(rows, method)
    return Answers(proba, proba.argmax(axis=1))


def _error(right: NDArray[np.bool_]) -> Estimate:
    rate = float(1.0 - right.mean())
    low, high = clopper_pearson(rate, len(right), LEVEL)
    return Estimate(
        name="Classification error",
        label="Error",
        value=rate,
        low=float(low),
        high=float(high),
        n=len(right),
        level=LEVEL,
        interval="Clopper-Pearson",
    )


def _hellinger_in_the_box(run: LabRun, answers: LabAnswers) -> Estimate:
    boxed = SIMULATIONS[run.settings.simulation].in_box
    if run.grid is None or answers.grid is None or not boxed:
        return hellinger_distance(answers.test.proba, run.test.truth)
    inside = _inside(run, run.grid)
    return hellinger_distance(answers.grid.proba[inside], run.grid.truth[inside])


def _inside(run: LabRun, rows: LabRows) -> NDArray[np.bool_]:
    x0, x1, y0, y1 = data_box(run)
    x, y = rows.X[:, 0], rows.X[:, 1]
    inside: NDArray[np.bool_] = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
    return inside
