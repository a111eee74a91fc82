"""``kdcal score``: every row once, calibrated as in memory, or one line that says why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from texts.snapshot import Texts

from kdcal_core.calibration import fit_calibrator
from kdcal_core.calibration.export import make_card, save_calibrator
from kdcal_core.calibration.export.score_table import score_table
from kdcal_core.cli import main
from kdcal_core.cli.arguments import parser
from kdcal_core.data import ScoredSet, encode_labels
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError
from kdcal_core.models import load_model, model_info

ADULT = Path(__file__).parents[2] / "sample_data" / "adult"
DIGITS = Path(__file__).parents[2] / "sample_data" / "digits_predictions"
CLASSES = ("<=50K", ">50K")
pytestmark = pytest.mark.usefixtures("work_here")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["score", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its Platt calibrator, and the tables to score."""
    folder = tmp_path_factory.mktemp("score")
    shutil.copy(ADULT / "model.json", folder / "model.json")
    pd.read_parquet(ADULT / "evaluation.parquet").head(700).to_csv(folder / "rows.csv", index=False)
    model = load_model(folder / "model.json", task="classification")
    frame = pd.read_parquet(ADULT / "calibration.parquet").head(1000)
    X = frame.drop(columns="income")
    proba = model.predict_proba(X)
    scored = ScoredSet(proba, encode_labels(frame["income"], CLASSES), CLASSES, "d", "calibration")
    info = model_info(model, folder / "model.json", "model.json")
    for key in ("platt", "heterogeneous_tree"):
        calibrator = fit_calibrator(key, scored, X)
        card = make_card(
            key, calibrator, classes=CLASSES, data={}, model=info, features=list(X.columns)
        )
        save_calibrator(calibrator, folder / f"{key}.kdcal", card)
    return folder


def words(place: Path, key: str = "platt") -> list[object]:
    return ["--calibrator", place / f"{key}.kdcal", "--model", place / "model.json"]


