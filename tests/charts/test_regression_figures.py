"""Regression pictures: right places, few marks, harmless names, faults distinct for everyone."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
from scipy.stats import binom, norm

from kdcal_core import charts
from kdcal_core.charts import local_map, pit, recalibration
from kdcal_core.charts.coverage import (
    coverage_by_figure,
    coverage_figure,
    quantile_reliability_figure,
)
from kdcal_core.charts.local_map import local_map_figure
from kdcal_core.charts.palette import TRANSPARENT, palette
from kdcal_core.charts.pit import ecdf_figure, pit_figure, pit_table
from kdcal_core.charts.predictive_density import predictive_density_figure
from kdcal_core.charts.recalibrated_rows import (
    intervals_figure,
    misses_figure,
    misses_table,
    truth_figure,
    truth_table,
)
from kdcal_core.charts.recalibration import (
    SelectionCurve,
    neighbour_selection_figure,
    recalibration_differences_figure,
    recalibration_measures_figure,
)
from kdcal_core.diagnostics import (
    Estimate,
    coverage,
    density_curve,
    estimate_text,
    fault,
    local_pit,
    misses_of,
)
from kdcal_core.diagnostics.regression.coverage import Coverage, CoverageRow
from kdcal_core.diagnostics.regression.distribution_scores import RegressionScores
from kdcal_core.diagnostics.regression.local_pit import LocalPit
from kdcal_core.diagnostics.regression.pit_curves import (
    EcdfDifference,
    PitHistogram,
    QuantileReliability,
)
from kdcal_core.distributions import Empirical, Gamma, Normal, RegressionSet
from kdcal_core.evaluation import MEASURES, Space, judge_recalibrators
from kdcal_core.regression import RECALIBRATORS

HOSTILE = "<img src=x onerror=alert(1)>"
MAX_MARKS = 5000
KINDS = ("none", "too low", "too high", "too narrow", "too wide", "other")


def histogram(pit: np.ndarray, bins: int = 20) -> PitHistogram:
    edges = np.linspace(0, 1, bins + 1)
    low, high = binom.ppf([0.001, 0.999], pit.size, 1 / bins)
    counts = np.histogram(pit, edges)[0].astype(float)
    band = np.full(bins, low), np.full(bins, high)
    return PitHistogram(edges, counts, *band, pit.size, float(pit.size), 0.95, "simultaneous")


def ecdf(pit: np.ndarray) -> EcdfDifference:
    levels = np.linspace(0, 1, 1500)
    found = np.searchsorted(np.sort(pit), levels, side="right") / pit.size - levels
    band = np.full(levels.size, 1.36 / np.sqrt(pit.size))
    return EcdfDifference(levels, found, -band, band, pit.size, float(pit.size), 0.95)


def reliability(pit: np.ndarray) -> QuantileReliability:
    levels = np.linspace(0.05, 0.95, 19)
    seen = (pit[:, None] <= levels).mean(axis=0)
    ends = np.clip(seen - 0.02, 0, 1), np.clip(seen + 0.02, 0, 1)
    band = levels - 0.03, levels + 0.03
    return QuantileReliability(levels, seen, *ends, *band, pit.size, float(pit.size), 0.95)


def estimate(value: float, n: int = 100, *, percent: bool = False) -> Estimate:
    return Estimate("Full name", "Name", value, value - 0.02, value + 0.02, n, percent=percent)


def row(value: float, level: float = 0.95, n: int = 100) -> CoverageRow:
    other = estimate(1.0, n)
    return CoverageRow(level, estimate(value, n, percent=True), other, other, None)


def local(n: int = 9000, seed: int = 0) -> LocalPit:
    rng = np.random.default_rng(seed)
    kind = np.array(KINDS)[rng.integers(0, 6, n)]
    rows = rng.permutation(10 * n)[:n]
    size = rng.uniform(-0.4, 0.4, n)
    p = np.where(kind == "none", 0.6, 0.001)
    return LocalPit(
        rng.normal(size=(n, 2)), rows, size, size, np.full(n, 0.9), p, p, kind, 50, n, 0.95, 99, 0
    )


def measured(key: str, infinite: bool = False) -> charts.MeasuredRecalibration:
    rows = {name: estimate(1.0) for name in MEASURES if MEASURES[name].family == "distribution"}
    rows["coverage95"] = estimate(0.9, percent=True)
    if infinite:
        rows["log_score"] = Estimate("Log score", "Log score", np.inf, np.nan, np.nan, 100)
    changes = {} if key == "model" else {"crps": estimate(-0.1)}
    return charts.MeasuredRecalibration(
        key, f"{key} {HOSTILE}", RegressionScores(key, rows, 9), changes
    )


METHODS = ("model", *RECALIBRATORS, "truth")


def draw(
    n: int, scale: float = 1.0, *, constant: bool = False, dark: bool = False
) -> dict[str, go.Figure]:
    rng = np.random.default_rng(1)
    x = np.full(n, 3.0) if constant else rng.uniform(2, 20, n)
    mean, std = scale * (10 + 5 * x**2), scale * 30 * x
    y = np.full(n, scale * 7.0) if constant else rng.normal(mean, std)
    line, spread = scale * (-460 + 110 * x), np.full(n, scale * 384.0)
    pit, fair = norm.cdf(y, line, spread), norm.cdf(y, mean, std)
    one, two = histogram(pit), histogram(fair)
    at = n // 2
    xy = np.column_stack([x, y])
    ring = charts.PickedNeighbourhood(HOSTILE, (x[0], y[0]), xy)
    panels = [charts.PitPanel(HOSTILE, one, kind) for kind in KINDS]
    sides = [
        misses_of(HOSTILE, y, line - 1.96 * spread, line + 1.96 * spread),
        misses_of("After", y, mean - 1.96 * std, mean + 1.96 * std),
    ]
    curves = (
        density_curve(Normal(line[[at]], spread[[at]]), float(y[at])),
        density_curve(
            Empirical(rng.normal(mean[at], std[at], (1, 500))), float(y[at]), "calibrated"
        ),
    )
    levels = tuple(row(0.9, level, n) for level in (0.5, 0.8, 0.95))
    moments = [
        charts.Moments("model", HOSTILE, line, spread),
        charts.Moments("local", "Local", mean, std),
    ]
    shown = [
        charts.RowIntervals("model", HOSTILE, line - spread, line, line + spread),
        charts.RowIntervals("local", "Local", mean - std, mean, mean + std),
    ]
    ks = np.array([10.0, 100.0])
    curve = SelectionCurve(HOSTILE, ks, scale * ks, scale * ks * 0.9, scale * ks * 1.1)
    methods = [measured(key, infinite=key == "model") for key in METHODS]
    titles = {"dark": dark, "x_title": HOSTILE, "y_title": HOSTILE}
    return {
        "pit": pit_figure(one, dark=dark, kind="too low"),
        "panels": charts.pit_panels(panels, dark=dark),
        "ecdf": ecdf_figure(ecdf(pit), dark=dark),
        "map": local_map_figure(local(), picked=[ring, ring], identity=True, **titles),
        "misses": misses_figure(xy, sides, **titles),
        "coverage_by": coverage_by_figure(
            [HOSTILE, "b"],
            [row(0.8, n=3), row(1.0)],
            dark=dark,
            column=HOSTILE,
            after=[row(0.95), row(0.0)],
            after_name=HOSTILE,
        ),
        "coverage": coverage_figure(Coverage(levels, n, 1.0), dark=dark),
        "density": predictive_density_figure(
            [charts.DensityPanel(HOSTILE, float(y[at]), curves)], dark=dark, y_title=HOSTILE
        ),
        "quantiles": quantile_reliability_figure(
            reliability(pit), dark=dark, after=reliability(fair), after_name=HOSTILE
        ),
        "measures": recalibration_measures_figure(methods, dark=dark),
        "differences": recalibration_differences_figure(methods, dark=dark),
        "truth": truth_figure(charts.Moments("truth", "Truth", mean, std), moments, dark=dark),
        "intervals": intervals_figure([HOSTILE] * n, y, shown, dark=dark, y_title=HOSTILE),
        "selection": neighbour_selection_figure(
            [curve], dark=dark, chosen=(HOSTILE, 100), model=estimate(50.0 * scale)
        ),
        "two": charts.pit_panels([charts.PitPanel("All", two, who="local")], dark=dark),
    }


def marks(figure: go.Figure) -> int:
    return sum(np.size(trace.x) for trace in figure.data)


@pytest.mark.parametrize("dark", [False, True])
def test_few_marks_and_no_name_as_html(dark: bool) -> None:
    for name, figure in draw(20_000, dark=dark).items():
        assert 0 < marks(figure) <= MAX_MARKS, name
        assert "<img" not in figure.to_json().replace("\\u003c", "<"), name
        layout, ground = figure.layout.template.layout, palette(True).page if dark else TRANSPARENT
        assert (layout.paper_bgcolor, layout.plot_bgcolor) == (TRANSPARENT, ground), name


@pytest.mark.parametrize(
    ("n", "scale", "constant"),
    [(1, 1.0, False), (5, 1.0, False), (60, 1e12, False), (60, 1.0, True)],
)
def test_extreme_data_are_drawn_with_finite_axes(n: int, scale: float, constant: bool) -> None:
    for name, figure in draw(n, scale, constant=constant).items():
        layout = figure.to_plotly_json()["layout"]
        for key, axis in layout.items():
            if key[1:5] == "axis" and "range" in axis:
                assert np.isfinite(np.asarray(axis["range"], dtype=float)).all(), (name, key)
                assert axis["range"][0] != axis["range"][1], (name, key)


def test_pit_bars_have_height_1_where_uniform_and_all_rows_are_there() -> None:
    pit = (np.arange(200) + 0.5) / 200
    bars, *_ = pit_figure(histogram(pit, 10), dark=False).data
    np.testing.assert_allclose(bars.y, 1.0)
    assert bars.customdata[:, 2].sum() == 200
    np.testing.assert_allclose((bars.y * bars.width).sum(), 1.0)


def test_bars_outside_the_band_are_strong_and_have_the_colour_of_the_fault() -> None:
    shown = histogram(np.r_[np.full(500, 0.97), np.linspace(0.01, 0.99, 500)])
    bars, *_ = pit_figure(shown, dark=False, kind="too low").data
    strong = np.array(["0.9)" in colour for colour in bars.marker.color])
    np.testing.assert_array_equal(strong, shown.outside != 0)
    assert bars.marker.line.color == palette(False).too_low


def test_panels_share_one_scale_that_holds_every_bar_and_band() -> None:
    panels = [
        charts.PitPanel("a", histogram(np.full(9, 0.5))),
        charts.PitPanel("b", histogram(np.linspace(0, 1, 500))),
    ]
    figure = charts.pit_panels(panels, dark=False)
    assert figure.layout.yaxis2.matches == "y"
    top = figure.layout.yaxis.range[1]
    for shown in panels:
        assert shown.histogram.density.max() < top
        assert shown.histogram.density_band[1].max() < top


def test_the_map_gives_back_rows_and_marks_each_kind_by_colour_and_symbol() -> None:
    result = local(400)
    figure = local_map_figure(result, dark=False, x_title="a", y_title="b")
    drawn = np.concatenate([trace.customdata[:, 0] for trace in figure.data]).astype(int)
    np.testing.assert_array_equal(np.sort(drawn), np.sort(result.rows))
    symbols = [trace.marker.symbol for trace in figure.data]
    assert len(set(symbols)) == len(symbols) == 6
    assert figure.layout.dragmode == "select"
    low = next(trace for trace in figure.data if trace.marker.symbol == "triangle-down")
    mine = result.rows[result.kind == "too low"]
    np.testing.assert_array_equal(np.sort(low.customdata[:, 0]), np.sort(mine))
    bias = dict(zip(result.rows, result.bias, strict=True))
    order = np.argsort([abs(bias[row]) for row in low.customdata[:, 0]])
    assert (np.diff(np.asarray(low.marker.size)[order]) >= 0).all()


def test_misses_draw_the_same_rows_before_and_after_in_their_true_shares() -> None:
    rng = np.random.default_rng(3)
    n = 200_000
    y, xy = rng.normal(size=n), rng.normal(size=(n, 2))
    wide, tight = np.full(n, 1.96), np.full(n, 1.0)
    sides = [
        misses_of("before", y, -tight, tight),
        misses_of("after", y, -wide, wide),
    ]
    figure = misses_figure(xy, sides, dark=False, x_title="a", y_title="b")
    drawn = [
        np.sort(np.concatenate([t.customdata for t in figure.data if t.xaxis == axis]))
        for axis in ("x", "x2")
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    for side, axis in zip(sides, ("x", "x2"), strict=True):
        missed = sum(
            np.size(t.x) for t in figure.data if t.xaxis == axis and "triangle" in t.marker.symbol
        )
        assert missed / drawn[0].size == pytest.approx(side.share, abs=0.03)
    said = [note.text for note in figure.layout.annotations]
    assert any(f"{drawn[0].size:,} of 200,000 rows" in text for text in said)
    assert any(f"{int((np.abs(y) > 1.96).sum()):,} of 200,000 missed" in text for text in said)


def test_equal_estimates_do_not_hide_each_other_and_lie_below_their_titles() -> None:
    mean = np.arange(9.0)
    truth, *both = (charts.Moments(key, key, mean, mean) for key in ("truth", "model", "global"))
    figure = truth_figure(truth, both, dark=False)
    below, above = (
        trace for trace in figure.data if trace.xaxis == "x" and trace.mode == "markers"
    )
    assert below.name == "model"
    assert below.marker.size > above.marker.size
    assert {figure.layout[each].constraintoward for each in ("yaxis", "yaxis2")} == {"top"}


def test_a_triangle_points_to_the_side_of_the_outcome() -> None:
    y = np.array([-5.0, 0.0, 5.0])
    side = misses_of("m", y, np.full(3, -1.0), np.full(3, 1.0))
    figure = misses_figure(np.column_stack([y, y]), [side], dark=False, x_title="a", y_title="b")
    found = {trace.marker.symbol: list(trace.customdata) for trace in figure.data}
    assert found == {"circle": [2], "triangle-up": [3], "triangle-down": [1]}


@pytest.mark.parametrize(
    "distribution",
    [Normal(np.array([3.0]), np.array([2.0])), Gamma(np.array([9.0]), np.array([20.0]))],
)
def test_a_density_is_that_of_the_distribution_and_a_smoothed_one_near_it(distribution) -> None:
    curve = density_curve(distribution, 4.0)
    assert np.trapezoid(curve.density, curve.y) == pytest.approx(1.0, abs=0.003)
    assert curve.pit == pytest.approx(float(distribution.cdf(4.0)[0]))
    many = Empirical(distribution.sample(20_000, 0))
    smooth = density_curve(many, 4.0)
    assert smooth.smoothed
    assert not curve.smoothed
    assert np.trapezoid(smooth.density, smooth.y) == pytest.approx(1.0, abs=0.01)
    there = np.interp(curve.y, smooth.y, smooth.density, left=0, right=0)
    assert np.abs(there - curve.density).max() < 0.08 * curve.density.max()


def test_identical_samples_are_a_narrow_spike_and_not_an_error() -> None:
    curve = density_curve(Empirical(np.full((1, 50), 1e12)), 0.0)
    assert np.isfinite(curve.density).all()
    assert np.trapezoid(curve.density, curve.y) == pytest.approx(1.0, abs=0.01)


def test_coverage_points_and_bars_are_the_estimates() -> None:
    rows = [row(0.8, n=3), row(0.97, n=500)]
    figure = coverage_by_figure(["a", "b"], rows, dark=False, column="c")
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in points) == 2
    strong, pale = points
    assert strong.opacity > pale.opacity
    np.testing.assert_allclose(strong.y, 0.97)
    np.testing.assert_allclose(strong.y + strong.error_y.array, 0.99)
    assert figure.layout.yaxis.range[0] < 0.8


def test_an_infinite_score_has_no_dot_and_the_others_stay() -> None:
    methods = [measured("model", infinite=True), measured("isotonic")]
    figure = recalibration_measures_figure(methods, dark=False)
    shown = [key for key in MEASURES if key in methods[0].scores.rows]
    dots = dict(zip(shown, figure.data, strict=True))
    np.testing.assert_array_equal(dots["log_score"].y, [1])
    np.testing.assert_array_equal(dots["crps"].y, [0, 1])
    assert next(iter(figure.layout.yaxis.ticktext)).startswith("model")


def test_words_show_the_numbers() -> None:
    shown = local(600)
    words = local_map.local_map_alt(shown, "carat", "depth")
    for kind in KINDS[1:]:
        assert f"{int((shown.kind == kind).sum()):,}" in words
    assert "carat" in words
    panels = [
        charts.PitPanel("All", histogram(np.linspace(0, 1, 99))),
        charts.PitPanel("A", histogram(np.linspace(0.5, 1, 99)), "too low"),
        charts.PitPanel("B", histogram(np.linspace(0, 0.5, 99)), "too high"),
    ]
    assert "cancel" in pit.pit_panels_words(panels)
    assert "cancel" not in pit.pit_panels_words(panels[:2])
    better = recalibration.measures_words([measured("model"), measured("isotonic")])
    assert better.startswith("model")
    methods = [measured("model"), measured("isotonic")]
    changes = charts.recalibration_differences_chart(methods, dark=False)
    lowest = methods[1].differences["crps"]
    assert f"{methods[1].label}: {estimate_text(lowest, chance=False)}" in changes.finding
    assert "Of 1 method, 1 lowers CRPS beyond chance" in changes.finding
    assert len(changes.table()) == len(methods[1].differences)
    none = charts.recalibration_differences_chart(methods[:1], dark=False)
    assert none.finding == "No change of CRPS is defined here."


def test_tables_hold_every_row_whatever_is_drawn() -> None:
    n = 9000
    y = np.linspace(-3, 3, n)
    side = misses_of("before", y, np.full(n, -2.0), np.full(n, 2.0))
    table = misses_table(np.column_stack([y, y]), [side], "a", "b")
    assert list(table.row) == list(range(1, n + 1))
    counts = table["before"].value_counts()
    assert counts["below"] == (y < -2).sum()
    assert counts["above"] == (y > 2).sum()
    truth = charts.Moments("truth", "Truth", y)
    assert len(truth_table(truth, [charts.Moments("local", "Local", y)])) == n
    pit = pit_table([charts.PitPanel("a", histogram(np.linspace(0, 1, 50)))])
    assert pit["count"].sum() == 50


def test_the_recommendation_gives_its_reason_and_a_better_model_its_numbers() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    rows = RegressionSet(Normal(np.zeros(200), 1.0), 3 * x[:, 0], "", "calibration")
    space = Space("inputs", x, None)
    found = judge_recalibrators(["isotonic", "boosting"], rows, None, space, folds=3)
    advice = recalibration.recalibration_advice(found.methods, found.choice)
    assert advice.startswith("Isotonic recalibration was chosen: its CRPS is ")
    assert "Change of the CRPS: Isotonic" in advice
    better = charts.better_model_words(found.methods, found.choice)
    assert better.startswith("A better model, not a better calibration: Quantile boosting")
    first, second = (found.answers[key].crps.mean() for key in ("isotonic", "boosting"))
    assert f"{1 - second / first:.0%} less than the best" in better
    assert "200 rows" in better
    alone = judge_recalibrators(["isotonic"], rows, None, space, folds=3)
    assert charts.better_model_words(alone.methods, alone.choice) == ""


@pytest.mark.parametrize(("spread", "joined"), [(1.0, "but"), (2.5, "and")])
def test_places_contradict_a_coverage_only_where_it_is_near_what_is_stated(
    spread: float, joined: str
) -> None:
    rng = np.random.default_rng(0)
    x = rng.random(400)
    y = rng.normal(np.where(x < 0.5, 0.7, -0.7), spread)  # too low here, too high there
    stated = Normal(np.zeros(400), np.full(400, 1.2))
    pit = norm.cdf(y / 1.2)
    local = local_pit(pit, x[:, None], np.column_stack([x, y]), k=40, centres=100)
    first, *_ = charts.pit_findings(coverage(stated, y), fault(pit), local=local)
    assert local.n_faulty
    assert f"outcomes, {joined} {local.n_faulty} of 100 places" in first
