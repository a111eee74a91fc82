"""A fitted partition with the maps of its regions, and the ways in which several combine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.regions.flags import RegionFit, region_fits, region_notes
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.region_maps import fit_maps
from kdcal_core.calibration.regions.scores import RegionMaps, Scores
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.partition.tree.binned import InputColumn
from kdcal_core.progress import Progress, silent
from kdcal_core.store import storable


class Partition(Protocol):
    """What cuts the inputs into regions: a tree, or a column's values."""

    @property
    def columns(self) -> tuple[InputColumn, ...]: ...

    @property
    def n_leaves(self) -> int: ...

    def apply(self, X: Any) -> Any:
        """Region of each row, (n,) int64."""

    def words(self, leaf: int) -> str:
        """The region in plain words."""

    def check(self) -> None:
        """Refuse arrays that contradict each other, as a damaged file may hold them."""


@storable
@dataclass(frozen=True, eq=False)
class Layer:
    """One partition of the inputs with the map of each of its regions.

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
        """Refuse a layer whose parts do not fit each other."""
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
        Mean one.
    X : (n, d) DataFrame
    X_partition, y_partition : (m, d) DataFrame and (m,) int array, or None
        Rows that the partition is found on, where they were given.
    report : callable
        Called with the share done in [0, 1] and a sentence; may raise to cancel.
    """

    proba: FloatArray
    y: IntArray
    weight: FloatArray
    X: pd.DataFrame
    X_partition: pd.DataFrame | None
    y_partition: IntArray | None
    report: Progress = silent

    def take(self, which: NDArray[Any]) -> FitRows:
        """Some of the calibration rows, by index or by truth value."""
        return replace(
            self,
            proba=self.proba[which],
            y=self.y[which],
            weight=self.weight[which],
            X=self.X.iloc[which],
        )


@dataclass(frozen=True, eq=False)
class PartitionFit:
    """What fitting a kind of partition gives.

    Attributes
    ----------
    layers : tuple of Layer
    regions : tuple of RegionFit
        Of all layers.
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
        (settings, rows) -> PartitionFit. The settings are the calibrator itself: its
        parameters.
    combine : callable
        (layers, proba, X) -> (n, K).
    reads : callable
        (settings, columns of X) -> those that the partition is found in; others are ignored.
    depth : int
        Of its trees, unless another is given.
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
    """The hierarchy of a partition's regions: a tree's own, sisters for a column."""
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
    """The maps of a partition that is already there, as the only layer.

    ``spare`` is the region of values that the fit has not seen; it is not reported if it has no
    rows.
    """
    scores = Scores(rows.proba, rows.y, rows.weight)
    leaf = np.asarray(partition.apply(rows.X), dtype=np.int64)
    hierarchy = hierarchy_of(partition)
    fit = fit_maps(settings.calibrator, scores, leaf, hierarchy, pooling=settings.pooling)
    regions = region_fits(fit, scores, leaf, hierarchy.n_regions, partition.words)
    described = tuple(one for one in regions if one.n or one.leaf != spare)
    return PartitionFit((Layer(partition, fit.maps),), regions, (*notes, *region_notes(described)))
