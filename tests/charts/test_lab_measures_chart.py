"""The simulation lab's measures: dots and intervals of every method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.charts import MeasuredMethod
from kdcal_core.charts.lab_measures import interval_figure, measures_chart
from kdcal_core.charts.palette import method_style, palette
from kdcal_core.diagnostics import Estimate


def number(value, half=0.01):
    return Estimate("", "", value, value - half, value + half, 2000)


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


def test_an_infinite_measure_is_named_and_left_out_of_the_picture():
    methods = [
        MeasuredMethod("model", "Model", (number(3.0), number(0.2))),
        MeasuredMethod("global", "Global", (number(3.0), number(np.inf))),
    ]
    titles = {"crps": "CRPS", "kl": "KL"}
    chart = measures_chart(titles, methods, lead="crps", how_to_read="", dark=False)
    assert len(chart.figure.data) == 1
    assert "KL is infinite for Global" in chart.finding
    assert "CRPS: Model 3.000" in chart.alt
    assert len(chart.table()) == 4
