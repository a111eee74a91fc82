"""The e-process of PIT values: its equation, its level, and the faults that it finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from kdcal_core.diagnostics import sequential_uniformity, start_watch
from kdcal_core.diagnostics.sequential_calibration import SHIFTS, SPREADS
from kdcal_core.distributions import Empirical, Quantiles
from kdcal_core.errors import InputError


def test_the_e_value_is_its_equation() -> None:
    rng = np.random.default_rng(0)
    pit, place = rng.random((2, 50))
    z, bins = norm.ppf(pit), np.ceil(place * 10).astype(int) - 1
    null = norm.logpdf(z)

    def wealth(mean: float, spread: float, rows: np.ndarray) -> float:
        return float(np.exp((norm.logpdf(z[rows], mean, spread) - null[rows]).sum()))

    every = np.arange(50)
    shift = np.mean([wealth(one, 1.0, every) for one in SHIFTS])
    spread = np.mean([wealth(0.0, one, every) for one in SPREADS])
    each = [
        np.mean([wealth(one, 1.0, np.flatnonzero(bins == b)) for one in SHIFTS]) for b in range(10)
    ]
    found = sequential_uniformity(pit, place)
    assert found.e_value == pytest.approx(
        np.mean([shift, spread, np.mean(each), np.prod(each)]), rel=1e-9
    )
    assert found.gap.value == pytest.approx(pit.mean() - 0.5)


def test_optional_stopping_keeps_the_level() -> None:
    """At most 5% of calibrated watches ever reach 20: a binomial test refuses 1.5 times as many."""
    rng = np.random.default_rng(1)
    crossed = sum(
        sequential_uniformity(*rng.random((2, 600))).crossed_at is not None for _ in range(300)
    )
    assert crossed <= 0.05 * 300


@pytest.mark.parametrize("kind", ["quantiles", "samples"])
def test_forecasts_that_state_little_keep_the_level(kind: str) -> None:
    """Only the stated quantiles are bet on, not the line that kdcal draws between them."""
    rng = np.random.default_rng(2)
    crossed = 0
    for _ in range(100):
        y = rng.exponential(size=400)  # far from normal between and beyond the quantiles
        if kind == "quantiles":
            levels = [0.1, 0.5, 0.9]
            said = Quantiles(levels, np.tile(-np.log1p(-np.array(levels)), (400, 1)))
        else:
            said = Empirical(rng.exponential(size=(400, 9)))
        pit = said.pit(y, rng.random(400))
        crossed += sequential_uniformity(pit, rng.random(400)).recalibrate
    assert crossed <= 5


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda z, place: z + 0.3, "all outcomes higher or lower"),
        (lambda z, place: 1.4 * z, "too narrow or too wide"),
        (lambda z, place: 0.7 * z, "too narrow or too wide"),
        (lambda z, place: z + (place > 0.9), "in one bin"),
        (lambda z, place: z + 0.7 * np.sign(place - 0.5), "in all bins"),
    ],
)
def test_faults_are_found_and_named(fault, said: str) -> None:
    rng = np.random.default_rng(3)
    place = rng.random(2000)
    found = sequential_uniformity(norm.cdf(fault(rng.normal(size=2000), place)), place)
    assert found.recalibrate
    assert said in found.fault


def test_batches_give_the_same_bits_and_clusters_keep_the_level() -> None:
    rng = np.random.default_rng(4)
    pit, place = rng.random((2, 300))
    whole = sequential_uniformity(pit, place)
    first = sequential_uniformity(pit[:120], place[:120])
    second = sequential_uniformity(pit[120:], place[120:], state=first.state)
    assert second.e_value == whole.e_value
    assert second.gap == whole.gap
    crossed = {"rows": 0, "clusters": 0}
    for _ in range(100):
        same = np.repeat(rng.random(60), 5)  # all rows of a cluster have one PIT value
        cluster = np.repeat(np.arange(60), 5)
        place = rng.random(300)
        crossed["rows"] += sequential_uniformity(same, place).recalibrate
        crossed["clusters"] += sequential_uniformity(same, place, cluster=cluster).recalibrate
    assert crossed["clusters"] <= 5 < crossed["rows"]


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="places from 0 to 1"):
        sequential_uniformity([0.5, 0.6], [0.5])
    with pytest.raises(InputError, match="row 2"):
        sequential_uniformity([0.5, 1.6], [0.5, 0.5])
    assert sequential_uniformity([0.0], [0.5]).e_value < np.inf
    assert start_watch().n == 0
