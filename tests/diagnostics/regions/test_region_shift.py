"""The test of stated against observed rates: exact laws, size, coverage, edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom

from kdcal_core.diagnostics.regions.shift import shift_test

RATES = st.lists(st.floats(0.02, 0.98), min_size=12, max_size=60)


def law(rates):
    """Chances of 0, 1, ... events of independent rows, one convolution a row."""
    mass = np.ones(1)
    for rate in rates:
        mass = np.convolve(mass, [1.0 - rate, rate])
    return mass


def mid_p(rates, count):
    mass = law(rates)
    above = mass[count + 1 :].sum() + 0.5 * mass[count]
    return min(1.0, 2.0 * min(above, 1.0 - above))


def scatters(rates, hit):
    """Whether outcomes scatter more than rates do that are shifted to their mean."""
    if hit.all() or not hit.any():
        return False
    odds = logit(rates)
    theta = brentq(lambda at: (expit(odds + at) - hit).sum(), -40.0, 40.0)
    shifted = expit(odds + theta)
    return np.square(hit - shifted).sum() > (shifted * (1.0 - shifted)).sum() * 1.02


@settings(max_examples=80, deadline=None)
@given(RATES, st.data())
def test_p_value_is_the_mid_p_of_the_poisson_binomial(rates, data):
    n = len(rates)
    count = data.draw(st.integers(0, n))
    hit = (np.arange(n) < count).astype(float)
    exact = mid_p(rates, count)
    found = shift_test(np.array(rates), hit, np.ones(n), 0.95, 0.05)
    if exact > 1e-8 and not scatters(np.array(rates), hit):
        assert found.p_value == pytest.approx(exact, rel=0.12, abs=0.02 * (exact > 0.3))
    without_zero = found.low > 0 or found.high < 0
    assert (found.p_value < 0.05 - 1e-4) <= without_zero
    assert (found.p_value > 0.05 + 1e-4) <= (found.low <= 0 <= found.high)
    assert -found.stated - 1e-9 <= found.low <= found.high <= 1 - found.stated + 1e-9


@pytest.mark.parametrize(
    ("a", "b", "n", "weighted"), [(4.0, 2.0, 200, True), (0.3, 0.3, 80, False)]
)
def test_size_and_coverage_with_unlike_rows(a, b, n, weighted):
    rng = np.random.default_rng(n + weighted)
    rejected, covered = 0, 0
    for _ in range(300):
        score = rng.beta(a, b, n)
        truth = score * np.where(np.arange(n) % 2, 0.8, 1.0)  # only half of the rows are off
        weight = rng.exponential(size=n) + 0.05 if weighted else np.ones(n)
        sound, off = ((rng.random(n) < rate).astype(float) for rate in (score, truth))
        rejected += shift_test(score, sound, weight, 0.95, 0.05).p_value < 0.05
        found = shift_test(score, off, weight, 0.95, 0.05)
        covered += found.low <= np.average(truth - score, weights=weight) <= found.high
    assert rejected / 300 < 0.085
    assert covered / 300 > 0.88


def test_the_detectable_gap_is_found_in_four_of_five():
    rng = np.random.default_rng(5)
    score, found_at = rng.uniform(0.3, 0.8, 600), 0.05 / 8
    gap = shift_test(score, np.ones(600), np.ones(600), 0.95, found_at).minimum_detectable
    p_values = [
        shift_test(score, (rng.random(600) < score - gap) * 1.0, np.ones(600), 0.95, 0.05).p_value
        for _ in range(300)
    ]
    assert 0.72 < np.mean(np.array(p_values) < found_at) < 0.88


@pytest.mark.parametrize("found_at", [0.05, 0.05 / 8])
@pytest.mark.parametrize(
    ("stated", "n"), [(0.5, 40), (0.9, 60), (0.99, 200), (0.999, 200), (1.0, 300), (0.02, 300)]
)
def test_the_detectable_gap_of_rows_stated_alike_by_the_exact_binomial(stated, n, found_at):
    found = shift_test(np.full(n, stated), np.arange(n) % 2.0, np.ones(n), 0.95, found_at)
    k = np.arange(n + 1)
    below = binom.cdf(k, n, stated) - 0.5 * binom.pmf(k, n, stated)
    refused = 2 * np.minimum(below, 1 - below) < found_at
    power = [
        binom.pmf(k, n, stated + sign * found.minimum_detectable)[refused].sum()
        for sign in (-1, 1)
        if 0 <= stated + sign * found.minimum_detectable <= 1
    ]
    assert 0.77 < min(power) < 0.84


def test_what_cannot_be_found_is_not_called_detectable():
    found = shift_test(np.full(4, 0.5), np.array([0.0, 1, 0, 1]), np.ones(4), 0.95, 0.05)
    assert found.minimum_detectable == np.inf
    uneven = shift_test(
        np.linspace(0.01, 0.99, 50), np.arange(50) % 2.0, np.geomspace(0.01, 9, 50), 0.95, 0.3
    )
    assert 0 < uneven.minimum_detectable < 1


def test_weights_of_one_size_change_nothing():
    rng = np.random.default_rng(6)
    score, hit = rng.random(50), (rng.random(50) < 0.5) * 1.0
    assert shift_test(score, hit, np.full(50, 9.0), 0.95, 0.05) == shift_test(
        score, hit, np.ones(50), 0.95, 0.05
    )


@pytest.mark.parametrize("stated", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_nothing_or_everything_happening_keeps_a_width(stated, n):
    for hit in (np.zeros(n), np.ones(n)):
        found = shift_test(np.full(n, stated), hit, np.ones(n), 0.95, 0.05)
        gap = hit[0] - stated
        assert found.low <= gap + 1e-9
        assert gap - 1e-9 <= found.high
        assert found.high - found.low > 1e-3
        half = 0.5 * (stated if hit[0] else 1 - stated) ** n  # mid-p of the extreme
        assert found.p_value == pytest.approx(2 * min(half, 1 - half), abs=1e-6)


def test_certainties_that_fail_are_found():
    hit = np.ones(500)
    hit[:3] = 0
    found = shift_test(np.ones(500), hit, np.ones(500), 0.95, 0.05)
    assert found.p_value < 1e-10
    assert found.high < 0


@pytest.mark.parametrize("n", [60, 300])
def test_intervals_hold_where_the_model_is_too_sure_in_both_directions(n):
    """Log odds three times too large: the rows scatter far more than is stated of them."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        odds = 1.5 * rng.normal(size=n)
        p, score = expit(odds), expit(3.0 * odds)
        found = shift_test(score, (rng.random(n) < p) * 1.0, np.ones(n), 0.95, 0.05)
        held += found.low <= (p - score).mean() <= found.high
    assert held >= 274  # 0.1% quantile of a binomial of 300 draws with chance 0.95


