"""Smoothed recalibrated distributions: their own functions agree, and thin tails are corrected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from kdcal_core.distributions import Normal, Weighted
from kdcal_core.regression import Recalibrated, SmoothedRecalibrated

RNG = np.random.default_rng(0)


def smooth(n=5, k=60, shared=False):
    rows = 1 if shared else n
    base = Normal(RNG.normal(size=n), 1 + RNG.random(n))
    rough = Recalibrated(base, RNG.beta(2, 3, size=(rows, k)), RNG.random((rows, k)))
    return rough, SmoothedRecalibrated.of(rough)


@pytest.mark.parametrize("shared", [False, True])
def test_smoothed_quantiles_invert_its_distribution_function(shared):
    _, distribution = smooth(shared=shared)
    levels = np.array([[1e-6, 0.01, 0.3, 0.5, 0.99, 1 - 1e-6]])
    np.testing.assert_allclose(
        distribution.cdf(distribution.ppf(levels)), np.repeat(levels, 5, axis=0), rtol=1e-6
    )
    assert (distribution.ppf([[0.0, 1.0]]) == [[-np.inf, np.inf]]).all()
    np.testing.assert_allclose(distribution[[3, 1]].mean(), distribution.mean()[[3, 1]])


def test_smoothed_density_and_moments_are_those_of_its_distribution_function():
    _, distribution = smooth()
    y = np.linspace(-15, 15, 200_001)[None]
    mass = np.diff(distribution.cdf(y), axis=1)
    middle = (y[:, :-1] + y[:, 1:]) / 2
    mean = (mass * middle).sum(axis=1)
    np.testing.assert_allclose(distribution.mean(), mean, atol=2e-3)
    std = np.sqrt((mass * (middle - mean[:, None]) ** 2).sum(axis=1))
    np.testing.assert_allclose(distribution.std(), std, rtol=5e-3)
    density = np.exp(distribution.log_density(middle))
    np.testing.assert_allclose(density.sum(axis=1) * (y[0, 1] - y[0, 0]), 1.0, atol=1e-3)
    outcome = np.array([-1.0, 0.0, 0.5, 1.0, 4.0])
    gap = distribution.cdf(middle) - (middle >= outcome[:, None])
    crps = (gap**2).sum(axis=1) * (y[0, 1] - y[0, 0])
    np.testing.assert_allclose(distribution.crps(outcome), crps, rtol=2e-3)


def test_smoothed_is_the_kernel_estimate_mixed_with_a_normal():
    pits, weights = RNG.beta(2, 3, size=40), RNG.random(40)
    base = Normal([0.0], 1.0)
    distribution = SmoothedRecalibrated.of(Recalibrated(base, pits[None], weights[None]))
    w, z = weights / weights.sum(), ndtri(pits)
    m = 1 / (w**2).sum()
    mean = (w * z).sum()
    std = np.sqrt((w * (z - mean) ** 2).sum())
    order = np.argsort(z)
    low, high = z[order][np.searchsorted(np.cumsum(w[order]), [0.25, 0.75])]
    h = 0.9 * min(std, (high - low) / 1.349) * m**-0.2
    centre = mean + (z - mean) / np.sqrt(1 + (h / std) ** 2)
    y = np.linspace(-3, 3, 31)
    kernels = (w * ndtr((y[:, None] - centre) / h)).sum(axis=1)
    expected = kernels * m / (m + 1) + ndtr((y - mean) / std) / (m + 1)
    np.testing.assert_allclose(distribution.cdf(y[None])[0], expected, atol=2e-3)


def test_smoothed_keeps_the_tails_that_few_neighbours_cut_off():
    base = Normal(np.zeros(4000), 1.0)
    rough = Recalibrated(base, RNG.random((4000, 40)), np.ones((4000, 40)))
    outcome = RNG.normal(size=4000)

    def covered(distribution):
        low, high = distribution.interval(0.99)
        return ((low <= outcome) & (outcome <= high)).mean()

    assert covered(rough) < 0.965
    assert 0.967 < covered(SmoothedRecalibrated.of(rough)) < 0.993
    assert SmoothedRecalibrated.of(rough).crps(outcome).mean() < rough.crps(outcome).mean()


@pytest.mark.parametrize("pits", [[[0.5]], [[0.0]], [[1.0]], [[0.3, 0.3, 0.3]], [[0.0, 1.0]]])
def test_smoothed_of_few_or_equal_neighbours_is_a_distribution(pits):
    rough = Recalibrated(Normal([0.0], 1.0), pits, np.ones_like(pits))
    distribution = SmoothedRecalibrated.of(rough)
    values = distribution.cdf(np.linspace(-9, 9, 200)[None])
    assert (np.diff(values) >= 0).all()
    assert np.isfinite([distribution.mean(), distribution.std(), distribution.crps(0.3)]).all()


def test_smoothed_of_a_base_of_samples_jumps_where_the_base_does():
    rough = Recalibrated(
        Weighted([[1.0, 2.0, 3.0]], np.ones(3)), [[0.2, 0.5, 0.6]], np.ones((1, 3))
    )
    distribution = SmoothedRecalibrated.of(rough)
    assert not distribution.continuous
    assert distribution.cdf([[0.5, 3.0]]).tolist() == [[0.0, 1.0]]
    assert distribution.cdf_left(2.0)[0] < distribution.cdf(2.0)[0]


@pytest.mark.parametrize("outlier", [-8.0, 5.0, 8.0])
def test_smoothed_keeps_the_bulk_beside_an_outlier(outlier):
    z = np.append(np.random.default_rng(1).normal(0.0, 0.01, 999), outlier)
    rough = Recalibrated(Normal([0.0], 1.0), ndtr(z)[None], np.ones((1, 1000)))
    distribution = SmoothedRecalibrated.of(rough)
    for level in (0.5, 0.9, 0.95):
        exact, found = np.array(rough.interval(level)), np.array(distribution.interval(level))
        np.testing.assert_allclose(found, exact, atol=3e-3)
    np.testing.assert_allclose(distribution.mean(), rough.mean(), atol=3e-3)
    np.testing.assert_allclose(distribution.std(), rough.std(), rtol=0.15)  # one row decides
