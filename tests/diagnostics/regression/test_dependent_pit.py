"""Regressions whose rows depend on one another: every measure beside that of independent rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom
from sklearn.base import clone

from kdcal_core.diagnostics import (
    coverage,
    ecdf_difference,
    fault,
    find_pit_regions,
    local_pit,
    pit_by_column,
    pit_histogram,
    quantile_calibration_error,
    quantile_reliability,
    standardised_bias,
    uniformity_tests,
    wasserstein,
)
from kdcal_core.diagnostics.regression.dependent_pit import gap_draws
from kdcal_core.diagnostics.regression.fault import smooth_of_units, smooth_parts
from kdcal_core.diagnostics.regression.pit_curves import share_below
from kdcal_core.diagnostics.regression.uniformity import (
    anderson_darling_of,
    kolmogorov_smirnov_of,
)
from kdcal_core.diagnostics.regression.uniformity import (
    tests_of_draws as p_values_of_draws,
)
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.evaluation import Space, judge_recalibrators, regression_scores
from kdcal_core.evaluation.versions import compare_forecasts
from kdcal_core.regression import IsotonicRecalibration, LocalRecalibration, WhereNeeded
from kdcal_core.regression.choice_of_neighbours import cross_fitted, select_neighbours
from kdcal_core.regression.local_test import Neighbourhoods
from kdcal_core.regression.recalibrators import fit_together
from kdcal_core.statistics import (
    Dependence,
    RowDesign,
    clopper_pearson,
    effective_size,
    of_rows,
)


def made(n_clusters: int, size: int, shared: float, seed: int = 0) -> RegressionSet:
    """Rows of a right model whose outcomes, and predictions, are alike in clusters."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n_clusters), size)
    mean, error = (
        shared**0.5 * rng.normal(size=n_clusters)[unit]
        + (1.0 - shared) ** 0.5 * rng.normal(size=len(unit))
        for _ in range(2)
    )
    together = Dependence.of("cluster", unit, "ward")
    return RegressionSet(Normal(mean, 1.0), mean + error, "", "evaluation", dependence=together)


def everything(rows: RegressionSet) -> dict[str, np.ndarray]:
    """The numbers of every measure that does not search."""
    pit, design = rows.distribution.cdf(rows.y), rows.design
    estimates = [
        *regression_scores(
            rows.distribution, rows.y, scale=1.0, pit=pit, weight=design
        ).rows.values(),
        wasserstein(pit, sample_weight=design),
        quantile_calibration_error(pit, sample_weight=design),
        standardised_bias(rows.distribution.mean(), rows.y, weight=design),
    ]
    found = fault(pit, sample_weight=design)
    column = rows.distribution.mean() > 0.0
    by_column = pit_by_column(
        pit, column, distribution=rows.distribution, y=rows.y, sample_weight=design
    )
    held = [one.coverage for one in coverage(rows.distribution, rows.y, weight=design).rows]
    every = [*estimates, *held, found.bias, found.spread]
    every += [region.coverage.coverage for region in by_column]
    tests = uniformity_tests(pit, sample_weight=design)
    return {
        "estimates": np.array([(one.value, one.low, one.high) for one in every]),
        "p values": np.array([one.p_value for one in (*tests, found, *by_column)]),
        "histogram": pit_histogram(pit, sample_weight=design).table().to_numpy(),
        "ecdf": ecdf_difference(pit, sample_weight=design).table().to_numpy(),
        "quantiles": quantile_reliability(pit, (0.1, 0.5), sample_weight=design).table().to_numpy(),
    }


