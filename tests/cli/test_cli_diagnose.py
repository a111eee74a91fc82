"""``kdcal diagnose`` on the shipped samples and on input that cannot be used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss, precision_score, roc_auc_score
from texts.snapshot import Texts

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_data"
Run = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("work_here")


def sample_words(name: str) -> tuple[list[object], dict[str, Any]]:
    card = json.loads((SAMPLES / name / "card.json").read_text(encoding="utf-8"))
    folder = SAMPLES / name
    table = folder / card["calibration"]
    source = (
        ["--model", folder / card["model"], "--data", table]
        if card["model"]
        else ["--predictions", table]
    )
    further = ["--evaluation", folder / card["evaluation"], "--target", card["target"]]
    return ["diagnose", *source, *further], card


# a model, and predictions alone; the numbers of every sample are golden figures
@pytest.mark.parametrize("name", ["breast_cancer", "digits_predictions"])
def test_a_sample_is_diagnosed(run: Run, tmp_path: Path, name: str, texts: Texts) -> None:
    words, card = sample_words(name)
    code, out, err = run(*words, "--json", tmp_path / "out.json")
    assert (code, err) == (0, "")
    texts(out)
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["format"] == 1
    assert [one["name"] for one in found["sets"]] == ["calibration", "evaluation"]
    evaluation = found["sets"][1]
    assert evaluation["classes"] == card["class_names"]
    assert evaluation["n"] == card["rows"]["evaluation"]
    accuracy = next(one for one in evaluation["estimates"] if one["label"] == "Accuracy")
    assert accuracy["value"] == pytest.approx(card["accuracy"], abs=1e-12)
    assert max(map(len, out.split("\n\n")[2].splitlines())) <= 80
    out = " ".join(out.split())  # names of estimators may go on in a second line
    for one in found["sets"]:
        assert all(finding in out for finding in one["findings"])
        assert all(estimate["name"] in out for estimate in one["estimates"])


def test_numbers_are_those_of_an_independent_library(run: Run, tmp_path: Path) -> None:
    words, _ = sample_words("digits_predictions")
    assert run(*words, "--json", tmp_path / "out.json")[0] == 0
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["sets"][1]
    rows = pd.read_parquet(SAMPLES / "digits_predictions" / "evaluation.parquet")
    truth = rows.pop("label").to_numpy()
    proba = rows.to_numpy()
    predicted = proba.argmax(axis=1)
    values = {one["label"]: one["value"] for one in reversed(found["estimates"])}
    assert values["Accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    clipped = np.clip(proba, 1e-12, None)
    clipped /= clipped.sum(axis=1, keepdims=True)
    assert values["Log loss"] == pytest.approx(log_loss(truth, clipped), rel=1e-6)
    assert values["Mean confidence"] == pytest.approx(proba.max(axis=1).mean(), rel=1e-6)
    by_class = found["by_predicted_class"]
    assert [one["n"] for one in by_class] == np.bincount(predicted, minlength=10).tolist()
    np.testing.assert_allclose(
        [one["frequency"] for one in by_class], precision_score(truth, predicted, average=None)
    )
    assert sum(one["n"] for one in found["reliability"]) == len(rows)
    joint = np.zeros((10, 10))
    np.add.at(joint, (truth, predicted), 1)
    np.testing.assert_array_equal(found["confusion"], joint)


@pytest.mark.usefixtures("real_workers")
def test_same_input_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    words, _ = sample_words("digits_predictions")
    printed = [run(*words, "--json", tmp_path / name)[1] for name in ("a.json", "b.json")]
    assert printed[0] == printed[1]
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.fixture
def spam(tmp_path: Path) -> Path:
    """Predictions of 200 mails, with a weight."""
    random = np.random.default_rng(5)
    says = random.uniform(0.05, 0.95, 200).round(6)
    frame = pd.DataFrame(
        {
            "truth": np.where(random.uniform(size=200) < says, "spam", "ham"),
            "proba_ham": (1 - says).round(6),
            "proba_spam": says,
            "weight": random.uniform(0.5, 2.0, 200).round(3),
        }
    )
    path = tmp_path / "mails.csv"
    frame.to_csv(path, index=False)
    return path


def diagnosed(run: Run, folder: Path, *words: object) -> dict[str, Any]:
    code, _, err = run("diagnose", *words, "--json", folder / "found.json", "--force")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return found


def test_weight_counts_only_where_it_is_asked_for(run: Run, spam: Path) -> None:
    words = ("--predictions", spam, "--target", "truth")
    plain = diagnosed(run, spam.parent, *words)["sets"][0]
    weighted = diagnosed(run, spam.parent, *words, "--weight", "weight")["sets"][0]
    frame = pd.read_csv(spam)
    right = (frame["proba_spam"] > 0.5) == (frame["truth"] == "spam")
    assert plain["estimates"][0]["value"] == pytest.approx(right.mean())
    assert weighted["estimates"][0]["value"] == pytest.approx(
        np.average(right, weights=frame["weight"])
    )


def test_clusters_count_where_they_are_asked_for(run: Run, spam: Path) -> None:
    frame = pd.read_csv(spam)
    pd.concat([frame.assign(sender=range(200))] * 4).to_csv(spam, index=False)
    words = ("--predictions", spam, "--target", "truth")
    found = [diagnosed(run, spam.parent, *words, *more) for more in ((), ("--cluster", "sender"))]
    width = [
        [one["high"] - one["low"] for one in each["sets"][0]["estimates"][:4]] for each in found
    ]
    assert all(clusters > 1.6 * rows for rows, clusters in zip(*width, strict=True)), width
    assert found[1]["settings"]["cluster"] == "sender"
    said = run("diagnose", *words, "--cluster", "sender")[1]
    said = " ".join(said.split())
    assert "Rows of one sender are kept together in folds and intervals: 200 clusters" in said
    assert "as independent" not in said


def test_whether_rows_belong_together_is_asked_until_it_is_said(run: Run, spam: Path) -> None:
    frame = pd.read_csv(spam)
    many = pd.concat([frame] * 4)
    many.assign(sender_id=np.arange(len(many)) // 2).to_csv(spam, index=False)
    words = ("diagnose", "--predictions", spam, "--target", "truth")
    asked = " ".join(run(*words)[1].split())
    assert "names what several rows belong to" in asked
    assert "Give --cluster sender_id for that, or an empty name" in asked
    assert "names what several rows" not in run(*words, "--cluster", "")[1]
    assert "names what several rows" not in run(*words, "--cluster", "sender_id")[1]


def test_whether_rows_are_in_order_of_time_is_asked_until_it_is_said(run: Run, spam: Path) -> None:
    frame = pd.read_csv(spam)
    days = pd.date_range("2026-01-01", periods=len(frame)).strftime("%Y-%m-%d")
    frame.assign(day=days).to_csv(spam, index=False)
    words = ("diagnose", "--predictions", spam, "--target", "truth")
    asked = " ".join(run(*words)[1].split())
    assert "Give --time day for that, or an empty --cluster where rows are independent" in asked
    for more in (("--cluster", ""), ("--time", "day")):
        assert "holds dates or times" not in run(*words, *more)[1]


def test_bins_and_level_are_used(run: Run, spam: Path) -> None:
    words = ("--predictions", spam, "--target", "truth")
    wide = diagnosed(run, spam.parent, *words, "--bins", "4", "--level", "0.99")
    narrow = diagnosed(run, spam.parent, *words, "--level", "0.5")
    assert len(wide["sets"][0]["reliability"]) == 4
    assert len(narrow["sets"][0]["reliability"]) == 15
    assert {one["level"] for one in wide["sets"][0]["estimates"]} == {0.99}
    broad, slim = wide["sets"][0]["estimates"][0], narrow["sets"][0]["estimates"][0]
    assert broad["low"] < slim["low"] < slim["high"] < broad["high"]


def test_class_names_can_be_given(run: Run, spam: Path) -> None:
    frame = pd.read_csv(spam)
    frame = frame.rename(columns={"proba_ham": "proba_0", "proba_spam": "proba_1"})
    frame.to_csv(spam, index=False)
    words = ("--predictions", spam, "--target", "truth", "--classes")
    right = ((frame["proba_1"] > 0.5) == (frame["truth"] == "spam")).mean()
    for names, expected in (("ham,spam", right), ("spam,ham", 1 - right)):
        found = diagnosed(run, spam.parent, *words, names)["sets"][0]
        assert found["classes"] == names.split(",")
        assert found["estimates"][0]["value"] == pytest.approx(expected)


def test_one_probability_column_is_enough_for_two_classes(run: Run, spam: Path) -> None:
    words = ("--predictions", spam, "--target", "truth")
    both = diagnosed(run, spam.parent, *words)["sets"][0]
    pd.read_csv(spam).drop(columns="proba_ham").to_csv(spam, index=False)
    single = diagnosed(run, spam.parent, *words)["sets"][0]
    assert single["classes"] == both["classes"] == ["ham", "spam"]
    assert single["estimates"][0] == both["estimates"][0]


def test_an_event_is_asked_about_by_name(run: Run, spam: Path) -> None:
    words = ("--predictions", spam, "--target", "truth")
    code, out, _ = run("diagnose", *words, "--event", "spam", "--bins", "10")
    assert code == 0
    assert "Probability of spam" in out
    found = diagnosed(run, spam.parent, *words, "--event", "spam", "--bins", "10")["sets"][0]
    frame = pd.read_csv(spam)
    happened = (frame["truth"] == "spam").astype(float)
    bins = np.minimum((frame["proba_spam"] * 10).astype(int), 9)
    assert found["event"] == "spam"
    assert [one["n"] for one in found["reliability"]] == [int((bins == j).sum()) for j in range(10)]
    for j, one in enumerate(found["reliability"]):
        assert one["frequency"] == pytest.approx(happened[bins == j].mean())
    first = {one["label"]: one["value"] for one in reversed(found["estimates"])}
    assert first["AUROC"] == pytest.approx(roc_auc_score(happened, frame["proba_spam"]))
    assert first["Probability minus rate"] == pytest.approx(
        frame["proba_spam"].mean() - happened.mean()
    )
    assert first["Confidence gap"] != pytest.approx(first["Probability minus rate"])
    names = [one["name"] for one in found["estimates"]]
    assert len(names) == len(set(names))
    assert "The results are about the probability of spam.\n" in out
    without = run("diagnose", *words)[1]
    assert (
        "The results are about the confidence in the predicted class. For the probability of spam: "
        "--event spam.\n" in without
    )
    assert "event" not in diagnosed(run, spam.parent, *words)["sets"][0]


def test_a_class_of_three_is_judged_alone(run: Run, tmp_path: Path) -> None:
    """The classes 10 and 12 are stated with too much confidence, the class 11 is not."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.5, 3_000)
    side = rng.random(3_000) < 0.5
    rest = np.where(side, 0.9, 0.1) * (1 - p)
    proba = np.stack([rest, p, 1 - p - rest], axis=1)
    truth = np.where(rng.random(3_000) < p, 11, np.where(rng.random(3_000) < 0.5, 10, 12))
    frame = pd.DataFrame(proba, columns=["p_10", "p_11", "p_12"]).assign(y=truth)
    frame.to_csv(tmp_path / "three.csv", index=False)
    words = ("--predictions", tmp_path / "three.csv", "--target", "y")
    assert diagnosed(run, tmp_path, *words)["sets"][0]["findings"][0].startswith("Over-confident")
    found = diagnosed(run, tmp_path, *words, "--event", "11")["sets"][0]
    assert found["findings"][0].startswith("Within sampling noise")
    assert "over-confident by" not in found["findings"][0]
    losses = {one["name"]: one["value"] for one in found["estimates"] if one["label"] == "Log loss"}
    assert len(losses) == 2
    assert min(losses.values()) == pytest.approx(log_loss(truth == 11, p))


