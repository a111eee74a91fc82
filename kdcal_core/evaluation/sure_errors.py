"""MMC*: the confidence of the wrong predictions, by which calibrators are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.evaluation.counted_pair import CountedPair
from kdcal_core.evaluation.measures import Drawn, Judged, Measure
from kdcal_core.evaluation.spread import Spread, unbiased
from kdcal_core.statistics import bounded_mean_interval, kish, pooled, small_sample_factor, units

FEWEST = 2  # wrong rows of every method: the mean of one has no error


def _compared(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
    """Means over each method's own wrong rows, so that they are ratios of sums over all rows."""
    weight = judged.weight / judged.weight.sum()
    wrong = np.array([one.predicted != judged.y for one in judged.found], dtype=np.float64)
    if (wrong.sum(axis=1) < FEWEST).any():
        return None
    stated = np.array([one.confidence for one in judged.found])
    least = 1.0 / judged.n_classes
    shown = []
    for confidence, missed in zip(stated, wrong > 0.0, strict=True):
        value, low, high = bounded_mean_interval(
            confidence[missed],
            judged.weight[missed],
            min(least, float(confidence[missed].min())),
            1.0,
            drawn.level,
            None if judged.dependence is None else judged.dependence.only(missed),
        )
        shown.append(
            Estimate(
                name="Mean max confidence on errors (MMC*)",
                label="Confidence on errors",
                value=value,
                low=low,
                high=high,
                n=int(missed.sum()),
                level=drawn.level,
                interval="normal, four rows at the ends of the range added",
                percent=True,
            )
        )
    values = np.array([one.value for one in shown])
    mass = wrong @ weight
    part = wrong * (stated - values[:, None]) * weight / mass[:, None]
    rows = min(kish(_units(judged, one > 0.0)) for one in wrong)
    part = pooled(part, judged.dependence)
    lags = 0 if judged.dependence is None else judged.dependence.lags
    factor = small_sample_factor(max(round(rows), 2), lags) if lags else rows / max(rows - 1.0, 1.0)
    covariance = part @ part.T * factor
    return shown, unbiased(values, covariance, max(rows - 1.0, 1.0), (1.0 - least) / rows)


def _units(judged: Judged, some: NDArray[np.bool_]) -> FloatArray:
    """Weights of the clusters or times of some rows; of independent rows those of the rows."""
    together = None if judged.dependence is None else judged.dependence.only(some)
    return units(judged.weight[some], together)


Measure(
    "mmc_errors",
    "Confidence on errors",
    "Mean confidence of the wrong predictions, MMC* in the papers. Lower is better: a model should "
    "doubt what it gets wrong. A method that doubts everything scores well too, so read it beside "
    "the log loss.",
    "probability",
    True,
    "ranking",
    "t test of a ratio of means, paired by row",
    compared=_compared,
    counted=CountedPair.confidence_on_errors,
).offer()
