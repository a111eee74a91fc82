"""What acting on a probability is worth: net benefit, cost, and the thresholds that pay.

Computed from the counts by threshold of `kdcal_core.diagnostics.decisions`.

Vickers and Elkin, *Decision curve analysis: a novel method for evaluating prediction models*,
Medical Decision Making 26 (2006); Elkan, *The foundations of cost-sensitive learning*, IJCAI 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.decisions import (
    CELLS,
    STEPS,
    CellProducts,
    DecisionCounts,
    all_thresholds,
    flagged_weight,
    last_flagged,
)
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import check_level, confidence_target
from kdcal_core.errors import InputError
from kdcal_core.statistics import normal_quantile


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
    >>> from kdcal_core.diagnostics import decision_counts
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
    >>> from kdcal_core.diagnostics import decision_counts
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
            both = flagged_weight(least[side], weight[side])
            rows += [flagged_weight(first[side], weight[side]) - both]
            rows += [flagged_weight(second[side], weight[side]) - both]
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
    >>> from kdcal_core.diagnostics import decision_counts
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
    >>> from kdcal_core.diagnostics import decision_counts
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
    >>> from kdcal_core.diagnostics import decision_counts
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


def _odds() -> FloatArray:
    threshold = all_thresholds()
    return threshold / (1.0 - threshold)


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
