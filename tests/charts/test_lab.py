"""The simulation lab's sentences and pictures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.charts import BandLine, lab
from kdcal_core.charts.lab import (
    Compared,
    MeasuredMethod,
    glance_figure,
    interval_figure,
    sizes_figure,
)
from kdcal_core.charts.palette import method_style, palette
from kdcal_core.diagnostics import DistanceCurve, Estimate


def number(value, half=0.01):
    return Estimate("", "", value, value - half, value + half, 2000)


def curve(*mean, radii=(0.0, 1.0, 2.0)):
    mean = np.array(mean)
    return DistanceCurve(np.array(radii), mean, mean - 0.1, mean + 0.1, (25.0, 75.0), 100, 0)


@pytest.mark.parametrize(
    ("model", "graph"),
    [
        pytest.param((0.9, 0.06), (0.5, 0.061), id="the model is sure far away"),
        pytest.param((0.51, 0.06), (0.5, 0.06), id="the model is not"),
        pytest.param((0.9, 0.06), (0.8, 0.06), id="the version is sure too"),
        pytest.param((0.9, 0.060), (0.5, 0.055), id="fewer errors"),
        pytest.param((0.9, 0.060), (0.5, 0.075), id="more, within the noise"),
        pytest.param((0.9, 0.060), (0.5, 0.300), id="clearly more"),
    ],
)
def test_the_finding_says_what_holds(model, graph, texts):
    one, other = (
        Compared(number(far), number(error), number(0.1)) for far, error in (model, graph)
    )
    texts(lab.lab_finding("forest", one, other, radius=2.0, prior=0.5))


@pytest.mark.parametrize(("distance", "lost"), [(0.1, False), (0.14, False), (0.4, True)])
def test_the_finding_says_when_confidence_among_the_data_is_lost(distance, lost, texts):
    one, other = (Compared(number(0.9), number(0.1), number(each)) for each in (0.1, distance))
    words = lab.lab_finding("forest", one, other, radius=2.0, prior=0.5)
    texts(words)
    assert ("Hellinger" in words) == lost


@pytest.mark.parametrize(
    ("model", "graph"),
    [
        pytest.param((0.8, 0.9, 0.9), (0.8, 0.6, 0.5), id="from radius 2"),
        pytest.param((0.8, 0.9, 0.9), (0.8, 0.5, 0.6), id="never for good"),
        pytest.param((0.8, 0.5, 0.5), (0.5, 0.5, 0.5), id="both, from radius 0 and 1"),
        pytest.param((0.8, 0.9, 0.93), (0.5, 0.5, 0.5), id="the forest not at all"),
    ],
)
def test_from_where_on_confidence_is_the_prior(model, graph, texts):
    texts(lab.distance_words("forest", curve(*model), curve(*graph), 0.5))


def test_what_differs_clearly_is_named_and_nothing_else(texts):
    keys = ("error", "hellinger", "ece", "log_loss")
    same = {key: number(0.1) for key in keys}
    assert "no measure" in lab.measures_words(same, same)
    better = {**same, "ece": number(0.05), "log_loss": number(0.2)}
    words = lab.measures_words(same, better)
    texts(words, "one lower, one higher")
    assert "Hellinger" not in words
    both = {**same, "error": number(0.05), "ece": number(0.05)}
    texts(lab.measures_words(same, both), "two lower")


@pytest.mark.parametrize(
    "distances",
    [
        pytest.param([0.0, 0.0], id="at the centre"),
        pytest.param([4.47, 4.472], id="everywhere alike"),
        pytest.param([0.1, 0.2, 0.9], id="at several distances"),
        pytest.param([0.0, 0.0, 1.0], id="half at the centre"),
    ],
)
def test_where_the_floor_hands_over(distances, texts):
    texts(lab.switch_words(np.array(distances)))


def test_how_much_the_model_counts_among_the_data():
    assert "is not used" in lab.lab_blend_words(None)


def test_alternative_texts_hold_numbers(texts):
    texts(lab.distance_alt(["Forest"], [curve(0.8, 0.9, 0.9)]))
    assert "radius 0" in lab.distance_alt([], [])
    assert "Forest 0.100" in lab.measures_alt(["Forest"], [number(0.1)])
    assert "Spiral" in lab.maps_alt("forest", "Spiral", "Finding.")


def methods(*values):
    return [
        MeasuredMethod(key, label, tuple(number(value + 0.1 * at) for at in range(2)))
        for key, label, value in zip(("model", "geodesic"), ("Forest", "Graph"), values,
                                     strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("dark", [False, True])
def test_intervals_are_drawn_as_they_are(dark):
    figure = interval_figure(["Error", "ECE"], methods(0.1, 0.2), dark=dark)
    assert len(figure.data) == 2
    errors = figure.data[0]
    assert list(zip(errors.y, errors.x, strict=True)) == [("Forest", 0.1), ("Graph", 0.2)]
    assert errors.error_x.array[0] == pytest.approx(0.01)
    assert errors.marker.color[1] == method_style("kernel_density", palette(dark))[0]
    assert [band.x0 for band in figure.layout.shapes] == pytest.approx([0.09, 0.19])
    assert figure.layout.xaxis2.title.text == "ECE"
    assert "#00000" not in figure.to_json()


def test_an_interval_that_does_not_hold_its_value_draws_no_negative_stroke():
    (one, two) = methods(0.1, 0.2)
    odd = replace(one.estimates[0], low=0.15)
    figure = interval_figure(["Error"], [replace(one, estimates=(odd,)), two], dark=False)
    assert figure.data[0].error_x.arrayminus[0] == 0


def line(key, values):
    x = np.array([100.0, 1000.0])
    middle = np.array(values)
    return BandLine(key, key, x, middle, middle - 0.1, middle + 0.1)


def test_sizes_have_one_legend_and_name_the_prior():
    lines = [line("model", [0.3, 0.2]), line("geodesic", [0.4, 0.1])]
    figure = sizes_figure(
        {"Error": lines, "Confidence": lines}, dark=False, target=("Confidence", 0.5, "prior")
    )
    shown = [trace.name for trace in figure.data if trace.showlegend]
    assert shown == ["model", "geodesic"]
    assert {trace.xaxis for trace in figure.data} == {"x", "x2"}
    assert [shape.yref for shape in figure.layout.shapes] == ["y2"]
    assert list(figure.layout.xaxis.ticktext) == ["100", "1,000"]
    json.loads(figure.to_json())


def test_a_glance_shows_every_row_of_every_class():
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = np.repeat([0, 1], 25)
    figure = glance_figure(X, y, dark=True)
    assert sum(len(trace.x) for trace in figure.data) == 50
    np.testing.assert_allclose(figure.data[1].y, X[25:, 1].astype(np.float32))
