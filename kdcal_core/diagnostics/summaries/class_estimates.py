"""A classifier's estimates from a summary of its rows, named as those from the rows themselves.

What is exact: accuracy, the confusion, losses and their intervals, confidence and its gap, errors
in equal-width bins, decisions at every threshold. What the cells hide is bounded: the area under
the ROC curve by :func:`area_bound`, by which its interval is widened; miscalibration and
discrimination by :func:`split_bound`; places on a lattice (smooth ECE) by 0.0001. Bins of equal
mass have their edges at ends of cells. Where classes must be taken together, the random blocks of
rows say how they vary together.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import expit

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.calibration_error import BinnedTargets, error_of_bins, resampled_groups
from kdcal_core.diagnostics.calibration_line import Line, line_intercept, line_slope
from kdcal_core.diagnostics.estimate import EVENT_GAP, Estimate, of_event
from kdcal_core.diagnostics.scores import (
    BRIER,
    CONFIDENCE,
    CONFIDENCE_ON_ERRORS,
    FOUR_ROWS,
    GAP,
    LOG_LOSS,
    OWN_VARIANCE,
    TOP_LABEL_BRIER,
    TOP_LABEL_LOG_LOSS,
    TWO_AND_TWO,
    Quantity,
    accuracy_of,
)
from kdcal_core.diagnostics.smooth_error import DIRECTION_BINS, FINE, smooth_error_of
from kdcal_core.diagnostics.summaries.class_areas import areas_of_classes, summary_auroc
from kdcal_core.diagnostics.summaries.class_split import summary_split
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.cluster_blocks import BlockSums, stretches
from kdcal_core.diagnostics.summaries.score_cells import (
    ScoreCells,
    cells_asked,
    cells_of_kind,
    class_cells,
    require_rows,
)
from kdcal_core.diagnostics.targets import Kind, Norm, Strategy
from kdcal_core.statistics import independent_rows, normal_quantile, surprisal
from kdcal_core.statistics.means import interval_of_sums

_BINS = 15
_DRAWS, _SMOOTH_DRAWS = 1000, 200


def summary_estimates(
    summary: ClassSummary, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, ...]:
    """Every scalar estimate, in the order of :func:`kdcal_core.diagnostics.all_estimates`.

    Parameters
    ----------
    summary : ClassSummary
        Of one row or more.
    level : float
        Level of the intervals, between 0 and 1.
    seed : int
        Seed of all draws.

    Raises
    ------
    InputError
        For a summary without rows, or another level.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> said = np.tile([[0.9, 0.1], [0.3, 0.7]], (50, 1))
    >>> found = summary_estimates(summarise(said, [0, 1] * 50, ("no", "yes")))
    >>> len(found), found[0].label, found[0].value
    (23, 'Accuracy', 1.0)
    """
    require_rows(summary, level)
    top = ScoreCells.of_confidence(summary)
    error = partial(summary_calibration_error, summary, level=level, seed=seed)
    return (
        *summary_tiles(summary, level=level, seed=seed),
        _at_cells(error(strategy="quantile")),
        error(debiased=True),
        error(norm="l2", debiased=True),
        error(norm="max"),
        summary_smooth_error(summary, level=level, seed=seed),
        error(kind="top-label"),
        error(kind="class"),
        summary_log_loss(summary, level=level),
        summary_brier(summary, level=level),
        *summary_split(summary, "vector", level, seed),
        _top_label(summary, "top-label Brier", top, level, TOP_LABEL_BRIER),
        *summary_split(summary, "top-label", level, seed),
        summary_auroc(summary, level=level),
        _confidence(summary, level),
        summary_confidence_on_errors(summary, level=level),
    )


def summary_tiles(
    summary: ClassSummary, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, Estimate, Estimate, Estimate]:
    """Accuracy, confidence gap, calibration error and top-label log loss.

    As :func:`kdcal_core.diagnostics.summary`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))
    >>> [tile.label for tile in summary_tiles(one)]
    ['Accuracy', 'Confidence gap', 'ECE', 'Top-label log loss']
    """
    require_rows(summary, level)
    top = ScoreCells.of_confidence(summary)
    return (
        accuracy_of_cells(top, summary.n, level),
        summary_gap(summary, level=level),
        summary_calibration_error(summary, level=level, seed=seed),
        _top_label(summary, "top-label log loss", top, level, TOP_LABEL_LOG_LOSS),
    )


def summary_event_estimates(
    summary: ClassSummary, event: int, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, Estimate, Estimate, Estimate]:
    """One class's AUC, mean less rate, calibration error and log loss.

    As :func:`kdcal_core.diagnostics.event_summary`. With more than two classes the log loss is that
    of each cell's mean probability, too low by less than 0.02% of itself.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 1], ("no", "yes"))
    >>> [tile.label for tile in summary_event_estimates(one, 1)]
    ['AUROC', 'Probability minus rate', 'ECE', 'Log loss']
    """
    require_rows(summary, level)
    cells = class_cells(summary, event)
    if len(summary.classes) == 2:
        loss = _plain(summary, "log loss", LOG_LOSS, level)
    else:
        effect = cells.effect(surprisal(cells.score), surprisal(1.0 - cells.score))
        mean, *bounds = interval_of_sums(*loss_sums(cells), summary.n, level, effect=effect)
        loss = LOG_LOSS.estimate(mean, (bounds[0], bounds[1]), summary.n, level, "normal")
    return (
        areas_of_classes(summary, [event], f"the class {summary.classes[event]}", level),
        summary_gap(summary, event, level=level),
        summary_calibration_error(summary, event, level=level, seed=seed),
        of_event(loss),
    )


def summary_log_loss(summary: ClassSummary, *, level: float = 0.95) -> Estimate:
    """As :func:`kdcal_core.diagnostics.log_loss`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.5, 0.5], [0.5, 0.5]], [0, 1], ("no", "yes"))
    >>> round(summary_log_loss(one).value, 4)
    0.6931
    """
    require_rows(summary, level)
    return _plain(summary, "log loss", LOG_LOSS, level)


def summary_brier(summary: ClassSummary, *, level: float = 0.95) -> Estimate:
    """As :func:`kdcal_core.diagnostics.brier`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> summary_brier(summarise([[0.5, 0.5], [0.5, 0.5]], [0, 1], ("no", "yes"))).value
    0.5
    """
    require_rows(summary, level)
    return _plain(summary, "Brier", BRIER, level)


def loss_sums(cells: ScoreCells) -> tuple[float, float]:
    """Sum of one target's log losses and of their squares, a cell's rows at their mean score."""
    hit, miss = surprisal(cells.score), surprisal(1.0 - cells.score)
    total, square = (cells.hits @ hit**power + cells.misses @ miss**power for power in (1, 2))
    return float(total), float(square)


def summary_gap(
    summary: ClassSummary, event: int | None = None, *, level: float = 0.95
) -> Estimate:
    """Mean stated minus observed, of the confidence or of an event's probability.

    Where rows have an order in time, the variance is that of the sums by time, if these are of what
    is asked, and else that of the blocks of times.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> round(summary_gap(summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))).value, 2)
    0.3
    """
    require_rows(summary, level)
    if event is not None:
        cells = class_cells(summary, event)
        gap = gap_of_cells(cells, level, _gap_variance(summary, event))
        return replace(gap, name="Mean probability minus event rate", label=EVENT_GAP)
    said, hits = summary.moments("confidence")[0], float(np.trace(summary.joint))
    square, effect = summary.moments("top-label Brier")[0], 1.0
    if summary.clusters is not None:
        top = ScoreCells.of_confidence(summary)
        effect = top.effect(top.score - 1.0, top.score)
    variance = _gap_variance(summary, None)
    return _gap_of(said - hits, square, said, summary.n, level, effect, variance)


def _gap_variance(summary: ClassSummary, event: int | None) -> float | None:
    times = summary.by_time
    return times.gap_variance(0) if times is not None and times.event == event else None


def summary_calibration_error(
    summary: ClassSummary,
    event: int | None = None,
    *,
    kind: Kind = "confidence",
    norm: Norm = "l1",
    strategy: Strategy = "uniform",
    debiased: bool = False,
    level: float = 0.95,
    n_boot: int = _DRAWS,
    seed: int = 0,
) -> Estimate:
    """A calibration error in 15 bins, of a kind or of an event's probability.

    As :func:`kdcal_core.diagnostics.calibration_error`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))
    >>> round(summary_calibration_error(one).value, 2)
    0.4
    """
    require_rows(summary, level)
    if event is None:
        bins = _binned(summary, kind, strategy, n_boot)
    else:
        bins = _of_one(class_cells(summary, event), strategy)
    found = error_of_bins(bins, kind, norm, _BINS, strategy, debiased, level, n_boot, seed)
    return found if event is None else of_event(found)


def error_of_cells(cells: ScoreCells, level: float, seed: int) -> Estimate:
    """The expected calibration error of one target, of 15 equal bins."""
    bins = _of_one(cells, "uniform")
    return error_of_bins(bins, "confidence", "l1", _BINS, "uniform", False, level, _DRAWS, seed)


def _of_one(cells: ScoreCells, strategy: Strategy) -> BinnedTargets:
    return BinnedTargets((cells.table(_BINS, strategy),), (1.0,), int(cells.n))


def summary_smooth_error(
    summary: ClassSummary,
    event: int | None = None,
    *,
    level: float = 0.95,
    n_boot: int = _SMOOTH_DRAWS,
    seed: int = 0,
) -> Estimate:
    """The smooth ECE of the confidence, or of an event's probability.

    As :func:`kdcal_core.diagnostics.smooth_calibration_error`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise(np.full((400, 2), 0.5), np.arange(400) % 5 // 4, ("no", "yes"))
    >>> round(summary_smooth_error(one, 1).value, 2)
    0.3
    """
    require_rows(summary, level)
    cells, n = cells_asked(summary, event), summary.n
    found = smooth_error_of(
        cells.lattice_gaps(FINE),
        cells.lattice,
        lambda: cells.table(DIRECTION_BINS, "quantile"),
        n / cells.effect(1.0 - cells.score, -cells.score, of="share"),
        n,
        level,
        n_boot,
        seed,
    )
    return found if event is None else of_event(found)


def summary_line(
    summary: ClassSummary, event: int | None = None, *, level: float = 0.95
) -> tuple[Estimate, Estimate]:
    """Cox's intercept (calibration in the large) and slope of the confidence, or of a class.

    As :func:`kdcal_core.diagnostics.calibration_intercept` and ``calibration_slope``, with the
    rows of a cell at its mean score: log odds are off by less than 0.0005.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise(np.full((400, 2), 0.5), np.arange(400) % 4 // 3, ("no", "yes"))
    >>> round(summary_line(one, 1)[0].value, 3)  # log(1 / 3)
    -1.099
    """
    require_rows(summary, level)
    cells = cells_asked(summary, event)
    line = Line.of_cells(cells.score, cells.hits, cells.misses)
    first, second = line, line
    if cells.clusters is not None and line.no_slope is None:
        first, second = (line.with_effect(one) for one in line_effects(line, cells))
    elif cells.clusters is not None:
        first = line.with_effect(cells.gap_effect())
    return line_intercept(first, summary.n, level), line_slope(second, summary.n, level)


def line_effects(line: Line, cells: ScoreCells) -> tuple[float, float]:
    """By how much clusters multiply the variances of the intercept and of the slope."""
    slope = line.best_slope()
    at = line.best_intercept(slope), slope
    inverse = np.linalg.inv(line.information(*at))
    pull = inverse[1, 0] + inverse[1, 1] * line.odds
    away, alone = (
        expit(intercept + factor * line.odds)
        for intercept, factor in (at[::1], (line.best_intercept(1.0), 1.0))
    )
    return (
        cells.effect(1.0 - alone, -alone),
        cells.effect(pull * (1.0 - away), -pull * away),
    )


def _binned(
    summary: ClassSummary, kind: Kind, strategy: Strategy, n_boot: int = _DRAWS
) -> BinnedTargets:
    cells = cells_of_kind(summary, kind)
    tables = tuple(one.table(_BINS, strategy) for one in cells)
    if kind != "class":
        return BinnedTargets(tables, tuple(one.n / summary.n for one in cells), summary.n)
    n, hits, score = (part[summary.blocks[:, 0, :, 0].any(axis=1)] for part in summary.block_sums())

    def redrawn(
        chance: tuple[FloatArray, ...], gap: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        times = _block_draws(summary, len(n), n_boot, rng)
        groups = [(n[:, k], hits[:, k] - score[:, k]) for k in range(len(cells))]
        return resampled_groups(groups, tables, gap, times, rng)

    return BinnedTargets(tables, (1.0 / len(cells),) * len(cells), summary.n, redrawn)


def _block_draws(
    summary: ClassSummary, blocks: int, draws: int, rng: np.random.Generator
) -> FloatArray:
    """How often each of the blocks that have rows is drawn, (draws, blocks)."""
    n_times = 0 if summary.clusters is None else summary.clusters.names.n_times
    if n_times:
        near = stretches(n_times, len(summary.blocks))
        each = replace(near, unit=np.arange(near.n_units))
        return independent_rows(blocks, draws, blocks, rng, each).times
    times = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=draws)
    return times.astype(np.float64)


def _at_cells(estimate: Estimate) -> Estimate:
    return replace(estimate, name=f"{estimate.name}, edges at cells of the summary")


def accuracy_of_cells(top: ScoreCells, n: int, level: float) -> Estimate:
    """The share of right rows."""
    rate = float(top.hits.sum()) / n
    hit, miss = np.full_like(top.score, 1.0 - rate), np.full_like(top.score, -rate)
    return accuracy_of(rate, n / top.effect(hit, miss, of="share"), n, level)


def effect_of_sum(summary: ClassSummary, what: str) -> float:
    """By how much clusters multiply the variance of the mean of one of the sums."""
    if summary.clusters is None:
        return 1.0
    blocks = summary.block_cells(0, None)
    assert blocks is not None
    total, square = summary.moments(what)
    mean = total / summary.n
    # what the blocks' sums lose by rounding moves their mean
    totals = summary.block_totals(what)
    away = totals - totals.sum() / blocks.n * blocks.mass
    return blocks.effect(away, square - summary.n * mean * mean)


def _plain(summary: ClassSummary, what: str, quantity: Quantity, level: float) -> Estimate:
    effect = effect_of_sum(summary, what)
    mean, low, high = interval_of_sums(*summary.moments(what), summary.n, level, effect=effect)
    return quantity.estimate(mean, (low, high), summary.n, level, "normal")


def gap_of_cells(cells: ScoreCells, level: float, variance: float | None = None) -> Estimate:
    """Mean stated minus observed of one target, the rows of a cell at its mean score.

    ``variance`` is its own, where it is known.
    """
    square = float(cells.hits @ np.square(1.0 - cells.score) + cells.misses @ cells.score**2)
    said = float(cells.count @ cells.score)
    effect = cells.effect(cells.score - 1.0, cells.score)
    total = said - float(cells.hits.sum())
    return _gap_of(total, square, said, int(cells.n), level, effect, variance)


def _gap_of(
    total: float,
    square: float,
    said: float,
    n: int,
    level: float,
    effect: float,
    variance: float | None = None,
) -> Estimate:
    mean, own = said / n, square / n - (total / n) ** 2
    if variance is not None and own > 0.0:
        effect = variance * n / own
    pseudo = (mean, mean, mean - 1.0, mean - 1.0)
    _, low, high = interval_of_sums(total, square, n, level, pseudo, effect=effect)
    return GAP.estimate(total / n, (low, high), n, level, TWO_AND_TWO)


def _top_label(
    summary: ClassSummary, what: str, top: ScoreCells, level: float, quantity: Quantity
) -> Estimate:
    effect = effect_of_sum(summary, what)
    return top_label_loss(summary.moments(what), top, level, quantity, effect)


def top_label_loss(
    sums: tuple[float, float],
    top: ScoreCells,
    level: float,
    quantity: Quantity,
    effect: float = 1.0,
) -> Estimate:
    """A mean loss from its sum and that of its squares.

    With at least the variance of outcomes under the model's own probabilities.
    """
    n, s = top.n, top.score
    if quantity is TOP_LABEL_LOG_LOSS:
        spread = surprisal(1.0 - s) - surprisal(s)
    else:
        spread = np.square(s) - np.square(s - 1.0)
    chance = (s * n + 0.5) / (n + 1.0)
    own = chance * (1.0 - chance) * np.square(spread)
    half = normal_quantile(level) * float(np.sqrt(top.count @ own)) / n
    mean, low, high = interval_of_sums(*sums, n, level, effect=effect)
    bounds = min(low, mean - half), max(high, mean + half)
    return quantity.estimate(mean, bounds, int(n), level, OWN_VARIANCE)


def _confidence(summary: ClassSummary, level: float) -> Estimate:
    total, square = summary.moments("confidence")
    effect = effect_of_sum(summary, "confidence")
    mean, low, high = interval_of_sums(total, square, summary.n, level, effect=effect)
    how = "normal"
    if summary.n > 1 and square / summary.n - mean * mean < 1e-13:  # all alike
        low, high, how = *_bounded(summary, total, square, summary.n, level, effect), FOUR_ROWS
    return CONFIDENCE.estimate(mean, (low, high), summary.n, level, how)


def summary_confidence_on_errors(summary: ClassSummary, *, level: float = 0.95) -> Estimate:
    """The mean confidence of wrong predictions; without any it has no value.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))
    >>> round(summary_confidence_on_errors(one).value, 2)
    0.7
    """
    require_rows(summary, level)
    total, square = summary.moments("confidence of errors")
    wrong = float(np.where(np.eye(len(summary.joint)), 0.0, summary.joint).sum())
    if wrong == 0.0:
        nothing = (np.nan, np.nan)
        return CONFIDENCE_ON_ERRORS.estimate(np.nan, nothing, 0, level, "normal")
    effect = _effect_on_errors(summary, total / wrong, square - total**2 / wrong)
    mean, low, high = interval_of_sums(total, square, wrong, level, effect=effect)
    how = "normal"
    if wrong > 1:
        low, high, how = *_bounded(summary, total, square, wrong, level, effect), FOUR_ROWS
    return CONFIDENCE_ON_ERRORS.estimate(mean, (low, high), round(wrong), level, how)


def _effect_on_errors(summary: ClassSummary, mean: float, own: float) -> float:
    """By how much clusters multiply the variance of the wrong rows' mean confidence."""
    blocks = summary.block_cells(0, None)
    if blocks is None:
        return 1.0
    wrong = (blocks.count - blocks.hits).sum(axis=1)
    away = summary.block_totals("confidence of errors") - mean * wrong
    return BlockSums(wrong, n_times=blocks.n_times).effect(away, own)


def _bounded(
    summary: ClassSummary, total: float, square: float, n: float, level: float, effect: float
) -> tuple[float, float]:
    least = 1.0 / len(summary.classes)
    ends = least, least, 1.0, 1.0
    _, low, high = interval_of_sums(total, square, n, level, ends, effect=effect)
    return max(min(low, total / n), least), min(max(high, total / n), 1.0)
