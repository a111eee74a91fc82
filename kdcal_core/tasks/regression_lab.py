"""The simulation lab for regressions: a trained model and its recalibrations beside the truth.

One run is a panel of Torres et al., Figs. 1 to 3. The model states a mean and one spread for all
rows; where outcomes are positive it does so for their logarithm (their WSIR, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import RegressionScores, kl_divergence, squared_errors
from kdcal_core.distributions import PredictiveDistribution, distribution_of, spread_of
from kdcal_core.evaluation import regression_scores
from kdcal_core.progress import Progress
from kdcal_core.regression import GlobalRecalibration, LocalRecalibration
from kdcal_core.simulation import REGRESSION_SIMULATIONS, true_distribution
from kdcal_core.tasks.decorators import check_ranges, task
from kdcal_core.tasks.lab import check_one_of

Regressor = Literal["line", "forest", "network"]
Repaired = Literal["truth", "model", "global", "local"]

REPAIRED: tuple[Repaired, ...] = ("model", "global", "local", "truth")
RESOLUTION = 41
KL_CELLS = 20
"""Cells of the divergence: weighted samples have no density."""
_RANGES: dict[str, tuple[float, float]] = {
    "n": (100, 1_000_000),
    "k": (1, 100_000),
    "seed": (0, 2**31),
}
_TREES, _LEAF, _WIDTHS = 100, 5, (64, 64)


@dataclass(frozen=True)
class RegressionLabSettings:
    """What is simulated.

    Attributes
    ----------
    simulation : str
        A key of `kdcal_core.simulation.REGRESSION_SIMULATIONS`.
    n : int
        Rows drawn: eight tenths train the model, a tenth calibrates, a tenth is judged.
    model : {"line", "forest", "network"}
        Least squares, 100 trees, or two ReLU layers of 64 units.
    k : int or None
        Neighbours of a row; None for the automatic choice.
    seed : int
        Seed of the drawing and the training.
    """

    simulation: str = "heteroscedastic"
    n: int = 10_000
    model: Regressor = "line"
    k: int | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class LabDistributions:
    """What one method states about the judged rows.

    Attributes
    ----------
    mean, std : (m,) float64
    low, high : (m,) float64
        The central 95% intervals.
    scores : RegressionScores
        Among them "mse_truth" and "kl" (over 20 cells of equal true probability).
    surface : (G, G) float64 or None
        Means over the map, with the second column varying slowest.
    """

    mean: FloatArray
    std: FloatArray
    low: FloatArray
    high: FloatArray
    scores: RegressionScores
    surface: FloatArray | None


@dataclass(frozen=True, eq=False)
class RegressionLabRun:
    """A simulated regression with the model, its two recalibrations, and the truth.

    Attributes
    ----------
    settings : RegressionLabSettings
    n_train, n_calibration : int
        Numbers of rows.
    k : int
        Neighbours of the local recalibration.
    X, y : (m, d) and (m,) float64
        The judged rows.
    axes : (2, G) float64 or None
        Coordinates of the map over the judged rows, where they have two columns.
    methods : dict
        By "model", "global", "local" and "truth".
    """

    settings: RegressionLabSettings
    n_train: int
    n_calibration: int
    k: int
    X: FloatArray
    y: FloatArray
    axes: FloatArray | None
    methods: dict[Repaired, LabDistributions]


def check_regression_lab(settings: RegressionLabSettings) -> RegressionLabSettings:
    """Return the settings, or raise where one is out of range."""
    check_one_of("simulation", settings.simulation, REGRESSION_SIMULATIONS)
    check_one_of("model", settings.model, _REGRESSORS)
    check_ranges(settings, _RANGES)
    return settings


@task(
    lambda arguments: (
        f"Simulating {REGRESSION_SIMULATIONS[arguments['settings'].simulation].title}"
    ),
    settle=check_regression_lab,
)
def simulate_regression(settings: RegressionLabSettings, progress: Progress) -> RegressionLabRun:
    """Run a simulation of a regression.

    Raises
    ------
    InputError
        For settings out of range.

    Examples
    --------
    >>> simulate_regression.request(RegressionLabSettings(n=500)).title
    'Simulating Widening parabola'
    """
    ready = _prepared(settings, progress)
    progress(0.6, "Recalibrating")
    before, outcomes, space = ready.calibration
    everywhere = GlobalRecalibration(seed=settings.seed).fit(before, outcomes)
    local = LocalRecalibration(k="auto" if settings.k is None else settings.k, seed=settings.seed)
    local.fit(before, outcomes, space)
    axes = _axes(ready.X)
    points = None if axes is None else _points(axes)

    def by(key: Repaired, X: FloatArray) -> PredictiveDistribution:
        if key == "truth":
            return true_distribution(settings.simulation, X)
        model = ready.model(X)
        if key == "model":
            return model
        return everywhere.predict(model) if key == "global" else local.predict(model, X)

    truth, scale = by("truth", ready.X), float(np.mean(np.abs(outcomes)))
    methods: dict[Repaired, LabDistributions] = {}
    for at, key in enumerate(REPAIRED):
        progress(0.7 + 0.3 * at / len(REPAIRED), "Judging")
        surface = None if points is None else by(key, points).mean().reshape(RESOLUTION, RESOLUTION)
        methods[key] = _judged(by(key, ready.X), ready.y, truth, scale, surface)
    return RegressionLabRun(
        settings, ready.n_train, len(outcomes), local.k_, ready.X, ready.y, axes, methods
    )


def _judged(
    found: PredictiveDistribution,
    y: FloatArray,
    truth: PredictiveDistribution,
    scale: float,
    surface: FloatArray | None,
) -> LabDistributions:
    scores = regression_scores(found, y, scale=scale, true_mean=truth.mean())
    divergence = kl_divergence(truth, found, cells=KL_CELLS)
    scores = replace(scores, rows={**scores.rows, "kl": divergence})
    return LabDistributions(found.mean(), found.std(), *found.interval(0.95), scores, surface)


_Rows = tuple[FloatArray, FloatArray]  # inputs and outcomes
_Stated = Callable[[FloatArray], PredictiveDistribution]


@dataclass(frozen=True, eq=False)
class _Ready:
    """A trained model, calibration rows (distributions, outcomes, inputs), and rows to judge."""

    model: _Stated
    n_train: int
    calibration: tuple[PredictiveDistribution, FloatArray, FloatArray]
    X: FloatArray
    y: FloatArray


def _prepared(settings: RegressionLabSettings, progress: Progress) -> _Ready:
    """Draw eight, one and one tenths of the rows, and train the model on the first."""
    progress(0.0, "Drawing the rows")
    drawn = REGRESSION_SIMULATIONS[settings.simulation].function(settings.n, seed=settings.seed)
    ends = [settings.n * 8 // 10, settings.n * 9 // 10]
    train, calibration, judged = zip(
        *(np.split(each, ends) for each in (drawn.X, drawn.y)), strict=True
    )
    progress(0.1, "Training the model")
    model = _trained(settings, train, calibration)
    X, y = calibration
    return _Ready(model, len(train[1]), (model(X), y, X), *judged)


def _trained(settings: RegressionLabSettings, rows: _Rows, calibration: _Rows) -> _Stated:
    """A model that states a mean, of the outcome or of its logarithm, and its spread."""
    positive = REGRESSION_SIMULATIONS[settings.simulation].positive
    family: Literal["point", "log_point"] = "log_point" if positive else "point"
    model = _REGRESSORS[settings.model](settings.seed)
    model.fit(rows[0], np.log(rows[1]) if positive else rows[1])

    def columns(X: FloatArray) -> dict[str, FloatArray]:
        mean = np.asarray(model.predict(X), dtype=np.float64)
        return {"log_mean" if positive else "mean": mean}

    spread = spread_of(family, columns(calibration[0]), calibration[1])
    return lambda X: distribution_of(family, columns(X), spread=spread)


def _line(seed: int) -> Any:
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(_TREES, min_samples_leaf=_LEAF, random_state=seed)


def _network(seed: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    layers = MLPRegressor(hidden_layer_sizes=_WIDTHS, early_stopping=True, random_state=seed)
    scaled = make_pipeline(StandardScaler(), layers)
    return TransformedTargetRegressor(scaled, transformer=StandardScaler())


_REGRESSORS = {"line": _line, "forest": _forest, "network": _network}


def _axes(X: FloatArray) -> FloatArray | None:
    if X.shape[1] != 2:
        return None
    return np.linspace(X.min(axis=0), X.max(axis=0), RESOLUTION, axis=1)


def _points(axes: FloatArray) -> FloatArray:
    return np.column_stack([np.tile(axes[0], RESOLUTION), np.repeat(axes[1], RESOLUTION)])


NEIGHBOURS = (100, 500, 1000)
"""Numbers of neighbours of Torres et al., section 4.3."""


def neighbour_measures(
    settings: RegressionLabSettings, progress: Progress
) -> Iterator[tuple[float, float]]:
    """Distance from the truth and coverage by number of neighbours (Torres et al., Fig. 4).

    The mean squared error against the true mean and the share of outcomes inside the central 95%
    intervals: of the model, then of local recalibration with each of `NEIGHBOURS`; NaN where there
    are fewer calibration rows.
    """
    ready = _prepared(settings, progress)
    before, outcomes, space = ready.calibration
    model = ready.model(ready.X)
    truth = true_distribution(settings.simulation, ready.X).mean()
    for k in (None, *NEIGHBOURS):
        found = model
        if k is not None and k > len(outcomes):
            yield np.nan, np.nan
            continue
        if k is not None:
            local = LocalRecalibration(k=k, smoothing="none", seed=settings.seed)
            found = local.fit(before, outcomes, space).predict(model, ready.X)
        low, high = found.interval(0.95)
        yield squared_errors(found, truth).mean(), ((low <= ready.y) & (ready.y <= high)).mean()
