"""What a posterior map says, on maps whose finding is known."""

from __future__ import annotations

import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest
from texts.snapshot import Texts

from kdcal_core.calibration.graph.gamma_floor_blend import data_floor
from kdcal_core.charts import MapPoints, PosteriorPanel, posterior_map_words
from kdcal_core.charts.palette import palette, posterior_scale
from kdcal_core.charts.posterior_map import posterior_map_figure
from kdcal_core.diagnostics import accuracy, mean_max_confidence

OUTSIDE = np.ones((10, 10), dtype=bool)
OUTSIDE[3:7, 3:7] = False


def confidence(sure: int, outside: float = 0.6, inside: float = 0.99) -> np.ndarray:
    """Confidence 0.95 in so many cells outside, ``outside`` in the others there."""
    values = np.full((10, 10), inside)
    values[OUTSIDE] = np.where(np.arange(OUTSIDE.sum()) < sure, 0.95, outside)
    return values


def test_only_the_area_outside_the_data_counts(texts: Texts) -> None:
    assert OUTSIDE.sum() == 84
    sentence = posterior_map_words.map_finding(confidence(21), confidence(0, 0.5), OUTSIDE, 0.5)
    texts(sentence)
    assert re.findall(r"\d+%", sentence) == ["84%", "90%", "25%", "69%", "50%", "50%"]


@pytest.mark.parametrize(
    ("sure", "said"),
    [(0, "none of the area"), (84, "all of the area"), (83, "99% of the area")],
)
def test_shares_do_not_round_to_nothing_or_all(sure: int, said: str, texts: Texts) -> None:
    sentence = posterior_map_words.map_finding(confidence(sure), None, OUTSIDE, 0.5)
    assert said in sentence
    texts(sentence)


def test_a_map_without_unknown_points_says_so(texts: Texts) -> None:
    none = np.zeros((10, 10), dtype=bool)
    texts(posterior_map_words.map_finding(confidence(84), confidence(42), none, 0.5))


def test_a_slice_says_how_much_beyond_the_box_is_like_the_data(texts: Texts) -> None:
    beyond = OUTSIDE
    known = np.zeros((10, 10), dtype=bool)
    known[0] = True
    texts(posterior_map_words.slice_words(~known, beyond, 62))
    assert posterior_map_words.slice_words(beyond, beyond, 62) == ""
    assert posterior_map_words.slice_words(~known, beyond, 0) == ""


def test_a_hair_of_area_is_less_than_one_percent() -> None:
    wide = np.ones((20, 20), dtype=bool)
    values = np.full((20, 20), 0.5)
    values[0, 0] = 0.95
    assert "less than 1%" in posterior_map_words.map_finding(values, None, wide, 0.5)


def test_exactly_ninety_percent_is_not_more() -> None:
    values = np.full((10, 10), 0.9)
    assert "none of the area" in posterior_map_words.map_finding(values, None, OUTSIDE, 0.5)


def test_a_prior_that_is_sure_itself_is_mentioned(texts: Texts) -> None:
    texts(posterior_map_words.map_finding(confidence(84), confidence(84), OUTSIDE, 0.95))


def test_the_alternative_text_shows_inside_from_outside(texts: Texts) -> None:
    texts(posterior_map_words.map_alt("a", "b", "confidence", [("Model", confidence(84))], OUTSIDE))


def pair(right: int, n: int) -> tuple:
    y = (np.arange(n) >= right).astype(int)
    proba = np.tile([0.8, 0.2], (n, 1))
    return accuracy(proba, y), mean_max_confidence(proba)


def test_rows_in_the_box_are_counted_with_their_interval(texts: Texts) -> None:
    texts(posterior_map_words.box_finding(200, 1000, pair(150, 200), pair(160, 200)))


def test_few_rows_are_called_few(texts: Texts) -> None:
    texts(posterior_map_words.box_finding(50, 1000, pair(40, 50), None), "50 rows")
    sentence = posterior_map_words.box_finding(4, 1000, pair(3, 4), pair(4, 4))
    texts(sentence, "4 rows")
    assert "19% to 99%" in sentence  # Clopper-Pearson of 3 in 4
    texts(posterior_map_words.box_finding(1, 1000, pair(1, 1), None), "1 row")


def test_an_empty_box_is_extrapolation(texts: Texts) -> None:
    texts(posterior_map_words.box_finding(0, 1000, None, None))


def test_the_mix_names_the_frequent_classes_and_counts_the_rest(texts: Texts) -> None:
    labels = np.repeat(np.arange(9), [9, 8, 7, 6, 5, 4, 3, 2, 0])
    mix = posterior_map_words.mix_words(np.bincount(labels), [f"c{k}" for k in range(9)])
    texts(mix)
    seven = posterior_map_words.mix_words(np.ones(7, dtype=np.int64), [f"c{k}" for k in range(7)])
    assert "further" not in seven


