"""Panels one by one: what each shows is what it shows in the whole figure, with one legend."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from kdcal_core import calibration, charts, diagnostics
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.reliability import reliability_figure

HOSTILE = "<b>&bold</b>"
NAMES = (HOSTILE, *(f"class {at}" for at in range(1, 10)))


def ten_classes(n: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """An under-confident model of ten classes, with fewer than 100 rows for each."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, 10))
    y = (np.exp(4 * logits) / np.exp(4 * logits).sum(1, keepdims=True)).cumsum(1)
    drawn = (y < rng.random((n, 1))).sum(1)
    proba = np.exp(logits)
    return proba / proba.sum(1, keepdims=True), drawn.astype(np.int64)


@pytest.fixture(scope="module")
def by_class() -> charts.Chart:
    proba, y = ten_classes()
    found = diagnostics.reliability(proba, y, kind="top-label", n_bins=15)
    return charts.reliability_by_class_chart(found, NAMES, dark=False)


def test_each_panel_has_the_traces_and_scales_of_its_place(by_class: charts.Chart) -> None:
    whole, panels = by_class.figure, by_class.panels
    assert panels is not None
    assert len(panels.figures) == 10
    assert sum(len(one.data) for one in panels.figures) == len(whole.data)
    sent = json.loads(whole.to_json())["data"]
    for at, one in enumerate(panels.figures):
        x = f"x{at + 1 if at else ''}"
        mine = [trace for trace in sent if trace["xaxis"] == x]
        alone = json.loads(one.to_json())["data"]
        assert [(t.get("name"), t["x"], t["y"]) for t in alone] == [
            (t.get("name"), t["x"], t["y"]) for t in mine
        ]
        assert (one.layout.xaxis.range, one.layout.yaxis.range) == ((-0.03, 1.04),) * 2
        assert one.layout.yaxis.scaleanchor == "x"
        assert one.layout.yaxis.domain == (0.0, 1.0)
    assert len({one.layout.height for one in panels.figures}) == 1


def test_names_are_escaped_in_figures_and_plain_in_alternative_texts(
    by_class: charts.Chart,
) -> None:
    assert by_class.panels is not None
    assert by_class.panels.titles[0].startswith(HOSTILE)
    for one in by_class.panels.figures:
        assert "<b>&bold" not in one.to_json().replace("\\u003c", "<").replace("\\u0026", "&")


def test_the_legend_names_every_mark_once_and_has_no_data(by_class: charts.Chart) -> None:
    assert by_class.panels is not None
    legend = by_class.panels.legend
    assert legend is not None
    names = [trace.name for trace in legend.data]
    assert len(set(names)) == len(names)
    assert {"Under-confident", "Perfect calibration", "Consistency band"} <= set(names)
    assert all(list(trace.x) == [None] for trace in legend.data)
    assert not any(one.layout.showlegend for one in by_class.panels.figures)


@pytest.mark.parametrize("dark", [False, True])
def test_faults_have_their_colour_and_points_are_visible_with_few_rows(dark: bool) -> None:
    proba, y = ten_classes(150)
    found = diagnostics.reliability(proba, y, kind="top-label", n_bins=15)
    colours = palette(dark)
    panels = charts.reliability_by_class_chart(found, NAMES, dark=dark).panels
    assert panels is not None
    off = diagnostics.beyond_noise(found)
    assert set(off) == {False, True}
    for one, named in zip(panels.figures, off, strict=True):
        under = {t.name: t.fillcolor for t in one.data if "nder-confident" in (t.name or "")}
        assert ("Under-confident" in under) == named  # as the finding counts them
        assert under.get("Under-confident", "") == (
            faded(colours.diverging[0][1], 0.45) if named else ""
        )
        assert named or under["Perhaps under-confident"] == faded(colours.diverging[0][1], 0.18)
        points = [t for t in one.data if t.mode == "markers"]
        opacity = [float(t.marker.color.removesuffix(")").split(",")[-1]) for t in points]
        assert min(opacity) >= 0.8
        assert min(float(t.marker.size) for t in points) >= 4.5


def test_strips_and_fewer_panels() -> None:
    proba, y = ten_classes()
    kde = calibration.TopLabelKDE(shrinkage=None).fit(proba, y)
    curves = [kde.curve(label) for label in range(4)]
    anchors = [diagnostics.histogram_anchor(proba, y, label=label) for label in range(4)]
    for n in (4, 2):
        chart = charts.bandwidth_chart(curves[:n], curves[:n], anchors[:n], NAMES, dark=False)
        assert chart.panels is not None
        one = chart.panels.figures[-1]
        assert one.layout.yaxis.domain[0] > one.layout.yaxis2.domain[1] > 0
        assert {trace.yaxis for trace in one.data} == {"y", "y2"}
        square = (one.layout.yaxis.domain[1] - one.layout.yaxis.domain[0]) * (
            one.layout.height - one.layout.margin.t - one.layout.margin.b
        )
        assert square == pytest.approx(186 if n == 4 else 250, abs=1)
        assert chart.panels.axes == "Across: score. Up: confidence."


def test_a_large_fault_is_named_in_its_area_and_a_small_one_in_its_corner() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 6000)
    for power, name, inside in ((4.0, "Over-confident", True), (1.3, "Over-confident", False),
                                (0.2, "Under-confident", True)):  # fmt: skip
        y = (rng.random(p.size) < p**power).astype(np.int64)
        curve = diagnostics.reliability(
            np.column_stack([1 - p, p]), y, kind="class", label=1
        ).curves[0]
        figure: go.Figure = reliability_figure(curve, dark=False)
        (note,) = [one for one in figure.layout.annotations if name in one.text]
        corner = (0.99, 0.01) if name == "Over-confident" else (0.01, 0.99)
        assert ((note.x, note.y) != corner) is inside
        if inside:
            at = np.argmin(np.abs(curve.smooth_x - note.x))
            assert min(note.x, curve.smooth_y[at]) < note.y < max(note.x, curve.smooth_y[at])


@pytest.mark.parametrize(("power", "n"), [(1.0, 60), (4.0, 60), (1.0, 3000), (2.0, 3000)])
def test_what_chance_may_explain_is_pale_and_has_no_name(power: float, n: int) -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.02, 0.98, n)
    rows, y = np.column_stack([1 - p, p]), (rng.random(n) < p**power).astype(int)
    curve = diagnostics.reliability(rows, y, kind="class", label=1).curves[0]
    figure: go.Figure = reliability_figure(curve, dark=False)
    says = curve.smooth_x
    sure = (curve.smooth_low > says) | (curve.smooth_high < says)
    strong = {faded(colour, 0.45) for _, colour in palette(False).diverging}
    for area in (one for one in figure.data if "onfident" in (one.name or "")):
        x, y = (np.asarray(one)[: len(area.x) // 2] for one in (area.x, area.y))
        drawn = np.isin(says, x[np.abs(y - x) > 1e-12])
        named = not area.name.startswith("Perhaps")
        assert named == (area.fillcolor in strong)
        assert (sure[drawn] == named).all()
    names = {one.text for one in figure.layout.annotations}
    assert names == {
        f"<b>{one.name}</b>"
        for one in figure.data
        if isinstance(one, go.Scatter) and one.fillcolor in strong
    }
    assert bool(names) == sure.any()
