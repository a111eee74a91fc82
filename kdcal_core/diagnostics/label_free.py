"""Accuracy, AUROC, event rate and calibration error of rows without labels, by covariate shift.

Confidence-based performance estimation (CBPE) with a calibration fitted for the new rows (M-CBPE;
Białek, Kivimäki, Kuberski and Perrakis, *Estimating Model Performance Under Covariate Shift Without
Labels*, https://arxiv.org/abs/2401.08348). The intervals are this module's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from kdcal_core.data import FloatArray, check_columns, check_rows, column_names
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.auc import auc, roc_area
from kdcal_core.diagnostics.calibration_error import confidence_calibration_error
from kdcal_core.diagnostics.estimate import Estimate, share_estimate
from kdcal_core.diagnostics.score_weights import (
    Grid,
    RowRatios,
    batched_logistic,
    feature_ratios,
    score_grid,
    score_ratios,
)
from kdcal_core.diagnostics.shift import check_draws, checked_scores
from kdcal_core.diagnostics.targets import (
    Target,
    check_choice,
    check_level,
    check_seed,
    confidence_target,
    targets,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    RowDesign,
    bin_dependence,
    clopper_pearson,
    design_effect,
    design_of,
    effective_size,
    kish,
)
from kdcal_core.text import number_text

Weighting = Literal["nothing", "scores", "features"]

DRAWS = 300
LEAST_EFFECTIVE = 50
"""Fewer effective reference rows give no estimate."""

MOST_OUTSIDE = 0.1
"""No estimate if more of the new rows than this are surely unlike all reference rows."""

ASSUMPTIONS: dict[Weighting, tuple[str, ...]] = {
    "nothing": (
        "Rows with the same score have the same chance of the event in both tables.",
        "Only the scores' distribution changed. A change of what the inputs mean cannot be seen.",
    ),
    "scores": (
        "Rows with the same score have the same chance of the event in both tables.",
        "Only the scores' distribution changed. A change of what the inputs mean cannot be seen.",
    ),
    "features": (
        "Rows with the same inputs have the same chance of the event in both tables (covariate "
        "shift): P(y|x) did not change.",
        "The inputs given here are all that decide this chance.",
        "The weights are taken as known: that they are estimated is not in the intervals.",
    ),
}


@dataclass(frozen=True)
class WithoutLabels:
    """One measure of new rows without labels.

    Attributes
    ----------
    rows : Estimate
        Of these rows: the interval says where the measure will lie when their labels are known.
        It allows for chance in the outcomes and for the uncertainty of the calibration.
    population : Estimate
        Of the population the rows come from: the interval allows for the sampling of rows and for
        the uncertainty of the calibration.
    reference : Estimate
        The same measure on the reference rows, from their labels.
    """

    rows: Estimate
    population: Estimate
    reference: Estimate


@dataclass(frozen=True, eq=False)
class LabelFree:
    """What can be said about one target, the event or "the prediction is right", without labels.

    Attributes
    ----------
    rate : WithoutLabels
        Share of rows in which the event happens: the accuracy, if scores are confidences.
    auc : WithoutLabels
        AUROC of the scores.
    calibration_error : Estimate
        ECE of the scores on many rows like the new ones: that of the reference rows, weighted.
        ``expected`` is its mean for calibrated scores. The ECE that the labels of few new rows show
        is larger on average, because chance adds to it, and often beyond this interval.
    reference_error : Estimate
        ECE on the reference rows.
    weighted_by : {"nothing", "scores", "features"}
        What the reference rows were weighted by before the calibration was fitted.
    effective_rows : float
        Kish's effective number of reference rows under these weights.
    outside : Estimate
        Share of new rows that are unlike all reference rows: their ratio of densities is above that
        of any reference row, or their score is beyond all reference scores.
    covered : bool
        Whether the reference rows cover the new ones. If not, no value is given.
    assumptions, cautions : tuple of str
    n_reference, n_new, draws, seed : int
    """

    rate: WithoutLabels
    auc: WithoutLabels
    calibration_error: Estimate
    reference_error: Estimate
    weighted_by: Weighting
    effective_rows: float
    outside: Estimate
    covered: bool
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...]
    n_reference: int
    n_new: int
    draws: int
    seed: int


@dataclass(frozen=True, eq=False)
class LabelFreePerformance:
    """Estimates without labels of a classifier: of its predictions, and of one event.

    ``predictions.rate`` is the accuracy. ``event`` is None if no event is asked for.
    """

    predictions: LabelFree
    event: LabelFree | None


@dataclass(frozen=True)
class ComparedMeasure:
    """A measure of reference rows and of new ones.

    Attributes
    ----------
    title : str
        May hold the name of a class: untrusted text.
    reference, new : Estimate
        The latter without labels.
    labels : Estimate or None
        Of the new rows with a label, from these labels; None without any.
    """

    title: str
    reference: Estimate
    new: Estimate
    labels: Estimate | None


def label_free(
    score: Any,
    hit: Any,
    new_score: Any,
    *,
    weighting: Weighting | None = None,
    features: Any = None,
    new_features: Any = None,
    dependence: Dependence | None = None,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> LabelFree:
    """Rate, AUROC and calibration error of new rows, from reference rows with labels.

    Parameters
    ----------
    score : (n,) array-like in [0, 1]
        Probabilities of the event, or confidences, of reference rows that did not train the model.
    hit : (n,) array-like of 0 and 1
        Whether the event happened, or the prediction was right.
    new_score : (m,) array-like in [0, 1]
    weighting : {"nothing", "scores", "features"}, optional
        What tells old rows from new ones. By default the features if they are given, else the
        scores. "nothing" is CBPE: the calibration of the reference rows as they are.
    features, new_features : (n, d), (m, d) array-like or DataFrame, optional
        The model's inputs, the same columns in both.
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first, so that a cluster may have rows in both tables.
    level : float
    n_draws, seed : int

    Returns
    -------
    LabelFree

    Raises
    ------
    InputError
        For a score, label or setting that is not of this form, and for features of one table only.

    Notes
    -----
    A classifier that tells new rows from reference ones gives the ratio w of their densities. A
    logistic curve of the score's two logarithms (beta calibration) is fitted to the reference
    outcomes with weights w. Its values at the new scores are chances c_i; their mean estimates the
    rate, and sum c_i (1 - c_j) [s_i > s_j] over pairs, divided by sum c_i (1 - c_j), the AUROC.
    The fit makes the weighted mean of hit - c zero. The rate is therefore right if either the
    weights or the curve is.

    What is uncertain, and where it enters:

    * the curve, from finitely many reference rows, and the ratio of the scores' densities: both are
      fitted anew in every draw. Rows have exponential weights (the Bayesian bootstrap, Rubin 1981)
      and outcomes of the fitted chances, with half a row of each outcome added, so that rows that
      were never wrong do not look certain;
    * outcomes: hits of the new rows are drawn with their chances (a Poisson binomial number), for
      ``rows``;
    * the sampling of new rows: they are resampled, for ``population``.

    With features the ratio comes from gradient boosted trees by cross-fitting, and is not fitted
    anew; clusters are held out whole. For the draws, scores are merged into at most 256 cells. The
    calibration error is that of the reference rows with weights w, with its own interval.

    Of dependent rows, each source counts as many fewer rows as its design effect says: that of the
    reference outcomes about the curve; that of the chances of the new rows; and, for outcomes of
    new rows, that of the reference outcomes' correlation with the new table's clusters or times.
    All of a curve has the design effect of its mean. The noise of the reference scores' ratio
    counts with the outcomes' effect too. With 40 reference clusters of 10 rows and 40 new ones, and
    correlations of .2 of scores and outcomes, intervals at 95% held the rate of the rows in 60 of
    60 runs and that of the population in 59 (as if rows were independent: 57 and 52); with 10 new
    clusters of 20 rows in 55 and 57 (45 and 46).

    Measured coverage is in ``tests/benchmarks/RESULTS.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s, new = rng.beta(2, 2, 2000), rng.beta(3, 2, 1000)
    >>> found = label_free(s, (rng.random(2000) < s**2).astype(int), new)
    >>> true = float((new**2).mean())
    >>> found.rate.rows.low < true < found.rate.rows.high, found.covered
    (True, True)
    """
    together = _beyond_rows(dependence)
    target = confidence_target(score, hit, _reference_design(together, len(score)))
    new = checked_scores(new_score, "new")
    _check(weighting, features, new_features, level, n_draws, seed)
    by = weighting or ("scores" if features is None else "features")
    ratios = feature_ratios(features, new_features, seed, together) if by == "features" else None
    return _of_target(target, new, by, ratios, together, level, n_draws, seed)


def label_free_performance(
    proba: Any,
    y: Any,
    new_proba: Any,
    *,
    event: int | None = None,
    weighting: Weighting | None = None,
    features: Any = None,
    new_features: Any = None,
    dependence: Dependence | None = None,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> LabelFreePerformance:
    """:func:`label_free` of the predicted classes, which gives the accuracy, and of one event.

    Parameters
    ----------
    proba, new_proba : (n, K), (m, K) array-like or data frames, or (n,), (m,)
        Probabilities of reference and of new rows.
    y : (n,) array-like
        True classes of the reference rows, as for :func:`kdcal_core.diagnostics.reliability`.
    event : int, optional
        Class whose rate and AUROC are estimated; with two classes the second by default.
    weighting, features, new_features, dependence, level, n_draws, seed
        As for :func:`label_free`.

    Raises
    ------
    InputError
        As for :func:`label_free`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.beta(2, 2, 2000), rng.beta(4, 2, 1000)
    >>> both = [np.column_stack([1 - one, one]) for one in (p, new)]
    >>> found = label_free_performance(both[0], (rng.random(2000) < p).astype(int), both[1])
    >>> truth = float(np.maximum(new, 1 - new).mean())
    >>> found.predictions.rate.rows.low < truth < found.predictions.rate.rows.high
    True
    """
    _check(weighting, features, new_features, level, n_draws, seed)
    together = _beyond_rows(dependence)
    named = column_names(proba)
    proba, y, classes = check_rows(proba, y)
    design = _reference_design(together, len(proba))
    (predictions,) = targets(proba, y, design, "confidence")
    new = check_columns(new_proba, classes, named, n_classes=proba.shape[1])
    by = weighting or ("scores" if features is None else "features")
    ratios = feature_ratios(features, new_features, seed, together) if by == "features" else None
    settings = by, ratios, together, level, n_draws, seed
    found = _of_target(predictions, np.minimum(new.max(axis=1), 1.0), *settings)
    found = replace(found, rate=_named(found.rate, "Accuracy", "Accuracy", False))
    if event is None and new.shape[1] == 2:
        event = 1
    if event is None:
        return LabelFreePerformance(found, None)
    (one,) = targets(proba, y, design, "class", event)
    of_event = _of_target(one, np.minimum(new[:, event], 1.0), *settings)
    return LabelFreePerformance(found, of_event)


def _beyond_rows(dependence: Dependence | None) -> Dependence | None:
    """The dependence; None too where each row is a cluster of its own."""
    return None if dependence is None or dependence.alone else dependence


def _reference_design(together: Dependence | None, n: int) -> RowDesign | None:
    return None if together is None else RowDesign(None, together.only(slice(None, n)))


def _of_target(
    target: Target,
    new: FloatArray,
    by: Weighting,
    ratios: RowRatios | None,
    together: Dependence | None,
    level: float,
    n_draws: int,
    seed: int,
) -> LabelFree:
    grid = score_grid(target, new)
    weights = _weights(grid, target, new, by, ratios)
    effective = kish(weights.reference)
    fresh = None if together is None else together.only(slice(len(target.score), None))
    outside = _outside(target.score, new, weights, level, fresh)
    unlike = f"{_share_text(outside)} of the new rows {_unlike(target, by)}"
    why_not = _why_not(effective, outside, unlike)
    reference = _reference(target, level)
    if why_not:
        none = (np.nan,) * 3
        rate, area = (
            WithoutLabels(*(_estimate(kind, none, new, level, why_not),) * 2, one)
            for kind, one in zip(("rate", "auc"), reference, strict=True)
        )
    else:
        rate, area = _measured(
            grid, target, new, by, weights, together, level, n_draws, seed, reference
        )
    error = _error(target, None, level, seed)
    moved = error if by == "nothing" else _error(target, weights.reference, level, seed)
    if why_not:
        moved = replace(moved, value=np.nan, low=np.nan, high=np.nan, interval=why_not)
    return LabelFree(
        rate=rate,
        auc=area,
        calibration_error=replace(moved, name=f"{error.name}, weighted to the new rows"),
        reference_error=error,
        weighted_by=by,
        effective_rows=effective,
        outside=outside,
        covered=not why_not,
        assumptions=ASSUMPTIONS[by],
        cautions=_cautions(effective, len(target.score), outside, unlike),
        n_reference=len(target.score),
        n_new=len(new),
        draws=n_draws,
        seed=seed,
    )


def _weights(
    grid: Grid, target: Target, new: FloatArray, by: Weighting, ratios: RowRatios | None
) -> RowRatios:
    """Ratio of the densities at every reference and every new row."""
    if by == "nothing":
        return RowRatios(np.ones(len(target.score)), np.ones(len(new)))
    if ratios is None:
        of_cell = score_ratios(grid, grid.hit + grid.miss, grid.new)[0]
        return RowRatios(of_cell[grid.reference_cell], of_cell[grid.new_cell])
    if (len(ratios.reference), len(ratios.new)) != (len(target.score), len(new)):
        raise InputError(
            "The features have another number of rows than the scores",
            fix="Give one row of features for each score.",
        )
    return ratios


def _measured(
    grid: Grid,
    target: Target,
    new: FloatArray,
    by: Weighting,
    weights: RowRatios,
    together: Dependence | None,
    level: float,
    n_draws: int,
    seed: int,
    reference: tuple[Estimate, Estimate],
) -> tuple[WithoutLabels, WithoutLabels]:
    rng = np.random.default_rng(seed)
    # as much weight as there are effective rows, so that the added half rows count as such
    weight = weights.reference * (kish(weights.reference) / weights.reference.sum())
    hits, misses = (
        bin_sums(grid.reference_cell, grid.size, weight * side)
        for side in (target.hit, 1.0 - target.hit)
    )
    value = _chances(grid, *_with_doubt(hits[None], misses[None], 0.5, 0.5))[0]
    rate = float(value[grid.new_cell].mean())
    area = _expected_area(new, value[grid.new_cell])

    effects = _effects(grid, target, value, weight, together)
    drawn_new = _gamma(rng, grid.new, grid.new * effects.new, n_draws)
    # outcomes are redrawn with the fitted chances: residuals of the rows themselves are too small
    # where few rows decide the curve
    if by == "scores":
        mass = square = grid.hit + grid.miss
    else:
        mass, square = hits + misses, bin_sums(grid.reference_cell, grid.size, weight**2)
    old_hit, old_miss = (
        _gamma(rng, mass * side, square * side * effects.reference, n_draws)
        for side in (value, 1.0 - value)
    )
    if by == "scores":
        ratio = score_ratios(grid, old_hit + old_miss, drawn_new)
        old_hit, old_miss = ratio * old_hit, ratio * old_miss
        scale = weight.sum() / (old_hit + old_miss).sum(axis=1, keepdims=True)
        old_hit, old_miss = scale * old_hit, scale * old_miss
    halves = rng.gamma(0.5, size=(2, n_draws, 1)) * effects.reference
    chance = _chances(grid, *_with_doubt(old_hit, old_miss, *halves))
    count = grid.new.astype(np.int64)
    happened = rng.binomial(count, chance).astype(np.float64)
    if together is not None:
        mean = count * chance
        happened = mean + effects.outcomes**0.5 * (happened - mean)
    of_rows = happened, grid.new - happened
    of_population = drawn_new * chance, drawn_new * (1.0 - chance)
    how = f"predictive bootstrap of calibration and outcomes, {n_draws:,} draws"
    how_many = f"bootstrap of calibration and rows, {n_draws:,} draws"
    made = []
    for kind, one, measure, known in (
        ("rate", rate, _rates, reference[0]),
        ("auc", area, _areas, reference[1]),
    ):
        ends = (_ends(one, measure(*sides), level) for sides in (of_rows, of_population))
        rows, population = (
            _estimate(kind, (one, *found), new, level, words)
            for found, words in zip(ends, (how, how_many), strict=True)
        )
        made.append(WithoutLabels(rows, population, known))
    return made[0], made[1]


@dataclass(frozen=True)
class _Effects:
    """Design effects: of reference outcomes, of the chances of new rows, and of their outcomes."""

    reference: float = 1.0
    new: float = 1.0
    outcomes: float = 1.0


def _effects(
    grid: Grid,
    target: Target,
    value: FloatArray,
    weight: FloatArray,
    together: Dependence | None,
) -> _Effects:
    if together is None:
        return _Effects()
    n, chance = len(target.score), value[grid.new_cell]
    ones = np.ones(len(chance))
    # new rows without outcomes add nothing to the correlation, and show how many depend on others
    residual = np.concatenate([target.hit - value[grid.reference_cell], 0.0 * ones])
    table = (np.arange(len(residual)) >= n).astype(np.int64)
    outcomes = bin_dependence(residual, np.concatenate([weight, ones]), table, 2, together).effect
    rows = design_effect(chance - chance.mean(), ones, together.only(slice(n, None)))
    return _Effects(float(outcomes[0]), rows, float(outcomes[1]))


def _chances(grid: Grid, hit: FloatArray, miss: FloatArray) -> FloatArray:
    """Chance of a hit in each cell, (D, C), by the curve fitted to masses (D, C)."""
    columns = grid.curve
    fitted = batched_logistic(columns, hit, miss)
    return np.asarray(expit(fitted[:, :-1] @ columns.T + fitted[:, -1:]))


def _with_doubt(
    hit: FloatArray, miss: FloatArray, more: Any, less: Any
) -> tuple[FloatArray, FloatArray]:
    """Masses with ``more`` hits and ``less`` misses added, spread like all rows."""
    spread = hit + miss
    spread = spread / spread.sum(axis=1, keepdims=True)
    return hit + more * spread, miss + less * spread


def _gamma(
    rng: np.random.Generator, mass: FloatArray, square: FloatArray, n_draws: int
) -> FloatArray:
    """Draws (D, C) of sums of exponential row weights with these sums of weights and squares."""
    some = mass > 0.0
    drawn = np.zeros((n_draws, len(mass)))
    shape, scale = mass[some] ** 2 / square[some], square[some] / mass[some]
    drawn[:, some] = rng.gamma(shape, scale, size=(n_draws, int(some.sum())))
    return drawn


def _rates(hit: FloatArray, miss: FloatArray) -> FloatArray:
    total = hit.sum(axis=1)
    return np.asarray(total / (total + miss.sum(axis=1)))


def _areas(hit: FloatArray, miss: FloatArray) -> FloatArray:
    """AUROC of masses (D, C) in increasing cells; NaN without both outcomes."""
    below = np.cumsum(miss, axis=1) - 0.5 * miss
    pairs = hit.sum(axis=1) * miss.sum(axis=1)
    won = (hit * below).sum(axis=1)
    found: FloatArray = np.divide(won, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0.0)
    return found


def _expected_area(score: FloatArray, chance: FloatArray) -> float:
    """AUROC expected of outcomes with these chances (m,): pairs of a row with itself left out."""
    m = len(score)
    weight = np.concatenate([chance, 1.0 - chance])
    area, _ = roc_area(np.tile(score, 2), np.arange(2 * m) < m, np.maximum(weight, 1e-300))
    pairs, own = chance.sum() * (1.0 - chance).sum(), float(chance @ (1.0 - chance))
    return float((area * pairs - 0.5 * own) / (pairs - own)) if pairs > own else np.nan


def _ends(value: float, drawn: FloatArray, level: float) -> tuple[float, float]:
    known = np.clip(drawn[np.isfinite(drawn)], 0.0, 1.0)
    if len(known) < 0.5 * len(drawn):
        return np.nan, np.nan
    tail = 0.5 * (1.0 - level)
    # unbiased for few draws; the default's interval is too narrow
    low, high = np.quantile(known, [tail, 1.0 - tail], method="weibull")
    return min(float(low), value), max(float(high), value)


def _reference(target: Target, level: float) -> tuple[Estimate, Estimate]:
    share = float(target.hit.mean())
    rows = effective_size(target.hit - share, target.weight, target.dependence)
    ends = clopper_pearson(share, rows, level)
    rate = _estimate("rate", (share, *ends), target.score, level, "Clopper-Pearson")
    hit = target.hit.astype(np.int64)
    area = auc(target.score, hit, level=level, sample_weight=target.design)
    return replace(rate, name="Event rate"), area


def _error(target: Target, weight: FloatArray | None, level: float, seed: int) -> Estimate:
    hit = target.hit.astype(np.int64)
    design = design_of(weight, target.dependence)
    return confidence_calibration_error(
        target.score, hit, level=level, seed=seed, sample_weight=design
    )


def _estimate(
    kind: str, values: Sequence[Any], rows: FloatArray, level: float, how: str
) -> Estimate:
    value, low, high = (float(one) for one in values)
    return Estimate(
        name="Event rate, without labels" if kind == "rate" else "AUROC, without labels",
        label="Event rate" if kind == "rate" else "AUROC",
        value=value,
        low=low,
        high=high,
        n=len(rows),
        level=level,
        interval=how,
        percent=kind == "rate",
        lower_is_better=None if kind == "rate" else False,
    )


def _named(found: WithoutLabels, name: str, label: str, lower: bool) -> WithoutLabels:
    rows, population, reference = (
        replace(
            one,
            name=one.name.replace("Event rate", name),
            label=label,
            lower_is_better=lower,
        )
        for one in (found.rows, found.population, found.reference)
    )
    return WithoutLabels(rows, population, reference)


def _outside(
    score: FloatArray,
    new: FloatArray,
    weights: RowRatios,
    level: float,
    dependence: Dependence | None,
) -> Estimate:
    flags = (new < score.min()) | (new > score.max()) | (weights.new > weights.reference.max())
    share = float(flags.mean())
    rows = effective_size(flags - share, np.ones(len(new)), dependence)
    name = "Share of new rows unlike all reference rows"
    return share_estimate(name, "Outside", share, rows, len(new), level)


def _share_text(one: Estimate) -> str:
    return number_text(one.value, one.high - one.low, True)


def _unlike(target: Target, by: Weighting) -> str:
    """What the rows outside have that no reference row has."""
    if by == "features":
        return "have features unlike those of all reference rows"
    score = "confidence" if target.label is None else "probability of the event"
    return f"have a {score} unlike that of all reference rows"


def _why_not(effective: float, outside: Estimate, unlike: str) -> str:
    if effective < LEAST_EFFECTIVE:
        return (
            f"not given: only {effective:.0f} effective reference rows resemble the new ones; at "
            f"least {LEAST_EFFECTIVE} are needed"
        )
    return f"not given: {unlike}" if outside.low > MOST_OUTSIDE else ""


def _cautions(effective: float, n: int, outside: Estimate, unlike: str) -> tuple[str, ...]:
    found = []
    if effective < 0.2 * n:
        found.append(
            f"The {n:,} reference rows count as {effective:,.0f} for the new ones: the tables "
            "differ much, and the estimates depend on few rows."
        )
    if outside.low > 2.0 / n:
        found.append(f"{unlike}. Nothing is known about them.")
    return tuple(found)


def _check(
    weighting: Weighting | None,
    features: Any,
    new_features: Any,
    level: float,
    n_draws: int,
    seed: int,
) -> None:
    check_level(level)
    check_seed(seed)
    check_draws(n_draws)
    if weighting is not None:
        check_choice("weighting", weighting, ("nothing", "scores", "features"))
    if (features is None) != (new_features is None):
        raise InputError("Features are given for one table only", fix="Give both, or none.")
    if weighting == "features" and features is None:
        raise InputError("Weights by features need features", fix="Give those of both tables.")
