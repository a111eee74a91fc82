"""Jointly fitted maps of a partition's regions, layers of them, and a report on each region.

:func:`fit_maps` fits one map of the score for each region of any partition; :data:`MAPS` lists the
kinds. With two classes the second class's probability is mapped and the first is its complement.
With more, each class is mapped against the rest and rows are scaled to sum to one; temperatures act
on the whole vector. :class:`RegionMap` is Platt's map of one region, from stated to calibrated
probabilities.

A layer is a fitted partition with the maps of its regions, and several layers can be combined. A
region is reported with its rows, its map and its flags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from kdcal_core.calibration.regions.binned_maps import (
    fit_bayesian_binning,
    fit_scaling_binning,
)
from kdcal_core.calibration.regions.nonparametric_maps import (
    fit_density,
    fit_histogram,
    fit_isotonic,
)
from kdcal_core.calibration.regions.parametric_maps import fit_beta, fit_platt, fit_temperature
from kdcal_core.calibration.regions.scores_and_hierarchy import (
    Hierarchy,
    MapFit,
    RegionMaps,
    Scores,
)
from kdcal_core.data import FloatArray, IntArray, random_folds
from kdcal_core.partition.tree.binned import InputColumn
from kdcal_core.progress import Progress, silent
from kdcal_core.statistics import Dependence, only, units
from kdcal_core.store import storable
from kdcal_core.text import counted, listed

CURVE_POINTS = 80  # evenly spaced on the log odds, so that both ends are smooth
_SURE = 1e-6  # distance of stated probabilities from 0 and 1, where log odds are infinite


@dataclass(frozen=True, eq=False)
class RegionMap:
    """A region's map of stated probabilities.

    Attributes
    ----------
    leaf : int
    words : str
        Description of the region. Untrusted text.
    slope, offset : float
        Parameters of Platt's map on the log odds.
    low, high : float
        Range of the stated probabilities of the region's rows.
    mean, mean_after : float
        Mean probability of the region's rows, as stated and after the map.
    n : int
        Number of rows on which the map was fitted.
    """

    leaf: int
    words: str
    slope: float
    offset: float
    low: float
    high: float
    mean: float
    mean_after: float
    n: int

    @classmethod
    def of(
        cls,
        leaf: int,
        words: str,
        slope: float,
        offset: float,
        stated: FloatArray,
        weight: FloatArray | None = None,
    ) -> RegionMap:
        """The map of a region whose rows have the stated probabilities (n,), n >= 1.

        Examples
        --------
        >>> one = RegionMap.of(0, "here", 1.0, 1.0, np.array([0.2, 0.4]))
        >>> one.low, one.n, round(one.mean, 3), round(one.mean_after, 3)
        (0.2, 2, 0.3, 0.525)
        """
        after = _mapped(stated, slope, offset)
        return cls(
            leaf,
            words,
            slope,
            offset,
            float(stated.min()),
            float(stated.max()),
            float(np.average(stated, weights=weight)),
            float(np.average(after, weights=weight)),
            len(stated),
        )

    def apply(self, stated: ArrayLike) -> FloatArray:
        """Calibrated probabilities for stated ones."""
        return _mapped(stated, self.slope, self.offset)

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Stated and calibrated probabilities, over the range of the region's rows."""
        low, high = _log_odds([self.low, self.high]).tolist()
        stated = 1.0 / (1.0 + np.exp(-np.linspace(low, high, CURVE_POINTS)))
        return stated, self.apply(stated)


def _mapped(stated: ArrayLike, slope: float, offset: float) -> FloatArray:
    odds = slope * _log_odds(stated) + offset
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * odds))


def _log_odds(stated: ArrayLike) -> FloatArray:
    inside = np.clip(np.asarray(stated, dtype=np.float64), _SURE, 1.0 - _SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))


Fit = Callable[[Scores, IntArray, Hierarchy, bool], MapFit]

MAPS: dict[str, Fit] = {
    "platt": fit_platt,
    "beta": fit_beta,
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
    "histogram": fit_histogram,
    "scaling_binning": fit_scaling_binning,
    "bbq": fit_bayesian_binning,
    "kde": fit_density,
}
"""Kinds of maps by the name of the parameter ``calibrator``."""


def fit_maps(
    kind: str, scores: Scores, leaf: IntArray, hierarchy: Hierarchy, *, pooling: bool = True
) -> MapFit:
    """Fit the maps of all regions.

    Parameters
    ----------
    kind : str
        Key of :data:`MAPS`.
    scores : Scores
    leaf : (n,) int array
        Region of each row, 0 to R - 1.
    hierarchy : Hierarchy
        Hierarchy of the R regions.
    pooling : bool, default=True
        Whether regions are shrunk towards their ancestors by partial pooling.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 4000)
    >>> leaf = np.repeat([0, 1], 2000)
    >>> y = (rng.random(4000) < np.where(leaf == 0, p, 1 - p)).astype(int)
    >>> fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(4000)), leaf, Hierarchy.flat(2))
    >>> fit.parameters["slope"].round().tolist()
    [[1.0, -1.0]]
    """
    return MAPS[kind](scores, leaf, hierarchy, pooling)


