"""Regions of the inputs and the fault of each: frozen results, and their findings in words.

Names of columns and categories are not escaped; callers do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri

from kdcal_core.data import IntArray
from kdcal_core.diagnostics.estimate import Estimate, estimate_text, interval_text, value_text
from kdcal_core.partition.tree import ALL_ROWS, Condition, PartitionTree
from kdcal_core.shown import Shown
from kdcal_core.statistics import normal_quantile
from kdcal_core.text import counted, number_text, p_text

PENALTY = 12.0
"""Evidence, as a chi-square, that a split of a search must add to be kept."""
_PART = 0.2  # share of the rows in a part that a search may not have noticed
ANY_PART = "any other fifth of the rows"
"""Name of such a part, which no rule defines."""

RegionFault = Literal[
    "none",
    "over-confident",
    "under-confident",
    "too low",
    "too high",
    "too narrow",
    "too wide",
    "other",
]


@dataclass(frozen=True, eq=False)
class Region:
    """One region of the inputs, judged on rows that did not determine its borders.

    Attributes
    ----------
    leaf : int
        Its number in ``RegionSearch.leaf``.
    words : str
        Its rule, with names as in the table: untrusted text.
    conditions : tuple of Condition
        The rule, one condition per column; empty for a partition that is not a tree.
    n : int
        Rows judged, may be 0.
    effective : float
        Kish's effective number of them.
    share : float
        Share of the judged rows' weight that lies in it.
    stated : float
        Mean stated probability; 1/2 for PIT values.
    observed : Estimate
        Rate at which the event happened; for PIT values the mean PIT.
    gap : Estimate
        ``observed`` minus ``stated``.
    p_value, adjusted_p : float
        Of the hypothesis that nothing is wrong here, alone and Holm-corrected for all regions.
    minimum_detectable : float
        The gap, in either direction, that four of five samples of this size would find in this
        region at the strictest level of the correction. Above 1 no gap would be found.
    fault : str
        The fault if ``adjusted_p`` is below 1 - level, otherwise "none". "over-confident": the
        event happens less often than stated. For PIT values "too low", "too high", "too narrow",
        "too wide" or "other".
    spread : Estimate or None
        For PIT values, their standard deviation over that of uniform ones, minus 1.
    """

    leaf: int
    words: str
    conditions: tuple[Condition, ...]
    n: int
    effective: float
    share: float
    stated: float
    observed: Estimate
    gap: Estimate
    p_value: float
    adjusted_p: float
    minimum_detectable: float
    fault: RegionFault
    spread: Estimate | None = None


@dataclass(frozen=True, eq=False, repr=False)
class RegionSearch(Shown):
    """A partition of the inputs and the fault of each of its regions.

    Attributes
    ----------
    tree : PartitionTree or None
        None if the partition is that of a column or given by numbers.
    regions : tuple of Region
        One for each leaf, in the order of the leaves.
    overall : Estimate
        Observed minus stated rate over all judged rows.
    overall_p : float
        Of the hypothesis that nothing is wrong overall, not corrected.
    n_grow, n_judge : int
        Number of rows on which the tree was grown, and on which the regions are judged.
    seed, level : int, float
    target : str
        What is stated: "the stated confidence", "the probability of class X", "PIT values".
    leaf : (n,) int64
        Region of every row, including those on which the tree was grown; -1 for no region.
    judged : (m,) int64
        Rows on which the regions were judged.
        `without_rows` empties both arrays.
    regression : bool
        Whether the search is of PIT values.
    redraws : int
        Redraws of the outcomes with which the regions are compared; 0 if other rows judge them.
    least : int
        Fewest rows of a region among those on which the tree was grown.
    effect : float
        Design effect of dependent rows, which the evidence of a split does not count; 1 for
        independent ones, and where redraws count it.
    """

    tree: PartitionTree | None
    regions: tuple[Region, ...]
    overall: Estimate
    overall_p: float
    n_grow: int
    n_judge: int
    seed: int
    level: float
    target: str
    leaf: IntArray
    judged: IntArray
    regression: bool = False
    redraws: int = 0
    least: int = 0
    effect: float = 1.0

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield "Regions", search_finding(self)
        yield "Overall", estimate_text(self.overall)
        yield "Judged", self.target
        yield "Rows", f"{self.n_judge:,} judged, {self.n_grow:,} to find the regions"

    def unnoticed(self, power: float) -> float:
        """The smallest gap of a fifth of the rows that the search notices with this probability.

        It holds where one column defines the part, and the other rows have no gap. The tree keeps
        such a split if it adds evidence of at least `PENALTY`, as if rows were independent.
        Infinite where so few rows are no region, and where nothing was searched.
        """
        if self.n_grow == 0 or _PART * self.n_grow < self.least:
            return np.inf
        width = (self.overall.high - self.overall.low) / 2.0
        error = width / normal_quantile(self.level) * np.sqrt(self.n_judge / self.n_grow)
        strength = np.sqrt(PENALTY / self.effect) + ndtri(power)
        return float(strength * error / np.sqrt(_PART * (1.0 - _PART)))

    def without_rows(self) -> RegionSearch:
        """The search without ``leaf`` and ``judged``; its size does not grow with the rows."""
        none = np.empty(0, dtype=np.int64)
        return replace(self, leaf=none, judged=none)

    @property
    def one_part(self) -> bool:
        """Whether all judged rows lie in one region, so no part can differ from the rest."""
        return sum(region.n > 0 for region in self.regions) == 1

    @property
    def standing_out(self) -> tuple[Region, ...]:
        """The faulty regions; empty if one region contains all rows."""
        return () if self.one_part else self.faulty

    @property
    def faulty(self) -> tuple[Region, ...]:
        """Regions with a fault, the strongest evidence first."""
        found = [region for region in self.regions if region.fault != "none"]
        return tuple(sorted(found, key=lambda region: (region.p_value, -abs(region.gap.value))))

    def table(self) -> pd.DataFrame:
        """One row per region: the data of the page's table, for download."""
        return pd.DataFrame(
            [
                {
                    "region": region.leaf,
                    "rule": region.words,
                    "rows": region.n,
                    "share": region.share,
                    "stated": region.stated,
                    "observed": region.observed.value,
                    "gap": region.gap.value,
                    "gap_low": region.gap.low,
                    "gap_high": region.gap.high,
                    "p_value": region.p_value,
                    "adjusted_p": region.adjusted_p,
                    "minimum_detectable": region.minimum_detectable,
                    "fault": region.fault,
                }
                | _spread_columns(region)
                for region in self.regions
            ]
        )


