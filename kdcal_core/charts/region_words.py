"""What regions, their maps and their repair show, in plain sentences.

The sentences hold names as they came: escape them on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from kdcal_core.calibration.regions import RegionMap
from kdcal_core.diagnostics import (
    Estimate,
    PairedAuc,
    Region,
    RegionSearch,
    estimate_text,
)
from kdcal_core.text import counted, listed, number_text, p_text

_EXAMPLES = (0.2, 0.8)  # stated probabilities whose fate is told
_SUREST = 0.999
_SHIFT = 0.1  # of the log odds; a smaller one is next to nothing
_FLAT = 0.1  # slope below which a map forgets the score
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
_SHORT = {"none": "within chance", "other": "wrong shape"}


def region_caption(region: Region, *, regression: bool = False) -> str:
    """What stands beside a region in the drawing, with its number.

    Examples
    --------
    >>> from kdcal_core.diagnostics import describe_pit_regions, describe_regions
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> one = describe_regions(confidence_target([0.9] * 200, [1] * 130 + [0] * 70), [0] * 200)
    >>> region_caption(one.regions[0])
    '1: says 0.90, rows show 0.65 (200 rows)'
    >>> import numpy as np
    >>> pit = describe_pit_regions(0.25 + np.linspace(0, 0.5, 200), [0] * 200)
    >>> region_caption(pit.regions[0], regression=True)
    '1: too wide, PIT spread -50% (200 rows)'
    """
    number = f"{region.leaf + 1}: "
    if region.n == 0:
        return f"{number}no rows to judge by"
    rows = counted(region.n, "row")
    stated, seen = _values(region)
    if regression:
        return f"{number}{_SHORT.get(region.fault, region.fault)}, {_tested(region)} ({rows})"
    return f"{number}says {stated}, rows show {seen} ({rows})"


def _tested(region: Region) -> str:
    """The quantity that a fault of PIT values goes by."""
    spread = region.spread
    if spread is None or region.fault not in ("too narrow", "too wide"):
        return f"mean PIT {_values(region)[1]}"
    size = number_text(spread.value, spread.high - spread.low, percent=True)
    return f"PIT spread {'+' if spread.value > 0 else ''}{size}"


def region_hover(region: Region, *, regression: bool = False) -> tuple[str, ...]:
    """The lines of a region's hover box."""
    words = f"{region.leaf + 1}: {region.words}"
    if region.n == 0:
        return (words, "no rows to judge by")
    observed = f"{region.observed.label}: {estimate_text(region.observed)}"
    stated = () if regression else (f"Stated: {_values(region)[0]}",)
    spread = () if region.spread is None else (f"Spread of PIT: {_spread_text(region.spread)}",)
    return (
        words,
        *stated,
        observed,
        *spread,
        f"{region.n:,} rows ({region.share:.1%})",
        f"{FAULTS[region.fault]}, corrected p {p_text(region.adjusted_p)}",
    )


def _spread_text(spread: Estimate) -> str:
    return estimate_text(replace(spread, expected=None))


def _values(region: Region) -> tuple[str, str]:
    width = region.observed.high - region.observed.low
    return number_text(region.stated, width), number_text(region.observed.value, width)


def tree_words(search: RegionSearch) -> str:
    """How the regions were found, and which rows judge them."""
    if search.redraws:
        return _redrawn_words(search)
    if search.tree is None:
        how = (
            "The regions follow from the column alone, and are judged on all "
            f"{search.n_judge:,} rows"
        )
    elif search.n_grow:
        how = (
            f"The regions were found on {search.n_grow:,} rows and are judged on the outcomes of "
            f"{search.n_judge:,} others"
        )
    else:
        how = (
            "The regions were found on the training rows and are judged on "
            f"{search.n_judge:,} others"
        )
    if _judged(search) == 1:
        why = "All rows" if search.tree is None else "No split was worth making, so all rows"
        return f"{how}. {why} are one region."
    every = "both" if _judged(search) == 2 else f"all {_judged(search):,}"
    return f"{how}; corrected p values hold for {every} of them together."


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
    """Alternative text of the picture: the regions with what is stated and seen, at most twelve."""
    told = [
        f"{one.words}: {region_caption(one, regression=search.regression)}, {FAULTS[one.fault]}"
        for one in search.regions
    ]
    kind = "A tree of" if search.tree is not None else "A column's"
    return f"{kind} {len(search.regions):,} regions. {listed(told, 12, between=';')}."


def _judged(search: RegionSearch) -> int:
    return sum(region.n > 0 for region in search.regions)


