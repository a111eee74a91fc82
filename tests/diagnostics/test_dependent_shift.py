"""Drift tests and estimates without labels where rows are of clusters or times."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtr

from kdcal_core.diagnostics import (
    label_free,
    label_free_performance,
    label_shift,
    score_shift,
)
from kdcal_core.diagnostics.score_weights import feature_ratios
from kdcal_core.diagnostics.unit_changes import UnitChanges
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence

ROWS = 10  # of a cluster


def clustered(rng, n_clusters: int, correlation: float, rows: int = ROWS) -> np.ndarray:
    """Standard normal numbers, correlated within clusters."""
    shared = np.repeat(rng.normal(size=n_clusters), rows) * correlation**0.5
    return shared + rng.normal(size=n_clusters * rows) * (1.0 - correlation) ** 0.5


def clusters(n_clusters: int) -> Dependence:
    return Dependence.of("cluster", np.repeat(np.arange(n_clusters), ROWS))


def in_time(rng, n: int, reach: float) -> np.ndarray:
    """Standard normal numbers, each correlated with the one before."""
    found = rng.normal(size=n)
    for t in range(1, n):
        found[t] = reach * found[t - 1] + (1.0 - reach**2) ** 0.5 * found[t]
    return found


@cache
def refused() -> np.ndarray:
    """Share of 60 runs in which each test at 5% refuses equal populations: (rows, clusters)."""
    rng, count = np.random.default_rng(0), np.zeros((2, 3))
    for run in range(60):
        old, new = (ndtr(clustered(rng, 40, 0.2)) for _ in range(2))
        for k, together in enumerate((None, clusters(80))):
            found = score_shift(old, new, dependence=together, n_draws=199, seed=run)
            count[k] += [test.p_value <= 0.05 for test in found.tests]
    return count / 60


@pytest.mark.parametrize("test", range(3))
def test_clusters_hold_the_level_that_rows_alone_miss(test: int) -> None:
    alone, together = refused()[:, test]
    assert together <= 0.05 + 2.5 * (0.05 * 0.95 / 60) ** 0.5
    assert alone > together


def test_times_hold_the_level_that_rows_alone_miss() -> None:
    rng, count = np.random.default_rng(1), np.zeros((2, 3))
    days = Dependence.of("time", np.arange(240))
    for run in range(60):
        old, new = (ndtr(in_time(rng, n, 0.7)) for n in (200, 40))
        for k, together in enumerate((None, days)):
            found = score_shift(old, new, dependence=together, n_draws=199, seed=run)
            count[k] += [test.p_value <= 0.05 for test in found.tests]
    assert (count[1] <= 60 * 0.05 + 2.5 * (60 * 0.05 * 0.95) ** 0.5).all()
    assert (count[0] > count[1]).all()


def test_a_change_of_clusters_is_found() -> None:
    rng = np.random.default_rng(2)
    old, new = ndtr(clustered(rng, 40, 0.2)), ndtr(clustered(rng, 40, 0.2) + 0.8)
    found = score_shift(old, new, dependence=clusters(80))
    alone = score_shift(old, new)
    for test, other in zip(found.tests, alone.tests, strict=True):
        assert test.p_value < 0.01
        assert test.estimate.value == other.estimate.value
        assert test.estimate.low <= other.estimate.low
        assert test.estimate.high >= other.estimate.high
    assert "clusters" in found.wasserstein.estimate.interval


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_one_row_equal_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = rng.random(60), rng.random(40) ** 1.5
    hit = (rng.random(60) < old).astype(int)
    each = Dependence.of("cluster", rng.permutation(100))
    assert score_shift(old, new, dependence=each, n_draws=50).tests == (
        score_shift(old, new, n_draws=50).tests
    )
    one = label_free(old, hit, new, dependence=each, n_draws=20)
    other = label_free(old, hit, new, n_draws=20)
    assert (one.rate, one.auc, one.outside) == (other.rate, other.auc, other.outside)


def test_rows_in_pairs_say_as_much_as_one_of_each() -> None:
    """The distances of a table whose rows all occur twice, and what chance gives of them."""
    rng = np.random.default_rng(3)
    old, new = rng.random(150), rng.random(150) ** 1.2
    once = score_shift(old, new)
    pairs = Dependence.of("cluster", np.repeat(np.arange(300), 2))
    twice = score_shift(np.repeat(old, 2), np.repeat(new, 2), dependence=pairs)
    for one, two in zip(once.tests[1:], twice.tests[1:], strict=True):
        assert two.estimate.value == pytest.approx(one.estimate.value, abs=1e-12)
        assert two.estimate.expected == pytest.approx(one.estimate.expected, rel=0.15)


def test_a_cluster_in_both_tables_adds_no_change() -> None:
    """Clusters with the same rows in both tables differ by nothing, whatever they are like."""
    cell = np.repeat(np.arange(10), 5)
    wards = Dependence.of("cluster", np.tile(cell, 2))
    found = UnitChanges.of(np.tile(cell, 2), 10, 50, wards)
    np.testing.assert_allclose(found.drawn(4, np.random.default_rng(0)), 0.0, atol=1e-12)
    apart = UnitChanges.of(np.tile(cell, 2), 10, 50, Dependence.of("cluster", np.arange(100) // 5))
    assert np.abs(apart.drawn(4, np.random.default_rng(0))).max() > 0.05


def test_the_variance_is_that_of_the_draws() -> None:
    rng = np.random.default_rng(4)
    cell = rng.integers(0, 4, 120)
    weight = rng.normal(size=4)
    for kind in ("cluster", "time"):
        found = UnitChanges.of(cell, 4, 80, Dependence.of(kind, np.arange(120) // 3))
        drawn = found.drawn(20_000, rng) @ weight
        known = found.variance(weight[:, None], weight[:, None])[0]
        assert drawn.var() == pytest.approx(known, rel=0.1)


def test_one_cluster_says_nothing_of_how_clusters_differ() -> None:
    one = Dependence.of("cluster", [0, 1, 2, 3, 4, 4])
    with pytest.raises(InputError, match="one cluster"):
        score_shift([0.1, 0.2, 0.3, 0.4], [0.5, 0.6], dependence=one)


@pytest.mark.parametrize("weighting", ["nothing", "scores"])
def test_estimates_without_labels_allow_for_clusters(weighting) -> None:
    rng, inside, width = np.random.default_rng(5), np.zeros((2, 2)), np.zeros((2, 2))
    truth = float(ndtr(0.7 * np.random.default_rng(6).normal(size=200_000) + 0.3).mean())
    for run in range(20):
        tables = []
        for shift in (0.0, 0.3 / 0.7):
            x = clustered(rng, 30, 0.2) + shift
            tables.append((expit(x), (clustered(rng, 30, 0.3) < 0.7 * x).astype(int)))
        (old, hit), (new, happened) = tables
        for k, together in enumerate((None, clusters(60))):
            rate = label_free(
                old, hit, new, weighting=weighting, dependence=together, n_draws=50, seed=run
            ).rate
            inside[k] += [
                rate.rows.low <= happened.mean() <= rate.rows.high,
                rate.population.low <= truth <= rate.population.high,
            ]
            width[k] += [one.high - one.low for one in (rate.rows, rate.population)]
    assert (inside[1] >= 17).all()
    assert (inside[1] > inside[0]).all()
    assert (width[1] > 1.2 * width[0]).all()


def test_the_reference_values_have_the_intervals_of_clusters() -> None:
    rng = np.random.default_rng(7)
    p = np.repeat(rng.beta(2, 2, 40), ROWS)
    y = np.repeat((rng.random(40) < p[::ROWS]).astype(int), ROWS)
    both = np.column_stack([1.0 - p, p])
    new = both[:200]
    together = Dependence.of("cluster", np.repeat(np.arange(60), ROWS))
    found = label_free_performance(both, y, new, dependence=together, n_draws=20)
    alone = label_free_performance(both, y, new, n_draws=20)
    assert found.event is not None
    assert alone.event is not None
    for one, other in (
        (found.predictions.rate.reference, alone.predictions.rate.reference),
        (found.event.auc.reference, alone.event.auc.reference),
        (found.event.reference_error, alone.event.reference_error),
        (found.event.calibration_error, alone.event.calibration_error),
    ):
        assert one.high - one.low > 1.5 * (other.high - other.low)
    assert found.predictions.rate.reference.value == alone.predictions.rate.reference.value


def test_clusters_are_held_out_of_the_fit_that_tells_the_tables_apart() -> None:
    """A cluster is known by its inputs: a fit with some of its rows knows the table of the rest."""
    rng = np.random.default_rng(8)
    x = np.repeat(rng.normal(size=(240, 2)), 4, axis=0) + 0.01 * rng.normal(size=(960, 2))
    old, new = pd.DataFrame(x[:480]), pd.DataFrame(x[480:])
    each = Dependence.of("cluster", np.arange(960) // 4)
    apart, whole = (feature_ratios(old, new, 0, one) for one in (None, each))
    assert np.abs(np.log(apart.reference)).mean() > 1.0
    assert np.abs(np.log(whole.reference)).mean() < 0.3


def two_classes(odds: np.ndarray) -> np.ndarray:
    p = expit(odds)
    return np.column_stack([1.0 - p, p])


def test_shares_of_classes_allow_for_clusters() -> None:
    rng, refused, width = np.random.default_rng(9), np.zeros(2), np.zeros(2)
    for run in range(60):
        old, new = (two_classes(2.0 * clustered(rng, 40, 0.3)) for _ in range(2))
        y = (rng.random(400) < old[:, 1]).astype(int)
        for k, together in enumerate((None, clusters(80))):
            found = label_shift(new, old, y, dependence=together, n_draws=2 if run else 40)
            refused[k] += found.p_value <= 0.05
            width[k] += 0 if run else found.changes[1].high - found.changes[1].low
    assert refused[1] <= 60 * 0.05 + 2.5 * (60 * 0.05 * 0.95) ** 0.5
    assert refused[0] > refused[1]
    assert width[1] > 1.2 * width[0]


def test_shares_that_changed_are_found_in_clusters_and_in_time() -> None:
    rng = np.random.default_rng(10)
    old, new = (two_classes(2.0 * clustered(rng, 40, 0.2) + mean) for mean in (0.0, 1.5))
    y = (rng.random(400) < old[:, 1]).astype(int)
    for together in (clusters(80), Dependence.of("time", np.arange(800) // ROWS)):
        found = label_shift(new, old, y, dependence=together, n_draws=40)
        assert found.p_value < 0.02
        assert found.changes[1].low > 0.0
        assert found.changes[1].low <= found.changes[1].value <= found.changes[1].high


def test_shares_of_clusters_of_one_row_equal_those_of_rows() -> None:
    rng = np.random.default_rng(11)
    old, new = two_classes(rng.normal(size=60)), two_classes(rng.normal(size=40))
    y = (rng.random(60) < old[:, 1]).astype(int)
    each = Dependence.of("cluster", np.arange(100))
    one, other = (label_shift(new, old, y, dependence=d, n_draws=9) for d in (each, None))
    assert (one.shares, one.changes, one.p_value) == (other.shares, other.changes, other.p_value)


def test_bins_of_new_rows_count_clusters() -> None:
    """Ten equal rows of a cluster say as much of a bin's share as one."""
    rng = np.random.default_rng(4)
    old, new = rng.random(400), np.repeat(rng.random(60), 10)
    own = np.repeat(np.arange(400, 460), 10)
    together = Dependence.of("cluster", np.concatenate([np.arange(400), own]))
    rows = score_shift(old, new, dependence=together, n_draws=99).new_rows
    assert rows is not None
    assert rows.max() < 70
    assert rows.min() > 40
    assert score_shift(old, new, n_draws=99).new_rows is None
