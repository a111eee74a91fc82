"""The pictures of what lies far from the data: bands, densities, posterior maps."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from kdcal_core.charts import BandLine, MapPoints, PosteriorPanel
from kdcal_core.charts.foreign import density_figure
from kdcal_core.charts.marks import distance_figure, selection_figure
from kdcal_core.charts.palette import VERSIONS, palette, posterior_scale
from kdcal_core.charts.posterior_map import posterior_map_figure
from kdcal_core.diagnostics import log_densities
from tests.benchmarks.studies.bands import measure_figure

HOSTILE = "<img src=x onerror=alert(1)>"
RADII = np.arange(0.0, 10.5, 0.5)
KEYS = ("model", *VERSIONS, "isotonic", "sigmoid", "kde_mon2")


def line(key: str, level: float) -> BandLine:
    middle = np.full(RADII.size, level)
    return BandLine(key, key.title(), RADII, middle, middle - 0.05, middle + 0.05)


def grid_map(dark: bool, n_points: int = 3000, n_panels: int = 2, **more: object) -> go.Figure:
    rng = np.random.default_rng(0)
    axis = np.linspace(-2, 2, 40)
    panels = [PosteriorPanel(HOSTILE, rng.random((40, 40))) for _ in range(n_panels)]
    points = MapPoints(
        rng.normal(size=n_points),
        rng.normal(size=n_points),
        rng.integers(0, 12, n_points),
        (HOSTILE, *(f"c{k}" for k in range(11))),
    )
    settings = {"class_name": HOSTILE, "x_title": HOSTILE, "y_title": "x2", "prior": 0.3}
    settings |= {"dark": dark, "data_box": (-1, 1, -1, 1), **more}
    return posterior_map_figure(axis, axis, panels, points, **settings)


def all_figures(dark: bool) -> dict[str, go.Figure]:
    rng = np.random.default_rng(1)
    lines = [line(key, 0.4 + 0.05 * at) for at, key in enumerate(KEYS)]
    return {
        "distance": distance_figure(lines, 0.5, dark=dark),
        "measure": measure_figure(
            lines, dark=dark, x_title="n", y_title="Error", log_x=False, target=(0.5, "Prior")
        ),
        "selection": selection_figure(
            np.geomspace(0.5, 50, 21), {"held out": np.linspace(1, 2, 21)}, 2.0, dark=dark
        ),
        "density": density_figure(
            log_densities(
                -rng.exponential(300, 4000),
                {HOSTILE: -rng.exponential(1e6, 4000), "far": np.full(10, -np.inf)},
                -2000.0,
            ),
            dark=dark,
        ),
        "map": grid_map(dark),
        "equal": grid_map(dark, equal=True),
    }


@pytest.mark.parametrize("dark", [False, True])
def test_names_are_escaped_and_the_look_is_our_own(dark: bool) -> None:
    for name, figure in all_figures(dark).items():
        text = figure.to_json().replace("\\u003c", "<")
        assert "<img" not in text, name
        layout = figure.layout.template.layout
        assert layout.paper_bgcolor == "rgba(0, 0, 0, 0)", name


def test_every_method_has_a_look_of_its_own() -> None:
    drawn = [
        (trace.line.color, trace.line.dash)
        for trace in all_figures(False)["distance"].data
        if trace.name.lower() in KEYS and trace.mode == "lines+markers"
    ]
    assert len(drawn) == len(set(drawn)) == len(KEYS)


def test_distance_shows_the_prior_and_where_data_end() -> None:
    figure = distance_figure([line("model", 0.9)], 0.35, dark=False)
    prior = next(trace for trace in figure.data if trace.name.startswith("Prior"))
    assert set(prior.y) == {0.35}
    assert prior.x[-1] == RADII[-1]
    (shade,) = figure.layout.shapes
    assert (shade.x0, shade.x1) == (0, 1)
    assert figure.layout.yaxis.range[0] < 0.35


def test_a_band_that_is_not_known_is_left_out() -> None:
    gappy = line("model", 0.5)
    gappy.low[3] = np.nan
    band, curve, *_ = distance_figure([gappy], 0.5, dark=False).data
    assert len(band.x) == 2 * (RADII.size - 1)
    assert len(curve.x) == RADII.size


def test_a_band_that_is_not_filled_is_still_reported() -> None:
    plain = replace(line("isotonic", 0.5), filled=False)
    figure = distance_figure([line("model", 0.5), plain], 0.5, dark=False)
    assert [trace.fill for trace in figure.data].count("toself") == 1
    curve = next(trace for trace in figure.data if trace.name == "Isotonic")
    assert curve.hovertext[0].endswith("middle 80% 0.450 to 0.550")


@pytest.mark.parametrize("top", [8.0, 6000.0, -3e5])
def test_every_row_lies_in_a_bar_and_on_the_right_side_of_the_floor(top: float) -> None:
    values = top - np.array([0.0, 1.0, 50.0, 5e3, 5e5, np.inf])
    floor = top - 500.0
    figure = density_figure(log_densities(values, {"far": values[3:]}, floor), dark=False)
    bars = figure.data[0]
    assert bars.y.sum() == pytest.approx(1.0)
    assert figure.data[1].y.sum() == pytest.approx(1.0)
    where = figure.layout.shapes[0].x0
    right = bars.x - bars.width / 2 > where
    assert bars.y[right].sum() == pytest.approx(0.5)
    ticks = figure.layout.xaxis.tickvals
    assert len(ticks) == len(set(ticks)) == len(figure.layout.xaxis.ticktext)
    assert min(ticks) >= figure.layout.xaxis.range[0] - 1e-9


@pytest.mark.parametrize("floor", [-np.inf, 0.0])
def test_densities_of_one_row_and_of_none(floor: float) -> None:
    for n in (0, 1):
        found = log_densities(np.full(n, -np.inf), {"far": np.zeros(n)}, floor)
        density_figure(found, dark=True)


@pytest.mark.parametrize("prior", [0.0, 0.02, 0.5, 1.0])
def test_white_stands_at_the_prior(prior: float) -> None:
    colours = palette(dark=False)
    scale = posterior_scale(colours, prior)
    stops = [stop for stop, _ in scale]
    assert stops == sorted(stops)
    assert (stops[0], stops[-1]) == (0.0, 1.0)
    white = next(stop for stop, colour in scale if colour == colours.posterior[2])
    assert white == pytest.approx(prior, abs=0.021)


def test_maps_share_axes_and_draw_few_points() -> None:
    figure = grid_map(False, equal=True, class_name="", scale_title="Confidence")
    heat = [trace for trace in figure.data if trace.type == "heatmap"]
    assert [trace.showscale for trace in heat] == [False, True]
    points = [trace for trace in figure.data if trace.type == "scatter"]
    assert sum(len(trace.x) for trace in points) == 1000
    assert len({(trace.marker.color, trace.marker.symbol) for trace in points}) == 12
    layout = json.loads(figure.to_json())["layout"]
    assert layout["xaxis2"]["matches"] == layout["xaxis3"]["matches"] == "x"
    assert layout["yaxis"]["scaleratio"] == 1
    assert len(layout["shapes"]) == 3


def test_a_rare_class_keeps_its_points() -> None:
    label = np.zeros(100_000, dtype=np.int64)
    label[:200] = 1
    points = MapPoints(np.zeros(label.size), np.zeros(label.size), label, ("a", "b"))
    axis = np.linspace(0, 1, 3)
    figure = posterior_map_figure(
        axis,
        axis,
        [PosteriorPanel("p", np.zeros((3, 3)))],
        points,
        class_name="a",
        prior=0.5,
        x_title="",
        y_title="",
        dark=False,
    )
    drawn = {trace.name: len(trace.x) for trace in figure.data if trace.type == "scatter"}
    assert drawn["b"] >= 1
