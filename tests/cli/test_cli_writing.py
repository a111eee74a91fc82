"""What a command writes never takes the place of what it reads, and nothing half is left."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from texts.snapshot import Texts

from kdcal_core.cli import main
from kdcal_core.cli.terminal import check_out, temporary_folder
from kdcal_core.errors import InputError
from kdcal_core.store.archive import new_file, write_archive

ROWS = "p_no,p_yes,answer\n0.3,0.7,yes\n0.6,0.4,no\n"


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(list(map(str, words))) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize("command", ["calibrate", "diagnose", "convert"])
def test_the_user_s_own_table_is_not_overwritten(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, texts: Texts
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    link = tmp_path / "link.csv"
    link.symlink_to(rows)
    words = {
        "calibrate": ("--calibrator", "platt", "--predictions", rows, "--target", "answer"),
        "diagnose": ("--predictions", rows, "--target", "answer"),
        "convert": (rows,),
    }[command]
    for out in (rows, link):
        writes = "--json" if command == "diagnose" else "--out"
        texts(refused(capsys, command, *words, writes, out), out.stem)
    assert rows.read_text() == ROWS
    assert link.is_symlink()


def test_training_and_evaluation_rows_are_not_overwritten_either(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
) -> None:
    rows, more = tmp_path / "rows.csv", tmp_path / "more.csv"
    rows.write_text(ROWS)
    more.write_text(ROWS)
    words = ("--calibrator", "platt", "--predictions", rows, "--target", "answer", "--out", more)
    for which in ("--training", "--evaluation"):
        said = refused(capsys, "calibrate", *words, which, more)
        texts(said, which)
    assert more.read_text() == ROWS


def test_a_folder_is_no_file_to_write(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    words = ("--calibrator", "platt", "--predictions", rows, "--target", "answer")
    assert "is a folder" in refused(capsys, "calibrate", *words, "--out", tmp_path)


def test_a_new_file_may_be_named_like_none_that_is_read(tmp_path: Path) -> None:
    check_out(str(tmp_path / "new.csv"), [None, str(tmp_path / "missing.csv")])


def test_a_disk_that_is_full_leaves_no_file_and_says_so(tmp_path: Path) -> None:
    def full() -> None:
        with new_file(tmp_path / "c.kdcal") as made:
            made.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match=r"cannot be written: No space left.*c\.kdcal"):
        full()
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_take_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.kdcal").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_archive(tmp_path / "c.kdcal", "calibrator", {}, {})
    assert [one.name for one in tmp_path.iterdir()] == ["c.kdcal"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as POSIX has them")
def test_a_terminated_process_leaves_nothing_behind(tmp_path: Path) -> None:
    rows, temporary = tmp_path / "rows.csv", tmp_path / "temporary"
    temporary.mkdir()
    rows.write_text("p_no,p_yes,answer\n" + "0.3,0.7,yes\n0.6,0.4,no\n" * 500_000)
    words = ("--calibrator", "platt", "--predictions", rows, "--target", "answer")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kdcal_core",
            "calibrate",
            *words,
            "--out",
            tmp_path / "c.kdcal",
        ],
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    deadline = time.monotonic() + 60.0
    while not list(temporary.glob("kdcal-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(temporary.glob("kdcal-*"))
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(temporary.glob("kdcal-*"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["rows.csv", "temporary"]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real.name)
    (tmp_path / "dangling.json").symlink_to("later.json")
    for one in ("link.json", "dangling.json"):
        with new_file(tmp_path / one) as made:
            made.write_text("new")
        assert (tmp_path / one).is_symlink()
    assert real.read_text() == (tmp_path / "later.json").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_no_file_takes_the_place_of_a_pipe_or_a_device(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Texts
) -> None:
    rows, pipe = tmp_path / "rows.csv", tmp_path / "pipe"
    rows.write_text(ROWS)
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="a pipe or a device"), new_file(pipe) as made:
        made.write_text("new")
    words = ("diagnose", "--predictions", rows, "--target", "answer", "--json", pipe)
    texts(refused(capsys, *words, "--force"))
    assert pipe.is_fifo()


def test_an_empty_name_is_no_file_to_write(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    words = ("diagnose", "--predictions", rows, "--target", "answer")
    assert "is a folder" in refused(capsys, *words, "--json", "")


def test_a_signal_right_after_the_folder_was_made_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mkdir = Path.mkdir

    def ended(path: Path, mode: int = 0o777) -> None:
        mkdir(path, mode)
        assert [one.name[:6] for one in tmp_path.iterdir()] == ["kdcal-"]
        raise SystemExit(128 + signal.SIGTERM)

    monkeypatch.setattr(Path, "mkdir", ended)
    with pytest.raises(SystemExit), temporary_folder():
        pytest.fail("not reached")
    assert not list(tmp_path.iterdir())
