"""The kernel against the enumeration of paths, and the distance 1 - K as a metric."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from kdcal_core.errors import InputError
from kdcal_core.partition import ActivationCodes, LeafCodes, geodesic_kernel, pack_bits


def share_of_trees(a, b):
    """Dey et al., Eq. 11, tree by tree."""
    return sum(int(u == v) for u, v in zip(a, b, strict=True)) / len(a)


def share_of_paths(a, b):
    """Dey et al., Eq. 12: every path picks one unit a layer; the strings must be identical."""
    paths = list(itertools.product(*(range(len(layer)) for layer in a)))
    same = 0
    for path in paths:
        string_a = [a[layer][unit] for layer, unit in enumerate(path)]
        string_b = [b[layer][unit] for layer, unit in enumerate(path)]
        same += string_a == string_b
    return same / len(paths)


leaf_rows = st.integers(1, 6).flatmap(
    lambda trees: st.integers(1, 8).flatmap(
        lambda rows: arrays(np.int32, (rows, trees), elements=st.integers(0, 3))
    )
)
layer_bits = st.tuples(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 5), st.integers(0, 2**16)
)


def drawn(widths, n_rows, seed):
    rng = np.random.default_rng(seed)
    return [rng.random((n_rows, width)) < 0.5 for width in widths]


@given(leaf_rows)
def test_forest_kernel_is_the_share_of_trees(leaves):
    kernel = geodesic_kernel(LeafCodes(leaves))
    for r, s in itertools.product(range(len(leaves)), repeat=2):
        assert kernel[r, s] == share_of_trees(leaves[r], leaves[s])


@given(layer_bits)
def test_network_kernel_is_the_share_of_paths(drawing):
    layers = drawn(*drawing)
    kernel = geodesic_kernel(pack_bits(layers))
    for r, s in itertools.product(range(drawing[1]), repeat=2):
        expected = share_of_paths([bits[r] for bits in layers], [bits[s] for bits in layers])
        assert kernel[r, s] == pytest.approx(expected, abs=1e-14)


def test_kernel_of_a_fitted_forest_counts_shared_paths_from_root_to_leaf():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    forest = RandomForestClassifier(7, max_depth=3, random_state=0).fit(x, x[:, 0] > x[:, 1])
    kernel = geodesic_kernel(LeafCodes(forest.apply(x).astype(np.int32)))
    paths = [tree.decision_path(x).toarray() for tree in forest.estimators_]
    for r, s in itertools.product(range(len(x)), repeat=2):
        shared = np.mean([(path[r] == path[s]).all() for path in paths])
        assert kernel[r, s] == pytest.approx(shared, abs=1e-15)


def test_kernel_of_a_fitted_network_counts_its_activation_paths():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network = MLPClassifier((4, 3, 2), max_iter=50, random_state=0).fit(x, x[:, 0] > 0)
    layers, values = [], x
    for weights, bias in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
        values = np.maximum(values @ weights + bias, 0)
        layers.append(values > 0)
    kernel = geodesic_kernel(pack_bits(layers))
    for r, s in itertools.product(range(0, 30, 3), repeat=2):
        expected = share_of_paths([bits[r] for bits in layers], [bits[s] for bits in layers])
        assert kernel[r, s] == pytest.approx(expected, abs=1e-14)


@given(st.one_of(leaf_rows.map(LeafCodes), layer_bits.map(lambda d: pack_bits(drawn(*d)))))
def test_one_minus_the_kernel_is_a_metric_of_codes(codes):
    """Dey et al., Proposition 1."""
    kernel = geodesic_kernel(codes)
    distance = 1 - kernel
    rows = codes.leaves if isinstance(codes, LeafCodes) else codes.words
    same = (rows[:, None, :] == rows[None, :, :]).all(axis=2)
    assert ((kernel >= 0) & (kernel <= 1)).all()
    assert (kernel == kernel.T).all()
    assert ((distance == 0) == same).all()
    through = distance[:, :, None] + distance[None, :, :]
    assert (distance[:, None, :] <= through + 1e-12).all()


def test_a_layer_without_an_equal_bit_makes_the_kernel_zero():
    a = pack_bits([np.array([[True, False]]), np.array([[True]])])
    b = pack_bits([np.array([[True, False]]), np.array([[False]])])
    assert geodesic_kernel(a, b).tolist() == [[0.0]]


def test_no_rows_give_an_empty_matrix():
    none = LeafCodes(np.empty((0, 3), dtype=np.int32))
    one = LeafCodes(np.zeros((1, 3), dtype=np.int32))
    assert geodesic_kernel(none, one).shape == (0, 1)
    assert geodesic_kernel(one, none).shape == (1, 0)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (LeafCodes(np.zeros((1, 2), np.int32)), pack_bits([np.ones((1, 2))]), "two different"),
        (LeafCodes(np.zeros((1, 2), np.int32)), LeafCodes(np.zeros((1, 3), np.int32)), "3 trees"),
        (pack_bits([np.ones((1, 2))]), pack_bits([np.ones((1, 3))]), "two different"),
        (LeafCodes(np.zeros((1, 0), np.int32)), None, "at least one tree"),
        (LeafCodes(np.zeros((1, 2))), None, "integers"),
        (pack_bits([np.ones((1, 2)), np.ones((1, 0))]), None, "needs a unit"),
        (ActivationCodes(np.zeros((1, 0), np.uint64), ()), None, "needs a unit"),
        (ActivationCodes(np.zeros((1, 1), np.uint64), (65,)), None, "2 words"),
        (ActivationCodes(np.full((1, 1), 8, np.uint64), (3,)), None, "beyond the units"),
        (ActivationCodes(np.full((2, 3), 2, np.uint64), (64, 65)), None, "beyond the units"),
        (np.zeros((1, 2)), None, "not ndarray"),
    ],
)
def test_codes_that_cannot_be_compared_are_refused(a, b, words):
    with pytest.raises(InputError, match=words):
        geodesic_kernel(a, b)


def test_a_matrix_beyond_one_gibibyte_is_refused_with_its_size():
    codes = LeafCodes(np.zeros((20_000, 1), dtype=np.int32))
    with pytest.raises(InputError, match=r"3\.0 GiB"):
        geodesic_kernel(codes)


def test_layers_are_added_and_taken():
    rng = np.random.default_rng(0)
    bits = [rng.random((6, width)) < 0.5 for width in (70, 3, 64)]
    whole = pack_bits(bits)
    assert (pack_bits(bits[:2]).with_layer(bits[2]).words == whole.words).all()
    for start in (0, 1, 2, -1):
        taken = whole.layers(start)
        assert taken.layer_widths == whole.layer_widths[start:]
        assert (taken.words == pack_bits(bits[start:]).words).all()
    with pytest.raises(InputError, match="none from layer 3"):
        whole.layers(3)
    with pytest.raises(InputError, match="has 5"):
        whole.with_layer(np.ones((5, 2), dtype=bool))
