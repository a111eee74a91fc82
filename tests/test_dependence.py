"""Rows that depend on one another: variances, tests, draws and folds, and a review that names them.

Sums that are computed fast are compared with slow ones, and the level of intervals and tests is
simulated beside that of independent rows.
"""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_reviews import review_of, scored, too_sure
from scipy.special import expit, ndtr
from scipy.stats import t as student

from kdcal_core.checks import Evidence, measure_checks
from kdcal_core.data import Roles, ScoredSet, row_dependence, stratified_folds, two_parts
from kdcal_core.diagnostics import event_gap, log_loss, measure_groups, reliability
from kdcal_core.diagnostics.all_estimates import all_estimates, question_estimates
from kdcal_core.diagnostics.calibration_line import target_slope
from kdcal_core.diagnostics.calibration_test import target_test
from kdcal_core.diagnostics.targets import targets
from kdcal_core.errors import InputError
from kdcal_core.evaluation import compare
from kdcal_core.evaluation.spread import of_means
from kdcal_core.review import (
    ReviewData,
    ReviewReader,
    Workspace,
    add_table,
    dependence_words,
    score,
    set_roles,
)
from kdcal_core.statistics import (
    Dependence,
    bin_dependence,
    independent_rows,
    lags_for,
    mean_interval,
)
from kdcal_core.tasks import Sets, equal_sets


def _pairs(dependence: Dependence) -> np.ndarray:
    """Weight of every pair of rows in a variance, (n, n), by its definition."""
    apart = np.abs(dependence.unit[:, None] - dependence.unit)
    return np.maximum(1.0 - apart / (dependence.lags + 1.0), 0.0)


@pytest.fixture(params=["cluster", "time"])
def dependence(request) -> Dependence:
    return Dependence.of(request.param, np.random.default_rng(3).integers(0, 30, 80))


def test_totals_multiply_all_pairs_of_dependent_rows(dependence: Dependence):
    parts = np.random.default_rng(0).normal(size=(3, 80))
    some = dependence.only(np.arange(80) % 3 > 0)
    for one, mine in ((dependence, parts), (some, parts[:, np.arange(80) % 3 > 0])):
        totals = one.totals(mine)
        assert totals @ totals.T == pytest.approx(mine @ _pairs(one) @ mine.T)
    more = dependence.and_alone(2)
    assert np.array_equal(_pairs(more)[80:, 80:], np.eye(2))
    assert not _pairs(more)[80:, :80].any()


def test_interval_in_time_is_that_of_diebold_and_mariano():
    losses, n = np.random.default_rng(1).normal(0.2, size=90).cumsum() / 9.0, 90
    lags = lags_for(n)
    away = losses - losses.mean()
    covariances = [away[k:] @ away[: n - k] / n for k in range(lags + 1)]
    weights = 1.0 - np.arange(lags + 1) / (lags + 1)
    newey_west = 2.0 * (weights @ covariances) - covariances[0]
    h = lags + 1
    corrected = (n + 1 - 2 * h + h * (h - 1) / n) / n  # Harvey, Leybourne and Newbold, Eq. 9
    half = student.ppf(0.975, n - 1) * (newey_west / n / corrected) ** 0.5
    order = np.random.default_rng(2).permutation(n)
    in_time = Dependence.of("time", order)
    found = mean_interval(losses[order], np.ones(n), 0.95, dependence=in_time)
    assert found == pytest.approx((losses.mean(), losses.mean() - half, losses.mean() + half))
    spread = of_means(np.stack([losses[order], np.zeros(n)]), np.ones(n), dependence=in_time)
    assert spread.covariance[0, 0, 0, 0] == pytest.approx(newey_west / n / corrected)


@pytest.mark.parametrize(("shared", "plain"), [(0.0, 0.055), (0.6, 0.30)])
def test_level_of_the_test_under_autocorrelated_losses(shared: float, plain: float):
    runs, n = 1500, 200
    noise = np.random.default_rng(0).normal(size=(n + 50, runs))
    for at in range(1, n + 50):
        noise[at] += shared * noise[at - 1]
    in_time = Dependence.of("time", np.arange(n))
    ends = {
        name: [
            mean_interval(one, np.ones(n), 0.95, student=True, dependence=of)
            for one in noise[50:].T
        ]
        for name, of in (("plain", None), ("in time", in_time))
    }
    level = {name: np.mean([low > 0 or high < 0 for _, low, high in ends[name]]) for name in ends}
    assert level["in time"] < 0.085
    assert level["plain"] == pytest.approx(plain, abs=0.04)


