"""Standard input and output, closed pipes, files that are there already, progress, libraries."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run
from texts.snapshot import Texts

from kdcal_core.cli import main
from kdcal_core.cli.terminal import SHOWABLE, for_stream, progress_line, table
from kdcal_core.errors import InputError
from kdcal_core.models import load_model, model_formats
from kdcal_core.text import MINUS, formatted

pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    p = rng.random(80).round(4)
    answer = np.where(rng.random(80) < p, "yes", "no")
    path = tmp_path / "rows.csv"
    pd.DataFrame({"p_no": 1 - p, "p_yes": p, "answer": answer}).to_csv(path, index=False)
    return path


class Piped:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def isatty(self) -> bool:
        return False


def test_the_file_is_written_before_anything_is_printed(rows: Path) -> None:
    """``kdcal diagnose ... --json p.json | head``: the pipe is closed before the report comes."""
    words = ("diagnose", "--predictions", rows, "--target", "answer")
    reader, writer = os.pipe()
    os.close(reader)
    made = rows.parent / "p.json"
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "kdcal_core", *map(str, words), "--json", str(made)],
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")
    assert json.loads(made.read_text())["sets"][0]["n"] == 80


def test_a_terminal_without_a_minus_sign_shows_a_hyphen(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("diagnose", "--predictions", str(rows), "--target", "answer")
    said = {}
    for encoding in ("utf-8", "cp1252", "ascii"):
        with monkeypatch.context() as patch:
            screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
            patch.setattr(sys, "stdout", screen)
            assert main(words) == 0
        screen.flush()
        said[encoding] = screen.buffer.getvalue().decode(encoding)
    assert MINUS in said["utf-8"]
    assert said["cp1252"] == said["ascii"] == said["utf-8"].replace(MINUS, "-")
    done = subprocess.run(
        [sys.executable, "-m", "kdcal_core", *words],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii") == said["ascii"]


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-8", f"{MINUS}2.4 × 10⁻⁷"), ("cp1252", "-2.4e-07"), ("ascii", "-2.4e-07")],
)
def test_a_power_of_ten_is_typed_where_a_terminal_lacks_its_signs(encoding: str, said: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert for_stream(formatted(-2.4e-7, ".2g"), stream) == said


def test_what_a_terminal_cannot_show_stops_nothing() -> None:
    assert "é 表 \u22121".encode("cp1252", SHOWABLE) == b"\xe9 ? -1"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", SHOWABLE)


def test_a_table_may_be_piped_in_and_json_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rows: Path
) -> None:
    words = ("diagnose", "--target", "answer", "--json", "-", "--predictions")
    code, by_file, err = run(capsys, *words, rows)
    assert (code, err) == (0, "")
    monkeypatch.setattr(sys, "stdin", Piped(rows.read_bytes()))
    code, piped, err = run(capsys, *words, "-")
    assert (code, err) == (0, "")
    found, wanted = json.loads(piped), json.loads(by_file)
    assert found["inputs"]["calibration"]["name"] == "standard input"
    assert found["sets"] == wanted["sets"]


def test_scoring_reads_standard_input_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rows: Path
) -> None:
    made, out = rows.parent / "c.kdcal", rows.parent / "out.csv"
    fit = ("--calibrator", "platt", "--predictions", "-", "--target", "answer", "--out", made)
    monkeypatch.setattr(sys, "stdin", Piped(rows.read_bytes()))
    assert run(capsys, "calibrate", *fit)[0] == 0
    monkeypatch.setattr(sys, "stdin", Piped(rows.read_bytes()))
    code, _, err = run(capsys, "score", "--calibrator", made, "--predictions", "-", "--out", out)
    assert (code, err) == (0, "")
    assert len(pd.read_csv(out)) == 80


def test_two_tables_cannot_be_standard_input(
    capsys: pytest.CaptureFixture[str], texts: Texts
) -> None:
    words = ("--predictions", "-", "--evaluation", "-", "--target", "y")
    code, _, err = run(capsys, "diagnose", *words)
    assert code == 2
    texts(err)


@pytest.mark.parametrize("command", ["diagnose", "calibrate", "score", "convert"])
def test_no_file_is_overwritten_unless_forced(
    capsys: pytest.CaptureFixture[str], rows: Path, command: str
) -> None:
    made = rows.parent / "c.kdcal"
    fit = ("--calibrator", "platt", "--predictions", rows, "--target", "answer", "--out", made)
    assert run(capsys, "calibrate", *fit)[0] == 0
    out = made if command == "calibrate" else rows.parent / "there.csv"
    if command != "calibrate":
        out.write_text("mine")
    kept = out.read_bytes()
    words = {
        "diagnose": ("--predictions", rows, "--target", "answer", "--json", out),
        "calibrate": fit,
        "score": ("--calibrator", made, "--predictions", rows, "--out", out),
        "convert": (rows, "--out", out),
    }[command]
    code, said, err = run(capsys, command, *words)
    assert (code, said) == (2, "")
    assert "exists already" in err
    assert "--force" in err
    assert out.read_bytes() == kept
    if command != "convert":  # a table is no model
        assert run(capsys, command, *words, "--force")[0] == 0
        assert command == "calibrate" or out.read_bytes() != kept


@pytest.mark.parametrize("name", ["a.joblib", "a.pkl", "a.onnx", "a"])
def test_a_calibrator_is_written_as_nothing_but_kdcal(
    capsys: pytest.CaptureFixture[str], rows: Path, name: str, texts: Texts
) -> None:
    words = ("--calibrator", "platt", "--predictions", rows, "--target", "answer", "--out")
    code, _, err = run(capsys, "calibrate", *words, rows.parent / name)
    assert code == 2
    texts(err)
    assert "'a.kdcal'" in err
    assert not (rows.parent / name).exists()


def test_the_advice_on_logits_names_an_option_that_follows_it(
    capsys: pytest.CaptureFixture[str], rows: Path, texts: Texts
) -> None:
    frame = pd.read_csv(rows)
    frame["p_yes"] = np.log(frame["p_yes"].clip(0.01, 0.99) / 0.2)
    frame["p_no"] = -frame["p_yes"]
    frame.to_csv(rows, index=False)
    words = ("diagnose", "--predictions", rows, "--target", "answer")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "--output-kind logit" in err
    code, out, err = run(capsys, *words, "--output-kind", "logit")
    assert (code, err) == (0, "")
    texts(out.splitlines()[0])
    assert "logits" in out


def test_progress_shows_a_share_and_its_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen, note = Terminal(), "500 of 1,000 rows scored"
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_line() as show:
        assert show is not None
        show(0.5, note)
        show(1.0, "done")
    first, last = screen.getvalue().split("\r")[1:]
    assert first.split() == ["50%", *note.split()]
    assert last.rstrip(" \n") == "100% done"
    assert len(last) == len(first) + 1 <= 80
    assert last.endswith("\n")


def test_tables_go_on_in_the_next_line_rather_than_beyond_80_columns() -> None:
    found = table(("Name", "n", "What"), [("a " * 60, "12", "b " * 60)], left=(0, 2)).split("\n")
    assert max(map(len, found)) <= 80
    assert " ".join(found).split().count("a") == 60
    assert " ".join(found).split().count("b") == 60


def test_a_library_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, rows: Path
) -> None:
    def absent(path: Path, **_: object) -> None:
        raise ModuleNotFoundError("No module named 'xgboost'", name="xgboost.core")

    model = Path(__file__).parents[2] / "sample_data" / "adult" / "model.json"
    formats = model_formats()
    without = replace(formats["xgboost_json"], load=absent)
    monkeypatch.setitem(formats, without.key, without)
    with pytest.raises(InputError, match=r"'xgboost-cpu' is not installed.*pip install xgboost"):
        load_model(model)


def test_kinds_of_models_have_their_article() -> None:
    libraries = [one.library for one in model_formats().values() if one.library]
    called = {one.title: one.called for one in libraries}
    assert called["XGBoost"] == "an XGBoost"
    assert all(words.endswith(f" {title}") for title, words in called.items())


@pytest.mark.skipif(os.name != "posix", reason="a shell as POSIX has it")
def test_closed_streams_neither_fail_nor_mix(rows: Path) -> None:
    """``kdcal ... >&-`` writes its file; ``2>&-`` keeps warnings out of the JSON."""
    table = pd.read_csv(rows)
    table.rename(columns={"p_no": "score"}).drop(columns="p_yes").to_csv(rows, index=False)
    words = [sys.executable, "-m", "kdcal_core", "diagnose", "--predictions", str(rows)]
    words = [*words, "--target", "answer", "--outputs", "yes=score", "--json"]
    made = rows.parent / "p.json"

    def shell(*more: str, ending: str) -> subprocess.CompletedProcess[str]:
        line = f"{shlex.join([*words, *more])} {ending}"
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)

    done = shell(str(made), ending=">&- <&-")
    assert (done.returncode, done.stderr) == (0, "")
    doubts = json.loads(made.read_text())["doubts"]
    assert "wrong way round" in doubts[0]
    done = shell("-", ending="2>&-")
    assert json.loads(done.stdout)["doubts"] == doubts
