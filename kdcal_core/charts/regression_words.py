"""Takeaways and alternative texts of the regression pictures, in plain sentences with numbers.

The sentences hold names as they came: escape them on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.charts.pit import FAULT_TITLES, PitPanel
from kdcal_core.diagnostics import Estimate, Misses
from kdcal_core.diagnostics.regression import local_finding
from kdcal_core.diagnostics.regression.results import (
    EcdfDifference,
    LocalPit,
    PitHistogram,
    QuantileReliability,
)

_KINDS = tuple(kind for kind in FAULT_TITLES if kind != "none")


def pit_words(histogram: PitHistogram) -> str:
    """How many bars leave the band, and which leaves it furthest.

    Examples
    --------
    >>> flat = PitHistogram(np.linspace(0, 1, 5), np.array([90.0, 10, 50, 50]), np.full(4, 30.0),
    ...                     np.full(4, 70.0), 200, 200.0, 0.95, "simultaneous")
    >>> pit_words(flat)
    '2 of 4 bars leave the band; furthest off are PIT values of 0.00 to 0.25: 90 rows where 30 to
     70 were to be expected.'
    """
    far = np.flatnonzero(histogram.outside)
    if not far.size:
        return f"All {histogram.counts.size} bars stay in the band."
    beyond = np.maximum(histogram.counts - histogram.high, histogram.low - histogram.counts)
    worst = int(np.argmax(beyond))
    return (
        f"{far.size} of {histogram.counts.size} bars {'leaves' if far.size == 1 else 'leave'} the "
        f"band; furthest off are PIT values of {histogram.edges[worst]:.2f} to "
        f"{histogram.edges[worst + 1]:.2f}: {histogram.counts[worst]:,.0f} rows where "
        f"{histogram.low[worst]:,.0f} to {histogram.high[worst]:,.0f} were to be expected."
    )


def pit_alt(histogram: PitHistogram) -> str:
    """Alternative text of a PIT histogram: its density in five equal parts."""
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    share = np.histogram(middle, np.linspace(0, 1, 6), weights=histogram.counts)[0]
    parts = ", ".join(f"{5 * part / max(histogram.n, 1):.2f}" for part in share)
    return (
        f"Histogram of {histogram.n:,} PIT values. Relative density over five equal parts from "
        f"0 to 1: {parts}; right distributions have 1 everywhere. {pit_words(histogram)}"
    )


def pit_panels_words(panels: Sequence[PitPanel]) -> str:
    """The faults of several groups of rows, and that opposite ones cancel where they do."""
    told = "; ".join(f"{shown.name}: {_panel_words(shown)}" for shown in panels)
    kinds = {shown.kind for shown in panels[1:]}
    opposite = {"too low", "too high"} <= kinds or {"too narrow", "too wide"} <= kinds
    ending = " Opposite faults cancel where all rows are taken together." if opposite else ""
    return f"{told}.{ending}"


def _panel_words(shown: PitPanel) -> str:
    """The fault of one group of rows; where none is named, bars may leave the band all the same."""
    out, all_bars = int(shown.histogram.outside.sum()), shown.histogram.counts.size
    but = f", but {out} of {all_bars} bars leave the band" if shown.kind == "none" and out else ""
    return f"{FAULT_TITLES[shown.kind]}{but}"


def pit_panels_alt(panels: Sequence[PitPanel]) -> str:
    """Alternative text of histograms beside each other."""
    return " ".join(f"{shown.name}: {pit_alt(shown.histogram)}" for shown in panels)


def ecdf_words(model: EcdfDifference, calibrated: EcdfDifference | None = None) -> str:
    """Whether each line leaves the simultaneous band, and where it is furthest from zero."""
    told = _ecdf_line(model, "The model's line")
    if calibrated is None:
        return f"{told}."
    return f"{told}. {_ecdf_line(calibrated, 'Recalibrated, it')}."


def _ecdf_line(curve: EcdfDifference, who: str) -> str:
    worst = int(np.argmax(np.abs(curve.difference)))
    value = float(curve.difference[worst])
    stays = "leaves" if curve.outside.any() else "stays within"
    return (
        f"{who} {stays} the {curve.level:.0%} band; it is furthest off at the "
        f"{curve.levels[worst]:.2f} quantile, below which {100 * abs(value):.1f} points "
        f"{'more' if value > 0 else 'fewer'} of the outcomes fall than stated"
    )


def local_map_alt(local: LocalPit, x_title: str, y_title: str) -> str:
    """Alternative text of the map of faults, with where each kind lies on average."""
    places = []
    for kind in _KINDS:
        mine = local.xy[local.kind == kind]
        if len(mine):
            x, y = np.median(mine, axis=0)
            places.append(f"{FAULT_TITLES[kind]} around {x:,.4g}, {y:,.4g}")
    where = f" In the middle: {'; '.join(places)}." if places else ""
    return f"Map of neighbourhoods over {x_title} and {y_title}. {local_finding(local)}{where}"


def misses_words(panels: Sequence[Misses], level: float = 0.95) -> str:
    """How many outcomes the intervals missed before and after, and on which side."""
    told = "; ".join(f"{shown.name} {_missed(shown)}" for shown in panels)
    return f"Outcomes outside their {level:.0%} intervals: {told}. Stated are {1 - level:.0%}."


def _missed(shown: Misses) -> str:
    return (
        f"{shown.missed:,} of {shown.n:,} ({shown.share:.1%}), {shown.n_above:,} above and "
        f"{shown.n_below:,} below"
    )


def misses_alt(panels: Sequence[Misses], x_title: str, y_title: str) -> str:
    """Alternative text of the maps of misses."""
    return f"Maps of hits and misses over {x_title} and {y_title}. {misses_words(panels)}"


def coverage_words(
    names: Sequence[str],
    before: Sequence[Estimate],
    level: float,
    after: Sequence[Estimate] | None = None,
) -> str:
    """Between which extremes coverage runs, before and after.

    Parameters
    ----------
    before, after : sequence of Estimate
        Coverage by bin.

    Examples
    --------
    >>> def held(value): return Estimate("", "", value, value - 0.02, value + 0.02, 400)
    >>> coverage_words(["low", "high"], [held(0.99), held(0.81)], 0.95, [held(0.95), held(0.94)])
    'Stated are 95%: the model holds from 81% (high) to 99% (low) of the outcomes, recalibrated
     from 94% to 95%. The stated level lies outside the error bar in 2 of 2 bins, recalibrated in
     0.'
    """
    known = [at for at, each in enumerate(before) if np.isfinite(each.value)]
    if not known:
        return "No bin has rows, so nothing can be said about coverage."
    least = min(known, key=lambda at: before[at].value)
    most = max(known, key=lambda at: before[at].value)
    told = (
        f"Stated are {level:.0%}: the model holds from {before[least].value:.0%} ({names[least]}) "
        f"to {before[most].value:.0%} ({names[most]}) of the outcomes"
    )
    off = (
        f"The stated level lies outside the error bar in {_off(before, level)} of {len(known)} bins"
    )
    if after is None:
        return f"{told}. {off}."
    values = [each.value for each in after if np.isfinite(each.value)]
    return (
        f"{told}, recalibrated from {min(values):.0%} to {max(values):.0%}. {off}, recalibrated in "
        f"{_off(after, level)}."
    )


def _off(estimates: Sequence[Estimate], level: float) -> int:
    return sum(not each.low <= level <= each.high for each in estimates if np.isfinite(each.value))


def coverage_alt(
    column: str,
    names: Sequence[str],
    before: Sequence[Estimate],
    after: Sequence[Estimate] | None = None,
) -> str:
    """Alternative text of coverage over a column, at most eight bins of it."""
    at = np.unique(np.linspace(0, len(names) - 1, min(len(names), 8)).astype(int))
    told = ", ".join(
        f"{names[i]} {before[i].value:.0%}"
        + (f", recalibrated {after[i].value:.0%}" if after is not None else "")
        for i in at
    )
    return f"Share of outcomes inside their intervals over {column}: {told}."


def quantile_words(before: QuantileReliability, after: QuantileReliability | None = None) -> str:
    """The largest distance between stated and observed quantiles, before and after."""
    worst = int(np.argmax(np.abs(before.observed - before.levels)))
    told = (
        f"Furthest off is the {before.levels[worst]:.0%} quantile: "
        f"{before.observed[worst]:.1%} of {before.n:,} outcomes lie at or below it "
        f"({before.low[worst]:.1%} to {before.high[worst]:.1%})"
    )
    if after is None:
        return f"{told}."
    gap = float(np.abs(after.observed - after.levels).max())
    return f"{told}. Recalibrated, the furthest is off by {100 * gap:.1f} points."


def quantile_alt(before: QuantileReliability, after: QuantileReliability | None = None) -> str:
    """Alternative text of the reliability of quantiles, at most nine levels."""
    at = np.unique(np.linspace(0, before.levels.size - 1, 9).astype(int))
    told = ", ".join(f"{before.levels[i]:.0%} sees {before.observed[i]:.1%}" for i in at)
    return f"Stated against observed quantiles: {told}. {quantile_words(before, after)}"


def truth_words(distances: Sequence[tuple[str, float]]) -> str:
    """Root mean squared distance of each method's mean from the true mean.

    Examples
    --------
    >>> truth_words([("Model", 2**0.5)])
    'Root mean squared distance from the true mean: Model 1.414.'
    """
    told = ", ".join(f"{label} {distance:,.4g}" for label, distance in distances)
    return f"Root mean squared distance from the true mean: {told}."
