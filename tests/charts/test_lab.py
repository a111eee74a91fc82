"""The simulation lab's sentences and pictures."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.charts import lab
from kdcal_core.charts.lab import Compared, glance_figure
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
    assert "Spiral" in lab.maps_alt("forest", "Spiral", "Finding.")


def test_a_glance_shows_every_row_of_every_class():
    X = np.random.default_rng(0).normal(size=(50, 3))
    y = np.repeat([0, 1], 25)
    figure = glance_figure(X, y, dark=True)
    assert sum(len(trace.x) for trace in figure.data) == 50
    np.testing.assert_allclose(figure.data[1].y, X[25:, 1].astype(np.float32))
