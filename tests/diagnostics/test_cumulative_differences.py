"""Cumulative differences: by their definition, at their level, and with some power."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from kdcal_core.charts import cumulative_chart
from kdcal_core.diagnostics import cumulative_differences
from kdcal_core.diagnostics.cumulative_differences import brownian_range_tail, target_differences
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, RowDesign


def two(p):
    return np.stack([1.0 - p, p], axis=1)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.1, 0.35, 0.6, 1.0]), st.booleans(), st.integers(1, 4)),
        min_size=1,
        max_size=30,
    )
)
def test_the_curve_is_that_of_its_definition(rows):
    p, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = cumulative_differences(two(p), y.astype(int), kind="class", label=1, sample_weight=w)
    expected = [0.0]
    for score in np.unique(p):
        below = p <= score
        expected.append(((p - y) * w)[below].sum() / w.sum())
    np.testing.assert_allclose(found.difference, expected, atol=1e-12)
    np.testing.assert_allclose(found.share[1:], [w[p <= s].sum() / w.sum() for s in np.unique(p)])
    assert found.range == pytest.approx(max(expected) - min(expected))
    assert found.largest == pytest.approx(np.abs(expected).max())
    assert 0.0 < found.p_value <= 1.0
    # no stretch of scores has rows that add up to more
    ends = np.unique(p)
    away = (p - y) * w / w.sum()
    every = [abs(away[(p >= low) & (p <= high)].sum()) for low in ends for high in ends]
    assert found.range == pytest.approx(max(every), abs=1e-12)


def test_whole_weights_draw_the_curve_of_repeated_rows():
    rng = np.random.default_rng(0)
    p, w = rng.uniform(size=80).round(2), rng.integers(1, 5, 80)
    y = (rng.random(80) < p).astype(int)
    one = cumulative_differences(two(p), y, kind="class", label=1, sample_weight=w)
    other = cumulative_differences(two(np.repeat(p, w)), np.repeat(y, w), kind="class", label=1)
    np.testing.assert_allclose(one.difference, other.difference, atol=1e-12)
    assert one.expected > other.expected  # repeated rows would pass for independent ones


def test_calibrated_models_are_accused_at_the_stated_rate_and_faulty_ones_found():
    rng = np.random.default_rng(1)
    calibrated, faulty = [], []
    for seed in range(150):
        p = rng.beta(1.5, 3.0, 200)
        y = (rng.random(200) < p).astype(float)
        too_low = (rng.random(200) < np.minimum(p + 0.12, 1.0)).astype(float)
        for hits, into in ((y, calibrated), (too_low, faulty)):
            into.append(target_differences(confidence_target(p, hits), "class", seed).p_value)
    assert np.mean(np.array(calibrated) <= 0.05) <= 0.105  # 5%, and three standard errors
    assert np.mean(np.array(faulty) <= 0.05) > 0.9


def test_many_rows_are_judged_by_brownian_motion_as_few_are_by_redrawn_outcomes():
    rng = np.random.default_rng(2)
    p = np.sort(rng.uniform(0.02, 0.98, 4_900))
    y = (rng.random(4_900) < p + 0.015).astype(float)
    redrawn = target_differences(confidence_target(p, y), "class")
    again = np.repeat(p, 2)
    more = target_differences(confidence_target(again, np.repeat(y, 2)), "class")
    sigma = np.sqrt((p * (1 - p)).sum()) / len(p)
    assert redrawn.p_value == pytest.approx(brownian_range_tail(redrawn.range / sigma), abs=0.03)
    assert redrawn.expected == pytest.approx(sigma * np.sqrt(8 / np.pi), rel=0.03)
    assert more.p_value == pytest.approx(brownian_range_tail(np.sqrt(2) * more.range / sigma))
    assert len(more.share) <= 402


def test_a_certain_model_that_is_right_has_a_flat_curve():
    p = np.repeat([0.0, 1.0], 20)
    found = cumulative_differences(two(p), p.astype(int), kind="class", label=1)
    assert (found.range, found.p_value, found.expected) == (0.0, 1.0, 0.0)


def test_a_class_that_is_never_predicted_is_refused():
    with pytest.raises(InputError, match="No row is predicted"):
        cumulative_differences(two(np.full(9, 0.2)), [0] * 9, kind="top-label", label=1)


@pytest.mark.parametrize("dark", [False, True])
def test_the_chart_says_where_the_fault_lies(dark):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.0, 1.0, 4000)
    truth = np.where(p > 0.6, p - 0.15, p)
    y = (rng.random(4000) < truth).astype(int)
    found = cumulative_differences(two(p), y, kind="class", label=1)
    chart = cumulative_chart(found, ("no", "<b>yes</b>"), dark=dark)
    assert "probabilities of class <b>yes</b> are too high by 1" in chart.finding
    low = float(chart.finding.split()[1])
    assert low == pytest.approx(0.6, abs=0.1)  # the flat part before it wanders by chance
    assert list(chart.table().columns)[:2] == ["share_of_rows", "stated_up_to"]
    fine = cumulative_differences(two(p), (rng.random(4000) < p).astype(int), kind="confidence")
    words = cumulative_chart(fine, (), dark=dark).finding
    assert words.startswith("No stretch of stated probabilities is off beyond chance")


def in_clusters(seed: int, fault: float = 0.0):
    """40 clusters of ten rows, whose outcomes go together, and p values without and with that."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(40), 10)
    p = rng.uniform(0.1, 0.9, 400)
    z = 0.2**0.5 * rng.normal(size=40)[cluster] + 0.8**0.5 * rng.normal(size=400)
    y = (norm.cdf(z) < p + fault).astype(int)
    design = RowDesign(None, Dependence.of("cluster", cluster))
    return [
        cumulative_differences(two(p), y, kind="class", label=1, sample_weight=weight)
        for weight in (None, design)
    ]


def test_rows_of_one_cluster_count_together() -> None:
    tried = 100
    right = np.array([[one.p_value for one in in_clusters(seed)] for seed in range(tried)])
    plain, together = (right < 0.05).sum(axis=0)
    assert plain > 11  # 99% of a binomial of 100 draws with chance 0.05
    assert together <= 11
    wrong = np.array([in_clusters(seed, 0.1)[1].p_value for seed in range(20)])
    assert (wrong < 0.05).sum() > 12
    one, other = in_clusters(0)
    assert one.range == pytest.approx(other.range)
    assert other.spread[-1] > one.spread[-1]


def test_clusters_of_one_row_are_independent_rows() -> None:
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.9, 600)
    y = (rng.random(600) < p).astype(int)
    design = RowDesign(None, Dependence.of("cluster", np.arange(600)))
    one, other = (
        cumulative_differences(two(p), y, kind="class", label=1, sample_weight=weight)
        for weight in (None, design)
    )
    assert one.p_value == other.p_value
    assert np.array_equal(one.spread, other.spread)


def test_many_times_take_as_many_points_as_few() -> None:
    rng = np.random.default_rng(6)
    p = rng.uniform(0.1, 0.9, 20_000)
    y = (rng.random(20_000) < p).astype(int)
    design = RowDesign(None, Dependence.of("time", np.repeat(np.arange(5_000), 4)))
    found = cumulative_differences(two(p), y, kind="class", label=1, sample_weight=design)
    alone = cumulative_differences(two(p), y, kind="class", label=1)
    assert found.spread[-1] == pytest.approx(alone.spread[-1], rel=0.3)
    assert 0.01 < found.p_value <= 1.0
