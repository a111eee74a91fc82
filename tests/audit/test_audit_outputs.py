"""Commands of audits never write over what they read, nor over the record."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_people import ME

from kdcal_core.audit import Record, root_of_audits
from kdcal_core.cli import main

CONFIG = """
[files]
model = "model.skops"
calibration = "data/rows.csv"
evaluation = "data/more.csv"
training = "data/train.csv"
foreign = ["data/foreign.csv"]
calibrator = "beta.kdcal"
signature = "model.sig"
signature_key = "key.pub"
[roles]
target = "y"
[limits.KC001]
at_most = 0.1
against = "baseline"
[baseline]
audit = "earlier/audit.json"
"""
READ = (
    *("audit.toml", "model.skops", "data/rows.csv", "data/more.csv", "data/train.csv"),
    *("data/foreign.csv", "beta.kdcal", "model.sig", "key.pub", "earlier/audit.json"),
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    for folder in ("data", "earlier"):
        Path(folder).mkdir()
    for name in READ:
        Path(name).write_text(f"kept: {name}")
    Path("audit.toml").write_text(CONFIG)


def refused(capsys: pytest.CaptureFixture[str], *words: str, command: str = "audit") -> str:
    """The one line that a command ends with, which has changed no file that it reads."""
    before = {one: one.read_bytes() for one in Path().rglob("*") if one.is_file()}
    assert main([command, *words]) == 2
    assert {one: one.read_bytes() for one in before} == before
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("name", READ)
def test_no_input_of_a_gate_is_written_over(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link").symlink_to(name)
    Path("hard.json").hardlink_to(name)
    for one in (name, f"data/../{name}", "link", "hard.json"):
        said = refused(capsys, "run", "--config", "audit.toml", "--junit", one)
        assert "The file to write is one of those that are read" in said


def test_no_file_of_a_gate_s_folder_is_one_that_it_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = ("run", "--config", "audit.toml", "--out")
    assert "one of those that are read" in refused(capsys, *run, "earlier")
    Path("out").mkdir()
    Path("out/gate.json").symlink_to(Path("data/rows.csv").absolute())
    assert "one of those that are read" in refused(capsys, *run, "out")
    said = refused(capsys, *run, "new", "--junit", "new/../data/../report.md")
    assert "does not exist" in said  # no folder "new" was made
    said = refused(capsys, *run, "new", "--junit", "other/junit.xml")
    assert "does not exist" in said
    for one in ("new/report.md", "new/report.md/junit.xml"):
        said = refused(capsys, *run, "new", "--junit", one)
        assert "--junit names a file that --out writes" in said
    for one in ("new", "new/deep"):
        said = refused(capsys, *run, "new/deep", "--junit", one)
        assert "The file to write is a folder" in said
    assert not Path("new").exists()
    Path("new").mkdir()
    said = refused(capsys, *run, "new", "--junit", "data/../new/report.md")
    assert "--junit names a file that --out writes" in said


def test_the_record_is_not_written_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, root = Record(), root_of_audits()
    record.create("Credit risk", ME)
    record.database.close()
    database, key = str(root / "audits.sqlite"), str(root / "audit-key.pem")
    for one in (database, key):
        export = ("export", "--project", "Credit risk", "--force", "--out", one)
        assert "in the folder of the record" in refused(capsys, *export)
        assert "in the folder of the record" in refused(
            capsys, "report", "any", "--force", "--out", one
        )
        assert "in the folder of the record" in refused(
            capsys, "run", "--config", "audit.toml", "--junit", one
        )
    assert "in the folder of the record" in refused(
        capsys, "submit", "any", "--receipt", str(root / "receipt.json")
    )
    said = refused(capsys, "run", "--config", "audit.toml", "--out", str(root))
    assert "in the folder of the record" in said
    monkeypatch.setenv("KDCAL_SIGNING_KEY", "key.pub")
    said = refused(capsys, "export", "--project", "Credit risk", "--force", "--out", "key.pub")
    assert "one of those that are read" in said


def test_no_input_of_a_watch_nor_the_record_is_written_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Record().database.close()
    Path("now").mkdir()
    for name in ("data/new.csv", "now/watch.json"):
        Path(name).write_text(f"kept: {name}")
    words = ("--config", "audit.toml", "--data", "data/new.csv", "--state", "now/watch.json")
    for name in (*READ, "data/new.csv", "now/watch.json"):
        said = refused(capsys, *words, "--junit", name, command="watch")
        assert "The file to write is one of those that are read" in said
    root = root_of_audits()
    for option, name in (("--junit", root / "audits.sqlite"), ("--out", root)):
        said = refused(capsys, *words, option, str(name), command="watch")
        assert "in the folder of the record" in said
    said = refused(capsys, *words, "--out", "x", "--junit", "x/result.json", command="watch")
    assert "--junit names a file that --out writes" in said


def test_a_state_is_only_replaced_by_the_one_that_continues_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("now").mkdir()
    Path("then").mkdir()
    Path("now/watch.json").write_text("kept")
    Path("then/watch.json").hardlink_to("now/watch.json")
    Path("then/result.json").write_text("kept")
    words = ("--config", "audit.toml", "--data", "data/rows.csv", "--state")
    for state in ("now/watch.json", "then/result.json"):
        said = refused(capsys, *words, state, "--out", "then", command="watch")
        assert "one of those that are read" in said
    said = refused(capsys, *words, "now/watch.json", "--out", "now", command="watch")
    assert "one of those that are read" not in said  # the made model cannot be read
    Path("now/result.json").symlink_to("watch.json")
    said = refused(capsys, *words, "now/watch.json", "--out", "now", command="watch")
    assert "one of those that are read" in said