def test_clusters_of_one_row_give_the_bytes_of_rows():
    rows = made(300, 1, 0.0)
    assert rows.dependence.alone
    alone = replace(rows, dependence=None)
    both = [everything(one) for one in (alone, rows)]
    assert all(both[0][key].tobytes() == both[1][key].tobytes() for key in both[0])
    space = Space("x", rows.distribution.mean()[:, None], None)
    found = [
        repr(
            [
                replace(one, fit_seconds=0.0, predict_seconds=0.0)
                for one in judge_recalibrators(["isotonic"], each, None, space).methods
            ]
        )
        for each in (alone, rows)
    ]
    assert found[0] == found[1]
    # below the door too, where nothing says that the clusters are single rows
    pit, x = rows.distribution.cdf(rows.y), space.calibration
    design = RowDesign(None, rows.dependence)
    assert uniformity_tests(pit) == uniformity_tests(pit, sample_weight=design)
    table = pd.DataFrame(x, columns=["x"])
    regions = [
        repr(find_pit_regions(pit, table, sample_weight=one).regions) for one in (None, design)
    ]
    assert regions[0] == regions[1]
    places = [
        local_pit(pit, x, np.c_[x, x], 60, centres=9, draws=99, dependence=one).table()
        for one in (None, rows.dependence)
    ]
    assert places[0].equals(places[1])


def test_order_and_names_of_clusters_change_nothing():
    rows = made(20, 6, 0.4)
    order = np.random.default_rng(1).permutation(rows.n_rows)
    names = np.array([f"ward {(7 * one) % 25}" for one in rows.dependence.unit])
    other = replace(
        rows.only(order), dependence=Dependence.of("cluster", names[order].tolist(), "ward")
    )
    ours, theirs = everything(rows), everything(other)
    for key, value in ours.items():
        assert theirs[key] == pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True), key


def test_rows_repeated_in_their_cluster_say_nothing_new():
    rows = made(60, 5, 0.6)
    twice = np.repeat(np.arange(rows.n_rows), 2)
    once, again = everything(rows), everything(rows.only(twice))
    assert again["estimates"] == pytest.approx(once["estimates"], abs=0.01)
    assert again["p values"][:4] == pytest.approx(once["p values"][:4], abs=1e-6)
    # as rows alone they would say twice as much
    alone = everything(replace(rows.only(twice), dependence=None))
    width, narrow = (one["estimates"][0, 2] - one["estimates"][0, 1] for one in (once, alone))
    assert narrow < 0.8 * width


def test_repeated_clusters_say_more_by_the_root_of_their_number():
    rows = made(40, 5, 0.3)
    four = rows.only(np.tile(np.arange(rows.n_rows), 4))
    names = np.arange(four.n_rows) // 5
    four = replace(four, dependence=Dependence.of("cluster", names))
    one, more = (everything(each)["estimates"] for each in (rows, four))
    assert more[:3, 0] == pytest.approx(one[:3, 0])
    width = [each[:3, 2] - each[:3, 1] for each in (one, more)]
    assert width[1] == pytest.approx(width[0] / 2.0, rel=0.05)


@pytest.mark.parametrize("kind", ["cluster", "time"])
def test_drawn_functions_have_the_covariance_of_all_pairs(kind: str):
    rng = np.random.default_rng(0)
    together = Dependence.of(kind, rng.integers(0, 12, 60))
    pit, weight, at = rng.random(60), rng.random(60), np.array([0.2, 0.5, 0.9])
    weight /= weight.sum()
    drawn = gap_draws(pit, weight, at, together, draws=40_000, seed=0)
    parts = weight * ((pit <= at[:, None]) - at[:, None])
    apart = np.abs(together.unit[:, None] - together.unit)
    near = np.maximum(1.0 - apart / (together.lags + 1.0), 0.0)
    true = parts @ near @ parts.T
    assert np.cov(drawn.T) == pytest.approx(true, abs=0.03 * np.abs(true).max())


def test_alike_numbers_have_the_covariance_of_all_pairs():
    for kind in ("cluster", "time"):
        together = Dependence.of(kind, np.random.default_rng(0).integers(0, 9, 20))
        drawn = together.alike(np.random.default_rng(1), 20_000)
        apart = np.abs(together.unit[:, None] - together.unit)
        near = np.maximum(1.0 - apart / (together.lags + 1.0), 0.0)
        assert np.cov(drawn) == pytest.approx(near, abs=0.04)