def _clustered(rng: np.random.Generator, n_clusters: int = 60) -> ScoredSet:
    """A calibrated model's rows; outcomes of a cluster are alike, and so are its probabilities."""
    unit = np.repeat(np.arange(n_clusters), rng.geometric(0.1, n_clusters))
    each = rng.normal(size=(2, n_clusters))[:, unit]
    p = expit(each[0] + rng.normal(size=len(unit)))
    hit = ndtr(0.5 * each[1] + 0.75**0.5 * rng.normal(size=len(unit))) < p
    proba = np.stack([1.0 - p, p], axis=1)
    known = Dependence.of("cluster", unit, "ward")
    return ScoredSet(proba, hit.astype(int), ("no", "yes"), "", "calibration", dependence=known)


def test_intervals_and_tests_of_clusters_hold_their_level():
    rng, runs = np.random.default_rng(0), 60
    missed = {"alone": np.zeros(3), "clusters": np.zeros(3)}
    for _ in range(runs):
        rows = _clustered(rng)
        for name, one in (("alone", replace(rows, dependence=None)), ("clusters", rows)):
            (target,) = targets(one.proba, one.y, one.design, "class", 1)
            gap, slope = event_gap(target, 0.95), target_slope(target, 0.95)
            missed[name] += [
                not gap.low <= 0.0 <= gap.high,
                not slope.low <= 1.0 <= slope.high,
                target_test(target) < 0.05,
            ]
    assert (missed["clusters"] / runs < 0.135).all(), missed  # 0.05 and three standard errors
    assert (missed["alone"] / runs)[[0, 2]].min() > 0.15, missed


def test_bins_vary_together_as_the_clusters_make_them():
    rng = np.random.default_rng(0)
    rows = _clustered(rng, 400)
    unit, bins = rows.dependence.unit, (rows.proba[:, 1] * 4).astype(int)
    weight, n = rng.uniform(0.5, 2.0, len(unit)), len(unit)
    noise = 0.6 * rng.normal(size=400)[unit] + 0.8 * rng.normal(size=n)
    own = [np.average(noise[bins == one], weights=weight[bins == one]) for one in range(4)]
    found = bin_dependence(noise - np.array(own)[bins], weight, bins, 4, rows.dependence)
    mean = np.stack([weight * (bins == one) / weight[bins == one].sum() for one in range(4)])
    true = 0.64 * mean @ mean.T + 0.36 * mean @ (unit[:, None] == unit) @ mean.T
    independent = np.diag(np.square(mean).sum(axis=1))
    seen = independent * found.alone**2 + found.root @ found.root
    assert seen == pytest.approx(true, rel=0.2, abs=0.05 * true.max())
    assert found.effect == pytest.approx(np.diag(seen) / np.diag(independent))
    drawn = found.scattered(
        rng.normal(size=(20_000, 4)) * np.diag(independent) ** 0.5, np.ones(4), rng
    )
    assert np.cov(drawn.T) == pytest.approx(seen, abs=0.03 * seen.max())


def test_clusters_of_one_row_give_the_bytes_of_rows():
    rows = _clustered(np.random.default_rng(0), 30)
    single = Dependence.of("cluster", np.random.default_rng(1).permutation(rows.n_rows))
    assert single.alone
    alone, named = replace(rows, dependence=None), replace(rows, dependence=single)
    found = [
        repr(
            (
                all_estimates(one),
                question_estimates(one, one, 1),
                reliability(one.proba, one.y, sample_weight=one.design).curves[0].table(),
                measure_groups(one, [(one.y * 0, ["all"])], event=1),
                compare(["sts"], ReviewData(one, None, one.classes, {}), n_boot=100).table(),
            )
        )
        for one in (alone, named)
    ]
    # times of fits alone differ between runs
    assert found[0].partition("fit_seconds")[0] == found[1].partition("fit_seconds")[0]
    # below the door too, where nothing says that the clusters are single rows
    values, weight = np.random.default_rng(2).normal(size=(2, rows.n_rows)) ** 2
    spreads = [of_means(values[None, :], weight, dependence=one) for one in (None, single)]
    assert spreads[0].covariance.tobytes() == spreads[1].covariance.tobytes()
    folds = [stratified_folds(rows.y, 5, 1, one) for one in (None, single)]
    draws = [
        independent_rows(rows.n_rows, 9, 50, np.random.default_rng(0), one)
        for one in (None, single)
    ]
    assert np.array_equal(*folds)
    assert np.array_equal(draws[0].times, draws[1].times)
    assert np.array_equal(draws[0].group, draws[1].group)


