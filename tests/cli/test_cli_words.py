"""The words of the command line: what is understood, and one line for what is not."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import run
from hypothesis import example, given
from hypothesis import strategies as st
from texts.snapshot import TEXTS, Texts, sections

import kdcal_core
from kdcal_core.cli import convert
from kdcal_core.cli.terminal import table, width
from kdcal_core.text import printable


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"kdcal {kdcal_core.__version__}\n", "")


@pytest.mark.parametrize("command", ["", "diagnose", "calibrate", "score", "convert"])
def test_help_is_no_error(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    texts: Texts,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(capsys, *filter(None, [command]), "--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: kdcal")
    if sys.version_info < (3, 13):
        texts(out)
    else:  # whose argparse lays the same words out otherwise
        stored = sections(TEXTS / "cli" / "cli_words.txt")[f"help is no error[{command}]"]
        assert _words(out) == _words(stored)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "COMMAND"),
        (("diagnoze",), "diagnoze"),
        (("diagnose",), "--target"),
        (("diagnose", "--target", "y"), "--data --predictions"),
        (("diagnose", "--data", "a", "--predictions", "b", "--target", "y"), "not allowed"),
        (("diagnose", "--predictions", "b", "--target", "y", "--bins", "0"), "'0'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--bins", "1.5"), "'1.5'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--bins", "²"), "'²'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--level", "1"), "'1'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--level", "nan"), "'nan'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--classes", "a,a"), "'a,a'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--classes", "a,,b"), "'a,,b'"),
        (("diagnose", "--predictions", "b", "--target", "y", "--no\x1b[31m"), "--no�[31m"),
        (("convert", "a.pkl"), "--out"),
        (("convert", "a.pkl", "--out", "b", "--example-width", "-3"), "-3"),
    ],
)
def test_wrong_words_give_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("kdcal: ")
    assert said in err


def test_convert_hands_its_words_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    from kdcal_core.models import load_model

    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    source, out = tmp_path / "tree.pkl", tmp_path / "tree.skops"
    source.write_bytes(pickle.dumps(tree))
    code, said, err = run(capsys, "convert", str(source), "--out", str(out))
    assert (code, err) == (0, "")
    assert said.startswith("Wrote tree.skops")
    assert load_model(out).predict_proba(X).tolist() == tree.predict_proba(X).tolist()


@pytest.mark.parametrize(
    ("source", "out", "said"),
    [
        ("absent.pkl", "a.skops", "no such file"),
        ("broken.pkl", "absent/a.skops", "folder"),
        ("broken.pkl", "a.skops", "broken.pkl"),
    ],
)
def test_convert_refuses_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str, out: str, said: str
) -> None:
    (tmp_path / "broken.pkl").write_bytes(b"\x80\x05no pickle")
    code, reported, err = run(
        capsys, "convert", str(tmp_path / source), "--out", str(tmp_path / out)
    )
    assert (code, reported) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert [file.name for file in tmp_path.iterdir()] == ["broken.pkl"]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "secret.csv"), 2, "secret.csv: Permission"),
        (RuntimeError("two\nlines"), 70, "RuntimeError: two lines"),
    ],
)
def test_whatever_goes_wrong_is_no_traceback(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    said: str,
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(convert, "run", fail)
    found, out, err = run(capsys, "convert", "a.pkl", "--out", "b.skops")
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == bool(said)


def test_help_is_fast_and_loads_nothing_heavy() -> None:
    program = (
        "import sys, kdcal_core.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'torch', 'streamlit'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert time.monotonic() - begun < 3.0  # 0.1 s on an idle machine


@given(st.text())
def test_printable_text_is_one_harmless_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@example([("a\u2cef" * 4, "1")])  # a letter and a sign above it
@given(st.lists(st.tuples(st.text(max_size=8), st.text("0123456789,", max_size=6)), max_size=5))
def test_columns_line_up(rows: list[tuple[str, str]]) -> None:
    lines = table(("name", "rows"), rows).split("\n")
    assert len(lines) == len(rows) + 1
    numbers = [printable(number) for _, number in rows]
    ends = {width(line) for line, number in zip(lines[1:], numbers, strict=True) if number} | {
        width(lines[0])
    }
    assert len(ends) == 1


def test_a_file_to_write_has_a_short_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["convert", "a.pkl"], ["score", "--calibrator", "c", "--predictions", "p"]):
        ours, theirs = (run(capsys, *words, option, "no/b.out") for option in ("-o", "--out"))
        assert ours == theirs
        assert ours[0] == 2
        assert "required" not in ours[2]
