"""Differences between audits, and an estimate over time: marks, colours, limits and words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from plotly import graph_objects as go

from kdcal_core.charts import (
    FIRST_LINES,
    Trend,
    TrendPoint,
    changed_words,
    changes_chart,
    ordered_changes,
    overlaid_chart,
    rates_chart,
    same_lines,
    trend_chart,
    version_curves_chart,
    version_quantiles_chart,
)
from kdcal_core.charts.coverage import quantile_alt
from kdcal_core.charts.palette import palette
from kdcal_core.diagnostics import (
    ChangedEstimate,
    Estimate,
    changed_estimate,
    confidence_reliability,
    decision_counts,
    decision_rates,
    quantile_reliability,
)
from kdcal_core.review import Limit

HOSTILE = "<img src=x onerror=alert(1)>"
LIMIT = Limit(high=0.05)


def estimate(value: float, name: str = "ECE", lower: bool | None = True) -> Estimate:
    return Estimate(name, name, value, value - 0.01, value + 0.01, 900, lower_is_better=lower)


def change(before: float, after: float, name: str, lower: bool | None = True) -> ChangedEstimate:
    return changed_estimate(estimate(before, name, lower), estimate(after, name, lower))


CHANGES = [
    change(0.10, 0.101, "same"),
    change(0.10, 0.05, HOSTILE),
    change(0.10, 0.20, "worse"),
    change(0.10, 0.90, "far worse"),
    change(0.10, 0.20, "other", None),
]


def traces(figure: go.Figure) -> dict[str, go.Scatter]:
    return {one.name: one for one in figure.data if one.mode == "markers"}


def test_the_worse_ones_come_first_and_the_clearest_of_them() -> None:
    assert [one.name for one in ordered_changes(CHANGES)] == [
        "far worse", "worse", HOSTILE, "other", "same",
    ]  # fmt: skip


@pytest.mark.parametrize("dark", [False, True])
def test_red_is_worse_and_green_better_with_marks_of_their_own(dark: bool) -> None:
    found = traces(changes_chart(CHANGES, dark=dark).figure)
    colours = palette(dark)
    assert found["Worse"].marker.color == colours.failed
    assert found["Better"].marker.color == colours.passed
    assert found["Different"].marker.color == colours.model
    assert found["Cannot be told apart"].marker.symbol == "circle-open"
    assert len({one.marker.symbol for one in found.values()}) == 4
    assert list(found["Worse"].y) == [0, 1]


def test_a_far_difference_does_not_hide_the_others() -> None:
    figure = changes_chart(CHANGES, dark=False).figure
    assert max(figure.layout.xaxis.range) < 8
    assert max(traces(figure)["Worse"].x) == 6


def test_counted_numbers_are_in_the_table_alone() -> None:
    exact = [Estimate("Rows", "Rows", n, n, n, 900) for n in (46.0, 30.0)]
    counted = changed_estimate(*exact)
    shown = changes_chart([*CHANGES, counted], dark=False)
    assert "Rows" not in shown.figure.layout.yaxis.ticktext
    assert shown.table()["difference"].iloc[-1] == -16.0


def test_eight_lines_are_drawn_at_first() -> None:
    many = [change(0.1, 0.1 + 0.01 * n, f"n{n}") for n in range(30)]
    shown = changes_chart(many, dark=False)
    assert len(shown.figure.layout.yaxis.ticktext) == FIRST_LINES == 8
    assert "The first 8 are drawn." in shown.finding
    everything = changes_chart(many, dark=False, most=None)
    assert len(everything.figure.layout.yaxis.ticktext) == 30
    assert len(shown.table()) == 30


def trend(*values: float, limits: tuple[Limit | None, ...] = (), title: str = "") -> Trend:
    given = limits or (LIMIT,) * len(values)
    points = tuple(
        TrendPoint(
            f"2026-0{at + 1}-01T12:00:00.000000Z",
            title or f"Quarter {at + 1}",
            estimate(value),
            limit,
            None if limit is None else "fail" if value > 0.06 else "pass",
        )
        for at, (value, limit) in enumerate(zip(values, given, strict=True))
    )
    return Trend(HOSTILE, HOSTILE, points)


def test_a_trend_has_a_mark_an_audit_with_its_verdict() -> None:
    shown = trend_chart(trend(0.10, 0.08, 0.02), dark=False)
    assert shown.figure.layout.xaxis.nticks == 4  # moments are long words, and pages narrow
    marks = shown.figure.data[-1]
    light = palette(dark=False)
    assert list(marks.y) == [0.10, 0.08, 0.02]
    assert list(marks.marker.color) == [light.failed, light.failed, light.passed]
    assert list(marks.x) == [f"2026-0{at}-01T12:00:00.000000" for at in (1, 2, 3)]
    assert list(shown.figure.data[-2].y) == list(marks.y)
    assert "passes its limit (at most 0.05)" in shown.finding
    assert len(shown.table()) == 3


def test_the_line_breaks_where_model_or_calibrator_changes() -> None:
    made = trend(0.10, 0.08, float("nan"), 0.02)
    points = tuple(
        replace(one, joined=at != 1, model=HOSTILE) for at, one in enumerate(made.points)
    )
    shown = trend_chart(replace(made, points=points), dark=False)
    assert list(shown.figure.data[-2].y) == [0.10, None, 0.08, None, 0.02]
    assert "The model or its calibrator changed once." in shown.finding
    assert "changed" not in trend_chart(made, dark=False).finding
    assert "<img" not in str(shown.figure.to_dict())


def test_the_limit_may_change_and_be_missing() -> None:
    limits = (LIMIT, Limit(high=0.03), None, Limit(-0.2, 0.2), Limit(against="chance"))
    figure = trend_chart(trend(*[0.02] * 5, limits=limits), dark=False).figure
    lines = [list(one.y) for one in figure.data if one.name == "Limit"]
    assert sorted(lines) == [[-0.2], [0.05, 0.03], [0.2]]
    assert sum(bool(one.showlegend) for one in figure.data) == 1
    low, high = figure.layout.yaxis.range
    assert low < -0.2
    assert high > 0.2


def test_one_audit_alone_is_a_trend_too() -> None:
    assert "No earlier audit has it." in trend_chart(trend(0.02), dark=False).finding


@pytest.mark.parametrize("dark", [False, True])
def test_names_are_text_and_not_markup(dark: bool) -> None:
    shown = [
        changes_chart(CHANGES, dark=dark),
        trend_chart(trend(0.1, 0.2, title=HOSTILE), dark=dark),
    ]
    for one in shown:
        json = one.figure.to_json().replace("\\u003c", "<")
        assert "<img" not in json
        assert "&lt;img" in json


def test_words_and_axis_name_what_is_compared() -> None:
    assert changed_words(CHANGES, "reviews").startswith("The open review is better in ")
    assert changed_words(CHANGES).startswith("The later audit is better in ")
    shown = changes_chart(CHANGES, dark=False, of="reviews", paired=True)
    assert "Open minus other" in str(shown.figure.layout.xaxis.title.text)
    assert "Holm" in shown.how_to_read
    assert "audit" not in shown.how_to_read
    assert "@" not in shown.how_to_read + changes_chart(CHANGES, dark=False).how_to_read
    unpaired = changes_chart(CHANGES, dark=False, of="reviews").how_to_read
    assert "Zou and Donner" in unpaired
    assert "hold no rows" not in unpaired


@pytest.mark.parametrize("dark", [False, True])
def test_curves_of_both_differ_in_colour_dash_and_mark(dark: bool) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 400)
    found = [
        confidence_reliability(one, (rng.random(400) < p).astype(int), n_bins=10)
        for one in (p, p**2)
    ]
    chart = version_curves_chart(*found, (), dark=dark)
    named = {
        name: [one for one in chart.figure.data if one.name == name]
        for name in ("Open review", "Other review")
    }
    lines = [next(one for one in each if one.mode == "lines") for each in named.values()]
    points = [next(one for one in each if one.mode == "markers") for each in named.values()]
    assert lines[0].line.color == palette(dark).model
    assert lines[0].line.color != lines[1].line.color
    assert lines[0].line.dash != lines[1].line.dash
    assert points[0].marker.symbol != points[1].marker.symbol
    assert set(chart.table()["review"]) == {"open review", "other review"}
    assert chart.finding.startswith("Open review: ")
    assert "Other review: " in chart.finding


def test_quantiles_of_both_are_drawn() -> None:
    pit = np.random.default_rng(0).uniform(size=300)
    both = [quantile_reliability(one, (0.025, 0.5, 0.9)) for one in (pit, pit**2)]
    chart = version_quantiles_chart(*both, dark=False)
    assert [one.name for one in chart.figure.data][1:] == [
        "Other review (300 rows)", "Open review (300 rows)",
    ]  # fmt: skip
    assert len(chart.table()) == 6
    assert "2.5% sees" in quantile_alt(both[0])


# Charts that two audits kept, on the same axes


def kept(n: int, shift: float) -> tuple[str, str, pd.DataFrame]:
    proba = np.linspace(0.55, 0.95, n)
    wrong = (np.arange(n) % 10 >= 10 * (proba - shift)).astype(int)
    found = confidence_reliability(proba, 1 - wrong, n_bins=5)
    return f"{HOSTILE} {shift}", "Says 0.9.", found.curves[0].table()


def test_kept_charts_of_two_audits_lie_on_the_same_axes() -> None:
    earlier, later = kept(30, 0.2), kept(400, 0.0)
    chart = overlaid_chart("reliability", earlier, later, dark=False)
    _, first, second = chart.figure.data
    colours = palette(dark=False)
    assert (first.line.color, second.line.color) == (colours.classes[0], colours.model)
    assert first.line.dash != second.line.dash
    for drawn, (_, _, table) in ((first, earlier), (second, later)):
        known = table.dropna()
        at = np.isfinite(drawn.x)
        np.testing.assert_allclose(drawn.x[at], known["mean_confidence"])
        np.testing.assert_allclose((drawn.y + drawn.error_y.array)[at], known["interval_high"])
    symbols = [
        {symbol for symbol, x in zip(drawn.marker.symbol, drawn.x, strict=True) if np.isfinite(x)}
        for drawn in (first, second)
    ]
    assert symbols == [{"square-open"}, {"circle"}]  # at most 15 rows a bin; at least 50
    assert "<img" not in chart.figure.to_json()
    assert chart.finding.startswith(f"{HOSTILE} 0.0: Says 0.9.")
    assert set(chart.table()["audit"]) == {earlier[0], later[0]}


def test_coverage_is_drawn_less_what_was_stated() -> None:
    table = pd.DataFrame(
        {"stated": [0.5, 0.9], "coverage": [0.45, 0.92], "coverage_low": [0.4, 0.9]}
    ).assign(coverage_high=[0.5, 0.95])
    chart = overlaid_chart("coverage", ("a", "", table), ("b", "", table), dark=True)
    np.testing.assert_allclose(chart.figure.data[1].y, [-0.05, 0.02])
    with pytest.raises(KeyError):
        overlaid_chart("coverage", ("a", "", table[["stated"]]), ("b", "", table), dark=True)


def rows(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_groups_of_two_audits_stand_line_by_line_with_two_marks() -> None:
    gaps = {"gap": [0.1, -0.2], "gap_low": [0.0, -0.3], "gap_high": [0.2, -0.1]}
    earlier = rows(group=["north", HOSTILE], rows=[90, 9], **gaps)
    later = rows(group=[HOSTILE, "south"], rows=[90, 90], **gaps)
    figure = overlaid_chart("groups", ("a", "", earlier), ("b", "", later)).figure
    then, now = figure.data
    names = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    assert [one.startswith("&lt;img") for one in names.values()] == [False, False, True]
    for drawn, table in ((then, earlier), (now, later)):
        lines = [names[round(one)][4:8] for one in drawn.y]
        assert lines == [one.replace("<", "&lt;")[4:8] for one in table["group"]]
        np.testing.assert_allclose(drawn.x, table["gap"])
        np.testing.assert_allclose(drawn.x + drawn.error_x.array, table["gap_high"])
    assert list(then.marker.symbol) == ["square", "square-open"]
    assert now.y[0] > then.y[1]  # of the same group the later one stands above
    of_regression = later.rename(columns={"group": "rule"})
    drawn = overlaid_chart("groups", ("a", "", of_regression), ("b", "", of_regression)).figure
    assert drawn.layout.xaxis.title.text == "Mean PIT value minus one half"


def test_classes_of_two_audits_have_a_panel_each() -> None:
    bins = {
        "mean_confidence": [0.7, 0.9],
        "observed_frequency": [0.6, 0.8],
        "interval_low": [0.5, 0.7],
        "interval_high": [0.7, 0.9],
    }
    table = pd.concat([rows(**bins, count=[n, n], label=[c, c]) for c, n in (("a", 5), ("b", 50))])
    chart = overlaid_chart("reliability_by_class", ("a", "", table), ("b (May)", "", table))
    lines = [one for one in chart.figure.data if one.name in ("a", "b<br>(May)")]
    assert [(one.name, one.xaxis, one.showlegend) for one in lines] == [
        *(("a", "x", True), ("b<br>(May)", "x", True)),
        *(("a", "x2", False), ("b<br>(May)", "x2", False)),
    ]
    assert chart.panels is not None
    assert chart.panels.titles == ("a", "b")
    assert chart.panels.legend.layout.height == 3 * 30 + 8  # one name has two lines


def test_far_away_only_the_models_are_drawn_and_the_last_bar_has_an_end() -> None:
    far = rows(radius=[1.0, 2.0] * 2, mean_max_confidence=[0.9, 0.8, 0.6, 0.5])
    far["method"] = ["Model"] * 2 + ["Kernel density, geodesic"] * 2
    line, _ = overlaid_chart("far_away", ("a", "", far), ("b", "", far)).figure.data
    np.testing.assert_allclose(line.y, [0.9, 0.8])
    pit = rows(bin_low=[0.0, 0.5], bin_high=[0.5, 1.0], density=[1.2, 0.8])
    _, line, _ = overlaid_chart("pit", ("a", "", pit), ("b", "", pit)).figure.data
    np.testing.assert_allclose(line.x, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(line.y, [1.2, 0.8, 0.8])


def test_scores_of_two_audits_are_shares_of_each_ones_rows() -> None:
    bins = {"bin_low": [0.0, 0.5], "bin_high": [0.5, 1.0]}
    one, other = (
        rows(**bins, right=[10, 70], wrong=[5, 15]),
        rows(**bins, right=[0, 9], wrong=[1, 0]),
    )
    figure = overlaid_chart("scores", ("a", "", one), (HOSTILE, "", other)).figure
    right, now_right, wrong, now_wrong = figure.data
    np.testing.assert_allclose(right.y, [0.1, 0.7, 0.7])
    np.testing.assert_allclose(now_right.y, [0.0, 0.9, 0.9])
    np.testing.assert_allclose(wrong.y, [0.05, 0.15, 0.15])
    np.testing.assert_allclose(now_wrong.x, [0.0, 0.5, 1.0])
    assert {one.line.shape for one in figure.data} == {"hv"}
    assert [one.yaxis for one in figure.data] == ["y", "y", "y2", "y2"]
    assert right.line.dash != now_right.line.dash
    assert "<img" not in figure.to_json()


def confusion(first: list[int], second: list[int], names: tuple[str, str]) -> pd.DataFrame:
    table = pd.DataFrame([first, second], columns=list(names))
    return table.assign(true_class=list(names))


@pytest.mark.parametrize("key", ["confusion", "decisions"])
def test_a_square_has_the_numbers_of_both_audits_in_each_cell(key: str) -> None:
    later = confusion([50, 4], [6, 40], ("no", HOSTILE))
    earlier = confusion([44, 2], [0, 54], (HOSTILE, "no"))  # in another order
    chart = overlaid_chart(key, ("a", "", earlier), ("b", "", later))
    heat, below, above = chart.figure.data
    assert list(above.text) == ["50", "4", "6", "40"]
    assert list(below.text) == ["54", "0", "2", "44"]
    assert (above.name, below.name) == ("Above: b", "Below: a")
    assert heat.z[0][0] == pytest.approx(0.04**0.5)  # by how much the share changed
    assert "<img" not in chart.figure.to_json()
    fewer = confusion([9, 0], [0, 1], ("no", HOSTILE))
    _, below, above = overlaid_chart(key, ("a", "", fewer), ("b", "", later)).figure.data
    assert list(below.text) == ["90.0%", "0.0%", "0.0%", "10.0%"]  # of other numbers of rows
    assert above.text[1] == "4.0%"


def test_empty_cells_of_a_square_stay_empty() -> None:
    table = confusion([50, 0], [1, 40], ("no", "yes"))
    _, below, above = overlaid_chart("confusion", ("a", "", table), ("b", "", table)).figure.data
    assert (below.text[1], above.text[1]) == ("", "")


def test_rates_of_two_audits_have_a_panel_each_over_the_same_thresholds() -> None:
    rng = np.random.default_rng(0)
    score = rng.uniform(size=400) ** 4
    counts = decision_counts(score, (rng.random(400) < score).astype(int))
    chart = rates_chart(counts, 0.2)
    assert re.match(
        r"At a threshold of 20%: sensitivity \d+% \(.* to .*\), specificity .* and positive",
        chart.finding,
    )
    table = chart.table()
    found = next(one for one in decision_rates(counts, 0.2) if one.label == "Specificity")
    place = (table["measure"] == "Specificity") & np.isclose(table["threshold"], 0.2, atol=0.005)
    assert table["share_low"][place].iloc[0] == pytest.approx(found.low, abs=0.01)
    both = overlaid_chart("rates", ("a", "", table), ("b", "", table))
    assert both.panels is not None
    assert both.panels.titles == ("Sensitivity", "Specificity", "Positive predictive value")
    last = table["threshold"].max()
    assert all(one.layout.xaxis.range == (0.0, last) for one in both.panels.figures)
    assert all(len(one.data) == 4 for one in both.panels.figures)  # two lines with their bands
    assert all(one.layout.xaxis.tickvals[-1] <= last for one in both.panels.figures)


def test_regions_are_laid_over_one_another_by_their_rules() -> None:
    gaps = {"gap": [0.1, -0.2], "gap_low": [0.0, -0.3], "gap_high": [0.2, -0.1], "rows": [90, 90]}
    earlier, later = rows(rule=["x <= 1", "x > 1"], **gaps), rows(rule=["x > 1", "x <= 1"], **gaps)
    assert same_lines(earlier, later)
    assert not same_lines(earlier, later[:1])
    figure = overlaid_chart("regions", ("a", "", earlier), ("b", "", later)).figure
    assert figure.layout.xaxis.title.text == "Observed minus stated"
    assert len(figure.data) == 2


@pytest.mark.parametrize("paired", [True, False])
def test_the_words_name_what_is_not_paired(paired: bool) -> None:
    chart = changes_chart(CHANGES, dark=False, of="reviews", paired=paired, unpaired=("RMSE",))
    assert ("Not paired: RMSE." in chart.how_to_read) == paired
