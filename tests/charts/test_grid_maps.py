"""Maps without their rows: what a cell is the mean of, and that no row can be read from it."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.charts import local_grid_chart, misses_grid_chart
from kdcal_core.diagnostics import LocalPit, Misses

HOSTILE = "<img src=x onerror=alert(1)>"


def missed(x: np.ndarray) -> Misses:
    """Outcomes above their intervals right of one half."""
    above = x > 0.5
    return Misses(HOSTILE, np.zeros(len(x), dtype=bool), above, len(x), 0, int(above.sum()))


def test_a_cell_is_the_share_of_its_rows() -> None:
    xy = np.random.default_rng(0).uniform(size=(4000, 2))
    panels = [missed(xy[:, 0]), missed(xy[:, 0])]
    chart = misses_grid_chart(xy, panels, x_title=HOSTILE, y_title="b", level=0.9)
    table = chart.table()
    left, right = table[table["x_high"] < 0.5], table[table["x_low"] > 0.5]
    assert (left[HOSTILE] == 0.0).all()
    assert (right[HOSTILE] == 1.0).all()
    assert table["rows"].min() >= 10
    assert table["x_low"].min() > xy[:, 0].min()  # no row is an end
    assert len(chart.figure.data) == 2
    assert "<img" not in chart.figure.to_json()


@pytest.mark.parametrize("n", [9, 40])
def test_cells_of_few_rows_are_empty(n: int) -> None:
    xy = np.random.default_rng(1).uniform(size=(n, 2))
    chart = misses_grid_chart(xy, [missed(xy[:, 0])], x_title="a", y_title="b", level=0.95)
    assert chart.table().empty
    assert np.isnan(chart.figure.data[0].z).all()


def test_location_and_spread_are_means_of_neighbourhoods() -> None:
    rng = np.random.default_rng(2)
    xy = rng.uniform(size=(300, 2))
    bias, zero = np.where(xy[:, 0] > 0.5, 0.2, -0.1), np.zeros(300)
    kind = np.where(bias > 0, "too low", "too high")
    local = LocalPit(
        *(xy, np.arange(300), bias, zero + 0.1, zero + 0.9, zero, zero, kind),
        *(100, 900, 0.95, 99, 0),
    )
    chart = local_grid_chart(local, x_title="a", y_title="b")
    table = chart.table()
    assert set(table[table["x_high"] < 0.5]["mean_pit"]) == {0.4}
    assert set(table[table["x_low"] > 0.5]["mean_pit"]) == {0.7}
    assert set(table["spread"]) == {1.1}
    assert table["neighbourhoods"].sum() > 270  # all but the outermost
    assert "predictions are too low in" in chart.finding
