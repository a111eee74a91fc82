"""The image lab's sentences and pictures."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.charts import shift_chart, shifted_pictures_chart

PLACES = (5.0, 127.0, 254.0)


def test_the_curves_are_means_with_the_middle_half_of_the_images():
    model = np.array([[0.9, 1.0, 0.8, 0.9, 0.9], [1.0] * 5, [0.5, 0.5, 0.6, 0.7, 0.7]])
    said = {"model": ("Model", model), "geodesic": ("Kernel density", np.full((3, 5), 0.75))}
    chart = shift_chart(PLACES, said, (127.0,), scale="Intensity")
    table = chart.table().set_index(["method", "place"])
    found = table.loc[("Model", 254.0), ["confidence", "low", "high"]]
    assert found.tolist() == pytest.approx([0.6, 0.5, 0.7])
    assert "The network is least sure at 254 (60%)" in chart.finding
    lines = [shape for shape in chart.figure.layout.shapes if shape.type == "line"]
    assert [line.x0 for line in lines] == [127.0]
    prior = next(trace for trace in chart.figure.data if trace.name == "Prior 50%")
    assert [*prior.y] == [0.5, 0.5]


@pytest.mark.parametrize("dark", [False, True])
def test_every_image_stands_above_its_place_and_both_confidences(dark):
    samples = np.linspace(0, 255, 9 * 16).reshape(9, 4, 4)
    places = np.arange(9.0)
    chart = shifted_pictures_chart(
        samples, places, np.full(9, 0.9), np.full(9, 0.6), scale="Share", dark=dark
    )
    said = [each.text for each in chart.figure.layout.annotations]
    assert said == [f"{place:g}: 90%, 60%" for place in places]
    assert chart.panels is not None
    assert chart.panels.titles == ("Share 0 to 2", "Share 3 to 5", "Share 6 to 8")
    assert sum(len(one.data) for one in chart.panels.figures) == 9
