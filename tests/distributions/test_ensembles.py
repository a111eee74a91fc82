"""m samples a row: ranks as PIT values, tails beyond the samples, and what m can resolve."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from kdcal_core.diagnostics.regression import fault, uniformity_tests
from kdcal_core.distributions import (
    Concatenated,
    Empirical,
    Normal,
    Quantiles,
    Weighted,
    randomised_pit,
)

NAMES = ("kolmogorov_smirnov", "cramer_von_mises", "anderson_darling", "frosini")


def calibrated(rng, n, m, discrete=False):
    """Samples (n, m) and outcomes (n,) that are draws alike, each row from its own distribution."""
    if discrete:
        drawn = rng.poisson(rng.gamma(2.0, 1.0, (n, 1)), (n, m + 1)).astype(float)
    else:
        drawn = rng.normal(rng.normal(size=(n, 1)), rng.gamma(3.0, 1.0, (n, 1)), (n, m + 1))
    return drawn[:, :m], drawn[:, m]


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("m", [5, 10, 20, 100])
def test_calibrated_ensembles_are_called_faulty_as_often_as_the_level_says(m, discrete):
    rng, runs, n = np.random.default_rng(m), 400, 100
    samples, y = calibrated(rng, runs * n, m, discrete)
    pit = randomised_pit(Empirical(samples), y, seed=0).reshape(runs, n)
    p_values = np.array([[test.p_value for test in uniformity_tests(row)] for row in pit])
    rejected = (p_values < 0.05).mean(axis=0)
    # 5% and a point of tolerance, and the sampling error of 400 runs
    assert (rejected < 0.06 + 2 * (0.05 * 0.95 / runs) ** 0.5).all(), dict(
        zip(NAMES, rejected, strict=True)
    )
    assert stats.kstest(pit.ravel(), "uniform").pvalue > 0.001


def test_the_rank_pit_is_its_definition_with_ties_and_beyond():
    ours = Empirical([[1.0, 2.0, 2.0, 5.0]] * 5)
    draw = np.array([0.25, 0.25, 0.25, 0.5, 0.0])
    found = ours.pit(np.array([0.0, 2.0, 3.0, 9.0, 5.0]), draw)
    assert_allclose(found, np.array([0.25, 1 + 3 * 0.25, 3.25, 4.5, 3.0]) / 5)
    assert np.array_equal(randomised_pit(ours, [2.0] * 5, 3), randomised_pit(ours, [2.0] * 5, 3))
    both = Concatenated([ours[:3], Normal([0.0, 1.0], 1.0)], [[0, 2, 4], [1, 3]])
    mixed = both.pit(np.array([0.0, 0.0, 2.0, 1.0, 3.0]), draw)
    assert_allclose(mixed, [0.05, 0.5, (1 + 3 * 0.25) / 5, 0.5, 3.0 / 5])


@pytest.mark.parametrize("m", [5, 10, 20, 100])
def test_intervals_of_calibrated_ensembles_hold_what_they_state(m):
    samples, y = calibrated(np.random.default_rng(m), 20_000, m)
    for level in (0.5, 0.8, 0.9, 0.95):
        low, high = Empirical(samples).interval(level)
        seen = np.mean((low <= y) & (y <= high))
        # between two samples the distribution function is linear, which few samples show
        assert -0.01 < seen - level < (0.015 if level > 0.9 else 0.01 + 0.2 / m), level
        ranks = (m + 1) * (1 - level) / 2
        if ranks == round(ranks):  # the ends are samples: exact whatever the distribution
            assert abs(seen - level) < 0.01


def test_intervals_that_end_at_samples_end_there_exactly():
    samples = np.sort(np.random.default_rng(0).normal(size=(4, 39)), axis=1)
    low, high = Empirical(samples).interval(0.95)
    assert np.array_equal(low, samples[:, 0])
    assert np.array_equal(high, samples[:, 38])


@pytest.mark.parametrize("shape", ["gamma", "lognormal", "student", "two peaks"])
def test_tails_follow_the_shape_of_the_samples(shape):
    rng, size = np.random.default_rng(1), (20_000, 21)
    drawn = {
        "gamma": rng.gamma(2.0, size=size),
        "lognormal": np.exp(rng.normal(size=size)),
        "student": rng.standard_t(4, size=size),
        "two peaks": 2.5 * rng.choice([-1.0, 1.0], size=size) + 0.5 * rng.normal(size=size),
    }[shape]
    low, high = Empirical(drawn[:, :20]).interval(0.95)
    y = drawn[:, 20]
    assert abs(np.mean((low <= y) & (y <= high)) - 0.95) < 0.015
    assert 0.01 < np.mean(y > high) < 0.037
    assert 0.01 < np.mean(y < low) < 0.037


def test_the_distribution_of_samples_is_its_own_integral():
    ours = Empirical(np.random.default_rng(0).normal(size=(3, 6)))
    edges = np.unique(np.r_[-np.geomspace(1e-3, 1e4, 2000), np.geomspace(1e-3, 1e4, 2000)])
    for row in range(3):
        one = ours[[row]]
        mass = sum(
            integrate.quad(lambda y, one=one: np.exp(one.log_density(y)[0]), a, b)[0]
            for a, b in zip([-1e4, -8, -1, 0, 1, 8], [-8, -1, 0, 1, 8, 1e4], strict=True)
        )
        assert mass == pytest.approx(1, abs=1e-3)
        y = 0.3
        grid = np.unique(np.r_[edges, y, one.samples[0]])
        middle = (grid[1:] + grid[:-1]) / 2
        square = (one.cdf(middle[None])[0] - (middle >= y)) ** 2
        assert one.crps(y)[0] == pytest.approx((square * np.diff(grid)).sum(), rel=2e-4)


def test_mean_and_spread_are_those_of_an_ensemble():
    samples, y = calibrated(np.random.default_rng(0), 40_000, 5)
    ours = Empirical(samples)
    assert_allclose(ours.mean(), samples.mean(axis=1))
    assert_allclose(ours.std(), samples.std(axis=1, ddof=1) * (1 + 1 / 5) ** 0.5)
    assert np.mean((y - ours.mean()) ** 2) == pytest.approx(np.mean(ours.std() ** 2), rel=0.03)


def test_samples_score_better_with_gaps_and_tails_than_as_steps():
    samples, y = calibrated(np.random.default_rng(0), 20_000, 10)
    distance = np.abs(samples - y[:, None]).mean(axis=1)
    pairs = np.abs(samples[:, :, None] - samples[:, None]).mean(axis=(1, 2))
    assert Empirical(samples).crps(y).mean() < 0.995 * (distance - pairs / 2).mean()


def test_samples_without_spread_end_their_support():
    ours = Empirical([[0.5, 0.5, 0.5, 0.5, 0.5, 2.0, 3.0]])
    assert ours.cdf_left(0.5)[0] == 0.0
    assert ours.cdf(0.5)[0] == 5 / 8
    assert 0 < 1 - ours.cdf(9.0)[0] < 1 / 8
    assert not ours.continuous
    point = Empirical([[2.0]])
    assert point.cdf([[1.0, 2.0, 3.0]]).tolist() == [[0.0, 1.0, 1.0]]
    assert point.log_density([[1.0, 2.0]]).tolist() == [[-np.inf, np.inf]]
    assert (point.std()[0], point.crps(5.0)[0], point.pit([2.0], [0.5])[0]) == (0.0, 3.0, 0.5)


@pytest.mark.parametrize("m", [2, 5, 20])
def test_equal_counts_have_a_tail_of_half_a_step(m):
    ours = Empirical(np.repeat([[3.0], [4.0]], m, axis=1))[:1]
    beyond = 1 - ours.cdf([[3.0, 3.5, 4.0]])[0]
    assert beyond[0] == pytest.approx(1 / (m + 1))
    assert 0 < beyond[2] < beyond[1] < beyond[0]
    assert ours.cdf_left(3.0)[0] == pytest.approx(1 / (m + 1))
    grid = np.linspace(-60.0, 66.0, 400_001)
    integral = np.sum((ours.cdf(grid[None])[0] - (grid >= 5.0)) ** 2) * (grid[1] - grid[0])
    assert ours.crps(5.0)[0] == pytest.approx(integral, rel=1e-3)


def test_zeros_among_fractions_are_no_counts():
    """A dry day's forecast of rain keeps its end at zero, whatever the unit and the rows shown."""
    rain = Empirical([[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.001, 0.002, 0.0035, 0.004]])
    for dry in (rain, rain[:1]):
        assert dry.cdf([[0.0]] * len(dry))[0] == 1.0
        assert dry.ppf(0.99)[0] == 0.0