# A map with two parameters is reliable with this many rows of the rarer of the two classes.
ENOUGH = 20

NO_ROWS, ONE_CLASS, FEW_ROWS, FALLING = "no rows", "one class", "few rows", "negative slope"


@storable
@dataclass(frozen=True, eq=False)
class RegionFit:
    """One region of a fitted calibrator.

    Attributes
    ----------
    layer, leaf : int
        Index of the partition, and of the region in it.
    words : str
        Description of the region. It holds untrusted names from the table; escape it on screens.
    n : int
        Number of rows on which its map was fitted.
    n_by_class : tuple of K int
    needed : int
        Number of rows with which the region's own map would be reliable: 20 of the rarer class at
        the region's rate. If the region has one class, the rate is that of all rows, or one in n +
        1 if that is less. 0 if the region has enough rows.
    parameters : dict of str to tuple of float
        Parameters by name, with one number for each mapped class (the second of two, or all). Empty
        for maps without parameters.
    borrowed : tuple of float in [0, 1]
        The ancestor's share of the map, for each mapped class.
    flags : tuple of str
        Some of "no rows", "one class", "few rows" and "negative slope".
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
        """Number of rows of the second class."""
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
        The rows on which the maps were fitted; rows of weight zero do not count.
    leaf : (n,) int array
    n_regions : int
    words : callable
        Region number -> description.
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
    """Notes on the regions that need care.

    A region in several layers is named once, with the fewest rows that it has in any.
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
    """Counts of a layer's regions that need care, if there are too many layers to name them.

    Attributes
    ----------
    regions, one_class, falling : int
        Number of regions with rows, of those with only one class, and of those where a higher score
        means a lower probability.
    """

    regions: int
    one_class: int
    falling: int


def tally(fit: MapFit, scores: Scores, leaf: IntArray, n_regions: int) -> Tally:
    """The counts of one layer for a note; arguments are those of :func:`region_fits`."""
    n_classes = scores.n_classes
    counts = np.bincount(leaf * n_classes + scores.y, minlength=n_regions * n_classes)
    seen = (counts.reshape(n_regions, n_classes) > 0).sum(axis=1)
    return Tally(
        int((seen > 0).sum()), int((seen == 1).sum()), int((fit.falling & (seen > 0)).sum())
    )


def layer_notes(tallies: list[Tally]) -> tuple[str, ...]:
    """A note on the regions of many layers that need care, if there are any.

    Examples
    --------
    >>> print(*layer_notes([Tally(4, 1, 0), Tally(4, 0, 0)]))
    Of all partitions' regions (8), 1 has only one class and borrows from the region around it.
    >>> layer_notes([Tally(4, 0, 0)])
    ()
    """
    regions, one_class, falling = (
        sum(getattr(one, name) for one in tallies) for name in ("regions", "one_class", "falling")
    )
    notes = []
    if one_class == 1:
        notes.append("1 has only one class and borrows from the region around it")
    elif one_class:
        notes.append(f"{one_class:,} have only one class and borrow from the region around them")
    if falling:
        notes.append(f"in {falling:,} a higher score means a lower probability (kept as found)")
    return (f"Of all partitions' regions ({regions:,}), {'; '.join(notes)}.",) if notes else ()


_LISTED = 3
_SENTENCES = {
    NO_ROWS: "Regions without a row use the map of the region around them",
    ONE_CLASS: "Regions with only one class borrow from the region around them",
    FEW_ROWS: "Regions with few rows of a class borrow from the region around them",
    FALLING: "A higher score means a lower probability (kept as found, look at the region)",
}


def _flags(counts: IntArray, falling: bool) -> tuple[str, ...]:
    n, rarer = int(counts.sum()), _rarer(counts)
    few = [NO_ROWS] if n == 0 else [ONE_CLASS] if rarer == 0 else [FEW_ROWS] * (rarer < ENOUGH)
    return (*few, *[FALLING] * (falling and n > 0))


def _needed(counts: IntArray, overall: IntArray) -> int:
    """Number of rows with :data:`ENOUGH` of the rarer class, 0 if the region has them.

    For a region of one class the rate is that of all rows, but at most the one it would have if its
    next row were of another class, because its rows show that other classes are rare there.

    >>> overall = np.array([600, 300])
    >>> _needed(np.array([90, 10]), overall), _needed(np.array([0, 0]), overall)
    (200, 60)
    >>> _needed(np.array([121, 0]), overall)  # more than the 121, which were not enough
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
    """Number of rows that are not of the most frequent class."""
    return int(counts.sum() - counts.max())


class Partition(Protocol):
    """A division of the inputs into regions, by a tree or by a column's values."""

    @property
    def columns(self) -> tuple[InputColumn, ...]: ...

    @property
    def n_leaves(self) -> int: ...

    def apply(self, X: Any) -> Any:
        """Region of each row, (n,) int64."""

    def words(self, leaf: int) -> str:
        """The region in words."""

    def check(self) -> None:
        """Refuse arrays that contradict each other, as in a damaged file."""


