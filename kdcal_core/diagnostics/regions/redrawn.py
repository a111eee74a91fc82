"""Regions found and judged on the same rows, with redrawn outcomes as the null."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.regions.judging import Place, by_stated
from kdcal_core.diagnostics.regions.results import Region
from kdcal_core.diagnostics.targets import Target
from kdcal_core.partition.tree import BinnedInputs, Criterion, PartitionTree, Residual
from kdcal_core.progress import Progress

Grow = Callable[[Criterion], PartitionTree]

_AT_ONCE = ", for all regions that could be found at once"


def residuals(goal: Target, hit: FloatArray) -> Residual:
    """Outcome minus stated probability, with its variance under the stated one."""
    return Residual(hit - goal.score, goal.score * (1.0 - goal.score), goal.weight)


def largest_when_redrawn(
    goal: Target,
    binned: BinnedInputs,
    grow: Grow,
    redraws: int,
    seed: int,
    progress: Progress | None = None,
) -> FloatArray:
    """Largest evidence in a leaf, of trees grown on outcomes drawn as they are stated, (redraws,).

    Evidence is a chi-square: the squared sum of a leaf's residuals over their variance.
    """
    # a separate stream, because a caller may have drawn the rows with the same seed
    rng = np.random.default_rng([seed, redraws])
    largest = np.empty(redraws)
    for draw in range(redraws):
        if progress is not None:
            progress(draw / redraws, f"Outcomes drawn again, {draw + 1:,} of {redraws:,}")
        criterion = residuals(goal, (rng.random(len(goal.score)) < goal.score).astype(np.float64))
        largest[draw] = evidence(criterion, grow(criterion).apply(binned)).max()
    return largest


def evidence(criterion: Criterion, leaf: IntArray) -> FloatArray:
    """Chi-square of each leaf's residuals."""
    residual, variance = (np.bincount(leaf, weights=v) for v in criterion.stats.values.T)
    return np.asarray(residual**2 / variance)


def judged_by_redraws(
    goal: Target,
    places: Sequence[Place],
    leaf: IntArray,
    found: FloatArray,
    largest: FloatArray,
    level: float,
) -> tuple[Region, ...]:
    """Regions compared with the largest evidence that chance gives.

    A p value is the share of redraws, with the observed rows counted in, whose largest evidence
    reaches the region's, so it is corrected for the whole search. Intervals and the minimum
    detectable gap follow from the largest evidence that is not yet a fault.
    """
    refused = int(np.ceil((1.0 - level) * (len(largest) + 1.0))) - 1  # p values below 1 - level
    alone = float(2.0 * ndtr(-(np.sort(largest)[-refused] ** 0.5)))
    judge = by_stated(goal, 1.0 - alone)
    total = float(goal.weight.sum())
    regions = []
    for place in places:
        rows = np.flatnonzero(leaf == place.leaf)
        region = judge(place, rows, float(goal.weight[rows].sum()) / total, alone)
        p = (1.0 + float((largest >= found[place.leaf]).sum())) / (len(largest) + 1.0)
        observed, gap = (
            replace(one, level=level, interval=one.interval + _AT_ONCE)
            for one in (region.observed, region.gap)
        )
        regions.append(
            replace(
                region,
                observed=observed,
                gap=gap,
                p_value=p,
                adjusted_p=p,
                fault=region.fault if p < 1.0 - level else "none",
            )
        )
    return tuple(regions)
