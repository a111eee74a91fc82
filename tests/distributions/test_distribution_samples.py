"""Samples, weighted samples, quantiles and maps against brute force from their definitions."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy import integrate, stats

from kdcal_core.distributions import (
    Empirical,
    Gamma,
    Mapped,
    Normal,
    Quantiles,
    StudentT,
    Weighted,
    randomised_pit,
)
from kdcal_core.distributions.distribution import even
from kdcal_core.errors import InputError, InputWarning

RNG = np.random.default_rng(5)
GRID_VALUES = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])
GRID_WEIGHTS = st.sampled_from([0.0, 1.0, 1.0, 2.0, 5.0])


@st.composite
def weighted_rows(draw):
    """Few rows with ties and weights of zero, some weight in each."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 6)))
    weights = draw(arrays(float, shape, elements=GRID_WEIGHTS))
    weights[weights.sum(axis=1) == 0, 0] = 1
    return draw(arrays(float, shape, elements=GRID_VALUES)), weights


@given(rows=weighted_rows(), y=GRID_VALUES, p=st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]))
@settings(max_examples=200, deadline=None)
def test_weighted_samples_follow_their_definitions(rows, y, p):
    samples, weights = rows
    ours = Weighted(samples, weights)
    for row, (x, w) in enumerate(
        zip(samples, weights / weights.sum(1, keepdims=True), strict=True)
    ):
        assert ours.cdf(y)[row] == pytest.approx(w[x <= y].sum(), abs=1e-12)
        assert ours.cdf_left(y)[row] == pytest.approx(w[x < y].sum(), abs=1e-12)
        support = np.unique(x[w > 0])
        reached = [at for at in support if w[x <= at].sum() >= p - 1e-12]
        assert ours.ppf(p)[row] == reached[0]
        double_sum = (w[:, None] * w[None] * np.abs(x[:, None] - x[None])).sum() / 2
        assert ours.crps(y)[row] == pytest.approx((w * np.abs(x - y)).sum() - double_sum, abs=1e-12)
        assert ours.mean()[row] == pytest.approx(w @ x, abs=1e-12)
        assert ours.std()[row] ** 2 == pytest.approx(w @ (x - w @ x) ** 2, abs=1e-12)


@given(m=st.integers(1, 300), data=st.data())
@settings(max_examples=100, deadline=None)
def test_equal_weights_give_exact_order_statistics(m, data):
    i = data.draw(st.integers(1, m))
    ours = Weighted(np.arange(1.0, m + 1)[None], np.ones(m))
    assert ours.ppf(i / m) == i
    assert ours.cdf(float(i)) == i / m
    assert ours.cdf_left(float(i)) == (i - 1) / m


def test_weights_of_any_unit_and_of_nothing():
    samples = [[1.0, 2.0, 3.0]]
    for unit in (1e-300, 1.0, 1e308):
        ours = Weighted(samples, np.array([0.0, 1.0, 1.0]) * unit)
        assert ours.ppf(0) == 2
        assert ours.ppf(0.5) == 2
        assert ours.cdf(3.0) == 1
        assert_allclose(ours.mean(), 2.5)
    heavy = Weighted(samples, [1.0, 1.0, 1e-30])  # the last sample stays the end of the support
    assert heavy.ppf(1) == 3
    assert heavy.cdf(2.0) < 1
    equal = Weighted([[2.0, 2.0, 2.0]], [1, 2, 3])
    assert equal.crps(2.0) == 0
    assert equal.std() == 0
    assert equal.log_density([[1.0, 2.0]]).tolist() == [[-np.inf, np.inf]]


@pytest.mark.parametrize(
    ("samples", "weights", "words"),
    [
        ([[1.0, 2.0]], [1.0], "do not match"),
        ([[1.0], [2.0]], [[1.0], [0.0]], "row 2"),
        ([[1.0], [2.0]], [[1.0], [-1.0]], "row 2"),
        ([[1.0], [2.0]], [[np.nan], [1.0]], "row 1"),
        ([[1.0], [np.inf]], [1.0], "row 2"),
        ([1.0], [1.0], "shape"),
    ],
)
def test_impossible_samples_and_weights_are_named(samples, weights, words):
    with pytest.raises(InputError, match=words):
        Weighted(samples, weights)


