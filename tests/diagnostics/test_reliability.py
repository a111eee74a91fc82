"""Reliability diagrams against brute force, scikit-learn and simulation."""

import numpy as np
import pytest
from drawn_rows import draw
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import (
    confidence_reliability,
    reliability,
    reliability_finding,
    score_histogram,
)
from kdcal_core.errors import InputError


def brute_bins(score, hit, weight, edges):
    """Salamon et al., Eq. 5, row by row."""
    rows = []
    for b in range(len(edges) - 1):
        inside = [
            i
            for i in range(len(score))
            if score[i] <= edges[b + 1] and (score[i] > edges[b] or b == 0)
        ]
        mass = sum(weight[i] for i in inside)
        rows.append(
            (
                len(inside),
                mass,
                sum(weight[i] * score[i] for i in inside) / mass if inside else np.nan,
                sum(weight[i] * hit[i] for i in inside) / mass if inside else np.nan,
            )
        )
    return np.array(rows).T


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 80),
    st.integers(2, 5),
    st.integers(0, 999),
    st.sampled_from(["confidence", "top-label", "class"]),
    st.sampled_from(["uniform", "quantile"]),
    st.booleans(),
)
def test_bins_are_the_brute_force_sums(n, n_classes, seed, kind, strategy, weighted):
    proba, y = draw(n, n_classes, seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, n) if weighted else np.ones(n)
    result = reliability(
        proba, y, kind=kind, n_bins=7, strategy=strategy, sample_weight=weight, smooth=False
    )
    top = proba.argmax(axis=1)
    for curve in result.curves:
        if kind == "class":
            rows, score, hit = np.arange(n), proba[:, curve.label], y == curve.label
        else:
            rows = np.arange(n) if curve.label is None else np.flatnonzero(top == curve.label)
            score, hit = proba.max(axis=1), top == y
        expected = brute_bins(score[rows], hit[rows], weight[rows], curve.edges)
        got = (curve.count, curve.weight, curve.confidence, curve.accuracy)
        np.testing.assert_allclose(got, expected, rtol=1e-9)
        assert curve.count.sum() == curve.n == len(rows)


def test_the_curve_is_scikit_learns():
    proba, y = draw(3000, 2, 1)
    curve = reliability(proba, y, kind="class", label=1, n_bins=10).curves[0]
    rate, mean = calibration_curve(y, proba[:, 1], n_bins=10)
    np.testing.assert_allclose(curve.accuracy[curve.count > 0], rate)
    np.testing.assert_allclose(curve.confidence[curve.count > 0], mean)


def test_intervals_are_clopper_pearsons():
    hits, n = 7, 10
    result = confidence_reliability([0.9] * n, [1] * hits + [0] * (n - hits), n_bins=1)
    curve = result.curves[0]
    assert curve.low[0] == pytest.approx(beta.ppf(0.025, hits, n - hits + 1))
    assert curve.high[0] == pytest.approx(beta.ppf(0.975, hits + 1, n - hits))


@pytest.mark.parametrize(("hit", "side"), [(1, "low"), (0, "high")])
def test_a_pure_bin_keeps_a_wide_interval(hit, side):
    curve = confidence_reliability([0.9] * 5, [hit] * 5, n_bins=1).curves[0]
    assert getattr(curve, side)[0] == pytest.approx(abs((1 - hit) - 0.025 ** (1 / 5)))
    assert curve.accuracy[0] == hit


def test_the_band_of_equal_scores_is_the_binomials():
    n, p = 40, 0.97
    curve = confidence_reliability([p] * n, [1] * n, n_bins=10).curves[0]
    low, high = binom.ppf([0.025, 0.975], n, p) / n
    assert curve.band_high[9] == high == 1.0
    assert abs(curve.band_low[9] - low) <= 1.01 / n


@pytest.mark.parametrize("n", [60, 600])
def test_the_band_holds_a_calibrated_models_frequencies(n):
    """Scores near 1, few misses: exactly where a normal band would fail."""
    rng = np.random.default_rng(5)
    score = 1.0 - 0.5 * rng.beta(0.4, 4.0, n)
    curve = confidence_reliability(score, np.ones(n, int), n_bins=10, smooth=False).curves[0]
    filled = np.flatnonzero(curve.count > 0)
    inside, trials = np.zeros(len(filled)), 2000
    place = np.searchsorted(curve.edges[1:-1], score)
    for _ in range(trials):
        hit = rng.random(n) < score
        rate = np.bincount(place, hit, 10)[filled] / curve.count[filled]
        low, high = curve.band_low[filled] - 1e-12, curve.band_high[filled] + 1e-12
        inside += (rate >= low) & (rate <= high)
    assert np.all(inside / trials > 0.93)
    # and it is no wider than it must be: a bin of many rows holds about the level
    assert inside[-1] / trials < 0.99


