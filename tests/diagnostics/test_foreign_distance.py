"""Confidence at a distance: uniform spheres, the radius's unit, blocks, bands, refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import kstest

from kdcal_core.data.foreign_rows import sphere_points
from kdcal_core.diagnostics import (
    confidence_by_distance,
    max_confidence_by_distance,
)
from kdcal_core.diagnostics import far_from_data as module
from kdcal_core.errors import InputError


def sigmoid(X):
    p = expit(np.asarray(X)[:, 0])
    return np.column_stack([1 - p, p])


@given(st.integers(1, 30), st.integers(1, 40), st.floats(1e-6, 1e6), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_points_lie_on_the_sphere(n, d, radius, seed):
    points = sphere_points(n, d, radius, seed)
    assert points.shape == (n, d)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), radius, rtol=1e-12)
    np.testing.assert_array_equal(sphere_points(n, d, radius, seed), points)


def test_points_are_uniform_on_the_sphere():
    plane = sphere_points(5000, 2, 1.0, seed=1)
    angle = np.arctan2(plane[:, 1], plane[:, 0])
    assert kstest(angle, "uniform", args=(-np.pi, 2 * np.pi)).pvalue > 0.01
    ball = sphere_points(5000, 3, 2.0, seed=1)  # Archimedes: every coordinate is uniform
    assert all(kstest(ball[:, j], "uniform", args=(-2, 4)).pvalue > 0.01 for j in range(3))


def test_the_curve_is_the_mean_over_each_sphere():
    X = np.random.default_rng(0).normal(size=(40, 3))
    radii = [0.0, 0.5, 1.0, 2.5]
    curve = max_confidence_by_distance(sigmoid, X, radii, n=200, seed=4, q=(10, 90))
    reach = max(np.sqrt((row**2).sum()) for row in X)
    for i, radius in enumerate(radii):
        largest = sigmoid(sphere_points(200, 3, radius * reach, 4)).max(axis=1)
        assert curve.mean[i] == pytest.approx(largest.mean())
        assert curve.low[i] == pytest.approx(np.percentile(largest, 10))
        assert curve.high[i] == pytest.approx(np.percentile(largest, 90))
    assert (curve.n, curve.seed, curve.q) == (200, 4, (10.0, 90.0))
    assert curve.mean[0] == 0.5
    table = curve.table()
    assert list(table) == ["radius", "mean_max_confidence", "percentile_10", "percentile_90"]
    assert len(table) == 4


def test_the_papers_network_grows_certain_and_the_scale_of_the_data_does_not_matter():
    X = np.random.default_rng(1).normal(size=(30, 2))
    near = max_confidence_by_distance(sigmoid, X, [1, 10, 1e6], seed=2)
    assert near.mean[0] < near.mean[1] < near.mean[2]
    assert near.mean[2] > 0.99999
    far = max_confidence_by_distance(lambda Z: sigmoid(Z / 1000), 1000 * X, [1, 10, 1e6], seed=2)
    np.testing.assert_allclose(far.mean, near.mean, rtol=1e-12)


def test_a_centre_moves_the_spheres_and_measures_the_reach_from_it():
    X = np.array([[10.0, 5.0], [12.0, 5.0], [11.0, 6.0]])
    centre = X.mean(axis=0)
    seen = []

    def watch(Z):
        seen.append(Z)
        return sigmoid(Z)

    max_confidence_by_distance(watch, X, [2.0], n=50, centre=centre)
    reach = np.linalg.norm(X - centre, axis=1).max()
    np.testing.assert_allclose(np.linalg.norm(seen[0] - centre, axis=1), 2 * reach)


def test_blocks_change_nothing_and_report_progress(monkeypatch):
    X = np.random.default_rng(2).normal(size=(10, 4))
    whole = max_confidence_by_distance(sigmoid, X, [0, 1, 2], n=37)
    sizes, shares = [], []

    def counted(Z):
        sizes.append(len(Z))
        return sigmoid(Z)

    monkeypatch.setattr(module, "_BLOCK_ROWS", 10)
    parts = max_confidence_by_distance(
        counted, X, [0, 1, 2], n=37, progress=lambda share, note: shares.append(share)
    )
    np.testing.assert_array_equal(parts.mean, whole.mean)
    np.testing.assert_array_equal(parts.high, whole.high)
    assert max(sizes) == 10
    assert sum(sizes) == 111
    assert shares == sorted(shares)
    assert shares[-1] == 1.0

    def cancel(share, note):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        max_confidence_by_distance(sigmoid, X, [1], progress=cancel)


def test_a_frame_stays_a_frame():
    X = pd.DataFrame({"b": [1.0, 2.0], "a": [0.5, 0.1]})

    def named(Z):
        assert list(Z.columns) == ["b", "a"]
        return sigmoid(Z.to_numpy())

    by_name = max_confidence_by_distance(named, X, [1, 2])
    np.testing.assert_array_equal(
        by_name.mean, max_confidence_by_distance(sigmoid, X.to_numpy(), [1, 2]).mean
    )


def test_a_single_row_has_a_distance_too():
    assert max_confidence_by_distance(sigmoid, [[0.0, 3.0]], [1.0], n=1).mean.shape == (1,)


def test_probabilities_that_are_there_give_the_same_curve():
    X = np.array([[1.0, 0.0]])
    radii = [0.5, 3.0]
    proba = np.stack([sigmoid(sphere_points(60, 2, r, 9)) for r in radii])
    given_curve = confidence_by_distance(proba, radii, seed=9)
    curve = max_confidence_by_distance(sigmoid, X, radii, n=60, seed=9)
    np.testing.assert_allclose(given_curve.mean, curve.mean, rtol=1e-12)
    np.testing.assert_allclose(given_curve.low, curve.low, rtol=1e-12)
    assert (given_curve.n, given_curve.seed) == (60, 9)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(InputError) as caught:
        max_confidence_by_distance(sigmoid, [[1.0, 2.0], [1.0, np.nan]], [1])
    assert (caught.value.row, caught.value.column) == (2, "2")
    with pytest.raises(InputError, match="lie in the centre"):
        max_confidence_by_distance(sigmoid, [[0.0, 0.0]], [1])
    with pytest.raises(InputError, match="no rows"):
        max_confidence_by_distance(sigmoid, np.empty((0, 2)), [1])
    with pytest.raises(InputError, match="shape"):
        max_confidence_by_distance(sigmoid, [1.0, 2.0], [1])
    for radii in ([], [-1.0], [np.nan], [np.inf], 3.0):
        with pytest.raises(InputError, match="radii"):
            max_confidence_by_distance(sigmoid, [[1.0]], radii)
    with pytest.raises(InputError, match="centre"):
        max_confidence_by_distance(sigmoid, [[1.0]], [1], centre=[1.0, 2.0])
    with pytest.raises(InputError, match="percentiles"):
        max_confidence_by_distance(sigmoid, [[1.0]], [1], q=(80, 20))
    with pytest.raises(InputError, match="n is 0"):
        max_confidence_by_distance(sigmoid, [[1.0]], [1], n=0)
    with pytest.raises(InputError, match="rows of probabilities"):
        max_confidence_by_distance(lambda Z: sigmoid(Z)[1:], [[1.0]], [1])
    with pytest.raises(InputError, match="sum to"):
        max_confidence_by_distance(lambda Z: 0.9 * sigmoid(Z), [[1.0]], [1])
    with pytest.raises(InputError, match="shape"):
        confidence_by_distance(np.full((2, 3, 2), 0.5), [1.0])
    with pytest.raises(InputError, match="radius"):
        sphere_points(2, 2, -1.0, 0)
