"""Influence values against the estimates themselves, and paired intervals against row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from kdcal_core.checks import CHECKS, Evidence, measure_checks, with_group_sums
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    Estimate,
    all_estimates,
    auroc,
    changed_estimate,
    difference,
    difference_on_same_rows,
    log_loss,
    question_estimates,
    score_range,
    unpaired_difference,
)
from kdcal_core.diagnostics.between_sets import difference_of_no_share
from kdcal_core.diagnostics.calibration_line import target_slope
from kdcal_core.diagnostics.estimate import share_estimate
from kdcal_core.diagnostics.influence import (
    all_influences,
    area_influence,
    gap_influence,
    kept_sums,
    line_influence,
    question_influences,
    range_influence,
    row_groups,
)
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.diagnostics.targets import Target, targets
from kdcal_core.distributions import Normal, RegressionSet, randomised_pit
from kdcal_core.evaluation import (
    compare_forecasts,
    compare_versions,
    distribution_influences,
    regression_scores,
)
from kdcal_core.statistics import GroupSums, correlation, log_losses

UNMOVED = {"Difference between the sets"}
"""Estimates that rows of another set move too: their check pairs them."""
ROUGH = {"ECE, equal mass": 0.8, "Range in log odds": 0.8}
"""Correlations that are lower because bins or quantiles move with the rows; others: above 0.98."""


def drawn(n: int, n_classes: int, *, sharp: float = 1.6, weighted: bool = False) -> ScoredSet:
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.arange(1.0, n_classes + 1.0), n)
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    proba = true**sharp / (true**sharp).sum(axis=1, keepdims=True)
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    names = tuple("abc"[:n_classes])
    return ScoredSet(proba, y, names, "", "evaluation", weight=weight)


@contextmanager
def without_intervals() -> Iterator[None]:
    """Nothing is drawn, neither for intervals nor for expected values; values are what they are."""
    room = "kdcal_core.diagnostics"
    with pytest.MonkeyPatch.context() as patch:
        errors = import_module(f"{room}.calibration_error")  # the function has its name
        patch.setattr(errors, "_interval", lambda *_: (np.nan, np.nan))
        patch.setattr(errors, "_expected", lambda *_: np.nan)
        patch.setattr(f"{room}.split_noise.excesses", lambda _, __, draws, *___: np.zeros(draws))
        patch.setattr(f"{room}.regression.uniformity._bootstrap_reach", lambda *_: 0.0)
        yield


def estimates_of(rows: ScoredSet, known: ScoredSet, event: int | None) -> list[Estimate]:
    return [*all_estimates(rows), *question_estimates(rows, known, event)]


@pytest.mark.parametrize(("n_classes", "event", "weighted"), [(2, 1, False), (3, None, True)])
def test_leaving_groups_out_moves_estimates_as_their_influence_says(
    n_classes: int, event: int | None, weighted: bool
) -> None:
    rows = drawn(3000, n_classes, weighted=weighted)
    known = rows.only(np.arange(0, 3000, 3))
    groups = row_groups(rows)
    assert groups is not None
    every = [*all_influences(rows), *question_influences(rows, known, event)]
    whole = estimates_of(rows, known, event)
    left_out = np.arange(0, 128, 16)
    moved = []
    with without_intervals():
        for one in left_out:
            rest = rows.only(np.flatnonzero(groups.groups.unit != one))
            moved.append([one.value for one in estimates_of(rest, known, event)])
    for at, (estimate, influence) in enumerate(zip(whole, every, strict=True)):
        if estimate.label in UNMOVED:
            assert influence is None
            continue
        assert influence is not None, estimate.name
        sums = groups.sums(influence)
        if sums is None:
            assert estimate.label in ("Certain", "Certain and wrong")
            continue
        change = estimate.value - np.array([one[at] for one in moved])
        said = sums.sums[left_out].astype(np.float64)
        assert np.corrcoef(change, said)[0, 1] > ROUGH.get(estimate.label, 0.98), estimate.name
        if estimate.label == "Range in log odds":
            continue  # leaving rows out does not give the error of a quantile; draws do, below
        assert change @ said / (said @ said) == pytest.approx(sums.error, rel=0.1), estimate.name


@pytest.mark.parametrize(("n_classes", "event", "weighted"), [(2, 1, False), (3, None, True)])
def test_the_error_of_a_range_is_that_of_its_draws(
    n_classes: int, event: int | None, weighted: bool
) -> None:
    rows = drawn(3000, n_classes, weighted=weighted)
    kind = "confidence" if event is None else "class"
    (target,) = targets(rows.proba, rows.y, rows.weight, kind, event)
    rng, groups = np.random.default_rng(0), row_groups(rows)
    again = [score_range(rng.choice(target.score, 3000)).value for _ in range(300)]
    assert groups is not None
    sums = groups.sums(range_influence(target))
    assert sums is not None
    assert sums.error == pytest.approx(np.std(again), rel=0.2)


def both_sets(n: int, seed: int) -> tuple[Evidence, Evidence]:
    """Two models on an evaluation and a calibration set."""
    sets = zip(two_models(n, seed), two_models(n, seed + 10_000), strict=True)
    first, second = (
        Evidence(rows, replace(known, name="calibration"), event=1) for rows, known in sets
    )
    return first, second


def test_differences_of_what_two_sets_move_are_paired_too() -> None:
    runs, inside, narrower = 100, np.zeros(2), np.zeros(2)
    (check,) = measure_checks(both_sets(100_000, 1)[0], ["KC011"]).checks
    (other,) = measure_checks(both_sets(100_000, 1)[1], ["KC011"]).checks
    parts = zip(check.parts, other.parts, strict=True)
    true = [b.estimate.value - a.estimate.value for a, b in parts]
    assert true == pytest.approx([0.0, 0.0], abs=0.01)
    for run in range(runs):
        found = [
            with_group_sums(measure_checks(one, ["KC011"]), one).checks[0].parts
            for one in both_sets(400, run)
        ]
        for at, (then, now) in enumerate(zip(*found, strict=True)):
            assert then.sums is not None
            assert now.sums is not None
            paired = difference(now.estimate, then.estimate, now.sums, then.sums)
            wide = unpaired_difference(now.estimate, then.estimate)
            inside[at] += paired.low <= 0.0 <= paired.high
            narrower[at] += (paired.high - paired.low) / (wide.high - wide.low)
    assert (inside / runs > 0.90).all(), inside / runs
    assert (narrower / runs < 0.75).all(), narrower / runs


def two_models(n: int, seed: int = 0) -> tuple[ScoredSet, ScoredSet]:
    """A calibrated model, and one that knows less and says too much."""
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, n))
    p, q = expit(1.2 * one + 0.5 * other), expit(1.5 * one)
    y = (rng.random(n) < p).astype(np.int64)
    first, second = (
        ScoredSet(np.column_stack([1.0 - x, x]), y, ("no", "yes"), "", "evaluation") for x in (p, q)
    )
    return first, second


def test_paired_intervals_are_as_wide_as_those_row_by_row() -> None:
    before, after = two_models(3000)
    groups = row_groups(before)
    assert groups is not None
    exact = {
        one.key: one.difference.difference
        for one in compare_versions(before, after, event=1, n_boot=50)
    }
    names = ("accuracy", "log_loss", "brier", "auc", "mmc_errors")
    at = (0, 11, 12, 20, 22)
    pair = [
        list(zip(all_estimates(one), all_influences(one), strict=True)) for one in (after, before)
    ]
    for key, place in zip(names, at, strict=True):
        (now, then) = (one[place] for one in pair)
        sums = [kept_sums(groups, *one) for one in (now, then)]
        found = difference_on_same_rows(now[0], then[0], *sums)
        assert found is not None
        ratio = (found.high - found.low) / (exact[key].high - exact[key].low)
        assert found.value == pytest.approx(exact[key].value, abs=1e-12)
        assert 0.8 < ratio < 1.2, (key, ratio)


def gap_of(rows: ScoredSet) -> Target:
    return targets(rows.proba, rows.y, rows.design, "class", 1)[0]


def test_paired_intervals_cover_the_true_difference() -> None:
    def measured(rows: ScoredSet) -> list[tuple[Estimate, Any]]:
        target = gap_of(rows)
        return [
            (log_loss(rows.proba, rows.y), log_losses(rows.proba, rows.y)),
            (target_gap(target, 0.95), gap_influence(target)),
            (auroc(rows.proba, rows.y), area_influence(rows)),
            (target_slope(target, 0.95), line_influence(target)[1]),
        ]

    true = [
        b[0].value - a[0].value for a, b in zip(*map(measured, two_models(300_000)), strict=True)
    ]
    runs, inside, narrower = 100, np.zeros(4), np.zeros(4)
    for run in range(runs):
        before, after = two_models(400, seed=run + 1)
        groups = row_groups(before)
        assert groups is not None
        for at, (then, now) in enumerate(zip(measured(before), measured(after), strict=True)):
            sums = [kept_sums(groups, *one) for one in (now, then)]
            found = difference(now[0], then[0], *sums)
            wide = unpaired_difference(now[0], then[0])
            inside[at] += found.low <= true[at] <= found.high
            narrower[at] += (found.high - found.low) / (wide.high - wide.low)
    assert (inside / runs > 0.90).all(), inside / runs
    assert (narrower / runs < 0.75).all(), narrower / runs


def test_a_magnitude_that_may_be_0_is_not_paired() -> None:
    calibrated, wrong = two_models(2000)
    groups = row_groups(calibrated)
    assert groups is not None
    for rows, kept in ((calibrated, False), (wrong, True)):
        ece, influence = all_estimates(rows)[2], all_influences(rows)[2]
        assert ece.label == "ECE"
        assert (ece.low > 0.0) == kept == (kept_sums(groups, ece, influence) is not None)


def test_a_model_differs_from_itself_by_nothing_and_other_rows_are_not_paired() -> None:
    one, _ = two_models(500)
    groups = row_groups(one)
    assert groups is not None
    area, influence = auroc(one.proba, one.y), area_influence(one)
    sums = groups.sums(influence)
    same = difference_on_same_rows(area, area, sums, sums)
    assert same is not None
    assert (same.low, same.value, same.high) == (0.0, 0.0, 0.0)
    rest = row_groups(one.only(np.arange(1, 500)))
    assert rest is not None
    assert difference(area, area, sums, rest.sums(influence[1:])) == unpaired_difference(area, area)
    without = replace(area, low=-np.inf, high=np.inf)
    found = difference_on_same_rows(without, area, sums, sums)
    assert found is not None
    assert (found.low, found.high) == (-np.inf, np.inf)


def directions(before: float, after: float, correlated: float) -> list[str]:
    """What 2,000 pairs of gaps are said to show, whose true values are these."""
    rng, error = np.random.default_rng(7), 0.01
    one, other = np.linalg.qr(rng.normal(size=(128, 2)))[0].T
    vectors = one, correlated * one + (1.0 - correlated**2) ** 0.5 * other
    sums = tuple(GroupSums("rows", error, v.astype(np.float16)) for v in vectors)
    both = error**2 * np.array([[1.0, correlated], [correlated, 1.0]])
    said = []
    for values in rng.multivariate_normal([before, after], both, 2000):
        then, now = (
            Estimate("Gap", "Gap", v, v - 1.96 * error, v + 1.96 * error, 9000, target=0.0)
            for v in values
        )
        said.append(changed_estimate(then, now, sums if correlated else (None, None)).direction)
    return said


@pytest.mark.parametrize("correlated", [0.0, 0.8])
@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.05, 0.05), (0.05, -0.05)])
def test_of_two_gaps_of_one_size_neither_is_better(
    before: float, after: float, correlated: float
) -> None:
    said = directions(before, after, correlated)
    wrong = np.mean([one in ("better", "worse") for one in said])
    assert wrong <= 0.065  # 5% in truth: more than 6.5% of 2,000 happens in 0.1% of such runs


@pytest.mark.parametrize("correlated", [0.0, 0.8])
@pytest.mark.parametrize(
    ("before", "after", "right"),
    [(0.1, -0.01, "better"), (-0.01, 0.1, "worse"), (0.03, 0.1, "worse"), (-0.1, -0.03, "better")],
)
def test_a_gap_that_comes_nearer_to_0_is_better_on_either_side(
    before: float, after: float, right: str, correlated: float
) -> None:
    assert np.mean([one == right for one in directions(before, after, correlated)]) > 0.99


def test_shares_that_differ_in_four_rows_are_not_too_certain() -> None:
    one, _ = two_models(1000)
    wrong = np.flatnonzero(one.proba.argmax(axis=1) != one.y)[:4]
    proba = one.proba.copy()
    proba[wrong] = proba[wrong, ::-1]
    other = replace(one, proba=proba)
    groups = row_groups(one)
    assert groups is not None
    now, then = ((all_estimates(rows)[0], all_influences(rows)[0]) for rows in (other, one))
    found = difference(now[0], then[0], *(kept_sums(groups, *each) for each in (now, then)))
    assert found.value == pytest.approx(0.004)
    assert found.low < 0.0
    assert found.high - found.value > 1.9 * 5**0.5 / 1000  # of four rows, and half a row twice


@pytest.mark.parametrize("least", [0.0, 1.0])
def test_shares_of_none_or_all_of_the_same_rows_are_paired(least: float) -> None:
    def share(hits: int) -> Estimate:
        return share_estimate("Share", "Share", abs(least - hits / 500), 500, 500)

    for before, after in ((0, 0), (0, 6), (6, 0)):
        changed = changed_estimate(share(before), share(after), same_rows=True)
        assert changed.paired
        assert "Newcombe, paired" in changed.difference.interval
        rows = changed_estimate(share(before), share(after))
        assert not rows.paired
        assert changed.difference.low == rows.difference.low  # phi is 0
        assert (changed.direction == "not told apart") == (before == after)
    assert not changed_estimate(share(5), share(6), same_rows=True).paired
    gap = replace(share(0), value=share(0).value - 0.9, low=share(0).low - 0.9, target=0.0)
    gap = replace(gap, high=share(0).high - 0.9)
    assert changed_estimate(gap, gap, same_rows=True).paired  # coverage minus the stated level


def test_the_interval_of_a_share_of_none_covers_the_difference() -> None:
    rng, n = np.random.default_rng(3), 300
    now, then, _ = rng.multinomial(n, [4 / n, 1 / n, 1 - 5 / n], size=1500).T
    held = []
    for after, before in zip(now, then, strict=True):
        if after and before:
            continue
        shares = (share_estimate("", "", one / n, n, n) for one in (after, before))
        found = difference_of_no_share(*shares)
        assert found is not None
        held.append(found.low <= 3 / n <= found.high)
    assert np.mean(held) > 0.94  # 97% in truth, of some 550 runs


def two_forecasts(n: int = 3000) -> tuple[RegressionSet, RegressionSet]:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n))
    y = x + 0.5 * z + rng.normal(size=n)
    before, after = (
        RegressionSet(Normal(mean, spread), y, "", "evaluation")
        for mean, spread in ((x + 0.05, 1.0), (x + 0.3 * z - 0.1, 0.85))
    )
    return before, after


def test_forecasts_are_paired_as_row_by_row() -> None:
    pair = two_forecasts()
    groups = row_groups(pair[0])
    assert groups is not None
    exact = {one.label: one.difference for one in compare_forecasts(*pair, scale=1.0)[0]}
    found = []
    for rows in pair:
        pit = randomised_pit(rows.distribution, rows.y, 0)
        scores = regression_scores(rows.distribution, rows.y, scale=1.0, pit=pit).rows
        known = distribution_influences(rows, scale=1.0, pit=pit)
        assert set(scores) == set(known)
        found.append(
            {key: (one, kept_sums(groups, one, known[key])) for key, one in scores.items()}
        )
    for key in ("crps", "log_score", "mse", "smis95", "coverage95"):
        then, now = (one[key] for one in found)
        paired = difference_on_same_rows(now[0], then[0], now[1], then[1])
        assert paired is not None
        row_by_row = exact[now[0].label]
        ratio = (paired.high - paired.low) / (row_by_row.high - row_by_row.low)
        assert 0.8 < ratio < 1.2, (key, ratio)
    for key in ("qce", "wasserstein"):
        assert correlation(found[0][key][1], found[1][key][1]) is not None


def test_influence_on_distances_of_pit_values_is_that_of_the_distances() -> None:
    _, rows = two_forecasts()
    groups = row_groups(rows)
    assert groups is not None

    def scores_of(some: RegressionSet) -> dict[str, Estimate]:
        return dict(regression_scores(some.distribution, some.y, scale=1.0).rows)

    pit = randomised_pit(rows.distribution, rows.y, 0)
    known, whole = distribution_influences(rows, scale=1.0, pit=pit), scores_of(rows)
    left_out = np.arange(0, 128, 8)
    with without_intervals():
        moved = [
            scores_of(rows.only(np.flatnonzero(groups.groups.unit != one))) for one in left_out
        ]
    for key in ("qce", "wasserstein", "rmse"):
        sums = groups.sums(known[key])
        assert sums is not None
        change = whole[key].value - np.array([one[key].value for one in moved])
        said = sums.sums[left_out].astype(np.float64)
        assert change @ said / (said @ said) == pytest.approx(sums.error, rel=0.1), key


def test_every_check_that_has_influence_has_it_for_each_part() -> None:
    rows = drawn(600, 3)
    sets = {
        "classification": Evidence(rows, groups=lambda: _columns(600)),
        "regression": Evidence(two_forecasts(600)[1], groups=lambda: _columns(600)),
    }
    paired = set()
    for task, evidence in sets.items():
        codes = [
            one.code for one in CHECKS.values() if task in one.tasks and one.influence is not None
        ]
        for one in with_group_sums(measure_checks(evidence, codes), evidence).checks:
            paired |= {one.code for part in one.parts if part.sums is not None}
            for part in one.parts:
                if part.sums is not None and one.code in ("KC002", "KC006", "KC008", "KC025"):
                    half = part.estimate.high - part.estimate.value
                    assert half / 1.96 == pytest.approx(part.sums.error, rel=0.35)
    assert {"KC002", "KC003", "KC004", "KC005", "KC006", "KC008", "KC101", "KC102"} <= paired
    assert {"KC022", "KC023", "KC025", "KC121"} <= paired


def _columns(n: int) -> pd.DataFrame:
    return pd.DataFrame({"region": np.where(np.arange(n) % 3, "north", "south")})
