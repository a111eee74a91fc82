"""The binning kernel at its edges: nothing is lost, nothing is counted twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.errors import InputError

SCORES = arrays(np.float64, st.integers(1, 60), elements=st.floats(0.0, 1.0))
TIED = arrays(np.float64, st.integers(1, 60), elements=st.sampled_from([0.0, 0.2, 0.5, 1.0]))


def brute_bin(score, edges):
    for b in range(len(edges) - 1):
        if (score > edges[b] or b == 0) and score <= edges[b + 1]:
            return b
    raise AssertionError(f"{score} fell into no bin")


@given(SCORES, st.integers(1, 40))
def test_every_score_lies_in_exactly_its_bin(score, n_bins):
    edges = uniform_edges(n_bins)
    assert bin_index(score, edges).tolist() == [brute_bin(s, edges) for s in score]


@given(SCORES, st.integers(1, 40))
def test_every_row_is_counted(score, n_bins):
    counts = bin_sums(bin_index(score, uniform_edges(n_bins)), n_bins)
    assert counts.sum() == len(score)


@pytest.mark.parametrize("n_bins", [*range(1, 41), 100, 1000])
def test_an_exact_edge_belongs_to_the_bin_it_closes_however_it_is_spelt(n_bins):
    k = np.arange(1, n_bins + 1)
    edges = uniform_edges(n_bins)
    for spelling in (k / n_bins, k * (1.0 / n_bins), np.linspace(0, 1, n_bins + 1)[1:]):
        assert bin_index(np.minimum(spelling, 1.0), edges).tolist() == (k - 1).tolist()


def test_ends_denormals_and_float32_saturation():
    edges = uniform_edges(15)
    tiny = np.nextafter(0.0, 1.0)
    saturated = np.float64(np.float32(1.0) - np.float32(1e-9))
    assert bin_index(np.array([0.0, tiny, 1.0, saturated]), edges).tolist() == [0, 0, 14, 14]
    assert bin_index(np.array([np.nextafter(1.0, 0.0)]), edges).tolist() == [14]


def test_one_ulp_above_an_edge_is_the_next_bin():
    edges = uniform_edges(10)
    assert bin_index(np.nextafter(edges[1:-1], 1.0), edges).tolist() == list(range(1, 10))


@given(st.one_of(SCORES, TIED), st.integers(1, 20))
def test_quantile_bins_are_never_empty_and_never_part_ties(score, n_bins):
    edges = quantile_edges(score, n_bins)
    assert edges[0] == 0.0
    assert edges[-1] == 1.0
    assert np.all(np.diff(edges) > 0)
    counts = bin_sums(bin_index(score, edges), len(edges) - 1)
    assert len(counts) <= n_bins
    assert np.all(counts > 0)
    assert counts.sum() == len(score)


@given(st.integers(1, 12), st.integers(1, 9))
def test_quantile_bins_of_distinct_scores_have_equal_mass(n_bins, per_bin):
    score = (np.arange(n_bins * per_bin) + 1) / (n_bins * per_bin + 1)
    edges = quantile_edges(score, n_bins)
    assert bin_sums(bin_index(score, edges), n_bins).tolist() == [per_bin] * n_bins


@given(TIED, st.integers(1, 8), st.data())
def test_whole_weights_are_repeated_rows(score, n_bins, data):
    times = data.draw(arrays(np.int64, len(score), elements=st.integers(1, 4)))
    weighted = quantile_edges(score, n_bins, times.astype(float))
    assert weighted.tolist() == quantile_edges(np.repeat(score, times), n_bins).tolist()


def test_sums_keep_empty_bins():
    assert bin_sums(np.array([3, 3]), 5, np.array([0.5, 1.0])).tolist() == [0, 0, 0, 1.5, 0]


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, "3"])
def test_a_senseless_number_of_bins_is_refused(n_bins):
    with pytest.raises(InputError, match="number of bins"):
        uniform_edges(n_bins)


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="no rows"):
        quantile_edges(np.array([]), 3)
