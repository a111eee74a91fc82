"""A comparison drawn and in words: what is marked, what is left out, what sentences claim."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy.special import expit
from texts.snapshot import Texts

from kdcal_core.calibration import TemperatureScaling
from kdcal_core.charts import (
    against_model,
    comparison_finding,
    comparison_table,
    method_name,
    ranked,
)
from kdcal_core.charts.comparison import (
    MODEL_NAME,
    comparison_figure,
    method_reliability_figure,
    method_reliability_table,
    paired_figure,
)
from kdcal_core.charts.palette import palette
from kdcal_core.charts.score_split import split_chart, split_table, split_words
from kdcal_core.data import ScoredSet
from kdcal_core.evaluation import Comparison, compare
from kdcal_core.review import ReviewData

HOSTILE = "<b>bold</b>"


def rows(n: int, sharper: float, seed: int = 0) -> ReviewData:
    """Two classes, log odds stated ``sharper`` times too large."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 1.5
    y = (rng.random(n) < expit(z)).astype(np.int64)
    p = expit(sharper * z)
    scored = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    return ReviewData(scored, None, scored.classes, {})


@pytest.fixture(scope="module")
def over() -> Comparison:
    methods = ["sts", "platt", "histogram", (HOSTILE, TemperatureScaling("class"))]
    return compare(methods, rows(1500, 3.0), n_boot=100)


@pytest.fixture(scope="module")
def right() -> Comparison:
    return compare(["sts", "histogram"], rows(600, 1.0), n_boot=100)


def spec(figure) -> dict:
    return json.loads(figure.to_json())


def test_the_order_is_the_measure_s_and_turns_where_more_is_better(over: Comparison) -> None:
    for measure in ("log_loss", "auc"):
        values = [over.method(key).scores[measure].value for key in ranked(over, measure)]
        better = np.diff(values) * (1 if measure == "log_loss" else -1)
        assert (better > -1e-12).all(), "only values that differ by rounding may change places"
    assert ranked(over, "fit_seconds")[-1] == over.reference


@pytest.mark.parametrize("dark", [False, True])
def test_dots_stand_where_the_numbers_are_and_full_ones_are_the_best_set(
    over: Comparison, dark: bool
) -> None:
    measures = ("log_loss", "ece")
    order = ranked(over, "log_loss")
    figure = comparison_figure(over, measures, order, dark=dark)
    for trace, measure in zip(figure.data, measures, strict=True):
        scores = [over.method(key).scores[measure] for key in order]
        np.testing.assert_allclose(trace.x, [one.value for one in scores])
        np.testing.assert_allclose(
            trace.error_x.array, [max(one.high - one.value, 0) for one in scores]
        )
        full = {
            key
            for key, symbol in zip(order, trace.marker.symbol, strict=True)
            if not symbol.endswith("open")
        }
        assert full == set(over.close_to_best(measure))
        grey = [key == over.reference for key in order]
        assert [colour == palette(dark).model for colour in trace.marker.color] == grey
    names = figure.layout.yaxis.ticktext
    assert MODEL_NAME in names
    assert "<b>" not in figure.to_json().replace("\\u003c", "<").replace("<br>", "")
    lines = [shape for shape in figure.layout.shapes if shape.type == "line"]
    model = over.method(over.reference).scores
    assert [line.x0 for line in lines] == [model[measure].value for measure in measures]


def test_measures_stand_one_below_the_other_on_a_narrow_page(over: Comparison) -> None:
    measures, order = ("log_loss", "ece"), ranked(over, "log_loss")
    for figure in (
        comparison_figure(over, measures, order, dark=False, narrow=True),
        paired_figure(over, measures, order, "model", dark=False, narrow=True),
    ):
        layout = figure.layout
        assert layout.xaxis.domain == layout.xaxis2.domain == (0.0, 1.0)
        assert layout.yaxis.domain[0] > layout.yaxis2.domain[1]
        assert layout.yaxis2.showticklabels


def test_speed_has_logarithmic_axes_and_no_dot_for_nothing(over: Comparison) -> None:
    figure = comparison_figure(over, ("size_bytes",), ranked(over, "size_bytes"), dark=False)
    assert figure.layout.xaxis.type == "log"
    (trace,) = figure.data
    assert min(trace.x) > 0
    assert len(trace.x) == sum(one.size_bytes > 0 for one in over.methods)


@pytest.mark.parametrize("against", ["model", "best"])
def test_paired_marks_are_full_where_rows_tell_methods_apart(
    over: Comparison, against: str
) -> None:
    order = ranked(over, "log_loss")
    (trace,) = paired_figure(over, ("log_loss",), order, against, dark=False).data
    other = over.reference if against == "model" else over.best["log_loss"]
    shown = [key for key in order if key != other]
    pairs = {pair.key: pair for pair in over.paired["log_loss", against]}
    np.testing.assert_allclose(trace.x, [pairs[key].difference.value for key in shown])
    full = [not symbol.endswith("open") for symbol in trace.marker.symbol]
    assert full == [pairs[key].verdict != "cannot be told apart" for key in shown]
    assert any(full)


def test_every_method_has_its_picture_on_one_scale(over: Comparison) -> None:
    order = ranked(over, "log_loss")
    figure = spec(method_reliability_figure(over, order, dark=False))
    layout = figure["layout"]
    titles = [one["text"] for one in layout["annotations"]]
    assert [method_name(over, key) for key in order if key != HOSTILE] == [
        title for title in titles if title in {method_name(over, key) for key in order}
    ]
    assert not any("<b>" in title for title in titles)
    counts = [layout[f"yaxis{2 * at + 2}"]["range"] for at in range(len(order))]
    assert all(one == counts[0] for one in counts)
    assert all(layout[f"yaxis{2 * at + 1 if at else ''}"]["range"] == [-0.03, 1.04]
               for at in range(len(order)))  # fmt: skip
    bars = [trace for trace in figure["data"] if trace["type"] == "bar"]
    assert len(bars) == len(order)
    table = method_reliability_table(over, order)
    assert table.groupby("method")["count"].sum().eq(1500).all()
    for at, bar in enumerate(bars):
        assert bar["yaxis"] == f"y{2 * at + 2}"
        assert bar["xaxis"] == (f"x{at + 1}" if at else "x")


