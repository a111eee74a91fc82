"""The report on each region: its rows, its map, and its flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration.regions.scores import MapFit, Scores
from kdcal_core.data import IntArray
from kdcal_core.store import storable
from kdcal_core.text import counted, listed

# A map of two parameters is reliable with this many rows of the rarer of the two classes.
ENOUGH = 20

NO_ROWS, ONE_CLASS, FEW_ROWS, FALLING = "no rows", "one class", "few rows", "negative slope"


@storable
@dataclass(frozen=True, eq=False)
class RegionFit:
    """One region of a fitted calibrator.

    Attributes
    ----------
    layer, leaf : int
        Which partition, and which of its regions, counted from 0.
    words : str
        Where the region is. Names in it come from the table: escape them on a screen.
    n : int
        Rows that its map was fitted on.
    n_by_class : tuple of K int
    needed : int
        Rows with which the region's map would stand on its own: 20 of the rarer class at the
        rate of the region; where the region shows one class only, of all rows, or of one in
        n + 1 where that is less. 0 where it has them.
    parameters : dict of str to tuple of float
        By plain name; one number for each mapped class (the second of two, or all). Empty for
        maps without parameters.
    borrowed : tuple of float in [0, 1]
        For each mapped class, the share of the map that is its ancestor's.
    flags : tuple of str
        Of "no rows", "one class", "few rows" and "negative slope".
    """

    layer: int
    leaf: int
    words: str
    n: int
    n_by_class: tuple[int, ...]
    needed: int
    parameters: dict[str, tuple[float, ...]]
    borrowed: tuple[float, ...]
    flags: tuple[str, ...]

    @property
    def n_positive(self) -> int:
        """Rows of the second class."""
        return self.n_by_class[1]


def region_fits(
    fit: MapFit,
    scores: Scores,
    leaf: IntArray,
    n_regions: int,
    words: Callable[[int], str],
    layer: int = 0,
) -> tuple[RegionFit, ...]:
    """The regions of one layer with their flags.

    Parameters
    ----------
    fit : MapFit
    scores : Scores
        The rows that the maps were fitted on; rows of weight zero do not count.
    leaf : (n,) int array
    n_regions : int
    words : callable
        Region number -> words.
    layer : int, default=0
    """
    n_classes = scores.n_classes
    counted = scores.weight > 0
    cell = (leaf * n_classes + scores.y)[counted]
    counts = np.bincount(cell, minlength=n_regions * n_classes).reshape(n_regions, n_classes)
    overall = counts.sum(axis=0)
    return tuple(
        RegionFit(
            layer=layer,
            leaf=region,
            words=words(region),
            n=int(counts[region].sum()),
            n_by_class=tuple(int(one) for one in counts[region]),
            needed=_needed(counts[region], overall),
            parameters={
                name: tuple(float(one) for one in values[:, region])
                for name, values in fit.parameters.items()
            },
            borrowed=tuple(float(one) for one in fit.borrowed[:, region]),
            flags=_flags(counts[region], bool(fit.falling[region])),
        )
        for region in range(n_regions)
    )


def region_notes(regions: tuple[RegionFit, ...]) -> tuple[str, ...]:
    """Sentences on the regions that need care.

    A rule that several layers share is named once, with the fewest rows that it has in any.
    """
    notes = []
    for flag, start in _SENTENCES.items():
        rules: dict[str, RegionFit] = {}
        for region in regions:
            if flag in region.flags:
                known = rules.get(region.words, region)
                rules[region.words] = min(known, region, key=lambda one: one.n)
        if not rules:
            continue
        found = list(rules.values())
        described = (
            f"'{region.words}' ({counted(region.n, 'row')}"
            + (f"; about {region.needed:,} would do" if region.needed and flag != FALLING else "")
            + ")"
            for region in found
        )
        notes.append(f"{start}: {listed(described, _LISTED, between=';')}.")
    return tuple(notes)


@dataclass(frozen=True)
class Tally:
    """How many of a layer's regions need care, where there are too many layers to name them.

    Attributes
    ----------
    regions, one_class, falling : int
        Regions with rows, those of them that show one class only, and those where a higher score
        means a lower probability.
    """

    regions: int
    one_class: int
    falling: int


def tally(fit: MapFit, scores: Scores, leaf: IntArray, n_regions: int) -> Tally:
    """Count what a note reports of one layer; arguments are those of :func:`region_fits`."""
    n_classes = scores.n_classes
    counts = np.bincount(leaf * n_classes + scores.y, minlength=n_regions * n_classes)
    seen = (counts.reshape(n_regions, n_classes) > 0).sum(axis=1)
    return Tally(
        int((seen > 0).sum()), int((seen == 1).sum()), int((fit.falling & (seen > 0)).sum())
    )


def layer_notes(tallies: list[Tally]) -> tuple[str, ...]:
    """A sentence on the regions of many layers that need care, where there are any.

    Examples
    --------
    >>> print(*layer_notes([Tally(4, 1, 0), Tally(4, 0, 0)]))
    Of all partitions' regions (8), 1 shows one class only and leans on the region around it.
    >>> layer_notes([Tally(4, 0, 0)])
    ()
    """
    regions, one_class, falling = (
        sum(getattr(one, name) for one in tallies) for name in ("regions", "one_class", "falling")
    )
    notes = []
    if one_class == 1:
        notes.append("1 shows one class only and leans on the region around it")
    elif one_class:
        notes.append(f"{one_class:,} show one class only and lean on the region around them")
    if falling:
        notes.append(f"in {falling:,} a higher score means a lower probability (kept as found)")
    return (f"Of all partitions' regions ({regions:,}), {'; '.join(notes)}.",) if notes else ()


_LISTED = 3
_SENTENCES = {
    NO_ROWS: "Regions without a row use the map of the region around them",
    ONE_CLASS: "Regions that show one class only lean on the region around them",
    FEW_ROWS: "Regions with few rows of a class lean on the region around them",
    FALLING: "A higher score means a lower probability (kept as found, look at the region)",
}


def _flags(counts: IntArray, falling: bool) -> tuple[str, ...]:
    n, rarer = int(counts.sum()), _rarer(counts)
    few = [NO_ROWS] if n == 0 else [ONE_CLASS] if rarer == 0 else [FEW_ROWS] * (rarer < ENOUGH)
    return (*few, *[FALLING] * (falling and n > 0))


def _needed(counts: IntArray, overall: IntArray) -> int:
    """Rows that hold :data:`ENOUGH` of the rarer class, 0 where the region has them.

    A region of one class takes the rate of all rows, but at most the one that it would show if its
    next row were of another class: rows without any are evidence that such rows are rare there.

    >>> overall = np.array([600, 300])
    >>> _needed(np.array([90, 10]), overall), _needed(np.array([0, 0]), overall)
    (200, 60)
    >>> _needed(np.array([121, 0]), overall)  # more than the 121 that did not do
    2440
    """
    n, rarer = int(counts.sum()), _rarer(counts)
    if rarer >= ENOUGH:
        return 0
    if rarer:
        return int(np.ceil(ENOUGH * n / rarer))
    of_all = int(overall.sum()) / max(_rarer(overall), 1)
    return int(np.ceil(ENOUGH * max(of_all, n + 1)))


def _rarer(counts: IntArray) -> int:
    """Rows that are not of the most frequent class."""
    return int(counts.sum() - counts.max())
