"""Binned calibration errors with an interval and the value expected by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_index, bin_sums
from kdcal_core.diagnostics.error_interval import (
    UNSHAPED,
    even_gaps,
    gap_directions,
    inverted_test,
    noise_scale,
    offset_gaps,
    over_shapes,
    rarer,
    tried_errors,
)
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import (
    KINDS,
    BinTable,
    Kind,
    Norm,
    Strategy,
    Target,
    bin_chance,
    bin_table,
    check_choice,
    check_level,
    confidence_target,
    edges_for,
    null_rates,
    targets,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    Resamples,
    binomial_draws,
    clopper_pearson,
    independent_rows,
)

NULL_DRAWS = 500
MAX_GROUPS = 2000
PSEUDO_ROWS = 2.0
_FEW_CLASSES = 16
FEWEST = 20  # rows of each bin behind the interval of a largest gap
_WORD = {"l1": "ECE", "l2": "l2 calibration error", "max": "MCE"}
_LABEL = {"l1": "ECE", "l2": "l2 error", "max": "MCE"}


def calibration_error(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    norm: Norm = "l1",
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    debiased: bool = False,
    level: float = 0.95,
    n_boot: int = 1000,
    seed: int = 0,
    sample_weight: Any = None,
) -> Estimate:
    """Binned calibration error: how far frequencies lie from stated probabilities.

    With bins b of weight share w_b, mean score s_b and observed frequency f_b: "l1" (ECE) is
    sum w_b |f_b - s_b|, "l2" the root of sum w_b (f_b - s_b)^2, "max" (MCE) the largest
    |f_b - s_b| of a bin with rows.

    Parameters
    ----------
    proba, y, kind, n_bins, strategy, level, sample_weight
        As in :func:`kdcal_core.diagnostics.reliability`. For "top-label" a class counts by its
        share of the predictions (Gupta and Ramdas 2022); for "class" every class counts the same.
        The shares are then over all bins of all classes (l2 averages squares).
    norm : {"l1", "l2", "max"}
    debiased : bool
        Subtract what noise alone adds, but not below 0. l2: the unbiased estimate of the square
        (Kumar et al. 2019). l1: the expected excess of a folded normal in each bin (ibid.).
    n_boot : int
        Bootstrap draws behind the interval.
    seed : int
        Seed of the bootstrap and of ``expected``.

    Returns
    -------
    Estimate
        ``low <= value <= high``, or both NaN; ``expected`` is the mean of the same statistic over
        500 draws of the outcomes with the stated probabilities.

    Raises
    ------
    InputError
        If arrays or settings do not have this form, and for ``debiased`` with "max".

    Notes
    -----
    The percentiles of resampled errors are not a valid interval. An error is a sum of magnitudes,
    so a resample's error exceeds its sample's, as the sample's exceeds the true one.

    The interval covers the population's error with these bins. It inverts a test: it contains the
    errors t for which the observed value is not an outlier among the errors of t * u + e. Outliers
    are ordered by likelihood (:func:`kdcal_core.diagnostics.error_interval.lower_tail`).

    u has norm 1 and is one of two shapes that the rows support
    (:func:`kdcal_core.diagnostics.error_interval.gap_directions`). With fewer than 20 hits or
    misses both signs of each shape are tried. For "l1" of the confidence so is the shape in which
    every gap has one size: noise adds least to it, so that it is the largest error that a small
    value leaves possible. For "l2" of the confidence, with fewer than 100 hits or misses, so is the
    shape in which all odds are off by one factor. The interval contains the errors of all these
    tests.

    e are deviations of the gaps when outcomes are redrawn with chances half way between a bin's
    stated and observed values, scaled to t. They are binomial in each bin. For "class", where a
    row lies in a bin of every class, labels are drawn instead; above 2,000 rows, 2,000 random
    groups of rows are resampled with two pseudo-rows in each bin.

    If rows depend on one another (a :class:`kdcal_core.statistics.RowDesign` as ``sample_weight``),
    each bin counts as fewer rows, by its design effect; for "class", whole clusters or blocks of
    neighbouring times are resampled.

    The interval reaches 0 if the value is within the noise of a calibrated model. If noise raises
    the value above all errors that the rows support, the interval ends at the value, and its lower
    end has the whole error probability. For a debiased value the interval covers the same
    quantity. The largest gap ("max") uses only bins with rows. Its interval combines
    Clopper-Pearson's intervals of every bin, the lower end with Bonferroni's correction. It is not
    computed (NaN; ``interval`` says why) if a bin has fewer than 20 rows.

    In simulations 95% intervals contained the truth in about 95% of the samples or more (cells of
    100 to 1,000 runs: 91 to 100%). Those of "top-label" and "class" with many thin bins and of
    "max" are conservative: for a model that is not calibrated they contained it in 97 to 100%.
    ``tests/benchmarks/RESULTS_coverage.md`` lists the measured coverage. An interval of a higher
    level always contains that of a lower one.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> estimate = calibration_error(proba, [0, 0, 0, 0], n_bins=10)
    >>> estimate.name, round(estimate.value, 3)
    ('Confidence ECE: l1 norm, 10 equal-width bins', 0.4)
    """
    found = targets(proba, y, sample_weight, kind)
    return _estimate(found, kind, norm, n_bins, strategy, debiased, level, n_boot, seed)


def confidence_calibration_error(
    confidence: Any,
    correct: Any,
    *,
    norm: Norm = "l1",
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    debiased: bool = False,
    level: float = 0.95,
    n_boot: int = 1000,
    seed: int = 0,
    sample_weight: Any = None,
) -> Estimate:
    """:func:`calibration_error` of confidences (n,) in [0, 1] and whether each row was right.

    Examples
    --------
    >>> round(confidence_calibration_error([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0]).value, 3)
    0.3
    """
    found = (confidence_target(confidence, correct, sample_weight),)
    return _estimate(found, "confidence", norm, n_bins, strategy, debiased, level, n_boot, seed)


def _estimate(
    found: tuple[Target, ...],
    kind: Kind,
    norm: Norm,
    n_bins: int,
    strategy: Strategy,
    debiased: bool,
    level: float,
    n_boot: int,
    seed: int,
) -> Estimate:
    _check_settings(norm, strategy, debiased, level, n_boot)
    tables = tuple(bin_table(t, edges_for(t, n_bins, strategy)) for t in found)
    n_rows = _n_rows(found)

    def redrawn(
        chance: tuple[FloatArray, ...], gap: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        if n_rows <= MAX_GROUPS and found[0].dependence is None:
            return _drawn_labels(found, tables, chance, n_boot, rng)
        draws = row_draws(n_rows, n_boot, rng, found[0].dependence)
        return resampled(found, tables, gap, draws, rng)

    bins = BinnedTargets(
        tables, tuple(t.share for t in found), n_rows, redrawn if kind == "class" else None
    )
    return error_of_bins(bins, kind, norm, n_bins, strategy, debiased, level, n_boot, seed)


@dataclass(frozen=True, eq=False)
class BinnedTargets:
    """The bins of all targets of one kind: all that a calibration error needs of the rows.

    Attributes
    ----------
    tables : tuple of BinTable
        One for each target.
    shares : tuple of float
        The targets' weights in the pooled error.
    n : int
        Rows behind all targets.
    redrawn : callable or None
        ``(chance, gap, rng)`` to bin shares and ``n_boot`` deviations of the gaps, where a row lies
        in bins of several targets; None where outcomes of the bins are drawn independently.
    """

    tables: tuple[BinTable, ...]
    shares: tuple[float, ...]
    n: int
    redrawn: (
        Callable[
            [tuple[FloatArray, ...], FloatArray, np.random.Generator],
            tuple[FloatArray, FloatArray],
        ]
        | None
    ) = None


def error_of_bins(
    found: BinnedTargets,
    kind: Kind,
    norm: Norm,
    n_bins: int,
    strategy: Strategy,
    debiased: bool,
    level: float,
    n_boot: int,
    seed: int,
) -> Estimate:
    """:func:`calibration_error` of rows that are binned already."""
    _check_settings(norm, strategy, debiased, level, n_boot)
    tables = found.tables
    share, gap, variance = pooled_bins(found.shares, tables)
    plain = error_norm(share, gap, norm)
    value = debiased_norm(share, gap, variance, norm) if debiased else plain
    rng = np.random.default_rng(seed)
    low, high, how = np.nan, np.nan, _no_interval(norm, tables)
    if not how:
        if norm == "max":
            how = "Clopper-Pearson of all bins, lower end by Bonferroni"
            low, high = _largest_gap(tables, level)
        else:
            how = f"test inversion, {n_boot:,} draws"
            low, high = _interval(found, kind, norm, level, n_boot, rng, float(value))
    bins = _bins(n_bins, strategy)
    return Estimate(
        name=f"{KINDS[kind]} {_WORD[norm]}: {norm} norm, {bins}{', debiased' * debiased}",
        label=error_label(norm, n_bins, kind=kind, strategy=strategy, debiased=debiased),
        value=float(value),
        low=low,
        high=high,
        n=found.n,
        level=level,
        interval=how,
        expected=_expected(found, norm, debiased, rng),
    )


def _no_interval(norm: Norm, tables: tuple[BinTable, ...]) -> str:
    """Why the largest gap has no interval; empty if it has one."""
    least = min(float(t.effective[t.count > 0].min(initial=np.inf)) for t in tables)
    if norm != "max" or least >= FEWEST:
        return ""
    rows = "1 row" if least < 1.5 else f"{least:.0f} rows"
    return (
        f"none: the largest gap mostly comes from the bins with fewest rows, here {rows}; an "
        f"interval needs {FEWEST} in every bin that is not empty"
    )


def _largest_gap(tables: tuple[BinTable, ...], level: float) -> tuple[float, float]:
    """Interval of the largest gap, from the exact intervals of all bins.

    Its lower end misses the truth only if the lower end of some bin does (Bonferroni). Its upper
    end misses only if that of the bin with the largest gap does, so it needs no correction for the
    number of bins. If several gaps are the largest, the lower end misses more often, and the upper
    one only if the upper ends of all these bins miss at once.
    """
    score, rate, rows = (
        np.concatenate([getattr(t, part)[t.count > 0] for t in tables])
        for part in ("score", "rate", "effective")
    )
    missed, tail = 1.0 - level, 0.5 * (1.0 - level) / len(rows)
    low, high = clopper_pearson(rate, rows, 1.0 - 2.0 * tail)
    least = np.maximum(np.maximum(low - score, score - high), 0.0)
    low, high = clopper_pearson(rate, rows, 1.0 - 2.0 * (missed - tail))
    most = np.maximum(np.abs(high - score), np.abs(low - score))
    return float(least.max()), float(most.max())


def error_label(
    norm: Norm,
    n_bins: int,
    *,
    kind: Kind = "confidence",
    strategy: Strategy = "uniform",
    debiased: bool = False,
) -> str:
    """The label of a calibration error: one for each estimator, whichever page shows it.

    Examples
    --------
    >>> error_label("l1", 15), error_label("l1", 15, strategy="quantile")
    ('ECE', 'ECE, equal mass')
    >>> error_label("l1", 15, debiased=True)
    'ECE, debiased (l1, 15 equal-width bins)'
    """
    word = _LABEL[norm] if kind == "confidence" else f"{KINDS[kind]} {_LABEL[norm]}"
    if debiased:
        return f"{word}, debiased ({norm}, {_bins(n_bins, strategy)})"
    return f"{word}, equal mass" if strategy == "quantile" else word


def _bins(n_bins: int, strategy: Strategy) -> str:
    return f"{n_bins} {'equal-width' if strategy == 'uniform' else 'equal-mass'} bins"


def error_norm(share: FloatArray, gap: FloatArray, norm: Norm) -> FloatArray:
    """Norm of the gaps over the last axis; bins with no share do not count.

    Examples
    --------
    >>> float(error_norm(np.array([0.5, 0.5]), np.array([0.1, -0.3]), "l1"))
    0.2
    """
    size = np.abs(gap)
    if norm == "l1":
        return np.asarray((share * size).sum(axis=-1))
    if norm == "l2":
        return np.asarray(np.sqrt((share * size * size).sum(axis=-1)))
    return np.asarray(np.where(share > 0, size, 0.0).max(axis=-1))


def debiased_norm(
    share: FloatArray, gap: FloatArray, variance: FloatArray, norm: Norm
) -> FloatArray:
    """The l1 or l2 norm minus what the gaps' sampling variance adds to it, at least 0."""
    if norm == "l2":
        square = (share * (gap * gap - variance)).sum(axis=-1)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))
    size, sd = np.abs(gap), np.sqrt(variance)
    z = np.divide(size, sd, out=np.full_like(size, 40.0), where=sd > 0)
    folded = sd * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z * z) + size * (1.0 - 2.0 * ndtr(-z))
    excess = (share * (folded - size)).sum(axis=-1)
    return np.asarray(np.maximum((share * size).sum(axis=-1) - excess, 0.0))


