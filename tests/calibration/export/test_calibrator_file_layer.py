"""A calibrator by regions of a hidden layer: fitted, kept, asked and exported with its model."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from kdcal_core.calibration import PlattScaling, calibrated, calibrator_entry, fit_calibrator
from kdcal_core.calibration.export import (
    can_export_onnx,
    export_onnx,
    load_calibrator,
    make_card,
    save_calibrator,
)
from kdcal_core.calibration.export.score_table import score_table
from kdcal_core.calibration.regions import HeterogeneousCalibrator, layer_frame
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError
from kdcal_core.models import load_model, model_info
from kdcal_core.store.archive import read_archive, write_archive

FOLDER = Path(__file__).parents[3] / "sample_data" / "adult_network"
MODEL = FOLDER / "model.onnx"
TARGET = "income"


class Case:
    """The sample's network with some of its rows and a tree on its first hidden layer."""

    def __init__(self, folder: Path) -> None:
        self.model = load_model(MODEL, task="classification")
        self.info = model_info(self.model, MODEL, MODEL.name)
        self.layer = self.model.layers[0]
        self.X, self.rows = self.read("calibration")
        self.training = self.read("evaluation")
        self.calibrator = fit_calibrator(
            HeterogeneousCalibrator("tree", min_rows=40),
            self.rows,
            self.X,
            training=(self.training[0], self.training[1].y),
            model=self.model,
            layer=self.layer,
        )
        self.card = make_card(
            "heterogeneous_tree",
            self.calibrator,
            classes=self.rows.classes,
            data={},
            model=self.info,
            features=list(self.X.columns),
            layer=self.layer,
        )
        self.path = folder / "layer.kdcal"
        save_calibrator(self.calibrator, self.path, self.card)

    def read(self, which: str, n: int = 1500) -> tuple[pd.DataFrame, ScoredSet]:
        table = pd.read_parquet(FOLDER / f"{which}.parquet").head(n)
        X = table[list(self.model.feature_names)]
        y = pd.Categorical(table[TARGET].astype(str), categories=self.model.classes).codes
        proba = self.model.predict_proba(X)
        return X, ScoredSet(proba, y.astype(np.int64), self.model.classes, "digest", which)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("layer"))


def test_the_fit_is_that_of_the_embedded_rows(case: Case) -> None:
    frames = [layer_frame(case.model, X, case.layer) for X in (case.X, case.training[0])]
    by_hand = HeterogeneousCalibrator("tree", min_rows=40).fit(
        case.rows.proba,
        case.rows.y,
        frames[0],
        X_partition=frames[1],
        y_partition=case.training[1].y,
    )
    assert case.calibrator.columns_ == tuple(frames[0].columns)
    assert case.calibrator.trees_[0].n_leaves > 2
    expected = by_hand.predict_proba(case.rows.proba, frames[0])
    found = calibrated(case.calibrator, case.rows.proba, frames[0]).proba
    np.testing.assert_array_equal(found, expected)


def test_the_file_asks_the_model_or_takes_the_activations(case: Case) -> None:
    X, rows = case.read("evaluation")
    units = layer_frame(case.model, X, case.layer)
    expected = case.calibrator.predict_proba(rows.proba, units)
    whole = load_calibrator(case.path, model=case.model)
    assert whole.card.layer == case.layer
    more = X.assign(other=1)[["other", *reversed(X.columns)]]
    np.testing.assert_array_equal(whole.predict_proba(rows.proba, more), expected)
    alone = load_calibrator(case.path, any_model=True)
    np.testing.assert_array_equal(alone.predict_proba(rows.proba, units), expected)
    with pytest.raises(InputError, match=r"hidden layer .* and no model was given") as error:
        alone.predict_proba(rows.proba, X)
    assert "model=" in error.value.fix


def test_a_model_without_the_layer_is_refused(case: Case) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    for unfitted in (MLPClassifier((3,), max_iter=5), RandomForestClassifier(3)):
        model = unfitted.fit(X[:60], y[:60])
        with pytest.raises(InputError, match="which this model does not have") as error:
            load_calibrator(case.path, model=model)
        assert error.value.file == "layer.kdcal"


