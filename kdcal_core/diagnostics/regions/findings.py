"""Regions in words. Names of columns and categories pass through: callers escape them."""

from __future__ import annotations

from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regions.results import Region, RegionFault, RegionSearch
from kdcal_core.text import counted, number_text, p_text

_OF_PIT: dict[RegionFault, str] = {
    "too low": "predictions are too low",
    "too high": "predictions are too high",
    "too narrow": "stated spreads are too narrow",
    "too wide": "stated spreads are too wide",
    "other": "stated distributions have the wrong shape",
    "none": "no fault shows beyond chance",
}


def region_finding(region: Region, *, regression: bool = False) -> str:
    """Stated and observed values of one region, as a sentence.

    Examples
    --------
    >>> from kdcal_core.diagnostics.regions import describe_regions
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> scored = confidence_target([0.9] * 200, [1] * 130 + [0] * 70)
    >>> region_finding(describe_regions(scored, [0] * 200, ("age is up to 24",)).regions[0])
    'Where age is up to 24: the model says 0.90, the rows show 0.65 (0.58 to 0.71, 200 rows); \
over-confident, corrected p below 0.0001.'
    """
    lead = "Over all rows" if region.words == "all rows" else f"Where {region.words}"
    if region.n == 0:
        return f"{lead}: no rows to judge by."
    rows = counted(region.n, "row")
    seen = region.observed
    width = seen.high - seen.low
    stated, value, low, high = (
        number_text(v, width) for v in (region.stated, seen.value, seen.low, seen.high)
    )
    if regression:
        fault = _OF_PIT[region.fault]
        sentence = f"the mean PIT is {value} ({low} to {high}, {rows}), not {stated}; {fault}"
        if region.spread is not None and region.fault in ("too narrow", "too wide"):
            sentence = f"PIT values vary {_vary(region.spread)}, {rows}); {fault}"
    else:
        fault = "within chance" if region.fault == "none" else region.fault
        sentence = (
            f"the model says {stated}, the rows show {value} ({low} to {high}, {rows}); {fault}"
        )
    return f"{lead}: {sentence}, corrected p {p_text(region.adjusted_p)}."


def _vary(spread: Estimate) -> str:
    """How far the standard deviation of PIT values is from uniform's; an open parenthesis."""
    width = spread.high - spread.low
    value, low, high = (
        number_text(v, width, percent=True) for v in (spread.value, spread.low, spread.high)
    )
    side = "more" if spread.value > 0 else "less"
    return f"{value.lstrip('-')} {side} than they should ({low} to {high}"


def search_finding(search: RegionSearch) -> str:
    """The worst region and the number of faulty ones, or the gap that would have been found.

    Examples
    --------
    >>> from kdcal_core.diagnostics.regions import describe_regions
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> import numpy as np
    >>> scored = confidence_target([0.5] * 400, [0, 1] * 200)
    >>> search_finding(describe_regions(scored, np.repeat([0, 1], 200)))
    'None of 2 regions differs beyond chance; a gap of 0.11 would have been found in four of five \
searches.'
    """
    faulty = search.faulty
    judged = [region for region in search.regions if region.n > 0]
    if faulty and search.one_part:
        sentence = region_finding(faulty[0], regression=search.regression)
        return f"No part of the inputs stands out from the rest. {sentence}"
    if faulty:
        count = (
            f"{len(faulty):,} of {len(judged):,} regions "
            f"{'is' if len(faulty) == 1 else 'are'} wrong beyond chance"
        )
        most = ". " if len(faulty) == 1 else ", most clearly this one. "
        return f"{count}{most}{region_finding(faulty[0], regression=search.regression)}"
    if search.one_part:
        lead = "No part of the inputs stands out, and all rows together show no fault beyond chance"
    else:
        lead = f"None of {len(judged):,} regions differs beyond chance"
    return f"{lead}; {_detectable(judged, search.regression)}."


def _detectable(judged: list[Region], regression: bool) -> str:
    least, most = (pick(region.minimum_detectable for region in judged) for pick in (min, max))
    what = "a shift of the mean PIT" if regression else "a gap"
    if least >= 1.0:
        return "there are too few rows to find any gap"
    low, high = (number_text(v, v) for v in (least, most))
    tail = "would have been found in four of five searches"
    if low == high:
        return f"{what} of {low} {tail}"
    if most >= 1.0:
        return f"{what} of {low} in the largest region {tail}, none in the smallest"
    return f"{what} of {low} to {high}, by region, {tail}"
