"""``kdcal calibrate`` and ``kdcal score`` of a regression: one file from the fit to new rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from kdcal_core import load_recalibrator
from kdcal_core.cli import main
from kdcal_core.distributions import Normal

FIT = ("--target", "y", "--family", "normal", "--parameters", "mean=mu,std=sd")
pytestmark = pytest.mark.usefixtures("work_here")


def table(path: Path, n: int, seed: int) -> Path:
    """Forecasts that are half as wide as they should be, and right on average."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    frame = pd.DataFrame({"id": range(n), "x": x, "mu": x, "sd": 0.5, "y": x + rng.normal(size=n)})
    frame.to_csv(path, index=False)
    return path


def test_a_recalibrator_is_fitted_written_and_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, new = table(tmp_path / "rows.csv", 400, 0), table(tmp_path / "new.csv", 500, 1)
    file, out = tmp_path / "one.kdcal", tmp_path / "out.csv"
    fit = ["calibrate", "--calibrator", "global", "--predictions", str(rows), *FIT]
    assert main([*fit, "--out", str(file)]) == 0
    said = capsys.readouterr().out
    assert "Global recalibration, fitted on 400 rows of rows.csv." in said
    assert "CRPS" in said
    score = ["score", "--calibrator", str(file), "--predictions", str(new), "--out", str(out)]
    assert main([*score, "--keep", "id"]) == 0
    assert "500 rows" in capsys.readouterr().out
    scored, given = pd.read_csv(out), pd.read_csv(new)
    found = load_recalibrator(file).predict(Normal(given["mu"], 0.5))
    np.testing.assert_allclose(scored["mean"], found.mean(), rtol=1e-12)
    np.testing.assert_allclose(scored["0.975"], found.ppf(0.975), rtol=1e-12)
    inside = (scored["0.025"] <= given["y"]) & (given["y"] <= scored["0.975"])
    before = np.abs(given["y"] - given["mu"]) <= norm.ppf(0.975) * 0.5
    assert before.mean() < 0.75 < 0.92 < inside.mean()
    assert scored["id"].tolist() == given["id"].tolist()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--calibrator", "boosting"), "There is no recalibrator 'boosting'"),
        (("--calibrator", "local", "--set", "k=0"), "number of neighbours cannot be '0'"),
        (("--calibrator", "local", "--set", "depth=3"), "There is no setting 'depth'"),
        (("--calibrator", "global", "--set", "k=9"), "Global recalibration has no setting 'k'"),
        (("--calibrator", "platt"), "There is no recalibrator 'platt'"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_one_line(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, file = table(tmp_path / "rows.csv", 60, 0), tmp_path / "one.kdcal"
    code = main(["calibrate", *words, "--predictions", str(rows), *FIT, "--out", str(file)])
    error = capsys.readouterr().err
    assert (code, said in error, file.exists()) == (2, True, False), error


def test_the_recalibrators_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--list"]) == 0
    said = capsys.readouterr().out
    assert "where_needed" in said
    assert "boosting" not in said
