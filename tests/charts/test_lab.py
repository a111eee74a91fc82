"""The simulation lab's sentences and pictures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.charts import BandLine, lab, palette
from kdcal_core.charts.lab import (
    Compared,
    MeasuredMethod,
    glance_figure,
    interval_figure,
    sizes_figure,
)
from kdcal_core.diagnostics import DistanceCurve, Estimate


def number(value, half=0.01):
    return Estimate("", "", value, value - half, value + half, 2000)


def curve(*mean, radii=(0.0, 1.0, 2.0)):
    mean = np.array(mean)
    return DistanceCurve(np.array(radii), mean, mean - 0.1, mean + 0.1, (25.0, 75.0), 100, 0)


@pytest.mark.parametrize(
    ("model", "graph", "said"),
    [
        ((0.9, 0.06), (0.5, 0.061), "still says 0.90, the kernel density version 0.50, the prior;"),
        ((0.51, 0.06), (0.5, 0.06), "the forest says 0.51, the kernel"),
        ((0.9, 0.06), (0.8, 0.06), "version 0.80, and the prior is 0.50;"),
        ((0.9, 0.060), (0.5, 0.055), "error 0.055 against 0.060."),
        ((0.9, 0.060), (0.5, 0.075), "error 0.075 against 0.060, more, though within"),
        ((0.9, 0.060), (0.5, 0.300), "error 0.300 against 0.060, clearly more."),
    ],
)
def test_the_finding_says_what_holds(model, graph, said):
    one, other = (
        Compared(number(far), number(error), number(0.1)) for far, error in (model, graph)
    )
    assert said in lab.lab_finding("forest", one, other, radius=2.0, prior=0.5)


@pytest.mark.parametrize(("distance", "lost"), [(0.1, False), (0.14, False), (0.4, True)])
def test_the_finding_tells_when_confidence_among_the_data_is_lost(distance, lost):
    one, other = (Compared(number(0.9), number(0.1), number(each)) for each in (0.1, distance))
    words = lab.lab_finding("forest", one, other, radius=2.0, prior=0.5)
    assert ("left the truth (Hellinger distance 0.40 against 0.10)." in words) == lost


@pytest.mark.parametrize(
    ("model", "graph", "said"),
    [
        ((0.8, 0.9, 0.9), (0.8, 0.6, 0.5), "stays within 0.02 of the prior 0.50 from radius 2 on"),
        ((0.8, 0.9, 0.9), (0.8, 0.5, 0.6), "does not stay within 0.02 of the prior 0.50 up to"),
        ((0.8, 0.5, 0.5), (0.5, 0.5, 0.5), "from radius 0 on; the forest from radius 1 on."),
        ((0.8, 0.9, 0.93), (0.5, 0.5, 0.5), "the forest says 0.93 at radius 2."),
    ],
)
def test_from_where_on_confidence_is_the_prior(model, graph, said):
    words = lab.distance_words("forest", curve(*model), curve(*graph), 0.5)
    assert said in words


def test_what_differs_clearly_is_named_and_nothing_else():
    keys = ("error", "hellinger", "ece", "log_loss")
    same = {key: number(0.1) for key in keys}
    assert "no measure" in lab.measures_words(same, same)
    better = {**same, "ece": number(0.05), "log_loss": number(0.2)}
    words = lab.measures_words(same, better)
    assert "calibration error clearly lower, log loss clearly higher" in words
    assert "Hellinger" not in words
    both = {**same, "error": number(0.05), "ece": number(0.05)}
    assert "error and calibration error clearly lower;" in lab.measures_words(same, both)


@pytest.mark.parametrize(
    ("distances", "said"),
    [
        ([0.0, 0.0], "below the floor even at its centre"),
        ([4.47, 4.472], "Every polytope hands over to the prior at 4.47"),
        ([0.1, 0.2, 0.9], "within 0.2 of their centre, all within 0.9"),
        ([0.0, 0.0, 1.0], "within 0 of their centre, all within 1"),
    ],
)
def test_where_the_floor_hands_over(distances, said):
    assert said in lab.switch_words(np.array(distances))


def test_how_much_the_model_counts_among_the_data():
    assert "does not count" in lab.lab_blend_words(None)


def test_alternative_texts_tell_numbers():
    assert "Forest from 0.80 to 0.90" in lab.distance_alt(["Forest"], [curve(0.8, 0.9, 0.9)])
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
    assert errors.marker.color[1] == palette(dark).calibrated
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
