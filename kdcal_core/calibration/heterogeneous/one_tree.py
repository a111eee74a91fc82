"""One shallow tree as the partition: paper 004 Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.heterogeneous.layers import FitRows, PartitionFit, fit_partition
from kdcal_core.data import IntArray


def fit_tree(settings: Any, rows: FitRows) -> PartitionFit:
    """A tree that parts the classes, with a map in each of its leaves."""
    grown_on = rows.X if rows.X_partition is None else rows.X_partition
    labels = rows.y if rows.y_partition is None else rows.y_partition
    least = min_rows_of(settings.min_rows, len(rows.y), settings.max_depth)
    # a leaf of the training rows should hold enough of the calibration rows
    least = max(1, round(least * len(labels) / len(rows.y)))
    tree = grow(grown_on, labels, rows.proba.shape[1], settings.max_depth, least)
    return fit_partition(settings, rows, tree)


def grow(X: pd.DataFrame, y: IntArray, n_classes: int, max_depth: int, min_rows: int) -> Any:
    """A tree of these rows' classes by the Gini index."""
    from kdcal_core.partition.tree import Gini, bin_inputs, grow_tree

    target = Gini(class_target(y, n_classes))
    return grow_tree(bin_inputs(X), target, max_depth=max_depth, min_rows=min_rows)


def class_target(y: IntArray, n_classes: int) -> NDArray[Any]:
    """What a tree parts: 0 or 1 of two classes, else (n, K) indicators."""
    return y if n_classes == 2 else (y[:, None] == np.arange(n_classes)).astype(np.float64)


def min_rows_of(min_rows: int | None, n: int, max_depth: int) -> int:
    """Smallest number of calibration rows in a region: as asked, or by rule.

    The rule is an eighth of what a full tree's leaf would hold, n / 2^(depth + 3), and at least
    40: pooling carries the small ones, and a leaf below that has nothing of its own to say.
    """
    return int(min_rows) if min_rows is not None else max(40, n // 2 ** (max_depth + 3))
