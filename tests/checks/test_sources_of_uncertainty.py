"""Intervals hold where a denominator, a choice or few rows are uncertain, not only the mean.

Each simulation puts the truth where the check's verdict turns, or where the number is a mean of
few or heavy-tailed rows. Bounds are the 0.1% quantiles of the binomial counts.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom

from kdcal_core.checks import LEVELS, Evidence, judge_checks, measure_checks
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    auroc,
    climatology_crps,
    mean_max_confidence,
    ood_calibration_error,
    paired_difference,
)
from kdcal_core.diagnostics.calibration_line import calibration_intercept, calibration_slope
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.review import Limit
from kdcal_core.statistics import (
    kish,
    largest_share,
    quantile_interval,
    ratio_of_means,
    t_quantile,
)


def most(runs: int, chance: float) -> int:
    """No more of the runs than this, but for one in a thousand tests."""
    return int(binom.isf(0.001, runs, chance))


def pairs(n: int, p, y, name: str = "evaluation") -> ScoredSet:
    return ScoredSet(np.column_stack([1.0 - p, p]), y, ("no", "yes"), "d", name)


def estimate_of(evidence: Evidence, code: str):
    (found,) = measure_checks(evidence, [code]).checks
    assert not found.why_not, found.why_not
    return found.parts[0].estimate


# -- ratios --


def test_the_interval_of_a_ratio_holds_the_ratios_that_a_paired_test_keeps() -> None:
    """Fieller's interval by brute force: the t interval of top - r bottom holds 0."""
    rng = np.random.default_rng(0)
    bottom = rng.lognormal(size=40)
    top = 0.3 * bottom + 0.2 * rng.normal(size=40)
    weight = rng.uniform(0.5, 2.0, 40)
    value, low, high = ratio_of_means(top, bottom, weight, 0.9)
    assert value == pytest.approx((weight @ top) / (weight @ bottom))
    for r in np.linspace(low - 0.1, high + 0.1, 201):
        zero = paired_difference(top, r * bottom, weight=weight, level=0.9)
        assert (zero.low <= 0.0 <= zero.high) == (low <= r <= high)


def test_a_ratio_excludes_zero_exactly_where_its_numerator_does() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        top, bottom = rng.normal(0.3, 1.0, 30), rng.uniform(0.5, 3.0, 30)
        _, low, high = ratio_of_means(top, bottom, np.ones(30), 0.95)
        alone = paired_difference(top, np.zeros(30))
        assert (low > 0 or high < 0) == (alone.low > 0 or alone.high < 0)


def test_a_ratio_without_a_denominator_has_no_interval() -> None:
    ones = np.ones(5)
    assert np.isnan(ratio_of_means(ones, np.zeros(5), ones, 0.95)[0])
    uncertain = ratio_of_means(np.arange(5.0), np.array([-3.0, 2.0, -1.0, 2.0, 1.0]), ones, 0.95)
    assert uncertain[1:] == (-np.inf, np.inf)
    assert ratio_of_means(ones[:1], ones[:1], ones[:1], 0.95) == (1.0, -np.inf, np.inf)


def test_bias_in_spreads_accounts_for_the_spread() -> None:
    """Skew outcomes forecast well: the spread is less certain than the mean error."""
    rng = np.random.default_rng(2)
    runs, n, wrong, fixed = 400, 1000, 0, 0
    for _ in range(runs):
        y = rng.exponential(size=n)  # of standard deviation 1
        said = y + 0.2 * rng.normal(size=n) + 0.3
        evidence = Evidence(RegressionSet(Normal(said, 1.0), y, "d", "evaluation"))
        found = estimate_of(evidence, "KC023")
        wrong += not found.low <= 0.3 <= found.high
        naive = paired_difference(said / np.std(y), y / np.std(y))
        fixed += not naive.low <= 0.3 <= naive.high
    assert fixed > 6 * 0.05 * runs  # with a spread that counts as known
    assert wrong <= most(runs, 0.05)


