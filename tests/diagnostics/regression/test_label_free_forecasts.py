"""What is expected of forecasts without outcomes: against closed forms, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.diagnostics import expected_crps, label_free_forecasts
from kdcal_core.diagnostics.regression.label_free_forecasts import (
    forecast_measures,
    interval_widths,
)
from kdcal_core.distributions import LogNormal, Normal, Quantiles
from kdcal_core.statistics import Dependence


def test_the_expected_crps_is_the_mean_over_the_forecast() -> None:
    rng = np.random.default_rng(0)
    for one in (
        Normal([1.0], [2.0]),
        LogNormal([0.0], [0.5]),
        Quantiles([0.1, 0.5, 0.9], [[0.0, 1.0, 4.0]]),
    ):
        drawn = one.ppf(rng.random((1, 20_000)))[0]
        seen = np.mean([one.crps(np.array([y]))[0] for y in drawn[:4000]])
        assert expected_crps(one)[0] == pytest.approx(seen, rel=0.05)


def drawn(rng: np.random.Generator, n: int, low: float, high: float, factor: float):
    mean, spread = rng.normal(0.0, 1.0, n), rng.uniform(low, high, n)
    return Normal(mean, spread), mean + factor * spread * rng.normal(size=n)


def test_the_interval_holds_the_crps_that_is_seen_later() -> None:
    """Forecasts too narrow by 1.4, and new ones wider than the reference rows' on average."""
    rng = np.random.default_rng(1)
    held = wrong = 0
    for _ in range(100):
        reference, y = drawn(rng, 300, 0.5, 2.5, 1.4)
        new, later = drawn(rng, 200, 1.2, 2.4, 1.4)
        found = label_free_forecasts(reference, y, new)
        truth = float(new.crps(later).mean())
        held += found.crps.low <= truth <= found.crps.high
        known = found.reference.crps
        wrong += known.low <= truth <= known.high
    assert held >= 88  # of 95 expected
    assert wrong < 20  # the reference value is another one


def test_rows_beyond_the_reference_ones_give_no_estimate() -> None:
    rng = np.random.default_rng(2)
    reference, y = drawn(rng, 300, 0.5, 1.0, 1.0)
    far, _ = drawn(rng, 200, 5.0, 6.0, 1.0)
    found = label_free_forecasts(reference, y, far)
    assert not found.covered
    assert np.isnan(found.crps.value)
    assert "are beyond those of all reference rows" in found.crps.interval
    assert found.outside.value == 1.0
    assert found.width.value > found.reference.width.high
    few = label_free_forecasts(reference[:20], y[:20], far)
    assert "only 20 reference rows" in few.crps.interval


def test_a_factor_that_differs_by_width_is_a_caution() -> None:
    rng = np.random.default_rng(3)
    narrow, y = drawn(rng, 300, 0.5, 1.0, 1.0)
    wide, z = drawn(rng, 300, 2.0, 3.0, 2.0)
    both = Normal(
        np.concatenate([narrow.mean(), wide.mean()]), np.concatenate([narrow.std(), wide.std()])
    )
    found = label_free_forecasts(both, np.concatenate([y, z]), narrow)
    assert any("the wider half" in one for one in found.cautions)


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(50), 10)
    mean, shared = rng.normal(size=500), np.repeat(rng.normal(size=50), 10)
    said, y = Normal(mean, np.ones(500)), mean + shared
    together = Dependence.of("cluster", cluster)
    alone, found = (
        label_free_forecasts(said[:300], y[:300], said[300:], dependence=one)
        for one in (None, together)
    )
    assert alone.crps.value == found.crps.value
    assert found.crps.high - found.crps.low > 1.5 * (alone.crps.high - alone.crps.low)


def test_equal_widths_around_other_medians_are_equal() -> None:
    rng = np.random.default_rng(0)
    widths = interval_widths(Normal(rng.normal(size=400) * 1e3, 1.0))
    assert len(np.unique(widths)) == 1
    assert widths[0] == pytest.approx(2 * 1.2815515655)


def test_a_pit_distance_of_a_few_labels_has_no_interval() -> None:
    few, more = (
        forecast_measures(Normal(np.zeros(n), 1.0), np.linspace(-1, 1, n)) for n in (10, 30)
    )
    assert not np.isfinite([few.pit_distance.low, few.pit_distance.high]).any()
    assert np.isfinite([more.pit_distance.low, more.pit_distance.high]).all()


def test_new_clusters_that_are_larger_make_the_expected_crps_less_certain() -> None:
    rng = np.random.default_rng(1)
    shared = np.repeat(rng.normal(size=200), 2)  # pairs of reference rows that go together
    y = np.sqrt(0.5) * (shared + rng.normal(size=400))
    reach = {}
    for size in (1, 40):
        units = np.r_[np.repeat(np.arange(200), 2), 200 + np.arange(400) // size]
        found = label_free_forecasts(
            Normal(np.zeros(400), 1.0),
            y,
            Normal(np.zeros(400), 1.0),
            dependence=Dependence.of("cluster", units),
        )
        reach[size] = found.crps.high - found.crps.value
    assert reach[40] > 1.3 * reach[1]
