"""Rows of one cluster count together in a summary, as they do in a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from kdcal_core import diagnostics as of_rows
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import decision_rates, net_benefit
from kdcal_core.diagnostics.summaries import (
    ClassTally,
    class_groups,
    judged_rows,
    n_clusters,
    summarise,
    summarise_regression,
    summary_auroc,
    summary_bias,
    summary_calibration_error,
    summary_decisions,
    summary_ecdf,
    summary_gain_over_most_frequent,
    summary_gains_over_shares,
    summary_gap,
    summary_groups,
    summary_halves,
    summary_line,
    summary_log_loss,
    summary_pit_group_search,
    summary_range,
    summary_regression_estimates,
    summary_reliability,
    summary_shift,
    summary_test,
    summary_tiles,
    summary_uniformity,
)
from kdcal_core.diagnostics.summaries.cluster_blocks import (
    BLOCKS,
    ClusterNames,
    RowClusters,
    block_sums,
    cluster_numbers,
)
from kdcal_core.distributions import Normal
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores
from kdcal_core.statistics import Dependence, RowDesign

CLASSES = ("no", "yes")


def table(n=8000, n_clusters=None, seed=1):
    """Probabilities, outcomes that clusters share, and clusters of 5 to 50 rows."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 51, n)
    cluster = np.repeat(np.arange(n), sizes)[:n]
    if n_clusters is not None:
        cluster = rng.integers(0, n_clusters, n)
    shared, place = rng.normal(size=(2, n))
    odds = 0.7 * place[cluster] + rng.normal(size=n)
    y = (rng.random(n) < expit(odds + 0.8 * shared[cluster])).astype(np.int64)
    p = expit(odds)
    return np.column_stack([1.0 - p, p]), y, cluster


@pytest.fixture(scope="module")
def both():
    proba, y, cluster = table()
    scored = replace(
        ScoredSet(proba, y, CLASSES, "", "evaluation"), dependence=Dependence.of("cluster", cluster)
    )
    return scored, summarise(proba, y, CLASSES, cluster=cluster)


def width(estimate):
    return estimate.high - estimate.low


def test_clusters_widen_intervals_as_those_of_rows(both):
    scored, summary = both
    given = {"sample_weight": scored.design}
    proba, y = scored.proba, scored.y
    intercept, slope = summary_line(summary, 1)
    pairs = [
        *zip(of_rows.summary(scored), summary_tiles(summary), strict=True),
        (of_rows.log_loss(proba, y, **given), summary_log_loss(summary)),
        (of_rows.auroc(proba, y, **given), summary_auroc(summary)),
        (of_rows.event_summary(scored, 1)[1], summary_gap(summary, 1)),
        (of_rows.event_summary(scored, 1)[2], summary_calibration_error(summary, 1)),
        (of_rows.calibration_intercept(proba[:, 1], y, **given), intercept),
        (of_rows.calibration_slope(proba[:, 1], y, **given), slope),
        (of_rows.score_range(proba[:, 1], **given), summary_range(summary, 1)),
        (of_rows.gain_over_most_frequent(scored), summary_gain_over_most_frequent(summary)),
        *zip(of_rows.gains_over_shares(scored), summary_gains_over_shares(summary), strict=True),
    ]
    for theirs, ours in pairs:
        assert ours.value == pytest.approx(theirs.value, abs=2e-3), ours.name
        assert width(ours) == pytest.approx(width(theirs), rel=0.12), ours.name
        assert ours.n == theirs.n == len(y)


def test_bins_and_decisions_count_clusters(both):
    scored, summary = both
    for bins in (10, 15):
        theirs = of_rows.reliability(
            scored.proba, scored.y, n_bins=bins, sample_weight=scored.design
        )
        ours = summary_reliability(summary, n_bins=bins)
        some = theirs.curves[0].count > 200
        assert ours.curves[0].effective[some] == pytest.approx(
            theirs.curves[0].effective[some], rel=0.1
        )
    theirs = of_rows.decision_counts(scored.proba[:, 1], scored.y, sample_weight=scored.design)
    ours = summary_decisions(summary, 1)
    for at in (0.2, 0.5, 0.71):
        for one, other in zip(decision_rates(theirs, at), decision_rates(ours, at), strict=True):
            assert width(other) == pytest.approx(width(one), rel=0.15)
    one, other = net_benefit(theirs), net_benefit(ours)
    at = [2000, 5000, 7000]
    assert (other.high - other.low)[at] == pytest.approx((one.high - one.low)[at], rel=0.12)


def test_few_clusters_have_the_variance_of_a_table():
    proba, y, cluster = table(600, n_clusters=12)
    block = cluster_numbers(np.arange(12)) % BLOCKS
    assert len(set(block.tolist())) == 12
    design = RowDesign(None, Dependence.of("cluster", cluster))
    ours = summary_log_loss(summarise(proba, y, CLASSES, cluster=cluster))
    theirs = of_rows.log_loss(proba, y, sample_weight=design)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-5)


