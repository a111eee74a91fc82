"""Fit of a graph to rows with their codes: densities first, then floor and gamma."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration.graph.choices import (
    checked_prior,
    chosen_exponents,
    class_shares,
    log_n,
)
from kdcal_core.calibration.graph.coordinates import Scale
from kdcal_core.calibration.graph.gaussians import fit_gaussians
from kdcal_core.calibration.graph.graph import (
    PAPERS_LOG_FLOOR,
    PAPERS_VARIANCE_FLOOR,
    KernelDensityGraph,
)
from kdcal_core.calibration.graph.placement import (
    Placement,
    place,
)
from kdcal_core.calibration.graph.rows import FitRows
from kdcal_core.calibration.graph.spacing import neighbour_spacing
from kdcal_core.calibration.graph.views import OutputLayer
from kdcal_core.data import FloatArray
from kdcal_core.memory import refuse_beyond_memory
from kdcal_core.models import Model
from kdcal_core.partition import class_masses, estimated_bytes
from kdcal_core.progress import Progress, part_of


@dataclass(frozen=True, eq=False)
class Wishes:
    """The settings of a fit; fields as the parameters of :class:`KernelDensityForest`."""

    distance: Literal["geodesic", "euclidean"]
    inside: Literal["blend", "ratio"]
    gamma: Any
    variance_floor: Any
    log_floor: Any
    floor_quantile: float
    prior: Any
    scale: Scale
    seed: int


def settle(
    model: Model,
    rows: FitRows,
    held: FitRows | None,
    output_layer: OutputLayer | None,
    wishes: Wishes,
    progress: Progress,
    executor: Executor | None = None,
) -> tuple[Placement, KernelDensityGraph]:
    """Placement and graph of rows, with the floor and the gamma that held-out rows choose."""
    n, n_classes = len(rows.y), len(model.classes)
    exponents = chosen_exponents(wishes.gamma, n)
    placement, index, x = place(model, output_layer, rows, wishes.distance, scale=wishes.scale)
    codes, d = placement.polytopes, x.shape[1]
    p = len(codes)
    refuse_beyond_memory(
        estimated_bytes(codes, n_classes, len(exponents)) + 16 * d * (n + p),
        f"The fit on {n:,} rows in {p:,} polytopes",
        "Fit on fewer rows, give fewer gammas, or use a model with fewer trees or units.",
    )
    centres, variances = fit_gaussians(x, index, p)
    cells = np.bincount(index * n_classes + rows.y, minlength=p * n_classes)
    counts = cells.reshape(p, n_classes).astype(np.int64)
    masses = class_masses(
        codes, counts, exponents, progress=part_of(progress, 0.0, 0.8), executor=executor
    )
    located = None
    if held is not None:
        located = placement.nearest(
            placement.points(held.X),
            held.codes,
            centres,
            progress=part_of(progress, 0.8, 1.0),
            executor=executor,
        )
        if wishes.inside == "blend":
            located = replace(located, proba=model.predict_proba(held.X))
    floor, shape = _variance_floor(wishes, placement, centres, held is not None, executor)
    graph = KernelDensityGraph(
        classes=model.classes,
        n=n,
        centres=centres,
        variances=variances,
        counts=counts,
        exponents=exponents,
        class_masses=masses,
        prior=checked_prior(
            wishes.prior, class_shares(counts.sum(axis=0), rules_out=wishes.inside == "ratio")
        ),
        gamma=float(exponents[-1] / log_n(n)),
        variance_floor=floor,
        log_floor=PAPERS_LOG_FLOOR,
        floor_quantile=None,
        holdout=located,
        holdout_y=None if held is None else held.y,
        variance_shape=shape,
    )
    graph = _with_floor_and_gamma(graph, wishes)
    # Exponent first, then the blend: each is convex or a short list by itself.
    blends = wishes.inside == "blend" and held is not None
    return placement, graph.blended() if blends else graph


def _variance_floor(
    wishes: Wishes,
    placement: Placement,
    centres: FloatArray,
    has_holdout: bool,
    executor: Executor | None,
) -> tuple[float, FloatArray | None]:
    """What is added to the variances on average, and its shape over the coordinates."""
    wish = wishes.variance_floor
    if wish == "auto":
        follows = wishes.log_floor == "quantile" and has_holdout
        wish = "spacing" if follows else PAPERS_VARIANCE_FLOOR
    if wish != "spacing":
        return float(wish), None
    near = None if wishes.distance == "euclidean" else placement.polytopes
    spacing = neighbour_spacing(near, centres, seed=wishes.seed, executor=executor)
    # Each coordinate of a column of categories gets the spacing of the whole column. With its own
    # spacing, one row of a rare category would lie below all foreign rows, and the floor with it.
    for block in placement.coordinates.category_blocks:
        spacing[block] = spacing[block].sum()
    spacing += PAPERS_VARIANCE_FLOOR
    return float(spacing.mean()), spacing / spacing.mean()


def _with_floor_and_gamma(graph: KernelDensityGraph, wishes: Wishes) -> KernelDensityGraph:
    """The graph with floor and gamma as set."""
    if wishes.log_floor != "quantile":
        graph = graph.with_settings(log_floor=float(wishes.log_floor))
    elif graph.n_holdout:
        graph = graph.with_settings(floor_quantile=wishes.floor_quantile)
    return graph.with_settings(gamma=graph.selection().best_gamma)