def _spread_columns(region: Region) -> dict[str, float]:
    """The spread, which is tested for PIT values; empty for stated probabilities."""
    spread = region.spread
    if spread is None:
        return {}
    return {"spread": spread.value, "spread_low": spread.low, "spread_high": spread.high}


_FOUR_OF_FIVE = 0.8
_CLEARLY = 0.01  # of an interval's width; nearer ends would need too many decimals

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
    lead = "Over all rows" if region.words == ALL_ROWS else f"Where {region.words}"
    if region.n == 0:
        return f"{lead}: no rows to judge it by."
    rows = counted(region.n, "row")
    seen = region.observed
    stated, value = value_text(seen, region.stated), value_text(seen)
    between = interval_text(seen, apart_from=_kept_apart(region))
    if regression:
        fault = _OF_PIT[region.fault]
        sentence = f"the mean PIT is {value} ({between}, {rows}), not {stated}; {fault}"
        if region.spread is not None and region.fault in ("too narrow", "too wide"):
            sentence = f"PIT values vary {_vary(region.spread)}, {rows}); {fault}"
    else:
        fault = "within chance" if region.fault == "none" else region.fault
        sentence = f"the model says {stated}, the rows show {value} ({between}, {rows}); {fault}"
    return f"{lead}: {sentence}, corrected p {p_text(region.adjusted_p)}."


def _kept_apart(region: Region) -> tuple[float, ...]:
    """The stated rate, as which no end is written, where a fault's interval is clearly off it."""
    seen = region.observed
    away = min(abs(end - region.stated) for end in (seen.low, seen.high))
    clear = region.fault != "none" and away > _CLEARLY * (seen.high - seen.low)
    return (region.stated,) if clear else ()


def _vary(spread: Estimate) -> str:
    """How far the PIT values' standard deviation is from that of uniform ones; opens a bracket."""
    by, side = value_text(spread, abs(spread.value)), "more" if spread.value > 0 else "less"
    return f"{by} {side} than they should ({interval_text(spread)}"


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
    if search.one_part and search.n_grow:
        lead = "No part of the inputs stands out, and all rows together show no fault beyond chance"
        return f"{lead}; {_noticed(search)}."
    lead = f"None of {len(judged):,} regions differs beyond chance"
    return f"{lead}; {_detectable(judged, search.regression)}."


def _noticed(search: RegionSearch) -> str:
    """Which gap of a part a search that named no part would have noticed."""
    what = "a shift of the mean PIT" if search.regression else "a gap"
    least = search.unnoticed(_FOUR_OF_FIVE)
    if least >= 1.0:
        return "there are too few rows to find any part"
    gap = number_text(least, least)
    return f"{what} of {gap} in a fifth of the rows would have been found in four of five searches"


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
