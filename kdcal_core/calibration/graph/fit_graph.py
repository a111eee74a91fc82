"""Fits a graph to rows with their codes: densities first, then floor and gamma.

The distance between neighbouring polytopes gives the variance that a single row cannot show.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.graph.gamma_floor_blend import (
    checked_prior,
    chosen_exponents,
    class_shares,
    log_n,
)
from kdcal_core.calibration.graph.gaussians import Located, fit_gaussians
from kdcal_core.calibration.graph.graph import (
    PAPERS_LOG_FLOOR,
    PAPERS_VARIANCE_FLOOR,
    KernelDensityGraph,
)
from kdcal_core.calibration.graph.placement import (
    Distance,
    FitRows,
    OutputLayer,
    Placement,
    place,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.equal_rows import row_keys
from kdcal_core.data.foreign_rows import extent, on_spheres, outward
from kdcal_core.errors import InputError
from kdcal_core.memory import refuse_beyond_memory
from kdcal_core.models import Model
from kdcal_core.models.coordinates import Scale
from kdcal_core.partition import (
    Codes,
    class_masses,
    estimated_bytes,
    nearest_centres,
    nearest_polytopes,
)
from kdcal_core.partition.codes import rows_of
from kdcal_core.progress import Progress, part_of
from kdcal_core.statistics import Dependence, design_effect, kish, surprisal

_ASKED = 1000
_FEWEST_IN_A_FOLD = 100
_LEFT_OUT = 1 / 20


def neighbour_spacing(
    codes: Codes | None,
    centres: FloatArray,
    *,
    seed: int = 0,
    executor: Executor | None = None,
) -> FloatArray:
    """Mean squared gap between a polytope's centre and that of its nearest neighbour.

    Most polytopes of a large forest or network hold one row, for which Eq. 15 of Dey et al. gives a
    variance of zero. A new row is about as far from the centre of its nearest polytope as that
    centre is from its nearest neighbour. The mean gap, added to the variances of all polytopes,
    therefore puts their densities on one scale. No held-out row is used, so a floor set from
    held-out densities keeps its guarantee.

    Parameters
    ----------
    codes : codes of the p polytopes, or None
        None for the nearest in Euclidean distance; otherwise in geodesic distance, with ties by the
        Euclidean distance.
    centres : (p, d) array, finite
    seed : int
        Seed of the sample of up to 1,000 polytopes whose neighbours are searched. This is done in
        up to ten folds, each among all polytopes outside the fold. Below 1,000 polytopes a tenth of
        the others is thus left out, and the gap is slightly too wide.
    executor : optional
        As in :func:`kdcal_core.partition.nearest_polytopes`.

    Returns
    -------
    (d,) array
        In units of squared coordinates, at least 0; all 0 for a single polytope.

    Examples
    --------
    >>> import numpy as np
    >>> neighbour_spacing(None, np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0]])).round(2).tolist()
    [3.67, 0.0]
    """
    p, d = centres.shape
    if p < 2:
        return np.zeros(d)
    order = np.random.default_rng(seed).permutation(p)
    total, asked = np.zeros(d), 0
    # Indexing the others costs as much as many queries: the larger p, the larger the folds.
    in_a_fold = min(max(int(_LEFT_OUT * p), _FEWEST_IN_A_FOLD), _ASKED)
    for fold in np.array_split(order, min(p, _ASKED // in_a_fold)):
        fold = np.sort(fold[:in_a_fold])
        others = np.setdiff1d(order, fold)
        nearest = others[_nearest(codes, centres, fold, others, executor)]
        total += ((centres[fold] - centres[nearest]) ** 2).sum(axis=0)
        asked += len(fold)
    return total / asked


def _nearest(
    codes: Codes | None,
    centres: FloatArray,
    fold: IntArray,
    others: IntArray,
    executor: Executor | None,
) -> IntArray:
    """For each polytope of the fold, the position of the nearest among the others."""
    if codes is None:
        return nearest_centres(centres[fold], centres[others]).index
    return nearest_polytopes(
        rows_of(codes, fold),
        rows_of(codes, others),
        centres[fold],
        centres[others],
        executor=executor,
    ).index


@dataclass(frozen=True, eq=False)
class Wishes:
    """The settings of a fit, named as the parameters of :class:`KernelDensityForest`."""

    distance: Distance | Literal["auto"]
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
    """Placement and graph of rows, with floor and gamma chosen on held-out rows."""
    n, n_classes = len(rows.y), len(model.classes)
    exponents = chosen_exponents(wishes.gamma, n)
    placement, index, x = place(model, output_layer, rows, "geodesic", scale=wishes.scale)
    codes, d = placement.polytopes, x.shape[1]
    p = len(codes)
    refuse_beyond_memory(
        estimated_bytes(codes, n_classes, len(exponents)) + 16 * d * (n + p),
        f"The fit on {n:,} rows in {p:,} polytopes",
        "Fit on fewer rows, give fewer gammas, or use a model with fewer trees or units.",
    )
    centres, variances = fit_gaussians(x, index, p, rows.weight)
    whole, unit = _counts(rows, index, p, n_classes)
    masses = class_masses(
        codes, whole, exponents, progress=part_of(progress, 0.0, 0.8), executor=executor
    )
    counts: NDArray[Any] = whole
    if rows.weight is not None:
        counts, masses = whole * unit, masses * unit
    graph = KernelDensityGraph(
        classes=model.classes,
        n=n,
        centres=centres,
        variances=variances,
        counts=counts,
        exponents=exponents,
        class_masses=masses,
        prior=checked_prior(
            wishes.prior,
            class_shares(
                counts.sum(axis=0),
                rules_out=wishes.inside == "ratio",
                effect=_effect_of_shares(rows),
            ),
        ),
        gamma=float(exponents[-1] / log_n(n)),
        variance_floor=PAPERS_VARIANCE_FLOOR,
        log_floor=PAPERS_LOG_FLOOR,
        floor_quantile=None,
        holdout=None,
        holdout_y=None if held is None else held.y,
        together=None if held is None else _present(held.dependence),
        holdout_weight=None if held is None else _mean_one(held.weight),
    )
    distances: tuple[Distance, ...] = ("geodesic", "euclidean")
    if wishes.distance != "auto":
        distances = (wishes.distance,)
    elif held is None:
        distances = distances[:1]
    made = []
    for at, distance in enumerate(distances):
        begun, ended = (0.8 + 0.2 * (at + step) / len(distances) for step in (0, 1))
        part = part_of(progress, begun, ended)
        by = replace(placement, distance=distance)
        made.append((by, _measured(by, graph, rows, held, wishes, part, executor)))
    return made[0] if len(made) == 1 else min(made, key=lambda one: _held_out_loss(one[1]))


_STEPS = 2.0**30


def _counts(rows: FitRows, index: IntArray, p: int, n_classes: int) -> tuple[IntArray, float]:
    """Rows by polytope and class, (p, K), or their weights in whole units, and the unit.

    The kernel's sums are of whole numbers, which do not depend on their order. The unit is a
    2^-30th of the largest weight, with mean 1.
    """
    cell, weight = index * n_classes + rows.y, _mean_one(rows.weight)
    found = np.bincount(cell, weights=weight, minlength=p * n_classes).reshape(p, n_classes)
    if weight is None:
        return found.astype(np.int64), 1.0
    unit = float(weight.max()) / _STEPS
    return np.maximum(np.rint(found / unit), found > 0).astype(np.int64), unit


def _mean_one(weight: FloatArray | None) -> FloatArray | None:
    """Weights of the rows that are there, with mean 1; None where all are equal."""
    if weight is None or weight.min() == weight.max():
        return None
    return np.asarray(weight / weight.mean())


def _present(dependence: Dependence | None) -> Dependence | None:
    """The dependence with units counted over those that are there."""
    if dependence is None:
        return None
    if dependence.kind == "cluster":
        return Dependence.of_units("cluster", dependence.present, dependence.column)
    first = int(dependence.unit.min(initial=0))  # times keep their distance
    unit = dependence.unit - first
    return replace(dependence, unit=unit, n_units=int(unit.max(initial=-1)) + 1)


def _effect_of_shares(rows: FitRows) -> float:
    """How many times fewer rows these count for in the classes' shares, at least 1.

    That is because of their dependence and of unequal weights.
    """
    mass = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    unequal = len(mass) / kish(mass)
    if rows.dependence is None:
        return unequal
    most = (rows.y == np.bincount(rows.y).argmax()).astype(np.float64)
    away = most - np.average(most, weights=mass)
    return unequal * max(1.0, design_effect(away, mass, rows.dependence))


def _measured(
    placement: Placement,
    graph: KernelDensityGraph,
    rows: FitRows,
    held: FitRows | None,
    wishes: Wishes,
    progress: Progress,
    executor: Executor | None,
) -> KernelDensityGraph:
    """The graph with all that depends on the distance: variances, floor, gamma and blend."""
    located = far = None
    if held is not None:
        far = _far_away(placement, rows, graph.centres, wishes, executor)
        located = placement.nearest(
            placement.points(held.X),
            held.codes,
            graph.centres,
            progress=progress,
            executor=executor,
        )
        if wishes.inside == "blend":
            located = replace(located, proba=placement.model.predict_proba(held.X))
    floor, shape = _variance_floor(wishes, placement, graph.centres, held is not None, executor)
    graph = _with_floor_and_gamma(
        replace(graph, holdout=located, far=far, variance_floor=floor, variance_shape=shape), wishes
    )
    # Exponent first, then the blend: each alone is a short list or convex.
    return graph.blended() if wishes.inside == "blend" and held is not None else graph


def _held_out_loss(graph: KernelDensityGraph) -> float:
    """Mean log loss of the posterior on the held-out rows, in nats."""
    assert graph.holdout is not None
    assert graph.holdout_y is not None
    proba = graph.posterior(graph.holdout)
    lost = surprisal(proba[np.arange(len(proba)), graph.holdout_y])
    return float(np.average(lost, weights=graph.holdout_weight))


FAR = 1.5
"""Distance of the rows made far away, in units of the farthest fit row's from the centre."""
_FAR_ROWS = 250