@storable
@dataclass(frozen=True, eq=False)
class Layer:
    """One partition of the inputs, with the maps of its regions.

    Attributes
    ----------
    partition : Partition
    maps : RegionMaps
    """

    partition: Partition
    maps: RegionMaps

    def predict(self, proba: FloatArray, X: Any) -> FloatArray:
        """Calibrated probabilities (n, K) of rows with these probabilities and inputs."""
        return self.maps.predict(proba, np.asarray(self.partition.apply(X), dtype=np.int64))

    def check(self, n_classes: int) -> None:
        """Refuse a layer whose parts do not match."""
        self.partition.check()
        self.maps.check(n_classes, self.partition.n_leaves)


@dataclass(frozen=True, eq=False)
class FitRows:
    """The checked rows of one fit.

    Attributes
    ----------
    proba : (n, K) array
    y : (n,) int array
    weight : (n,) array
        Weights with mean one, or less for dependent rows.
    X : (n, d) DataFrame
    X_partition, y_partition : (m, d) DataFrame and (m,) int array, or None
        Rows on which the partition is found, if given.
    dependence : Dependence, optional
        Of the calibration rows.
    report : callable
        Called with the share done in [0, 1] and a sentence; may raise to cancel.
    """

    proba: FloatArray
    y: IntArray
    weight: FloatArray
    X: pd.DataFrame
    X_partition: pd.DataFrame | None
    y_partition: IntArray | None
    dependence: Dependence | None = None
    report: Progress = silent

    def take(self, which: NDArray[Any]) -> FitRows:
        """Some of the calibration rows, by index or as booleans."""
        return replace(
            self,
            proba=self.proba[which],
            y=self.y[which],
            weight=self.weight[which],
            X=self.X.iloc[which],
            dependence=only(self.dependence, which),
        )

    @property
    def effect(self) -> float:
        """How many times fewer rows these count for, because they depend on one another."""
        return len(self.y) / float(self.weight.sum())

    def folds(self, most: int, seed: int) -> IntArray:
        """Fold of each row; clusters and times stay whole where there are several."""
        several = len(units(self.weight, self.dependence)) > 1
        together = self.dependence if several else None
        return random_folds(len(self.y), most, seed, together, fewer=True)


@dataclass(frozen=True, eq=False)
class PartitionFit:
    """The result of fitting a kind of partition.

    Attributes
    ----------
    layers : tuple of Layer
    regions : tuple of RegionFit
        Regions of all layers.
    notes : tuple of str
    """

    layers: tuple[Layer, ...]
    regions: tuple[RegionFit, ...]
    notes: tuple[str, ...] = ()


def all_columns(settings: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Every column of the inputs."""
    return columns


@dataclass(frozen=True)
class PartitionKind:
    """A way to find partitions and to combine the answers of their layers.

    Attributes
    ----------
    fit : callable
        (settings, rows) -> PartitionFit. The settings are the calibrator with its parameters.
    combine : callable
        (layers, proba, X) -> (n, K).
    reads : callable
        (settings, columns of X) -> the columns that the partition uses; others are ignored.
    depth : int
        Default depth of its trees.
    """

    fit: Callable[[Any, FitRows], PartitionFit]
    combine: Callable[[tuple[Layer, ...], FloatArray, Any], FloatArray]
    reads: Callable[[Any, tuple[str, ...]], tuple[str, ...]] = all_columns
    depth: int = 3


def averaged(layers: tuple[Layer, ...], proba: FloatArray, X: Any) -> FloatArray:
    """The mean of the layers' probabilities."""
    total = layers[0].predict(proba, X)
    for layer in layers[1:]:
        total += layer.predict(proba, X)
    total /= len(layers)
    return total


def hierarchy_of(partition: Any) -> Hierarchy:
    """The hierarchy of a partition's regions: a tree's own, or siblings for a column."""
    return (
        Hierarchy.of_tree(partition)
        if hasattr(partition, "parent")
        else Hierarchy.flat(partition.n_leaves)
    )


def fit_partition(
    settings: Any,
    rows: FitRows,
    partition: Any,
    notes: tuple[str, ...] = (),
    spare: int | None = None,
) -> PartitionFit:
    """The maps of a given partition, as the only layer.

    ``spare`` is the region for values that the fit has not seen; it is not reported if it has no
    rows.
    """
    scores = Scores(rows.proba, rows.y, rows.weight)
    leaf = np.asarray(partition.apply(rows.X), dtype=np.int64)
    hierarchy = hierarchy_of(partition)
    fit = fit_maps(settings.calibrator, scores, leaf, hierarchy, pooling=settings.pooling)
    regions = region_fits(fit, scores, leaf, hierarchy.n_regions, partition.words)
    described = tuple(one for one in regions if one.n or one.leaf != spare)
    return PartitionFit((Layer(partition, fit.maps),), regions, (*notes, *region_notes(described)))
