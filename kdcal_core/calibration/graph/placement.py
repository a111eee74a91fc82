"""The placement of rows: their codes, coordinates and representing polytopes."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Literal

from kdcal_core.calibration.graph.coordinates import (
    Coordinates,
    Scale,
    fit_coordinates,
)
from kdcal_core.calibration.graph.located import Located
from kdcal_core.calibration.graph.rows import FitRows
from kdcal_core.calibration.graph.views import OutputLayer, embedded, partition_codes
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.models import Model
from kdcal_core.partition import Codes, find_polytopes, nearest_centres, nearest_polytopes
from kdcal_core.progress import Progress

Distance = Literal["geodesic", "euclidean"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A model's partition with the polytopes that rows of the fit fall into.

    Attributes
    ----------
    model : Model
    output_layer : {"probability", "logit", "exclude"} or None
        What of a network's output belongs to its codes; None for the leaves of a forest.
    coordinates : Coordinates
        Of the features, or of what goes into the head of an encoder with a dense head.
    polytopes : codes of the p polytopes
    distance : {"geodesic", "euclidean"}
    """

    model: Model
    output_layer: OutputLayer | None
    coordinates: Coordinates
    polytopes: Codes
    distance: Distance

    def codes(self, X: Any) -> Codes:
        """Codes of rows, m of them."""
        return partition_codes(self.model, X, self.output_layer)

    def points(self, X: Any) -> FloatArray:
        """Coordinates of rows, (m, d)."""
        inner = embedded(self.model, X)
        return self.coordinates.transform(X if inner is None else inner)

    def locate(
        self,
        X: Any,
        centres: FloatArray,
        *,
        proba: FloatArray | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """The nearest polytope of each row (Dey et al., Eq. 6); ``proba`` goes along."""
        codes = None if self.distance == "euclidean" else self.codes(X)
        found = self.nearest(self.points(X), codes, centres, progress=progress, executor=executor)
        return replace(found, proba=proba)

    def nearest(
        self,
        x: FloatArray,
        codes: Codes | None,
        centres: FloatArray,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """The same from coordinates and codes; the Euclidean distance needs no codes."""
        if codes is None or self.distance == "euclidean":
            found = nearest_centres(x, centres, progress=progress)
        else:
            found = nearest_polytopes(
                codes,
                self.polytopes,
                x,
                centres,
                progress=progress,
                executor=executor,
            )
        return Located(x, found.index, found.tied)


def place(
    model: Model,
    output_layer: OutputLayer | None,
    rows: FitRows,
    distance: Distance,
    *,
    scale: Scale,
) -> tuple[Placement, IntArray, FloatArray]:
    """Learn the placement from rows of a fit; their polytopes, (n,), and coordinates, (n, d)."""
    found = find_polytopes(rows.codes)
    inner = embedded(model, rows.X)
    if inner is None:
        coordinates = fit_coordinates(
            rows.X, n_features=model.n_features, feature_names=model.feature_names, scale=scale
        )
    else:
        coordinates = fit_coordinates(
            inner, n_features=inner.shape[1], feature_names=None, scale=scale
        )
    placement = Placement(model, output_layer, coordinates, found.codes, distance)
    return placement, found.index, coordinates.transform(rows.X if inner is None else inner)
