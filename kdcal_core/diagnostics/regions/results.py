"""Regions of the inputs and the fault of each: frozen results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.data import IntArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.partition.tree import Condition, PartitionTree

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
        Its rule, with names as they are in the table: untrusted.
    conditions : tuple of Condition
        The rule, one condition a column; empty for a partition that is not a tree.
    n : int
        Rows judged; 0 where none fell into it.
    effective : float
        Kish's effective number of them.
    share : float
        Weight of the judged rows that lie in it.
    stated : float
        Mean stated probability; 1/2 for PIT values.
    observed : Estimate
        Rate at which the event happened; for PIT values their mean.
    gap : Estimate
        ``observed`` minus ``stated``.
    p_value, adjusted_p : float
        Against "nothing is wrong here"; corrected for all regions tested (Holm).
    minimum_detectable : float
        The gap, in either direction, that four of five samples of this size would find in this
        region at the strictest level of the correction. Above 1 no gap would be found.
    fault : str
        Named where ``adjusted_p`` is below 1 - level. "over-confident": less is observed than
        stated. For PIT values "too low", "too high", "too narrow", "too wide" or "other".
    spread : Estimate or None
        For PIT values: their standard deviation over uniform's, minus 1.
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


@dataclass(frozen=True, eq=False)
class RegionSearch:
    """A partition of the inputs and the fault of each of its regions.

    Attributes
    ----------
    tree : PartitionTree or None
        None where the partition is a column's or given by numbers.
    regions : tuple of Region
        One a leaf, in the order of the leaves.
    overall : Estimate
        Observed minus stated over all judged rows.
    overall_p : float
        Against "nothing is wrong overall", not corrected.
    n_grow, n_judge : int
        Rows that the tree was grown on, and rows that the regions are judged on.
    seed, level : int, float
    target : str
        What is stated: "the stated confidence", "the probability of class X", "PIT values".
    leaf : (n,) int64
        Region of every row, also of those that the tree was grown on; -1 where in none.
    judged : (m,) int64
        Rows that the regions were judged on.
        Both are empty in what `without_rows` gives.
    regression : bool
        Whether it speaks of PIT values.
    redraws : int
        Draws of the outcomes that the regions are compared with; 0 where other rows judge them.
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

    def without_rows(self) -> RegionSearch:
        """The same without ``leaf`` and ``judged``, so that its size does not grow with rows."""
        none = np.empty(0, dtype=np.int64)
        return replace(self, leaf=none, judged=none)

    @property
    def one_part(self) -> bool:
        """Whether all judged rows lie in one region, so that no part can differ from the rest."""
        return sum(region.n > 0 for region in self.regions) == 1

    @property
    def standing_out(self) -> tuple[Region, ...]:
        """The faulty regions that are a part of the rows; none where one region holds all."""
        return () if self.one_part else self.faulty

    @property
    def faulty(self) -> tuple[Region, ...]:
        """Regions with a fault, the strongest evidence first."""
        found = [region for region in self.regions if region.fault != "none"]
        return tuple(sorted(found, key=lambda region: (region.p_value, -abs(region.gap.value))))

    def table(self) -> pd.DataFrame:
        """One row a region: the data of the page's table, as offered for download."""
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
    """What else of PIT values was tested; nothing for stated probabilities."""
    spread = region.spread
    if spread is None:
        return {}
    return {"spread": spread.value, "spread_low": spread.low, "spread_high": spread.high}
