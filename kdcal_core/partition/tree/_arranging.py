"""The nodes of a tree put in preorder, as the arrays that a tree is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition.tree.columns import CODES, InputColumn


def arranged(
    columns: tuple[InputColumn, ...],
    feature: NDArray[Any],
    goes_left: NDArray[np.bool_],
    left: NDArray[Any],
    right: NDArray[Any],
    n: NDArray[Any],
) -> dict[str, NDArray[Any]]:
    """A tree's arrays from nodes in any order, the root first, and the codes that go left."""
    order = _preorder(left, right)
    number = np.argsort(order)
    feature, goes_left = feature[order], goes_left[order]
    left, right = (
        np.where(feature < 0, -1, number[child[order]]).astype(np.int32) for child in (left, right)
    )
    parent = np.full(len(order), -1, dtype=np.int32)
    inside = np.flatnonzero(feature >= 0)
    parent[left[inside]] = parent[right[inside]] = inside
    threshold = np.full(len(order), -1, dtype=np.int32)
    missing_left = np.zeros(len(order), dtype=bool)
    subsets: list[NDArray[np.bool_]] = []
    for node in inside:
        column, goes = columns[feature[node]], goes_left[node]
        missing_left[node] = goes[column.missing_code]
        if column.kind == "category":
            threshold[node] = len(subsets)
            subsets.append(goes)
        else:
            threshold[node] = int(goes[: column.bins].sum()) - 1
    return {
        "feature": feature.astype(np.int32),
        "threshold": threshold,
        "subsets": np.array(subsets, dtype=bool).reshape(-1, CODES),
        "missing_left": missing_left,
        "left": left,
        "right": right,
        "parent": parent,
        "leaf_of_node": np.where(feature < 0, np.cumsum(feature < 0) - 1, -1).astype(np.int32),
        "n": n[order].astype(np.int64),
    }


def _preorder(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += [int(right[node]), int(left[node])]
    return np.array(order, dtype=np.int64)
