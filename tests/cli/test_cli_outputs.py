"""Which columns of a table hold the predictions: guessed, said, or known from the fit."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from texts.snapshot import Texts

from kdcal_core.calibration.export import load_calibrator, make_card, save_calibrator
from kdcal_core.calibration.fitting import fit_calibrator
from kdcal_core.data import Roles, ScoredSet
from kdcal_core.models import ModelInfo

Run = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("work_here")
N = 400


def written(folder: Path, column: str = "p_default", **more: object) -> Path:
    """Loans, whether each defaulted, and how likely that was called."""
    rng = np.random.default_rng(0)
    p = rng.random(N)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N),
            column: p,
            "label": (rng.random(N) < p**2).astype(int),
            "region": rng.choice(["north", "south"], N),
        }
    )
    path = folder / f"{abs(hash(column))}.csv"
    frame.assign(**more).to_csv(path, index=False)
    return path


def saved(folder: Path, *, roles: Roles | None = None) -> Path:
    """Platt's map of such a table in a file."""
    frame = pd.read_csv(written(folder))
    p, y = frame["p_default"].to_numpy(), frame["label"].to_numpy()
    rows = ScoredSet(np.column_stack([1 - p, p]), y, ("0", "1"), "", "calibration")
    fitted = fit_calibrator("platt", rows)
    card = make_card("platt", fitted, classes=("0", "1"), data={}, predictions=roles)
    save_calibrator(fitted, folder / "c.kdcal", card)
    return folder / "c.kdcal"


def column_of(text: str) -> tuple[str, str]:
    """The column that a report names, and the class whose probability it holds."""
    (found,) = re.findall(r"^Column (\S+) holds .* class (\S+)\.$", text, re.MULTILINE)
    return found


def scored(run: Run, folder: Path, *words: object) -> pd.DataFrame:
    out = folder / "out.csv"
    code, _, err = run("score", *words, "--out", out, "--force")
    assert (code, err) == (0, "")
    return pd.read_csv(out)


def test_a_lone_probability_of_default_needs_no_word(
    run: Run, tmp_path: Path, texts: Texts
) -> None:
    code, out, err = run("diagnose", "--predictions", written(tmp_path), "--target", "label")
    assert (code, err) == (0, "")
    texts(out)
    assert column_of(out) == ("p_default", "1")


def test_the_target_that_is_named_decides_the_guess(run: Run, tmp_path: Path) -> None:
    table = written(tmp_path, outcome=np.resize(["a", "b", "c"], N))
    code, _, err = run("diagnose", "--predictions", table, "--target", "label")
    assert (code, err) == (0, "")


def test_what_no_name_shows_is_said_by_outputs(run: Run, tmp_path: Path) -> None:
    table = written(tmp_path, "chance")
    words = ("--predictions", table, "--target", "label")
    code, _, err = run("diagnose", *words)
    assert code == 2
    assert "--outputs CLASS=COLUMN" in err
    assert "role" not in err
    code, named, err = run("diagnose", *words, "--outputs", "1=chance")
    assert (code, err) == (0, "")
    assert column_of(named) == ("chance", "1")
    _, guessed, _ = run("diagnose", "--predictions", written(tmp_path), "--target", "label")
    assert _figures(named) == _figures(guessed)


def _figures(text: str) -> str:
    return text[text.index("rows") :].replace("chance", "p_default")