def test_cuts_and_order_do_not_change_the_bytes():
    proba, y, cluster = table(900)
    weight = np.random.default_rng(2).integers(1, 4, 900).astype(float)
    frame = pd.DataFrame({"ward": np.where(cluster % 2, "north", "south")})
    rows = RowClusters(cluster_numbers(cluster), "id")

    def part(a, b):
        tally = ClassTally(CLASSES)
        given = {"weight": weight[a:b], "cluster": rows.only(slice(a, b))}
        tally.add(proba[a:b], y[a:b], first=a, **given)
        scored = ScoredSet(proba[a:b], y[a:b], CLASSES, "", "calibration")
        times = weight[a:b].astype(np.int64)
        groups = class_groups(frame[a:b], scored, 1, times=times, cluster=rows.only(slice(a, b)))
        return replace(tally.summary(), groups=groups)

    whole, pieces = part(0, 900), part(500, 900) + (part(0, 100) + part(100, 500))
    assert whole.digest == pieces.digest
    assert whole.groups.digest == pieces.groups.digest
    assert n_clusters(whole) == len(np.unique(cluster))

    said = Normal(np.zeros(900), 1.0)
    values = np.random.default_rng(3).normal(size=900) * 1e3

    def forecast(a, b):
        given = {"weight": weight[a:b], "cluster": rows.only(slice(a, b)), "groups": frame[a:b]}
        return summarise_regression(said[a:b], values[a:b], first=a, unit=1.0, **given)

    whole, pieces = forecast(0, 900), forecast(500, 900) + (forecast(0, 100) + forecast(100, 500))
    assert whole.digest == pieces.digest
    assert whole.groups.digest == pieces.groups.digest


def test_clusters_of_one_row_are_rows():
    proba, y, _ = table(300)
    alone = judged_rows(summarise(proba, y, CLASSES, cluster=np.arange(300)))
    plain = summarise(proba, y, CLASSES)
    for ours, theirs in zip(summary_tiles(alone), summary_tiles(plain), strict=True):
        assert ours == theirs


def test_numbers_of_clusters_follow_from_names_alone():
    first = cluster_numbers(pd.Series(["b", "a", "b"]))
    again = cluster_numbers(pd.Series(["a", "b"], dtype="category"))
    assert first.tolist() == [again[1], again[0], again[1]]
    days = pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"]))
    assert (cluster_numbers(days) == cluster_numbers(days.dt.as_unit("s"))).all()
    assert len(set(cluster_numbers([0.5, 0.25, 1.0, 2.0**60]).tolist())) == 4
    with pytest.raises(InputError, match="cluster is missing") as found:
        cluster_numbers(pd.Series([1.0, np.nan]))
    assert found.value.row == 2
    many = ClusterNames.of(RowClusters(cluster_numbers(np.arange(100_000)), "id"))
    assert many.count == pytest.approx(100_000, rel=0.06)
    assert "about" in many.words


def test_sums_of_blocks_are_those_of_values():
    rng = np.random.default_rng(4)
    values = rng.normal(size=500) * 10.0 ** rng.integers(-200, 140, 500)
    place, sums = block_sums(values, np.zeros(500, np.int64), 0)
    total = sum(
        np.ldexp(float(one[0]), 8 * (at % 512) - 1104 - 22)
        for at, one in zip(place, sums, strict=True)
    )
    assert total == pytest.approx(values.sum(), rel=1e-5)


def test_what_cannot_count_clusters_says_so(both):
    _, summary = both
    with pytest.raises(InputError, match="are in clusters"):
        summary_shift(summary, summary)
    with pytest.raises(InputError, match="rows in clusters and the other is not"):
        summary + summarise([[0.5, 0.5]], [0], CLASSES)
    first, second = summary_halves(summary, label=1)
    assert first.count.sum() + second.count.sum() == pytest.approx(float(summary.joint[:, 1].sum()))


def test_the_test_of_calibration_keeps_its_level():
    refused = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = np.repeat(rng.uniform(0.1, 0.9, 100), 10)
        y = np.repeat(rng.random(100) < p[::10], 10).astype(np.int64)  # rows of a cluster are equal
        proba = np.column_stack([1.0 - p, p])
        found = summarise(proba, y, CLASSES, cluster=np.repeat(np.arange(100), 10))
        refused += summary_test(found, 1) < 0.05
    assert refused <= 6  # without clusters in all


@pytest.fixture(scope="module")
def forecasts():
    rng = np.random.default_rng(5)
    n = 6000
    cluster = np.arange(n) // 20
    shared = rng.normal(size=n)[cluster]
    mean, std = rng.normal(size=n), np.exp(0.2 * rng.normal(size=n))
    y = mean + std * (0.5 * shared + 0.75**0.5 * rng.normal(size=n))
    frame = pd.DataFrame({"ward": rng.choice(["a", "b"], n)})
    return Normal(mean, std), y, cluster, frame