def test_what_is_held_is_said(texts: Texts) -> None:
    assert posterior_map_words.held_words(0, None) == ""
    texts(posterior_map_words.held_words(1, None), "at the median")
    texts(posterior_map_words.held_words(3, 7), "at a row")


@pytest.mark.parametrize(("alpha", "n"), [(0.01, 10), (0.01, 499), (0.05, 99), (0.2, 40)])
def test_the_rows_below_the_floor_are_counted(alpha: float, n: int) -> None:
    densities = np.arange(float(n))
    below = int((densities < data_floor(densities, alpha)).sum())
    text = posterior_map_words.floor_words(alpha, n)
    assert text.startswith(f"Of {n} held-out rows {below or 'none'} lie")
    assert ("more stable" in text) == (below < 4)


def grid_map(
    width: float, *, dark: bool = False, equal: bool = True, n: int = 2, title: str = "p"
) -> go.Figure:
    panels = [PosteriorPanel(title, np.zeros((3, 3))) for _ in range(n)]
    points = MapPoints(np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64), ("<b>",))
    return posterior_map_figure(
        np.linspace(0, width, 3),
        np.linspace(0, 10, 3),
        panels,
        points,
        class_name="<b>",
        prior=0.5,
        x_title="",
        y_title="",
        dark=dark,
        equal=equal,
        data_box=(1, 2, 1, 2),
    )


OTHERS = "Other classes"


def rows_of(
    class_name: str, classes: tuple[str, ...], *, dark: bool = False
) -> dict[str, go.Scatter]:
    """The rows of a map of the class by their name in its legend."""
    n, axis = len(classes), np.linspace(0, 10, 3)
    figure = posterior_map_figure(
        axis,
        axis,
        [PosteriorPanel("p", np.zeros((3, 3)))],
        MapPoints(np.zeros(n), np.zeros(n), np.arange(n), classes),
        class_name=class_name,
        prior=0.5,
        x_title="",
        y_title="",
        dark=dark,
    )
    return {one.name: one for one in figure.data if one.type == "scatter"}


def test_a_flat_map_leaves_no_empty_space_and_a_tall_one_stays_in_the_first_screen() -> None:
    flat, square, tall = (grid_map(width).layout.height for width in (20.0, 10.0, 8.0))
    assert flat < square == tall <= 460
    assert grid_map(20.0, equal=False).layout.height == square


def test_a_map_that_ends_white_has_a_frame_and_a_long_name_two_lines() -> None:
    figure = grid_map(10.0, title="Kernel density, geodesic")
    for axis in (figure.layout.xaxis2, figure.layout.yaxis2):
        assert axis.showline
        assert axis.mirror
    assert "Kernel density,<br>geodesic" in [one.text for one in figure.layout.annotations]


def test_the_colours_are_named_once_and_take_no_width() -> None:
    figure = grid_map(10.0, n=3)
    bars = [trace.colorbar for trace in figure.data if trace.type == "heatmap" and trace.showscale]
    assert [bar.orientation for bar in bars] == ["h"]
    said = [one.text for one in figure.layout.annotations if one.text.startswith("P(")]
    assert said == ["P(&lt;b&gt;)"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("classes", "other"), [(("a", "b"), "a"), (("a", "b", "c"), OTHERS)])
def test_rows_have_the_colour_of_their_end_of_the_scale(
    dark: bool, classes: tuple[str, ...], other: str
) -> None:
    colours = palette(dark)
    drawn = rows_of("b", classes, dark=dark)
    top, bottom = (posterior_scale(colours, 0.5)[at][1] for at in (-1, 0))
    assert {name: one.marker.color for name, one in drawn.items()} == {"b": top, other: bottom}
    assert drawn["b"].marker.symbol != drawn[other].marker.symbol
    for one in drawn.values():  # the outline stands out from either page, as the text does
        assert one.marker.line.color == colours.muted
        assert one.marker.line.width
    assert set(drawn[other].text) == set(classes) - {"b"}  # under the pointer


def test_rows_of_a_map_of_the_confidence_have_the_colours_of_their_classes() -> None:
    drawn = rows_of("", ("a", "b", "c"))
    assert [one.marker.color for one in drawn.values()] == list(palette(dark=False).classes[:3])


@pytest.mark.parametrize("dark", [False, True])
def test_the_box_of_the_data_is_dark_on_the_maps(dark: bool) -> None:
    shapes = json.loads(grid_map(10.0, dark=dark).to_json())["layout"]["shapes"]
    for shape in shapes[1:]:  # the first lies over the rows
        red, green, blue = (int(shape["line"]["color"][at : at + 2], 16) for at in (1, 3, 5))
        assert max(red, green, blue) < 80