@cache
def missed() -> dict[str, dict[str, float]]:
    """How often right models are called wrong, with and without their clusters."""
    runs, counts = 20, {"alone": {}, "clusters": {}}
    for run in range(runs):
        rows = made(25, 8, 0.5, seed=100 + run)
        for name, one in (("alone", replace(rows, dependence=None)), ("clusters", rows)):
            pit, design = one.distribution.cdf(one.y), one.design
            band = ecdf_difference(pit, sample_weight=design).outside.any()
            bars = pit_histogram(pit, 10, sample_weight=design).outside.any()
            error = standardised_bias(one.distribution.mean(), one.y, weight=design)
            share = coverage(one.distribution, one.y, (0.5,), weight=design).rows[0].coverage
            wrong = {
                "test": uniformity_tests(pit, sample_weight=design)[2].p_value < 0.05,
                "fault": fault(pit, sample_weight=design).kind != "none",
                "band": band,
                "bars": bars,
                "bias": not error.low <= 0.0 <= error.high,
                "coverage": not share.low <= 0.5 <= share.high,
            }
            for key, value in wrong.items():
                counts[name][key] = counts[name].get(key, 0.0) + value / runs
    return counts


@pytest.mark.parametrize("key", ["test", "fault", "band", "bars", "bias", "coverage"])
def test_clusters_hold_the_level_that_rows_alone_miss(key: str):
    found = missed()
    assert found["clusters"][key] <= 0.2  # 0.05 and three standard errors
    assert found["alone"][key] > found["clusters"][key]


def test_tests_and_intervals_of_clusters_hold_their_level():
    # 2,000 runs and more designs: tests/benchmarks/RESULTS_dependence.md
    runs, at, wrong = 300, np.arange(1, 64) / 64.0, Counter[str]()
    found = kolmogorov_smirnov_of(0.0, 1.0, 600), anderson_darling_of(0.0, 0, 600)
    for seed in range(runs):
        rows = made(60, 10, 0.5, seed=seed)
        pit, design, stated = (
            ndtr(rows.y - rows.distribution.mean()),
            rows.design,
            rows.distribution,
        )
        weight = np.full(rows.n_rows, 1.0 / rows.n_rows)
        gap = share_below(pit, weight, at) - at
        drawn = gap_draws(pit, weight, at, rows.dependence, draws=1_000, seed=0)
        tests = p_values_of_draws(found, gap, drawn, at, "clusters", 0)
        smooth, _ = smooth_of_units(weight * smooth_parts(pit), rows.dependence)
        p_values = {**{one.name: one.p_value for one in tests}, "smooth": smooth}
        bias = standardised_bias(stated.mean(), rows.y, weight=design)
        held = coverage(stated, rows.y, (0.5, 0.8, 0.95), weight=design).rows
        wrong.update(name for name, p in p_values.items() if p < 0.05)
        wrong.update(["bias"] * (not bias.low <= 0.0 <= bias.high))
        wrong.update(
            f"{one.level:.0%}"
            for one in held
            if not one.coverage.low <= one.level <= one.coverage.high
        )
    least, most = binom.interval(0.999, runs, 0.05)
    assert len(wrong) == 7
    assert all(least <= count <= most for count in wrong.values()), wrong