def test_outputs_go_by_the_class_that_they_name(run: Run, tmp_path: Path) -> None:
    table = written(tmp_path, "chance")
    frame = pd.read_csv(table)
    frame.assign(rest=1 - frame["chance"]).to_csv(table, index=False)
    words = ("diagnose", "--predictions", table, "--target", "label")
    both = run(*words, "--outputs", "1=chance", "--outputs", "0=rest")
    assert both[0] == 0
    assert _figures(both[1]) == _figures(run(*words, "--outputs", "0=rest,1=chance")[1])
    assert run(*words, "--outputs", "0=rest")[0] == 0


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ("1=none", "The table has no such column"),
        ("2=chance", "'2'"),
        ("1=chance,0=chance", "two roles"),
        ("chance", "not a list like"),
        ("1=age", "A probability is below 0 or above 1"),
        ("1=chance,1=age", "two columns for the class '1'"),
    ],
)
def test_outputs_that_cannot_be_are_refused_in_one_line(
    run: Run, tmp_path: Path, outputs: str, said: str
) -> None:
    table = written(tmp_path, "chance")
    words = ("--predictions", table, "--target", "label", "--outputs", outputs)
    code, out, err = run("diagnose", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_model_gives_its_outputs_itself(run: Run, tmp_path: Path) -> None:
    table = written(tmp_path)
    words = ("--model", table, "--data", table, "--outputs", "1=p_default")
    for command in (
        ("diagnose", "--target", "label"),
        ("calibrate", "--calibrator", "platt", "--target", "label", "--out", tmp_path / "c.kdcal"),
        ("score", "--calibrator", table, "--out", tmp_path / "out.csv"),
    ):
        code, _, err = run(*command, *words)
        assert code == 2
        assert "--outputs needs --predictions" in err


def test_the_columns_of_the_fit_are_known_when_rows_are_scored(run: Run, tmp_path: Path) -> None:
    table = written(tmp_path, "chance")
    roles = Roles(target="label", outputs=(("1", "chance"),))
    calibrator = saved(tmp_path, roles=roles)
    card = load_calibrator(calibrator).card
    assert (card.outputs, card.output_kind) == (roles.outputs, "probability")
    found = scored(run, tmp_path, "--calibrator", calibrator, "--predictions", table)
    p = pd.read_csv(table)["chance"].to_numpy()
    wanted = load_calibrator(calibrator).predict_proba(np.column_stack([1 - p, p]))
    np.testing.assert_allclose(found["proba_1"], wanted[:, 1])


def test_logits_of_the_fit_are_logits_when_rows_are_scored(run: Run, tmp_path: Path) -> None:
    table = written(tmp_path, "chance")
    p = pd.read_csv(table)["chance"].clip(1e-6, 1 - 1e-6)
    pd.DataFrame({"z": np.log(p / (1 - p))}).to_csv(table, index=False)
    roles = Roles(outputs=(("1", "z"),), output_kind="logit")
    calibrator = saved(tmp_path, roles=roles)
    found = scored(run, tmp_path, "--calibrator", calibrator, "--predictions", table)
    wanted = load_calibrator(calibrator).predict_proba(np.column_stack([1 - p, p]))
    np.testing.assert_allclose(found["proba_1"], wanted[:, 1])


def test_what_was_fitted_on_a_table_scores_tables_of_the_same_columns(
    run: Run, tmp_path: Path
) -> None:
    for column, said in (("p_default", ()), ("chance", ("--outputs", "1=chance"))):
        table, out = written(tmp_path, column), tmp_path / f"{column}.kdcal"
        words = ("--calibrator", "heterogeneous_tree", "--predictions", table, *said)
        code, printed, err = run("calibrate", *words, "--target", "label", "--out", out)
        assert (code, err) == (0, "")
        assert column_of(printed) == (column, "1")
        card = load_calibrator(out).card
        assert card.outputs == (("1", column),)
        assert card.features == ("age", "region")
        rows = pd.read_csv(table).drop(columns="label")
        rows.to_csv(tmp_path / "new.csv", index=False)
        found = scored(run, tmp_path, "--calibrator", out, "--predictions", tmp_path / "new.csv")
        assert len(found) == N


def test_a_file_without_the_columns_of_its_fit_goes_by_their_names(
    run: Run, tmp_path: Path
) -> None:
    calibrator = saved(tmp_path)
    assert load_calibrator(calibrator).card.outputs == ()
    for column in ("p_default", "prob_1"):
        table = written(tmp_path, column)
        assert len(scored(run, tmp_path, "--calibrator", calibrator, "--predictions", table)) == N


def test_a_table_without_the_columns_of_the_fit_can_name_its_own(run: Run, tmp_path: Path) -> None:
    calibrator = saved(tmp_path, roles=Roles(outputs=(("1", "chance"),)))
    words = ("--calibrator", calibrator, "--predictions")
    known = scored(run, tmp_path, *words, written(tmp_path, "chance"))
    other = written(tmp_path, "another")
    code, _, err = run("score", *words, other, "--out", tmp_path / "none.csv")
    assert code == 2
    assert "'chance'" in err
    assert "--outputs CLASS=COLUMN" in err
    pd.testing.assert_frame_equal(
        scored(run, tmp_path, *words, other, "--outputs", "1=another"), known
    )
    guessed = scored(run, tmp_path, *words, written(tmp_path, "p_default"))
    pd.testing.assert_frame_equal(guessed, known)


def test_the_outputs_of_a_model_are_not_kept(tmp_path: Path) -> None:
    frame = pd.read_csv(written(tmp_path))
    p = frame["p_default"].to_numpy()
    proba = np.column_stack([1 - p, p])
    fitted = fit_calibrator(
        "platt", ScoredSet(proba, frame["label"].to_numpy(), ("0", "1"), "", "calibration")
    )
    model = ModelInfo("tree", ("0", "1"), True, 1, None, False, False, "0" * 64, "m.onnx", 1)
    roles = Roles(outputs=(("1", "p"),))
    card = make_card("platt", fitted, classes=("0", "1"), data={}, model=model, predictions=roles)
    assert card.outputs == ()


def swapped_loans(folder: Path, column: str) -> Path:
    """Loans of which the column is the probability of bad, which only some names say."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.6, 4.0, N)
    label = np.where(rng.random(N) < p, "bad", "good")
    path = folder / "loans.csv"
    pd.DataFrame({column: p, "label": label}).to_csv(path, index=False)
    return path


def test_a_probability_of_default_is_not_one_of_good(run: Run, tmp_path: Path) -> None:
    table = swapped_loans(tmp_path, "p_default")
    code, out, err = run("diagnose", "--predictions", table, "--target", "label")
    assert (code, err) == (0, "")
    assert column_of(out) == ("p_default", "bad")
    assert "Warning" not in out


def test_a_class_that_no_name_says_is_a_warning_that_outputs_settles(
    run: Run, tmp_path: Path, texts: Texts
) -> None:
    words = ("diagnose", "--predictions", swapped_loans(tmp_path, "score"), "--target", "label")
    report = tmp_path / "r.json"
    _, out, _ = run(*words, "--json", report)
    first = out.splitlines()[0]
    texts(first)
    assert all(f"--outputs {name}=score" in first for name in ("bad", "good"))
    assert json.loads(report.read_text())["doubts"] == [first.removeprefix("Warning: ")]
    assert "Warning" not in run(*words, "--outputs", "bad=score")[1]


def test_a_ranking_the_wrong_way_round_is_said_first_with_the_words_that_swap(
    run: Run, tmp_path: Path, texts: Texts
) -> None:
    table = swapped_loans(tmp_path, "p_good")
    words = ("--predictions", table, "--target", "label")
    _, out, _ = run("diagnose", *words)
    first = out.splitlines()[0]
    texts(first)
    assert first.startswith("Warning: ")
    assert "AUROC 0." in first
    assert first.endswith("--outputs bad=p_good.")
    out = run("calibrate", *words, "--calibrator", "platt", "--out", tmp_path / "c.kdcal")[1]
    assert out.splitlines()[0] == first
    assert "Warning" not in run("diagnose", *words, "--outputs", "bad=p_good")[1]


def test_a_column_of_mixed_decimals_is_named_in_report_and_json(
    run: Run, tmp_path: Path, texts: Texts
) -> None:
    table, report = written(tmp_path), tmp_path / "r.json"
    frame = pd.read_csv(table).astype({"age": str})
    frame.loc[6, "age"] = "1,5"
    frame.to_csv(table, index=False, sep=";")
    words = ("diagnose", "--predictions", table, "--target", "label", "--json", report)
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    (note,) = (one for one in json.loads(report.read_text())["sets"][0]["notes"] if "'age'" in one)
    texts(note)
    assert "1,5" in note
    assert note in " ".join(out.split())


def test_a_class_with_a_minus_sign_is_no_option(run: Run, tmp_path: Path) -> None:
    frame = pd.read_csv(written(tmp_path, "p"))
    table = tmp_path / "signs.csv"
    signs = np.where(frame["label"] == 1, -1, 1)
    frame.assign(label=signs).to_csv(table, index=False)
    words = ("diagnose", "--predictions", table, "--target", "label")
    _, out, _ = run(*words)
    advice = out[out.index("--outputs") :].split(".\n")[0]
    code, out, err = run(*words, *shlex.split(advice))
    assert (code, err) == (0, "")
    assert column_of(out) == ("p", "-1")
    assert "Warning" not in out


def test_the_ways_out_for_scores_votes_and_lists(run: Run, tmp_path: Path) -> None:
    frame = pd.read_csv(written(tmp_path, "p"))
    p, label = frame["p"], frame["label"]
    votes = pd.DataFrame({"label": (5 * p).round() / 5, "probability": p})
    lists = pd.DataFrame({"label": np.where(label, "b", "a"), "p": [f"[{1 - q}, {q}]" for q in p]})
    for table, said, way in (
        (pd.DataFrame({"score": 1000 * p, "label": label}), "ranks", "1=score permille"),
        (votes, "votes", "--majority"),
        (lists, "nothing says in which order", "a=p[0],b=p[1]"),
    ):
        path = tmp_path / "table.csv"
        table.to_csv(path, index=False)
        words = ("diagnose", "--predictions", path, "--target", "label")
        code, _, err = run(*words)
        assert (code, said in err) == (2, True)
        outputs, _, kind = way.partition(" ")
        more = ("--outputs", outputs) if "=" in way else (way,)
        code, _, err = run(*words, *more, *(("--output-kind", kind) if kind else ()))
        assert (code, err) == (0, "")
    code, _, err = run(*words, "--task", "regression", "--majority")
    assert code == 2
    assert "--majority is for a classification" in err


@pytest.mark.parametrize("scale", ["percent", "logit"])
def test_the_way_out_for_numbers_that_are_no_probabilities(
    run: Run, tmp_path: Path, scale: str, texts: Texts
) -> None:
    frame = pd.read_csv(written(tmp_path, "p"))
    other = {"percent": 100 * frame["p"], "logit": np.log(frame["p"] / (1 - frame["p"]))}[scale]
    table = tmp_path / "scale.csv"
    frame.assign(p=other).to_csv(table, index=False)
    words = ("diagnose", "--predictions", table, "--target", "label")
    code, _, err = run(*words)
    assert code == 2
    texts(err, f"no column named, {scale}")
    assert f"--output-kind {scale}" in err
    words = (*words, "--outputs", "1=p")
    code, _, err = run(*words)
    assert code == 2
    assert f"--output-kind {scale}" in err
    assert run(*words, "--output-kind", scale)[0] == 0


@pytest.mark.parametrize("percent", [False, True])
def test_the_confidence_alone_is_judged_by_the_words_of_its_refusal(
    run: Run, tmp_path: Path, percent: bool
) -> None:
    rng = np.random.default_rng(0)
    said = rng.dirichlet(np.ones(3), 300)
    table = tmp_path / "top.csv"
    columns = {"label": [rng.choice(3, p=row) for row in said], "prediction": said.argmax(1)}
    confidence = said.max(1) * (100 if percent else 1)
    pd.DataFrame({**columns, "confidence": confidence}).to_csv(table, index=False)
    words = ("diagnose", "--predictions", table, "--target", "label")
    code, _, err = run(*words)
    assert code == 2
    asked = err[err.index("--outputs") :].strip().rstrip(".")
    kind = f"{'percent_' * percent}right"
    assert asked == f"--outputs right=COLUMN --output-kind {kind} --event right"
    code, out, err = run(*words, *shlex.split(asked.replace("COLUMN", "confidence")))
    assert (code, err) == (0, "")
    assert "right" in out
