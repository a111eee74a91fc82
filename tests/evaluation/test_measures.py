"""The registry of measures says of each what the estimates say themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from kdcal_core.charts import MeasuredRecalibration, recalibration_measures_chart
from kdcal_core.cli.diagnose_report import measure, measure_regression
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import summary
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.evaluation import (
    MEASURES,
    Measure,
    Space,
    beside_model,
    compare,
    compared_measures,
    judge_recalibrators,
    meaning_of,
    regression_scores,
    row_measure,
)
from kdcal_core.review import ReviewData

rng = np.random.default_rng(3)
P = rng.uniform(0.05, 0.95, 300)
HALF = np.array([[0.5]])
SAME = "cannot be told apart"
PROBA = np.column_stack([1.0 - P, P])
Y = (rng.random(300) < P).astype(np.int64)
ROWS = ScoredSet(PROBA, Y, ("no", "yes"), "digest", "calibration")
BY_SET = [one for one in MEASURES.values() if one.by_set is not None]


@pytest.mark.parametrize("measure", BY_SET, ids=lambda one: one.key)
def test_an_estimate_has_the_title_and_direction_of_its_measure(measure: Measure) -> None:
    assert measure.by_set is not None
    found = measure.by_set(PROBA, Y, level=0.9, sample_weight=np.ones(300))
    assert found.label == measure.title
    assert found.lower_is_better == measure.lower_is_better
    assert found.level == 0.9
    assert meaning_of(found) == measure.meaning


@pytest.mark.parametrize("key", ["log_loss", "brier"])
def test_rows_average_to_the_set(key: str) -> None:
    measure = MEASURES[key]
    assert measure.by_row is not None
    assert measure.by_set is not None
    mean = measure.by_row(PROBA, Y).mean()
    assert mean == pytest.approx(measure.by_set(PROBA, Y).value, rel=1e-12)


def test_scores_of_a_regression_have_the_titles_of_the_registry() -> None:
    y = rng.normal(size=200)
    truth = Normal(np.zeros(200), 1.0)
    found = regression_scores(
        Normal(np.full(200, 0.1), 1.0), y, scale=1.0, true_distribution=truth
    ).rows
    titles = {key: (one.label, one.lower_is_better) for key, one in found.items()}
    assert titles == {key: (MEASURES[key].title, MEASURES[key].lower_is_better) for key in found}


def test_tiles_have_a_meaning_and_no_two_measures_a_title() -> None:
    assert all(meaning_of(tile) for tile in summary(ROWS))
    titles = [one.title for one in MEASURES.values()]
    assert len(titles) == len(set(titles))
    assert all(one.meaning.endswith(".") and one.unit for one in MEASURES.values())


def test_one_entry_more_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    again = replace(MEASURES["brier"], key="quadratic", title="Quadratic score")
    monkeypatch.setitem(MEASURES, "quadratic", again)
    found = compare(["sts"], ReviewData(ROWS, None, ROWS.classes, {}), n_boot=100)
    assert "quadratic" in [one.key for one in compared_measures()]
    assert (
        found.paired["quadratic", "model"][1].p_value == found.paired["brier", "model"][1].p_value
    )
    for method in found.methods:
        assert method.scores["quadratic"].value == method.scores["brier"].value


@pytest.fixture
def further() -> Iterator[None]:
    """What one new file adds: two measures that offer themselves."""
    before = dict(MEASURES)
    row_measure(
        "spherical",
        "Spherical score",
        "Minus the true class's share of the vector's length.",
        "share",
        lambda proba, y: -proba[np.arange(len(y)), y] / np.linalg.norm(proba, axis=1),
    ).offer()
    Measure(
        "absolute",
        "Absolute error",
        "Distance of the predicted median from the outcome.",
        "the outcome's unit",
        True,
        "distribution",
        by_row=lambda distribution, y, scale: np.abs(y - distribution.ppf(HALF)[:, 0]),
    ).offer()
    yield
    MEASURES.clear()
    MEASURES.update(before)


@pytest.mark.usefixtures("further")
def test_a_measure_offered_by_one_file_is_used_by_all() -> None:
    found = compare(["sts"], ReviewData(ROWS, None, ROWS.classes, {}), n_boot=100)
    assert found.method("sts").scores["spherical"].value < 0.0
    assert [one.verdict for one in found.paired["spherical", "model"]] == [SAME, SAME]
    listed = measure(ROWS, n_bins=10, level=0.9).estimates[-1]
    assert (listed.label, listed.level) == ("Spherical score", 0.9)
    assert meaning_of(listed) == MEASURES["spherical"].meaning

    y = rng.normal(1.0, size=200)
    rows = RegressionSet(Normal(np.zeros(200), 1.0), y, "digest", "calibration")
    space = Space("none", np.zeros((200, 1)), None)
    judged = judge_recalibrators(["global"], rows, None, space)
    model, recalibrated = judged.methods
    assert model.scores.rows["absolute"].value == pytest.approx(np.abs(y).mean())
    assert recalibrated.differences["absolute"].high < 0.0
    lines = [
        MeasuredRecalibration(one.key, one.title, one.scores, one.differences)
        for one in judged.methods
    ]
    assert "Absolute error" in recalibration_measures_chart(lines, dark=False).alt
    told = measure_regression(rows, {}, scale=1.0, n_bins=10, level=0.9, seed=0)
    assert told.scores.rows["absolute"].label == "Absolute error"


PAIRED = [one for one in MEASURES.values() if one.paired is not None]


@pytest.mark.parametrize("measure", PAIRED, ids=lambda one: one.key)
def test_a_pair_differs_by_what_its_sets_do(measure: Measure) -> None:
    assert measure.paired is not None
    assert measure.by_set is not None
    other = PROBA**2 / (PROBA**2).sum(axis=1, keepdims=True)
    other[::7] = 0.5
    weight = rng.uniform(0.5, 2.0, 300)
    found = measure.paired(PROBA, other, Y, sample_weight=weight)
    each = [measure.by_set(one, Y, sample_weight=weight).value for one in (PROBA, other)]
    assert found.value == pytest.approx(each[0] - each[1], rel=1e-10)
    assert found.low < found.value < found.high
    assert measure.title in found.label


def test_a_method_beside_the_model_is_one_pair() -> None:
    other = PROBA[::-1]
    found = beside_model(other, ROWS)
    log_loss = MEASURES["log_loss"].paired
    assert log_loss is not None
    assert found.difference.value == log_loss(other, PROBA, Y).value
    assert found.auc is not None
    assert found.auc.difference.value == found.auc.b.value - found.auc.a.value
    of_one_class = ScoredSet(PROBA[Y == 1], Y[Y == 1], ROWS.classes, "digest", "calibration")
    assert beside_model(other[Y == 1], of_one_class).auc is None
