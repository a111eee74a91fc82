"""Two rows in a partition, against the equations, unit by unit and path by path."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.partition import (
    LeafCodes,
    geodesic_kernel,
    near_and_far,
    pack_bits,
    row_pair,
)


def test_trees_that_two_rows_share() -> None:
    """Dey et al., Eq. 11: the mean over the trees of whether both leaves are one."""
    leaves = np.random.default_rng(0).integers(0, 4, size=(6, 37)).astype(np.int32)
    for i, j in ((0, 1), (2, 5), (3, 3)):
        pair = row_pair(LeafCodes(leaves), i, j)
        equal = [leaves[i, t] == leaves[j, t] for t in range(37)]
        assert pair.same.tolist() == equal
        assert pair.kernel == pytest.approx(sum(equal) / 37)
        assert (pair.first.tolist(), pair.second.tolist()) == (
            leaves[i].tolist(),
            leaves[j].tolist(),
        )
        assert pair.layers() == ()


def test_paths_that_two_rows_share() -> None:
    """Dey et al., Eq. 12: the mean over all paths of whether all their units are equal."""
    rng = np.random.default_rng(1)
    bits = [rng.random((4, width)) < 0.5 for width in (5, 3, 7)]
    for i, j in ((0, 1), (1, 3)):
        pair = row_pair(pack_bits(bits), i, j)
        paths = list(product(range(5), range(3), range(7)))
        equal = [
            all(layer[i, unit] == layer[j, unit] for layer, unit in zip(bits, path, strict=True))
            for path in paths
        ]
        assert pair.kernel == pytest.approx(sum(equal) / len(paths))
        for units, layer in zip(pair.layers(), bits, strict=True):
            assert pair.first[units].tolist() == layer[i].astype(int).tolist()
            assert pair.second[units].tolist() == layer[j].astype(int).tolist()


def test_layers_wider_than_a_word() -> None:
    bits = [np.random.default_rng(2).random((2, width)) < 0.5 for width in (64, 130, 1)]
    pair = row_pair(pack_bits(bits), 0, 1)
    np.testing.assert_array_equal(pair.first, np.concatenate([one[0] for one in bits]))
    np.testing.assert_array_equal(pair.second, np.concatenate([one[1] for one in bits]))


def test_the_near_pair_is_the_nearest_in_another_polytope() -> None:
    leaves = np.random.default_rng(3).integers(0, 3, size=(40, 20)).astype(np.int32)
    leaves[20:] = leaves[:20]  # each row has a twin, whose kernel is 1
    codes = LeafCodes(leaves)
    first, near, far = near_and_far(codes)
    others = geodesic_kernel(codes)[first]
    assert others[near] == others[others < 1].max()
    assert others[far] == others.min()
    means = geodesic_kernel(codes).mean(axis=1)
    assert means[first] == pytest.approx(np.sort(means)[20])


def test_rows_of_one_polytope_are_a_pair_too() -> None:
    first, near, far = near_and_far(LeafCodes(np.ones((3, 2), dtype=np.int32)))
    assert first not in (near, far)


def test_rows_that_do_not_exist_are_refused() -> None:
    codes = LeafCodes(np.ones((2, 2), dtype=np.int32))
    with pytest.raises(InputError, match="no row 3 among the 2"):
        row_pair(codes, 0, 2)
    with pytest.raises(InputError, match="no pair"):
        near_and_far(LeafCodes(np.ones((1, 2), dtype=np.int32)))
