"""Distances between reference and new scores: against scipy, brute force, and their level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact, ks_2samp, wasserstein_distance

from kdcal_core.diagnostics import (
    FrozenBins,
    freeze_bins,
    freeze_bins_of_numbers,
    number_shift,
    population_stability,
    score_shift,
    unknown_change,
)
from kdcal_core.errors import InputError
from kdcal_core.store.values import decode, encode


def ties(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([0.0, 0.2, 0.5, 1.0], size=n, p=[0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("drawn", [lambda rng, n: rng.random(n), ties], ids=["real", "ties"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 30), (400, 3000)])
def test_values_are_those_of_scipy(drawn, n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    old, new = drawn(rng, n), drawn(rng, m) ** 1.3
    found = score_shift(old, new, n_draws=20)
    ks, distance = found.kolmogorov_smirnov.estimate, found.wasserstein.estimate
    assert ks.value == pytest.approx(ks_2samp(old, new).statistic, abs=1e-12)
    assert distance.value == pytest.approx(wasserstein_distance(old, new), abs=1e-12)
    for test in found.tests:
        assert 0.0 < test.p_value <= 1.0
        assert test.estimate.low <= test.estimate.value <= test.estimate.high


def test_psi_is_its_equation() -> None:
    rng = np.random.default_rng(0)
    old, new = rng.random(500), rng.random(300) ** 2
    bins = freeze_bins(old)
    expected = 0.0
    k = len(bins.count)
    for b in range(k):
        left = -1.0 if b == 0 else bins.edges[b]
        right = bins.edges[b + 1]
        p = (((old > left) & (old <= right)).sum() + 0.5) / (500 + 0.5 * k)
        q = (((new > left) & (new <= right)).sum() + 0.5) / (300 + 0.5 * k)
        expected += (q - p) * np.log(q / p)
    assert population_stability(bins, new).estimate.value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(score_shift(old, new, n_draws=9).new_count, bins.counts(new))


def test_p_values_agree_with_scipy_without_ties() -> None:
    rng = np.random.default_rng(1)
    old, new = rng.random(60), rng.random(50) ** 1.4
    found = score_shift(old, new, n_draws=9_999).kolmogorov_smirnov
    assert found.p_value == pytest.approx(ks_2samp(old, new, method="exact").pvalue, abs=0.02)


def test_frozen_bins_are_stored_and_stay() -> None:
    rng = np.random.default_rng(2)
    bins = freeze_bins(rng.random(1000))
    again = decode(FrozenBins, encode(bins))
    new = rng.random(200)
    assert population_stability(again, new) == population_stability(bins, new)
    assert bins.n == 1000
    assert (bins.count >= 1).all()


def test_more_scores_than_cells_give_the_same_answer() -> None:
    rng = np.random.default_rng(3)
    old, new = rng.random(6000), rng.random(5000)
    found = score_shift(old, new, n_draws=199)
    exact = ks_2samp(old, new)
    assert found.kolmogorov_smirnov.estimate.value == pytest.approx(exact.statistic, abs=1e-12)
    assert found.kolmogorov_smirnov.p_value == pytest.approx(exact.pvalue, abs=0.15)


def test_one_score_in_both_tables_is_no_change() -> None:
    for test in score_shift(np.full(20, 0.3), np.full(9, 0.3), n_draws=50).tests:
        assert test.estimate.value == 0.0
        assert test.p_value == 1.0


@pytest.mark.parametrize("drawn", [lambda rng, n: rng.random(n), ties], ids=["real", "ties"])
def test_the_level_is_kept(drawn) -> None:
    rng = np.random.default_rng(4)
    refused = np.zeros(3)
    for run in range(100):
        found = score_shift(drawn(rng, 30), drawn(rng, 80), n_draws=99, seed=run)
        refused += [test.p_value <= 0.05 for test in found.tests]
    assert (refused / 100 < 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5).all()


def test_a_change_is_found() -> None:
    rng = np.random.default_rng(5)
    found = score_shift(rng.beta(2, 2, 500), rng.beta(2, 3, 500))
    for test in found.tests:
        assert test.p_value < 0.01
        assert test.estimate.expected is not None
        assert test.estimate.value > test.estimate.expected


def test_the_same_seed_gives_the_same_result() -> None:
    old, new = np.linspace(0, 1, 50), np.linspace(0, 0.8, 40)
    first, again = (score_shift(old, new, seed=7).tests for _ in range(2))
    assert first == again


def test_unknown_rows() -> None:
    new, old = np.arange(200) < 30, np.arange(400) < 20
    found = unknown_change(new, old)
    assert found.change.value == pytest.approx(0.15 - 0.05)
    assert found.change.low < 0.1 < found.change.high
    assert found.p_value == fisher_exact([[30, 170], [20, 380]]).pvalue
    assert found.new.interval == "Clopper-Pearson"


@pytest.mark.parametrize("bad", [[0.1, np.nan], [0.1, 1.5], [], [[0.1]]])
def test_faulty_scores_are_refused(bad) -> None:
    with pytest.raises(InputError):
        score_shift([0.1, 0.2], bad)
    with pytest.raises(InputError):
        freeze_bins(bad)


def test_numbers_of_any_size_are_compared_as_scores_are() -> None:
    rng = np.random.default_rng(40)
    old, new = rng.beta(2, 2, 400).round(2), rng.beta(2, 3, 300).round(2)  # with ties
    scores, numbers = (
        score_shift(old, new),
        number_shift(1e6 * old - 5e5, 1e6 * new - 5e5, noun="x"),
    )
    for a, b in zip(scores.tests[:2], numbers.tests[:2], strict=True):
        assert a.estimate.value == pytest.approx(b.estimate.value)
        assert a.p_value == b.p_value
    moved = scores.wasserstein.estimate, numbers.wasserstein.estimate
    assert moved[1].value == pytest.approx(1e6 * moved[0].value)
    assert moved[1].high == pytest.approx(1e6 * moved[0].high)
    np.testing.assert_array_equal(scores.bins.count, numbers.bins.count)
    frozen = number_shift(old, new + 50.0, noun="x", bins=freeze_bins_of_numbers(old))
    assert frozen.new_count[-1] == 300  # beyond all reference numbers is the last bin
    assert frozen.wasserstein.estimate.value > 49.0
    with pytest.raises(InputError, match="row 2"):
        number_shift(old, [1.0, np.nan], noun="x")
    assert freeze_bins_of_numbers(np.full(5, 3.0)).count.tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize("new", [2.0, 4.0])
def test_numbers_that_leave_a_value_that_most_shared_have_moved(new: float) -> None:
    old = np.where(np.arange(400) < 380, 3.0, np.linspace(1.0, 5.0, 400))
    frozen = freeze_bins_of_numbers(old)
    same, moved = (
        number_shift(old, values, noun="x", bins=frozen)
        for values in (np.full(200, 3.0), np.full(200, new))
    )
    assert same.tests[0].estimate.value < 0.2
    assert moved.tests[0].estimate.value > 4.0
