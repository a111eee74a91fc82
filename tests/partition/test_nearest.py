"""Nearest polytopes and centres against a search of every pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.errors import InputError
from kdcal_core.partition import (
    LeafCodes,
    find_polytopes,
    nearest_centres,
    nearest_polytopes,
    pack_bits,
)


def search(kernel, x, centres):
    """Dey et al., Eqs. 6 and 19, ties to the nearest centre, one row after the other."""
    distance = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    best = kernel.max(axis=1)
    among = kernel == best[:, None]
    return np.where(among, distance, np.inf).argmin(axis=1), best, among.sum(axis=1) > 1


def shares(queries, leaves):
    return (queries[:, None, :] == leaves[None, :, :]).mean(axis=2)


def drawn(n_rows, n_trees, n_leaves, n_queries, seed):
    """Whole coordinates, so that distances are exact and tie."""
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, n_leaves, (n_rows, n_trees)).astype(np.int32)
    codes = find_polytopes(LeafCodes(leaves)).codes
    queries = rng.integers(-1, n_leaves + 1, (n_queries, n_trees)).astype(np.int32)
    x = rng.integers(0, 4, (n_queries, 2)).astype(float)
    return codes, LeafCodes(queries), x, rng.integers(0, 4, (len(codes), 2)).astype(float)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**16))
def test_nearest_is_the_best_of_all_pairs(n_rows, n_trees, n_leaves, seed):
    codes, queries, x, centres = drawn(n_rows, n_trees, n_leaves, 12, seed)
    index, kernel, tied = search(shares(queries.leaves, codes.leaves), x, centres)
    found = nearest_polytopes(queries, codes, x, centres)
    assert found.index.tolist() == index.tolist()
    assert found.kernel == pytest.approx(kernel, abs=1e-15)
    assert found.tied.tolist() == tied.tolist()
    assert found.n_ties == tied.sum()


@pytest.mark.parametrize(
    ("n_rows", "n_trees", "n_leaves"), [(900, 30, 4), (600, 40, 300), (1100, 500, 90)]
)
def test_large_and_short_leaves_place_rows_alike(n_rows, n_trees, n_leaves):
    codes, queries, x, centres = drawn(n_rows, n_trees, n_leaves, 200, seed=0)
    index, _, tied = search(shares(queries.leaves, codes.leaves), x, centres)
    found = nearest_polytopes(queries, codes, x, centres)
    assert found.index.tolist() == index.tolist()
    assert found.tied.tolist() == tied.tolist()


def test_rows_of_a_forest_find_their_own_polytope():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    forest = RandomForestClassifier(40, random_state=0).fit(x, x[:, 0] > x[:, 1])
    codes = LeafCodes(forest.apply(x).astype(np.int32))
    polytopes = find_polytopes(codes)
    centres = np.zeros((len(polytopes.codes), 3))
    np.add.at(centres, polytopes.index, x / polytopes.sizes[polytopes.index][:, None])
    found = nearest_polytopes(
        LeafCodes(forest.apply(x).astype(np.int32)), polytopes.codes, x, centres
    )
    assert (found.index == polytopes.index).all()
    assert (found.kernel == 1).all()
    assert found.n_ties == 0


def test_a_row_that_shares_nothing_goes_to_the_nearest_centre_of_all():
    codes = LeafCodes(np.array([[1, 1], [2, 2], [3, 3]], dtype=np.int32))
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [5.0, 0.0]])
    nowhere = LeafCodes(np.array([[9, 9], [-7, 1000], [9, 3]], dtype=np.int32))
    x = np.array([[4.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    found = nearest_polytopes(nowhere, codes, x, centres)
    assert found.index.tolist() == [1, 0, 2]
    assert found.kernel.tolist() == [0.0, 0.0, 0.5]
    assert found.tied.tolist() == [True, True, False]


def test_the_one_polytope_ties_with_nothing():
    one = LeafCodes(np.array([[1]], dtype=np.int32))
    other = LeafCodes(np.array([[2]], dtype=np.int32))
    found = nearest_polytopes(other, one, np.ones((1, 1)), np.zeros((1, 1)))
    assert (found.index[0], found.kernel[0], found.tied[0]) == (0, 0.0, False)


def test_the_order_of_queries_does_not_matter():
    codes, queries, x, centres = drawn(200, 10, 8, 300, seed=1)
    found = nearest_polytopes(queries, codes, x, centres)
    order = np.random.default_rng(0).permutation(300)
    moved = nearest_polytopes(LeafCodes(queries.leaves[order]), codes, x[order], centres)
    assert (moved.index == found.index[order]).all()
    assert (moved.kernel == found.kernel[order]).all()
    assert (moved.tied == found.tied[order]).all()


def test_a_network_places_rows_by_shared_paths():
    rng = np.random.default_rng(0)
    layers = [rng.random((60, 7)) < 0.5, rng.random((60, 3)) < 0.5]
    asked = [rng.random((90, 7)) < 0.5, rng.random((90, 3)) < 0.5]
    x, centres = rng.integers(0, 3, (90, 1)) * 1.0, rng.integers(0, 3, (60, 1)) * 1.0
    kernel = np.ones((90, 60), dtype=int)
    for theirs, ours in zip(asked, layers, strict=True):
        kernel *= (theirs[:, None, :] == ours[None, :, :]).sum(axis=2)
    index, best, tied = search(kernel, x, centres)
    found = nearest_polytopes(pack_bits(asked), pack_bits(layers), x, centres)
    assert found.index.tolist() == index.tolist()
    assert found.kernel == pytest.approx(best / 21, abs=1e-15)
    assert found.tied.tolist() == tied.tolist()


@pytest.mark.parametrize("n_coordinates", [0, 1, 5, 40])
def test_nearest_centres_are_the_best_of_all_pairs(n_coordinates):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (150, n_coordinates)).astype(float)
    centres = rng.integers(0, 3, (700, n_coordinates)).astype(float)
    distance = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    found = nearest_centres(x, centres)
    assert found.index.tolist() == distance.argmin(axis=1).tolist()
    among = (distance == distance.min(axis=1)[:, None]).sum(axis=1)
    assert found.tied.tolist() == (among > 1).tolist()
    assert np.isnan(found.kernel).all()


def test_nearest_centres_hold_at_a_million_times_the_data():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(500, 3))
    direction = rng.normal(size=(20, 3))
    x = 1e6 * direction / np.linalg.norm(direction, axis=1)[:, None]
    nearest = cdist(x, centres, "sqeuclidean").argmin(axis=1)
    assert nearest_centres(x, centres).index.tolist() == nearest.tolist()


@pytest.mark.parametrize("codes", [LeafCodes(np.ones((3, 2), np.int32)), pack_bits([np.eye(3)])])
def test_no_queries_have_no_answer(codes):
    none = type(codes)(*[v[:0] if isinstance(v, np.ndarray) else v for v in vars(codes).values()])
    found = nearest_polytopes(none, codes, np.empty((0, 1)), np.zeros((3, 1)))
    assert (len(found.index), len(found.kernel), found.n_ties) == (0, 0, 0)
    assert len(nearest_centres(np.empty((0, 1)), np.zeros((3, 1))).index) == 0


@pytest.mark.parametrize(
    ("x", "centres", "words"),
    [
        (np.zeros((2, 1)), np.zeros((1, 1)), "rows have shape"),
        (np.zeros((1, 1)), np.zeros((2, 1)), "centres have shape"),
        (np.zeros((1, 1)), np.zeros((1, 2)), "1 coordinates and the centres 2"),
        (np.array([[np.nan]]), np.zeros((1, 1)), "row 1"),
        (np.zeros((1, 1)), np.array([[np.inf]]), "infinite"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(x, centres, words):
    one = LeafCodes(np.ones((1, 2), dtype=np.int32))
    with pytest.raises(InputError, match=words):
        nearest_polytopes(one, one, x, centres)


def test_nothing_to_be_near_to_is_refused():
    one = LeafCodes(np.ones((1, 2), dtype=np.int32))
    none = LeafCodes(np.ones((0, 2), dtype=np.int32))
    with pytest.raises(InputError, match="no polytope"):
        nearest_polytopes(one, none, np.zeros((1, 1)), np.zeros((0, 1)))
