"""What follows from a probability when somebody acts on it: thresholds, net benefit and cost.

A row is flagged where its stated probability of the event is at least the threshold. Everything
here is computed from one table of counts by threshold (`DecisionCounts`), which is small whatever
the number of rows.

Vickers and Elkin, *Decision curve analysis: a novel method for evaluating prediction models*,
Medical Decision Making 26 (2006); Elkan, *The foundations of cost-sensitive learning*, IJCAI 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.by_predicted_class import Confusion, confusion_of
from kdcal_core.diagnostics.estimate import EFFECTIVE, Estimate
from kdcal_core.diagnostics.targets import Target, check_level, confidence_target
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    clopper_pearson,
    kish,
    normal_quantile,
    small_sample_factor,
    t_quantile,
    units,
)

STEPS = 10_000
"""Thresholds are the multiples of 1 / STEPS between 0 and 1, both left out."""

CELLS = ("true positives", "false positives", "false negatives", "true negatives")


@dataclass(frozen=True, eq=False)
class DecisionCounts:
    """Rows by outcome and decision, at every threshold.

    Attributes
    ----------
    mass : (4, t) array
        Weight of the true positives, false positives, false negatives and true negatives.
    square : (4, t) array
        Sum of the squared weights of the same rows.
    n : int
        Rows.
    together : CellProducts or None
        How dependent rows of the four cells vary together; None for independent rows.
    """

    mass: FloatArray
    square: FloatArray
    n: int
    together: CellProducts | None = None

    @property
    def thresholds(self) -> FloatArray:
        """The thresholds (t,), ascending."""
        return _thresholds()

    @property
    def rate(self) -> float:
        """Share of rows with the event."""
        return float(self.mass[[0, 2], 0].sum() / self.mass[:, 0].sum())

    def at(self, threshold: float) -> int:
        """Place of the threshold that is nearest to a number in (0, 1)."""
        return int(np.clip(round(threshold * STEPS), 1, STEPS - 1)) - 1


@dataclass(frozen=True, eq=False)
class CellProducts:
    """How the weights in C cells vary together at every threshold, for rows that depend.

    Attributes
    ----------
    product : (C, C, t) array
        Sums of products of the clusters' weights in two cells, or in time those of Newey and West.
        The variance of the sum of a value of each cell is the quadratic form in these values, less
        their mean.
    units : float
        Kish's effective number of clusters or times.
    factor : float
        What makes a variance from so few of them unbiased.
    """

    product: FloatArray
    units: float
    factor: float

    @classmethod
    def of(
        cls, cells: Sequence[tuple[IntArray, IntArray]], weight: FloatArray, together: Dependence
    ) -> CellProducts:
        """Those of rows that are in each cell between two thresholds, of which the later is out.

        ``cells`` holds, for each of C cells, the first place of a threshold (n,) at which a row is
        in it, and that after the last.
        """
        few = together.coarser(MOST_UNITS)
        n_cells, n_units = len(cells), few.n_units
        steps = [np.zeros((n_units, 0))] * n_cells
        state = np.zeros((n_cells, n_units))
        product = np.zeros((n_cells, n_cells, STEPS - 1))
        changes = [_changes(first, after, few.unit, weight) for first, after in cells]
        size = max(BLOCK_FLOATS // (n_cells * n_units), 1)
        for start in range(0, STEPS - 1, size):
            width = min(size, STEPS - 1 - start)
            steps = [one.between(start, width, n_units) for one in changes]
            held = state[:, :, np.newaxis] + np.cumsum(np.stack(steps), axis=2)
            state = held[:, :, -1]
            near = few.near(held.transpose(2, 0, 1).reshape(-1, n_units))
            near = near.reshape(width, n_cells, -1)
            each = near @ near.transpose(0, 2, 1)
            product[:, :, start : start + width] = each.transpose(1, 2, 0)
        mass = units(weight, together)
        n, lags = len(mass), together.lags
        return cls(product, kish(mass), small_sample_factor(n, lags) if n > 1 else np.inf)

    def variance(self, values: FloatArray) -> FloatArray:
        """Of the sum over the rows of their cells' values (C, t), with mean 0, (t,)."""
        found = np.einsum("it,ijt,jt->t", values, self.product, values)
        nothing = np.zeros_like(found)
        return np.asarray(np.multiply(found, self.factor, out=nothing, where=found > 0.0))

    def reach(self, level: float) -> float:
        """Half the width, in standard errors, of an interval."""
        return t_quantile(level, self.units - 1.0) if self.units > 1.0 + 1e-9 else np.inf


