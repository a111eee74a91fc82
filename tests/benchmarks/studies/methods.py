"""Every method of a comparison, fitted once: parent, isotonic, sigmoid, kernel density graphs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from kdcal_core.calibration import (
    IsotonicConfidence,
    KernelDensityForest,
    KernelDensityNetwork,
    SigmoidConfidence,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputWarning
from kdcal_core.parents import wrap_parent
from tests.benchmarks.studies import parents

PAPER_FLOOR = -1e7  # decision D1
FLOOR_SHARE = 0.01
HOLDOUT = 0.3
METHODS = {
    "parent": "Parent",
    "geodesic": "Kernel density, geodesic, data floor",
    "euclidean": "Kernel density, Euclidean, data floor",
    "isotonic": "Isotonic",
    "sigmoid": "Sigmoid",
    "geodesic_paper": "Kernel density, geodesic, log b = -1e7",
    "euclidean_paper": "Kernel density, Euclidean, log b = -1e7",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Posterior (m, K) and predicted class (m,) of some rows."""

    proba: FloatArray
    predicted: IntArray


class Methods:
    """All methods on one training set, split 70/30 as paper 000 section 3 does.

    The parent and the graph are fitted on the 70%; isotonic, sigmoid, the exponent and the floor
    on the 30%. ``standardise`` divides features by their standard deviation first.
    """

    def __init__(
        self, kind: str, X: FloatArray, y: IntArray, seed: int, *, standardise: bool = False
    ) -> None:
        self.centre, self.unit = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if standardise:
            self.centre, self.unit = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
        X = self.coordinates(X)
        fit, hold = train_test_split(
            np.arange(len(y)), test_size=HOLDOUT, random_state=seed, stratify=y
        )
        self.prior = np.bincount(y[fit]) / len(fit)
        self.radius = float(np.linalg.norm(X, axis=1).max())
        model = getattr(parents, kind)(X[fit], y[fit], seed)
        self.parent = wrap_parent(model)
        estimator = KernelDensityForest if kind == "forest" else KernelDensityNetwork
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            self.graphs = {
                distance: estimator(self.parent, distance=distance, floor_quantile=FLOOR_SHARE).fit(
                    X[fit], y[fit], X[hold], y[hold]
                )
                for distance in ("geodesic", "euclidean")
            }
            held = self.parent.predict_proba(X[hold])
            self.maps = {
                "isotonic": IsotonicConfidence().fit(held, y[hold]),
                "sigmoid": SigmoidConfidence().fit(held, y[hold]),
            }

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Features as the parent was trained on them."""
        return (np.asarray(X, dtype=np.float64) - self.centre) / self.unit

    def outcome(self, *parts: FloatArray) -> dict[str, list[Outcome]]:
        """What every method says of each part's rows, given in the parent's coordinates."""
        X = np.concatenate(parts)
        cuts = np.cumsum([len(part) for part in parts])[:-1]
        proba = self.parent.predict_proba(X)
        found = {"parent": (proba, proba.argmax(axis=1))}
        for name, fitted in self.maps.items():
            mapped = fitted.predict_proba(proba)
            found[name] = (mapped, mapped.argmax(axis=1))
        for distance, estimator in self.graphs.items():
            located = estimator.locate(X)
            paper = estimator.graph_.with_settings(log_floor=PAPER_FLOOR)
            for name, graph in ((distance, estimator.graph_), (f"{distance}_paper", paper)):
                found[name] = (graph.posterior(located), graph.predict(located))
        return {
            name: [
                Outcome(*both)
                for both in zip(np.split(all_proba, cuts), np.split(decided, cuts), strict=True)
            ]
            for name, (all_proba, decided) in found.items()
        }

    def flagged(self, X: FloatArray) -> float:
        """Share of rows that the geodesic graph calls unknown."""
        estimator: Any = self.graphs["geodesic"]
        return float(estimator.graph_.unknown(estimator.locate(X)).mean())
