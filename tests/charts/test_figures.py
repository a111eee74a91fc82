"""Figures: every row is on the picture, names cannot harm it, its look is its own."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import pytest
from plotly.colors import sample_colorscale

from kdcal_core import calibration, charts, diagnostics
from kdcal_core.charts.confidence import bandwidth_figure, confidence_curve_figure, noise_figure
from kdcal_core.charts.confusion import confusion_figure
from kdcal_core.charts.local_map import local_map_figure
from kdcal_core.charts.marks import tiers
from kdcal_core.charts.methods import losses_figure, method_cloud
from kdcal_core.charts.palette import TRANSPARENT, ink_on, palette
from kdcal_core.charts.reliability import reliability_alt, reliability_figure, small_multiples
from kdcal_core.charts.score_histograms import score_histogram_figure
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import top_label_losses
from kdcal_core.errors import InputWarning
from kdcal_core.evaluation import losses_by_class

ROOT = Path(__file__).parents[2]
N_CLASSES = 20
MAX_MARKS = 5000
HOSTILE = "<img src=x onerror=alert(1)>"


def made(n: int = 4000, n_classes: int = N_CLASSES, seed: int = 0) -> ScoredSet:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    logit = rng.normal(size=(n, n_classes))
    logit[np.arange(n), y] += 2.5
    proba = np.exp(1.4 * logit)
    proba /= proba.sum(axis=1, keepdims=True)
    names = (HOSTILE, *(f"class {k}" for k in range(1, n_classes)))
    return ScoredSet(proba, y, names, "made", "calibration")


@pytest.fixture(scope="module")
def scored() -> ScoredSet:
    return made()


@pytest.fixture(scope="module")
def kde(scored: ScoredSet) -> calibration.TopLabelKDE:
    return calibration.TopLabelKDE(shrinkage=None).fit(scored.proba, scored.y)


@pytest.fixture(scope="module")
def draw(scored: ScoredSet, kde: calibration.TopLabelKDE) -> Callable[[bool], dict[str, go.Figure]]:
    """All figures of the room for the largest numbers of panels that pages ask for."""
    proba, y, names = scored.proba, scored.y, scored.classes
    overall = diagnostics.reliability(proba, y).curves[0]
    by_class = diagnostics.reliability(proba, y, kind="top-label", smooth=False).curves
    tables = diagnostics.confusion(proba, y, N_CLASSES)
    anchors = [diagnostics.histogram_anchor(proba, y, label=k) for k in range(N_CLASSES)]
    halves = [diagnostics.two_halves(proba, y, label=k) for k in range(N_CLASSES)]
    curves = [kde.curve(k) for k in range(N_CLASSES)]
    monotone = [kde.with_rule("mon").curve(k) for k in range(N_CLASSES)]
    keys = ("uncalibrated", "histogram", "kde_mon2", "sts")
    compared = losses_by_class(scored, None, keys, folds=2)
    line = (np.linspace(0.1, 1, 400), np.linspace(0.1, 1, 400) ** 2)
    cloud = (np.sort(np.random.default_rng(1).random(9000)), np.linspace(0, 1, 9000))

    def all_figures(dark: bool) -> dict[str, go.Figure]:
        return {
            "reliability": reliability_figure(overall, dark=dark),
            "calibrated": reliability_figure(overall, dark=dark, calibrated=by_class[0]),
            "multiples": small_multiples(by_class, names, dark=dark),
            "scores": score_histogram_figure(diagnostics.score_histogram(proba, y), dark=dark),
            **{
                which: confusion_figure(tables, which, names, dark=dark)
                for which in ("joint", "confusion", "reverse")
            },
            "curve": confidence_curve_figure(curves[0], anchors[0], dark=dark),
            "bandwidths": bandwidth_figure(curves, monotone, anchors, names, dark=dark),
            "noise": noise_figure(halves, names, dark=dark),
            "cloud": method_cloud(
                anchors[0],
                {"sts": cloud, "tswa": cloud},
                lines={"cum": line},
                dark=dark,
                n_rows=9000,
            ),
            "losses": losses_figure(
                compared.cross_fitted, names, dark=dark, beside=compared.resubstitution
            ),
        }

    return all_figures


@pytest.fixture(scope="module")
def drawn(draw) -> Callable[[bool], dict[str, go.Figure]]:
    """The same figures, drawn once for all tests that only look at them."""
    return cache(draw)


def marks(figure: go.Figure) -> int:
    return sum(
        int(np.size(trace.z)) if trace.type == "heatmap" else len(trace.x) for trace in figure.data
    )


@pytest.mark.parametrize("dark", [False, True])
def test_every_figure_sends_few_marks(drawn, dark: bool) -> None:
    for name, figure in drawn(dark).items():
        assert 0 < marks(figure) <= MAX_MARKS, name


@pytest.mark.parametrize("dark", [False, True])
def test_names_from_files_never_reach_the_browser_as_html(drawn, dark: bool) -> None:
    for name, figure in drawn(dark).items():
        assert "<img" not in figure.to_json().replace("\\u003c", "<"), name


def test_no_placeholder_colour_even_after_streamlit_changed_the_default(draw) -> None:
    before = pio.templates.default
    pio.templates["placeholder"] = go.layout.Template(layout={"colorway": ["#000001", "#000002"]})
    try:
        pio.templates.default = "placeholder"
        drawn = draw(False)
    finally:
        pio.templates.default = before
    for name, figure in drawn.items():
        assert "#00000" not in figure.to_json(), name


def test_dark_and_light_differ_and_have_no_ground_but_the_page(drawn) -> None:
    light, dark = drawn(False), drawn(True)
    for name in light:
        assert light[name].to_json() != dark[name].to_json(), name
        for figure, ground in ((light[name], TRANSPARENT), (dark[name], palette(True).page)):
            layout = figure.layout.template.layout
            assert (layout.paper_bgcolor, layout.plot_bgcolor) == (TRANSPARENT, ground)


@pytest.mark.parametrize(
    "name", ["reliability", "multiples", "curve", "bandwidths", "noise", "cloud"]
)
def test_square_things_have_equal_axes_from_0_to_1(drawn, name: str) -> None:
    layout = json.loads(drawn(False)[name].to_json())["layout"]
    pairs = [
        (axis, layout[key.replace("yaxis", "xaxis")])
        for key, axis in layout.items()
        if key.startswith("yaxis") and "scaleanchor" in axis
    ]
    assert len(pairs) == (N_CLASSES if name in ("multiples", "bandwidths", "noise") else 1)
    for y_axis, x_axis in pairs:
        assert y_axis["scaleratio"] == 1
        assert x_axis["range"] == y_axis["range"]
        assert x_axis["range"][0] < 0 < 1 < x_axis["range"][1]


def test_reliability_figure_shows_every_bin_once_and_every_row(scored: ScoredSet) -> None:
    curve = diagnostics.reliability(scored.proba, scored.y, n_bins=15).curves[0]
    figure = reliability_figure(curve, dark=False)
    points = [t for t in figure.data if t.type == "scatter" and t.mode == "markers"]
    filled = curve.count > 0
    drawn_x = np.sort(np.concatenate([trace.x for trace in points]))
    np.testing.assert_allclose(drawn_x, np.sort(curve.confidence[filled]))
    low = np.concatenate([trace.y - trace.error_y.arrayminus for trace in points])
    high = np.concatenate([trace.y + trace.error_y.array for trace in points])
    np.testing.assert_allclose(np.sort(low), np.sort(curve.low[filled]), atol=1e-12)
    np.testing.assert_allclose(np.sort(high), np.sort(curve.high[filled]), atol=1e-12)
    right, wrong = [trace for trace in figure.data if trace.type == "bar"]
    np.testing.assert_allclose(right.y + wrong.y, curve.count)
    correct = scored.proba.argmax(axis=1) == scored.y
    assert right.y.sum() == pytest.approx(correct.sum())
    assert figure.layout.xaxis.anchor == right.yaxis == wrong.yaxis == "y2"


@pytest.mark.parametrize(("says", "name"), [(0.9, "Over-confident"), (0.6, "Under-confident")])
def test_the_colour_between_curve_and_diagonal_is_the_fault(says: float, name: str) -> None:
    score = np.linspace(says - 0.05, says + 0.05, 400)
    hit = (np.arange(400) % 4 > 0).astype(int)  # right in three of four rows
    curve = diagnostics.confidence_reliability(score, hit).curves[0]
    drawn = reliability_figure(curve, dark=False).data
    (area,) = [one for one in drawn if one.name in ("Over-confident", "Under-confident")]
    assert area.name == name
    away = np.asarray(area.y) - np.asarray(area.x)
    assert (away <= 0).all() if name == "Over-confident" else (away >= 0).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_reliability_figure_of_a_handful_of_rows(n: int) -> None:
    few = made(n, 3)
    for kind in ("confidence", "top-label", "class"):
        for curve in diagnostics.reliability(few.proba, few.y, kind=kind).curves:
            figure = reliability_figure(curve, dark=True)
            assert figure.layout.yaxis2.dtick == (1 if curve.count.max() <= 2 else None)
            figure.to_json()
            reliability_alt(curve)


def test_tiers_hold_every_filled_bin_once_thinner_and_paler_downwards() -> None:
    count = np.array([0, 1, 19, 20, 99, 100, 5000, 0])
    found = list(tiers(count))
    total = np.sum([inside for inside, _, _ in found], axis=0)
    np.testing.assert_array_equal(total, count > 0)
    looks = [(width, opacity) for _, width, opacity in found]
    assert all(a > b for a, b in pairwise(looks))


def test_confidence_densities_are_drawn_so_that_their_ratio_is_the_curve(kde) -> None:
    curve = kde.curve(3)
    figure = confidence_curve_figure(curve, _anchor(3), dark=False)
    right, wrong = (trace for trace in figure.data if trace.yaxis == "y2")
    line = next(trace for trace in figure.data if trace.name == "Conf_KDE")
    # Salamon et al., Eq. 9
    np.testing.assert_allclose(line.y, right.y / (right.y + wrong.y), atol=1e-5)


def test_the_curve_is_strong_only_where_there_are_rows(kde) -> None:
    curve, anchor = kde.curve(3), _anchor(3)
    figure = confidence_curve_figure(curve, anchor, dark=False)
    hairline, *strong = (trace for trace in figure.data if trace.name == "Conf_KDE")
    assert np.isfinite(hairline.y).all()
    drawn = np.zeros(len(curve.score), dtype=int)
    for trace in strong:
        assert trace.line.width > hairline.line.width
        drawn += np.isfinite(trace.y)
    filled = anchor.edges[:-1][anchor.count > 0].min(), anchor.edges[1:][anchor.count > 0].max()
    assert set(drawn[(curve.score > filled[0]) & (curve.score <= filled[1])]) == {1}
    empty = curve.score > filled[1]
    assert not drawn[empty].any()


def _anchor(label: int) -> diagnostics.HistogramAnchor:
    scored = made()
    return diagnostics.histogram_anchor(scored.proba, scored.y, label=label)


def test_a_class_without_a_curve_is_drawn_as_its_overall_confidence() -> None:
    few = made(60, 3)
    wrong = few.proba.argmax(axis=1) != few.y
    paper = calibration.TopLabelKDE(shrinkage=None)
    with pytest.warns(InputWarning):
        fitted = paper.fit(few.proba[~wrong], few.y[~wrong])
    curve = fitted.curve(0)
    anchor = diagnostics.histogram_anchor(few.proba, few.y, label=0)
    figure = confidence_curve_figure(curve, anchor, dark=False)
    assert not [trace for trace in figure.data if trace.yaxis == "y2"]
    assert any(trace.name == "Conf1 (no curve)" for trace in figure.data)
    assert "Conf1 is used instead" in charts.confidence_words(curve, "a")


def test_confusion_figure_writes_numbers_only_where_they_can_be_read() -> None:
    for n_classes, written in ((15, True), (16, False)):
        few = made(500, n_classes)
        tables = diagnostics.confusion(few.proba, few.y, n_classes)
        table, *numbers = confusion_figure(tables, "joint", few.classes, dark=False).data
        assert bool(numbers) is written
        assert np.size(table.hovertext) == n_classes**2
        # plotly spreads its colours over the values where an end is missing, and ink would not fit
        assert (table.zmin, table.zmax) == (0, pytest.approx(tables.joint.max() ** 0.5))


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_of_a_confusion_stand_out_from_every_shade(dark) -> None:
    stops = [list(stop) for stop in palette(dark).sequential]
    for shade in sample_colorscale(stops, np.linspace(0.0, 1.0, 101)):
        ground = "#" + "".join(f"{int(float(one)):02x}" for one in shade[4:-1].split(","))
        light, dim = sorted((luminance(ground), luminance(ink_on(shade))), reverse=True)
        assert (light + 0.05) / (dim + 0.05) >= 4.5, shade


def test_score_histogram_keeps_right_and_wrong_apart(scored: ScoredSet) -> None:
    histogram = diagnostics.score_histogram(scored.proba, scored.y)
    right, wrong = score_histogram_figure(histogram, dark=False).data
    hits = int((scored.proba.argmax(axis=1) == scored.y).sum())
    assert (right.y.sum(), wrong.y.sum()) == (hits, scored.n_rows - hits)
    assert right.yaxis != wrong.yaxis
    assert right.xaxis == wrong.xaxis


def test_cloud_says_how_many_rows_it_draws(drawn) -> None:
    figure = drawn(False)["cloud"]
    drawn = sum(len(trace.x) for trace in figure.data if trace.mode == "markers")
    assert drawn <= 2000
    assert "1,000 of 9,000 rows" in figure.layout.annotations[0].text


def test_losses_figure_has_every_class_and_method_and_survives_a_loss_of_zero() -> None:
    scored = made(400, 3)
    perfect = {"uncalibrated": np.ones(3), "kde_mon2": np.array([1.0, 0.5, 0.9])}
    losses = top_label_losses(perfect, [0, 1, 2], [0, 1, 2], n_classes=3, rows="three rows")
    figure = losses_figure(losses, scored.classes, dark=False)
    assert [len(trace.x) for trace in figure.data] == [4, 4]
    assert all((trace.x > 0).all() for trace in figure.data)


@pytest.mark.parametrize("spread", [1.3, 3.0, 30.0])
def test_the_axis_of_losses_has_ticks_however_little_it_spans(spread: float) -> None:
    said = {"uncalibrated": np.full(3, 0.7), "kde_mon2": np.full(3, 0.7 ** (1 / spread))}
    losses = top_label_losses(said, [0, 1, 2], [0, 1, 2], n_classes=3, rows="three rows")
    axis = losses_figure(losses, ("a", "b", "c"), dark=False).layout.xaxis
    low, high = 10 ** np.array(axis.range)
    assert 2 <= sum(low <= tick <= high for tick in axis.tickvals) <= 12


def luminance(colour: str) -> float:
    channel = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, two: str) -> float:
    low, high = sorted([luminance(one), luminance(two)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("dark", "ground"), [(False, "#ffffff"), (True, "#101823")])
def test_writing_and_marks_stand_out_from_the_ground(dark: bool, ground: str) -> None:
    colours = palette(dark)
    assert contrast(colours.text, ground) >= 7
    assert contrast(colours.muted, ground) >= 4.5
    marks = ("model", "calibrated", "right", "wrong", "truth", "foreign", "miss")
    faults = ("too_low", "too_high", "too_narrow", "too_wide")
    for name in (*marks, *faults):
        assert contrast(getattr(colours, name), ground) >= 3, name
    for one in colours.classes:
        assert contrast(one, ground) >= 2.995, one
    for _, one in (colours.diverging[0], colours.diverging[-1]):
        assert contrast(one, ground) >= 4.5  # the names of areas are written in it
    # hits and errors differ in lightness too, for readers who do not see the hues apart
    assert contrast(colours.right, colours.wrong) >= 1.3


def drawn_over(colour: str, opacity: float, ground: str) -> str:
    """A colour as it is seen on the ground, in the form of the palette."""
    if colour.startswith("rgba"):
        *parts, alpha = (float(one) for one in colour[5:-1].split(","))
        opacity *= alpha
    else:
        parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    below = [int(ground[at : at + 2], 16) for at in (1, 3, 5)]
    seen = (opacity * one + (1 - opacity) * two for one, two in zip(parts, below, strict=True))
    return "#" + "".join(f"{round(one):02x}" for one in seen)


@pytest.mark.parametrize(("dark", "ground"), [(False, "#ffffff"), (True, "#101823")])
@pytest.mark.parametrize("name", ["reliability", "calibrated", "scores", "local"])
def test_marks_are_seen_as_they_are_drawn(drawn, name: str, dark: bool, ground: str) -> None:
    """At least 3:1, thin and small ones included; the data behind a summary may be paler."""
    figure = faults_everywhere(dark) if name == "local" else drawn(dark)[name]
    looked_at = 0
    for trace in figure.data:
        if trace.type == "bar" or trace.mode == "markers":
            opacity = 1.0 if trace.opacity is None else trace.opacity
            assert trace.marker.opacity is None
            seen = drawn_over(trace.marker.color, opacity, ground)
            assert contrast(seen, ground) >= 2.995, trace.name
            looked_at += 1
    assert looked_at > 1


def faults_everywhere(dark: bool) -> go.Figure:
    """A map of places, of which some are faulty in each way, and most in none."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(600))
    pit = rng.random(600)
    pit[:100] **= 3.0
    pit[500:] **= 0.3
    xy = np.column_stack([x, rng.random(600)])
    found = diagnostics.local_pit(pit, xy, xy, k=60, centres=200)
    return local_map_figure(found, dark=dark, x_title="a", y_title="b")