def _far_away(
    placement: Placement,
    rows: FitRows,
    centres: FloatArray,
    wishes: Wishes,
    executor: Executor | None,
) -> Located | None:
    """Rows made far outside the data, half in random directions and half in those of the data.

    None for a fixed floor, and where no row is far: without a number among the features, or if the
    model refuses such rows.
    """
    if wishes.log_floor != "quantile":
        return None
    given = rows.X if isinstance(rows.X, pd.DataFrame) else np.asarray(rows.X)
    frame = pd.DataFrame(given).infer_objects()
    frame.columns = pd.Index([str(at) for at in range(frame.shape[1])])
    frame = frame.iloc[np.argsort(row_keys(frame))]  # draws must not depend on the rows' order
    try:
        where = extent(frame)
        made = pd.concat(
            [
                on_spheres(frame, where, (FAR,), _FAR_ROWS, wishes.seed),
                outward(frame, where, FAR, _FAR_ROWS, wishes.seed),
            ],
            ignore_index=True,
        )
        if isinstance(given, pd.DataFrame):
            return placement.locate(
                made.set_axis(given.columns, axis=1), centres, executor=executor
            )
        return placement.locate(made.to_numpy(), centres, executor=executor)
    except InputError:
        return None


def _variance_floor(
    wishes: Wishes,
    placement: Placement,
    centres: FloatArray,
    has_holdout: bool,
    executor: Executor | None,
) -> tuple[float, FloatArray | None]:
    """The mean amount added to the variances, and its shape over the coordinates."""
    wish = wishes.variance_floor
    if wish == "auto":
        follows = wishes.log_floor == "quantile" and has_holdout
        wish = "spacing" if follows else PAPERS_VARIANCE_FLOOR
    if wish != "spacing":
        return float(wish), None
    near = None if placement.distance == "euclidean" else placement.polytopes
    spacing = neighbour_spacing(near, centres, seed=wishes.seed, executor=executor)
    # Each coordinate of a categorical column gets the spacing of the whole column. With its own
    # spacing, a row of a rare category would have a lower density than all foreign rows, and would
    # lower the floor.
    for block in placement.coordinates.category_blocks:
        spacing[block] = spacing[block].sum()
    spacing += PAPERS_VARIANCE_FLOOR
    return float(spacing.mean()), spacing / spacing.mean()


def _with_floor_and_gamma(graph: KernelDensityGraph, wishes: Wishes) -> KernelDensityGraph:
    """The graph with the floor and gamma of the settings."""
    if wishes.log_floor != "quantile":
        graph = graph.with_settings(log_floor=float(wishes.log_floor))
    elif graph.n_holdout:
        graph = graph.with_settings(floor_quantile=wishes.floor_quantile)
    return graph.with_settings(gamma=graph.selection().best_gamma)
