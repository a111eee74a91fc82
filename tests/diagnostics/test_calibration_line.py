"""Cox's intercept and slope against a plain logistic regression, and their edges."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from kdcal_core.diagnostics import calibration_intercept, calibration_slope
from kdcal_core.diagnostics.calibration_line import CELLS


def drawn(n: int, slope: float = 1.0, shift: float = 0.0, seed: int = 0):
    """Scores, and outcomes whose log odds are slope times the stated ones plus a shift."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=n) * 1.5
    hit = (rng.random(n) < expit(shift + slope * odds)).astype(int)
    return expit(odds), hit


def fitted(score, hit, weight=None):
    """Intercept and slope by a general optimiser."""
    weight = np.ones(len(hit)) if weight is None else weight
    odds = logit(score)

    def loss(at):
        line = at[0] + at[1] * odds
        return weight @ (np.logaddexp(0, line) - hit * line)

    return minimize(loss, [0.0, 1.0], tol=1e-12, method="BFGS").x


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.4, 0.0), (1.6, -0.7), (0.8, 0.5)])
def test_the_slope_is_that_of_a_logistic_regression(slope: float, shift: float) -> None:
    score, hit = drawn(900, slope, shift)
    assert calibration_slope(score, hit).value == pytest.approx(fitted(score, hit)[1], abs=1e-4)


def test_the_intercept_meets_the_rate_of_the_event() -> None:
    score, hit = drawn(900, 1.0, 0.6)
    found = calibration_intercept(score, hit)
    assert expit(logit(score) + found.value).mean() == pytest.approx(hit.mean(), abs=1e-9)


def test_weights_count_as_copies_do_for_the_value() -> None:
    score, hit = drawn(400, 0.7, 0.2)
    times = np.random.default_rng(1).integers(1, 4, 400)
    copied = calibration_slope(np.repeat(score, times), np.repeat(hit, times))
    weighted = calibration_slope(score, hit, sample_weight=times.astype(float))
    assert weighted.value == pytest.approx(copied.value, abs=1e-6)
    assert weighted.high - weighted.low > copied.high - copied.low  # fewer independent rows


def test_many_rows_are_taken_together_without_a_difference() -> None:
    score, hit = drawn(10 * CELLS, 0.8, 0.1)
    assert calibration_slope(score, hit).value == pytest.approx(fitted(score, hit)[1], abs=2e-4)


@pytest.mark.parametrize("make", [calibration_intercept, calibration_slope])
def test_intervals_hold_the_truth_as_often_as_they_say(make) -> None:
    """95%, by a binomial bound over 400 samples of 150 rows."""
    true = {"calibration_intercept": 0.4, "calibration_slope": 0.7}[make.__name__]
    held = 0
    for seed in range(400):
        if make is calibration_intercept:
            score, hit = drawn(150, 1.0, 0.4, seed)
        else:
            score, hit = drawn(150, 0.7, 0.3, seed)
        found = make(score, hit)
        held += found.low <= true <= found.high
    assert 0.91 < held / 400 < 0.98


@pytest.mark.parametrize("make", [calibration_intercept, calibration_slope])
def test_higher_levels_give_wider_intervals(make) -> None:
    score, hit = drawn(300)
    ends = [make(score, hit, level=level) for level in (0.5, 0.9, 0.99, 0.9999)]
    assert all(a.low > b.low and a.high < b.high for a, b in pairwise(ends))


@pytest.mark.parametrize(
    ("score", "hit", "why"),
    [
        ([0.2, 0.6, 0.9], [0, 0, 0], "never happened"),
        ([0.2, 0.6, 0.9], [1, 1, 1], "always happened"),
        ([0.5] * 4, [0, 1, 0, 1], "are equal"),
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], "separates the outcomes"),
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0], "separates the outcomes"),
    ],
)
def test_a_slope_that_does_not_exist_says_why(score, hit, why: str) -> None:
    found = calibration_slope(score, hit)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert why in found.interval


def test_scores_of_exactly_0_and_1_are_allowed() -> None:
    score = np.array([0.0, 1.0] * 30 + [0.3, 0.7] * 30)
    hit = np.random.default_rng(0).integers(0, 2, 120)
    for make in (calibration_intercept, calibration_slope):
        found = make(score, hit)
        assert found.low <= found.value <= found.high
        assert np.isfinite(found.value)


def test_stated_probabilities_that_are_all_0_or_1_have_a_slope() -> None:
    """The log odds that two frequencies differ by, over those that the clipped scores do."""
    score = np.repeat([0.0, 1.0], 100)
    hit = np.concatenate([np.arange(100) < 20, np.arange(100) < 70]).astype(int)
    found = calibration_slope(score, hit)
    apart = logit(1.0 - 1e-12) - logit(1e-12)
    assert found.value == pytest.approx((logit(0.7) - logit(0.2)) / apart, rel=1e-6)
    assert 0.0 < found.low < found.value < found.high < 0.2
    assert np.isfinite(calibration_intercept(score, hit).value)