def test_the_density_of_samples_is_a_kernel_estimate():
    x, w = RNG.normal(size=50), RNG.random(50)
    ours = Weighted(x[None], w)
    share = w / w.sum()
    low, high = ours.ppf(0.25)[0], ours.ppf(0.75)[0]
    m = 1 / (share**2).sum()
    width = 0.9 * min(ours.std()[0], (high - low) / 1.34) * m**-0.2
    at = np.array([-1.0, 0.0, 2.0, 40.0])
    expected = [np.log(share @ stats.norm.pdf(y, x, width)) for y in at[:3]]
    assert_allclose(ours.log_density(at[None])[0, :3], expected)
    assert -1e5 < ours.log_density(40.0)[0] < -1000  # the logarithm does not underflow


def test_samples_given_are_left_as_they_were():
    given_samples = np.array([[3.0, 1.0, 2.0]])
    Empirical(given_samples)
    Weighted(given_samples, [1, 2, 3])
    assert given_samples.tolist() == [[3.0, 1.0, 2.0]]


LEVELS = np.array([0.05, 0.25, 0.5, 0.8, 0.95])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.05, 0.3, 0.95]), st.sampled_from([0.0, 0.0, 0.05])),
        min_size=1,
        max_size=60,
    ),
    st.integers(0, 3),
)
def test_rows_of_a_jump_are_spread_in_the_order_of_all_rows(rows, seed):
    """Rows without a jump take their places in the order, although they need none."""
    foot, jump = (np.array(part) for part in zip(*rows, strict=True))
    top = foot + jump
    shuffled = np.random.default_rng(seed).permutation(len(foot))
    order = shuffled[np.lexsort((top[shuffled], foot[shuffled]))]
    place = np.empty(len(foot))
    place[order] = (0.5 + (5**0.5 - 1) / 2 * np.arange(len(foot))) % 1.0
    np.testing.assert_array_equal(even(foot, top, seed), foot + place * (top - foot))


@pytest.mark.parametrize("kinds", [5, 40])
def test_very_many_rows_of_a_jump_are_spread_as_few_are(kinds):
    """Few kinds of jumps are placed block by block, others after a sort of all rows."""
    ends = np.sort(RNG.random(kinds + 1))
    kind = RNG.integers(0, kinds, 2**17 + 1_000)
    foot, top = ends[kind], np.where(RNG.random(len(kind)) < 0.1, ends[kind], ends[kind + 1])
    shuffled = np.random.default_rng(1).permutation(len(foot))
    place = np.empty(len(foot))
    place[shuffled[np.argsort(foot[shuffled] + 1j * top[shuffled], kind="stable")]] = (
        0.5 + (5**0.5 - 1) / 2 * np.arange(len(foot))
    ) % 1.0
    np.testing.assert_array_equal(even(foot, top, 1), foot + place * (top - foot))


def test_quantiles_have_the_moments_and_scores_of_their_function():
    ours = Quantiles(LEVELS, np.sort(RNG.normal(size=(3, 5)), axis=1) * [[1], [5], [0.1]] + 2)
    for row in range(3):
        one = ours[[row]]

        def quantile(p, one=one):
            return one.ppf(p)[0]

        def integral(function):
            edges = [0, *LEVELS, 1]
            pairs = pairwise(edges)
            return sum(integrate.quad(function, a, b, epsabs=1e-11)[0] for a, b in pairs)

        mean = integral(quantile)
        assert one.mean()[0] == pytest.approx(mean, rel=1e-7)
        second = integral(lambda p, mean=mean: (quantile(p) - mean) ** 2)
        assert one.std()[0] == pytest.approx(np.sqrt(second), rel=1e-6)
        assert np.exp(one.log_density(2.3)[0]) == pytest.approx(
            (one.cdf(2.3 + 1e-7)[0] - one.cdf(2.3 - 1e-7)[0]) / 2e-7, rel=1e-4
        )


def test_quantiles_of_a_normal_have_uniform_pit_values_in_the_tails():
    n = 20_000
    truth = Normal(RNG.normal(size=n), RNG.gamma(2, 1, n))
    ours = Quantiles(LEVELS, truth.ppf(LEVELS[None].repeat(n, 0)))
    y = truth.sample(1, seed=2)[:, 0]
    pit = ours.cdf(y)
    tail = pit[pit < 0.05] / 0.05
    # the normal through the two outermost quantiles is the very normal they come of
    assert stats.kstest(tail, "uniform").pvalue > 0.01
    assert pit.min() > 0
    assert pit.max() < 1


