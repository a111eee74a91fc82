"""A calibrator fitted, taken away and tried again in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import open_sample

from kdcal_core import load_calibrator
from kdcal_core.review.samples import samples_root

pytestmark = pytest.mark.browser


def test_a_calibrator_goes_out_as_a_file_and_comes_in_again(
    app, home: Path, tmp_path: Path
) -> None:
    open_sample(app, home, "xor_network", "export")
    app.page.get_by_role("button", name="Fit, judge and write the file").click()
    app.page.get_by_role("tab", name="Card of the file").wait_for(timeout=120_000)
    app.idle()
    assert "calibrator=recommended" in app.page.url
    app.wait_for_text(re.compile("log loss (falls|rises|changes)"))
    assert app.faults_in_both() == {}
    app.assert_short("Card of the file", "How to use the file")
    app.wait_for_text("kdcal score")
    app.assert_healthy()

    with app.page.expect_download() as downloading:
        app.page.get_by_role("button", name=re.compile("^Calibrator file")).click()
    assert downloading.value.suggested_filename.endswith("-recommended.kdcal")
    path = tmp_path / "mine.kdcal"
    downloading.value.save_as(path)
    model = samples_root() / "xor_network" / "model.onnx"
    proba = load_calibrator(path, model=model).predict_proba([[0.5, 0.5], [0.1, 0.9]])
    assert np.allclose(proba.sum(axis=1), 1)

    app.section("Try a calibrator file")
    upload = '[data-testid="stFileUploader"] input[type=file]'
    app.page.locator(upload).set_input_files(path)
    app.wait_for_text("It belongs to this model", 120)
    app.page.locator(".js-plotly-plot").nth(3).wait_for(timeout=60_000)
    app.assert_healthy()

    broken = tmp_path / "broken.kdcal"
    broken.write_bytes(path.read_bytes()[:500])
    app.page.locator(upload).set_input_files(broken)
    app.wait_for_text(re.compile("broken.kdcal"), 120)
    app.assert_healthy()
    assert app.faults() == []