def test_draws_and_folds_keep_dependent_rows_together(dependence: Dependence):
    drawn = independent_rows(80, 200, 12, np.random.default_rng(0), dependence)
    groups = {
        unit: np.unique(drawn.group[dependence.unit == unit]) for unit in range(dependence.n_units)
    }
    assert all(len(one) == 1 for one in groups.values())
    assert (drawn.times.sum(axis=1) == 12).all()
    if dependence.kind == "time":  # blocks: neighbouring groups are drawn together
        both = np.corrcoef(drawn.times.T)
        assert both[0, 1] > 0.3 > 0.0 > both[0, 6]
    y = (np.arange(80) % 2).astype(np.int64)
    fold = stratified_folds(y, 4, 0, dependence)
    assert all(len(set(fold[dependence.unit == one])) == 1 for one in range(dependence.n_units))
    assert np.bincount(fold).min() > 10
    first, second = two_parts(80, 40, 0, dependence)
    assert not set(dependence.unit[first]) & set(dependence.unit[second])
    assert 30 <= len(first) <= 40
    large = Dependence.of(dependence.kind, np.repeat([0, 1, 2], [60, 15, 5]))
    for seed in range(4):
        first, second = two_parts(80, 40, seed, large)
        assert len(first) in ((20,) if large.kind == "cluster" else (60,))
        assert len(first) + len(second) == 80
    n = dependence.n_units
    with pytest.raises(InputError, match=f"{n} {dependence.kind}s cannot be divided into 50 folds"):
        stratified_folds(y, 50, 0, dependence)


@pytest.mark.parametrize(
    ("roles", "values", "error"),
    [
        (Roles(cluster="u"), ["a", None], "The cluster is missing"),
        (Roles(time="u"), ["2026-01-01", "soon"], "no number and no date"),
        (Roles(cluster="u"), ["a", "a"], "All rows are of one cluster"),
    ],
)
def test_a_column_that_says_nothing_is_refused(roles: Roles, values: list[object], error: str):
    with pytest.raises(InputError, match=error):
        row_dependence(pd.DataFrame({"u": values}), roles)


def test_times_are_numbers_or_dates():
    for values in (["10", "9"], [10.0, 9.0], ["2026-03-31", "2026-03-30T09:00"]):
        found = row_dependence(pd.DataFrame({"u": values}), Roles(time="u"))
        assert found.unit.tolist() == [1, 0]


@pytest.mark.usefixtures("work_here")
def test_a_review_whose_rows_have_clusters(tmp_path):
    workspace = Workspace(tmp_path)
    table = too_sure(300, 0)
    twice = pd.concat([table, table], ignore_index=True).assign(ward=np.tile(np.arange(300), 2))
    review_id = review_of(workspace, calibration=twice)
    once = review_of(workspace, calibration=table.assign(ward=np.arange(300)))
    roles = workspace.read(review_id).roles
    assert roles.cluster is None
    features = tuple(name for name in roles.features if name != "ward")
    found = {}
    for one in (review_id, once):
        set_roles(workspace, one, replace(roles, cluster="ward", features=features))
        score(workspace, one)
        rows = ReviewReader(workspace, one).scored("calibration")
        assert rows.dependence.column == "ward"
        found[one] = log_loss(rows.proba, rows.y, sample_weight=rows.design)
        checks = measure_checks(Evidence(rows, event=1), ["KC002"]).checks
        assert checks[0].parts[0].estimate.n == rows.n_rows
    # rows that occur twice in their cluster say nothing more than once
    width = {one: found[one].high - found[one].low for one in found}
    assert width[review_id] == pytest.approx(width[once], rel=0.01)
    more = table.assign(ward=np.arange(300) + 290)
    content = io.BytesIO(more.to_csv(index=False).encode())
    add_table(workspace, review_id, "evaluation", content, "more.csv")
    score(workspace, review_id)
    notes = [one.sentence for one in equal_sets(Sets(ReviewReader(workspace, review_id))).notes]
    assert notes[-1].startswith("10 of 300 clusters of the evaluation set (column 'ward') are in")
    words = dependence_words(workspace.read(review_id))
    assert words == (
        "Rows of one ward are kept together in folds and intervals: 300 clusters (calibration) "
        "and 300 clusters (evaluation)."
    )
    assert dependence_words(workspace.read(once)) == ""
    set_roles(workspace, once, replace(roles, features=(), cluster="ward", time="feature"))
    with pytest.raises(InputError, match="Two columns say how rows depend"):
        score(workspace, once)


