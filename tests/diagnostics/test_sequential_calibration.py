"""The e-process of calibration: a martingale, the same by batches, its level and its power."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, logit

from kdcal_core.diagnostics import (
    CalibrationWatch,
    freeze_bins,
    sequential_calibration,
    start_watch,
)
from kdcal_core.diagnostics.sequential_calibration import OFFSETS, SLOPES
from kdcal_core.errors import InputError
from kdcal_core.store.values import decode, encode


def test_the_e_value_is_its_equation() -> None:
    rng = np.random.default_rng(0)
    p, y = rng.uniform(0.05, 0.95, 60), rng.integers(0, 2, 60)

    def wealth(move, rows) -> float:
        product = 1.0
        for i in rows:
            q = expit(move(logit(p[i])))
            product *= q / p[i] if y[i] else (1 - q) / (1 - p[i])
        return product

    every = range(60)
    by_bin = [[i for i in every if np.ceil(p[i] * 10) == b + 1] for b in range(10)]
    offset = np.mean([wealth(lambda z, t=t: z + t, every) for t in OFFSETS])
    slope = np.mean([wealth(lambda z, k=k: k * z, every) for k in SLOPES])
    each = [np.mean([wealth(lambda z, t=t: z + t, rows) for t in OFFSETS]) for rows in by_bin]
    expected = np.mean([offset, slope, np.mean(each), np.prod(each)])
    found = sequential_calibration(p, y)
    assert found.e_value == pytest.approx(expected, rel=1e-9)
    assert found.log_e_values[-1] == pytest.approx(np.log(expected), rel=1e-9)


def test_the_mean_is_one_for_a_calibrated_model() -> None:
    p = np.array([0.2, 0.7, 0.95])
    total = 0.0
    for outcome in range(8):  # all outcomes of three rows
        y = np.array([outcome >> i & 1 for i in range(3)])
        total += np.prod(np.where(y, p, 1 - p)) * sequential_calibration(p, y).e_value
    assert total == pytest.approx(1.0, abs=1e-12)


def test_batches_give_the_same_bits_as_all_at_once() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(9000)
    y = (rng.random(9000) < p**1.1).astype(int)
    whole = sequential_calibration(p, y)
    state, log_e = start_watch(), []
    for part in np.split(np.arange(9000), [1, 8, 4096, 4097, 8000]):
        found = sequential_calibration(p[part], y[part], state=state)
        state = decode(CalibrationWatch, encode(found.state))  # as stored between two days
        log_e.append(found.log_e_values)
    np.testing.assert_array_equal(np.concatenate(log_e), whole.log_e_values)
    assert found.gap == whole.gap
    assert (found.crossed_at, found.p_value) == (whole.crossed_at, whole.p_value)
    np.testing.assert_array_equal(state.in_bin, whole.state.in_bin)


@pytest.mark.parametrize(
    "scores",
    [
        lambda rng, n: rng.random(n),
        lambda rng, n: rng.beta(0.5, 20, n),
        lambda rng, n: rng.choice([0.0, 0.1, 0.9, 1.0], n),
    ],
    ids=["even", "rare", "certain"],
)
def test_optional_stopping_keeps_the_level(scores) -> None:
    rng = np.random.default_rng(2)
    crossed, missed = 0, 0
    for _ in range(50):
        p = scores(rng, 400)
        found = sequential_calibration(p, rng.random(400) < p)
        crossed += found.recalibrate
        missed += not ((found.gap_low <= 0) & (found.gap_high >= 0)).all()
    assert crossed <= 0.05 * 50 + 3 * (0.05 * 0.95 * 50) ** 0.5
    assert missed <= 0.05 * 50


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda p: expit(logit(p) + 0.5), "all log odds too high or too low"),
        (lambda p: expit(0.6 * logit(p)), "log odds too extreme or too small"),
        (lambda p: np.where((p > 0.6) & (p < 0.7), p - 0.3, p), "a fault in one score bin"),
    ],
    ids=["offset", "slope", "bin"],
)
def test_faults_are_found_and_named(fault, said: str) -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(0.01, 0.99, 4000)
    found = sequential_calibration(p, rng.random(4000) < fault(p))
    assert found.recalibrate
    assert found.crossed_at is not None
    assert found.log_e_values[found.crossed_at - 1] >= np.log(20)
    assert (found.log_e_values[: found.crossed_at - 1] < np.log(20)).all()
    assert found.fault == said
    assert found.p_value <= 0.05


def test_the_sequence_follows_the_gap() -> None:
    rng = np.random.default_rng(4)
    p = np.full(5000, 0.5)
    found = sequential_calibration(p, rng.random(5000) < 0.4)
    assert found.gap.low > 0.0
    assert found.gap.low < 0.1 < found.gap.high


def test_an_impossible_event_is_strong_evidence() -> None:
    assert sequential_calibration([0.0], [1]).e_value > 1e4
    assert sequential_calibration([0.0], [0]).e_value <= 1.0 + 1e-9


def test_settings_are_checked() -> None:
    for alpha in (0.0, 1.0):
        with pytest.raises(InputError):
            start_watch(alpha)
    with pytest.raises(InputError):
        start_watch(edges=[0.0, 0.7, 0.5, 1.0])
    with pytest.raises(InputError):
        sequential_calibration([0.5, np.nan], [0, 1])
    assert len(start_watch(edges=freeze_bins(np.linspace(0, 1, 50), 4).edges).in_bin) == 4


def test_clusters_of_one_row_are_rows() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(5000)
    y = rng.random(5000) < p**1.2
    rows, clusters = (
        sequential_calibration(p, y, cluster=cluster) for cluster in (None, rng.permutation(5000))
    )
    np.testing.assert_allclose(clusters.log_e_values, rows.log_e_values, atol=1e-9)
    np.testing.assert_allclose(clusters.gap_low, rows.gap_low, atol=1e-12)
    assert (clusters.crossed_at, clusters.state.n, clusters.state.within) == (
        rows.crossed_at,
        5000,
        0,
    )


def test_the_mean_is_one_however_the_rows_of_a_cluster_depend() -> None:
    p = np.array([0.4, 0.7, 0.55, 0.5])
    cluster = ["a", "b", "a", "a"]
    together = alone = 0.0
    cuts = np.unique([0.0, *p, 1.0])
    for low, high in pairwise(cuts):  # one draw decides all rows of "a"
        for b in (0, 1):
            y = (p > low).astype(int)
            y[1] = b
            chance = (high - low) * (p[1] if b else 1 - p[1])
            together += chance * sequential_calibration(p, y, cluster=cluster).e_value
            alone += chance * sequential_calibration(p, y).e_value
    assert together == pytest.approx(1.0, abs=1e-12)
    assert alone > 1.05


def test_clusters_in_batches_give_the_same_bits_and_a_step_at_their_last_row() -> None:
    rng = np.random.default_rng(6)
    p = rng.random(600)
    cluster = np.repeat(np.arange(120), 5)
    cluster[:10] = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]  # two that take turns
    y = (rng.random(600) < p).astype(int)
    whole = sequential_calibration(p, y, cluster=cluster)
    state, log_e = start_watch(), []
    for part in np.split(np.arange(600), [10, 15, 300]):
        found = sequential_calibration(p[part], y[part], cluster=cluster[part], state=state)
        state = decode(CalibrationWatch, encode(found.state))
        log_e.append(found.log_e_values)
    np.testing.assert_array_equal(np.concatenate(log_e), whole.log_e_values)
    assert found.gap == whole.gap
    assert (state.n, state.within) == (600, 480)
    np.testing.assert_array_equal(np.flatnonzero(np.diff(whole.log_e_values[:16])) + 1, [8, 9, 14])
    assert (whole.gap_low[:8] == -1.0).all()


def test_a_cluster_bets_as_its_equation_says() -> None:
    p, y = np.array([0.62, 0.68, 0.3]), np.array([1, 0, 0])
    found = sequential_calibration(p, y, cluster=[7, 7, 7])

    def factors(move) -> np.ndarray:
        q = expit(move(logit(p)))
        return np.where(y == 1, q / p, (1 - q) / (1 - p))

    offset = np.mean([factors(lambda z, t=t: z + t).mean() for t in OFFSETS])
    slope = np.mean([factors(lambda z, k=k: k * z).mean() for k in SLOPES])
    in_bin = np.mean([factors(lambda z, t=t: z + t)[:2].mean() for t in OFFSETS])  # 0.6 to 0.7
    expected = np.mean([offset, slope, (in_bin + 9) / 10, in_bin])
    assert found.e_value == pytest.approx(expected, rel=1e-9)
    assert found.gap.value == pytest.approx((p - y).mean())


def test_dependence_in_clusters_keeps_the_level_and_a_fault_is_found() -> None:
    rng = np.random.default_rng(7)
    cluster = np.repeat(np.arange(60), 10)
    crossed = {"rows": 0, "clusters": 0}
    for _ in range(60):
        p = rng.uniform(0.05, 0.95, 600)
        y = rng.random(60)[cluster] < p  # one draw a cluster decides all of it
        crossed["rows"] += sequential_calibration(p, y).recalibrate
        crossed["clusters"] += sequential_calibration(p, y, cluster=cluster).recalibrate
    assert crossed["clusters"] <= 0.05 * 60 + 3 * (0.05 * 0.95 * 60) ** 0.5
    assert crossed["rows"] > 30
    p = rng.uniform(0.05, 0.95, 4000)
    wrong = rng.random(400)[np.repeat(np.arange(400), 10)] < expit(logit(p) - 1.0)
    assert sequential_calibration(p, wrong, cluster=np.repeat(np.arange(400), 10)).recalibrate


def test_a_cluster_is_wanted_for_each_row() -> None:
    with pytest.raises(InputError, match="2 clusters for 3 rows"):
        sequential_calibration([0.5, 0.5, 0.5], [0, 1, 1], cluster=[1, 2])