def test_weights_that_repeat_rows_move_no_bin():
    proba, y = draw(200, 3, 2)
    times = np.random.default_rng(0).integers(1, 4, 200)
    weighted = reliability(proba, y, sample_weight=times).curves[0]
    repeated = reliability(np.repeat(proba, times, axis=0), np.repeat(y, times)).curves[0]
    np.testing.assert_allclose(weighted.confidence, repeated.confidence)
    np.testing.assert_allclose(weighted.accuracy, repeated.accuracy)
    np.testing.assert_allclose(weighted.isotonic_y, repeated.isotonic_y)
    # but repeated rows would be worth more than they are
    assert np.nanmean(weighted.high - weighted.low) > np.nanmean(repeated.high - repeated.low)


def test_the_isotonic_curve_is_scikit_learns():
    proba, y = draw(400, 2, 3)
    score, hit = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(float)
    curve = reliability(proba, y).curves[0]
    fitted = IsotonicRegression().fit(score, hit).predict(curve.isotonic_x)
    np.testing.assert_allclose(curve.isotonic_y, fitted, atol=1e-12)
    assert np.all(np.diff(curve.isotonic_y) >= 0)


def test_large_isotonic_curves_stay_small_and_close():
    proba, y = draw(30_000, 2, 4)
    score, hit = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(float)
    curve = reliability(proba, y).curves[0]
    assert len(curve.isotonic_x) <= 2000
    exact = IsotonicRegression(out_of_bounds="clip").fit(score, hit)
    grid = np.linspace(0.55, 0.95, 50)
    steps = np.interp(grid, curve.isotonic_x, curve.isotonic_y)
    assert np.abs(steps - exact.predict(grid)).mean() < 0.01


def test_the_smooth_curve_of_a_calibrated_model_lies_on_the_diagonal():
    proba, y = draw(50_000, 3, 5)
    curve = reliability(proba, y).curves[0]
    inside = (curve.smooth_low <= curve.smooth_x) & (curve.smooth_x <= curve.smooth_high)
    assert inside.mean() > 0.8
    assert np.abs(curve.smooth_y - curve.smooth_x)[curve.smooth_x > 0.5].max() < 0.03
    assert curve.smooth_x[0] == pytest.approx(proba.max(axis=1).min(), abs=0.001)
    assert curve.smooth_x[-1] == pytest.approx(proba.max(axis=1).max(), abs=0.001)


def test_the_smooth_curve_is_the_kernel_mean_of_the_gaps():
    proba, y = draw(60, 2, 6)
    curve = reliability(proba, y).curves[0]
    score, hit = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(float)
    least = max(1.06 * score.std() * 60**-0.2, 0.02)
    for i in (0, 77, 200):
        h = max(least, reach(curve.smooth_x[i], score, 0.25))  # of fewer than 80 rows a quarter
        k = np.exp(-0.5 * ((curve.smooth_x[i] - score) / h) ** 2)
        gap = (k * (hit - score)).sum() / k.sum()
        assert curve.smooth_y[i] == pytest.approx(np.clip(curve.smooth_x[i] + gap, 0, 1), abs=2e-4)


def reach(x: float, score: FloatArray, share: float) -> float:
    """The distance within which a share of the rows lies, each half below and half above itself."""
    ordered = np.sort(score)
    below = (np.arange(len(score)) + 0.5) / len(score)
    distance = np.linspace(0.0, np.ptp(score), 20_001)
    inside = np.interp(x + distance, ordered, below, right=1.0)
    inside -= np.interp(x - distance, ordered, below, left=0.0)
    return float(distance[np.argmax(inside >= share)])


def test_the_smooth_curve_does_not_run_from_row_to_row_where_there_are_few() -> None:
    rng = np.random.default_rng(8)
    off, held = [], []
    for _ in range(20):
        score = rng.beta(1, 12, 2000)  # a rare event
        curve = confidence_reliability(score, (rng.random(2000) < score).astype(int)).curves[0]
        few = curve.smooth_x > np.sort(score)[-30]
        off.append(np.abs(curve.smooth_y - curve.smooth_x)[few].mean())
        inside = (curve.smooth_low <= curve.smooth_x) & (curve.smooth_x <= curve.smooth_high)
        held.append(inside.mean())
    assert np.mean(off) < 0.08  # with one bandwidth 0.17
    assert np.mean(held) > 0.9