def test_bias_weighs_rows_in_its_spread_too() -> None:
    rng = np.random.default_rng(3)
    y, weight = rng.normal(size=60), rng.integers(1, 4, 60)
    said = y + 0.4 + 0.1 * rng.normal(size=60)
    weighted = RegressionSet(Normal(said, 1.0), y, "d", "x", weight.astype(float))
    twice = [np.repeat(one, weight) for one in (said, y)]
    repeated = RegressionSet(Normal(twice[0], 1.0), twice[1], "d", "x")
    values = [estimate_of(Evidence(rows), "KC023").value for rows in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_the_trivial_forecast_weighs_past_outcomes() -> None:
    rng = np.random.default_rng(4)
    past, weight, y = rng.normal(size=50), rng.integers(1, 5, 50), rng.normal(size=20)
    found = climatology_crps(past, y, sample_weight=weight)
    np.testing.assert_allclose(found, climatology_crps(np.repeat(past, weight), y), rtol=1e-12)
    brute = [
        np.average(np.abs(past - one), weights=weight)
        - 0.5 * np.average(np.abs(past[:, None] - past), weights=np.outer(weight, weight))
        for one in y
    ]
    np.testing.assert_allclose(found, brute, rtol=1e-12)


def test_outcomes_that_are_all_equal_have_no_trivial_forecast_to_beat() -> None:
    rows = RegressionSet(Normal(np.zeros(20), 1.0), np.full(20, 3.0), "d", "x")
    for code in ("KC023", "KC121"):
        (found,) = measure_checks(Evidence(rows), [code]).checks
        assert found.why_not == "All outcomes are equal."


# -- a choice made on the same rows --


def test_the_largest_of_several_shares_is_held_although_it_was_chosen() -> None:
    rng = np.random.default_rng(5)
    runs, wrong, plain = 2000, 0, 0
    for shares in rng.multinomial(200, np.full(10, 0.1), size=runs) / 200:
        _, low, high = largest_share(shares, 200, 0.95)
        wrong += not low <= 0.1 <= high
        plain += not largest_share([shares.max()], 200, 0.95)[1] <= 0.1
    assert wrong <= most(runs, 0.05)
    assert plain > runs * 0.15  # an interval that forgets the choice


def test_a_guess_among_equal_classes_is_not_called_worse_than_the_commonest() -> None:
    """Ten classes of equal shares: the largest of ten counts always beats a guess."""
    rng = np.random.default_rng(6)
    runs, failed = 400, 0
    for _ in range(runs):
        said, y = rng.integers(0, 10, (2, 300))
        rows = ScoredSet(np.eye(10)[said], y, tuple("abcdefghij"), "d", "calibration")
        found = judge_checks(measure_checks(Evidence(rows), ["KC204"]))
        failed += found.verdict == "fail"
    assert failed <= most(runs, 0.025)


def test_with_another_set_the_commonest_class_is_known() -> None:
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, 300)
    rows = ScoredSet(np.eye(3)[y], y, ("a", "b", "c"), "d", "evaluation")
    found = estimate_of(Evidence(rows, rows), "KC204")
    commonest = (y == np.bincount(y).argmax()).astype(float)
    alone = paired_difference(np.ones(300), commonest)
    assert (found.low, found.high) == (alone.low, alone.high)
    assert found.percent


def test_two_classes_without_an_event_are_judged_as_a_class_against_the_rest() -> None:
    """The confidence is right on average, and the second class is stated far too often."""
    p = np.repeat([0.9, 0.4], 500)
    y = np.r_[np.zeros(100), np.ones(400), np.zeros(400), np.ones(100)].astype(int)
    evidence = Evidence(pairs(1000, p, y))
    (found,) = judge_checks(measure_checks(evidence, ["KC006"])).results
    assert [one.name for one in found.parts] == ["yes"]
    assert found.worst.estimate.value == pytest.approx(0.15)
    assert found.verdict == "fail"
    (event,) = measure_checks(Evidence(pairs(1000, p, y), event=1), ["KC006"]).checks
    assert "the same as calibration in the large" in event.why_not