def test_the_table_has_a_line_for_each_method_and_measure(over: Comparison) -> None:
    table = comparison_table(over, ("log_loss", "auc"))
    assert len(table) == 2 * len(over.methods)
    assert set(table["name"]) == {method_name(over, one.key) for one in over.methods}


def test_calibrators_are_said_to_better_an_over_confident_model(
    over: Comparison, texts: Texts
) -> None:
    finding = comparison_finding(over, "log_loss")
    close = over.close_to_best("log_loss")
    assert len(close) > 1
    for key in close:
        assert over.method(key).name in finding
    texts(finding)
    change = next(p for p in over.paired["log_loss", "model"] if p.key == close[0])
    assert change.difference.value < 0
    texts(against_model(over, "log_loss"), "against the model")


def test_a_calibrated_model_is_said_to_need_nothing(right: Comparison, texts: Texts) -> None:
    texts(comparison_finding(right, "log_loss"))
    assert {one.verdict for one in right.paired["log_loss", "model"]} <= {
        "cannot be told apart",
        "worse",
    }


def test_each_case_of_the_finding(right: Comparison, texts: Texts) -> None:
    """Verdicts set by hand: one best, the model best, some of the best better than the model."""

    def finding(verdicts: dict[str, str], best: str, model: dict[str, str]) -> str:
        def pairs(against: str, given: dict[str, str]):
            return tuple(
                dataclasses.replace(one, verdict=given.get(one.key, "cannot be told apart"))
                for one in right.paired["log_loss", against]
            )

        changed = {
            **right.paired,
            ("log_loss", "best"): pairs("best", verdicts),
            ("log_loss", "model"): pairs("model", model),
        }
        found = dataclasses.replace(right, paired=changed, best={**right.best, "log_loss": best})
        return comparison_finding(found, "log_loss")

    alone = {"uncalibrated": "worse", "histogram": "worse"}
    texts(finding(alone, "sts", {"sts": "better"}), "one best")
    texts(finding({"sts": "worse", "histogram": "worse"}, "uncalibrated", {}), "the model best")
    texts(finding({"uncalibrated": "worse"}, "sts", {}), "none better than the model")
    texts(finding({}, "sts", {"sts": "better"}), "one of the best better")


def test_where_nobody_differs_from_the_model_nobody_is_named(right: Comparison) -> None:
    unclear = tuple(
        dataclasses.replace(one, verdict="cannot be told apart")
        for one in right.paired["log_loss", "model"]
    )
    found = dataclasses.replace(right, paired={**right.paired, ("log_loss", "model"): unclear})
    assert against_model(found, "log_loss") == ""


def test_speed_is_that_of_calibrators_and_not_of_the_model(over: Comparison) -> None:
    finding = comparison_finding(over, "fit_seconds")
    assert finding.startswith("Seconds to fit: from ")
    assert MODEL_NAME not in finding


@pytest.mark.parametrize("dark", [False, True])
def test_parts_of_the_brier_score_add_up_and_lie_on_their_lines(
    over: Comparison, dark: bool
) -> None:
    order = ranked(over, "brier")
    table = split_table(over, order).set_index("method")
    whole = table["miscalibration"] - table["discrimination"] + table["uncertainty"]
    np.testing.assert_allclose(table["brier"], whole)
    scores = [over.method(key).scores["brier"].value for key in order]
    np.testing.assert_allclose(table["brier"], scores)
    drawn = split_chart(over, order, dark=dark).figure.data
    for line in drawn:
        if line["mode"] == "lines":
            stated = float(line["hovertext"][0].split()[-1])
            score = line["x"][0] - line["y"][0] + table["uncertainty"].iloc[0]
            assert score == pytest.approx(stated, abs=1e-4)
    names = {line["name"] for line in drawn if line["mode"] == "markers"}
    assert HOSTILE not in names
    assert len(names) == len(order)


def test_words_tell_calibration_from_knowledge(over: Comparison, right: Comparison) -> None:
    order = ranked(over, "brier")
    assert "discriminates as the model does" in split_words(over, order)
    informed = dataclasses.replace(
        over.methods[1].split, discrimination=over.methods[0].split.discrimination + 0.05
    )

    def words(**given) -> str:
        better = dataclasses.replace(over.methods[1], split=informed, **given)
        found = dataclasses.replace(over, methods=(over.methods[0], better))
        return split_words(found, [one.key for one in found.methods])

    claim = "a better model, not a better calibration"
    beyond, chance = (0.02, 0.08), (-0.01, 0.11)
    assert claim in words(reads_inputs=True, discriminates=beyond)
    assert "better by 0.0500 (0.0200 to 0.0800)" in words(reads_inputs=True, discriminates=beyond)
    assert claim not in words(discriminates=beyond)
    assert "from the model's probabilities alone" in words(discriminates=beyond)
    for unclear in (chance, None):
        said = words(reads_inputs=True, discriminates=unclear)
        assert claim not in said
        assert "cannot be told apart from the model's" in said
    alone = dataclasses.replace(right, methods=right.methods[:1])
    assert "no method has a smaller score" in split_words(alone, [right.reference])
