"""Charts as pages get them: every part is there, and names are where they can be escaped."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

from kdcal_core import calibration, charts, diagnostics
from kdcal_core.charts import Chart
from kdcal_core.charts.chart import BUTTONS
from kdcal_core.charts.pit import pit_table
from kdcal_core.diagnostics.calibrator_map import CalibratorMap, MapLine

HOSTILE = "<img src=x onerror=alert(1)>"
CLASSES = (HOSTILE, "plain")


def rows(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of two classes and what was drawn: the second is stated far too surely."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, n)
    y = (rng.random(n) < 0.5 + 0.4 * (p - 0.5)).astype(np.int64)
    return np.column_stack([1 - p, p]), y


def drawn(dark: bool) -> dict[str, Chart]:
    proba, y = rows()
    found = diagnostics.reliability(proba, y, kind="class", n_bins=10, label=0)
    everything = diagnostics.reliability(proba, y, kind="class", n_bins=10, smooth=False)
    kde = calibration.TopLabelKDE(shrinkage=None).fit(proba, y)
    curves = [kde.curve(label) for label in range(2)]
    anchors = [diagnostics.histogram_anchor(proba, y, label=label) for label in range(2)]
    halves = [diagnostics.two_halves(proba, y, label=label) for label in range(2)]
    of_event = calibration.EventCurve.of(curves[1], curves[0])
    all_rows = diagnostics.histogram_anchor(proba, y, label=1, kind="class")
    grid = np.linspace(0.0, 1.0, 101)
    none = np.zeros(0)
    densities = diagnostics.log_densities(
        np.linspace(-3.0, 0.0, 50), {HOSTILE: np.linspace(-9.0, -5.0, 20)}, -4.0
    )
    share = diagnostics.Estimate("", "", 0.02, 0.0, 0.05, 50, percent=True)
    points = {"sts": (grid, grid**2)}
    return {
        "reliability": charts.reliability_chart(found, CLASSES, dark=dark),
        "by class": charts.reliability_by_class_chart(everything, CLASSES, dark=dark),
        "scores": charts.scores_chart(diagnostics.score_histogram(proba, y), dark=dark),
        "confusion": charts.confusion_chart(
            diagnostics.confusion(proba, y, 2), "reverse", CLASSES, dark=dark
        ),
        "confidence": charts.confidence_curve_chart(curves[0], anchors[0], HOSTILE, dark=dark),
        "event": charts.confidence_curve_chart(of_event, all_rows, HOSTILE, dark=dark),
        "event bandwidths": charts.bandwidth_chart(
            [of_event], [of_event], [all_rows], CLASSES, dark=dark
        ),
        "event noise": charts.noise_chart(
            [diagnostics.two_halves(proba, y, label=1, kind="class")], CLASSES, dark=dark, seed=3
        ),
        "event methods": charts.methods_chart(all_rows, points, ("sts",), HOSTILE, dark=dark),
        "bandwidths": charts.bandwidth_chart(curves, curves, anchors, CLASSES, dark=dark),
        "noise": charts.noise_chart(halves, CLASSES, dark=dark, seed=3),
        "methods": charts.methods_chart(anchors[0], points, ("sts",), HOSTILE, dark=dark),
        "map": charts.calibrator_map_chart(
            CalibratorMap(
                "regions",
                (MapLine(HOSTILE, 40), MapLine("there", 60)),
                2,
                grid,
                np.stack([grid / 2, grid]),
                none,
                none,
            ),
            "heterogeneous_tree",
            CLASSES,
            dark=dark,
        ),
        "judged": charts.judged_reliability_chart(found.curves[0], "sts", dark=dark),
        "densities": charts.density_chart(densities, share, 20, 0.02, dark=dark),
        "repair": charts.repair_reliability_chart(
            found.curves[0], everything.curves[1], "heterogeneous_tree", HOSTILE, dark=dark
        ),
        "losses": charts.loss_change_chart([(HOSTILE, share)], dark=dark),
    }


@pytest.mark.parametrize("dark", [False, True])
def test_every_part_is_there_and_only_plain_text_holds_names(dark: bool) -> None:
    named = set()
    for name, chart in drawn(dark).items():
        assert chart.finding.endswith("."), name
        assert len(chart.alt) > 20, name
        assert chart.name == chart.name.strip() != "", name
        layout = chart.figure.layout
        margins = (one.margin.r for one in (layout, layout.template.layout))
        assert next(one for one in margins if one is not None) >= BUTTONS, name
        assert len(chart.how_to_read) > 100, name
        assert "<img" not in chart.how_to_read, name
        assert "<img" not in chart.figure.to_json().replace("\\u003c", "<"), name
        table = chart.table()
        assert isinstance(table, pd.DataFrame), name
        assert len(table), name
        named |= {name} if HOSTILE in f"{chart.finding} {chart.alt} {chart.name}" else set()
    # the sentences name classes and regions as they came: whoever shows them escapes them
    assert {"reliability", "confidence", "methods", "map", "densities", "repair"} <= named


def test_a_chart_says_what_its_result_says() -> None:
    shown = drawn(False)
    assert "says 0.20, sees 0.40" in shown["reliability"].finding
    assert shown["reliability"].figure.layout.yaxis.title.text == "How often it is the class"
    assert "20 of 20 rows" in shown["densities"].finding
    assert list(shown["noise"].table()["seed"].unique()) == [3]
    assert shown["by class"].table()["label"].unique().tolist() == list(CLASSES)


def test_of_many_groups_the_largest_are_drawn_and_the_table_holds_all() -> None:
    rng = np.random.default_rng(0)
    panels = [
        charts.PitPanel(f"group {n}", diagnostics.pit_histogram(rng.random(n), 10), "none")
        for n in (40, 400, 90, 200)
    ]
    chart = charts.pit_panels_chart(panels, name="PIT by region", columns=2, dark=False, most=2)
    assert "group 400" in chart.alt
    assert "group 200" in chart.alt
    assert "group 90" not in chart.alt
    assert len(chart.table()) == 4 * 10
    assert chart.table().equals(pit_table(panels))


def test_histograms_stand_one_below_the_other_on_a_narrow_page() -> None:
    panels = [
        charts.PitPanel(name, diagnostics.pit_histogram(np.linspace(0, 1, 40), 10), "other")
        for name in ("All rows", "A", "B")
    ]
    beside = charts.pit_panels_chart(panels, name="PIT", columns=3, dark=False).figure
    below = charts.pit_panels_chart(panels, name="PIT", columns=3, dark=False, narrow=True).figure
    assert len({title.x for title in beside.layout.annotations}) == 3
    assert len({title.x for title in below.layout.annotations}) == 1
    assert below.layout.height > 2 * beside.layout.height
    around = charts.pit_around_rows_chart(panels, dark=False, narrow=True).figure
    assert len({title.x for title in around.layout.annotations}) == 1


def test_the_lift_names_the_best_of_the_partitions() -> None:
    y = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    low, high = (np.array(p) for p in ([1, 2, 3, 4, 5, 6, 7, 8], [1, 5, 2, 6, 3, 7, 4, 8]))
    pair = diagnostics.paired_auc(low / 9, high / 9, y)
    same = diagnostics.paired_auc(low / 9, low / 9, y)
    chart = charts.auc_lift_chart(
        [("One map", pair), ("Tree", pair), ("Forest", same)], ["Tree", "Forest"], dark=False
    )
    assert "The largest lift: Tree," in chart.finding


def test_every_chart_is_light_unless_it_is_asked_to_be_dark():
    for name in charts.__all__:
        function = getattr(charts, name)
        if inspect.isfunction(inspect.unwrap(function)):
            asked = inspect.signature(function).parameters.get("dark")
            assert asked is None or asked.default is False, name