def test_colours_live_in_the_palette_alone() -> None:
    literal = re.compile(r"#[0-9a-fA-F]{6}\b|\brgba?\([\d]")
    sources = [
        path
        for folder in ("kdcal_core/charts", "app", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "palette.py"
    ]
    assert len(sources) > 8
    found = {str(path) for path in sources if literal.search(path.read_text(encoding="utf-8"))}
    assert not found


def test_the_app_and_the_figures_share_their_colours() -> None:
    theme = tomllib.loads((ROOT / "app/.streamlit/config.toml").read_text())["theme"]
    for mode, dark in (("light", False), ("dark", True)):
        colours = palette(dark)
        assert theme[mode]["textColor"] == colours.text
        assert theme[mode]["chartCategoricalColors"] == list(colours.classes)
        assert theme[mode]["greenColor"] == colours.right


def test_a_strip_under_the_curve_has_the_right_and_wrong_rows_of_each_stretch(kde) -> None:
    anchor = _anchor(3)
    figure = confidence_curve_figure(kde.curve(3), anchor, dark=False)
    strip = {trace.name: trace for trace in figure.data if trace.yaxis == "y3"}
    right, wrong = strip["Rows that are right"], strip["Rows that are wrong"]
    held = [trace.customdata[:, 2] for trace in (right, wrong)]
    np.testing.assert_allclose(held[0] + held[1], anchor.count)
    np.testing.assert_allclose(held[0].sum(), np.nansum(anchor.count * anchor.confidence))
    for trace, count in zip((right, wrong), held, strict=True):
        assert (np.diff(trace.y[np.argsort(count)]) >= 0).all()
        assert (trace.y[count > 0] > 0.05).all()  # one row is seen
        assert (trace.y <= 1).all()


def test_every_panel_of_bandwidths_has_its_strip_of_rows_under_it(drawn) -> None:
    figure = drawn(False)["bandwidths"]
    strips = [trace for trace in figure.data if trace.name == "Rows that are right"]
    assert len({trace.yaxis for trace in strips}) == N_CLASSES
    for at, trace in enumerate(strips):
        mine = figure.layout["yaxis" if at == 0 else f"yaxis{at + 1}"]
        below = figure.layout[trace.yaxis.replace("y", "yaxis")]
        assert below.domain[1] < mine.domain[0]
        assert below.anchor == mine.anchor == trace.xaxis
