"""Measures of how well a method's confidence separates foreign rows from the judged ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.auc import roc_area
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.foreign_scores import TPR, fpr_at_95_tpr, of_clusters, ood_auroc
from kdcal_core.evaluation.measures import Drawn, Judged, Measure
from kdcal_core.evaluation.spread import Spread, of_areas, unbiased
from kdcal_core.statistics import (
    Resamples,
    kish,
    pooled,
    side_by_side,
    small_sample_factor,
    units,
)

SPREAD = 8.0  # standard errors within which every draw's threshold lies
BLOCK = 100  # draws at once


def _confidences(judged: Judged) -> list[tuple[FloatArray, FloatArray]]:
    """Largest probability of each judged row (n,) and of each far row (m,), for every method."""
    pairs = zip(judged.found, judged.far, strict=True)
    return [(one.proba.max(axis=1), far.max(axis=1)) for one, far in pairs]


def _given(judged: Judged, drawn: Drawn) -> dict[str, Any]:
    return {
        "level": drawn.level,
        "weight_in": judged.design,
        "dependence_out": judged.far_dependence,
    }


def _shown(
    measure: Callable[..., Estimate], sides: list[tuple[FloatArray, FloatArray]], given: Any
) -> list[Estimate]:
    return [measure(*each, by="confidence", **given) for each in sides]


def _area(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
    if not judged.far:
        return None
    sides = _confidences(judged)
    n, m = (len(one) for one in sides[0])
    ordinary = np.arange(n + m) < n
    weight = np.concatenate([judged.weight, np.ones(m)])
    areas, parts = zip(
        *(roc_area(np.concatenate(each), ordinary, weight) for each in sides), strict=True
    )
    share = weight / np.where(ordinary, judged.weight.sum(), m)
    together = side_by_side(judged.dependence, n, judged.far_dependence, m)
    shown = _shown(ood_auroc, sides, _given(judged, drawn))
    part, side, far = np.array(parts), ordinary.astype(np.int64), judged.far_dependence
    if far is not None and together is not None and far.kind == "cluster":
        share = units(share, together)
        part, side, weight = of_clusters(part, side, weight, together)
        together = None
    return shown, of_areas(np.array(areas), part, share, side, weight, together)


def _taken_for_ordinary(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
    if not judged.far:
        return None
    sides, weight = _confidences(judged), judged.weight
    shown = _shown(fpr_at_95_tpr, sides, _given(judged, drawn))
    n, far, m = kish(units(weight, judged.dependence)), judged.far_dependence, len(sides[0][1])
    rates, taken = zip(*(_redrawn(*each, weight, drawn.rows) for each in sides), strict=True)
    away, size = np.array([one - one.mean() for one in taken]), float(m * max(m - 1, 1))
    if far is not None:
        away, n_far = pooled(away, far), len(units(np.ones(m), far))
        size, m = m**2 / small_sample_factor(max(n_far, 2), far.lags), n_far
    covariance = np.atleast_2d(np.cov(np.array(rates))) + away @ away.T / size
    value = np.array([one.value for one in shown])
    # as if half a row at each end of the range were added, so that rows that agree are not certain
    return shown, unbiased(value, covariance, max(min(n, m) - 1.0, 1.0), 1.0 / min(n, m))


def _redrawn(
    ordinary: FloatArray, foreign: FloatArray, weight: FloatArray, draws: Resamples
) -> tuple[FloatArray, FloatArray]:
    """FPR@95 for redrawn ordinary rows (B,), and which foreign rows are taken for ordinary (m,).

    Only the lowest rows can be a threshold of any draw, so only these are ordered.
    """
    n_groups = draws.times.shape[1]
    rows = bin_sums(draws.group, n_groups, weight)
    total = draws.times @ rows
    error = np.sqrt(TPR * (1.0 - TPR) / min(kish(rows), kish(weight)))
    order = np.argsort(ordinary, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    low = order[: int(np.searchsorted(share, 1.0 - TPR + SPREAD * error)) + 1]
    thresholds = np.empty(len(total))
    for start in range(0, len(total), BLOCK):
        block = slice(start, start + BLOCK)
        sums = np.cumsum(draws.times[block][:, draws.group[low]] * weight[low], axis=1)
        # the first row after which more than 5% of the weight lies below
        past = sums > (1.0 - TPR) * total[block, None] * (1.0 + 1e-12)
        at = np.where(past.any(axis=1), past.argmax(axis=1), len(low) - 1)
        thresholds[block] = ordinary[low[at]]
    ranked = np.sort(foreign)
    rates = 1.0 - np.searchsorted(ranked, thresholds) / len(ranked)
    threshold = ordinary[order[np.searchsorted(share, (1.0 - TPR) * (1.0 + 1e-12), side="right")]]
    return np.asarray(rates), (foreign >= threshold).astype(np.float64)


Measure(
    "foreign_auc",
    "AUROC, foreign rows",
    "How well ordinary and foreign rows are distinguished: the chance that an ordinary row "
    "scores above a foreign one. 1 is best, 0.5 is guessing.",
    "share",
    False,
    "outside",
    "DeLong's covariances, with t quantiles",
    compared=_area,
).offer()

Measure(
    "fpr95",
    "FPR@95",
    "Share of foreign rows taken for ordinary where 95% of the ordinary rows are. 0% is best.",
    "share",
    True,
    "outside",
    "both samples redrawn with the same rows for all methods",
    compared=_taken_for_ordinary,
).offer()