def test_forecasts_count_clusters(forecasts):
    said, y, cluster, frame = forecasts
    design = RowDesign(None, Dependence.of("cluster", cluster))
    given = {"cluster": RowClusters(cluster_numbers(cluster), "id"), "groups": frame}
    summary = summarise_regression(said, y, **given)
    ours = summary_regression_estimates(summary)
    theirs = regression_scores(said, y, weight=design, scale=float(np.abs(y).mean())).rows
    for key in ("crps", "log_score", "mse", "qce", "wasserstein", "coverage95", "width95"):
        assert width(ours[key]) == pytest.approx(width(theirs[key]), rel=0.15), key
    bias = of_rows.standardised_bias(said.mean(), y, weight=design)
    assert width(summary_bias(summary)) == pytest.approx(width(bias), rel=0.12)
    pit = said.pit(y, np.full(len(y), 0.5))
    for one, other in zip(
        of_rows.uniformity_tests(pit, sample_weight=design),
        summary_uniformity(summary),
        strict=True,
    ):
        assert other.p_value == pytest.approx(one.p_value, abs=0.05)
    band = of_rows.ecdf_difference(pit, sample_weight=design)
    assert summary_ecdf(summary).effective == pytest.approx(band.effective, rel=0.12)
    found = of_rows.declared_pit_regions(pit, frame, sample_weight=design)
    for one, other in zip(found.regions, summary_pit_group_search(summary).regions, strict=True):
        assert (one.words, one.n) == (other.words, other.n)
        assert width(other.gap) == pytest.approx(width(one.gap), rel=0.2)


@pytest.mark.parametrize("event", [None, 0, 1])
def test_areas_of_groups_count_clusters_by_their_own_parts(both, event):
    scored, _ = both
    half, rows = len(scored.y) // 2, RowClusters(cluster_numbers(scored.dependence.unit))
    # of a group whose rows are alone in their clusters, the area counts rows and not clusters
    alone = np.random.default_rng(3).random(len(scored.y)) < 0.1
    frame = pd.DataFrame({"ward": np.where(alone, "alone", "together")})
    parts = [
        class_groups(frame.iloc[some], scored.only(some), event, cluster=rows.only(some))
        for some in np.split(np.arange(2 * half), 2)
    ]
    whole = class_groups(frame, scored, event, cluster=rows)
    assert (parts[0] + parts[1]).digest == whole.digest
    summary = summarise(scored.proba, scored.y, CLASSES, cluster=scored.dependence.unit)
    ours = summary_groups(judged_rows(replace(summary, groups=whole)), event)
    theirs = of_rows.measure_groups(scored, of_rows.declared_divisions(frame), event=event)
    for one, other in zip(theirs.groups, ours.groups, strict=True):
        assert other.area.value == pytest.approx(one.area.value, abs=1e-5)
        # the standard error from 128 blocks varies by 6%
        assert width(other.area) == pytest.approx(width(one.area), rel=0.2)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("kind", ["whole", "fractions"])
def test_groups_of_weighted_rows(both, kind, clustered):
    scored, _ = both
    rng = np.random.default_rng(6)
    n = len(scored.y)
    weight = rng.integers(1, 6, n).astype(float) if kind == "whole" else rng.random(n) + 0.2
    frame = pd.DataFrame({"ward": rng.choice(["north", "south"], n, p=[0.2, 0.8])})
    together = scored.dependence if clustered else None
    mine = replace(scored, weight=weight, dependence=together)
    rows = RowClusters(cluster_numbers(together.unit), "id") if clustered else None
    tally, unit = ClassTally(CLASSES), 1.0 if kind == "whole" else 2.0**-10
    given = {"weight": weight, "unit": unit, "cluster": rows}
    tally.add(scored.proba, scored.y, first=0, **given)
    times = np.maximum(np.rint(weight / unit), 1).astype(np.int64)
    counted = class_groups(frame, scored, 1, times=times, cluster=rows)
    summary = judged_rows(replace(tally.summary(), groups=counted))
    ours = summary_groups(summary, 1)
    theirs = of_rows.measure_groups(mine, of_rows.declared_divisions(frame), event=1)
    for one, other in zip(theirs.groups, ours.groups, strict=True):
        assert (one.name, one.region.n) == (other.name, other.region.n)
        assert other.region.share == pytest.approx(one.region.share, rel=1e-3)
        assert other.gap.value == pytest.approx(one.gap.value, abs=1e-4)
        assert other.region.effective == pytest.approx(
            one.region.effective, rel=0.25 if clustered else 1e-3
        )
        assert width(other.gap) == pytest.approx(width(one.gap), rel=0.12 if clustered else 0.03)