def standing_out_words(search: RegionSearch) -> tuple[str, str]:
    """How many regions stand out beyond chance, and the share of rows in them, as tiles say it."""
    if search.one_part:
        return "none", "none"
    some = sum(region.n > 0 for region in search.regions)
    share = sum(region.share for region in search.standing_out)
    return f"{len(search.standing_out):,} of {some:,}", f"{share:.0%}"


def map_words(one: RegionMap, name: str, borrowed: float, flags: Sequence[str]) -> str:
    """What a region's map makes of the stated probability of the class ``name``, in a sentence.

    Told is what becomes of a stated 20% and 80%, or of the lowest and highest that the region
    states where these lie within, and of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> stated = np.array([0.1, 0.3, 0.5, 0.9])
    >>> map_words(RegionMap.of(0, "here", 0.86, 1.01, stated), "yes", 0.1, ())
    'Class yes is stated too low: a stated 20% becomes 45%, 80% becomes 90%, and the mean of 45% \
becomes 64% (slope 0.86, offset 1.01). 10% of the map is borrowed from the region around it.'
    """
    leans = (
        f" {borrowed:.0%} of the map is borrowed from the region around it."
        if borrowed >= 0.005
        else ""
    )
    flagged = f" Careful: {', '.join(flags)}." if flags else ""
    return (
        f"{_map_does(one, name)}: {_map_examples(one)} (slope {one.slope:.2f}, offset "
        f"{one.offset:.2f}).{leans}{flagged}"
    )


def _map_does(one: RegionMap, name: str) -> str:
    """What the whole map does, by the shift of the log odds of what is told."""
    if one.slope < 0:
        return (
            f"A higher stated probability of class {name} means a lower one here, so look at the "
            "rows before using the map"
        )
    if one.slope < _FLAT:
        return f"The stated probability of class {name} says next to nothing here"
    ends = _told(one)
    low, high = _shifts(ends, one.apply(ends))
    of_mean = _shifts([one.mean], [one.mean_after])[0]
    up, down = max(low, high, of_mean) > _SHIFT, min(low, high, of_mean) < -_SHIFT
    if up and down and one.slope < 1.0:
        return f"Class {name} is stated too surely, low ones too low and high ones too high"
    if up and down:
        return f"Class {name} is not stated surely enough, low ones too high and high ones too low"
    if not up and not down:
        return f"Next to nothing changes for class {name}"
    return f"Class {name} is stated {'too low' if up else 'too high'}"


def _shifts(stated: ArrayLike, after: ArrayLike) -> list[float]:
    """How far the log odds move; of probabilities not nearer to 0 and 1 than are told."""
    p, q = (np.clip(values, 1.0 - _SUREST, _SUREST) for values in (stated, after))
    shifts: list[float] = np.log(q / (1.0 - q) * (1.0 - p) / p).tolist()
    return shifts


def _map_examples(one: RegionMap) -> str:
    ends = list(dict.fromkeys(_share(p) for p in _told(one)))
    after = [_share(float(p)) for p in one.apply(_told(one))]
    told = [f"{p} becomes {q}" for p, q in zip(ends, after, strict=False)]
    return f"a stated {', '.join(told)}, and the mean of {_share(one.mean)} becomes " + _share(
        one.mean_after
    )


def _told(one: RegionMap) -> tuple[float, float]:
    """Stated probabilities whose fate is told; the region states from ``low`` to ``high``."""
    low, high = np.clip([one.low, one.high], 1.0 - _SUREST, _SUREST).tolist()
    first, last = _EXAMPLES
    return (
        first if low <= first <= high else low,
        last if low <= last <= high else high,
    )


def _share(p: float) -> str:
    """A probability in percent, with a decimal near 0 and 1."""
    if not 1.0 - _SUREST <= p <= _SUREST:
        return "over 99.9%" if p > 0.5 else "below 0.1%"
    return number_text(p, max(0.6 * min(p, 1.0 - p), 0.006), percent=True)


def lift_words(title: str, auc: PairedAuc) -> str:
    """What a partition did to the AUROC."""
    lift = auc.lift
    clear = lift.low > 0 or lift.high < 0
    if lift.value == 0.0 and lift.low == lift.high:
        return f"With {title} the order of the rows, and so the AUROC, stays as it was."
    verb = "rises" if lift.value > 0 else "falls"
    ending = "" if clear else "; that may be chance"
    return (
        f"With {title} the AUROC {verb} from {_short(auc.a)} to {_short(auc.b)}, by "
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
    return f"Relative lift of the AUROC by partition, with intervals: {told}."


def change_alt(lines: Sequence[tuple[str, Estimate]]) -> str:
    """Alternative text of the changes of the log loss."""
    told = "; ".join(f"{title} {estimate_text(change)}" for title, change in lines)
    return f"Change of the log loss by partition, with intervals: {told}."


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