@dataclass(frozen=True, eq=False)
class _Changes:
    """Weights that enter and leave a cell, ordered by threshold."""

    at: IntArray
    unit: IntArray
    weight: FloatArray

    def between(self, start: int, width: int, n_units: int) -> FloatArray:
        low, high = np.searchsorted(self.at, (start, start + width))
        place = self.unit[low:high] * width + self.at[low:high] - start
        found = np.bincount(place, weights=self.weight[low:high], minlength=n_units * width)
        return np.asarray(found.reshape(n_units, width), dtype=np.float64)


def _changes(first: IntArray, after: IntArray, unit: IntArray, weight: FloatArray) -> _Changes:
    at = np.concatenate([first, after])
    order = np.argsort(at, kind="stable")
    signed = np.concatenate([weight, -weight])
    return _Changes(at[order], np.tile(unit, 2)[order], signed[order])


MOST_UNITS = 2_000
"""Clusters or times from which products of cells are summed; of more, groups of them."""
BLOCK_FLOATS = 2**21


@dataclass(frozen=True, eq=False)
class Band:
    """A quantity at every threshold, with pointwise intervals; all arrays (t,)."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Costs:
    """What a row costs in each of the four cases, in any one unit; a benefit is negative.

    Raises
    ------
    InputError
        Where a number is not finite, or where flagging never pays: a missed event must cost more
        than a found one, and a false alarm more than a row that is rightly left alone.

    Examples
    --------
    >>> Costs(false_positive=1.0, false_negative=4.0).threshold
    0.2
    """

    true_positive: float = 0.0
    false_positive: float = 1.0
    false_negative: float = 1.0
    true_negative: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.values).all():
            raise InputError("A cost is not a finite number", fix="Write a number in each cell.")
        if self.false_negative <= self.true_positive:
            raise InputError(
                "A missed event does not cost more than a flagged one",
                fix="Then no row should be flagged. Give the missed event the larger cost.",
            )
        if self.false_positive <= self.true_negative:
            raise InputError(
                "A false alarm does not cost more than a row that is rightly left alone",
                fix="Then every row should be flagged. Give the false alarm the larger cost.",
            )

    @property
    def values(self) -> FloatArray:
        """The four costs, in the order of `CELLS`."""
        return np.array(
            [self.true_positive, self.false_positive, self.false_negative, self.true_negative],
            dtype=np.float64,
        )

    @property
    def threshold(self) -> float:
        """The threshold of least expected cost for calibrated probabilities (Elkan 2001, Eq. 2)."""
        alarm = self.false_positive - self.true_negative
        return alarm / (alarm + self.false_negative - self.true_positive)


def decision_counts(score: Any, hit: Any, *, sample_weight: Any = None) -> DecisionCounts:
    """Count the rows on both sides of every threshold, by outcome.

    Parameters
    ----------
    score : (n,) array in [0, 1]
        Stated probabilities of the event.
    hit : (n,) array of 0 and 1
        Whether the event happened.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights, with or without the dependence of the rows.

    Raises
    ------
    InputError
        As :func:`kdcal_core.diagnostics.confidence_calibration_error`.

    Examples
    --------
    >>> counts = decision_counts([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> counts.mass[:, counts.at(0.4)].tolist()
    [2.0, 1.0, 0.0, 1.0]
    """
    return target_decisions(confidence_target(score, hit, sample_weight))


def target_decisions(target: Target) -> DecisionCounts:
    """As :func:`decision_counts`, of one target."""
    last = last_flagged(target.score)
    hit = target.hit > 0.5
    tables = []
    for weight in (target.weight, np.square(target.weight)):
        found = [_flagged(last[side], weight[side]) for side in (hit, ~hit)]
        whole = [weight[side].sum() for side in (hit, ~hit)]
        missed = [np.maximum(all_of - some, 0.0) for all_of, some in zip(whole, found, strict=True)]
        tables.append(np.stack([*found, *missed]))
    products = None
    if target.dependence is not None:
        never, always = np.zeros_like(last), np.full_like(last, STEPS - 1)
        of_event, of_others = np.where(hit, last, 0), np.where(hit, 0, last)
        cells = [
            (never, of_event),
            (never, of_others),
            (of_event, np.where(hit, always, 0)),
            (of_others, np.where(hit, 0, always)),
        ]
        products = CellProducts.of(cells, target.weight, target.dependence)
    return DecisionCounts(tables[0], tables[1], len(target.score), products)


def counts_of_cells(
    last: IntArray,
    hits: FloatArray,
    others: FloatArray,
    together: CellProducts | None = None,
) -> DecisionCounts:
    """As :func:`decision_counts`, of rows counted in cells that no threshold parts.

    Parameters
    ----------
    last : (C,) int array
        How many thresholds the scores of each cell reach (:func:`last_flagged`).
    hits, others : (C,) array
        Rows with and without the event.
    together : CellProducts, optional
        How they vary together, where rows depend on one another.
    """
    found = [_flagged(last, side) for side in (hits, others)]
    missed = [side.sum() - some for side, some in zip((hits, others), found, strict=True)]
    mass = np.stack([*found, *missed])
    return DecisionCounts(mass, mass, int(hits.sum() + others.sum()), together)


def decision_rates(
    counts: DecisionCounts, threshold: float, *, level: float = 0.95
) -> tuple[Estimate, ...]:
    """Sensitivity, specificity, both predictive values and the flagged share at one threshold.

    Each is a proportion with its Clopper-Pearson interval; row weights count by Kish's effective
    number of rows, dependent rows by that over their design effect. ``n`` is then that number, and
    the interval's name says so. NaN where no row enters it.

    Parameters
    ----------
    threshold : float in (0, 1)
        The nearest multiple of 1 / `STEPS` is used.

    Examples
    --------
    >>> counts = decision_counts([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> {one.label: round(one.value, 2) for one in decision_rates(counts, 0.4)}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'Sensitivity': 1.0, 'Specificity': 0.5, 'Positive predictive value': 0.67,
     'Negative predictive value': 1.0, 'Flagged': 0.75}
    """
    check_level(level)
    at = counts.at(threshold)
    mass, square = counts.mass[:, at], counts.square[:, at]
    said = f"at a threshold of {counts.thresholds[at]:g}"
    alike = counts.together is None and np.array_equal(counts.mass, counts.square)
    made = "Clopper-Pearson" + ("" if alike else f", {EFFECTIVE}")

    def share(label: str, name: str, of: list[int], among: list[int], better: bool) -> Estimate:
        total = mass[among].sum()
        rows = float(total**2 / square[among].sum()) if total > 0 else 0.0
        value = float(mass[of].sum() / total) if total > 0 else np.nan
        if total > 0 and counts.together is not None:
            rows /= _effect(counts, at, of, among, value)
        low, high = clopper_pearson(value if total > 0 else 0.0, rows, level)
        return Estimate(
            name=f"{name}, {said}",
            label=label,
            value=value,
            low=float(low),
            high=float(high),
            n=round(rows),
            level=level,
            interval=made if total > 0 else "not defined: no such rows",
            percent=True,
            lower_is_better=False if better else None,
        )

    return (
        share("Sensitivity", "Share of events that are flagged", [0], [0, 2], True),
        share("Specificity", "Share of other rows that are not flagged", [3], [1, 3], True),
        share("Positive predictive value", "Share of flagged rows with the event",
              [0], [0, 1], True),
        share("Negative predictive value", "Share of other rows without the event",
              [3], [2, 3], True),
        share("Flagged", "Share of rows that are flagged", [0, 1], [0, 1, 2, 3], False),
    )  # fmt: skip


def _effect(
    counts: DecisionCounts, at: int, of: list[int], among: list[int], value: float
) -> float:
    """Kish's design effect of a share of the rows in some cells at one threshold.

    As `kdcal_core.statistics.bin_dependence`, from the products of the cells.
    """
    assert counts.together is not None
    there = np.isin(np.arange(4), among).astype(np.float64)
    away = np.isin(np.arange(4), of) - value * there
    product, square = counts.together.product[:, :, at], counts.square[:, at]
    own = float(square @ away**2)
    grown = max(float(there @ product @ there / (square @ there)), 1.0)
    effect = grown if own <= 0.0 else min(max(float(away @ product @ away) / own, 1.0), grown)
    few = counts.together
    if not np.isfinite(few.factor):
        return grown  # one cluster says as much as one row
    wider = (few.reach(0.95) / normal_quantile(0.95)) ** 2
    return effect * wider * few.factor * (few.units - 1.0) / few.units


def decision_confusion(counts: DecisionCounts, threshold: float) -> Confusion:
    """Rows by truth and decision at one threshold: rows of the event and flagged ones come last.

    Examples
    --------
    >>> counts = decision_counts([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> decision_confusion(counts, 0.5).joint.tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    found, alarm, missed, quiet = counts.mass[:, counts.at(threshold)]
    return confusion_of(np.array([[quiet, alarm], [missed, found]]))


def net_benefit(counts: DecisionCounts, *, level: float = 0.95) -> Band:
    """True positives less false positives weighed by the threshold's odds, a row.

    Vickers and Elkin 2006: the threshold says how many false alarms one found event is worth.

    Returns
    -------
    Band
        Pointwise normal intervals with four rows added, two at each end of the range; Student's if
        rows depend on one another, by the totals of clusters or of neighbouring times.

    Examples
    --------
    >>> counts = decision_counts([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> float(net_benefit(counts).value[counts.at(0.4)].round(3))  # (2 - 1 * 0.4 / 0.6) / 4
    0.333
    """
    odds = _odds()
    zero = np.zeros_like(odds)
    return _mean_of(counts, np.stack([np.ones_like(odds), -odds, zero, zero]), level)


def net_benefit_of_all(counts: DecisionCounts) -> FloatArray:
    """Net benefit of flagging every row, (t,)."""
    return counts.rate - (1.0 - counts.rate) * _odds()


def gain_over_all(counts: DecisionCounts, *, level: float = 0.95) -> Band:
    """Net benefit less that of flagging every row, paired by row."""
    odds = _odds()
    zero = np.zeros_like(odds)
    return _mean_of(counts, np.stack([zero, zero, -np.ones_like(odds), odds]), level)


def useful_thresholds(counts: DecisionCounts, *, level: float = 0.95) -> tuple[float, float] | None:
    """The longest stretch of thresholds where the model is better than flagging all rows or none.

    A threshold counts where both intervals, of the net benefit and of the gain over flagging all,
    lie above 0. They are pointwise, so the stretch may cross gaps of up to a tenth of its length.
    None where no threshold counts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(40_000)
    >>> counts = decision_counts(p, (rng.random(40_000) < p).astype(int))
    >>> low, high = useful_thresholds(counts)
    >>> low < 0.1, high > 0.9
    (True, True)
    """
    better = net_benefit(counts, level=level).low > 0.0
    better &= gain_over_all(counts, level=level).low > 0.0
    edge = np.flatnonzero(np.diff(np.r_[False, better, False]))
    joined: list[tuple[int, int]] = []
    for first, after in zip(edge[::2], edge[1::2], strict=True):
        if joined and first - joined[-1][1] <= 0.1 * (after - joined[-1][0]):
            joined[-1] = (joined[-1][0], int(after))
        else:
            joined.append((int(first), int(after)))
    if not joined:
        return None
    first, after = max(joined, key=lambda run: run[1] - run[0])
    return float(counts.thresholds[first]), float(counts.thresholds[after - 1])


def paired_net_benefit(
    score: Any, other: Any, hit: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Band:
    """Net benefit of one score less that of another over the same rows, paired by row.

    Parameters
    ----------
    score, other : (n,) arrays in [0, 1]
    hit, sample_weight, level
        As :func:`decision_counts`.

    Examples
    --------
    >>> hit = np.array([0, 1] * 50)
    >>> gained = paired_net_benefit(0.1 + 0.8 * hit, np.full(100, 0.5), hit)
    >>> float(gained.value[4_999].round(3))  # at 0.5 the other flags every row
    0.5
    """
    one = confidence_target(score, hit, sample_weight)
    two = confidence_target(other, hit, sample_weight)
    first, second = last_flagged(one.score), last_flagged(two.score)
    least = np.minimum(first, second)
    products = None
    if one.dependence is not None:
        hit_, other_ = one.hit > 0.5, one.hit <= 0.5
        spans = [
            (np.where(side, least, 0), np.where(side, reached, 0))
            for side in (hit_, other_)
            for reached in (first, second)
        ]
        always = np.full_like(least, STEPS - 1)
        spans += [(np.zeros_like(least), least), (np.maximum(first, second), always)]
        products = CellProducts.of(spans, one.weight, one.dependence)
    cells = []
    for weight in (one.weight, np.square(one.weight)):
        rows = []
        for side in (one.hit > 0.5, one.hit <= 0.5):
            both = _flagged(least[side], weight[side])
            rows += [_flagged(first[side], weight[side]) - both]
            rows += [_flagged(second[side], weight[side]) - both]
        rest = weight.sum() - np.sum(rows, axis=0)
        cells.append(np.maximum(np.stack([*rows, rest]), 0.0))
    odds = _odds()
    values = np.stack([np.ones_like(odds), -np.ones_like(odds), -odds, odds, np.zeros_like(odds)])
    effect = None
    if products is not None:
        mean = (cells[0] * values).sum(axis=0) / cells[0].sum(axis=0)
        each = np.concatenate([values, values[-1:]]) - mean  # the rest is in two cells
        effect = _ratio(products.variance(each), (cells[1] * np.square(values - mean)).sum(axis=0))
    return _mean(cells[0], cells[1], values, level, effect, products)


def expected_cost(counts: DecisionCounts, costs: Costs, *, level: float = 0.95) -> Band:
    """Mean cost of a row at every threshold.

    Examples
    --------
    >>> counts = decision_counts([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> float(expected_cost(counts, Costs()).value[counts.at(0.5)])  # one missed event of 4 rows
    0.25
    """
    values = np.broadcast_to(costs.values[:, None], counts.mass.shape)
    return _mean_of(counts, values, level)


@dataclass(frozen=True)
class BestThreshold:
    """Where the mean cost of these rows is least.

    Attributes
    ----------
    threshold : float
        The middle of the thresholds of least cost.
    low, high : float
        The least and the largest threshold whose cost is not clearly larger, by paired intervals.
    cost : Estimate
        The mean cost of a row there. The threshold was chosen on the same rows, so it is a little
        too low.
    """

    threshold: float
    low: float
    high: float
    cost: Estimate

    def advised(self, costs: Costs) -> float:
        """The optimum of calibrated probabilities if these rows allow it, else their own."""
        return costs.threshold if self.low <= costs.threshold <= self.high else self.threshold


def best_threshold(counts: DecisionCounts, costs: Costs, *, level: float = 0.95) -> BestThreshold:
    """The threshold of least mean cost, and those that these rows cannot tell from it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> counts = decision_counts(p, (rng.random(20_000) < p).astype(int))
    >>> found = best_threshold(counts, Costs(false_negative=4.0))
    >>> found.low < 0.2 < found.high
    True
    """
    band = expected_cost(counts, costs, level=level)
    least = np.flatnonzero(band.value <= band.value.min() + 1e-12)
    run = least[: int(np.argmax(np.diff(np.r_[least, np.inf]) > 1)) + 1]
    place = int(run[len(run) // 2])
    alike = _not_worse(counts, costs, place, level)
    low, high = np.flatnonzero(alike)[[0, -1]]
    thresholds = counts.thresholds
    return BestThreshold(
        float(thresholds[place]),
        float(thresholds[low]),
        float(thresholds[high]),
        cost_at(counts, costs, float(thresholds[place]), level=level),
    )


def cost_at(
    counts: DecisionCounts, costs: Costs, threshold: float, *, level: float = 0.95
) -> Estimate:
    """The mean cost of a row at one threshold."""
    band, at = expected_cost(counts, costs, level=level), counts.at(threshold)
    return Estimate(
        name=f"Mean cost of a row, at a threshold of {counts.thresholds[at]:g}",
        label="Cost",
        value=float(band.value[at]),
        low=float(band.low[at]),
        high=float(band.high[at]),
        n=counts.n,
        level=level,
        interval=f"{'normal' if counts.together is None else 't quantile'}, four rows added",
    )


@dataclass(frozen=True)
class Flagging:
    """What flagging by a threshold is worth beside flagging every row or none.

    Attributes
    ----------
    share : float
        Share of the rows that are flagged.
    n : int or None
        The flagged rows; None where rows have weights.
    pays_over_none, pays_over_all : bool
        Whether the mean cost is clearly less than that of flagging no row, or every row, by paired
        intervals.
    """

    share: float
    n: int | None
    pays_over_none: bool
    pays_over_all: bool


def flagging_at(
    counts: DecisionCounts, costs: Costs, threshold: float, *, level: float = 0.95
) -> Flagging:
    """How many rows a threshold flags, and whether that is cheaper than flagging all or none.

    Examples
    --------
    >>> counts = decision_counts([0.1] * 60 + [0.9] * 40, [0] * 60 + [1] * 40)
    >>> flagging_at(counts, Costs(), 0.5)
    Flagging(share=0.4, n=40, pays_over_none=True, pays_over_all=True)
    """
    at = counts.at(threshold)
    found, alarm, missed, quiet = costs.values
    rows = counts.mass[:, at].sum()
    over_none, over_all = (
        _mean_of(counts, np.broadcast_to(np.array(value)[:, None], counts.mass.shape), level)
        for value in (
            (found - missed, alarm - quiet, 0.0, 0.0),
            (0.0, 0.0, missed - found, quiet - alarm),
        )
    )
    flagged = counts.mass[:2, at].sum()
    return Flagging(
        share=float(flagged / rows),
        n=round(flagged) if np.array_equal(counts.mass, counts.square) else None,
        pays_over_none=bool(over_none.high[at] < 0.0),
        pays_over_all=bool(over_all.high[at] < 0.0),
    )


def decision_table(counts: DecisionCounts) -> pd.DataFrame:
    """Counts and net benefit at every hundredth, for a file."""
    at = np.arange(STEPS // 100 - 1, STEPS - 1, STEPS // 100)
    band = net_benefit(counts)
    return pd.DataFrame(
        {
            "threshold": counts.thresholds[at],
            **{cell.replace(" ", "_"): counts.mass[k, at] for k, cell in enumerate(CELLS)},
            "net_benefit": band.value[at],
            "net_benefit_low": band.low[at],
            "net_benefit_high": band.high[at],
            "net_benefit_of_all": net_benefit_of_all(counts)[at],
        }
    )


def rates_table(counts: DecisionCounts, at: IntArray) -> pd.DataFrame:
    """Sensitivity, specificity and positive predictive value at some thresholds, for a file.

    Parameters
    ----------
    at : (k,) int array
        Their places among ``counts.thresholds``.

    Returns
    -------
    DataFrame
        A row for each measure and threshold, with the ends of `decision_rates`; NaN where no row
        enters it.

    Examples
    --------
    >>> counts = decision_counts([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    >>> rates_table(counts, np.array([counts.at(0.4)]))["share"].round(2).tolist()
    [1.0, 0.5, 0.67]
    """
    found = [(counts.thresholds[one], decision_rates(counts, counts.thresholds[one])) for one in at]
    return pd.DataFrame(
        [
            {
                "measure": rates[place].label,
                "threshold": threshold,
                "share": rates[place].value,
                "share_low": rates[place].low,
                "share_high": rates[place].high,
            }
            for place in range(3)
            for threshold, rates in found
        ]
    )


def _thresholds() -> FloatArray:
    return np.arange(1, STEPS) / STEPS


def _odds() -> FloatArray:
    threshold = _thresholds()
    return threshold / (1.0 - threshold)


def last_flagged(score: FloatArray) -> IntArray:
    """How many thresholds each score reaches, (n,)."""
    return np.searchsorted(_thresholds(), score, side="right")


def _flagged(reached: IntArray, weight: FloatArray) -> FloatArray:
    """Weight of the rows that reach each threshold, (t,)."""
    by_count = np.bincount(reached, weights=weight, minlength=STEPS)
    return np.asarray(by_count[::-1].cumsum()[::-1][1:], dtype=np.float64)


def _mean_of(counts: DecisionCounts, values: FloatArray, level: float) -> Band:
    effect = None if counts.together is None else _effects(counts, values)
    return _mean(counts.mass, counts.square, values, level, effect, counts.together)


def _effects(counts: DecisionCounts, values: FloatArray) -> FloatArray:
    """By how much dependence multiplies the variance of a mean of the cells' values, (t,)."""
    assert counts.together is not None
    mean = (counts.mass * values).sum(axis=0) / counts.mass.sum(axis=0)
    away = values - mean
    return _ratio(counts.together.variance(away), (counts.square * np.square(away)).sum(axis=0))


def _ratio(variance: FloatArray, alone: FloatArray) -> FloatArray:
    return np.divide(variance, alone, out=np.ones_like(alone), where=alone > 0.0)


def _mean(
    mass: FloatArray,
    square: FloatArray,
    values: FloatArray,
    level: float,
    effect: FloatArray | None = None,
    together: CellProducts | None = None,
) -> Band:
    """Mean of a value that depends on a row's cell, at every threshold.

    The interval is `kdcal_core.statistics.bounded_mean_interval`, in closed form: four rows are
    added, two with the least and two with the largest value of any cell, each as heavy as one of
    the effective rows. Every row lies in one cell. ``effect`` (t,) is the design effect of
    dependent rows.
    """
    check_level(level)
    total = mass[:, 0].sum()
    rows = total**2 / square[:, 0].sum()
    each = total / rows
    ends = np.stack([values.min(axis=0), values.max(axis=0)])
    mean = (mass * values).sum(axis=0) / total
    whole = total + 4.0 * each
    middle = ((mass * values).sum(axis=0) + 2.0 * each * ends.sum(axis=0)) / whole
    spread = (square * np.square(values - middle)).sum(axis=0)
    spread = spread if effect is None else spread * effect
    spread = spread + 2.0 * each**2 * np.square(ends - middle).sum(axis=0)
    reach = normal_quantile(level) if together is None else together.reach(level)
    half = reach * np.sqrt(spread * ((rows + 4.0) / (rows + 3.0))) / whole
    low = np.maximum(np.minimum(middle - half, mean), ends[0])
    return Band(mean, low, np.minimum(np.maximum(middle + half, mean), ends[1]))


def _not_worse(counts: DecisionCounts, costs: Costs, place: int, level: float) -> Any:
    """Thresholds whose cost is not clearly above that of one, paired by row, (t,)."""
    # rows between two thresholds are flagged at the lower one only
    found, alarm, missed, quiet = costs.values
    lower = np.arange(counts.mass.shape[1]) <= place
    sign = np.where(lower, 1.0, -1.0)
    cells = []
    for table in (counts.mass, counts.square):
        moved = [np.abs(table[k] - table[k, place]) for k in (0, 1)]
        rest = table[:, 0].sum() - np.sum(moved, axis=0)
        cells.append(np.maximum(np.stack([*moved, rest]), 0.0))
    values = np.stack([sign * (found - missed), sign * (alarm - quiet), np.zeros_like(sign)])
    effect = None
    if counts.together is not None:
        # of the difference only the rows between both thresholds are known, so the larger one
        own = _effects(counts, np.broadcast_to(costs.values[:, None], counts.mass.shape))
        effect = np.maximum(own, own[place])
    return _mean(cells[0], cells[1], values, level, effect, counts.together).low <= 0.0
