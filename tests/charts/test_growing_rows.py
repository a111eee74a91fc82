"""The picture of a curve as rows are added."""

from __future__ import annotations

import numpy as np
import pytest

from kdcal_core.calibration import EventCurve, TopLabelKDE
from kdcal_core.charts import growth_chart


def curves(n: int) -> list:
    """Of n rows, half of which are predicted to be of the class."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, n) * np.where(np.arange(n) % 2, 1.0, -1.0) % 1.0
    proba, y = np.column_stack([1 - p, p]), (rng.random(n) < p).astype(int)
    return [TopLabelKDE(0.05).fit(proba[:m], y[:m]).curve(1) for m in (n // 4, n // 2, n)]


@pytest.mark.parametrize("dark", [False, True])
def test_curves_and_densities_of_a_quarter_half_and_all_rows(dark):
    drawn = growth_chart(curves(800), "yes", dark=dark)
    names = [trace.name for trace in drawn.figure.data]
    assert names.count("Right") == names.count("Wrong") == 3
    assert "A quarter of the rows (100)" in names
    assert "All rows (400)" in names
    last = drawn.figure.data[-2]
    # a kernel at the end of the axis reaches beyond it
    assert 0.9 < np.trapezoid(last.y, last.x) / curves(800)[-1].n_tp < 1.0
    assert len(drawn.table()) == 3 * len(curves(800)[0].score)


def test_the_finding_names_the_largest_difference_where_there_are_rows():
    few, half, every = curves(800)
    words = growth_chart([few, half, every], "yes").finding
    near = every.rows >= 5
    gap = np.abs(few.confidence - every.confidence)[near].max()
    assert f"with a quarter of the rows (100) by up to {100 * gap:.0f} points" in words
    assert growth_chart([every] * 3, "yes").finding.count("by up to 0 points") == 2


def test_the_break_of_an_event_s_curve_is_no_difference():
    rng = np.random.default_rng(1)
    p = rng.uniform(0, 1, 600)
    proba, y = np.column_stack([1 - p, p]), (rng.random(600) < p).astype(int)
    parts = []
    for m in (150, 300, 600):
        kde = TopLabelKDE(0.05).fit(proba[:m], y[:m])
        parts.append(EventCurve.of(kde.curve(1), kde.curve(0)))
    assert np.isnan(parts[-1].confidence).any()
    drawn = growth_chart(parts, "yes")
    assert "nan" not in drawn.finding
    assert "Rows with the event" in [trace.name for trace in drawn.figure.data]
