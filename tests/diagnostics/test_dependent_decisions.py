"""Decisions by the probabilities of rows that depend on one another, beside slow sums."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.diagnostics import (
    Costs,
    best_threshold,
    decision_counts,
    decision_rates,
    gain_over_all,
    net_benefit,
    paired_net_benefit,
    rows_text,
)
from kdcal_core.diagnostics.decisions import STEPS
from kdcal_core.statistics import Dependence, RowDesign, design_effect, small_sample_factor


@pytest.fixture(params=["cluster", "time"])
def together(request) -> Dependence:
    return Dependence.of(request.param, np.random.default_rng(3).integers(0, 50, 300))


def _rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(300).round(2)
    other = np.clip(p + 0.2 * rng.normal(size=300), 0.0, 1.0)
    return p, other, (rng.random(300) < p).astype(int), rng.uniform(0.5, 1.5, 300)


def _variance(value: np.ndarray, weight: np.ndarray, together: Dependence) -> float:
    """Of the weighted mean, by the products of all pairs."""
    part = weight * (value - np.average(value, weights=weight)) / weight.sum()
    apart = np.abs(together.unit[:, None] - together.unit)
    near = np.maximum(1.0 - apart / (together.lags + 1.0), 0.0)
    factor = small_sample_factor(len(np.unique(together.unit)), together.lags)
    return float(part @ near @ part) * factor


@pytest.mark.parametrize("threshold", [0.0001, 0.2, 0.55, 0.9999])
def test_products_of_cells_give_the_variance_of_all_pairs(together: Dependence, threshold: float):
    p, _, hit, weight = _rows()
    counts = decision_counts(p, hit, sample_weight=RowDesign(weight, together))
    at, odds = counts.at(threshold), threshold / (1.0 - threshold)
    value = np.where(p >= threshold, np.where(hit == 1, 1.0, -odds), 0.0)
    of_cells = np.array([1.0, -odds, 0.0, 0.0]) - np.average(value, weights=weight)
    found = counts.together.variance(np.tile(of_cells[:, None], (1, STEPS - 1)))[at]
    assert found / weight.sum() ** 2 == pytest.approx(_variance(value, weight, together))


def test_bands_are_as_wide_as_clusters_make_them(together: Dependence):
    p, other, hit, _ = _rows()
    weight = np.ones(300)
    for one, design in (("alone", None), ("together", RowDesign(None, together))):
        counts = decision_counts(p, hit, sample_weight=design)
        at, odds = counts.at(0.4), 0.4 / 0.6
        value = np.where(p >= 0.4, np.where(hit == 1, 1.0, -odds), 0.0)
        than = np.where(other >= 0.4, np.where(hit == 1, 1.0, -odds), 0.0)
        variance = {
            "alone": value.var(ddof=1) / 300,
            "together": _variance(value, weight, together),
        }[one]
        reach = 1.96 if counts.together is None else counts.together.reach(0.95)
        band = net_benefit(counts)
        # four rows at the ends of the range are added
        half = (band.high[at] - band.low[at]) / 2.0
        assert half == pytest.approx(reach * variance**0.5, rel=0.05)
        paired = paired_net_benefit(p, other, hit, sample_weight=design)
        assert paired.value[at] == pytest.approx((value - than).mean())
        gain = gain_over_all(counts)
        assert gain.low[at] <= gain.value[at] <= gain.high[at]


def test_rows_repeated_in_their_cluster_and_clusters_of_one_row():
    p, other, hit, _ = _rows()
    single = RowDesign(None, Dependence.of("cluster", np.arange(300)[::-1]))
    four = np.repeat(np.arange(300), 4)
    repeated = RowDesign(None, Dependence.of("cluster", four))
    once = decision_counts(p, hit)
    assert decision_counts(p, hit, sample_weight=single).together is None
    more = decision_counts(p[four], hit[four], sample_weight=repeated)
    ours, theirs = net_benefit(once), net_benefit(more)
    assert theirs.low[2000:6000] == pytest.approx(ours.low[2000:6000], abs=0.02)
    rates = zip(decision_rates(once, 0.3), decision_rates(more, 0.3), strict=True)
    for one, two in rates:
        assert (two.low, two.high) == pytest.approx((one.low, one.high), abs=2e-3)
    paired = (
        paired_net_benefit(p, other, hit),
        paired_net_benefit(p[four], other[four], hit[four], sample_weight=repeated),
    )
    assert paired[1].low[4000] == pytest.approx(paired[0].low[4000], abs=0.03)
    costs = Costs(false_negative=3.0)
    wide, narrow = (
        best_threshold(one, costs) for one in (more, decision_counts(p[four], hit[four]))
    )
    assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_effect_of_a_share_is_that_of_its_rows():
    rng = np.random.default_rng(1)
    unit = np.repeat(np.arange(30), 10)
    p = rng.random(300)
    hit = (np.repeat(rng.random(30), 10) < p).astype(int)
    together = Dependence.of("cluster", unit)
    counts = decision_counts(p, hit, sample_weight=RowDesign(None, together))
    flagged = next(one for one in decision_rates(counts, 0.5) if one.label == "Flagged")
    share = (p >= 0.5).mean()
    rows = 300 / design_effect((p >= 0.5) - share, np.ones(300), together)
    assert flagged.n == pytest.approx(rows, rel=0.02, abs=1.0)
    right = next(
        one for one in decision_rates(counts, 0.5) if one.label == "Positive predictive value"
    )
    some = p >= 0.5
    mine = together.only(some)
    rows = some.sum() / design_effect(hit[some] - hit[some].mean(), np.ones(some.sum()), mine)
    assert right.n == pytest.approx(rows, rel=0.02, abs=1.0)


def test_one_cluster_leaves_every_rate_possible():
    p, _, hit, _ = _rows()
    one = RowDesign(None, Dependence.of("cluster", np.r_[np.zeros(299), 1]).only(np.arange(299)))
    counts = decision_counts(p[:299], hit[:299], sample_weight=one)
    band = net_benefit(counts)
    assert not np.isnan(band.low).any()
    assert all(each.low <= each.value <= each.high for each in decision_rates(counts, 0.5))


def test_rates_say_that_their_rows_are_effective_ones(together: Dependence):
    p, _, hit, weight = _rows()
    (plain, *_) = decision_rates(decision_counts(p, hit), 0.4)
    assert rows_text(plain) == f"{hit.sum()} rows"
    for design in (RowDesign(None, together), weight):
        (found, *_) = decision_rates(decision_counts(p, hit, sample_weight=design), 0.4)
        assert rows_text(found) == f"{found.n} effective rows"
        assert found.n < plain.n
