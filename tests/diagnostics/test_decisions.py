"""Decisions against brute force over rows, against scikit-learn, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from kdcal_core.diagnostics import (
    Costs,
    best_threshold,
    cost_at,
    decision_confusion,
    decision_counts,
    decision_rates,
    decision_table,
    expected_cost,
    gain_over_all,
    net_benefit,
    net_benefit_of_all,
    paired_net_benefit,
    useful_thresholds,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import bounded_mean_interval

AT = (0.0001, 0.1, 0.25, 0.5, 0.8, 0.9999)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(0.7, 1.4, 700), 2)  # ties, and values that lie on thresholds
    p[:3] = 0.0, 1.0, 0.5
    hit = (rng.random(700) < p**1.3).astype(int)
    return p, hit, rng.uniform(0.2, 3.0, 700)


def by_row(p: np.ndarray, hit: np.ndarray, t: float) -> np.ndarray:
    """Net benefit of each row, from the definition."""
    return np.where(p >= t, np.where(hit == 1, 1.0, -t / (1.0 - t)), 0.0)


@pytest.mark.parametrize("t", AT)
def test_counts_are_those_of_scikit_learn(rows, t: float) -> None:
    p, hit, weight = rows
    counts = decision_counts(p, hit, sample_weight=weight)
    (quiet, alarm), (missed, found) = confusion_matrix(hit, p >= t, sample_weight=weight)
    got = counts.mass[:, counts.at(t)]
    assert got == pytest.approx([found, alarm, missed, quiet])
    assert decision_confusion(counts, t).joint == pytest.approx(
        np.array([[quiet, alarm], [missed, found]])
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("t", AT)
def test_bands_are_those_of_the_mean_over_rows(rows, t: float, weighted: bool) -> None:
    p, hit, weight = rows
    weight = weight if weighted else np.ones(len(p))
    counts = decision_counts(p, hit, sample_weight=weight)
    odds, costs = t / (1.0 - t), Costs(2.0, 3.0, 11.0, -1.0)
    all_rows = np.where(hit == 1, 1.0, -odds)
    paid = np.select(
        [(p >= t) & (hit == 1), (p >= t) & (hit == 0), hit == 1], [2.0, 3.0, 11.0], -1.0
    )
    benefit = by_row(p, hit, t)
    for band, values, least, most in (
        (net_benefit(counts), benefit, min(-odds, 0.0), 1.0),
        (gain_over_all(counts), benefit - all_rows, -1.0, max(odds, 0.0)),
        (expected_cost(counts, costs), paid, -1.0, 11.0),
    ):
        at = counts.at(t)
        mean, low, high = bounded_mean_interval(values, weight, least, most, 0.95)
        assert band.value[at] == pytest.approx(mean)
        if not weighted:  # that interval counts rows, this one effective rows
            assert (band.low[at], band.high[at]) == pytest.approx((low, high))
    assert net_benefit_of_all(counts)[at] == pytest.approx(np.average(all_rows, weights=weight))


@pytest.mark.parametrize("t", AT)
def test_two_scores_are_paired_by_row(rows, t: float) -> None:
    p, hit, _ = rows
    other = np.clip(p + np.random.default_rng(1).normal(0, 0.2, len(p)), 0, 1)
    band, counts = paired_net_benefit(p, other, hit), decision_counts(p, hit)
    odds = t / (1.0 - t)
    moved = by_row(p, hit, t) - by_row(other, hit, t)
    mean, low, high = bounded_mean_interval(
        moved, np.ones(len(p)), -max(1.0, odds), max(1.0, odds), 0.95
    )
    at = counts.at(t)
    assert (band.value[at], band.low[at], band.high[at]) == pytest.approx((mean, low, high))
    own = net_benefit(counts).value - net_benefit(decision_counts(other, hit)).value
    assert band.value == pytest.approx(own)


def test_rates_are_clopper_pearson_of_their_rows(rows) -> None:
    p, hit, _ = rows
    sensitivity, specificity, right, left, flagged = decision_rates(decision_counts(p, hit), 0.3)
    said = p >= 0.3
    for one, inside, of in (
        (sensitivity, said[hit == 1], hit == 1),
        (specificity, ~said[hit == 0], hit == 0),
        (right, hit[said] == 1, said),
        (left, hit[~said] == 0, ~said),
        (flagged, said, np.ones(len(p), bool)),
    ):
        exact = binomtest(int(inside.sum()), int(of.sum())).proportion_ci(0.95, "exact")
        assert one.n == of.sum()
        assert (one.value, one.low, one.high) == pytest.approx(
            (inside.mean(), exact.low, exact.high)
        )


def test_what_no_row_enters_is_not_a_number() -> None:
    rates = {one.label: one for one in decision_rates(decision_counts([0.1, 0.2], [0, 0]), 0.5)}
    for label in ("Sensitivity", "Positive predictive value"):
        assert np.isnan(rates[label].value)
        assert np.isnan(rates[label].low)
        assert "no such rows" in rates[label].interval
    assert rates["Specificity"].value == 1.0


def test_least_cost_is_found_and_its_stretch_holds_the_true_best() -> None:
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.random(1_500)
        counts = decision_counts(p, (rng.random(1_500) < p).astype(int))
        costs = Costs(false_negative=4.0)
        best, curve = best_threshold(counts, costs), expected_cost(counts, costs).value
        assert best.cost.value == curve.min()
        assert cost_at(counts, costs, best.threshold) == best.cost
        held += best.low <= costs.threshold <= best.high
    assert held >= 54  # 95% intervals, and the best of the rows lies near by


def test_a_useless_score_is_worth_using_nowhere() -> None:
    rng = np.random.default_rng(3)
    y = (rng.random(3_000) < 0.3).astype(int)
    stretch = useful_thresholds(decision_counts(rng.random(3_000), y))
    assert stretch is None or stretch[1] - stretch[0] < 0.02
    assert useful_thresholds(decision_counts(np.full(100, 0.3), [0, 1] * 50)) is None


def test_pointwise_band_covers_the_true_net_benefit() -> None:
    t, inside = 0.2, 0
    found = (1.0 - t**2) / 2.0  # P(flagged and the event) where p is uniform and calibrated
    truth = found - t / (1.0 - t) * (1.0 - t - found)
    rng = np.random.default_rng(9)
    for _ in range(400):
        p = rng.random(300)
        band = net_benefit(decision_counts(p, (rng.random(300) < p).astype(int)))
        at = round(t * 10_000) - 1
        inside += band.low[at] <= truth <= band.high[at]
    assert 366 <= inside <= 396


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({"false_negative": 0.0}, "missed event does not cost more"),
        ({"true_negative": 1.0}, "false alarm does not cost more"),
        ({"false_positive": np.inf}, "not a finite number"),
    ],
)
def test_costs_that_make_no_decision_are_refused(costs: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Costs(**costs)


def test_the_table_is_of_every_hundredth(rows) -> None:
    p, hit, _ = rows
    table = decision_table(decision_counts(p, hit))
    assert table["threshold"].tolist() == pytest.approx(np.arange(1, 100) / 100)
    cells = table.filter(regex="positives|negatives")
    assert (cells.sum(axis=1) == len(p)).all()