@pytest.mark.parametrize("key", ["platt", "heterogeneous_tree"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_every_row_comes_out_calibrated(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path, suffix: str, key: str
) -> None:
    from kdcal_core.calibration.export import load_calibrator

    out = tmp_path / f"out{suffix}"
    code, said, err = run(capsys, *words(place, key), "--data", place / "rows.csv", "--out", out)
    assert (code, err) == (0, "")
    assert said.startswith("700 rows in ")
    found = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert list(found) == ["row", "proba_<=50K", "proba_>50K", "predicted", "confidence"]
    assert found["row"].tolist() == list(range(1, 701))
    frame = pd.read_csv(place / "rows.csv")
    model = load_model(place / "model.json", task="classification")
    proba = model.predict_proba(frame.drop(columns="income"))
    expected = load_calibrator(place / f"{key}.kdcal", model=model).calibrated(proba, frame)
    np.testing.assert_allclose(found.iloc[:, 1:3], expected.proba, rtol=1e-12)
    np.testing.assert_allclose(found["confidence"], expected.confidence, rtol=1e-12)
    assert found["predicted"].tolist() == [CLASSES[k] for k in expected.predicted]
    assert [one.name for one in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_are_asked_for_are_kept(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str
) -> None:
    rows = pd.read_csv(place / "rows.csv")
    case = [f"A-{k:04d}" for k in range(len(rows))]
    case[3], case[5] = "=1+1", None  # a formula and nothing
    table, out = tmp_path / "cases.csv", tmp_path / f"out{suffix}"
    rows.assign(case=case).to_csv(table, index=False)
    asked = (*words(place), "--data", table, "--keep", "case,age", "--out", out)
    assert run(capsys, *asked)[0] == 0
    found = pd.read_csv(out, dtype=str) if suffix == ".csv" else pd.read_parquet(out)
    assert list(found)[:4] == ["row", "case", "age", "proba_<=50K"]
    assert found["case"].iloc[[0, 4]].tolist() == ["A-0000", "A-0004"]
    assert found["case"].iloc[3] == ("'=1+1" if suffix == ".csv" else "=1+1")
    assert pd.isna(found["case"].iloc[5])
    assert found["age"].astype(float).tolist() == rows["age"].tolist()
    for name, said in (("nowhere", "no such column"), ("confidence", "of this name anyway")):
        pd.read_csv(table).assign(confidence=1).to_csv(table, index=False)
        wrong = (*words(place), "--data", table, "--keep", name, "--out", tmp_path / "never.csv")
        code, _, err = run(capsys, *wrong)
        assert (code, said in err) == (2, True), err
        assert not (tmp_path / "never.csv").exists()


def test_lists_that_are_given_again_are_added_to(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["score", "--calibrator", "c", "--data", "d", "--out", "o", "--keep", "id,age"]
    assert parser().parse_args([*asked, "--keep", "income"]).keep == ("id", "age", "income")
    said = parser().parse_args([*asked, "--parameters", "mean=mu", "--parameters", "std=sigma"])
    assert said.parameters == (("mean", "mu"), ("std", "sigma"))
    with pytest.raises(SystemExit):
        main([*asked, "--keep", "age"])
    assert "the same name is given twice" in capsys.readouterr().err


def test_predictions_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    frame = pd.read_parquet(DIGITS / "calibration.parquet")
    outputs = [f"proba_{k}" for k in range(10)]
    names = tuple(str(k) for k in range(10))
    proba = frame[outputs].to_numpy(dtype=float)
    proba = proba / proba.sum(axis=1, keepdims=True)
    scored = ScoredSet(proba, frame["label"].to_numpy(), names, "d", "calibration")
    calibrator = fit_calibrator("sts", scored)
    save_calibrator(
        calibrator, tmp_path / "c.kdcal", make_card("sts", calibrator, classes=names, data={})
    )
    table = DIGITS / "evaluation.parquet"
    words = ("--calibrator", tmp_path / "c.kdcal", "--predictions", table)
    code, _, err = run(capsys, *words, "--out", tmp_path / "o.csv")
    assert (code, err) == (0, "")
    found = pd.read_csv(tmp_path / "o.csv")
    proba = pd.read_parquet(table)[outputs].to_numpy(dtype=float)
    proba = proba / proba.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[outputs], calibrator.predict_proba(proba), rtol=1e-9)


def fails(capsys: pytest.CaptureFixture[str], *given: object) -> str:
    code, out, err = run(capsys, *given)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


@pytest.mark.usefixtures("real_workers")
def test_another_model_is_refused_unless_any_will_do(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path, texts: Texts
) -> None:
    text = (place / "model.json").read_text()
    (tmp_path / "model.json").write_text(text + "\n")
    other = ["--calibrator", place / "platt.kdcal", "--model", tmp_path / "model.json"]
    rest = ["--data", place / "rows.csv", "--out", tmp_path / "o.csv"]
    refused = fails(capsys, *other, *rest)
    texts(refused, "refused")
    assert "'model.json'" in refused
    assert not (tmp_path / "o.csv").exists()
    code, said, _ = run(capsys, *other, *rest, "--any-model")
    assert code == 0
    texts(said, "any model")
    assert (tmp_path / "o.csv").exists()


@pytest.mark.usefixtures("real_workers")
def test_a_fault_leaves_nothing_behind_and_names_its_place(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path
) -> None:
    frame = pd.read_csv(place / "rows.csv").astype({"age": "float64"})
    frame.drop(columns="age").to_csv(tmp_path / "no_age.csv", index=False)
    frame.loc[640, "age"] = np.inf
    frame.to_csv(tmp_path / "odd.csv", index=False)
    out = ["--out", tmp_path / "o.csv"]
    err = fails(capsys, *words(place), "--data", tmp_path / "odd.csv", *out)
    assert "odd.csv" in err
    assert "row 641" in err
    err = fails(capsys, *words(place), "--data", tmp_path / "no_age.csv", *out)
    assert "'age'" in err
    cut = (place / "platt.kdcal").read_bytes()[:-100]
    (tmp_path / "cut.kdcal").write_bytes(cut)
    broken = ["--calibrator", tmp_path / "cut.kdcal", "--model", place / "model.json"]
    assert "cut.kdcal" in fails(capsys, *broken, "--data", place / "rows.csv", *out)
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["cut.kdcal", "no_age.csv", "odd.csv"]


def test_words_that_do_not_go_together(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path, texts: Texts
) -> None:
    calibrator = ["--calibrator", place / "platt.kdcal"]
    model, rows = ["--model", place / "model.json"], place / "rows.csv"
    out = ["--out", tmp_path / "o.csv"]
    assert "needs --model" in fails(capsys, *calibrator, "--data", rows, *out)
    said = fails(capsys, *calibrator, *model, "--predictions", rows, *out)
    assert "takes no --model" in said
    said = fails(capsys, *calibrator, *model, "--data", tmp_path / "none.csv", *out)
    assert "no such file" in said
    said = fails(capsys, *calibrator, *model, "--data", rows, "--out", tmp_path / "o.xlsx")
    assert ".csv or .parquet" in said
    said = fails(capsys, *calibrator, *model, "--data", rows, "--out", rows)
    texts(said, "the table itself")
    said = fails(capsys, *calibrator, *model, "--data", rows, "--out", tmp_path / "no" / "o.csv")
    assert "folder" in said


def test_rows_are_counted_through_all_blocks(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kdcal_core.data import csv_tables

    monkeypatch.setattr(csv_tables, "_BLOCK", 1 << 12)
    given = (str(place / "platt.kdcal"), str(place / "rows.csv"))
    seen: list[str] = []
    found = score_table(
        *given,
        str(tmp_path / "o.csv"),
        ".csv",
        str(place / "model.json"),
        progress=lambda share, note: seen.append(note),
    )
    assert len(seen) > 5
    assert found["rows"] == 700
    assert sum(found["classes"].values()) == 700
    assert pd.read_csv(tmp_path / "o.csv")["row"].tolist() == list(range(1, 701))
    frame = pd.read_csv(place / "rows.csv").astype({"age": "float64"})
    frame.loc[650, "age"] = np.inf
    frame.to_csv(tmp_path / "odd.csv", index=False)
    with pytest.raises(InputError) as error:
        score_table(
            given[0],
            str(tmp_path / "odd.csv"),
            str(tmp_path / "p.csv"),
            ".csv",
            str(place / "model.json"),
        )
    assert error.value.row == 651


def test_categories_that_the_fit_did_not_see_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
) -> None:
    p = np.tile([0.3, 0.7], (200, 1))
    X = pd.DataFrame({"shop": ["north", "south"] * 100})
    rows = ScoredSet(p, np.arange(200) % 2, ("no", "yes"), "d", "calibration")
    calibrator = fit_calibrator("heterogeneous_tree", rows, X)
    card = make_card(
        "heterogeneous_tree", calibrator, classes=rows.classes, data={}, features=["shop"]
    )
    save_calibrator(calibrator, tmp_path / "c.kdcal", card)
    table = X.assign(proba_no=0.3, proba_yes=0.7)
    table.loc[:2, "shop"] = "west"
    table.to_csv(tmp_path / "new.csv", index=False)
    words = ["--calibrator", tmp_path / "c.kdcal", "--predictions", tmp_path / "new.csv"]
    code, said, err = run(capsys, *words, "--out", tmp_path / "o.csv")
    assert (code, err) == (0, "")
    texts(said)
    assert "3 rows" in said


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_class_that_is_a_formula_is_text_in_a_spreadsheet(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str
) -> None:
    bad, good = "=cmd|' /C calc'!A0", "-1"
    p = np.linspace(0.05, 0.95, 60)
    scored = ScoredSet(np.column_stack([1 - p, p]), np.resize([0, 1], 60), (bad, good), "", "")
    fitted = fit_calibrator("platt", scored)
    save_calibrator(
        fitted, tmp_path / "c.kdcal", make_card("platt", fitted, classes=(bad, good), data={})
    )
    pd.DataFrame({"p": p}).to_csv(tmp_path / "p.csv", index=False)
    out = tmp_path / f"out{suffix}"
    code, _, err = run(
        capsys,
        *("--calibrator", tmp_path / "c.kdcal", "--predictions", tmp_path / "p.csv"),
        *(f"--outputs={good}=p", "--out", out),
    )
    assert (code, err) == (0, "")
    found = pd.read_csv(out, dtype=str) if suffix == ".csv" else pd.read_parquet(out)
    # a Parquet file is no spreadsheet: its text is the class's
    assert set(found["predicted"]) == {f"'{bad}" if suffix == ".csv" else bad, good}


def test_columns_of_almost_numbers_are_noted(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path, texts: Texts
) -> None:
    frame = pd.read_csv(place / "rows.csv").head(20).astype({"education": str})
    rows = tmp_path / "rows.csv"
    values = ["0.25"] * 4 + ["0,05"] + ["0.5"] * 15
    frame.assign(education=values).to_csv(rows, index=False)
    table = TableBlocks(rows)
    assert sum(len(block) for block in table.read(["education"])) == 20
    assert all(part in table.notes["education"] for part in ("0,05", "row 5"))
    predictions = tmp_path / "predictions.csv"
    one = np.linspace(0.1, 0.9, 20)
    made = pd.DataFrame({"p_<=50K": one, "p_>50K": 1 - one, "education": values})
    made = made.assign(**{name: frame[name] for name in frame if name not in made})
    made.to_csv(predictions, index=False)
    words = ("--calibrator", place / "heterogeneous_tree.kdcal", "--predictions", predictions)
    code, out, err = run(capsys, *words, "--out", tmp_path / "out.csv")
    assert (code, err) == (0, "")
    texts(out)
    assert "mean confidence" in out.splitlines()[0]
    assert out.splitlines()[0].endswith("%.")


def test_a_folder_is_scored_file_by_file(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path
) -> None:
    frame, source = pd.read_csv(place / "rows.csv"), tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    frame[:300].to_parquet(source / "a.parquet")
    frame[300:].to_parquet(source / "deep" / "b.parquet")
    one, out = tmp_path / "one.parquet", tmp_path / "2026.11"
    asked = [*words(place), "--keep", "income"]
    assert run(capsys, *asked, "--data", place / "rows.csv", "--out", one)[0] == 0
    code, said, err = run(capsys, *asked, "--data", source, "--out", out)
    assert (code, err) == (0, "")
    assert said.startswith("700 rows in ")
    found = [pd.read_parquet(out / name) for name in ("a.parquet", "deep/b.parquet")]
    assert [part["row"].tolist() for part in found] == [[*range(1, 301)], [*range(1, 401)]]
    together = pd.concat(found, ignore_index=True).drop(columns="row")
    pd.testing.assert_frame_equal(together, pd.read_parquet(one).drop(columns="row"))
    assert {path.name for path in tmp_path.iterdir()} == {"in", "one.parquet", "2026.11"}
    code, _, err = run(capsys, *asked, "--data", source, "--out", out)
    assert code == 2
    assert "exists already" in err
    frame.assign(age="old")[300:].to_parquet(source / "deep" / "b.parquet")
    code, _, err = run(capsys, *asked, "--data", source, "--out", tmp_path / "other")
    assert code == 2
    assert "file 'deep/b.parquet'" in " ".join(err.split())
    code, _, err = run(capsys, *asked, "--data", source, "--out", tmp_path / "other.csv")
    assert code == 2
    assert "scored into a folder" in err
    assert {path.name for path in tmp_path.iterdir()} == {"in", "one.parquet", "2026.11"}
