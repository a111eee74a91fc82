"""Measures of foreign rows: OCE, and how well a score separates them from ordinary rows.

Equations are those of Dey et al., *Simple Calibration via Geodesic Kernels*,
https://openreview.net/forum?id=dpcRp8ix5T
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import betainc, gammaln, xlog1py, xlogy

from kdcal_core.data import FloatArray, IntArray, check_columns, check_proba, check_weight
from kdcal_core.diagnostics.auc import area_interval, roc_area
from kdcal_core.diagnostics.estimate import Estimate, share_estimate
from kdcal_core.diagnostics.targets import check_choice, check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    bounded_mean_interval,
    dependence_of,
    effective_size,
    kish,
    largest_share,
    pooled,
    side_by_side,
    units,
)

TPR = 0.95
"""Share of the ordinary rows that FPR@95 accepts."""

Score = Literal["density", "confidence"]


def ood_calibration_error(
    proba: Any,
    prior: Any,
    *,
    prior_kind: Literal["given", "empirical"] = "given",
    prior_rows: float | None = None,
    level: float = 0.95,
    dependence: Dependence | None = None,
) -> Estimate:
    """OCE: mean distance of foreign rows' confidence from the prior's (Dey et al., Eq. 20).

    Parameters
    ----------
    proba : (n, K) array-like
        Probabilities of foreign rows.
    prior : (K,) array-like
        Class probabilities far from all data.
    prior_kind : {"given", "empirical"}
        Whether the prior is the true one (Simple Calibration) or the class shares in the data
        (Deep Discriminative to Kernel Density Graph); the estimate's label says which.
    prior_rows : float, optional
        Effective number of rows in which the class shares were seen. The interval then accounts
        for the largest share's own error, which is independent of the foreign rows.
    level : float
        Level of the interval, to which four rows at the ends of the range are added.
    dependence : Dependence, optional
        Of the foreign rows. The interval is then by t quantile.

    Raises
    ------
    InputError
        For values that are not probabilities (the row is named), or a prior of another length.

    Examples
    --------
    >>> ood_calibration_error([[0.9, 0.1], [0.5, 0.5]], [0.5, 0.5]).value
    0.2
    """
    check_level(level)
    check_choice("prior_kind", prior_kind, ("given", "empirical"))
    proba = check_columns(proba)
    expected = _prior(prior, proba.shape[1]).max()
    distance = np.abs(proba.max(axis=1) - expected)
    most = max(1.0 - expected, expected - 1.0 / proba.shape[1])
    ones, together = np.ones(len(proba)), _unless_alone(dependence)
    value, low, high = bounded_mean_interval(distance, ones, 0.0, most, level, together)
    by = "normal" if together is None else "t quantile"
    interval = f"{by}, four rows at the ends of the range added"
    if prior_rows is not None:
        least, most = _prior_reach(proba.max(axis=1), prior, prior_rows, level)
        low = max(value - float(np.hypot(value - low, value - least)), 0.0)
        high = value + float(np.hypot(high - value, most - value))
        interval += f", with the error of class shares seen in {prior_rows:,.0f} rows"
    return Estimate(
        name=f"Out-of-distribution calibration error (OCE, Dey et al., Eq. 20), {prior_kind} prior",
        label=f"OCE, {prior_kind} prior",
        value=value,
        low=low,
        high=high,
        n=len(proba),
        level=level,
        interval=interval,
    )


def _prior_reach(
    confidence: FloatArray, prior: Any, rows: float, level: float
) -> tuple[float, float]:
    """Least and largest mean distance over all confidences that the prior may have."""
    seen, low, high = largest_share(prior, rows, level)
    # the mean distance is convex, so it is largest at an end and smallest near the median
    tried = [low, seen, high, float(np.clip(np.median(confidence), low, high))]
    found = [float(np.abs(confidence - one).mean()) for one in tried]
    return min(found), max(found)


def ood_auroc(
    score_in: Any,
    score_out: Any,
    *,
    by: Score = "density",
    level: float = 0.95,
    weight_in: Any = None,
    dependence_out: Dependence | None = None,
) -> Estimate:
    """Probability that an ordinary row scores above a foreign one; ties count half.

    Ordinary rows are the positives, and a higher score means more ordinary.

    Parameters
    ----------
    score_in, score_out : (n,), (m,) array-like
        Scores of ordinary and of foreign rows; infinities are ranked like any number.
    by : {"density", "confidence"}
        Kind of score, for the estimate's name. Use a log density if there is one, and the largest
        probability only for a model without a density: a foreign row gets the prior, which is
        itself confident if one class is frequent.
        With a forest's kernel density graph in three dimensions and rows at three times the
        reach of the data, the AUROC by confidence is 0.98 with balanced classes and 0.75 with
        90% in one class; by the density it is 1.00 for both.
    level : float
        Level of the interval, computed as in :func:`kdcal_core.diagnostics.auc`.
    weight_in : (n,) array-like or RowDesign, optional
        Weights of the ordinary rows, with or without how they depend on one another.
    dependence_out : Dependence, optional
        Of the foreign rows, by clusters or times as that of the ordinary rows. No cluster has rows
        of both kinds.

    Raises
    ------
    InputError
        For a missing score (the message names the row), a side without rows, or weights that are
        not positive numbers.

    Examples
    --------
    >>> ood_auroc([0.9, 0.8, 0.6], [0.7, 0.5]).value.__round__(4)
    0.8333
    """
    check_level(level)
    check_choice("by", by, ("density", "confidence"))
    ordinary, foreign = _scores(score_in, "ordinary"), _scores(score_out, "foreign")
    n, m = len(ordinary), len(foreign)
    side = (np.arange(n + m) < n).astype(np.int64)
    weight = np.concatenate([check_weight(weight_in, n), np.ones(m)])
    apart = _unless_alone(dependence_out)
    together = side_by_side(dependence_of(weight_in), n, apart, m)
    area, part = roc_area(np.concatenate([ordinary, foreign]), side == 1, weight)
    if apart is not None and together is not None and apart.kind == "cluster":
        part, side, weight = of_clusters(part, side, weight, together)
        together = None
    low, high, how = area_interval(area, part, side, weight, level, dependence=together)
    return Estimate(
        name=f"AUROC of ordinary against foreign rows, by {by}",
        label="AUROC, foreign rows",
        value=area,
        low=low,
        high=high,
        n=n + m,
        level=level,
        interval=how,
        lower_is_better=False,
    )


def fpr_at_95_tpr(
    score_in: Any,
    score_out: Any,
    *,
    by: Score = "density",
    level: float = 0.95,
    weight_in: Any = None,
    dependence_out: Dependence | None = None,
) -> Estimate:
    """Share of foreign rows accepted where 95% of the ordinary rows are accepted (FPR@95).

    The threshold is the largest score that at least 95% of the ordinary rows reach. Arguments and
    errors as for :func:`ood_auroc`.

    The interval accounts for both samples: the true threshold lies above K of the ordinary rows,
    where K is binomial(n, 0.05), and beyond a given threshold the share follows Jeffreys' beta
    distribution. The limits are quantiles of that mixture. With weights, n is their effective
    number (Kish), and K of n is a share of the weight; of dependent ordinary rows it is that number
    over the design effect of the share below the threshold. Dependent foreign rows count as many
    as independent ones would that say as much of the share.

    Examples
    --------
    >>> fpr_at_95_tpr([0.9, 0.8, 0.7, 0.6], [0.65, 0.5, 0.1, 0.0]).value
    0.25
    """
    check_level(level)
    check_choice("by", by, ("density", "confidence"))
    ordinary, foreign = _scores(score_in, "ordinary"), np.sort(_scores(score_out, "foreign"))
    n, m = len(ordinary), len(foreign)
    weight, order = check_weight(weight_in, n), np.argsort(ordinary, kind="stable")
    ordinary, weight = ordinary[order], weight[order]
    threshold = ordinary[_after(weight, np.array([1.0 - TPR]))[0]]
    value = float(m - np.searchsorted(foreign, threshold)) / m
    rows = kish(weight)
    if (together := dependence_of(weight_in)) is not None:
        below = (ordinary < threshold).astype(np.float64)
        rate = float(np.average(below, weights=weight))
        rows = effective_size(below - rate, weight, together.only(order))
    far_rows, apart = float(m), _unless_alone(dependence_out)
    if apart is not None:
        taken = (np.asarray(score_out, dtype=np.float64) >= threshold).astype(np.float64)
        far_rows = min(effective_size(taken - value, np.ones(m), apart), far_rows)
    low, high = _fpr_interval(ordinary, weight, foreign, level, rows, far_rows)
    return Estimate(
        name=f"False positive rate at 95% true positive rate, ordinary rows positive, by {by}",
        label="FPR@95",
        value=value,
        low=min(low, value),
        high=max(high, value),
        n=n + m,
        level=level,
        interval="Jeffreys, threshold binomial",
        percent=True,
    )


def unknown_share(unknown: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Share of rows whose density lies below a graph's floor, with Clopper-Pearson's interval.

    It should be small for ordinary rows and large for foreign ones. ``sample_weight`` may be a
    :class:`kdcal_core.statistics.RowDesign`; dependent rows then count by their design effect.

    Raises
    ------
    InputError
        If there are no rows.

    Examples
    --------
    >>> unknown_share([True, False, False, False]).value
    0.25
    """
    check_level(level)
    below = np.asarray(unknown, dtype=bool)
    if below.ndim != 1 or len(below) == 0:
        raise InputError(
            f"The flags have shape {below.shape}",
            fix="Give one flag for each row, and at least one row.",
        )
    weight, hit = check_weight(sample_weight, len(below)), below.astype(np.float64)
    value = float(weight @ hit / weight.sum())
    rows = effective_size(hit - value, weight, dependence_of(sample_weight))
    name = "Share of ordinary rows whose density lies below the floor"
    return share_estimate(name, "Called unknown", value, rows, len(below), level)


