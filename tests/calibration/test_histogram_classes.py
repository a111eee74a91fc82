"""Histogram binning of each class's probability, counted by hand."""

import numpy as np
import pytest

from kdcal_core.calibration import ClasswiseHistogram


def test_every_bin_counts_its_own_rows():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 500)
    y = rng.integers(0, 3, 500)
    weight = rng.uniform(0.5, 2, 500)
    ours = ClasswiseHistogram(shrinkage=None, n_bins=7, strategy="uniform").fit(proba, y, weight)
    said = np.empty((500, 3))
    for j in range(3):
        share = (weight[y == j].sum() + 1) / (weight.sum() + 3)
        for i in range(500):
            at = np.ceil(proba[i, j] * 7).clip(1)
            mine = np.ceil(proba[:, j] * 7).clip(1) == at
            right = weight[mine & (y == j)].sum()
            said[i, j] = (right + share) / (weight[mine].sum() + 1)
    np.testing.assert_allclose(
        ours.predict_proba(proba), said / said.sum(axis=1, keepdims=True), atol=1e-12
    )


def test_bins_of_equal_mass_agree_with_probcal():
    from probcal import HistogramBinningCalibrator

    rng = np.random.default_rng(0)
    p = rng.random(30_000)
    y = (rng.random(30_000) < p**2).astype(int)
    ours = ClasswiseHistogram(shrinkage=None, n_bins=10).fit(np.column_stack([1 - p, p]), y)
    theirs = HistogramBinningCalibrator(n_bins=10).fit(p, y)
    np.testing.assert_allclose(
        ours.predict_proba(np.column_stack([1 - p, p]))[:, 1], theirs.predict_proba(p), atol=2e-3
    )


def test_a_bin_without_rows_says_the_share_of_the_class():
    p = np.array([0.05, 0.06, 0.95])
    ours = ClasswiseHistogram(shrinkage=None, n_bins=10, strategy="uniform")
    ours.fit(np.column_stack([1 - p, p]), [0, 0, 1])
    assert ours.predict_proba([[0.5, 0.5]])[0, 1] == pytest.approx(2 / 5)
