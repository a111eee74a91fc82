"""What a simulation was asked for, and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration import KernelDensityGraph, Located
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.simulation import SIMULATIONS
from kdcal_core.tasks.foreign_results import RADII
from kdcal_core.tasks.graph_results import Kind
from kdcal_core.tasks.inputs import check_ranges

Distance = Literal["geodesic", "euclidean"]
Asked = Literal["grid", "spheres", "test"]

DISTANCES: tuple[Distance, ...] = ("geodesic", "euclidean")
MAP_EDGE = 2.0  # of the simulations in [-1, 1]^2 the map shows [-2, 2]^2 (Dey et al., Fig. 8)

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
        Rows drawn: the model learns from seven tenths, the others are held out.
    n_features : int
        Dimensions of "trunk"; the others have two.
    model : str
        "forest" or "network".
    n_trees : int
        Of a forest; the papers grow 500.
    layers, width, epochs : int
        Of a network: hidden layers, units in each, and epochs at most. The papers have four
        layers of 1,000.
    output_layer : str
        As for `GraphSettings`.
    radii : tuple of float
        Of the spheres, in units of the largest norm of the rows drawn (Dey et al., section 3.1).
    n_sphere, n_test : int
        Points on each sphere; rows of the test set.
    resolution : int
        Points along each axis of the map.
    seed : int
        Of the drawing, the training, the division and the spheres.
    """

    simulation: str = "gaussian_xor"
    n: int = 1000
    n_features: int = 10
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
    """What was done.

    Attributes
    ----------
    settings : LabSettings
    model : str
        What the model is, for people.
    n_fit, n_holdout : int
        Rows.
    reach : float
        Largest norm of the rows drawn, the unit of the radii.
    edge : float or None
        The map reaches from minus this to this in the first two dimensions, and the others are
        held at 0; None where there is but one.
    output_layer : str or None
        What of a network's output is in the geodesic graph's codes; None for a forest.
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
    """Points with what all methods say of them.

    Attributes
    ----------
    X : (m, d) float64
    truth : (m, 2) float64
        The true posterior; outside the region of a simulation the prior.
    model, isotonic, sigmoid : (m, 2) float64
        Probabilities of the model, and of its calibration by the held-out rows.
    located : dict
        Places of the points in the "geodesic" and in the "euclidean" graph, with ``model``.
    papers : dict
        Their places in the papers' graphs.
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
        Which of them were held out.
    graphs : dict
        The fitted graph under "geodesic" and "euclidean".
    papers : dict
        The same as the papers have it, fitted on the same rows:
        :meth:`kdcal_core.calibration.KernelDensityForest.in_the_papers`.
    grid : LabRows or None
        The map, x2 slowest; None where there is but one dimension.
    spheres : LabRows
        All spheres, one after the other.
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
    def axis(self) -> FloatArray:
        """Coordinates of the map along each axis; empty without one."""
        return map_axis(self.record)

    def as_map(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the map's points (G * G, ...) as (G, G, ...), x2 first."""
        side = self.record.settings.resolution
        return values.reshape(side, side, *values.shape[1:])

    def by_radius(self, proba: FloatArray) -> FloatArray:
        """Probabilities on all spheres as those on each, (R, n, 2)."""
        return proba.reshape(len(self.record.settings.radii), -1, proba.shape[1])


def map_axis(record: LabRecord) -> FloatArray:
    """Coordinates of a run's map along each axis; empty without one."""
    if record.edge is None:
        return np.zeros(0)
    return np.linspace(-record.edge, record.edge, record.settings.resolution)


def check_lab(settings: LabSettings) -> None:
    """Refuse settings out of range."""
    if settings.simulation not in SIMULATIONS:
        raise InputError(
            f"There is no simulation {settings.simulation!r}",
            fix=f"Choose one of: {', '.join(SIMULATIONS)}.",
        )
    check_ranges(settings, _RANGES)
    if not settings.radii:
        raise InputError("There is no radius", fix="Give at least one.")
