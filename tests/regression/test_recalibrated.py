"""Recalibrated distributions: the same as the weighted samples they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.distributions import Empirical, Gamma, Normal, StudentT, Weighted, from_arrays
from kdcal_core.regression import Recalibrated

RNG = np.random.default_rng(0)
BASES = {
    "normal": Normal(RNG.normal(size=6), 1 + RNG.random(6)),
    "gamma": Gamma(3.0, 1 + RNG.random(6)),
    "student_t": StudentT(RNG.normal(size=6), 2.0, 5.0),
    "samples": Empirical(RNG.normal(size=(6, 9)).round(1)),
}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_recalibrated_equals_its_weighted_samples(name, shared):
    base = BASES[name]
    pits, weights = RNG.random((1 if shared else 6, 40)), RNG.random((1 if shared else 6, 40))
    recalibrated = Recalibrated(base, pits, weights)
    samples = np.stack([base[i : i + 1].ppf(pits[0 if shared else i][None])[0] for i in range(6)])
    plain = Weighted(samples, np.broadcast_to(weights, (6, 40)))
    at = RNG.normal(size=(6, 11))
    levels = np.linspace(0, 1, 13)[None]
    np.testing.assert_allclose(recalibrated.cdf(at), plain.cdf(at), atol=1e-12)
    np.testing.assert_allclose(recalibrated.cdf_left(at), plain.cdf_left(at), atol=1e-12)
    np.testing.assert_allclose(recalibrated.ppf(levels), plain.ppf(levels))
    np.testing.assert_allclose(recalibrated.log_density(at), plain.log_density(at), rtol=1e-9)
    for measure in ("mean", "std"):
        np.testing.assert_allclose(getattr(recalibrated, measure)(), getattr(plain, measure)())
    np.testing.assert_allclose(recalibrated.crps(at[:, 0]), plain.crps(at[:, 0]))
    np.testing.assert_allclose(recalibrated.samples, plain.samples)
    np.testing.assert_allclose(recalibrated[[4, 2]].mean(), plain.mean()[[4, 2]])


def test_jumps_of_a_base_of_samples_are_jumps_of_the_recalibrated():
    base = Weighted([[1.0, 2.0, 3.0, 4.0]], np.ones(4))
    recalibrated = Recalibrated(base, [[0.3, 0.5, 0.6]], [[1.0, 1.0, 2.0]])  # samples 2, 2, 3
    assert recalibrated.cdf([[1.9, 2.0, 3.0]]).tolist() == [[0.0, 0.5, 1.0]]
    assert recalibrated.cdf_left([[2.0, 2.1, 3.0, 3.1]]).tolist() == [[0.0, 0.5, 0.5, 1.0]]


def test_mean_is_the_third_equation_exactly():
    pits, weights = RNG.random((6, 25)), RNG.random((6, 25))
    base = BASES["normal"]
    expected = [
        sum(w * float(base[j : j + 1].ppf(p)[0]) for p, w in zip(pits[j], weights[j], strict=True))
        / sum(weights[j])
        for j in range(6)
    ]
    np.testing.assert_allclose(Recalibrated(base, pits, weights).mean(), expected, rtol=1e-12)


def test_outcomes_outside_the_support_give_finite_samples():
    recalibrated = Recalibrated(Normal([0.0], 1.0), [[0.0, 0.5, 1.0]], [[1.0, 1.0, 1.0]])
    assert np.isfinite(recalibrated.samples).all()
    assert recalibrated.cdf(0.0).tolist() == [pytest.approx(2 / 3)]


def test_recalibrated_is_kept_as_weighted_samples():
    recalibrated = Recalibrated(BASES["normal"], RNG.random((6, 5)), np.ones((6, 5)))
    again = from_arrays(recalibrated.family, recalibrated.arrays())
    np.testing.assert_allclose(again.mean(), recalibrated.mean())


@pytest.mark.parametrize("name", BASES)
def test_moments_of_many_shared_neighbours_are_those_of_the_sample(name):
    pits = RNG.beta(2, 3, size=9000)
    recalibrated = Recalibrated(BASES[name], pits[None], RNG.random((1, 9000)))
    y = RNG.normal(size=6)
    plain = Weighted(recalibrated.samples, recalibrated.weights)
    np.testing.assert_array_less(np.abs(recalibrated.mean() - plain.mean()) / plain.std(), 2e-6)
    np.testing.assert_allclose(recalibrated.std(), plain.std(), rtol=1e-5)
    np.testing.assert_allclose(recalibrated.crps(y), plain.crps(y), rtol=1e-5)
    np.testing.assert_allclose(
        recalibrated[2:4].crps(y[2:4]), recalibrated.crps(y)[2:4], rtol=1e-12
    )
    assert recalibrated.samples.shape == (6, 9000)


def test_shared_neighbours_without_weight_count_for_nothing():
    pits, weights = np.r_[np.full(9000, 0.99), 0.2, 0.5], np.r_[np.zeros(9000), 1.0, 1.0]
    recalibrated = Recalibrated(Normal([0.0], 1.0), pits[None], weights[None])
    assert recalibrated.mean()[0] == pytest.approx(Normal([0.0], 1.0).ppf(0.2)[0] / 2)
