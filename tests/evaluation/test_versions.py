"""Two versions on the same rows: level, power, and agreement with plain tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from kdcal_core.data import ScoredSet
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import changed_measures, compare_forecasts, compare_versions


def rows(seed: int, n: int = 500) -> tuple[np.ndarray, ScoredSet]:
    rng = np.random.default_rng(seed)
    odds = rng.normal(0.0, 1.5, n)
    p = 1.0 / (1.0 + np.exp(-odds))
    y = (rng.random(n) < p).astype(int)
    proba = np.column_stack([1.0 - p, p])
    return odds, ScoredSet(proba, y, ("no", "yes"), "", "evaluation")


def restated(scored: ScoredSet, odds: np.ndarray) -> ScoredSet:
    p = 1.0 / (1.0 + np.exp(-odds))
    return replace(scored, proba=np.column_stack([1.0 - p, p]))


def test_log_loss_is_the_paired_t_test() -> None:
    odds, after = rows(0)
    before = restated(after, 1.3 * odds)
    found = {one.key: one for one in compare_versions(before, after, event=1, n_boot=100)}
    pair = found["log_loss"].difference
    loss = [-np.log(one.proba[np.arange(500), one.y]) for one in (before, after)]
    test = ttest_rel(loss[1], loss[0])
    low, high = test.confidence_interval(0.95)
    assert pair.difference.value == pytest.approx(np.mean(loss[1] - loss[0]))
    assert (pair.difference.low, pair.difference.high) == pytest.approx((low, high), rel=1e-6)
    assert pair.p_value == pytest.approx(test.pvalue, rel=1e-6)


def test_equal_versions_are_seldom_told_apart() -> None:
    told = 0
    for seed in range(20):
        rng = np.random.default_rng(1000 + seed)
        odds, scored = rows(seed, 400)
        versions = (restated(scored, odds + rng.normal(0.0, 0.5, 400)) for _ in range(2))
        found = compare_versions(*versions, event=1, n_boot=100)
        told += any(one.difference.verdict != "cannot be told apart" for one in found)
    assert told <= 4  # at most 5% in truth: more than 4 of 20 happens in 0.3% of runs


def test_the_same_version_twice_is_not_told_apart() -> None:
    _, scored = rows(3)
    found = compare_versions(scored, scored, n_boot=100)
    assert {one.difference.verdict for one in found} == {"cannot be told apart"}
    assert all(one.difference.difference.value == 0.0 for one in found)


def test_other_rows_are_refused() -> None:
    _, scored = rows(4)
    for other in (
        replace(scored, y=1 - scored.y),
        replace(scored, classes=("yes", "no")),
        replace(scored, weight=np.linspace(1.0, 2.0, 500)),
        rows(4, 499)[1],
    ):
        with pytest.raises(InputError, match="other rows"):
            compare_versions(scored, other)


def forecasts(seed: int, n: int = 400) -> tuple[RegressionSet, RegressionSet]:
    """Two versions of the same rows: the first is half a unit off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = x + rng.normal(size=n)
    after = RegressionSet(Normal(x, 1.0), y, "", "evaluation")
    return replace(after, distribution=Normal(x + 0.5, 1.0)), after


def test_forecasts_are_paired_by_row() -> None:
    before, after = forecasts(0)
    paired, rest = compare_forecasts(before, after, scale=1.0)
    found = {one.label: one for one in paired}
    crps = [one.distribution.crps(one.y) for one in (before, after)]
    test = ttest_rel(crps[1], crps[0])
    low, high = test.confidence_interval(0.95)
    difference = found["CRPS"].difference
    assert difference.value == pytest.approx(np.mean(crps[1] - crps[0]))
    assert (difference.low, difference.high) == pytest.approx((low, high), rel=1e-6)
    assert found["CRPS"].direction == found["MSE"].direction == "better"
    apart = found["CRPS"].after.value - found["CRPS"].before.value
    assert difference.value == pytest.approx(apart)
    inside = [
        np.abs(one.y - one.distribution.mean()) <= 1.959963984540054 for one in (before, after)
    ]
    covered = found["Coverage 95%"].difference
    assert covered.value == pytest.approx(inside[1].mean() - inside[0].mean())
    assert covered.percent
    assert {one.label for one in rest} == {"RMSE", "Quantile error", "Wasserstein"}


def test_equal_forecasts_are_seldom_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # what is not paired is not read, and drawing its intervals takes most of the time
    room = "kdcal_core.diagnostics.regression.uniformity"
    monkeypatch.setattr(f"{room}._bootstrap_reach", lambda *_: 0.0)
    told = 0
    for seed in range(40):
        rng = np.random.default_rng(1000 + seed)
        _, after = forecasts(seed, 300)
        noisy = [
            replace(after, distribution=Normal(after.distribution.mean() + shift, 1.0))
            for shift in rng.normal(0.0, 0.3, (2, 300))
        ]
        paired, _ = compare_forecasts(noisy[0], noisy[1], scale=1.0)
        told += any(one.direction != "not told apart" for one in paired)
    assert told <= 7  # at most 5% in truth: more than 7 of 40 happens in 0.07% of runs


def test_the_same_forecasts_twice_are_not_told_apart() -> None:
    _, after = forecasts(1)
    paired, rest = compare_forecasts(after, after, scale=1.0)
    assert {one.direction for one in (*paired, *rest)} == {"not told apart"}
    assert all(one.difference.value == 0.0 for one in paired)


def test_intervals_that_are_too_narrow_are_no_better() -> None:
    _, after = forecasts(3, 1000)
    narrow, wide = (
        replace(after, distribution=Normal(after.distribution.mean(), spread))
        for spread in (0.6, 1.8)
    )
    for made in (narrow, wide):
        paired, _ = compare_forecasts(after, made, scale=1.0)
        found = {one.label: one.direction for one in paired}
        assert (found["Coverage 95%"], found["CRPS"], found["Width 95%"]) == (
            *("worse", "worse", "other"),
        )
        back = {one.label: one.direction for one in compare_forecasts(made, after, scale=1.0)[0]}
        assert back["Coverage 95%"] == "better"


def test_few_forecasts_have_no_interval_and_other_outcomes_are_refused() -> None:
    before, after = forecasts(2, 12)
    paired, _ = compare_forecasts(before, after, scale=1.0)
    assert np.isnan(paired[0].difference.low)
    assert {one.direction for one in paired} == {"not told apart"}
    with pytest.raises(InputError, match="other rows"):
        compare_forecasts(before, replace(after, y=after.y + 1.0), scale=1.0)


def test_a_verdict_becomes_a_direction() -> None:
    odds, after = rows(0)
    found = compare_versions(restated(after, 3.0 * odds), after, event=1, n_boot=100)
    changed = {one.label: one for one in changed_measures(found)}
    assert changed["Log loss"].direction == "better"
    assert changed["AUROC"].direction == "not told apart"
    back = changed_measures(
        compare_versions(after, restated(after, 3.0 * odds), event=1, n_boot=100)
    )
    assert {one.label: one.direction for one in back}["Log loss"] == "worse"
