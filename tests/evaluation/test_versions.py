"""Two versions on the same rows: level, power, and agreement with plain tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import ttest_rel

from kdcal_core.data import ScoredSet
from kdcal_core.data.binning import bin_index
from kdcal_core.diagnostics.auc import Pairing
from kdcal_core.diagnostics.summaries import summarise
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import (
    MEASURES,
    changed_measures,
    compare_forecasts,
    compare_versions,
)
from kdcal_core.evaluation.counted_pair import COARSE, CountedPair
from kdcal_core.evaluation.versions import VersionMeasure
from kdcal_core.statistics import log_losses


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


def versions_of(k: int, n: int) -> tuple[ScoredSet, ScoredSet]:
    """Two models of one table, the second one too sure."""
    rng = np.random.default_rng(k)
    odds = 1.5 * rng.normal(size=(n, k))
    y = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
    said = (
        softmax(factor * odds + rng.normal(0.0, spread, odds.shape), axis=1)
        for factor, spread in ((1.1, 0.2), (1.4, 0.25))
    )
    before, after = (ScoredSet(one, y, tuple("abc"[:k]), "", "evaluation") for one in said)
    return before, after


def counted(before: ScoredSet, after: ScoredSet, **given: Any) -> tuple[VersionMeasure, ...]:
    kept = tuple(summarise(one.proba, one.y, one.classes) for one in (before, after))
    return compare_versions(before, after, summaries=kept, **given)


@pytest.mark.parametrize(("k", "event"), [(2, 1), (3, None)])
def test_counts_of_very_many_rows_give_the_numbers_of_the_rows(k: int, event: int | None) -> None:
    pair = versions_of(k, 20_000)
    plain = compare_versions(*pair, event=event)
    for one, other in zip(plain, counted(*pair, event=event), strict=True):
        assert (one.key, one.before.label, one.before.n) == (
            other.key,
            other.before.label,
            other.before.n,
        )
        rows, found = one.difference, other.difference
        assert (one.before.value, one.after.value, rows.difference.value) == pytest.approx(
            (other.before.value, other.after.value, found.difference.value), abs=1e-5
        )
        width, own = (each.difference.high - each.difference.low for each in (rows, found))
        drawn = "ece" in one.key or one.key in ("l2", "mce")
        assert own == pytest.approx(width, rel=0.15 if drawn else 1e-3), one.key
        assert drawn or found.p_value == pytest.approx(rows.p_value, rel=0.02)
        assert rows.verdict == found.verdict


def test_every_measure_of_rows_is_counted_too() -> None:
    rows = [one for one in MEASURES.values() if one.compared and one.group != "outside"]
    assert [one.key for one in rows if one.counted is None] == []
    before, after = versions_of(2, 500)
    other = summarise(before.proba[:400], before.y[:400], before.classes)
    with pytest.raises(InputError, match="other rows"):
        compare_versions(before, after, summaries=(other, other))


def test_the_same_version_counted_twice_is_not_told_apart() -> None:
    before, _ = versions_of(2, 5000)
    found = counted(before, before, event=1)
    assert {one.difference.verdict for one in found} == {"cannot be told apart"}
    assert all(one.difference.difference.value == 0.0 for one in found)


def test_without_both_classes_and_without_errors_two_measures_are_left_out() -> None:
    proba = np.tile([[0.9, 0.1], [0.7, 0.3]], (600, 1))
    before = ScoredSet(proba, np.zeros(1200, dtype=np.int64), ("no", "yes"), "", "evaluation")
    after = replace(before, proba=0.5 * proba + [0.5, 0.0])
    keys = [{one.key for one in found(before, after)} for found in (compare_versions, counted)]
    assert keys[0] == keys[1]
    assert not {"auc", "mmc_errors"} & keys[1]


def test_what_versions_share_is_that_of_the_rows() -> None:
    before, after = versions_of(3, 3000)
    kept = tuple(summarise(one.proba, one.y, one.classes) for one in (before, after))
    pair = CountedPair.of(before, after, kept, None, 0.95, 10, 0)
    loss = np.array([log_losses(one.proba, one.y) for one in (before, after)])
    assert pair.products[0] == pytest.approx(np.cov(loss, ddof=0) * 3000)
    chance, place = [], []
    for one, cells in zip((before, after), pair.cells, strict=True):
        score, table = one.proba.max(axis=1), cells.table(10, "quantile")
        chance.append(score + (table.rate - table.score)[bin_index(score, table.edges)])
        place.append((score * COARSE).astype(int))
    together = np.zeros((COARSE, COARSE))
    np.add.at(together, tuple(place), np.minimum(*chance) - chance[0] * chance[1])
    assert pair.together == pytest.approx(together, abs=1e-9)
    noise = np.bincount(place[1], chance[1] * (1.0 - chance[1]), COARSE)
    assert pair.noise[1] == pytest.approx(noise, abs=1e-9)
    whole = [Pairing.of(one.y, np.ones(3000), 3).area(one.proba) for one in (before, after)]
    assert pair.areas == pytest.approx([value for value, _ in whole], abs=1e-12)
    parts = np.array([part for _, part in whole])
    own = [parts[:, before.y == at] @ parts[:, before.y == at].T for at in range(3)]
    assert pair.products[4:] == pytest.approx(np.array(own), rel=1e-3)
