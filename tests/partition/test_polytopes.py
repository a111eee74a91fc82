"""Merging rows of equal codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kdcal_core.errors import InputError
from kdcal_core.partition import ActivationCodes, LeafCodes, find_polytopes, geodesic_kernel

INT32 = np.iinfo(np.int32)
leaf_id = st.one_of(st.integers(0, 2), st.sampled_from([INT32.min, -1, INT32.max]))
shapes = st.tuples(st.integers(1, 9), st.integers(1, 3))
leaf_codes = arrays(np.int32, shapes, elements=leaf_id).map(LeafCodes)
word = st.sampled_from([0, 1, 2**63, 2**64 - 1])
word_codes = arrays(np.uint64, shapes, elements=word).map(
    lambda words: ActivationCodes(words, (64,) * words.shape[1])
)


def rows_of(codes):
    return codes.leaves if isinstance(codes, LeafCodes) else codes.words


@given(st.one_of(leaf_codes, word_codes), st.integers(0, 99))
def test_polytopes_are_the_sorted_distinct_codes_whatever_the_order_of_rows(codes, seed):
    rows = rows_of(codes)
    found = find_polytopes(codes)
    expected, index, sizes = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    assert rows_of(found.codes).tolist() == expected.tolist()
    assert rows_of(found.codes).dtype == rows.dtype
    assert found.index.tolist() == index.tolist()
    assert found.index.dtype == found.sizes.dtype == np.int64
    assert found.sizes.tolist() == sizes.tolist()
    order = np.random.default_rng(seed).permutation(len(rows))
    moved = type(codes)(rows[order], *([codes.layer_widths] if rows.dtype == np.uint64 else []))
    again = find_polytopes(moved)
    assert rows_of(again.codes).tolist() == rows_of(found.codes).tolist()
    assert again.index.tolist() == found.index[order].tolist()


def test_leaf_ids_wider_than_32_bits_sort_by_value():
    leaves = np.array([[2**40, 0], [-(2**40), 0], [5, 0], [2**40, 0]])
    found = find_polytopes(LeafCodes(leaves))
    assert found.codes.leaves.tolist() == [[-(2**40), 0], [5, 0], [2**40, 0]]
    assert found.index.tolist() == [2, 0, 1, 2]


@given(leaf_codes)
def test_merged_rows_are_those_of_kernel_one(codes):
    found = find_polytopes(codes)
    merged = found.index[:, None] == found.index[None, :]
    assert ((geodesic_kernel(codes) == 1) == merged).all()


def test_no_rows_have_no_polytopes():
    with pytest.raises(InputError, match="no rows"):
        find_polytopes(LeafCodes(np.empty((0, 3), dtype=np.int32)))
