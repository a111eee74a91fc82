"""Mean kernel within and between classes against paths counted one by one."""

from itertools import product

import numpy as np
import pytest

from kdcal_core.diagnostics import kernel_similarity
from kdcal_core.errors import InputError
from kdcal_core.partition import LeafCodes, pack_bits


def brute_kernel(bits_a, bits_b):
    """Dey et al., Eq. 12: the share of all paths, one unit a layer, with equal strings."""
    paths = list(product(*[range(len(layer)) for layer in bits_a]))
    equal = [
        all(a[unit] == b[unit] for a, b, unit in zip(bits_a, bits_b, path, strict=True))
        for path in paths
    ]
    return np.mean(equal)


def test_each_depth_is_the_mean_over_pairs_of_the_shared_paths():
    rng = np.random.default_rng(0)
    layers = [rng.random((9, width)) < 0.6 for width in (3, 4, 2)]
    y = rng.integers(0, 3, 9)
    result = kernel_similarity(pack_bits(layers), y)
    assert result.depth.tolist() == [1, 2, 3]
    for depth in (1, 2, 3):
        pairs = {True: [], False: []}
        for i in range(9):
            for j in range(i):
                kernel = brute_kernel(*[[layer[r] for layer in layers[:depth]] for r in (i, j)])
                pairs[bool(y[i] == y[j])].append(kernel)
        assert result.within[depth - 1] == pytest.approx(np.mean(pairs[True]))
        assert result.between[depth - 1] == pytest.approx(np.mean(pairs[False]))
    assert (result.within_pairs, result.between_pairs) == (len(pairs[True]), len(pairs[False]))
    assert (np.diff(result.within) <= 0).all()
    assert list(result.table().columns)[:2] == ["depth", "within"]
    assert len(result.table()) == 3


def test_a_forest_has_one_depth():
    leaves = np.array([[0, 0, 1], [0, 2, 1], [3, 2, 4]], dtype=np.int32)
    result = kernel_similarity(LeafCodes(leaves), [0, 0, 1])
    assert result.depth.tolist() == [1]
    assert result.within.tolist() == pytest.approx([2 / 3])
    assert result.between.tolist() == pytest.approx([(0 + 1 / 3) / 2])


def test_a_sample_of_rows_is_seeded_and_near_the_whole():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 1500)
    layers = [rng.random((1500, 40)) < 0.3 + 0.4 * y[:, None] for _ in range(2)]
    codes = pack_bits(layers)
    whole = kernel_similarity(codes, y, n=1500)
    part, again, other = (kernel_similarity(codes, y, n=300, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(part.within, again.within)
    assert (part.within != other.within).all()
    assert part.n == 300
    assert (part.within_low < whole.within).all()
    assert (whole.within < part.within_high).all()
    assert (whole.between_high < whole.within_low).all()


def test_the_interval_counts_rows_and_not_pairs():
    """Rows differ in how often their units are on, so that the pairs of one row go together."""
    rng = np.random.default_rng(2)
    covered = np.zeros(2)
    for _ in range(300):
        y = rng.integers(0, 2, 60)
        own = rng.beta(2.0, 2.0, (60, 1))
        result = kernel_similarity(pack_bits([rng.random((60, 64)) < own]), y)
        truth = 0.5  # E[ab + (1 - a)(1 - b)] for independent a, b of mean one half
        covered += [
            result.within_low[0] <= truth <= result.within_high[0],
            result.between_low[0] <= truth <= result.between_high[0],
        ]
    assert (covered / 300 > 0.9).all()


def test_a_kind_of_pair_that_is_not_there_is_not_a_number():
    codes = pack_bits([np.eye(3, dtype=bool)])
    alone = kernel_similarity(codes, [0, 1, 2])
    assert np.isnan(alone.within[0])
    assert alone.within_pairs == 0
    assert np.isfinite(alone.between[0])
    same = kernel_similarity(codes, [1, 1, 1])
    assert np.isnan(same.between_high[0])
    pair = kernel_similarity(pack_bits([np.ones((2, 3), dtype=bool)]), [0, 0])
    assert (pair.within[0], pair.within_high[0]) == (1.0, 1.0)
    assert pair.within_low[0] < 0.1


def test_what_is_no_pair_is_refused():
    codes = pack_bits([np.eye(3, dtype=bool)])
    with pytest.raises(InputError, match="two rows"):
        kernel_similarity(pack_bits([np.ones((1, 2), dtype=bool)]), [0])
    with pytest.raises(InputError, match="two rows"):
        kernel_similarity(codes, [0, 1, 2], n=1)
    with pytest.raises(InputError, match="labels"):
        kernel_similarity(codes, [0, 1])
    with pytest.raises(InputError) as caught:
        kernel_similarity(codes, [0, 1, np.nan])
    assert caught.value.row == 3
