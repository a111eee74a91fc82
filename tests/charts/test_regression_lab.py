"""The regression lab's sentences and pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kdcal_core.charts import MeasuredMethod, SurfacePanel
from kdcal_core.charts.palette import method_style, palette
from kdcal_core.charts.regression_lab import (
    neighbour_boxes_chart,
    regression_lab_finding,
    regression_measures_chart,
    surfaces_chart,
)
from kdcal_core.diagnostics import Estimate


def number(value, half=1.0, **more):
    return Estimate("", "", value, value - half, value + half, 900, **more)


def found(mse, held):
    return {"mse_truth": number(mse), "coverage95": number(held, 0.01, percent=True)}


@pytest.mark.parametrize(
    ("model", "local", "hidden"),
    [
        ((50, 0.95), (20, 0.95), True),
        ((50, 0.9), (20, 0.95), False),
        ((50, 0.95), (49.5, 0.95), False),
    ],
)
def test_the_finding_says_when_coverage_hides_an_error(model, local, hidden):
    words = regression_lab_finding(found(*model), found(*model), found(*local))
    assert ("does not show it" in words) == hidden


def test_surfaces_share_the_shades_of_the_truth():
    axes = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]])
    truth, model = np.arange(9.0).reshape(3, 3), np.full((3, 3), 100.0)
    chart = surfaces_chart(
        axes, [SurfacePanel("Truth", truth), SurfacePanel("Model", model)], dark=False
    )
    for trace in chart.figure.data:
        assert (trace.zmin, trace.zmax) == (0, 8)
    table = chart.table()
    # the second axis varies slowest
    assert table.loc[5, ["x1", "x2", "Truth"]].tolist() == [2, 0, 5]
    assert "2.00, 0.00: 5" in chart.figure.data[0].hovertext[1][2]
    assert "96.03 (Model)" in chart.finding


def test_an_infinite_measure_is_named_and_left_out_of_the_picture():
    methods = [
        MeasuredMethod("model", "Model", (number(3.0), number(0.2, 0.1))),
        MeasuredMethod("global", "Global", (number(3.0), number(np.inf))),
    ]
    chart = regression_measures_chart({"crps": "CRPS", "kl": "KL"}, methods, dark=False)
    assert len(chart.figure.data) == 1
    assert "KL is infinite for Global" in chart.finding
    assert len(chart.table()) == 4


def test_boxes_hold_the_runs_of_each_method():
    mse = np.array([[[4.0, np.nan], [6.0, np.nan]], [[4.0, 1.0], [6.0, 3.0]]])
    chart = neighbour_boxes_chart(
        [1000, 5000], ["Model", "Local, k = 500"], mse, mse / 10, pd.DataFrame(), dark=False
    )
    model, local = chart.figure.data[:2]
    assert list(model.x) == ["1,000", "1,000", "5,000", "5,000"]
    assert list(local.y) == [1, 3]
    assert model.marker.color == method_style("model", palette(dark=False))[0] != local.marker.color
    assert "5 (Model) and 2 (Local, k = 500)" in chart.finding