def test_a_wide_interval_does_not_change_what_could_have_been_found():
    """The gap to find is that of a calibrated model, whatever these outcomes show."""
    score = np.tile([0.02, 0.98], 100)
    wild = np.tile([0.0, 1.0, 1.0, 0.0], 50)
    found = [
        shift_test(score, hit, np.ones(200), 0.95, 0.05) for hit in (wild, (score > 0.5) * 1.0)
    ]
    assert found[0].minimum_detectable == found[1].minimum_detectable
    assert found[0].high - found[0].low > 2.0 * (found[1].high - found[1].low)


def test_rows_without_an_event_bound_their_rate_as_equal_chances_do() -> None:
    """Beside one certain row, a shift of all log odds would leave that row all the chance."""
    score = np.append(np.full(300, 0.6), 1.0)
    for side in (0.0, 1.0):
        hit, stated = np.full(301, side), np.abs(side - score)
        hit = np.abs(side - np.zeros(301))
        found = shift_test(stated, hit, np.ones(301), 0.95, 0.05)
        bound = 1.0 - 0.05 ** (1.0 / 301)  # half of the outcome's chance counts
        beyond = found.high + found.stated if side == 0.0 else 1.0 - found.low - found.stated
        assert beyond == pytest.approx(bound, rel=1e-6)