def test_a_wide_empty_stretch_stays_finite_and_looks_thin():
    score = np.r_[np.zeros(500), np.ones(500)]
    curve = confidence_reliability(score, np.r_[np.zeros(500), np.ones(500)].astype(int)).curves[0]
    for line in (curve.smooth_y, curve.smooth_low, curve.smooth_high):
        assert np.all((line >= 0) & (line <= 1))


def test_a_class_that_is_never_predicted_has_an_empty_curve():
    result = reliability([[0.9, 0.1], [0.8, 0.2]], [0, 1], kind="top-label")
    assert result.curves[1].n == 0
    assert result.curves[1].count.sum() == 0
    assert np.all(np.isnan(result.curves[1].accuracy))
    assert len(result.curves[1].smooth_x) == 0
    quantile = reliability([[0.9, 0.1]], [0], kind="top-label", strategy="quantile")
    assert quantile.curves[1].edges.tolist() == [0.0, 1.0]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1e-300, 0.1, 0.3, 1 - 1e-16, 1.0]), st.integers(0, 1)),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["uniform", "quantile"]),
    st.integers(1, 15),
)
def test_exact_zeros_ones_and_ties_keep_every_limit_in_order(rows, strategy, n_bins):
    score, hit = zip(*rows, strict=True)
    curve = confidence_reliability(score, hit, strategy=strategy, n_bins=n_bins).curves[0]
    some = curve.count > 0
    assert curve.count.sum() == len(rows)
    assert np.all(curve.low[some] <= curve.accuracy[some])
    assert np.all(curve.accuracy[some] <= curve.high[some])
    assert np.all(curve.band_low[some] <= curve.band_high[some])
    assert np.all((curve.smooth_low <= curve.smooth_y) & (curve.smooth_y <= curve.smooth_high))


def test_the_same_seed_gives_the_same_band():
    proba, y = draw(300, 4, 7)
    first, second = (reliability(proba, y, seed=3).curves[0] for _ in range(2))
    np.testing.assert_array_equal(first.band_low, second.band_low)


def test_thirty_classes():
    proba, y = draw(400, 30, 8)
    assert len(reliability(proba, y, kind="class").curves) == 30
    assert reliability(proba, y, kind="class", label=29).curves[0].label == 29


def test_the_histogram_counts_every_row_once():
    proba, y = draw(500, 3, 9)
    whole = score_histogram(proba, y)
    assert (whole.correct + whole.wrong).sum() == 500
    assert whole.correct.sum() == (proba.argmax(axis=1) == y).sum()
    parts = [score_histogram(proba, y, kind="top-label", label=k) for k in range(3)]
    np.testing.assert_array_equal(sum(p.wrong for p in parts), whole.wrong)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"kind": "classwise"}, "kind"),
        ({"strategy": "mass"}, "strategy"),
        ({"level": 95}, "level"),
        ({"n_bins": 0}, "number of bins"),
        ({"label": 0}, "label"),
        ({"kind": "class", "label": 9}, "label"),
        ({"sample_weight": [1.0, -1.0]}, "weight"),
    ],
)
def test_senseless_settings_are_refused(settings_, message):
    with pytest.raises(InputError, match=message):
        reliability([[0.9, 0.1], [0.2, 0.8]], [0, 1], **settings_)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf])
def test_a_bad_confidence_names_its_row(bad):
    with pytest.raises(InputError, match="row 2"):
        confidence_reliability([0.5, bad], [1, 0])


def test_lengths_must_agree():
    with pytest.raises(InputError, match="3"):
        confidence_reliability([0.5, 0.5], [1, 0, 1])
    with pytest.raises(InputError, match="class"):
        score_histogram([[0.9, 0.1]], [0], kind="class")


def test_weighted_bands_stay_within_zero_and_one():
    rng = np.random.default_rng(0)
    for _ in range(20):
        score = rng.beta(4.0, 1.0, 60)
        hit = (rng.random(60) < score).astype(int)
        weight = np.exp(4.0 * rng.normal(size=60))
        (curve,) = confidence_reliability(score, hit, sample_weight=weight, smooth=False).curves
        assert np.nanmax(curve.band_high) <= 1.0
        assert np.nanmin(curve.band_low) >= 0.0


def test_a_gap_beyond_chance_by_itself_is_said_where_the_joint_test_finds_nothing() -> None:
    """The interval of the gap, which stands beside the sentence, then excludes 0."""
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.5, 1.0, 150)
    right = (rng.random(150) < confidence - 0.07).astype(int)
    said = reliability_finding(confidence_reliability(confidence, right, n_bins=10))
    assert said.endswith("on these 150 rows, though their mean gap alone exceeds it.")