# -- the rows' own scatter --


@pytest.mark.parametrize("sharper", [1.0, 3.0])
def test_the_calibration_intercept_holds_where_the_line_is_not_true(sharper: float) -> None:
    """A slope that is not 1 makes outcomes scatter about the line more than it says."""
    z = np.random.default_rng(8).normal(size=400_000) * 1.5
    true = calibration_intercept(
        expit(sharper * z), (np.random.default_rng(9).random(len(z)) < expit(z)).astype(int)
    ).value
    rng = np.random.default_rng(10)
    runs, wrong = 300, 0
    for _ in range(runs):
        z = rng.normal(size=250) * 1.5
        found = calibration_intercept(expit(sharper * z), (rng.random(250) < expit(z)).astype(int))
        wrong += not found.low <= true <= found.high
    assert wrong <= most(runs, 0.05)


def test_the_calibration_slope_holds_where_the_curve_is_no_line() -> None:
    """The extreme tenth of the rows is a coin flip, so the slope depends on few rows."""

    def drawn(n: int, rng: np.random.Generator):
        z = rng.normal(size=n) * 1.5
        truth = np.where(np.abs(z) > 2.4, 0.5, expit(z))
        return expit(z), (rng.random(n) < truth).astype(int)

    true = calibration_slope(*drawn(400_000, np.random.default_rng(11))).value
    rng = np.random.default_rng(12)
    runs, wrong = 250, 0
    for _ in range(runs):
        found = calibration_slope(*drawn(300, rng))
        wrong += not found.low <= true <= found.high
    assert wrong <= most(runs, 0.05)


def test_weights_that_go_with_the_scatter_widen_the_line() -> None:
    """Heavy rows that are wrong: Kish's number of rows alone would not see it."""
    z = np.tile(np.linspace(-2.0, 2.0, 50), 8)
    rng = np.random.default_rng(13)
    hit = (rng.random(400) < expit(z)).astype(int)
    surprising = np.abs(hit - expit(z)) > 0.6
    heavy = np.where(surprising, 6.0, 1.0)
    shuffled = rng.permutation(heavy)
    found = [calibration_intercept(expit(z), hit, sample_weight=one) for one in (heavy, shuffled)]
    assert kish(heavy) == pytest.approx(kish(shuffled))
    widths = [one.high - one.low for one in found]
    assert widths[0] > 1.2 * widths[1]


def test_groups_of_an_over_confident_model_hold_their_gap() -> None:
    """Right on average in both groups, and log odds three times too large."""
    rng = np.random.default_rng(14)
    runs, failed = 200, 0
    for _ in range(runs):
        z = rng.normal(size=160) * 1.5
        rows = pairs(160, expit(3.0 * z), (rng.random(160) < expit(z)).astype(int))
        groups = pd.DataFrame({"site": np.resize(["north", "south"], 160)})
        evidence = Evidence(rows, event=1, groups=lambda groups=groups: groups)
        found = judge_checks(measure_checks(evidence, ["KC008"]), {"KC008": Limit(-0.001, 0.001)})
        failed += found.verdict == "fail"
    assert failed <= most(runs, 0.05)


# -- few rows --


def test_two_errors_do_not_fail_a_model_for_their_confidence() -> None:
    p = np.full(200, 0.96)
    y = np.ones(200, dtype=int)
    p[:2], y[:2] = [0.951, 0.953], 0
    evidence = Evidence(pairs(200, p, y))
    (found,) = judge_checks(measure_checks(evidence, ["KC009"])).results
    assert found.verdict == "not enough evidence"
    assert found.worst.rows_needed is not None


