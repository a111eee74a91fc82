"""A tree passes exactly if walking down from its root is safe and ends."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core import InputError
from kdcal_core.models.features import category_codes
from kdcal_core.models.upload_checks import check_children


@st.composite
def trees(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random full tree whose nodes lie in random order behind the root."""
    left, right, leaves = [-1], [-1], [0]
    for _ in range(draw(st.integers(0, 12))):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        left[node], right[node] = len(left), len(left) + 1
        leaves += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    order = np.array([0, *draw(st.permutations(range(1, len(left))))])
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    inner = np.array(left)[order] != -1
    return (
        np.where(inner, place[np.array(left)[order]], -1),
        np.where(inner, place[np.array(right)[order]], -1),
        inner,
    )


def is_safe(left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> bool:
    """Walk down and see: never out of range, no node met twice."""
    met, waiting = set(), [0]
    while waiting:
        node = waiting.pop()
        if not 0 <= node < len(inner) or node in met:
            return False
        met.add(node)
        if inner[node]:
            waiting += [left[node], right[node]]
    return True


@given(trees())
def test_trees_pass(tree: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    check_children(*tree, where="tree 1")


@given(trees(), st.data())
def test_what_passes_is_safe_to_walk(
    tree: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    left, right, inner = tree
    side = data.draw(st.sampled_from([left, right]))
    node = data.draw(st.integers(0, len(inner) - 1))
    side[node] = data.draw(st.integers(-3, len(inner) + 3))
    try:
        check_children(left, right, inner, where="tree 1")
    except InputError:
        return
    assert is_safe(left, right, inner)


@pytest.mark.parametrize(
    ("values", "categories", "codes"),
    [
        (["1", "2", None], [1, 2], [0, 1, np.nan]),
        ([1, 2, 1], ["1", "2"], [0, 1, 0]),
        ([1.0, 2.0, np.nan], ["1", "2"], [0, 1, np.nan]),
        ([True, False, True], ["False", "True"], [1, 0, 1]),
        ([], ["a"], []),
    ],
)
def test_categories_are_compared_as_text(
    values: list[object], categories: list[object], codes: list[float]
) -> None:
    np.testing.assert_array_equal(
        category_codes(pd.Series(values), categories, name="c"), np.array(codes, dtype=float)
    )
