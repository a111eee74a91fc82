"""PIT histogram, ECDF difference, quantile reliability, distances: bands hold what they promise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from kdcal_core.diagnostics import (
    ecdf_difference,
    pit_histogram,
    quantile_calibration_error,
    quantile_reliability,
    wasserstein,
)
from kdcal_core.diagnostics.regression.pit_curves import simultaneous_band
from kdcal_core.errors import InputError

unit = st.floats(0.0, 1.0)
samples = st.lists(unit, min_size=1, max_size=80).map(np.array)


@settings(max_examples=60, deadline=None)
@given(samples, st.integers(1, 30))
def test_every_value_is_counted_once(u, bins):
    found = pit_histogram(u, bins)
    assert found.counts.sum() == len(u)
    assert (found.density * np.diff(found.edges)).sum() == pytest.approx(1.0)


def test_histogram_band_is_binomial_and_holds_simultaneously():
    n, bins = 400, 20
    pointwise = pit_histogram(np.full(n, 0.5), bins, band="pointwise")
    assert (pointwise.low[0], pointwise.high[0]) == stats.binom.interval(0.95, n, 1 / bins)
    band = pit_histogram(np.full(n, 0.5), bins)
    counts = np.random.default_rng(0).multinomial(n, np.full(bins, 1 / bins), size=20_000)
    inside = ((counts >= band.low[0]) & (counts <= band.high[0])).all(axis=1).mean()
    assert 0.945 < inside < 0.985


@pytest.mark.parametrize("n", [7, 50, 1000, 20_000])
def test_ecdf_band_holds_all_levels_at_once(n):
    levels = np.arange(1, 100) / 100
    low, high = simultaneous_band(n, tuple(levels), 0.95)
    rng = np.random.default_rng(9)
    cells = np.diff(levels, prepend=0.0, append=1.0)
    share = np.cumsum(rng.multinomial(n, cells, size=20_000), axis=1)[:, :-1] / n
    inside = ((share >= low - 1e-12) & (share <= high + 1e-12)).all(axis=1).mean()
    assert inside > 0.943  # discrete for few rows: it may hold more than it promises
    if n >= 1000:
        assert inside < 0.958


@settings(max_examples=60, deadline=None)
@given(samples)
def test_ecdf_by_counting(u):
    found = ecdf_difference(u, levels=[0.1, 0.5, 0.9])
    wanted = [np.mean(u <= p) - p for p in (0.1, 0.5, 0.9)]
    assert found.difference == pytest.approx(wanted, abs=1e-12)
    reliability = quantile_reliability(u, levels=[0.1, 0.5, 0.9])
    assert reliability.observed == pytest.approx(found.difference + found.levels)
    assert np.all(reliability.low <= reliability.observed)
    assert np.all(reliability.high >= reliability.observed)


def test_weights_widen_the_bands_and_move_the_counts():
    u = np.random.default_rng(0).random(500)
    weight = np.where(u < 0.5, 3.0, 1.0)
    plain, weighed = pit_histogram(u, 2), pit_histogram(u, 2, sample_weight=weight)
    assert weighed.counts.sum() == pytest.approx(500)
    assert weighed.counts[0] > 350 > plain.counts[0]
    assert weighed.effective < 500 == pytest.approx(plain.effective)
    wide, narrow = ecdf_difference(u, sample_weight=weight), ecdf_difference(u)
    assert np.all(wide.high - wide.low >= narrow.high - narrow.low)
    share = weight[u <= 0.5].sum() / weight.sum()
    assert wide.difference[49] == pytest.approx(share - 0.5)


@pytest.mark.parametrize("n", [100, 1_000])
def test_the_band_of_unequal_weights_holds_all_levels_at_once(n):
    rng = np.random.default_rng(n)
    weight = np.where(rng.random(n) < 0.1, 10.0, 1.0)
    drawn = (ecdf_difference(rng.random(n), sample_weight=weight) for _ in range(1_000))
    left = np.mean([np.any(one.outside) for one in drawn])
    assert 0.03 <= left <= 0.068  # the band of Kish's number of equal rows: 0.1 with 100 rows
    found = quantile_reliability(rng.random(n), sample_weight=weight)
    same = ecdf_difference(rng.random(n), sample_weight=weight[::-1])
    np.testing.assert_allclose(found.band_high - found.levels, same.high)
    assert np.all((found.band_low >= 0.0) & (found.band_high <= 1.0))


@settings(max_examples=40, deadline=None)
@given(st.lists(unit, min_size=1, max_size=15).map(np.array))
def test_wasserstein_is_the_area_between_the_curves(u):
    found = wasserstein(u).value
    x = np.sort(u)
    pieces = np.unique(np.concatenate([[0.0, 1.0], x, np.arange(len(x) + 1) / len(x)]))
    wanted = sum(
        integrate.quad(lambda t: abs(np.searchsorted(x, t, side="right") / len(x) - t), a, b)[0]
        for a, b in pairwise(pieces)
        if b - a > 1e-12
    )
    assert found == pytest.approx(wanted, abs=1e-7)


def test_quantile_error_by_its_formula():
    u = np.random.default_rng(1).beta(2, 2, 300)
    levels = np.arange(1, 100) / 100
    gap = np.array([np.mean(u <= p) for p in levels]) - levels
    assert quantile_calibration_error(u).value == pytest.approx(np.sqrt(np.mean(gap**2)))
    l1 = quantile_calibration_error(u, norm="l1")
    assert l1.value == pytest.approx(np.mean(np.abs(gap)))


@pytest.mark.parametrize("measure", [wasserstein, quantile_calibration_error])
def test_floor_is_what_uniform_values_show(measure, monkeypatch):
    # intervals take all the time, and nothing reads them
    room = "kdcal_core.diagnostics.regression.uniformity"
    monkeypatch.setattr(f"{room}._bootstrap_reach", lambda *_: 0.0)
    rng = np.random.default_rng(0)
    seen = [measure(rng.random(200)).value for _ in range(300)]
    assert np.mean(seen) == pytest.approx(measure(rng.random(200)).expected, rel=0.08)


@pytest.mark.parametrize(
    ("measure", "power", "a"), [(wasserstein, 1, 1.0), (quantile_calibration_error, 2, 1.3)]
)
def test_intervals_hold_the_true_distance(measure, power, a):
    # the values' distribution function is u^a
    levels = np.arange(1, 1000) / 1000 if power == 1 else np.arange(1, 100) / 100
    truth = np.mean(np.abs(levels**a - levels) ** power) ** (1 / power)
    rng = np.random.default_rng(7)
    found = [measure(rng.random(150) ** (1 / a), seed=i) for i in range(200)]
    held = np.mean([e.low <= truth + 1e-4 and truth - 1e-4 <= e.high for e in found])
    assert held > 0.91


def test_settings_out_of_range_are_refused():
    u = np.array([0.2, 0.8])
    for call in (
        lambda: pit_histogram(u, 0),
        lambda: pit_histogram(u, level=1.0),
        lambda: pit_histogram(u, band="other"),
        lambda: ecdf_difference(u, levels=[0.5, 0.5]),
        lambda: ecdf_difference(u, levels=[0.0, 0.5]),
        lambda: quantile_calibration_error(u, norm="l3"),
        lambda: pit_histogram(u, sample_weight=[1.0, -1.0]),
    ):
        with pytest.raises(InputError):
            call()