def bad(spam: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Path:
    path = spam.with_name("bad.csv")
    change(pd.read_csv(spam)).to_csv(path, index=False)
    return path


def put(column: str, row: int, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[row - 1, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("proba_ham", 7, 1.5), ["proba_ham", "row 7"]),
        (put("proba_ham", 7, -0.5), ["proba_ham", "row 7"]),
        (put("proba_spam", 12, None), ["proba_spam", "row 12"]),
        (put("proba_spam", 12, "many"), ["proba_spam", "row 12"]),
        (put("truth", 3, "eggs"), ["truth", "eggs", "row 3"]),
        (put("truth", 3, None), ["truth", "row 3"]),
        (lambda frame: frame.assign(truth="ham"), ["truth"]),
        (lambda frame: frame.drop(columns="truth"), ["truth", "no such column"]),
        (lambda frame: frame[["truth", "weight"]], ["probabilities", "--outputs"]),
        (lambda frame: frame.head(0), ["bad.csv"]),
    ],
)
def test_bad_tables_give_one_line_with_the_place(
    run: Run, spam: Path, change: Callable[[pd.DataFrame], pd.DataFrame], said: list[str]
) -> None:
    table, never = bad(spam, change), spam.with_name("never.json")
    words = ("--predictions", table, "--target", "truth", "--json", never)
    code, out, err = run("diagnose", *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "bad.csv" in err
    assert all(words in err for words in said)
    assert not never.exists()


def refused(run: Run, cases: list[tuple[tuple[object, ...], str]]) -> None:
    for words, said in cases:
        code, out, err = run("diagnose", *words)
        assert (code, out) == (2, ""), (words, err)
        assert err.count("\n") == 1
        assert said in err


def test_bad_words(run: Run, spam: Path, tmp_path: Path) -> None:
    digits = SAMPLES / "digits" / "calibration.parquet"
    target = ("--target", "truth")
    cases: list[tuple[tuple[object, ...], str]] = [
        (("--predictions", tmp_path / "absent.csv", *target), "no such file"),
        (("--data", spam, *target), "--model"),
        (("--predictions", spam, "--model", spam, *target), "--model"),
        (("--predictions", spam, *target, "--json", tmp_path / "no" / "x.json"), "folder"),
        (("--predictions", spam, *target, "--weight", "mass"), "mass"),
        (("--predictions", spam, *target, "--classes", "a,b,c"), "3 class names"),
        (("--predictions", spam, *target, "--event", "eggs"), "The classes are: ham and spam"),
        (("--predictions", spam, *target, "--evaluation", digits), "calibration.parquet"),
        (("--model", SAMPLES / "digits" / "model.onnx", "--data", spam, *target), "pixel_0_0"),
    ]
    refused(run, cases)


@pytest.mark.usefixtures("real_workers")
def test_bad_files(run: Run, spam: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "forest.skops").write_bytes(b"\x80\x05a pickle with another name")
    (tmp_path / "cut.onnx").write_bytes((SAMPLES / "digits" / "model.onnx").read_bytes()[:5000])
    digits = SAMPLES / "digits" / "calibration.parquet"
    target = ("--target", "truth")
    cases: list[tuple[tuple[object, ...], str]] = [
        (("--predictions", tmp_path / "empty.csv", *target), "empty"),
        (("--model", tmp_path / "forest.skops", "--data", spam, *target), "kdcal convert"),
        (("--model", tmp_path / "cut.onnx", "--data", digits, "--target", "digit"), "cut.onnx"),
    ]
    refused(run, cases)


def test_names_from_files_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    nasty = "\x1b[2Jspam"
    frame = pd.DataFrame({"truth": ["ham", nasty] * 20, "proba_ham": 0.4, f"proba_{nasty}": 0.6})
    path = tmp_path / "mails.csv"
    frame.to_csv(path, index=False)
    code, out, err = run("diagnose", "--predictions", path, "--target", "truth")
    assert code in (0, 2)
    assert (out + err).replace("\n", "").isprintable()


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    words, _ = sample_words("adult")
    process = subprocess.Popen(
        [sys.executable, "-m", "kdcal_core", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # a shell hides the signal from what it runs in the background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while not any(tmp_path.glob("kdcal-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert not any(tmp_path.glob("kdcal-*"))


def test_many_classes_of_few_rows_read_well(run: Run, tmp_path: Path, texts: Texts) -> None:
    """One wrong row is no headline, and classes that are never predicted fill no table."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(12), rng.integers(0, 4, 88)])
    proba = rng.dirichlet(np.full(40, 0.05), 100)
    proba[np.arange(100), y] += 4.0
    proba[11] = np.eye(40)[13]
    proba /= proba.sum(axis=1, keepdims=True)
    table = pd.DataFrame(proba, columns=[f"prob_c{k:02d}" for k in range(40)])
    table.assign(label=[f"c{k:02d}" for k in y]).to_csv(tmp_path / "p.csv", index=False)
    code, out, _ = run("diagnose", "--predictions", tmp_path / "p.csv", "--target", "label")
    assert code == 0
    assert "A prediction of class" not in out
    texts(out)
    by_class = out.split("Predicted class")[1].split("\n\n")[0]
    assert "c39" not in by_class
    assert "28 classes" in by_class


def test_evaluation_rows_of_the_calibration_set_are_warned_of(
    run: Run, tmp_path: Path, texts: Texts
) -> None:
    calibration = SAMPLES / "digits_predictions" / "calibration.parquet"
    rows = pd.read_parquet(calibration)
    rows.iloc[:100].to_parquet(tmp_path / "again.parquet")
    words = ("diagnose", "--predictions", calibration, "--target", "label")
    further = ("--evaluation", tmp_path / "again.parquet", "--json", tmp_path / "out.json")
    code, out, _ = run(*words, *further)
    assert code == 0
    (doubt,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["doubts"]
    texts(doubt)
    assert doubt.startswith("100 rows")
    assert " ".join(out.split()).startswith(f"Warning: {doubt}")


def test_a_model_that_names_no_columns_leaves_text_and_names_of_rows_aside(
    run: Run, tmp_path: Path
) -> None:
    folder = SAMPLES / "xor_network"
    frame = pd.read_parquet(folder / "calibration.parquet")
    words = ["diagnose", "--model", folder / "model.onnx", "--target", "class", "--json", "-"]
    code, plain, err = run(*words, "--data", folder / "calibration.parquet")
    assert (code, err) == (0, "")
    frame.insert(0, "customer_id", np.arange(len(frame)) // 2)
    frame.insert(1, "branch", np.where(np.arange(len(frame)) % 3, "north", "south"))
    frame.to_parquet(tmp_path / "rows.parquet")
    code, out, err = run(*words, "--data", tmp_path / "rows.parquet", "--cluster", "")
    assert (code, err) == (0, "")
    measured = [json.loads(text)["sets"][0]["estimates"] for text in (plain, out)]
    assert measured[0] == measured[1]
