"""Every method of a comparison, fitted once: model, isotonic, sigmoid, kernel density graphs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from kdcal_core.calibration import (
    IsotonicConfidence,
    KernelDensityForest,
    KernelDensityNetwork,
    SigmoidConfidence,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputWarning
from kdcal_core.models import wrap_model
from tests.benchmarks.studies import models

FLOOR_SHARE = 0.01
HOLDOUT = 0.3
METHODS = {
    "model": "Model",
    "geodesic": "Kernel density, geodesic",
    "geodesic_ratio": "The same without the blend",
    "euclidean": "Kernel density, Euclidean",
    "isotonic": "Isotonic",
    "sigmoid": "Sigmoid",
    "geodesic_paper": "Geodesic, the papers' constants",
    "euclidean_paper": "Euclidean, the papers' constants",
}


def as_fitted(graph: Any) -> Any:
    """The defaults of the estimator."""
    return graph


def without_blend(graph: Any) -> Any:
    """The polytope's class ratio alone inside the data."""
    return replace(graph, blend=None)


# method -> the fit that it comes from, and its setting
GRAPHS = {
    "geodesic": ("geodesic", as_fitted),
    "geodesic_ratio": ("ratio", without_blend),
    "geodesic_paper": ("geodesic_paper", as_fitted),
    "euclidean": ("euclidean", as_fitted),
    "euclidean_paper": ("euclidean_paper", as_fitted),
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Posterior (m, K), predicted class (m,) and whether unknown (m,) of some rows."""

    proba: FloatArray
    predicted: IntArray
    unknown: NDArray[np.bool_]


class Methods:
    """All methods on one training set, split 70/30 as Dey et al., section 3 does.

    The model and the graph are fitted on the 70%; isotonic, sigmoid, the exponent and the floor
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
        model = getattr(models, kind)(X[fit], y[fit], seed)
        self.model = wrap_model(model)
        family = KernelDensityForest if kind == "forest" else KernelDensityNetwork
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)

            def fitted(**settings: Any) -> Any:
                made = family(self.model, floor_quantile=FLOOR_SHARE, **settings)
                return made.fit(X[fit], y[fit], X[hold], y[hold])

            self.graphs = {each: fitted(distance=each) for each in ("geodesic", "euclidean")}
            # a forest's fit is the same with and without the blend, a network's is not: its
            # output layer belongs to the activation paths in one only
            self.graphs["ratio"] = (
                self.graphs["geodesic"] if kind == "forest" else fitted(inside="ratio")
            )
            for each in ("geodesic", "euclidean"):
                self.graphs[f"{each}_paper"] = self.graphs[each].in_the_papers(
                    X[fit], y[fit], X[hold], y[hold]
                )
            held = self.model.predict_proba(X[hold])
            self.maps = {
                "isotonic": IsotonicConfidence().fit(held, y[hold]),
                "sigmoid": SigmoidConfidence().fit(held, y[hold]),
            }

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Features as the model was trained on them."""
        return (np.asarray(X, dtype=np.float64) - self.centre) / self.unit

    def outcome(self, *parts: FloatArray) -> dict[str, list[Outcome]]:
        """What every method says of each part's rows, given in the model's coordinates."""
        X = np.concatenate(parts)
        cuts = np.cumsum([len(part) for part in parts])[:-1]
        proba = self.model.predict_proba(X)
        never = np.zeros(len(X), dtype=bool)
        found = {"model": (proba, proba.argmax(axis=1), never)}
        for name, fitted in self.maps.items():
            mapped = fitted.predict_proba(proba)
            found[name] = (mapped, mapped.argmax(axis=1), never)
        located: dict[int, Any] = {}
        for name, (source, setting) in GRAPHS.items():
            estimator = self.graphs[source]
            if id(estimator) not in located:
                located[id(estimator)] = estimator.locate(X, proba=proba)
            rows, graph = located[id(estimator)], setting(estimator.graph_)
            found[name] = (graph.posterior(rows), graph.predict(rows), graph.unknown(rows))
        return {
            name: [Outcome(*each) for each in zip(*(np.split(a, cuts) for a in said), strict=True)]
            for name, said in found.items()
        }