def _unless_alone(dependence: Dependence | None) -> Dependence | None:
    """The dependence; None too where each row is a cluster of its own."""
    return None if dependence is None or dependence.alone else dependence


def of_clusters(
    part: FloatArray, side: IntArray, weight: FloatArray, dependence: Dependence
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Parts (..., n), side (n,) and weight (n,) of rows as those of the clusters, each of one side.

    A few clusters on one side, however many are on the other, say little about how they differ.

    Examples
    --------
    >>> pair = Dependence.of("cluster", [7, 7, 8])
    >>> parts = of_clusters(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.ones(3), pair)
    >>> [one.tolist() for one in parts]
    [[3.0, 4.0], [0, 1], [2.0, 1.0]]
    """
    every, first = np.unique(dependence.unit, return_index=True)
    return pooled(part, dependence)[..., every], side[first], units(weight, dependence)


def _after(weight: FloatArray, share: FloatArray) -> IntArray:
    """Index of the last sorted row that at most this share of the weight comes before, (k,)."""
    before = np.concatenate([[0.0], np.cumsum(weight)[:-1]]) / weight.sum()
    return np.asarray(np.searchsorted(before, share + 1e-12, side="right") - 1)


def _fpr_interval(
    ordinary: FloatArray,
    weight: FloatArray,
    foreign: FloatArray,
    level: float,
    rows: float,
    far_rows: float,
) -> tuple[float, float]:
    n, m = max(round(rows), 1), len(foreign)
    k = np.arange(n + 1)
    log_mass = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    mass = np.exp(log_mass + xlogy(k, 1.0 - TPR) + xlog1py(n - k, -(1.0 - TPR)))
    # a threshold above k ordinary rows lies above the k-th and at most at the next
    each = ordinary[_after(weight, np.arange(n) / n)]
    most = m - np.concatenate([[0], np.searchsorted(foreign, each, side="right")])
    least = m - np.concatenate([np.searchsorted(foreign, each, side="left"), [m]])
    likely = mass > 1e-12
    taken = 0.5 * (most + least)[likely] * (far_rows / m)
    mass = mass[likely] / mass[likely].sum()
    tail = (1.0 - level) / 2.0
    low, high = (
        _mixture_quantile(mass, taken + 0.5, far_rows - taken + 0.5, p) for p in (tail, 1.0 - tail)
    )
    return low, high


def _mixture_quantile(mass: FloatArray, a: FloatArray, b: FloatArray, p: float) -> float:
    """The p-quantile of a mixture of beta(a, b), by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        reached = float(mass @ betainc(a, b, middle)) >= p
        low, high = (low, middle) if reached else (middle, high)
    return 0.5 * (low + high)


def _scores(scores: Any, noun: str) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"The scores of the {noun} rows have shape {values.shape}",
            fix="Give one score for each row, and at least one row.",
        )
    missing = np.isnan(values)
    if missing.any():
        raise InputError(
            f"A score of the {noun} rows is missing",
            fix="Remove the row or score it again.",
            row=int(np.argmax(missing)) + 1,
        )
    return values


def _prior(prior: Any, n_classes: int) -> FloatArray:
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != (n_classes,):
        raise InputError(
            f"The prior has shape {values.shape}, but there are {n_classes} classes",
            fix="Give one probability for each class.",
        )
    try:
        return np.asarray(check_proba(values[None, :])[0])
    except InputError as error:
        raise InputError(f"In the prior: {error.what}", fix=error.fix) from error
