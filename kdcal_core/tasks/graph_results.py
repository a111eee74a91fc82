"""What the fit of a review's graph was asked for, and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration import KernelDensityGraph, Located
from kdcal_core.calibration.graph.blend import Blend
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.review import ReviewReader
from kdcal_core.store import encode, load_part
from kdcal_core.tasks.inputs import Request, review_request

Kind = Literal["forest", "network"]

FIT = "calibrator, no class ruled out, facts in the record"
"""How graphs are fitted: results of another way are not those of the exported file."""


@dataclass(frozen=True)
class GraphSettings:
    """What the fit depends on; gamma, variance and floor act later, without a fit.

    Attributes
    ----------
    distance : str
        "geodesic", or "euclidean" for the papers' comparison.
    output_layer : str
        What a network's output adds to the codes: "probability", "logit" or "exclude"
        (decision D4), or "auto" for what the estimator takes. A forest has none.
    seed : int
        Of the split into rows to fit on and rows held out, where there is no training table.
    """

    distance: Literal["geodesic", "euclidean"] = "geodesic"
    output_layer: Literal["auto", "probability", "logit", "exclude"] = "auto"
    seed: int = 0


@dataclass(frozen=True)
class GraphFacts:
    """What is to be known of a graph without its arrays.

    Attributes
    ----------
    n_polytopes : int
    exponents, gammas : tuple of float
        Of the grid that was fitted, ascending: gamma * log n, and gamma.
    gamma, variance_floor : float
        In force.
    floor_quantile : float or None
    prior : tuple of float
        Class shares of the fit.
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
        """Of a fitted graph."""
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
        """Where gamma stands in the grid."""
        return int(np.argmin(np.abs(np.array(self.gammas) - self.gamma)))


@dataclass(frozen=True)
class GraphRecord:
    """What was done.

    Attributes
    ----------
    settings : GraphSettings
    kind : str
        "forest" or "network".
    fitted_on : str
        "training": the model's own training rows, with the calibration set held out;
        "calibration": seven tenths of the calibration set, with the other three held out.
    judged_on : str
        "evaluation": the evaluation set; "holdout": the held-out calibration rows, which also
        chose gamma and the floor, so that results on them are flattered a little.
    classes : tuple of str
        As the review names them. Untrusted text.
    n_fit, n_holdout, n_judged : int
        Rows.
    notes : tuple of str
        What the reader should know, in plain sentences.
    facts : GraphFacts
    output_layer : str or None
        What of a network's output is in the codes; None for a forest.
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


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with all that a page needs to judge them at any setting of the graph.

    Attributes
    ----------
    proba : (m, K) float64
        The model's probabilities.
    located : Located or None
        Where the rows lie in the graph's partition, with ``proba``; None for a model without
        one.
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
        Arrays only: gamma, variance and floor can be set again at once.
    rows : Rows
        The judged rows: the model's probabilities, places in the partition, true classes.
    positions : (m,) int64
        Which rows of the set's table they are, from 0.
    """

    record: GraphRecord
    graph: KernelDensityGraph
    rows: Rows
    positions: IntArray


def request_on_graph(
    target: str,
    title: str,
    reader: ReviewReader,
    settings: Any,
    graph_folder: str | Path | None,
    *,
    rows: str = "",
) -> Request:
    """A request that also depends on the review's graph, where ``graph_folder`` holds one.

    ``rows`` tells the way in which rows are made from other ways.
    """
    asked = encode(settings)
    return review_request(
        target,
        title,
        reader,
        {"settings": asked, "graph_folder": str(graph_folder) if graph_folder else None},
        {"settings": asked, "graph": graph_identity(graph_folder), "rows": rows},
    )


def graph_identity(folder: str | Path | None) -> dict[str, Any] | None:
    """What tells one fit of a review from another of the same review: its settings."""
    if folder is None:
        return None
    return {**encode(load_part(folder, "record", GraphRecord).settings), "fit": FIT}
