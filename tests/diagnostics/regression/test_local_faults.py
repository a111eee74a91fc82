"""Regions, columns and neighbourhoods, and the sentences at the heads of the pages."""

import numpy as np
import pytest
from scipy import stats

from kdcal_core.diagnostics import (
    column_regions,
    coverage,
    coverage_finding,
    fault,
    local_finding,
    local_pit,
    neighbourhoods,
    pit_by_column,
    pit_by_region,
    regions_finding,
    regression_findings,
)
from kdcal_core.diagnostics.regression.local_faults import holm
from kdcal_core.distributions import Normal
from kdcal_core.errors import InputError
from kdcal_core.simulation import heteroscedastic


@pytest.fixture(scope="module")
def line():
    """Torres et al.'s misspecified line: x, the statements and the outcomes of 6,000 rows."""
    drawn = heteroscedastic(6000, seed=0)
    x = drawn.X[:, 0]
    return x, Normal(-460.0 + 110.0 * x, 384.4), drawn.y


def test_opposite_local_faults_hide_behind_good_coverage(line, texts):
    x, states, y = line
    pit = states.cdf(y)
    found = pit_by_column(pit, x, bins=6, distribution=states, y=y)
    assert len(found) == 6
    assert sum(region.n for region in found) == 6000
    kinds = [region.fault.kind for region in found]
    # the line misses on the low side at both ends, its spread is too wide left, too narrow right
    assert "too wide" in kinds
    assert "too narrow" in kinds or "too low" in kinds
    held = [region.coverage.coverage.value for region in found]
    assert min(held) < 0.87
    assert max(held) == pytest.approx(1.0, abs=0.005)
    total = coverage(states, y).at(0.95)
    head = regression_findings(coverage(states, y), fault(pit), regions=found)
    assert head[0] == coverage_finding(total)
    assert "hold 93." in head[0] or "hold 94." in head[0]
    texts(head)


def test_holm_against_its_definition():
    p = np.random.default_rng(0).random(9) ** 3
    order = np.argsort(p)
    running, wanted = 0.0, np.empty(9)
    for i, j in enumerate(order):
        running = max(running, min(1.0, (9 - i) * p[j]))
        wanted[j] = running
    assert holm(p) == pytest.approx(wanted)


def test_calibrated_regions_are_rarely_accused():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 60)
    named = [
        any(r.fault.kind != "none" for r in pit_by_region(rng.random(600), labels))
        for _ in range(250)
    ]
    assert np.mean(named) < 0.09  # at most 5%, plus three standard errors
    assert "None of 10 regions" in regions_finding(pit_by_region(rng.random(600), labels))


def test_regions_carry_their_own_rows():
    pit = np.random.default_rng(1).random(300)
    labels = np.where(np.arange(300) < 100, 2, 0)
    labels[250:] = -1
    first, second = pit_by_region(pit, labels, ("a", "unused", "c"))
    assert (first.name, first.n, second.name, second.n) == ("a", 150, "c", 100)
    assert first.share + second.share == pytest.approx(250 / 300)
    assert second.tests[0].p_value == pytest.approx(stats.kstest(pit[:100], "uniform").pvalue)
    assert second.pit.counts.sum() == 100
    assert first.coverage is None
    assert first.fault.p_value == first.adjusted_p


def test_columns_are_cut_without_parting_ties():
    labels, names = column_regions([1.0] * 50 + [2.0] * 10 + list(range(3, 43)), bins=4)
    assert names[0] == "1"
    assert np.bincount(labels).sum() == 100
    assert np.bincount(labels).min() > 0
    few, shown = column_regions([0, 1, 0, 1, 1], bins=5)
    assert few.tolist() == [0, 1, 0, 1, 1]
    assert shown == ["0", "1"]
    only, shown = column_regions([7.0, 7.0, np.nan], bins=3)
    assert only.tolist() == [0, 0, 1]
    assert shown == ["7", "missing"]


def test_text_columns_pool_rare_levels():
    text = ["a"] * 20 + ["b"] * 10 + ["rare"] + [None] * 3 + ["all others"] * 2
    labels, names = column_regions(text)
    assert names == ["a", "b", "all others", "missing"]
    assert np.bincount(labels).tolist() == [20, 10, 3, 3]
    flags, shown = column_regions([True] * 6 + [False] * 6)
    assert sorted(shown) == ["False", "True"]
    assert np.bincount(flags).tolist() == [6, 6]


def test_neighbourhoods_on_the_map_show_both_faults(line, texts):
    x, states, y = line
    pit = states.cdf(y)
    found = local_pit(pit, x[:, None], np.column_stack([x, y]), 300, centres=40, draws=199)
    assert found.k == 300
    assert np.array_equal(found.xy[:, 0], x[found.rows])
    left = (found.xy[:, 0] > 6) & (found.xy[:, 0] < 7)
    right = found.xy[:, 0] > 17
    middle = (found.xy[:, 0] > 10) & (found.xy[:, 0] < 13)
    assert set(found.kind[middle].tolist()) <= {"too high", "too wide"}
    assert set(found.kind[right].tolist()) <= {"too narrow", "too low"}
    assert np.all(found.adjusted_p[left | right] <= 0.05)
    assert np.all(found.adjusted_p >= found.p_value - 1e-12)
    i = int(np.argmax(found.xy[:, 0]))
    near = np.argsort(np.abs(x - x[found.rows[i]]))[:300]
    assert found.bias[i] == pytest.approx(pit[near].mean() - 0.5, abs=1e-3)
    assert found.spread[i] == pytest.approx(pit[near].std() * 12**0.5 - 1, abs=1e-2)
    words = local_finding(found)
    texts(words)
    assert "partly cancel over all rows" in words


def test_calibrated_maps_are_rarely_accused():
    rng = np.random.default_rng(2)
    hits = 0
    for seed in range(30):
        space = rng.random((300, 2))
        found = local_pit(rng.random(300), space, space, 50, centres=20, draws=99, seed=seed)
        hits += bool(np.any(found.kind != "none"))
    assert hits <= 5  # binomial with 5%: more in 0.4% of tries


def test_neighbourhoods_by_all_distances():
    rng = np.random.default_rng(0)
    space = rng.normal(size=(80, 3)) * [1.0, 100.0, 0.0]
    found = neighbourhoods(space, np.arange(80), 7)
    scaled = space[:, :2] / space[:, :2].std(axis=0)
    distance = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
    wanted = np.sort(np.argsort(distance, axis=1)[:, :7], axis=1)
    assert np.array_equal(np.sort(found, axis=1), wanted)
    assert neighbourhoods(space, [3], 500).shape == (1, 80)


def test_settings_that_do_not_fit_are_refused():
    pit = np.linspace(0.1, 0.9, 20)
    with pytest.raises(InputError, match="names"):
        pit_by_region(pit, np.full(20, 3), ("a",))
    with pytest.raises(InputError, match="region"):
        pit_by_region(pit, np.full(20, -1))
    with pytest.raises(InputError, match="whole number"):
        pit_by_region(pit, np.full(20, 0.5))
    with pytest.raises(InputError, match="coordinates"):
        local_pit(pit, pit, pit)
    with pytest.raises(InputError):
        column_regions([])
