"""The data of a diagnostic: a score, whether its event happened, and a weight; and their bins.

A binned diagnostic needs only sums over bins, and draws of these sums under the null hypothesis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration.calibrator_base import top_label
from kdcal_core.data import (
    FloatArray,
    IntArray,
    check_classes,
    check_hits,
    check_rows,
    check_weight,
)
from kdcal_core.data.array_checks import unit_column
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    BinDependence,
    Dependence,
    RowDesign,
    bin_dependence,
    binomial_draws,
    dependence_of,
    design_effect,
    design_of,
    effective_size,
)

Kind = Literal["confidence", "top-label", "class"]
Strategy = Literal["uniform", "quantile"]
Norm = Literal["l1", "l2", "max"]

KINDS: dict[Kind, str] = {
    "confidence": "Confidence",
    "top-label": "Top-label",
    "class": "Classwise",
}


@dataclass(frozen=True, eq=False)
class Target:
    """One binary calibration problem.

    ``score`` (m,) in [0, 1] is the stated probability, ``hit`` (m,) float 0 or 1 says whether
    the event happened, ``weight`` (m,) is positive. ``rows`` (m,) are the indices of the input's
    rows. ``label`` is the class, None for the top label of all rows. ``share`` is the target's
    weight in an error that pools several targets; the shares of all targets of one kind sum to
    one. ``dependence`` is that of the m rows, None for independent ones.
    """

    label: int | None
    score: FloatArray
    hit: FloatArray
    weight: FloatArray
    rows: IntArray
    share: float
    dependence: Dependence | None = None

    @property
    def design(self) -> FloatArray | RowDesign:
        """Weights and dependence, as a ``sample_weight``."""
        return design_of(self.weight, self.dependence)

    def only(self, rows: IntArray) -> Target:
        """The same problem on some of its rows."""
        return replace(
            self,
            score=self.score[rows],
            hit=self.hit[rows],
            weight=self.weight[rows],
            rows=self.rows[rows],
            dependence=None if self.dependence is None else self.dependence.only(rows),
        )


def targets(
    proba: Any, y: Any, sample_weight: Any, kind: Kind, label: int | None = None
) -> tuple[Target, ...]:
    """The binary problems of ``kind``: one for "confidence", otherwise one for each class.

    "confidence": the top label of all rows. "top-label": the same for the rows of each predicted
    class (Salamon et al.). "class": for all rows, p_k against whether the class is k. With
    ``label`` only that class's problem is returned.
    """
    dependence = dependence_of(sample_weight)
    proba, y, weight = checked(proba, y, sample_weight)
    check_choice("kind", kind, tuple(KINDS))
    n, n_classes = proba.shape
    labels = labels_asked(label, kind, n_classes)
    every = np.arange(n)
    if kind == "class":
        share_k = 1.0 / len(labels)
        return tuple(
            Target(
                k,
                np.minimum(proba[:, k], 1.0),
                (y == k).astype(float),
                weight,
                every,
                share_k,
                dependence,
            )
            for k in labels
        )
    predicted, score = top_label(proba)
    hit = (predicted == y).astype(np.float64)
    whole = Target(None, np.minimum(score, 1.0), hit, weight, every, 1.0, dependence)
    if kind == "confidence":
        return (whole,)
    rows = [np.flatnonzero(predicted == k) for k in labels]
    mass = np.array([weight[r].sum() for r in rows])
    share = mass / mass.sum() if mass.sum() > 0 else mass
    return tuple(
        Target(
            k,
            whole.score[r],
            hit[r],
            weight[r],
            r,
            float(s),
            None if dependence is None else dependence.only(r),
        )
        for k, r, s in zip(labels, rows, share, strict=True)
    )


def confidence_target(confidence: Any, correct: Any, sample_weight: Any = None) -> Target:
    """The binary problem of calibrated confidences (n,) in [0, 1] and whether each was right.

    Raises
    ------
    InputError
        For a confidence that is missing or outside [0, 1], or lengths that differ; the message
        names the first faulty row.
    """
    score = unit_column(confidence, "confidence", "Confidences lie between 0 and 1.")
    hit = check_hits(correct, len(score)).astype(np.float64)
    weight = check_weight(sample_weight, len(score))
    every = np.arange(len(score))
    return Target(None, score, hit, weight, every, 1.0, dependence_of(sample_weight))


def class_shares(y: Any, n_classes: int, sample_weight: Any = None) -> tuple[FloatArray, float]:
    """Share of each class among rows, (K,), and as how many independent rows they say so.

    The number is Kish's; of dependent rows it is divided by the design effect of the largest share.

    Examples
    --------
    >>> shares, rows = class_shares([0, 1, 1, 1], 2)
    >>> shares.tolist(), rows
    ([0.25, 0.75], 4.0)
    """
    ((labels,), _) = check_classes(y, n_classes=n_classes)
    weight = check_weight(sample_weight, len(labels))
    count = np.bincount(labels, weights=weight, minlength=n_classes)
    shares = np.asarray(count / count.sum(), dtype=np.float64)
    largest = int(shares.argmax())
    away = (labels == largest) - shares[largest]
    return shares, effective_size(away, weight, dependence_of(sample_weight))


def checked(proba: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, IntArray, FloatArray]:
    """Probabilities, labels and weights of one length, or an InputError that names the row."""
    proba, y, _ = check_rows(proba, y)
    return proba, y, check_weight(sample_weight, proba.shape[0])


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a setting that is not one of ``allowed``."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r}", fix=f"Choose one of: {', '.join(allowed)}.")


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}", fix="Choose a number between 0 and 1.")


def check_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number from 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}", fix="Choose a whole number from 0.")


def labels_asked(label: int | None, kind: Kind, n_classes: int) -> list[int]:
    """The classes that a kind of targets asks about: one, or all; an error where it cannot."""
    if label is None:
        return list(range(n_classes))
    if kind == "confidence":
        raise InputError(
            'label is given, but kind "confidence" covers all classes at once',
            fix='Leave label out, or choose kind "top-label" or "class".',
        )
    if not 0 <= label < n_classes:
        raise InputError(
            f"label is {label}, but there are {n_classes} classes",
            fix=f"Choose a class index from 0 to {n_classes - 1}.",
        )
    return [int(label)]


SLICES = 8  # slices of each bin, for draws under the null hypothesis


@dataclass(frozen=True, eq=False)
class BinTable:
    """Sums over the B bins of one target, and over the B * SLICES slices inside them.

    ``count``, ``weight``, ``weight_sq`` are sums of 1, w and w^2; ``score`` and ``rate`` the
    weighted mean stated probability and observed frequency (NaN in empty bins); ``variance``
    estimates the sampling variance of ``rate - score``. ``together`` says how dependence of rows
    adds to it; None for independent ones.
    """

    edges: FloatArray
    count: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    score: FloatArray
    rate: FloatArray
    variance: FloatArray
    slice_n: FloatArray
    slice_weight: FloatArray
    slice_weight_sq: FloatArray
    slice_score: FloatArray
    together: BinDependence | None = None

    @property
    def design_effect(self) -> FloatArray:
        """By how much the dependence of rows multiplies the variance of each bin, (B,)."""
        return np.ones(len(self.count)) if self.together is None else self.together.effect

    @property
    def effective(self) -> FloatArray:
        """Effective number of rows in each bin: Kish's over the design effect."""
        return _ratio(self.weight**2, self.weight_sq, 0.0) / self.design_effect


