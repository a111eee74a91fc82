"""The simulation lab for regressions: a trained model and its recalibrations beside the truth.

One run is a panel of Torres et al., Figs. 1 to 3. The model states a mean and one spread for all
rows; where outcomes are positive it does so for their logarithm (their WSIR, section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import RegressionScores, kl_divergence, squared_errors
from kdcal_core.distributions import PredictiveDistribution, distribution_of, spread_of
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores
from kdcal_core.progress import Progress, silent
from kdcal_core.regression import GlobalRecalibration, LocalRecalibration
from kdcal_core.simulation import REGRESSION_SIMULATIONS, true_distribution
from kdcal_core.tasks.decorators import check_ranges, task
from kdcal_core.tasks.lab_measures import check_sizes

if TYPE_CHECKING:
    from sklearn.base import RegressorMixin

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
    if settings.simulation not in REGRESSION_SIMULATIONS:
        raise InputError(
            f"There is no simulation {settings.simulation!r}",
            fix=f"Choose one of: {', '.join(REGRESSION_SIMULATIONS)}.",
        )
    if settings.model not in _REGRESSORS:
        raise InputError(
            f"There is no model {settings.model!r}", fix=f"Choose one of: {', '.join(_REGRESSORS)}."
        )
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
        model = ready.model.on(X)
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


@dataclass(frozen=True, eq=False)
class _Stated:
    """A trained model that states a mean, of the outcome or of its logarithm, and its spread."""

    model: RegressorMixin
    positive: bool
    spread: float = 0.0

    def fitted(self, X: FloatArray, y: FloatArray) -> _Stated:
        """The same with the spread of these rows."""
        return replace(self, spread=spread_of(self._family, self._columns(X), y))

    def on(self, X: FloatArray) -> PredictiveDistribution:
        return distribution_of(self._family, self._columns(X), spread=self.spread)

    @property
    def _family(self) -> Literal["point", "log_point"]:
        return "log_point" if self.positive else "point"

    def _columns(self, X: FloatArray) -> dict[str, FloatArray]:
        name = "log_mean" if self.positive else "mean"
        return {name: np.asarray(self.model.predict(X), dtype=np.float64)}


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
    model = _trained(settings, *train).fitted(*calibration)
    X, y = calibration
    return _Ready(model, len(train[1]), (model.on(X), y, X), *judged)


def _trained(settings: RegressionLabSettings, X: FloatArray, y: FloatArray) -> _Stated:
    positive = REGRESSION_SIMULATIONS[settings.simulation].positive
    model = _REGRESSORS[settings.model](settings.seed)
    return _Stated(model.fit(X, np.log(y) if positive else y), positive)


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
_SEEDS_APART = 1000


@dataclass(frozen=True)
class RegressionSizesSettings:
    """The sizes and repetitions of a simulated regression.

    Attributes
    ----------
    lab : RegressionLabSettings
        Its numbers of rows and neighbours do not count; its seed is that of the first repetition.
    sizes : tuple of int
        Rows drawn, ascending.
    repetitions : int
    """

    lab: RegressionLabSettings = RegressionLabSettings()
    sizes: tuple[int, ...] = (1000, 10_000)
    repetitions: int = 5


@dataclass(frozen=True, eq=False)
class RegressionSizesRun:
    """The distance from the truth and the coverage of many runs.

    Attributes
    ----------
    settings : RegressionSizesSettings
    mse, coverage : (S, R, 1 + K) float64
        Mean squared error against the true mean, and share of outcomes inside the central 95%
        intervals: of the model, then of local recalibration with each of `NEIGHBOURS`. NaN where
        there are fewer calibration rows than neighbours.
    """

    settings: RegressionSizesSettings
    mse: FloatArray
    coverage: FloatArray

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the last axis."""
        return ("Model", *(f"Local, k = {k:,}" for k in NEIGHBOURS))

    def table(self) -> pd.DataFrame:
        """One row for each size, repetition and method that was run."""
        index = pd.MultiIndex.from_product(
            [self.settings.sizes, range(1, self.settings.repetitions + 1), self.methods],
            names=["rows", "repetition", "method"],
        )
        values = {"mse_truth": self.mse.ravel(), "coverage95": self.coverage.ravel()}
        return pd.DataFrame(values, index).dropna().reset_index()


def _settled(settings: RegressionSizesSettings) -> RegressionSizesSettings:
    check_sizes(settings.sizes)
    check_ranges(settings, {"sizes": _RANGES["n"], "repetitions": (1, 1000)})
    # what does not count is fixed, so that with any value it is the same job
    one = check_regression_lab(replace(settings.lab, n=settings.sizes[0], k=None))
    return replace(settings, lab=one)


@task(
    lambda arguments: (
        f"{REGRESSION_SIMULATIONS[arguments['settings'].lab.simulation].title} over training sizes"
    ),
    settle=_settled,
)
def repeat_regression(settings: RegressionSizesSettings, progress: Progress) -> RegressionSizesRun:
    """Repeat a simulation of a regression over sizes and neighbours (Torres et al., Fig. 4).

    Raises
    ------
    InputError
        For settings out of range.

    Examples
    --------
    >>> repeat_regression.request(RegressionSizesSettings()).title
    'Widening parabola over training sizes'
    """
    shape = (len(settings.sizes), settings.repetitions, 1 + len(NEIGHBOURS))
    mse, coverage = np.full(shape, np.nan), np.full(shape, np.nan)
    shares = np.cumsum(np.repeat(settings.sizes, settings.repetitions)) / (
        sum(settings.sizes) * settings.repetitions
    )
    for at, (size, repetition) in enumerate(np.ndindex(shape[:2])):
        n = settings.sizes[size]
        progress(shares[at - 1] if at else 0.0, f"{n:,} rows, run {repetition + 1}")
        seed = settings.lab.seed + _SEEDS_APART * repetition
        ready = _prepared(replace(settings.lab, n=n, seed=seed), silent)
        truth = true_distribution(settings.lab.simulation, ready.X).mean()
        for place, found in enumerate(_with_neighbours(ready, seed)):
            if found is not None:
                low, high = found.interval(0.95)
                mse[size, repetition, place] = squared_errors(found, truth).mean()
                coverage[size, repetition, place] = ((low <= ready.y) & (ready.y <= high)).mean()
    return RegressionSizesRun(settings, mse, coverage)


def _with_neighbours(ready: _Ready, seed: int) -> Iterator[PredictiveDistribution | None]:
    """The model's distributions, then those of each number of neighbours, if it has the rows."""
    before, outcomes, space = ready.calibration
    model = ready.model.on(ready.X)
    yield model
    for k in NEIGHBOURS:
        local = LocalRecalibration(k=k, smoothing="none", seed=seed)
        enough = k <= len(outcomes)
        yield local.fit(before, outcomes, space).predict(model, ready.X) if enough else None
