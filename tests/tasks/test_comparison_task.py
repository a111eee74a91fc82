"""The job that compares calibrators: what it is asked, what it leaves, and how it is read back."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from small_reviews import Made, quiet

from kdcal_core.errors import InputError
from kdcal_core.evaluation import MEASURES, compare
from kdcal_core.review import ReviewReader, review_data
from kdcal_core.store import load, save
from kdcal_core.tasks import (
    ComparisonRun,
    ComparisonSettings,
    compare_calibrators,
    default_calibrators,
    usable_calibrators,
)
from kdcal_core.tasks.decorators import carry_out

CHOSEN = ComparisonSettings(("heterogeneous_tree", "platt"), n_boot=100)


def carried_out(made: Made, folder: Path, settings: ComparisonSettings = CHOSEN) -> ComparisonRun:
    folder.mkdir(exist_ok=True)
    asked = compare_calibrators.request(made.workspace, made.review.id, settings)
    carry_out(**asked.kwargs, folder=str(folder), progress=quiet)
    return load(folder, ComparisonRun)


@pytest.fixture(scope="module")
def run(forest: Made, tmp_path_factory: pytest.TempPathFactory) -> ComparisonRun:
    return carried_out(forest, tmp_path_factory.mktemp("comparison"))


def key(made: Made, **changes) -> str:
    settings = dataclasses.replace(CHOSEN, **changes)
    return compare_calibrators.request(made.workspace, made.review.id, settings).key


def test_what_comes_to_the_same_is_the_same_job(forest: Made) -> None:
    one = key(forest)
    assert key(forest, calibrators=("platt", "heterogeneous_tree")) == one
    assert key(forest, judge="evaluation") == one
    different = {
        key(forest, **change)
        for change in (
            {"judge": "cross-fitted"},
            {"folds": 4},
            {"seed": 1},
            {"calibrators": ("platt",)},
            {"event": 1},
        )
    }
    assert len(different | {one}) == 6


def test_another_list_of_measures_is_another_job(forest: Made, monkeypatch) -> None:
    one = key(forest)
    monkeypatch.delitem(MEASURES, "oce")
    assert key(forest) != one


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"calibrators": ()}, "No calibrator is chosen"),
        ({"calibrators": ("no such",)}, "There is no calibrator 'no such'"),
        ({"folds": 1}, "The setting 'folds' is 1"),
        ({"judge": "evaluation"}, "There is no evaluation set"),
        ({"event": 7}, "There is no class 7"),
    ],
)
def test_settings_that_there_are_not_are_refused(linear: Made, changes: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        key(linear, **changes)


def test_a_review_without_scores_is_refused(tmp_path: Path) -> None:
    from kdcal_core.review import Workspace, create_review

    workspace = Workspace(tmp_path)
    with pytest.raises(InputError, match="have not been scored"):
        compare_calibrators.request(workspace, create_review(workspace).id, CHOSEN)


def test_what_is_read_back_is_what_the_comparison_said(run: ComparisonRun, forest: Made) -> None:
    data = review_data(ReviewReader(forest.workspace, forest.review.id), with_model=True)
    direct = compare(run.settings.calibrators, data, n_boot=100, seed=0)
    read = run.comparison
    assert run.settings.calibrators == ("platt", "heterogeneous_tree")
    assert run.n_fit == 150
    for name in ("measures", "reference", "n", "folds", "judged", "overlap", "notes", "failed"):
        assert getattr(read, name) == getattr(direct, name), name
    slow = {one.key for one in direct.measures if one.group == "speed"} - {"size_bytes"}
    for one, other in zip(read.methods, direct.methods, strict=True):
        assert (one.key, one.name, one.family, one.notes) == (
            other.key, other.name, other.family, other.notes,
        )  # fmt: skip
        for measure in other.scores.keys() - slow:
            # a largest gap of thin bins has no interval, and NaN is not NaN
            assert repr(one.scores[measure]) == repr(other.scores[measure])
        (curve,), (exact,) = one.reliability.curves, other.reliability.curves
        for part in dataclasses.fields(exact):
            np.testing.assert_array_equal(getattr(curve, part.name), getattr(exact, part.name))
        assert curve.count.dtype.kind == "i"
    assert read.paired == direct.paired
    assert {k: v for k, v in read.best.items() if k not in slow} == {
        k: v for k, v in direct.best.items() if k not in slow
    }


def test_numbers_without_end_survive_the_file(run: ComparisonRun, tmp_path: Path) -> None:
    found = run.comparison
    first = found.methods[0]
    endless = dataclasses.replace(first.scores["log_loss"], low=-math.inf, high=math.inf)
    unknown = dataclasses.replace(first.scores["auc"], value=math.nan)
    scores = {**first.scores, "log_loss": endless, "auc": unknown}
    changed = dataclasses.replace(
        found, methods=(dataclasses.replace(first, scores=scores), *found.methods[1:])
    )
    save(tmp_path, ComparisonRun(run.settings, run.n_fit, changed))
    back = load(tmp_path, ComparisonRun).comparison.methods[0].scores
    assert back["log_loss"] == endless
    assert math.isnan(back["auc"].value)


def test_a_result_that_was_changed_is_not_read(forest: Made, tmp_path: Path) -> None:
    carried_out(forest, tmp_path, dataclasses.replace(CHOSEN, calibrators=("sts",)))
    path = tmp_path / "record.json"
    value = load(tmp_path, ComparisonRun).comparison.methods[1].scores["log_loss"].value
    path.write_text(path.read_text().replace(repr(value), repr(value / 2)))
    with pytest.raises(InputError, match="no longer kept in full"):
        load(tmp_path, ComparisonRun)


def test_a_calibrator_that_cannot_be_fitted_is_reported_and_stops_no_other(
    linear: Made, tmp_path: Path
) -> None:
    settings = ComparisonSettings(("kernel_density", "sts"), n_boot=100)
    found = carried_out(linear, tmp_path, settings).comparison
    assert [one.key for one in found.methods] == ["uncalibrated", "sts"]
    assert found.failed["kernel_density"]
    assert found.folds == 5
    assert found.overlap is None


def test_why_a_calibrator_cannot_be_had_is_said(linear: Made, forest: Made) -> None:
    why = usable_calibrators(linear.review)
    assert "uncalibrated" not in why
    assert why["kernel_density"] == "There is no model that divides its inputs into polytopes."
    assert why["platt"] is None
    assert "kernel_density" not in default_calibrators(linear.review)
    assert set(usable_calibrators(forest.review).values()) == {None}
    assert "kernel_density" in default_calibrators(forest.review)