@pytest.mark.parametrize("errors", [3, 8, 30])
def test_the_confidence_of_few_errors_is_held(errors: int) -> None:
    rng = np.random.default_rng(15)
    runs, wrong = 600, 0
    for _ in range(runs):
        top = 0.5 + 0.5 * rng.beta(4.0, 1.0, errors)  # mean 0.9
        proba = np.column_stack([top, 1.0 - top])
        found = mean_max_confidence(proba, np.ones(errors, dtype=int), of="errors")
        wrong += not found.low <= 0.9 <= found.high
    assert wrong <= most(runs, 0.06)


def test_a_mean_of_few_rows_uses_the_t_quantile() -> None:
    rng = np.random.default_rng(16)
    runs, wrong, normal = 2000, 0, 0
    for a in rng.normal(size=(runs, 5)):
        found = paired_difference(a, np.zeros(5))
        wrong += not found.low <= 0.0 <= found.high
        error = (found.high - found.value) / t_quantile(0.95, 4)
        normal += abs(found.value) > 1.96 * error
    assert wrong <= most(runs, 0.05)
    assert normal > most(runs, 0.05)


def test_order_statistics_hold_the_quantile() -> None:
    rng = np.random.default_rng(17)
    runs = 2000
    for share, n in ((0.5, 30), (0.01, 400), (0.99, 400)):
        ends = [quantile_interval(values, share, 0.95) for values in rng.random((runs, n))]
        assert sum(not low <= share <= high for low, high in ends) <= most(runs, 0.05)
    assert quantile_interval(np.full(1000, 0.3), 0.01, 0.99) == (0.3, 0.3)


# -- draws --


@pytest.mark.parametrize("code", ["KC001", "KC021"])
def test_levels_beyond_the_draws_are_not_read_from_the_last_draw(code: str) -> None:
    """A thousand draws hold ten beyond a level of 99%, and one beyond 99.9%."""
    rng = np.random.default_rng(18)
    if code == "KC001":
        p = rng.uniform(0.1, 0.9, 800)
        evidence = Evidence(pairs(800, p, (rng.random(800) < 0.8 * p).astype(int)), event=1)
    else:
        y = rng.normal(size=800)
        evidence = Evidence(RegressionSet(Normal(np.full(800, 0.3), 1.0), y, "d", "x"))
    (found,) = measure_checks(evidence, [code]).checks
    (part,) = found.parts
    assert len(part.low) == len(part.high) == 2 < len(LEVELS)
    reach = [part.at(level).high - part.estimate.value for level in (0.99, 0.999, 0.9999)]
    assert reach[0] < reach[1] < reach[2]
    assert 1.1 < reach[2] / reach[0] < 1.8  # 1.5 for a normal interval


# -- far from the data --


def test_the_distance_from_the_class_shares_accounts_for_their_error() -> None:
    """A model that is certain everywhere, and a class with 75% of all rows: the truth is 0.25."""
    rng = np.random.default_rng(19)
    far = np.tile([1.0, 0.0], (1000, 1))
    runs, wrong, known = 500, 0, 0
    for _ in range(runs):
        share = rng.binomial(200, 0.75) / 200
        prior = [share, 1.0 - share]
        found = ood_calibration_error(far, prior, prior_kind="empirical", prior_rows=200)
        wrong += not found.low <= 0.25 <= found.high
        alone = ood_calibration_error(far, prior, prior_kind="empirical")
        known += not alone.low <= 0.25 <= alone.high
    assert wrong <= most(runs, 0.05)
    assert known > runs // 2


def test_without_a_model_it_is_said_what_to_load() -> None:
    rows = pairs(50, np.full(50, 0.6), np.arange(50) % 2)
    (found,) = measure_checks(Evidence(rows), ["KC010"]).checks
    assert "Load the model's file" in found.why_not


def test_stability_of_sets_with_one_class_is_not_judged_by_ranking() -> None:
    one = pairs(60, np.full(60, 0.8), np.ones(60, dtype=int))
    (found,) = judge_checks(measure_checks(Evidence(one, one, event=1), ["KC011"])).results
    verdicts = {part.name: part.verdict for part in found.parts}
    assert verdicts["AUROC"] == "not enough evidence"
    assert np.isnan(auroc(one.proba, one.y).value)
