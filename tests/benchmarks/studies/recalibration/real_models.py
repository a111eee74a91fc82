"""Models of the study on real tables: what each says of calibration and test rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from kdcal_core.data import FloatArray
from kdcal_core.distributions import LogNormal, Normal, PredictiveDistribution, Quantiles
from tests.benchmarks.studies.recalibration.networks import Network

LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
MODELS = ("linear", "boosted", "network", "quantiles")
Layer = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Stated:
    """Distributions of the calibration and of the test rows, and the last hidden layer if any."""

    before: PredictiveDistribution
    after: PredictiveDistribution
    layers: tuple[FloatArray, FloatArray] | None = None


def stated(
    kind: str, X: list[FloatArray], y: list[FloatArray], logarithmic: bool, seed: int
) -> Stated:
    """Trained on the first of three sets, speaking of the second and third.

    Point forecasts get the calibration set's mean squared error for a variance.
    """
    if kind == "quantiles":
        return Stated(*_quantiles(X, y[0], seed))
    scale = np.log if logarithmic else np.asarray
    goal = [scale(one) for one in y[:2]]
    layer: Layer | None = None
    model: Any
    if kind == "linear":
        model = LinearRegression().fit(X[0], goal[0])
    elif kind == "boosted":
        model = HistGradientBoostingRegressor(random_state=seed).fit(X[0], goal[0])
    else:
        own = np.arange(len(X[0])) % 5 == 0  # the calibration rows stay fresh
        varies = X[0][~own].std(axis=0) > 0
        X = [one[:, varies] for one in X]
        model = Network((64, 32, 8), seed).fit(
            *(X[0][~own], goal[0][~own], X[0][own], goal[0][own]),
            **{"epochs": 100, "batch": 64, "rate": 2e-3, "patience": 10},
        )
        layer = _last_hidden(model)
    means = [model.predict(one) for one in X[1:]]
    spread = float(np.sqrt(np.mean((goal[1] - means[0]) ** 2)))
    family = LogNormal if logarithmic else Normal
    before, after = (family(mean, spread) for mean in means)
    return Stated(before, after, None if layer is None else (layer(X[1]), layer(X[2])))


def _last_hidden(network: Network) -> Layer:
    return lambda X: network.layers(X)[-2]


def _quantiles(X: list[FloatArray], y: FloatArray, seed: int) -> list[PredictiveDistribution]:
    models = [
        HistGradientBoostingRegressor(
            loss="quantile", quantile=level, max_iter=60, random_state=seed
        ).fit(X[0], y)
        for level in LEVELS
    ]
    return [
        Quantiles(LEVELS, np.sort(np.column_stack([model.predict(one) for model in models])))
        for one in X[1:]
    ]
