"""The regression lab's sentences and pictures."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.charts.regression_lab import regression_lab_finding, surfaces_chart
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
    words = regression_lab_finding(found(*model), found(*local))
    assert ("does not show it" in words) == hidden


def test_surfaces_share_the_shades_of_the_truth():
    axes = np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]])
    truth, model = np.arange(9.0).reshape(3, 3), np.full((3, 3), 100.0)
    chart = surfaces_chart(axes, {"Truth": truth, "Model": model}, dark=False)
    for trace in chart.figure.data:
        assert (trace.zmin, trace.zmax) == (0, 8)
    table = chart.table()
    # the second axis varies slowest
    assert table.loc[5, ["x1", "x2", "Truth"]].tolist() == [2, 0, 5]
    assert "2.00, 0.00: 5" in chart.figure.data[0].hovertext[1][2]
    assert "96.03 (Model)" in chart.finding


def test_the_finding_says_whether_the_error_falls():
    words = [
        regression_lab_finding(found(50, 0.95), found(after, 0.95)) for after in (20, 49.5, 80)
    ]
    starts = [
        "Local recalibration lowers the mean squared error",
        "The mean squared error against the true mean is 50.0 (49.0 to 51.0) before",
        "Local recalibration raises the mean squared error",
    ]
    assert [each.startswith(start) for each, start in zip(words, starts, strict=True)] == [True] * 3