@pytest.mark.parametrize("m", [5, 9, 16, 50])
@pytest.mark.parametrize("value", [0.1, 0.7, 1e12 / 3])
def test_equal_samples_have_no_tail_of_rounding(value, m):
    """The mean of nine times 0.1 is not 0.1."""
    ours = Empirical(np.full((1, m), value))
    assert ours.cdf([value])[0] == 1.0
    assert ours.cdf_left([value])[0] == 0.0
    assert (ours.ppf([[0.001, 0.5, 0.999]]) == value).all()
    assert ours.log_density([value])[0] == np.inf
    beside = np.nextafter(value, [[-np.inf, np.inf]])
    assert (ours.log_density(beside) == -np.inf).all()
    assert (ours.cdf(beside) == [0.0, 1.0]).all()
    assert Weighted(ours.samples, np.ones(m)).std()[0] == 0.0


def test_what_a_prediction_itself_resolves():
    assert Empirical(np.zeros((1, 39))).resolved == pytest.approx(0.95)
    assert Empirical(np.zeros((1, 10))).resolved == pytest.approx(9 / 11)
    assert Quantiles([0.1, 0.5, 0.95], [[1.0, 2.0, 3.0]]).resolved == pytest.approx(0.8)
    assert Normal([0.0], 1.0).resolved == 1.0


@pytest.mark.parametrize("m", [5, 10, 20])
def test_the_finding_on_an_ensemble_does_not_hang_on_the_draw(m):
    """One draw a row gave calibrated ensembles another fault by another seed in 2 to 5% of runs."""
    for run in range(20):
        samples, y = calibrated(np.random.default_rng([run, m]), 300, m)
        found = [fault(randomised_pit(Empirical(samples), y, seed)).words for seed in range(4)]
        assert len(set(found)) == 1


def test_shares_of_rank_pit_values_are_those_expected_of_draws():
    samples, y = calibrated(np.random.default_rng(0), 400, 10)
    rank = (samples < y[:, None]).sum(axis=1)
    pit = randomised_pit(Empirical(samples), y, seed=3)
    for share in (0.025, 0.05, 0.25, 0.5, 0.9, 0.975):
        expected = np.clip(share * 11 - rank, 0, 1).mean()
        assert_allclose((pit <= share).mean(), expected, atol=2 / 400)