def test_few_misses_of_clusters_do_not_show_too_wide_intervals():
    y = np.zeros(400)
    y[:2] = 3.0
    twenty = RowDesign(None, Dependence.of("cluster", np.arange(400) // 20))
    alone, together = (
        coverage(Normal(np.zeros(400), 1.0), y, (0.95,), weight=one).rows[0].coverage
        for one in (None, twenty)
    )
    assert together.low < 0.95 < alone.low
    # where fewer are inside than stated, they vary around what is seen
    away = (np.arange(400) % 5 > 0) - 0.8
    found = coverage(Normal(np.zeros(400), 1.0), 9.0 * (away < 0.0), (0.95,), weight=twenty).rows[0]
    rows = effective_size(away, np.ones(400), twenty.dependence)
    assert found.coverage.high == pytest.approx(clopper_pearson(0.8, rows, 0.95)[1])


def test_local_test_of_clusters_holds_its_level():
    runs, wrong = 20, {"alone": 0.0, "clusters": 0.0}
    for run in range(runs):
        rows = made(50, 8, 0.6, seed=run)
        pit, x = ndtr(rows.y - rows.distribution.mean()), rows.distribution.mean()[:, None]
        for name, together in (("alone", None), ("clusters", rows.dependence)):
            near = Neighbourhoods.of(x, centres=15, draws=99, dependence=together)
            wrong[name] += near.test(pit).needed.any() / runs
    assert wrong["clusters"] <= 0.1 < wrong["alone"]


def test_recalibrators_are_judged_by_whole_clusters():
    rows = made(60, 1, 0.0)
    four = np.repeat(np.arange(60), 4)
    moved = replace(rows, y=rows.y + 0.6)
    space = moved.distribution.mean()[:, None]
    once = judge_recalibrators(["isotonic"], moved, None, Space("x", space, None))
    more = moved.only(four)
    alike = replace(more, dependence=Dependence.of("cluster", four))
    found = {
        name: judge_recalibrators(["isotonic"], one, None, Space("x", space[four], None))
        for name, one in (("rows", replace(more, dependence=None)), ("clusters", alike))
    }
    gains = {
        name: one.methods[1].differences["crps"] for name, one in {**found, "once": once}.items()
    }
    width = {name: one.high - one.low for name, one in gains.items()}
    assert width["clusters"] > 1.5 * width["rows"]
    assert width["clusters"] == pytest.approx(width["once"], rel=0.35)
    versions = replace(alike, distribution=Normal(alike.distribution.mean() + 0.3, 1.0))
    paired = compare_forecasts(alike, versions, scale=1.0)[0][0].difference
    alone = compare_forecasts(
        replace(alike, dependence=None), replace(versions, dependence=None), scale=1.0
    )[0][0].difference
    assert paired.high - paired.low == pytest.approx(2.0 * (alone.high - alone.low), rel=0.1)


def test_neighbours_come_from_other_clusters():
    # the nearest neighbours of a row are the other rows of its cluster, which share its error
    rows = made(60, 8, 0.9, seed=3)
    place = np.repeat(np.random.default_rng(0).permutation(60), 8)[:, None]
    given = rows.distribution, rows.y, {"x": place}, [7, 100]
    alone, grouped = (select_neighbours(*given, dependence=one) for one in (None, rows.dependence))
    assert alone.best_k == 7
    assert grouped.best_k == 100
    assert grouped.crps[0, 0] > 1.2 * alone.crps[0, 0]
    cross = [
        cross_fitted(partial(LocalRecalibration, k=7), *given[:2], place, dependence=one).crps(
            rows.y
        )
        for one in (None, rows.dependence)
    ]
    assert cross[1].mean() > 1.2 * cross[0].mean()


def test_recalibration_where_needed_knows_clusters():
    rows = made(12, 40, 0.9, seed=1)
    x, fit = rows.distribution.mean()[:, None], WhereNeeded(IsotonicRecalibration(), draws=99)
    alone, grouped = (
        fit_together(clone(fit), rows.distribution, rows.y, x, one).test_.needed.mean()
        for one in (None, rows.dependence)
    )
    assert alone > 0.3
    assert grouped == 0.0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_few_clusters_and_times_keep_every_interval_in_order():
    rows = made(4, 9, 0.5)
    days = replace(rows, dependence=Dependence.of("time", np.arange(36) // 3))
    sure = replace(rows, distribution=Normal(rows.distribution.mean(), 1e3))
    first = rows.dependence.unit == 0
    for one in (rows, days, sure, rows.only(np.flatnonzero(first)), days.only(np.arange(3))):
        found = everything(one)
        value, low, high = found["estimates"].T
        assert (((low <= value) & (value <= high)) | np.isnan(low)).all()
        assert ((found["p values"] >= 0.0) & (found["p values"] <= 1.0)).all()


def test_design_of_some_rows():
    together = Dependence.of("cluster", [5, 5, 6])
    part = of_rows(RowDesign([1.0, 2.0, 3.0], together), np.array([False, True, True]))
    assert part.weight.tolist() == [2.0, 3.0]
    assert part.dependence.unit.tolist() == [0, 1]


def test_a_month_of_days_shows_a_fault_that_is_large():
    day = np.repeat(np.arange(31), 15)
    moved = 0.6 + 0.4 * np.random.default_rng(0).random(len(day))
    days = Dependence.of("time", day)
    assert fault(moved, sample_weight=RowDesign(np.ones(len(day)), days)).kind == "too low"
    found = fault((moved - 0.6) / 0.4, sample_weight=RowDesign(np.ones(len(day)), days))
    assert found.kind == "none"