def test_equal_quantiles_are_atoms():
    ours = Quantiles([0.1, 0.5, 0.9], [[0.0, 0.0, 1.0], [2.0, 2.0, 2.0]])
    assert not ours.continuous
    assert_allclose(ours.cdf(np.array([0.0, 2.0])), [0.5, 1.0])
    assert_allclose(ours.cdf_left(np.array([0.0, 2.0])), [0.0, 0.0])
    assert_allclose(ours.ppf(0.0), [0.0, 2.0])
    assert_allclose(ours.crps([0.0, 5.0])[1], 3.0)
    assert_allclose(ours.std()[1], 0.0)
    assert np.isinf(ours.log_density(np.array([0.0, 2.0]))).all()


def test_crossing_quantiles_are_named_and_sorted():
    with pytest.warns(InputWarning, match=r"50.0% of the rows \(1 of 2\), first in row 2"):
        ours = Quantiles([0.1, 0.9], [[0.0, 1.0], [3.0, 2.0]])
    assert ours.values.tolist() == [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1.0, 0.0, 2.0], [1.0, 0.0, 2.0]], "cross in all 2 rows"),
        ([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], "below that of the lowest in 2 of 3"),
    ],
)
def test_quantiles_that_cross_in_all_rows_or_descend_are_refused(values, words):
    with pytest.raises(InputError, match=words) as caught:
        Quantiles([0.1, 0.5, 0.9], values)
    assert "reversed" in str(caught.value)


def test_two_swapped_columns_among_many_levels_are_refused():
    levels, rng = np.linspace(0.1, 0.9, 9), np.random.default_rng(0)
    values = np.sort(rng.normal(size=(50, 9)), axis=1)[:, [0, 1, 3, 2, 4, 5, 6, 7, 8]]
    with pytest.raises(InputError, match="cross in all 50 rows"):
        Quantiles(levels, values)


def test_a_model_that_crosses_a_little_in_every_row_is_sorted_with_a_note():
    levels, rng = np.arange(1, 100) / 100, np.random.default_rng(0)
    exact = rng.normal(size=(200, 1)) + stats.norm.ppf(levels)
    values = exact + rng.normal(0, 0.02, exact.shape)
    assert (np.diff(values, axis=1) < 0).any(axis=1).all()
    share = r"100.0% of the rows \(200 of 200\), first in row 1, and \d+\.\d+% of all neighbouring"
    with pytest.warns(InputWarning, match=share):
        ours = Quantiles(levels, values)
    assert_allclose(ours.ppf(0.5), exact[:, 49], atol=0.05)
    with pytest.warns(InputWarning, match="They were sorted"):
        Quantiles(levels, values[:1])  # a single row has one step that falls in all rows


def test_levels_may_come_in_any_order():
    ours = Quantiles([0.9, 0.1, 0.5], [[3.0, 1.0, 2.0]])
    assert ours.ppf([[0.1, 0.5, 0.9]]).tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([0.5], "One quantile"),
        ([0.1, 0.1], "twice"),
        ([0.0, 0.5], "not a probability"),
        ([0.5, 1.2], "not a probability"),
        ([0.1, 0.5, 0.9], "3 levels but"),
    ],
)
def test_impossible_levels_are_refused(levels, words):
    width = min(len(levels), 2)
    with pytest.raises(InputError, match=words):
        Quantiles(levels, np.arange(float(width))[None])


KNOTS, IMAGES = [0, 0.1, 0.4, 0.6, 1], [0, 0.2, 0.2, 0.7, 1]


@pytest.mark.parametrize("base", [Normal(1.0, 2.0), Gamma(3.0, 2.0), StudentT(0.0, 1.0, 5.0)])
def test_a_mapped_distribution_has_the_moments_of_its_density(base):
    ours = Mapped(base, KNOTS, IMAGES)
    ends = base.ppf([[1e-12, *KNOTS[1:-1], 1 - 1e-12]])[0]
    pairs = list(pairwise(ends))

    def moment(function):
        def inside(y):
            return function(y) * np.exp(ours.log_density(y)[0])

        return sum(integrate.quad(inside, a, b, limit=200)[0] for a, b in pairs)

    assert moment(lambda y: 1.0) == pytest.approx(1, abs=1e-6)
    mean = moment(lambda y: y)
    std = np.sqrt(moment(lambda y: (y - mean) ** 2))
    assert ours.mean()[0] == pytest.approx(mean, abs=1e-4 * std)
    assert ours.std()[0] == pytest.approx(std, rel=5e-4)


