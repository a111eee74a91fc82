"""The simulation lab over training sizes: curves of many methods, boxes of few."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from kdcal_core.charts import SizesPanel, sizes_chart
from kdcal_core.charts.palette import method_style, palette

TWO = {"model": "Model", "local_500": "Local, k = 500"}
MSE = np.array([[[4.0, np.nan], [6.0, np.nan]], [[4.0, 1.0], [6.0, 3.0]]])


def drawn(methods, *panels, lead=("model",)):
    return sizes_chart([100, 1000], methods, panels, pd.DataFrame(), lead=lead, dark=False)


def test_many_methods_have_curves_with_one_legend_and_the_prior_has_its_name():
    methods = {
        key: key.title() for key in ("model", "isotonic", "sigmoid", "geodesic", "euclidean")
    }
    values = np.random.default_rng(0).random((2, 3, len(methods)))
    error = SizesPanel("Error", values)
    chart = drawn(methods, error, SizesPanel("Confidence", values, target=(0.5, "prior")))
    figure = chart.figure
    assert [trace.name for trace in figure.data if trace.showlegend] == list(methods.values())
    assert {trace.xaxis for trace in figure.data} == {"x", "x2"}
    (target,) = figure.layout.shapes
    assert (target.yref, target.y0, target.label.text) == ("y2", 0.5, "prior")
    assert list(figure.layout.xaxis.ticktext) == ["100", "1,000"]
    curve = next(one for one in figure.data if one.name == "Geodesic" and one.fill is None)
    np.testing.assert_allclose(curve.y, np.median(values[..., 3], axis=1))
    assert "quartile" in chart.how_to_read
    json.loads(figure.to_json())


def test_few_methods_have_boxes_side_by_side_that_hold_their_runs():
    panels = SizesPanel("MSE", MSE, log=True), SizesPanel("Coverage", MSE / 10, percent=True)
    chart = drawn(TWO, *panels, lead=TWO)
    model, local = chart.figure.data[:2]
    assert list(model.x) == ["100", "100", "1,000", "1,000"]
    assert list(local.y) == [1, 3]
    assert model.marker.color == method_style("model", palette(dark=False))[0] != local.marker.color
    assert chart.figure.layout.boxmode == "group"
    assert [trace.showlegend for trace in chart.figure.data] == [True, True, False, False]
    assert "MSE: 5.00 (Model) and 2.00 (Local, k = 500). Coverage: 50.0% (Model)" in chart.finding
    assert "whiskers" in chart.how_to_read


def test_settings_of_a_method_have_its_colour_and_fuller_boxes():
    keys = ("model", "local_100", "local_500", "local_1000")
    panel = SizesPanel("MSE", np.random.default_rng(0).random((2, 3, 4)))
    boxes = drawn({key: key for key in keys}, panel).figure.data[1:]
    colours = palette(dark=False)
    assert {box.marker.color for box in boxes} == {method_style("local", colours)[0]}
    fills = [float(box.fillcolor.rstrip(")").split(",")[-1]) for box in boxes]
    assert fills == sorted({*fills})
    assert len({box.marker.symbol for box in boxes}) == len(boxes)


def test_a_method_without_enough_rows_is_not_named():
    chart = sizes_chart(
        [100], TWO, [SizesPanel("MSE", MSE[:1])], pd.DataFrame(), lead=TWO, dark=True
    )
    assert chart.finding == "Medians of 2 runs with 100 rows. MSE: 5.00 (Model)."
