"""Class masses against sums over the whole kernel matrix."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from kdcal_core.errors import InputError
from kdcal_core.partition import (
    LeafCodes,
    class_masses,
    default_exponents,
    estimated_bytes,
    find_polytopes,
    pack_bits,
)
from kdcal_core.partition._forest import find_members


def plain_masses(leaves, counts, exponents):
    """Dey et al., Eqs. 16 and 18, one polytope after the other."""
    masses = np.zeros((len(exponents), len(leaves), counts.shape[1]))
    for r, row in enumerate(leaves):
        kernel = (leaves == row).mean(axis=1)
        for g, exponent in enumerate(exponents):
            masses[g, r] = kernel**exponent @ counts
    return masses


def assert_same(found, expected):
    """As `pytest.approx` asserts, which compares number by number for seconds."""
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0, equal_nan=False)


def drawn(n_rows, n_trees, n_leaves, seed, n_classes=3):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, n_leaves, (n_rows, n_trees)).astype(np.int32)
    codes = find_polytopes(LeafCodes(leaves)).codes
    return codes, rng.integers(0, 3, (len(codes), n_classes))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**16))
def test_masses_are_the_weighted_sums_of_the_counts(n_rows, n_trees, n_leaves, seed):
    codes, counts = drawn(n_rows, n_trees, n_leaves, seed)
    exponents = np.array([0.5, 1.0, 7.3])
    expected = plain_masses(codes.leaves, counts, exponents)
    assert_same(class_masses(codes, counts, exponents), expected)


@pytest.mark.parametrize(
    ("n_rows", "n_trees", "n_leaves", "large"),
    [
        (600, 60, 500, False),  # a few rows a leaf: runs
        (900, 30, 4, True),  # leaves of a quarter of the rows: compared whole
        (700, 520, 3, True),  # more matches than a byte holds
    ],
)
def test_short_and_large_leaves_count_alike(n_rows, n_trees, n_leaves, large):
    codes, counts = drawn(n_rows, n_trees, n_leaves, seed=1)
    members, _ = find_members(codes.leaves)
    assert bool(members.large_of_leaf.any()) == large
    expected = plain_masses(codes.leaves, counts, default_exponents())
    found = class_masses(codes, counts, default_exponents())
    assert_same(found, expected)


def test_large_leaves_beside_small_ones_in_one_tree():
    rng = np.random.default_rng(2)
    leaves = rng.integers(0, 400, (800, 40)).astype(np.int32)
    leaves[rng.random(leaves.shape) < 0.5] = 7
    codes = find_polytopes(LeafCodes(leaves)).codes
    members, numbers = find_members(codes.leaves)
    of_tree = members.large_of_leaf[np.unique(numbers[-1])]
    assert (of_tree > 0).any()
    assert (of_tree == 0).any()
    counts = rng.integers(0, 2, (len(codes), 2))
    expected = plain_masses(codes.leaves, counts, np.array([2.0]))
    found = class_masses(codes, counts, np.array([2.0]))
    assert_same(found, expected)


def test_more_classes_than_bins_fit_for_all_rows_of_a_block():
    codes, _ = drawn(300, 40, 3, seed=4)
    assert find_members(codes.leaves)[0].dense
    label = np.random.default_rng(4).integers(0, 2000, len(codes))
    counts = np.eye(2000, dtype=int)[label] * np.arange(1, len(codes) + 1)[:, None] % 3
    expected = plain_masses(codes.leaves, counts, np.array([1.5]))
    found = class_masses(codes, counts, np.array([1.5]))
    assert_same(found, expected)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(30, random_state=0),
        RandomForestClassifier(30, max_depth=2, random_state=0),
        GradientBoostingClassifier(n_estimators=20, random_state=0),
    ],
)
def test_masses_of_fitted_trees(model):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    leaves = model.fit(x, y).apply(x).reshape(len(x), -1).astype(np.int32)
    found = find_polytopes(LeafCodes(leaves))
    counts = np.zeros((len(found.codes), 2), dtype=int)
    np.add.at(counts, (found.index, y), 1)
    expected = plain_masses(found.codes.leaves, counts, default_exponents())
    masses = class_masses(found.codes, counts, default_exponents())
    assert_same(masses, expected)


def test_more_trees_than_a_short_integer_counts():
    leaves = np.repeat(np.array([[1], [2], [1]]), 40_000, axis=1).astype(np.int32)
    leaves[2, :30_000] = 3
    counts = np.array([[1, 0], [1, 1], [0, 2]])
    masses = class_masses(LeafCodes(leaves), counts, np.array([1.0]))[0]
    assert masses == pytest.approx(np.array([[1, 0.5], [1, 1], [0.25, 2]]))


def test_at_exponent_one_the_masses_average_the_leaves_of_the_trees():
    codes, counts = drawn(50, 6, 5, seed=3)
    averaged = np.zeros(counts.shape)
    for leaf_ids in codes.leaves.T:
        for leaf in np.unique(leaf_ids):
            averaged[leaf_ids == leaf] += counts[leaf_ids == leaf].sum(axis=0) / 6
    masses = class_masses(codes, counts, np.array([1.0]))[0]
    assert_same(masses, averaged)


def test_at_a_great_exponent_a_polytope_has_its_own_rows_only():
    """Dey et al., Eq. 17."""
    codes, counts = drawn(50, 6, 5, seed=3)
    assert (class_masses(codes, counts, np.array([1e6]))[0] == counts).all()


def test_the_order_of_classes_and_polytopes_does_not_matter():
    codes, counts = drawn(200, 20, 9, seed=4)
    masses = class_masses(codes, counts, default_exponents())
    assert (class_masses(codes, counts[:, ::-1], default_exponents()) == masses[..., ::-1]).all()
    order = np.random.default_rng(0).permutation(len(codes))
    moved = class_masses(LeafCodes(codes.leaves[order]), counts[order], default_exponents())
    assert (moved == masses[:, order]).all()


def test_ids_of_leaves_do_not_matter():
    codes, counts = drawn(100, 8, 9, seed=5)
    ids = np.random.default_rng(0).choice(np.arange(-(2**31), 2**31 - 1, 1001), 9, replace=False)
    renamed = LeafCodes(ids[codes.leaves].astype(np.int32))
    expected = class_masses(codes, counts, default_exponents())
    assert (class_masses(renamed, counts, default_exponents()) == expected).all()


@pytest.mark.parametrize("codes", [LeafCodes(np.array([[4]], np.int32)), pack_bits([[[True]]])])
def test_one_polytope_of_one_tree_or_unit(codes):
    assert class_masses(codes, np.array([[3, 0]]), np.array([0.5])).tolist() == [[[3.0, 0.0]]]


def test_two_polytopes_of_one_unit_share_nothing():
    codes = pack_bits([np.array([[False], [True]])])
    counts = np.array([[3, 0], [0, 2]])
    assert (class_masses(codes, counts, np.array([0.5]))[0] == counts).all()


def test_no_polytopes_have_no_masses():
    none = LeafCodes(np.empty((0, 2), dtype=np.int32))
    assert class_masses(none, np.empty((0, 2), int), np.array([1.0])).shape == (1, 0, 2)


@pytest.mark.parametrize(
    ("counts", "exponents", "words"),
    [
        ([[1, 0]], [1.0], "shape"),
        ([[1], [-1]], [1.0], "none below zero"),
        ([[0.5], [1.0]], [1.0], "whole numbers"),
        (np.empty((2, 0), int), [1.0], "shape"),
        ([[1], [1]], [0.0], "above zero"),
        ([[1], [1]], [np.inf], "finite"),
        ([[1], [1]], [], "at least one exponent"),
        ([[1], [1]], [[1.0]], "list of numbers"),
    ],
)
def test_counts_and_exponents_that_make_no_sense_are_refused(counts, exponents, words):
    codes = LeafCodes(np.array([[1], [2]], dtype=np.int32))
    with pytest.raises(InputError, match=words):
        class_masses(codes, np.array(counts), np.array(exponents))


def test_no_threads_are_refused():
    codes = pack_bits([np.array([[True], [False]])])
    ones = np.ones((2, 1), dtype=int)
    with pytest.raises(InputError, match="At least one thread"):
        class_masses(codes, ones, np.array([1.0]), threads=0)


def test_the_estimate_of_memory_holds_the_arrays_and_grows_with_each():
    codes, counts = drawn(300, 40, 9, seed=6)
    whole = codes.leaves.nbytes + class_masses(codes, counts, default_exponents()).nbytes
    assert estimated_bytes(codes, 3, 21) > whole
    assert estimated_bytes(codes, 3, 21) == estimated_bytes((len(codes), 40), 3, 21)
    assert estimated_bytes((1000, 40), 4, 21) > estimated_bytes((1000, 40), 3, 21)
    bits = pack_bits([np.ones((10, 70)), np.ones((10, 5))])
    assert estimated_bytes(bits, 3, 21) == estimated_bytes((10, (70, 5)), 3, 21)
