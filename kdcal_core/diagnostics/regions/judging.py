"""Each region of a partition judged by its rows: stated against observed, or PIT values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, chndtrinc

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regions.results import Region, RegionFault
from kdcal_core.diagnostics.regions.shift import POWER, shift_test
from kdcal_core.diagnostics.regression.fault import fault_parts, named_fault
from kdcal_core.diagnostics.targets import Target
from kdcal_core.partition.tree import Condition
from kdcal_core.statistics import holm, kish

_BY_STATED = "saddlepoint of the rows' own stated probabilities"
_NO_ROWS = "not defined: no rows"


@dataclass(frozen=True)
class Place:
    """A region before it is judged."""

    leaf: int
    words: str
    conditions: tuple[Condition, ...] = ()


Judge = Callable[[Place, IntArray, float, float], Region]


def judged(
    places: Sequence[Place], leaf: IntArray, weight: FloatArray, level: float, judge: Judge
) -> tuple[Region, ...]:
    """The regions with their faults, p values corrected by Holm over those that have rows."""
    order = np.argsort(leaf, kind="stable")
    ends = np.searchsorted(leaf[order], [place.leaf for place in places], side="left")
    stops = np.searchsorted(leaf[order], [place.leaf for place in places], side="right")
    rows = [order[a:b] for a, b in zip(ends, stops, strict=True)]
    looks = max(sum(len(r) > 0 for r in rows), 1)
    total = float(weight[leaf >= 0].sum())
    found = [
        judge(place, r, float(weight[r].sum()) / total, (1.0 - level) / looks)
        if len(r)
        else _empty(place, level)
        for place, r in zip(places, rows, strict=True)
    ]
    some = np.array([region.n > 0 for region in found])
    adjusted = np.ones(len(found))
    adjusted[some] = holm(np.array([region.p_value for region in found])[some])
    return tuple(
        replace(
            region, adjusted_p=float(p), fault=region.fault if float(p) < 1.0 - level else "none"
        )
        for region, p in zip(found, adjusted, strict=True)
    )


def by_stated(target: Target, level: float) -> Judge:
    """Judge regions by stated probability and outcome of rows."""

    def judge(place: Place, rows: IntArray, share: float, found_at: float) -> Region:
        weight = target.weight[rows]
        shift = shift_test(target.score[rows], target.hit[rows], weight, level, found_at)
        gap = shift.observed - shift.stated
        observed = _estimate(
            "Observed rate of the event",
            "Observed",
            (shift.observed, shift.stated + shift.low, shift.stated + shift.high),
            len(rows),
            level,
        )
        return Region(
            leaf=place.leaf,
            words=place.words,
            conditions=place.conditions,
            n=len(rows),
            effective=kish(weight),
            share=share,
            stated=shift.stated,
            observed=observed,
            gap=gap_estimate(gap, shift.low, shift.high, len(rows), level),
            p_value=shift.p_value,
            adjusted_p=shift.p_value,
            minimum_detectable=shift.minimum_detectable,
            fault="over-confident" if gap < 0 else "under-confident",
        )

    return judge


def by_pit(pit: FloatArray, weight: FloatArray, level: float) -> Judge:
    """Judge regions by the PIT values of rows: Neyman's smooth test and Kolmogorov-Smirnov's."""

    def judge(place: Place, rows: IntArray, share: float, found_at: float) -> Region:
        parts = fault_parts(pit[rows], level, weight[rows])
        fault = named_fault(parts, adjusted_p=0.0)
        rows_ = kish(weight[rows])
        bias = fault.bias
        observed = replace(
            bias,
            name="Mean PIT value",
            label="Mean PIT",
            value=bias.value + 0.5,
            low=bias.low + 0.5,
            high=bias.high + 0.5,
            expected=0.5,
        )
        return Region(
            leaf=place.leaf,
            words=place.words,
            conditions=place.conditions,
            n=len(rows),
            effective=rows_,
            share=share,
            stated=0.5,
            observed=observed,
            gap=bias,
            p_value=parts.p_value,
            adjusted_p=parts.p_value,
            minimum_detectable=_least_bias(rows_, found_at),
            fault=fault.kind,
            spread=fault.spread,
        )

    return judge


def gap_estimate(gap: float, low: float, high: float, n: int, level: float) -> Estimate:
    """Observed minus stated rate."""
    return _estimate("Observed minus stated rate", "Gap", (gap, low, high), n, level)


def _least_bias(rows: float, found_at: float) -> float:
    """Distance of the mean PIT from 1/2 that the smooth test finds in four of five samples."""
    # two tests share the level
    noncentrality = chndtrinc(chdtri(2.0, found_at / 2.0), 2.0, 1.0 - POWER)
    return float(np.sqrt(noncentrality / (12.0 * rows)))


def _empty(place: Place, level: float) -> Region:
    nothing = _estimate("Observed rate of the event", "Observed", (np.nan,) * 3, 0, level)
    nothing = replace(nothing, interval=_NO_ROWS)
    kind: RegionFault = "none"
    return Region(
        leaf=place.leaf,
        words=place.words,
        conditions=place.conditions,
        n=0,
        effective=0.0,
        share=0.0,
        stated=np.nan,
        observed=nothing,
        gap=replace(nothing, name="Observed minus stated rate", label="Gap"),
        p_value=1.0,
        adjusted_p=1.0,
        minimum_detectable=np.inf,
        fault=kind,
    )


def _estimate(name: str, label: str, values: tuple[float, ...], n: int, level: float) -> Estimate:
    value, low, high = values
    return Estimate(
        name=name,
        label=label,
        value=value,
        low=low,
        high=high,
        n=n,
        level=level,
        interval=_BY_STATED,
        lower_is_better=None,
    )
