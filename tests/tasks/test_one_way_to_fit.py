"""Page, comparison, exported file and command line: one fit of each calibrator, one answer."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_reviews import Made, csv, made, quiet, rows

from kdcal_core import load_calibrator
from kdcal_core.calibration import CALIBRATORS, calibrated, fit_calibrator, methods_by_class
from kdcal_core.calibration.graph.forest_and_network import KernelDensityCalibrator
from kdcal_core.cli import main
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import top_label_losses
from kdcal_core.errors import InputError
from kdcal_core.evaluation import compare, losses_by_class
from kdcal_core.evaluation.compare import far_rows
from kdcal_core.evaluation.methods import methods_of
from kdcal_core.models import load_model
from kdcal_core.review import (
    ReviewData,
    ReviewReader,
    add_training,
    review_data,
    score,
    set_roles,
)
from kdcal_core.store import load
from kdcal_core.tasks import GraphRun, fit_graph
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.export import ExportRun, ExportSettings, export_calibrator
from kdcal_core.tasks.regions import RegionsRun, RegionsSettings, calibrate_regions

KEYS = [key for key in CALIBRATORS if key != "uncalibrated"]
BY_REGIONS = [key for key in KEYS if key.startswith("heterogeneous_")]
pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")


@dataclass
class Reviewed:
    made: Made
    data: ReviewData
    folder: Path


def in_units(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(b=1000 * frame["b"])


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory) -> Reviewed:
    """A forest on columns of very different units, with training, calibration and evaluation."""
    folder = tmp_path_factory.mktemp("one_way")
    train = in_units(rows(200, 0))
    model = RandomForestClassifier(10, max_depth=5, random_state=0)
    model.fit(train[["a", "b"]], train["kind"])
    tables = {"calibration": in_units(rows(300, 1)), "evaluation": in_units(rows(60, 2))}
    one = made(folder, model, tables)
    add_training(one.workspace, one.review.id, csv(train), "training.csv")
    for which, frame in {**tables, "training": train}.items():
        frame.to_csv(folder / f"{which}.csv", index=False)
    data = review_data(ReviewReader(one.workspace, one.review.id), with_model=True)
    return Reviewed(one, data, folder)


@pytest.fixture(scope="module")
def compared(reviewed: Reviewed) -> dict[str, dict[str, FloatArray]]:
    """What Compare's fits say of the evaluation set and of rows far away, by calibrator."""
    judged = None

    class Fitted(Exception):  # noqa: N818
        """The fits are done: what they are worth is not asked here."""

    def spy(given, **_):
        nonlocal judged
        judged = given
        raise Fitted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[compare.__module__], "scored_measures", spy)
        with pytest.raises(Fitted):
            compare(KEYS, reviewed.data)
    keys = [one.key for one in methods_of(KEYS)]
    assert len(judged.found) == len(keys)  # none failed
    return {
        key: {"judged": found.proba, "far": far}
        for key, found, far in zip(keys, judged.found, judged.far, strict=True)
    }


@pytest.fixture
def unjudged(monkeypatch):
    """Files are written without the judgement on their card, which takes most of the time."""

    def none(*_, **__):
        raise InputError("Not asked")

    monkeypatch.setattr("kdcal_core.tasks.export_fit.compare", none)


def loaded_answer(reviewed: Reviewed, path: Path) -> dict[str, FloatArray]:
    model = load_model(reviewed.folder / "model.skops")
    calibrator = load_calibrator(path, model=model)
    X, far = reviewed.data.inputs["evaluation"], far_rows(reviewed.data, 0)
    return {
        "judged": calibrator.predict_proba(reviewed.data.evaluation.proba, X),
        "far": calibrator.predict_proba(far.proba, far.X),
    }


@pytest.mark.parametrize("key", KEYS)
def test_the_exported_file_says_what_compare_says(key, reviewed, compared, unjudged, tmp_path):
    asked = export_calibrator.request(
        reviewed.made.workspace, reviewed.made.review.id, ExportSettings(key)
    )
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(tmp_path), progress=quiet)
    said = loaded_answer(reviewed, load(tmp_path, ExportRun).calibrator_file)
    for where, proba in said.items():
        np.testing.assert_allclose(proba, compared[key][where], rtol=0, atol=1e-12)


# The command fits by name as the export does: of each family one, and all that read more than
# probabilities.
AT_THE_COMMAND = {CALIBRATORS[key].family: key for key in KEYS} | {
    key: key for key in KEYS if CALIBRATORS[key].needs
}


@pytest.mark.parametrize("key", dict.fromkeys(AT_THE_COMMAND.values()))
def test_the_command_line_says_what_compare_says(
    key, reviewed, compared, unjudged, tmp_path, capsys
):
    folder, out = reviewed.folder, tmp_path / "cli.kdcal"
    words = ["calibrate", "--calibrator", key, "--target", "kind", "--out", str(out)]
    for option, file in (("model", "model.skops"), ("data", "calibration.csv")):
        words += [f"--{option}", str(folder / file)]
    for option in ("evaluation", "training"):
        words += [f"--{option}", str(folder / f"{option}.csv")]
    assert main(words) == 0, capsys.readouterr().err
    for where, proba in loaded_answer(reviewed, out).items():
        np.testing.assert_allclose(proba, compared[key][where], rtol=0, atol=1e-12)


