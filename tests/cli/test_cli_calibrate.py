"""``kdcal calibrate``: a fit, what it gains, and a file that says where it comes from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.files import load_calibrator
from kdcal_core.cli import main

ADULT = Path(__file__).parents[2] / "sample_data" / "adult"
DIGITS = Path(__file__).parents[2] / "sample_data" / "digits_predictions"
pytestmark = pytest.mark.usefixtures("work_here")

PLATT = ("--calibrator", "platt", "--predictions", str(DIGITS / "calibration.parquet"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["calibrate", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for which in ("calibration", "evaluation", "training"):
        frame = pd.read_parquet(ADULT / f"{which}.parquet")
        frame.head(1200).to_parquet(folder / f"{which}.parquet")
    return folder


def test_the_list_has_every_calibrator(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(CALIBRATORS)


@pytest.mark.usefixtures("real_workers")
def test_a_calibrator_of_a_model_is_fitted_judged_and_written(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path
) -> None:
    model, data, out = ADULT / "model.json", rows / "calibration.parquet", tmp_path / "c.kdcal"
    code, said, err = run(
        capsys,
        *("--calibrator", "platt", "--model", model, "--data", data),
        *("--target", "income", "--out", out),
    )
    assert (code, err) == (0, "")
    assert "fitted on 1,200 rows" in said
    assert "cross-fitted on the calibration set, 5 folds" in said
    card = load_calibrator(out).card
    assert card.key == "platt"
    assert card.parent is not None
    assert card.parent.digest == hashlib.sha256(model.read_bytes()).hexdigest()
    assert card.data["calibration"].digest == hashlib.sha256(data.read_bytes()).hexdigest()
    assert card.data["calibration"].rows == 1200
    assert card.classes == ("<=50K", ">50K")
    assert "age" in card.features
    gains = {one.label: one for one in card.estimates}
    assert gains["Log loss"].after < gains["Log loss"].before
    assert gains["ECE"].n == 1200


def test_training_and_evaluation_rows_are_used_and_named(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.kdcal"
    code, said, err = run(
        capsys,
        *("--calibrator", "heterogeneous_tree", "--model", ADULT / "model.json"),
        *("--data", rows / "calibration.parquet", "--evaluation", rows / "evaluation.parquet"),
        *("--training", rows / "training.parquet", "--target", "income", "--out", out),
    )
    assert (code, err) == (0, "")
    assert "Judged: evaluation set." in said
    card = load_calibrator(out).card
    assert set(card.data) == {"calibration", "evaluation", "training"}
    assert card.estimates[0].judged == "evaluation set"


def test_predictions_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "c.kdcal"
    code, said, err = run(
        capsys,
        *("--calibrator", "kde_mon2", "--predictions", DIGITS / "calibration.parquet"),
        *("--target", "label", "--out", out),
    )
    assert (code, err) == (0, "")
    assert "Wrote c.kdcal." in said
    assert load_calibrator(out).card.parent is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--calibrator is missing"),
        (("--calibrator", "platt"), "--target is missing"),
        (("--calibrator", "platt", "--target", "y"), "--out is missing"),
        (("--calibrator", "platt", "--target", "y", "--out", "o"), "either --data"),
        (("--calibrator", "plat", "--target", "y", "--out", "o", "--predictions", "p"), "plat"),
        (
            ("--calibrator", "platt", "--target", "y", "--out", "o", "--predictions", "none.csv"),
            "no such file",
        ),
        (
            (*PLATT, "--target", "nope", "--out", "o"),
            "no such column",
        ),
        (
            (*PLATT, "--target", "label", "--out", "/none/o"),
            "folder",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


def test_rows_that_fit_and_judge_alike_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = tmp_path / "again.parquet"
    frame = pd.read_parquet(DIGITS / "calibration.parquet")
    frame.to_parquet(rows)
    out = ("--target", "label", "--out", tmp_path / "c.kdcal")
    code, said, _ = run(capsys, *PLATT, *out, "--evaluation", rows)
    assert code == 0
    assert f"{len(frame):,} rows of the evaluation set are in the calibration set too" in said
    code, said, _ = run(capsys, *PLATT, *out, "--evaluation", DIGITS / "evaluation.parquet")
    assert code == 0
    assert "in the calibration set too" not in said


def test_columns_that_one_table_lacks_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    frame = pd.DataFrame(
        {
            "proba_no": [0.3, 0.6] * 60,
            "proba_yes": [0.7, 0.4] * 60,
            "answer": ["yes", "no", "no"] * 40,
            "shop": ["north", "south"] * 60,
            "age": range(120),
        }
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.drop(columns="age").to_csv(tmp_path / "more.csv", index=False)
    words = ("--predictions", tmp_path / "rows.csv", "--target", "answer")
    words = (*words, "--evaluation", tmp_path / "more.csv", "--out", tmp_path / "c.kdcal")
    code, said, _ = run(capsys, "--calibrator", "heterogeneous_tree", *words)
    assert code == 0
    assert "Not every table has the column 'age'" in said
    assert load_calibrator(tmp_path / "c.kdcal").card.features == ("shop",)
    code, said, _ = run(capsys, "--calibrator", "platt", *words)
    assert code == 0
    assert "Not every table" not in said