def test_comparison_of_dependent_methods_takes_whole_clusters():
    fit, alone = scored(300, 1, sharp=2.0), scored(200, name="evaluation", sharp=2.0)
    fourfold = np.repeat(np.arange(200), 4)
    rows = replace(alone, proba=alone.proba[fourfold], y=alone.y[fourfold])
    clusters = replace(rows, dependence=Dependence.of("cluster", fourfold))
    found = {
        name: compare(["sts"], ReviewData(fit, one, one.classes, {}), n_boot=200)
        for name, one in (("rows", rows), ("clusters", clusters), ("once", alone))
    }
    for key in ("log_loss", "auc", "ece"):
        width = {
            name: one.paired[key, "model"][1].difference.high
            - one.paired[key, "model"][1].difference.low
            for name, one in found.items()
        }
        assert width["clusters"] > 1.5 * width["rows"], (key, width)
        assert width["clusters"] == pytest.approx(width["once"], rel=0.15), (key, width)


@pytest.mark.parametrize("kind", ["top-label", "class", "confidence"])
def test_thin_and_empty_bins_of_few_clusters_keep_their_limits(kind: str):
    rows = _clustered(np.random.default_rng(4), 4)
    never = replace(rows, proba=np.stack([np.full(rows.n_rows, 0.1), np.full(rows.n_rows, 0.9)], 1))
    for one in (rows, never, rows.only(rows.dependence.unit == 0)):
        for curve in reliability(one.proba, one.y, kind=kind, sample_weight=one.design).curves:
            some = curve.count > 0
            assert (curve.low <= curve.accuracy)[some].all()
            assert (curve.accuracy <= curve.high)[some].all()
            assert (curve.band_low <= curve.band_high)[some].all()
            assert np.isfinite(curve.smooth_low).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_few_or_single_clusters_and_times_keep_every_interval_in_order():
    rows = _clustered(np.random.default_rng(4), 4)
    days = replace(rows, dependence=Dependence.of("time", np.arange(rows.n_rows) // 9))
    for one in (rows, rows.only(rows.dependence.unit == 0), days.only(days.y == 1)):
        assert one.n_rows > 20
        for found in (*all_estimates(one), *question_estimates(one, None, 1)):
            ordered = found.low <= found.value <= found.high
            assert ordered or np.isnan(found.low), found


@pytest.mark.usefixtures("work_here")
@pytest.mark.parametrize("role", ["cluster", "time"])
def test_a_regression_review_whose_rows_have_clusters_or_times(tmp_path, role: str):
    workspace = Workspace(tmp_path)
    x, noise = np.random.default_rng(0).normal(size=(2, 150))
    each = pd.DataFrame({"mu": x, "y": x + noise, "day": np.arange(150)})
    review_id = review_of(workspace, calibration=pd.concat([each, each], ignore_index=True))
    roles = Roles(
        target="y", task="regression", family="point", parameters=(("mean", "mu"),), **{role: "day"}
    )
    set_roles(workspace, review_id, roles)
    score(workspace, review_id)
    review = workspace.read(review_id)
    assert review.sets["calibration"].units == 150
    assert "150 " + ("clusters" if role == "cluster" else "times") in dependence_words(review)
    rows = ReviewReader(workspace, review_id).distributions("calibration")
    assert (rows.dependence.kind, rows.dependence.column) == (role, "day")
    assert rows.only(np.arange(3)).dependence.unit.tolist() == [0, 1, 2]
    # no row's spread comes from the other row of its cluster
    spread = rows.distribution.std()
    assert np.array_equal(spread[:150], spread[150:])
    checks = measure_checks(Evidence(rows), ["KC021", "KC022", "KC023"]).checks
    alone = measure_checks(
        Evidence(replace(rows, dependence=None)), ["KC021", "KC022", "KC023"]
    ).checks
    for one, other in zip(checks, alone, strict=True):
        wide, narrow = (
            part.parts[0].estimate.high - part.parts[0].estimate.low for part in (one, other)
        )
        assert wide > 1.1 * narrow