def test_the_pages_far_from_the_data_show_the_same_graph(reviewed, compared, tmp_path):
    asked = fit_graph.request(reviewed.made.workspace, reviewed.made.review.id)
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(tmp_path), progress=quiet)
    run = load(tmp_path, GraphRun)
    said = run.graph.posterior(run.rows.located)
    np.testing.assert_allclose(said, compared["kernel_density"]["judged"], rtol=0, atol=1e-12)


def test_without_training_rows_page_and_calibrator_hold_out_the_same(forest, tmp_path):
    asked = fit_graph.request(forest.workspace, forest.review.id)
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(tmp_path), progress=quiet)
    run = load(tmp_path, GraphRun)
    data = review_data(ReviewReader(forest.workspace, forest.review.id), with_model=True)
    fitted = fit_calibrator(
        "kernel_density", data.calibration, data.inputs["calibration"], model=data.model
    )
    said = calibrated(fitted, data.evaluation.proba, data.inputs["evaluation"]).proba
    np.testing.assert_allclose(run.graph.posterior(run.rows.located), said, rtol=0, atol=1e-12)
    held = KernelDensityCalibrator().held_out(data.calibration.y)
    np.testing.assert_array_equal(run.graph.holdout_y, data.calibration.y[held])


def test_clusters_reach_the_graph_of_page_and_calibrator(tmp_path):
    train, frames = rows(200, 0), {}
    model = RandomForestClassifier(20, random_state=0).fit(train[["a", "b"]], train["kind"])
    for seed, which in enumerate(("calibration", "evaluation"), 1):
        frames[which] = rows(160, seed).assign(patient=np.arange(160) // 4)
    one = made(tmp_path, model, frames)
    before = one.workspace.read(one.review.id).roles
    asked = replace(before, features=("a", "b"), cluster="patient")
    set_roles(one.workspace, one.review.id, asked)
    score(one.workspace, one.review.id)
    folder = tmp_path / "graph"
    folder.mkdir()
    request = fit_graph.request(one.workspace, one.review.id)
    carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    run = load(folder, GraphRun)
    assert run.graph.together is not None
    data = review_data(ReviewReader(one.workspace, one.review.id), with_model=True)
    fitted = fit_calibrator(
        "kernel_density", data.calibration, data.inputs["calibration"], model=data.model
    )
    said = calibrated(fitted, data.evaluation.proba, data.inputs["evaluation"]).proba
    np.testing.assert_allclose(run.graph.posterior(run.rows.located), said, rtol=0, atol=1e-12)


def test_the_page_by_regions_shows_the_same_maps(reviewed, compared, tmp_path):
    partitions = tuple(key.removeprefix("heterogeneous_") for key in BY_REGIONS)
    asked = calibrate_regions.request(
        reviewed.made.workspace, reviewed.made.review.id, RegionsSettings(partitions)
    )
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(tmp_path), progress=quiet)
    run = load(tmp_path, RegionsRun)
    for key in BY_REGIONS:
        score = run.scores[key.removeprefix("heterogeneous_")].score
        expected = compared[key]["judged"][:, 1]
        np.testing.assert_allclose(score, expected, rtol=0, atol=1e-12)


def test_the_page_by_class_shows_the_same_losses(reviewed, compared):
    keys = [key for key in methods_by_class() if key != "uncalibrated"]
    rows = reviewed.data.evaluation
    found = losses_by_class(reviewed.data.calibration, rows, keys, folds=2).evaluation
    predicted = rows.proba.argmax(axis=1)
    confidences = {
        key: np.clip(compared[key]["judged"][np.arange(rows.n_rows), predicted], 0, 1)
        for key in keys
    }
    expected = top_label_losses(confidences, predicted, rows.y, n_classes=2, rows="evaluation set")
    np.testing.assert_allclose(found.overall_nll, expected.overall_nll, rtol=1e-12)
    np.testing.assert_allclose(found.brier, expected.brier, rtol=1e-12)


def test_one_column_far_away_is_noticed_whatever_its_unit(reviewed):
    """On raw units a column of small numbers could move by twenty standard deviations unseen."""
    data = reviewed.data
    fitted = fit_calibrator(
        "kernel_density",
        data.calibration,
        data.inputs["calibration"],
        training=data.training,
        model=data.model,
    )
    prior = fitted.estimator_.graph_.prior
    for column in ("a", "b"):
        moved: pd.DataFrame = data.inputs["evaluation"].copy()
        moved[column] += 20 * data.inputs["calibration"][column].std()
        said = calibrated(fitted, data.model.predict_proba(moved), moved).proba
        np.testing.assert_allclose(said, np.tile(prior, (len(said), 1)), atol=0.02)
