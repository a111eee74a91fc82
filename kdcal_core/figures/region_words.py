"""What regions, their maps and their repair show, in plain sentences.

The sentences hold names as they came: escape them on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdcal_core.diagnostics import (
    Estimate,
    PairedAuc,
    Region,
    RegionSearch,
    estimate_text,
    number_text,
    region_finding,
    search_finding,
)
from kdcal_core.diagnostics.regions import p_text

FAULTS = {
    "none": "within chance",
    "over-confident": "over-confident",
    "under-confident": "under-confident",
    "too low": "predictions too low",
    "too high": "predictions too high",
    "too narrow": "spread too narrow",
    "too wide": "spread too wide",
    "other": "wrong in another way",
}


def region_caption(region: Region, *, regression: bool = False) -> str:
    """What stands beside a region in the drawing.

    Examples
    --------
    >>> from kdcal_core.diagnostics import describe_regions
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> one = describe_regions(confidence_target([0.9] * 200, [1] * 130 + [0] * 70), [0] * 200)
    >>> region_caption(one.regions[0])
    'says 0.90, sees 0.65 (200 rows)'
    """
    if region.n == 0:
        return "no rows to judge by"
    rows = "1 row" if region.n == 1 else f"{region.n:,} rows"
    stated, seen = _values(region)
    if regression:
        return f"{FAULTS[region.fault]} ({rows})"
    return f"says {stated}, sees {seen} ({rows})"


def region_hover(region: Region, *, regression: bool = False) -> tuple[str, ...]:
    """The lines of a region's hover box."""
    if region.n == 0:
        return (region.words, "no rows to judge by")
    observed = f"{region.observed.label}: {estimate_text(region.observed)}"
    stated = () if regression else (f"Stated: {_values(region)[0]}",)
    return (
        region.words,
        *stated,
        observed,
        f"{region.n:,} rows ({region.share:.1%})",
        f"{FAULTS[region.fault]}, corrected p {p_text(region.adjusted_p)}",
    )


def _values(region: Region) -> tuple[str, str]:
    width = region.observed.high - region.observed.low
    return number_text(region.stated, width), number_text(region.observed.value, width)


def page_finding(search: RegionSearch) -> str:
    """The worst region and how many there are, or what would have been found."""
    if _judged(search) == 1 and search.faulty:
        told = region_finding(search.faulty[0], regression=search.regression)
        return f"No part of the inputs stands out from the rest. {told}"
    return search_finding(search)


def tree_words(search: RegionSearch) -> str:
    """How the regions were found, and which rows judge them."""
    if search.redraws:
        return _redrawn_words(search)
    how = (
        f"The regions were found on {search.n_grow:,} rows and are judged on {search.n_judge:,} "
        "others"
        if search.n_grow
        else f"The regions are judged on {search.n_judge:,} rows that had no say in where they lie"
    )
    if _judged(search) == 1:
        return f"{how}. No split was worth making, so all rows are one region."
    return f"{how}; corrected p values hold for all {_judged(search):,} of them together."


def _redrawn_words(search: RegionSearch) -> str:
    how = (
        f"The regions were found on all {search.n_judge:,} rows, and are held against the clearest "
        f"region that each of {search.redraws:,} searches found in outcomes redrawn as the model "
        "states them"
    )
    if _judged(search) == 1:
        return f"{how}. No split was worth making, so all rows are one region."
    return f"{how}; p values hold for the search as a whole."


def tree_alt(search: RegionSearch) -> str:
    """Alternative text of the tree: its regions with what is stated and seen, at most twelve."""
    told = "; ".join(
        f"{one.words}: {region_caption(one, regression=search.regression)}, {FAULTS[one.fault]}"
        for one in search.regions[:12]
    )
    more = f"; and {len(search.regions) - 12:,} more" if len(search.regions) > 12 else ""
    return f"A tree of {len(search.regions):,} regions. {told}{more}."


def _judged(search: RegionSearch) -> int:
    return sum(region.n > 0 for region in search.regions)


def faulty_share(search: RegionSearch) -> float:
    """Share of the judged rows that lie in regions with a fault."""
    return sum(region.share for region in search.faulty)


def map_words(slope: float, offset: float, borrowed: float, flags: Sequence[str]) -> str:
    """What a region's Platt map does, in a sentence.

    Examples
    --------
    >>> map_words(0.5, 0.0, 0.1, ())
    'Slope 0.50, offset 0.00: log odds are halved or nearly, so stated probabilities move towards \
one half. 10% of the map is borrowed from the region around it.'
    """
    if slope < 0:
        does = "a higher score means a lower probability here; look at the rows before using it"
    elif slope < 0.1:
        does = "the score says next to nothing here; the rate of the region takes its place"
    elif slope < 0.65:
        does = (
            "log odds are halved or nearly, so stated probabilities move towards one half"
            if slope > 0.4
            else "log odds shrink to less than half: the model is far too sure here"
        )
    elif slope < 0.9:
        does = "log odds shrink a little: the model is somewhat too sure here"
    elif slope <= 1.1 and abs(offset) < 0.1:
        does = "next to nothing changes"
    elif slope <= 1.1:
        does = f"all probabilities move {'up' if offset > 0 else 'down'}"
    else:
        does = "log odds grow: the model is not sure enough here"
    leans = (
        f" {borrowed:.0%} of the map is borrowed from the region around it."
        if borrowed >= 0.005
        else ""
    )
    flagged = f" Careful: {', '.join(flags)}." if flags else ""
    return f"Slope {slope:.2f}, offset {offset:.2f}: {does}.{leans}{flagged}"


def lift_words(title: str, auc: PairedAuc) -> str:
    """What a partition did to the AUC."""
    lift = auc.lift
    clear = lift.low > 0 or lift.high < 0
    if lift.value == 0.0 and lift.low == lift.high:
        return f"{title} leaves the order of the rows, and so the AUC, as it was."
    verb = "raises" if lift.value > 0 else "lowers"
    ending = "" if clear else "; that may be chance"
    return (
        f"{title} {verb} the AUC from {_short(auc.a)} to {_short(auc.b)}, by "
        f"{estimate_text(lift)} of what it was{ending}."
    )


def _short(estimate: Estimate) -> str:
    return number_text(estimate.value, estimate.high - estimate.low)


def change_words(change: Estimate) -> str:
    """How the log loss changed, row by row."""
    clear = change.high < 0 or change.low > 0
    side = "falls" if change.value < 0 else "rises"
    told = estimate_text(change)
    return f"Log loss {side}: change {told}{'' if clear else ', which may be chance'}."


def lift_alt(lines: Sequence[tuple[str, PairedAuc]]) -> str:
    """Alternative text of the lifts."""
    told = "; ".join(f"{title} {estimate_text(pair.lift)}" for title, pair in lines)
    return f"Relative lift of the AUC by partition, with intervals: {told}."


def score_words(names: Sequence[str], shares: Sequence[tuple[float, float]]) -> str:
    """How many rows of each label are stated as nearly certain, panel by panel.

    ``shares`` are the shares of rows above 0.99 of the negatives (stated below 0.01) and of the
    positives.
    """
    told = "; ".join(
        f"{name.lower()} {low:.0%} and {high:.0%}"
        for name, (low, high) in zip(names, shares, strict=True)
    )
    return (
        f"Rows of the other class stated below 1%, and rows of the class stated above 99%: {told}."
    )
