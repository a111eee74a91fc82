"""Files that kdcal 0.1.0 wrote stay readable for ever: never write them again."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kdcal_core.calibration.export import load_calibrator
from kdcal_core.models import load_model

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = Path(__file__).parents[3] / "sample_data"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())


def test_every_file_is_tried():
    assert {path.stem for path in FIXTURES.glob("*.kdcal")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_file_says_what_it_said_when_it_was_written(name):
    text = EXPECTED[name]
    model = load_model(SAMPLES / text["model"]) if "model" in text else None
    loaded = load_calibrator(FIXTURES / f"{name}.kdcal", model=model)
    assert loaded.card.kdcal_version == "0.1.0"
    assert loaded.card.created == "2026-01-31"
    assert loaded.card.data["calibration"].rows == 400
    found = loaded.predict_proba(text["proba"], pd.DataFrame(text["columns"]))
    np.testing.assert_allclose(found, text["calibrated"], rtol=1e-10, atol=1e-15)


def test_the_columns_of_the_predictions_are_still_known():
    card = load_calibrator(FIXTURES / "predictions.kdcal").card
    assert card.outputs == (("class 1", "logit of it"),)
    assert card.output_kind == "logit"
    assert load_calibrator(FIXTURES / "standard.kdcal").card.outputs == ()


def test_there_are_files_of_each_version():
    versions = {}
    for path in FIXTURES.glob("*.kdcal"):
        with zipfile.ZipFile(path) as file:
            versions[path.stem] = json.loads(file.read("about.json"))["version"]
    assert set(versions.values()) == {1, 2, 3}
    assert {name for name, one in versions.items() if one == 3} == {
        "shrunk_top_label",
        "shrunk_vectors",
    }


@pytest.mark.parametrize("name", ["shrunk_top_label", "shrunk_vectors"])
def test_the_shrinkage_of_version_3_is_still_in_force(name):
    calibrator = load_calibrator(FIXTURES / f"{name}.kdcal").calibrator
    assert np.isfinite(calibrator.shrinkage_)
    assert calibrator.anchor_temperature_ > 1
    calibrator.check_state()
