"""``--quiet`` and ``--json``: what a command prints for a pipeline."""

from __future__ import annotations

import io
import json
import pickle
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.settings import settings_of
from kdcal_core.cli import app
from kdcal_core.cli.arguments import parser
from kdcal_core.cli.terminal import progress_line, quieted, warn
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks.repair_file import repair_keys

pytestmark = pytest.mark.usefixtures("work_here")

NO_RESULT = {"app"}
"""What becomes the server, which has no result."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    p = rng.random(80).round(4)
    answer = np.where(rng.random(80) < p, "größer", "no")
    path = tmp_path / "rows.csv"
    pd.DataFrame({"p_no": 1 - p, "p_größer": p, "answer": answer}).to_csv(path, index=False)
    return path


def every_command() -> Iterator[tuple[str, ArgumentParser]]:
    (commands,) = (one for one in parser()._actions if one.dest == "command")
    for name, command in commands.choices.items():
        actions = [one for one in command._actions if one.dest == "action"]
        if not actions:
            yield name, command
        for action, one in actions[0].choices.items() if actions else ():
            yield f"{name} {action}", one


def test_every_command_can_be_quiet_and_print_json() -> None:
    found = dict(every_command())
    assert len(found) > 25
    for name, command in found.items():
        options = command._option_string_actions
        assert "--quiet" in options, name
        assert ("--json" in options) == (name not in NO_RESULT), name


def test_what_a_command_only_shows_is_shown_quietly_and_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (("limits",), ("completion", "fish"), ("audit", "key"), ("audit", "list")):
        loud = run(capsys, *words)
        assert loud[0] == 0
        assert loud[1]
        assert run(capsys, *words, "--quiet") == loud, words
        code, said, err = run(capsys, *words, "--json", "--quiet")
        assert (code, err) == (0, ""), words
        json.loads(said)
    script = json.loads(run(capsys, "completion", "bash", "--json")[1])
    assert script["script"].endswith("kdcal")


def test_the_app_can_be_started_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda program, words: asked.append(words))
    for words in (["app"], ["app", "--quiet"]):
        app.run(parser().parse_args(words))
    assert asked[1] == [*asked[0], "--logger.hideWelcomeMessage=true", "--logger.level=error"]


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (["--server.address=::1"], "[::1]"),
        (["--server.port=9000", "--server.address", "fd00:0::2"], "[fd00::2]"),
        (["--server.address=::"], ""),
        (["--server.address=127.0.0.1"], ""),
        (["--server.address=kdcal.example"], ""),
        (["--server.address=::1", "--browser.serverAddress=kdcal.example"], ""),
        ([], ""),
    ],
)
def test_an_address_of_ipv6_is_shown_in_brackets(
    monkeypatch: pytest.MonkeyPatch, settings: list[str], shown: str
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda program, words: asked.append(words))
    app.run(parser().parse_args(["app", "--", *settings]))
    added = [one for one in asked[0] if one.startswith("--browser") and one not in settings]
    assert added == ([f"--browser.serverAddress={shown}"] if shown else [])


def test_a_quiet_command_shows_no_progress_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with quieted(True), progress_line() as show:
        assert show is None
        warn("unheard")
    assert screen.getvalue() == ""
    with quieted(False), progress_line() as show:
        assert show is not None
        warn("heard")
    assert screen.getvalue() == "kdcal: warning: heard\n"


def test_the_pipeline_of_a_table_is_silent_and_writes_its_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rows: Path
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    made, out, record = (rows.parent / name for name in ("c.kdcal", "out.csv", "r.json"))
    table = ("--predictions", rows)
    fit = (*table, "--target", "answer", "--calibrator", "platt", "--out", made)
    for words in (
        ("calibrate", *fit),
        ("score", "--calibrator", made, *table, "--out", out),
        ("diagnose", *table, "--target", "answer", "--json", record),
        ("diagnose", *table, "--target", "answer"),
    ):
        assert run(capsys, *words, "--quiet") == (0, "", ""), words
    assert screen.getvalue() == ""
    assert made.stat().st_size
    assert out.stat().st_size
    assert json.loads(record.read_text())["sets"][0]["n"] == 80


def test_a_quiet_command_still_prints_errors_and_what_was_asked_for(
    capsys: pytest.CaptureFixture[str], rows: Path
) -> None:
    table = ("--predictions", rows, "--target")
    code, out, err = run(capsys, "diagnose", *table, "anwser", "--quiet")
    assert (code, out) == (2, "")
    assert "anwser" in err
    loud = run(capsys, "diagnose", *table, "answer", "--json", "-")
    assert json.loads(loud[1])["sets"]
    assert run(capsys, "diagnose", *table, "answer", "--json", "-", "--quiet") == (0, loud[1], "")
    assert run(capsys, "calibrate", "--list", "--quiet") == run(capsys, "calibrate", "--list")


def test_a_warning_beside_json_is_left_out_too(
    capsys: pytest.CaptureFixture[str], rows: Path
) -> None:
    frame = pd.read_csv(rows).rename(columns={"p_no": "score"})
    frame[["score", "answer"]].to_csv(rows, index=False)
    words = ("diagnose", "--predictions", rows, "--target", "answer", "--json", "-")
    words = (*words, "--outputs", "größer=score")
    code, loud, err = run(capsys, *words)
    assert code == 0
    assert "wrong way round" in err
    assert run(capsys, *words, "--quiet") == (0, loud, "")
    assert "wrong way round" in json.loads(loud)["doubts"][0]


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_fit_and_a_score_as_json(
    capsys: pytest.CaptureFixture[str], rows: Path, quiet: tuple[str, ...]
) -> None:
    made, out = rows.parent / "c.kdcal", rows.parent / "out.csv"
    fit = ("--predictions", rows, "--target", "answer", "--calibrator", "histogram", "--out", made)
    code, said, err = run(
        capsys, "calibrate", *fit, "--set", "n_bins=4", "--seed", 3, "--json", *quiet
    )
    assert (code, err) == (0, "")
    assert said.isascii()
    found = json.loads(said)
    assert found["sha256"] == digest_of(made)
    assert (found["rows"], found["settings"], found["seed"]) == (80, {"n_bins": 4}, 3)
    assert found["estimates"]
    for one in found["estimates"]:
        assert one["after"] - one["before"] == pytest.approx(one["change"], abs=1e-9)
        assert one["verdict"]
    code, said, err = run(
        capsys, "score", "--calibrator", made, *fit[:2], "--out", out, "--json", *quiet
    )
    assert (code, err) == (0, "")
    found, written = json.loads(said), pd.read_csv(out)
    assert found["rows"] == len(written) == 80
    assert found["mean_confidence"] == pytest.approx(written["confidence"].mean())
    shown = {one["class"]: one["rows"] for one in found["classes"]}
    assert set(shown) == {"no", "größer"}
    assert shown["no"] == (written["predicted"] == "no").sum()
    assert sum(one["share"] for one in found["classes"]) == pytest.approx(1.0)


def test_a_regression_s_fit_and_score_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=200)
    frame = pd.DataFrame({"mean": mean, "std": 1.0, "y": mean + rng.normal(scale=2.0, size=200)})
    rows, made, out = (tmp_path / name for name in ("rows.csv", "c.kdcal", "out.csv"))
    frame.to_csv(rows, index=False)
    fit = ("--predictions", rows, "--target", "y", "--task", "regression", "--out", made)
    key = "global"
    code, said, err = run(capsys, "calibrate", "--calibrator", key, *fit, "--json", "--quiet")
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert (found["task"], found["calibrator"], found["rows"]) == ("regression", key, 200)
    assert found["sha256"] == digest_of(made)
    assert found["estimates"]
    words = ("--calibrator", made, "--predictions", rows, "--out", out, "--json")
    code, said, err = run(capsys, "score", *words)
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert (found["task"], found["rows"]) == ("regression", 200)
    assert found["mean_forecast"] == pytest.approx(pd.read_csv(out)["mean"].mean())


def test_the_calibrators_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = run(capsys, "calibrate", "--list", "--json")
    assert (code, err) == (0, "")
    every = json.loads(said)
    found = {one["key"]: one for one in every if one["task"] == "classification"}
    assert list(found) == list(CALIBRATORS)
    assert [one["key"] for one in every if one["task"] == "regression"] == list(repair_keys())
    one = json.loads(run(capsys, "calibrate", "--list", "--calibrator", "histogram", "--json")[1])
    assert one == [found["histogram"]]
    shown = {each["name"]: each["default"] for each in one[0]["settings"]}
    assert shown == {each.name: each.default for each in settings_of("histogram")}


def test_a_converted_model_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=3).fit(*load_iris(return_X_y=True))
    source, out = tmp_path / "tree.pkl", tmp_path / "tree.skops"
    source.write_bytes(pickle.dumps(tree))
    code, said, err = run(capsys, "convert", source, "--out", out, "--json", "--quiet")
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert found["sha256"] == digest_of(out)
    assert found["said"].startswith("Wrote tree.skops")
    assert run(capsys, "convert", source, "--out", out, "--force", "--quiet") == (0, "", "")