def edges_for(target: Target, n_bins: int, strategy: Strategy) -> FloatArray:
    """Bin edges for one target; (0, 1) for quantile bins of a target without rows."""
    if strategy == "uniform":
        return uniform_edges(n_bins)
    if len(target.score) == 0:
        return uniform_edges(1)
    plain = bool(np.all(target.weight == target.weight[0]))
    return quantile_edges(target.score, n_bins, None if plain else target.weight)


def bin_table(target: Target, edges: FloatArray) -> BinTable:
    """Reduce the rows of ``target`` to the bins of ``edges``; O(n)."""
    n_bins = len(edges) - 1
    score, hit, weight = target.score, target.hit, target.weight
    index = bin_index(score, edges)
    inside = (score - edges[index]) / np.diff(edges)[index]
    piece = index * SLICES + np.clip(inside * SLICES, 0, SLICES - 1).astype(np.int64)
    n_slices = n_bins * SLICES
    weighted = weight * score
    slice_count = bin_sums(piece, n_slices)
    slice_weight = bin_sums(piece, n_slices, weight)
    slice_weight_sq = bin_sums(piece, n_slices, weight * weight)
    slice_score = bin_sums(piece, n_slices, weighted)
    count, total, total_sq, mass = (
        s.reshape(n_bins, SLICES).sum(axis=1)
        for s in (slice_count, slice_weight, slice_weight_sq, slice_score)
    )
    mean = _ratio(mass, total, np.nan)
    rate = _ratio(bin_sums(index, n_bins, weight * hit), total, np.nan)
    residual = weight * (hit - score - (rate - mean)[index])
    variance = gap_variance(bin_sums(index, n_bins, residual * residual), count, total, mean)
    together = None
    if target.dependence is not None:
        away = hit - score - np.nan_to_num(rate - mean)[index]
        together = bin_dependence(away, weight, index, n_bins, target.dependence)
        variance = variance * together.effect
    effective = _ratio(slice_weight**2, slice_weight_sq, 0.0)
    return BinTable(
        edges=edges,
        count=count,
        weight=total,
        weight_sq=total_sq,
        score=mean,
        # a weighted mean of zeros and ones may exceed one by a rounding error
        rate=np.minimum(rate, 1.0),
        variance=variance,
        slice_n=np.maximum(np.rint(effective), slice_count > 0),
        slice_weight=slice_weight,
        slice_weight_sq=slice_weight_sq,
        slice_score=np.clip(_ratio(slice_score, slice_weight, 0.0), 0.0, 1.0),
        together=together,
    )


