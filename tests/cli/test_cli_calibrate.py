"""``kdcal calibrate``: a fit, what it gains, and a file that says where it comes from."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from texts.snapshot import Texts

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.export import load_calibrator
from kdcal_core.calibration.settings import settings_of
from kdcal_core.cli import main
from kdcal_core.models import load_model

ADULT = Path(__file__).parents[2] / "sample_data" / "adult"
DIGITS = Path(__file__).parents[2] / "sample_data" / "digits_predictions"
pytestmark = pytest.mark.usefixtures("work_here")

NETWORK = Path(__file__).parents[2] / "sample_data" / "adult_network"

PLATT = ("--calibrator", "platt", "--predictions", str(DIGITS / "calibration.parquet"))
BINS = ("--calibrator", "histogram", *PLATT[2:])


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


def test_the_list_has_every_calibrator(capsys: pytest.CaptureFixture[str], texts: Texts) -> None:
    code, out, err = run(capsys, "--list")
    assert "parent" not in out
    assert (code, err) == (0, "")
    listed = out.split("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in listed if not line.startswith(" ")] == list(CALIBRATORS)
    texts(out)
    after = out.split("\nhistogram ")[1].split("\nkde")[0]
    assert "Settings: n_bins, shrinkage, strategy." in " ".join(after.split())
    assert max(map(len, out.splitlines())) <= 80


def test_one_of_the_list_shows_its_settings(
    capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    code, out, err = run(capsys, "--list", "--calibrator", "heterogeneous_tree")
    assert (code, err) == (0, "")
    texts(out, "heterogeneous tree")
    # a line that starts with a space goes on from the one above
    lines = out.split("\n\n")[1].splitlines()[1:]
    listed = {line.split()[0] for line in lines if not line.startswith(" ")}
    assert listed == {one.name for one in settings_of("heterogeneous_tree")}
    code, out, err = run(capsys, "--list", "--calibrator", "platt")
    assert code == 0
    texts(out, "platt")
    code, out, err = run(capsys, "--list", "--calibrator", "uncalibrated")
    assert code == 0
    texts(out, "uncalibrated")


@pytest.mark.usefixtures("real_workers")
def test_a_calibrator_of_a_model_is_fitted_judged_and_written(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path, texts: Texts
) -> None:
    model, data, out = ADULT / "model.json", rows / "calibration.parquet", tmp_path / "c.kdcal"
    code, said, err = run(
        capsys,
        *("--calibrator", "platt", "--model", model, "--data", data),
        *("--target", "income", "--out", out),
    )
    assert (code, err) == (0, "")
    texts(said)
    assert "1,200 rows" in said
    assert "5 folds" in said
    card = load_calibrator(out).card
    assert card.key == "platt"
    assert card.model is not None
    assert card.model.digest == hashlib.sha256(model.read_bytes()).hexdigest()
    assert card.data["calibration"].digest == hashlib.sha256(data.read_bytes()).hexdigest()
    assert card.data["calibration"].rows == 1200
    assert card.classes == ("<=50K", ">50K")
    assert "age" in card.features
    gains = {one.label: one for one in card.estimates}
    assert gains["Log loss"].after < gains["Log loss"].before
    assert gains["Smooth ECE"].n == 1200


def test_training_and_evaluation_rows_are_used_and_named(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path, texts: Texts
) -> None:
    out = tmp_path / "c.kdcal"
    code, said, err = run(
        capsys,
        *("--calibrator", "heterogeneous_tree", "--model", ADULT / "model.json"),
        *("--data", rows / "calibration.parquet", "--evaluation", rows / "evaluation.parquet"),
        *("--training", rows / "training.parquet", "--target", "income", "--out", out),
    )
    assert (code, err) == (0, "")
    texts(said)
    card = load_calibrator(out).card
    assert set(card.data) == {"calibration", "evaluation", "training"}
    assert card.estimates[0].judged == "evaluation set"


def test_settings_are_those_of_the_fit_and_stand_in_the_card(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path, texts: Texts
) -> None:
    out = tmp_path / "c.kdcal"
    words = ("--model", ADULT / "model.json", "--target", "income", "--out", out)
    words = (*words, "--data", rows / "calibration.parquet")
    code, said, err = run(
        capsys,
        *("--calibrator", "heterogeneous_tree", "--set", "max_depth=1", "--set", "min_rows = 300"),
        *("--set", "calibrator=isotonic", "--set", "pooling=no", "--seed", "4", *words),
    )
    assert (code, err) == (0, "")
    texts(said)
    loaded = load_calibrator(out)
    settings = loaded.card.parameters
    assert (settings["max_depth"], settings["min_rows"], settings["pooling"]) == (1, 300, False)
    assert settings["random_state"] == loaded.card.seed == 4
    assert said.startswith(f"{loaded.card.title}, fitted on 1,200")
    assert loaded.card.title.startswith("Isotonic regression")
    assert {tree.n_leaves for tree in loaded.calibrator.trees_} == {2}
    code, said, err = run(
        capsys,
        *(
            "--calibrator",
            "heterogeneous_tree",
            "--set",
            "column=sex, relationship",
            *words,
            "--force",
        ),
    )
    assert (code, err) == (0, "")
    assert load_calibrator(out).calibrator.columns_ == ("sex", "relationship")


def test_regions_of_a_hidden_layer_are_fitted_and_scored(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, data = NETWORK / "model.onnx", tmp_path / "rows.parquet"
    pd.read_parquet(NETWORK / "calibration.parquet").head(900).to_parquet(data)
    layer, out = load_model(model).layers[-1], tmp_path / "c.kdcal"
    words = ("--model", model, "--data", data, "--target", "income", "--out", out)
    code, said, err = run(
        capsys, "--calibrator", "heterogeneous_tree", "--layer", layer, "--set", "prune=cv", *words
    )
    assert (code, err) == (0, "")
    assert f"{layer}, fitted on 900 rows" in said
    card = load_calibrator(out).card
    assert card.layer == layer
    assert "age" in card.features
    scored = tmp_path / "scored.csv"
    given = ("--calibrator", out, "--model", model, "--data", data, "--out", scored)
    assert main(["score", *map(str, given)]) == 0
    found = pd.read_csv(scored)[[f"proba_{name}" for name in card.classes]]
    frame, wrapped = pd.read_parquet(data)[list(card.features)], load_model(model)
    expected = load_calibrator(out, model=wrapped).predict_proba(
        wrapped.predict_proba(frame), frame
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)
    capsys.readouterr()
    code, said, err = run(
        capsys, "--calibrator", "heterogeneous_tree", "--layer", "hidden 9", *words, "--force"
    )
    assert (code, said) == (2, "")
    assert "'hidden 9'" in err
    assert layer in err


def test_a_column_that_is_no_feature_may_be_the_regions(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path
) -> None:
    data, out = tmp_path / "rows.parquet", tmp_path / "c.kdcal"
    frame = pd.read_parquet(rows / "calibration.parquet")
    frame.assign(shop=np.where(np.arange(len(frame)) % 3, "north", "south")).to_parquet(data)
    code, said, err = run(
        capsys,
        *("--calibrator", "heterogeneous_tree", "--set", "column=shop", "--data", data),
        *("--model", ADULT / "model.json", "--target", "income", "--out", out),
    )
    assert (code, err) == (0, "")
    card = load_calibrator(out).card
    assert said.startswith(card.title)
    assert card.title.endswith("shop")
    assert card.features[-1] == "shop"


def test_predictions_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "c.kdcal"
    code, said, err = run(
        capsys,
        *("--calibrator", "kde_mon2", "--predictions", DIGITS / "calibration.parquet"),
        *("--target", "label", "--out", out),
    )
    assert (code, err) == (0, "")
    assert "Wrote c.kdcal." in said
    assert load_calibrator(out).card.model is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--calibrator is missing"),
        (("--calibrator", "platt"), "--target is missing"),
        (("--calibrator", "platt", "--target", "y"), "--out is missing"),
        (("--calibrator", "platt", "--target", "y", "--out", "o.kdcal"), "either --data"),
        (
            ("--calibrator", "plat", "--target", "y", "--out", "o.kdcal", "--predictions", "p"),
            "plat",
        ),
        (
            (
                "--calibrator",
                "platt",
                "--target",
                "y",
                "--out",
                "o.kdcal",
                "--predictions",
                "none.csv",
            ),
            "no such file",
        ),
        (
            (*PLATT, "--target", "nope", "--out", "o.kdcal"),
            "no such column",
        ),
        (
            (*PLATT, "--target", "label", "--out", "/none/o"),
            "folder",
        ),
        (
            (*PLATT, "--target", "y", "--out", "o.kdcal", "--set", "slope=1"),
            "'slope'. It has shrinkage.",
        ),
        (
            (*PLATT, "--target", "y", "--out", "o.kdcal", "--layer", "hidden 1"),
            "--layer needs --model",
        ),
        (
            (*BINS, "--target", "y", "--out", "o.kdcal", "--set", "n_bins=0"),
            "The setting 'n_bins' cannot be '0'. Choose a whole number from 1 to 1,000,000.",
        ),
        (
            (*BINS, "--target", "y", "--out", "o.kdcal", "--set", "n_bins=2", "--set", "n_bins=3"),
            "The setting 'n_bins' is given twice",
        ),
        (
            (*BINS, "--target", "y", "--out", "o.kdcal", "--set", "n_bins=1000000000"),
            "cannot be '1000000000'",
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
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
) -> None:
    rows = tmp_path / "again.parquet"
    frame = pd.read_parquet(DIGITS / "calibration.parquet")
    frame.to_parquet(rows)
    out = ("--target", "label", "--out", tmp_path / "c.kdcal")
    code, said, _ = run(capsys, *PLATT, *out, "--evaluation", rows)
    assert code == 0
    texts(said)
    assert said.startswith(f"Warning: {len(frame):,} rows of the evaluation set")
    assert said.count("Warning") == 1
    code, said, _ = run(
        capsys, *PLATT, *out, "--evaluation", DIGITS / "evaluation.parquet", "--force"
    )
    assert code == 0
    assert "Warning" not in said


def test_training_rows_that_calibrate_are_warned_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
) -> None:
    xor = DIGITS.parent / "xor_network"
    rows, out = xor / "calibration.parquet", tmp_path / "c.kdcal"
    words = ("--calibrator", "platt", "--model", xor / "model.onnx", "--data", rows)
    words = (*words, "--target", "class", "--out", out)
    code, said, _ = run(capsys, *words, "--training", rows)
    assert code == 0
    texts(said.splitlines()[0])
    assert said.startswith("Warning: 1,000 rows")
    code, said, _ = run(capsys, *words, "--training", xor / "training.parquet", "--force")
    assert code == 0
    assert "Warning" not in said


def test_columns_that_one_table_lacks_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
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
    texts(said)
    assert "inputs: age" in said
    assert load_calibrator(tmp_path / "c.kdcal").card.features == ("shop",)
    code, said, _ = run(capsys, "--calibrator", "platt", *words, "--force")
    assert code == 0
    assert "Not among the inputs" not in said


def test_the_change_has_its_interval_and_its_verdict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--predictions", DIGITS / "calibration.parquet", "--target", "label")
    code, said, _ = run(capsys, "--calibrator", "sts", *words, "--out", tmp_path / "c.kdcal")
    assert code == 0
    head, first = said.split("\n\n")[2].splitlines()[:2]
    assert head.split()[-4:] == ["Change", "95%", "interval", "Verdict"]
    cells = first.replace("−", "-").removeprefix("Log loss").split()
    before, after, change, low, high = (float(cells[at]) for at in (0, 1, 2, 3, 5))
    assert change == pytest.approx(after - before, abs=0.011)
    assert low < change < high < 0
    assert cells[-1] == "better"


def test_eight_rows_that_are_all_right_get_no_number_but_how_many_would_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
) -> None:
    yes = [0.05, 0.9] * 4
    frame = pd.DataFrame({"proba_no": [1 - p for p in yes], "proba_yes": yes})
    frame.assign(answer=["no", "yes"] * 4).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "c.kdcal"
    words = ("--predictions", tmp_path / "rows.csv", "--target", "answer", "--out", out)
    code, said, _ = run(capsys, "--calibrator", "kde_mon2", *words)
    assert code == 0
    texts(said)
    assert "80" in said
    assert "20 rows" in said
    assert "Log loss" not in said
    assert load_calibrator(out).card.estimates == ()


def test_every_change_printed_is_after_less_before(
    capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path
) -> None:
    words = ("--model", ADULT / "model.json", "--data", rows / "calibration.parquet")
    code, said, _ = run(
        capsys,
        *("--calibrator", "isotonic", *words, "--target", "income", "--out", tmp_path / "c.kdcal"),
    )
    assert code == 0
    assert re.search(r"^Accuracy +8\d\.\d% +8\d\.\d% ", said, re.MULTILINE)
    lines = said.replace("−", "-").splitlines()
    found = [re.findall(r"(?<![\w-])-?\d*\.\d+", line) for line in lines]
    assert sum(len(numbers) == 5 for numbers in found) == 6
    for line in (numbers for numbers in found if len(numbers) == 5):
        before, after, change, _, _ = line
        last = 10.0 ** -len(before.partition(".")[2])
        assert float(after) - float(before) == pytest.approx(float(change), abs=1.01 * last), line