def _check_settings(norm: str, strategy: str, debiased: bool, level: float, n_boot: int) -> None:
    check_choice("norm", norm, ("l1", "l2", "max"))
    check_choice("strategy", strategy, ("uniform", "quantile"))
    check_level(level)
    if norm == "max" and debiased:
        raise InputError(
            "There is no debiased form of the max norm", fix='Choose norm "l1" or "l2".'
        )
    if n_boot < 1:
        raise InputError(f"n_boot is {n_boot}", fix="Choose at least one draw.")


def _n_rows(found: tuple[Target, ...]) -> int:
    """Rows behind all targets; a row belongs to one "top-label" target, to every "class" one."""
    return 1 + max(int(t.rows[-1]) for t in found if len(t.rows))


def pooled_bins(
    shares: Sequence[float], tables: tuple[BinTable, ...]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share, gap and its variance for all bins of all targets together, each (M,)."""
    share = [
        one * table.weight / max(table.weight.sum(), 1e-300)
        for one, table in zip(shares, tables, strict=True)
    ]
    gap = [np.nan_to_num(table.rate - table.score) for table in tables]
    return (
        np.concatenate(share),
        np.concatenate(gap),
        np.concatenate([table.variance for table in tables]),
    )


def _expected(found: BinnedTargets, norm: Norm, debiased: bool, rng: np.random.Generator) -> float:
    """Mean of the statistic if the stated probabilities are true."""
    tables = found.tables
    share, _, _ = pooled_bins(found.shares, tables)
    draws = [null_rates(table, NULL_DRAWS, rng, with_variance=debiased) for table in tables]
    score = np.concatenate([table.score for table in tables])
    gap = np.nan_to_num(np.concatenate([rates for rates, _ in draws], axis=1) - score)
    if not debiased:
        return float(error_norm(share, gap, norm).mean())
    variance = np.concatenate([v for _, v in draws], axis=1)
    return float(debiased_norm(share, gap, variance, norm).mean())


def _interval(
    found: BinnedTargets,
    kind: Kind,
    norm: Norm,
    level: float,
    n_boot: int,
    rng: np.random.Generator,
    shown: float,
) -> tuple[float, float]:
    """Interval of the plain statistic; see the notes of :func:`calibration_error`."""
    tables = found.tables
    share, gap, _ = pooled_bins(found.shares, tables)
    value = float(error_norm(share, gap, norm))
    doubts = _doubts(tables, kind, norm)
    chance = tuple(bin_chance(*one) for one in zip(tables, doubts, strict=True))
    if found.redrawn is not None:
        drawn_share, deviation = found.redrawn(chance, gap, rng)
    else:
        drawn_share, deviation = share, _drawn_hits(tables, chance, n_boot, rng)
    some = share > 0.0
    score, effective, likely, doubt = (
        np.concatenate([np.nan_to_num(part) for part in parts])[some]
        for parts in ([t.score for t in tables], [t.effective for t in tables], chance, doubts)
    )
    variance = likely * (1.0 - likely) / np.maximum(effective, 1.0)
    share, gap, deviation = share[some], gap[some], deviation[:, some]
    drawn_share = drawn_share[..., some]
    truth = tried_errors(value, error_norm(drawn_share, deviation, norm), level)

    def along(direction: FloatArray) -> tuple[float, float]:
        length = float(error_norm(share, direction, norm))
        # gaps of 0 have no direction; use an error that is the same everywhere
        unit = direction / length if length > 1e-9 else np.ones_like(direction)
        gaps = truth[:, None] * unit
        louder = noise_scale(score, gaps, effective, likely, doubt)
        drawn = _drawn_errors(drawn_share, deviation, gaps, louder, norm)
        return inverted_test(value, truth, drawn, level, shown)

    shapes: tuple[FloatArray, ...] = gap_directions(score, gap, variance)
    rate = score + gap
    if kind == "confidence" and norm == "l1":
        shapes = (*shapes, even_gaps(shapes[0]))
    if _squares_count(kind, norm) and rarer(rate, effective) < UNSHAPED:
        shapes = (*shapes, offset_gaps(score))
    return over_shapes(along, shapes, rate, effective)


def _drawn_errors(
    share: FloatArray, deviation: FloatArray, gaps: FloatArray, louder: FloatArray, norm: Norm
) -> Iterator[FloatArray]:
    """:func:`error_norm` "l1" or "l2" of ``gaps + louder * deviation``, for each of T true gaps.

    Takes most of the time of an interval, and so makes no new array of all draws.

    Parameters
    ----------
    share : (M,) or (B, M) array
    deviation : (B, M) array
    gaps, louder : (T, M) arrays
    """
    share = np.broadcast_to(share, deviation.shape)
    drawn = np.empty_like(deviation)
    for gap, factor in zip(gaps, louder, strict=True):
        np.multiply(deviation, factor, out=drawn)
        drawn += gap
        if norm == "l1":
            yield np.einsum("bm,bm->b", share, np.abs(drawn, out=drawn))
        else:
            yield np.sqrt(np.einsum("bm,bm->b", share, np.square(drawn, out=drawn)))


def _squares_count(kind: Kind, norm: Norm) -> bool:
    """Whether a thin bin's squared gap may have much weight, as in "l2" of the confidence.

    By class and by predicted class there are many thin bins; overstating their noise is safer.
    """
    return norm == "l2" and kind == "confidence"


def _doubts(tables: tuple[BinTable, ...], kind: Kind, norm: Norm) -> list[FloatArray]:
    """Rows of either outcome to add to each bin before its outcomes are drawn.

    One row in each bin gives thin bins too much noise. If squares count, the interval then ends too
    low; so all bins together share one row.
    """
    if not _squares_count(kind, norm):
        return [np.ones_like(table.effective) for table in tables]
    return [table.effective / table.effective.sum() for table in tables]


def _drawn_hits(
    tables: tuple[BinTable, ...],
    chance: tuple[FloatArray, ...],
    n_boot: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Deviations of the gaps in bins that share no rows, (n_boot, M): binomial draws.

    Dependent rows add what they share.
    """
    n = np.concatenate([table.effective * table.design_effect for table in tables])
    rows = np.maximum(np.rint(n), n > 0).astype(np.int64)
    p = np.concatenate(chance)
    drawn = np.zeros((n_boot, len(rows)))
    some = rows > 0
    hits = binomial_draws(rng, rows[some], p[some], n_boot)
    drawn[:, some] = hits / rows[some] - p[some]
    spread, ends = np.sqrt(p * (1.0 - p)), np.cumsum([0, *(len(one.count) for one in tables)])
    for one, first, last in zip(tables, ends, ends[1:], strict=False):
        if one.together is not None:
            mine = drawn[:, first:last]
            drawn[:, first:last] = one.together.scattered(mine, spread[first:last], rng)
    return drawn


def _drawn_labels(
    found: tuple[Target, ...],
    tables: tuple[BinTable, ...],
    chance: tuple[FloatArray, ...],
    n_boot: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Bin shares (M,) and deviations (n_boot, M) of all classes, one label drawn for each row."""
    n, k = len(found[0].score), len(found)
    start = np.cumsum([0, *(len(table.count) for table in tables)])
    own = [bin_index(t.score, table.edges) for t, table in zip(found, tables, strict=True)]
    place = np.column_stack([first + index for first, index in zip(start, own, strict=False)])
    likely = np.column_stack(
        [
            np.clip(t.score + p[index] - np.nan_to_num(table.score)[index], 1e-12, 1.0)
            for t, table, p, index in zip(found, tables, chance, own, strict=True)
        ]
    )
    likely /= likely.sum(axis=1, keepdims=True)
    weight, size = found[0].weight, int(start[-1])
    mass = bin_sums(place.ravel(), size, np.repeat(weight, k))
    mean = bin_sums(place.ravel(), size, (weight[:, None] * likely).ravel())
    # the cumulative chances of all rows as one increasing array: one search draws every label; of
    # few classes, comparing with each limit takes a fraction of the time
    line = (np.cumsum(likely, axis=1) + np.arange(n)[:, None]).ravel()
    line[k - 1 :: k] = np.arange(1, n + 1)
    deviation = np.empty((n_boot, size))
    block = max(1, 2_000_000 // n)
    for first in range(0, n_boot, block):
        draws = min(block, n_boot - first)
        level = rng.random((draws, n)) + np.arange(n)
        if k <= _FEW_CLASSES:
            label = np.full((draws, n), k * np.arange(n))
            for limit in line.reshape(n, k).T[:-1]:
                label += level >= limit
        else:
            label = np.minimum(np.searchsorted(line, level, side="right"), n * k - 1)
        key = place.ravel()[label] + size * np.arange(draws)[:, None]
        hits = bin_sums(key.ravel(), draws * size, np.tile(weight, draws)).reshape(draws, size)
        deviation[first : first + draws] = hits - mean
    share, _, _ = pooled_bins([t.share for t in found], tables)
    return share, np.divide(deviation, mass, out=np.zeros_like(deviation), where=mass > 0)


def row_draws(
    n_rows: int, n_boot: int, rng: np.random.Generator, dependence: Dependence | None = None
) -> Resamples:
    """``n_boot`` resamples of the rows, or above 2,000 rows of 2,000 random groups of them."""
    return independent_rows(n_rows, n_boot, MAX_GROUPS, rng, dependence)


def resampled(
    found: tuple[Target, ...],
    tables: tuple[BinTable, ...],
    gap: FloatArray,
    draws: Resamples,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Bin shares and deviations of the gaps from the observed ones, both (n_boot, M)."""
    n_groups = draws.times.shape[1]
    groups = []
    for t, table in zip(found, tables, strict=True):
        n_bins = len(table.count)
        key = draws.group[t.rows] * n_bins + bin_index(t.score, table.edges)
        size = n_groups * n_bins
        grouped = bin_sums(key, size, t.weight).reshape(n_groups, n_bins)
        gaps = bin_sums(key, size, t.weight * (t.hit - t.score)).reshape(n_groups, n_bins)
        groups.append((grouped, gaps))
    return resampled_groups(groups, tables, gap, draws.times, rng)


def resampled_groups(
    groups: Sequence[tuple[FloatArray, FloatArray]],
    tables: tuple[BinTable, ...],
    gap: FloatArray,
    times: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """:func:`resampled` from the sums of groups of rows.

    Parameters
    ----------
    groups : sequence of (groups, B) pairs of arrays
        Of each table: the weight of the rows of each group in its bins, and that of their hits less
        their scores.
    gap : (M,) array
        Observed gaps of all bins.
    times : (n_boot, groups) array
        How often each group is drawn.
    """
    n_boot = len(times)
    mass, excess = [], []
    for (grouped, gaps), table in zip(groups, tables, strict=True):
        mass.append(times @ grouped)
        excess.append(times @ gaps + _pseudo_rows(table, n_boot, rng))
    drawn_mass = np.concatenate(mass, axis=1)
    drawn_gap = np.divide(
        np.concatenate(excess, axis=1),
        drawn_mass,
        out=np.broadcast_to(gap, drawn_mass.shape).copy(),
        where=drawn_mass > 0,
    )
    return drawn_mass / drawn_mass.sum(axis=1, keepdims=True), drawn_gap - gap


def _pseudo_rows(table: BinTable, n_boot: int, rng: np.random.Generator) -> FloatArray:
    """Excess hits of two pseudo-rows in each bin (on average), with the bin's mean weight."""
    n = table.count
    middle = np.nan_to_num(0.5 * (table.score + table.rate))
    # half a row each of hit and miss keeps a bin that says and sees 0 or 1 from having no noise
    chance = (middle * n + 0.5) / (n + 1.0)
    extra = rng.poisson(PSEUDO_ROWS, size=(n_boot, len(n)))
    surplus = rng.binomial(extra, chance) - extra * chance
    return surplus * np.divide(table.weight, n, out=np.zeros_like(n), where=n > 0)