def test_tables_of_any_length_are_scored_through_the_model(case: Case, tmp_path: Path) -> None:
    X, rows = case.read("evaluation")
    X.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    given = (str(case.path), str(tmp_path / "new.parquet"), str(out), ".parquet")
    score_table(*given, model=str(MODEL))
    units = layer_frame(case.model, X, case.layer)
    expected = case.calibrator.predict_proba(rows.proba, units)
    found = pd.read_parquet(out)[[f"proba_{name}" for name in rows.classes]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    with pytest.raises(InputError, match="a table of predictions does not hold"):
        score_table(*given)


@pytest.mark.parametrize("partition", ["tree", "forest", "boosted", "auc"])
def test_the_layer_is_read_inside_the_models_graph(
    case: Case, partition: str, tmp_path: Path
) -> None:
    calibrator = fit_calibrator(
        HeterogeneousCalibrator(partition, n_trees=4, min_rows=40),
        case.rows,
        case.X,
        model=case.model,
        layer=case.layer,
    )
    assert can_export_onnx(calibrator, case.info, case.layer) is None
    assert "which are not among the model's inputs" in can_export_onnx(calibrator, case.info)
    X, rows = case.read("evaluation")
    out = tmp_path / "out.onnx"
    export = export_onnx(calibrator, MODEL, out, case.card, X)
    assert export.max_difference < 1e-6
    again = load_model(out)
    expected = calibrator.predict_proba(rows.proba, layer_frame(case.model, X, case.layer))
    np.testing.assert_allclose(again.predict_proba(X), expected, atol=1e-6)
    outputs = [one.name for one in onnxruntime.InferenceSession(out).get_outputs()]
    assert outputs == ["calibrated_probabilities", "predicted_class", "confidence"]


def test_what_cannot_read_a_layer_says_so(case: Case) -> None:
    given = {"model": case.model, "layer": case.layer}
    for key, words in (("platt", "does not divide"), ("kernel_density", "does not divide")):
        with pytest.raises(InputError, match=words):
            fit_calibrator(key, case.rows, case.X, **given)
    with pytest.raises(InputError, match="does not divide"):
        fit_calibrator(HeterogeneousCalibrator("groups"), case.rows, case.X, **given)
    fresh = calibrator_entry("heterogeneous_tree").factory()
    with pytest.raises(InputError, match="and no model was given"):
        fit_calibrator(fresh, case.rows, case.X, layer=case.layer)
    with pytest.raises(InputError, match="no hidden layer 'nope'"):
        fit_calibrator(fresh, case.rows, case.X, model=case.model, layer="nope")


def test_only_files_with_a_layer_are_of_version_2(case: Case, tmp_path: Path) -> None:
    def text(path: Path) -> dict[str, object]:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read("about.json"))

    assert text(case.path)["version"] == 2
    plain = fit_calibrator(PlattScaling(shrinkage=None), case.rows)
    card = make_card("platt", plain, classes=case.rows.classes, data={})
    save_calibrator(plain, tmp_path / "plain.kdcal", card)
    assert text(tmp_path / "plain.kdcal")["version"] == 1
    assert "layer" not in text(tmp_path / "plain.kdcal")["card"]
    save_calibrator(fit_calibrator("platt", case.rows), tmp_path / "shrunk.kdcal", card)
    assert text(tmp_path / "shrunk.kdcal")["version"] == 3  # older ones know no shrinkage
    # a layer is not taken on trust
    save_calibrator(plain, tmp_path / "lie.kdcal", dataclasses.replace(card, layer="hidden 1"))
    with pytest.raises(InputError, match="does not divide") as error:
        load_calibrator(tmp_path / "lie.kdcal")
    assert error.value.file == "lie.kdcal"
    about, arrays = read_archive(case.path, "calibrator", newest=2, sealed=True)
    about["calibrator"]["state"]["columns_"]["tuple"][0] = "unit x"
    write_archive(tmp_path / "strange.kdcal", "calibrator", about, arrays, version=2)
    with pytest.raises(InputError, match="the units"):
        load_calibrator(tmp_path / "strange.kdcal")