def overall_effect(target: Target) -> float:
    """The design effect of the mean gap of all rows, from residuals about ten bins' gaps.

    A fault that bins show is no dependence.

    Examples
    --------
    >>> overall_effect(confidence_target([0.5, 0.5, 0.9], [0, 1, 1]))
    1.0
    """
    if target.dependence is None:
        return 1.0
    edges = edges_for(target, 10, "quantile")
    table, index = bin_table(target, edges), bin_index(target.score, edges)
    residual = target.hit - target.score - np.nan_to_num(table.rate - table.score)[index]
    return design_effect(residual, target.weight, target.dependence)


def gap_variance(
    squares: FloatArray, count: FloatArray, weight: FloatArray, score: FloatArray
) -> FloatArray:
    """Unbiased variance of a bin's gap from the sum of squared weighted residuals.

    A bin of one row has no residual; its variance is s (1 - s), that of the stated probability.
    """
    several = count > 1
    scale = np.where(several, count / np.maximum(count - 1.0, 1.0), 0.0)
    alone = np.where(count == 1, score * (1.0 - score), 0.0)
    return np.where(several, _ratio(squares, weight**2, 0.0) * scale, alone)


def bin_chance(table: BinTable, doubt: FloatArray | float = 1.0) -> FloatArray:
    """Chance of a hit in each bin, half way between its stated and its observed value.

    ``doubt`` rows, half of them hits, also give noise to a bin in which both are 0 or 1.
    """
    return with_doubt(np.nan_to_num(0.5 * (table.score + table.rate)), table.effective, doubt)


def with_doubt(chance: FloatArray, rows: FloatArray, doubt: FloatArray | float) -> FloatArray:
    """Chances (..., M) with ``doubt`` rows, half of them hits, added to the ``rows`` of each bin.

    Examples
    --------
    >>> with_doubt(np.array([0.0, 1.0]), np.array([9.0, 99.0]), 1.0)
    array([0.05 , 0.995])
    """
    total = rows + doubt
    doubted: FloatArray = np.full(np.shape(chance), 0.5)
    np.divide(chance * rows + 0.5 * doubt, total, out=doubted, where=total > 0)
    return doubted


def null_rates(
    table: BinTable, n_draws: int, rng: np.random.Generator, *, with_variance: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Draws of each bin's frequency under the stated probabilities, (n_draws, B).

    Each row is a Bernoulli draw. The rows of a slice, an eighth of a bin, share the slice's mean
    probability. The frequency's mean is then exact, and its variance too large by less than 1/64
    of the variance of the scores in the bin. With row weights a slice counts as its effective
    number of rows, rounded. Draws of dependent rows scatter more, and bins together.

    Also returns the residual variance of the gap in each draw, (n_draws, B), or an empty array
    without ``with_variance``.
    """
    n_bins = len(table.count)
    some = np.flatnonzero(table.slice_n > 0)
    home = (np.arange(len(some)), some // SLICES)
    n, p = table.slice_n[some], table.slice_score[some]
    hits = binomial_draws(rng, n, p, n_draws)
    to_bins = np.zeros((len(some), n_bins))
    # without weights these are ones: the frequency is then exactly a ratio of counts
    to_bins[home] = table.slice_weight[some] / n
    rates = _ratio(hits @ to_bins, np.broadcast_to(table.weight, (n_draws, n_bins)), np.nan)
    rates = np.minimum(rates, 1.0)  # as in bin_table
    shown = rates
    if table.together is not None:
        noise = np.nan_to_num(rates - table.score)
        spread = np.sqrt(np.nan_to_num(table.score * (1.0 - table.score)))
        shown = np.clip(table.score + table.together.scattered(noise, spread, rng), 0.0, 1.0)
    if not with_variance:
        return shown, np.empty(0)
    to_bins[home] = table.slice_weight_sq[some]
    gap = np.nan_to_num(rates - table.score)
    share = hits / n
    first = (share * (1.0 - 2.0 * p) + p * p) @ to_bins
    second = (share - p) @ to_bins
    squares = np.maximum(first - 2.0 * gap * second + gap**2 * table.weight_sq, 0.0)
    variance = gap_variance(squares, table.count, table.weight, np.nan_to_num(table.score))
    return shown, variance * table.design_effect


def _ratio(top: FloatArray, bottom: FloatArray, empty: float) -> FloatArray:
    result: FloatArray = np.divide(top, bottom, out=np.full(np.shape(top), empty), where=bottom > 0)
    return result