def test_the_map_that_changes_nothing_leaves_the_base():
    base = Normal(RNG.normal(size=4), RNG.gamma(2, 1, 4))
    same = Mapped(base, [0, 1], [0, 1])
    y = RNG.normal(size=4)
    assert_allclose(same.mean(), base.mean(), atol=1e-6)
    assert_allclose(same.std(), base.std(), rtol=1e-4)
    assert_allclose(same.crps(y), base.crps(y), rtol=1e-4)
    assert_allclose(same.log_density(y), base.log_density(y))
    for p in (0.0, 1.0):
        assert np.array_equal(same.ppf(p), base.ppf(p))


def test_a_map_moves_the_weights_of_samples():
    base = Weighted([[1.0, 2.0, 3.0, 4.0]], [1, 1, 1, 1])
    ours = Mapped(base, [0, 0.5, 1], [0, 0.9, 1])
    again = Weighted([[1.0, 2.0, 3.0, 4.0]], [0.45, 0.45, 0.05, 0.05])
    assert_allclose(ours.mean(), again.mean())
    assert_allclose(ours.crps(2.5), again.crps(2.5))
    twice = Mapped(ours, [0, 0.9, 1], [0, 0.5, 1])
    assert_allclose(twice.std(), base.std())
    assert_allclose(twice.cdf(2.0), 0.5)


def test_the_ends_of_a_map_that_cuts_are_the_ends_of_the_support():
    ours = Mapped(Normal(0, 1), [0, 0.1, 0.9, 1], [0, 0, 1, 1])
    assert_allclose(ours.ppf([[0.0, 1.0]]), stats.norm.ppf([[0.1, 0.9]]))
    assert ours.log_density(3.0)[0] == -np.inf


@pytest.mark.parametrize(
    ("knots", "values"),
    [
        ([0, 1], [0, 0.9]),
        ([0, 0.5, 0.5, 1], [0, 0, 1, 1]),
        ([0, 0.5, 1], [0, 1.5, 1]),
        ([0, 0.3, 0.6, 1], [0, 0.6, 0.3, 1]),
        ([0, 1], [0, 0.5, 1]),
        ([0, np.nan, 1], [0, 0.5, 1]),
    ],
)
def test_maps_that_are_none_are_refused(knots, values):
    with pytest.raises(InputError, match="map"):
        Mapped(Normal(0, 1), knots, values)


def test_randomised_pit_values_of_calibrated_samples_are_uniform():
    n, m = 20_000, 9
    draws = RNG.poisson(3.0, size=(n, m + 1)).astype(float)  # many ties
    weights = stats.poisson(3.0).pmf(np.arange(20))
    exact = Weighted(np.tile(np.arange(20.0), (n, 1)), weights)
    pit = randomised_pit(exact, draws[:, 0], seed=4)
    assert stats.kstest(pit, "uniform").pvalue > 0.01
    assert np.array_equal(pit, randomised_pit(exact, draws[:, 0], seed=4))


def test_pit_values_of_a_continuous_prediction_need_no_chance():
    ours = Normal([0.0, 1.0], 1.0)
    assert np.array_equal(randomised_pit(ours, [0.3, 0.3], 0), randomised_pit(ours, [0.3, 0.3], 1))


@pytest.mark.parametrize("m", [20, 200, 1000, 10_000])
@pytest.mark.parametrize("level", ["0.5", "0.8", "0.9", "0.95", "0.99"])
def test_intervals_of_samples_end_at_exact_order_statistics(m, level):
    low, high = Weighted(np.arange(1.0, m + 1)[np.newaxis], np.ones(m)).interval(float(level))
    assert low[0] == max(1, math.ceil((1 - Fraction(level)) / 2 * m))
    assert high[0] == math.ceil((1 + Fraction(level)) / 2 * m)


def test_a_place_between_two_stated_quantiles_is_drawn():
    """Only the levels are stated, so that any shape between them is calibrated."""
    n = 20_000
    y = np.random.default_rng(4).exponential(size=n)
    ours = Quantiles([0.1, 0.5, 0.9], np.tile(-np.log1p(-np.array([[0.1, 0.5, 0.9]])), (n, 1)))
    pit = randomised_pit(ours, y, 0)
    assert stats.kstest(pit, "uniform").pvalue > 0.01
    assert stats.kstest(ours.cdf(y), "uniform").pvalue < 1e-6  # the line and the tails that we add
    assert ours.pit(ours.values[:, 1], np.zeros(n))[0] == 0.5  # the level of a quantile itself
    assert ours.stated_levels == (0.1, 0.5, 0.9)
    assert ours.stated_intervals((0.5, 0.8, 0.95)) == (0.8,)
    assert Quantiles([0.1, 0.5], [[0.0, 1.0]]).stated_intervals((0.5, 0.8)) == (0.5, 0.8)
