"""Rows by outcome and decision: counts at every threshold, and the rates that follow from them.

A row is flagged where its stated probability of the event is at least the threshold. Everything
here is computed from one table of counts by threshold (`DecisionCounts`), which is small whatever
the number of rows. What decisions are worth stands in `kdcal_core.diagnostics.decision_worth`.
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
        return all_thresholds()

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
        found = [flagged_weight(last[side], weight[side]) for side in (hit, ~hit)]
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
    found = [flagged_weight(last, side) for side in (hits, others)]
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


def all_thresholds() -> FloatArray:
    """The thresholds (t,), ascending."""
    return np.arange(1, STEPS) / STEPS


def last_flagged(score: FloatArray) -> IntArray:
    """How many thresholds each score reaches, (n,)."""
    return np.searchsorted(all_thresholds(), score, side="right")


def flagged_weight(reached: IntArray, weight: FloatArray) -> FloatArray:
    """Weight of the rows that reach each threshold, (t,)."""
    by_count = np.bincount(reached, weights=weight, minlength=STEPS)
    return np.asarray(by_count[::-1].cumsum()[::-1][1:], dtype=np.float64)
