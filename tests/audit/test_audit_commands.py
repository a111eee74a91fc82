"""``kdcal audit`` from end to end: the guide's worked example, and the record's commands."""

from __future__ import annotations

import contextlib
import html
import json
import re
import sqlite3
import subprocess
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from audit_words import said

from kdcal_core.audit import Moment, Record, RetentionSet, read_content, system_user
from kdcal_core.audit.config_file import config_of
from kdcal_core.cli import audit_keeping, main
from kdcal_core.cli.terminal import width
from kdcal_core.store.disk import digest_of

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "app" / "guides" / "gates.md").read_text()
pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, work_here: None) -> Path:
    """A folder in which the guide's example has run, and the record of both gates."""
    here = tmp_path_factory.mktemp("repository")
    (here / "sample_data").symlink_to(ROOT / "sample_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("KDCAL_HOME", str(here / "home"))
        said = re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)
        commands = [one.replace("\\\n", " ").splitlines() for one in said]
        init, run, calibrate = (one.split()[1:] for each in commands for one in each)
        assert main([*init, "--project", "Income"]) == 0
        assert main([*run, "--junit", "junit.xml"]) == 1
        assert main(calibrate) == 0
        (calibrator,) = re.findall(r"```toml\n\[files\]\n(.*?)\n```", GUIDE, re.DOTALL)
        text = Path("audit.toml").read_text().replace("[files]", f"[files]\n{calibrator}")
        Path("after.toml").write_text(text)
        assert main(["audit", "run", "--config", "after.toml", "--out", "after"]) == 0
    return here


@pytest.fixture(autouse=True)
def _there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "home" in request.fixturenames:
        folder = request.getfixturevalue("home")
        monkeypatch.chdir(folder)
        monkeypatch.setenv("KDCAL_HOME", str(folder / "home"))


def test_the_gate_fails_on_the_model_and_passes_on_its_calibrated_output(home: Path) -> None:
    before, after = (json.loads(Path(one, "gate.json").read_text()) for one in ("before", "after"))
    assert (before["verdict"], after["verdict"]) == ("fail", "pass")
    for one in (before, after):
        assert one["headline"] in GUIDE
    assert after["calibrator"]["title"] == "adult-beta.kdcal"
    assert ElementTree.parse("junit.xml").getroot().get("failures") == "3"


def test_the_calibrated_output_is_that_of_its_model_and_tables(home: Path) -> None:
    before, after = (
        read_content(Path(one, "audit.json").read_bytes()) for one in ("before", "after")
    )
    files = [(one.part, one.name, one.digest) for one in before.subject.tables]
    assert [(one.part, one.name, one.digest) for one in after.subject.tables] == files
    assert after.subject.model == before.subject.model
    assert after.rows_digest != before.rows_digest
    named = {"model": "model.json", **{part: name for part, name, _ in files}}
    again = tomllib.loads(config_of(after))["files"]
    assert again == {**named, "calibrator": "adult-beta.kdcal"}
    report = Path("after/report.html").read_text()
    assert after.subject.model is not None
    for one in (after.subject.model.digest, digest_of(Path("adult-beta.kdcal"))):
        assert one in report
    for _, name, found in files:
        assert name in report
        assert found in report
    assert "calibrated.csv" not in report


def test_checks_of_the_model_and_the_other_tables_are_answered_for_its_output(home: Path) -> None:
    before, after = (
        {one["code"]: one for one in json.loads(Path(folder, "gate.json").read_text())["checks"]}
        for folder in ("before", "after")
    )
    far, copies = (after[one]["parts"][0] for one in ("KC010", "KC201"))
    assert far["value"] != before["KC010"]["parts"][0]["value"]
    assert copies == before["KC201"]["parts"][0]
    assert "The audit of the model as it is answers this" in after["KC011"]["why_not"]


def commands_in(markdown: str, section: str) -> list[str]:
    """The commands of a section's examples, one a line and without comments."""
    of_section = markdown.split(f"\n## {section}\n")[1].split("\n## ")[0]
    blocks = "".join(re.findall(r"```bash\n(.*?)```", of_section, re.DOTALL))
    lines = blocks.replace("\\\n", " ").splitlines()
    return [" ".join(one.split("  #")[0].split()) for one in lines]


def test_the_readme_s_example_is_the_guide_s(home: Path) -> None:
    readme = commands_in((ROOT / "README.md").read_text(), "On the command line")
    init, run, calibrate = commands_in(GUIDE, "A worked example")
    start = readme.index(init)
    *same, names_it, again = readme[start:]
    assert same == [init, run, calibrate]
    assert again == "kdcal audit run --config audit.toml --out after"
    changed = subprocess.check_output(["bash", "-c", names_it.replace(" -i ", " ")], text=True)
    assert changed == Path("after.toml").read_text()


def shown(markdown: Path) -> str:
    """What a reader sees of escaped Markdown."""
    return html.unescape(markdown.read_text()).replace("\u200b", "")


def test_reports_are_written_beside_the_gate(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for one in ("before", "after"):
        headline = json.loads(Path(one, "gate.json").read_text())["headline"]
        assert headline in shown(Path(one, "report.md"))
        assert len(Path(one, "report.html").read_bytes()) < 6_000_000
    audit = json.loads(said(capsys, "list", "--json"))[1]["audit"]
    made = json.loads(said(capsys, "report", audit, "--out", "report.md", "--json"))
    assert (made["project"], made["out"]) == ("Income", "report.md")
    assert made["audit"].startswith(audit)
    assert made["sha256"] == digest_of(Path("report.md"))
    assert said(capsys, "report", audit, "--out", "report.md", "--force", "--quiet") == ""
    assert "passes all 18 checks" in shown(Path("report.md"))
    assert "names no report" in said(capsys, "report", audit, "--out", "report.doc", code=2)


def test_the_record_s_commands(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audits = json.loads(said(capsys, "list", "--json"))
    assert [(one["project"], one["verdict"], one["state"]) for one in audits] == [
        ("Income", "fail", "draft"),
        ("Income", "pass", "draft"),
    ]
    first, second = (one["audit"] for one in audits)
    # for programs: a number, a whole identifier, a whole moment
    assert [one["rows"] for one in audits] == [6000, 6000]
    assert len(first) == 16
    assert datetime.fromisoformat(audits[0]["drafted"]) <= datetime.now(UTC)
    step = json.loads(said(capsys, "submit", first, "--receipt", "r.json", "--json"))
    assert (step["state"], step["receipt"], step["project"]) == ("submitted", "r.json", "Income")
    assert step["audit"] == first
    assert "needs its reason" in said(capsys, "reject", first, code=2)
    assert "is rejected" in said(capsys, "reject", first, "--words", "Over-confident.")
    shown = said(capsys, "show", first)
    assert "locked in entry 2 of the record" in shown
    assert "The model fails 3 of 19 checks" in shown
    compared = said(capsys, "compare", first, second)
    assert "The later audit is better in" in compared
    assert re.search(r"KC004 +fail +pass", compared)
    assert "Both were judged on the same rows" in compared
    assert said(capsys, "compare", "before/audit.json", "after/audit.json") == compared
    for words, loud in ((("show", first), shown), (("compare", first, second), compared)):
        assert said(capsys, *words, "--quiet") == loud
    several = said(capsys, "compare", first, second, "before/audit.json")
    for one in (said(capsys, "list"), compared, several):
        tables = [line for line in one.splitlines() if re.search(r"\S  +\S", line)]
        assert tables
        assert max(map(width, tables)) <= 80
    values = json.loads(said(capsys, "compare", first, second, "before/audit.json", "--json"))
    assert values["baseline"]["named"] == first
    better, same = values["compared"]
    assert better["finding"].startswith("The later audit is better in ")
    assert {"code": "KC004", "before": "fail", "after": "pass"} in better["verdicts"]
    assert "better" in {one["direction"] for one in better["estimates"]}
    assert same["same_rows"]
    assert {one["direction"] for one in same["estimates"]} == {"not told apart"}
    assert re.search(r"^B is .*, the same rows as A\.$", several, re.MULTILINE)
    assert "B is better than A in" in several
    assert re.search(r"C and A cannot be told apart in any of \d+ estimates", several)
    assert re.search(r"KC004 +fail +pass +fail", several)
    receipts = ("--receipt", "r.json", "--receipt", "before/receipt.json")
    assert "holds (6 entries, 2 files, 2 receipts)" in said(capsys, "verify", *receipts)
    checked = json.loads(said(capsys, "verify", *receipts, "--json"))
    assert (checked["holds"], checked["receipts_of_others"]) == (True, [])
    (of,) = checked["projects"]
    assert (of["name"], of["n_entries"], of["n_files"], of["n_receipts"]) == ("Income", 6, 2, 2)
    assert said(capsys, "verify", *receipts, "--quiet") == ""
    assert "begins with 'zzz'" in said(capsys, "show", "zzz", code=2)
    assert "no project 'Fraud'" in said(capsys, "verify", "--project", "Fraud", code=2)


def test_an_approved_audit_is_superseded(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(home / "steps"))
    record, me = Record(), system_user()
    project = record.create("Income", me)
    content = read_content(Path("before/audit.json").read_bytes())
    older, newer = (record.draft(project.id, content, me).id for _ in range(2))
    for one in (older, newer):
        said(capsys, "submit", one)
        assert "needs its reason" in said(capsys, "approve", one, code=2)
        if one == newer:
            both = ("supersede", older, "--by", newer)
            assert "Only another approved audit" in said(capsys, *both, code=2)
        assert "is approved" in said(capsys, "approve", one, "--words", "For triage only.")
    assert "begins with 'zzzz'" in said(capsys, "supersede", older, "--by", "zzzz", code=2)
    assert f"the audit {older} is superseded" in said(capsys, "supersede", older, "--by", newer)
    assert record.project(project.id).audits[older].superseded_by == newer


def test_a_backup_is_restored_elsewhere(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("export", "--project", "Income", "--out", "record.zip", "--json")
    written = json.loads(said(capsys, *words))
    assert (written["project"], written["out"]) == ("Income", "record.zip")
    listed = said(capsys, "list")
    monkeypatch.setenv("KDCAL_HOME", str(home / "restored"))
    assert "is in the record" in said(capsys, "import", "record.zip")
    assert said(capsys, "list") == listed
    assert "holds" in said(capsys, "verify")
    again = json.loads(said(capsys, "import", "record.zip", "--json"))
    assert (again["project"], again["entries"]) == ("Income", written["entries"])
    assert said(capsys, "list") == listed


def test_the_whole_record_is_backed_up_and_restored(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = said(capsys, "list")
    assert "keep a copy of the key elsewhere" in said(capsys, "backup", "all.zip")
    assert "exists already" in said(capsys, "backup", "all.zip", code=2)
    assert "can write in your name" in said(capsys, "backup", "all.zip", "--force", "--with-key")
    inside = str(home / "home" / "kdcal" / "audits" / "all.zip")
    assert "lies in the folder of the record" in said(capsys, "backup", inside, code=2)
    monkeypatch.setenv("KDCAL_HOME", str(home / "second"))
    assert "The key that signs is that of the backup." in said(capsys, "restore", "all.zip")
    assert said(capsys, "list") == listed
    assert "holds" in said(capsys, "verify")
    assert "--replace" in said(capsys, "restore", "all.zip", code=2)
    again = said(capsys, "restore", "all.zip", "--replace")
    (aside,) = (home / "second" / "kdcal").glob("audits-before-*")
    assert f"The folder of before lies in {aside}." in again
    monkeypatch.setenv("KDCAL_HOME", str(home / "third"))
    put = json.loads(said(capsys, "restore", "all.zip", "--json"))
    assert (put["projects"], put["files"], put["aside"], put["key"]) == (1, 2, None, "backup")
    kept = json.loads(said(capsys, "backup", "kept.zip", "--json"))
    assert {name: kept[name] for name in ("projects", "entries", "files")} == {
        name: put[name] for name in ("projects", "entries", "files")
    }
    assert (kept["out"], kept["with_key"]) == ("kept.zip", False)


def test_files_are_deleted_once_their_time_is_over(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, "backup", "before.zip", "--with-key")
    monkeypatch.setenv("KDCAL_HOME", str(home / "expiring"))
    said(capsys, "restore", "before.zip")
    assert "No audit is older" in said(capsys, "expire")
    record = Record()
    (project,) = record.projects()
    record.write(project.id, RetentionSet(30), record.acting(project))
    assert "No audit is older" in said(capsys, "expire", "--delete")
    later = (datetime.now(UTC) + timedelta(days=31)).strftime("%Y-%m-%dT%H:%M:%SZ")
    then = Record(clock=lambda: Moment(later, "the test's"))
    monkeypatch.setattr(audit_keeping, "the_record", lambda: then)
    listed = said(capsys, "expire", "--project", "Income")
    assert "The files of 2 audits may be deleted, with --delete:" in listed
    assert "Income, " in listed
    assert json.loads(said(capsys, "expire", "--json"))["deleted"] is False
    assert "Deleted the files of 2 audits." in said(capsys, "expire", "--delete")
    assert json.loads(said(capsys, "expire", "--json"))["audits"] == []
    assert "holds" in said(capsys, "verify")


def test_a_damaged_backup_is_refused_and_nothing_is_written(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, "export", "--project", "Income", "--out", "whole.zip")
    whole = Path("whole.zip").read_bytes()
    monkeypatch.setenv("KDCAL_HOME", str(home / "nothing"))
    other = whole.replace(b"lines.json", b"other.json")
    for at, content in enumerate((whole[:-50], b"", b"PK", other)):
        path = Path(f"damaged-{at}.zip")
        path.write_bytes(content)
        assert "not a record" in said(capsys, "import", str(path), code=2)
    assert "no audit in the record" in said(capsys, "list")


def test_what_was_altered_is_named_with_exit_code_1(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, "export", "--project", "Income", "--out", "copy.zip")
    monkeypatch.setenv("KDCAL_HOME", str(home / "altered"))
    said(capsys, "import", "copy.zip")
    for path in (home / "altered").rglob("files/*/*"):
        path.write_bytes(b"{}")
    assert "was altered after it was written" in said(capsys, "verify", code=1)
    found = json.loads(said(capsys, "verify", "--json", "--quiet", code=1))
    assert not found["holds"]
    assert any("was altered" in one for one in found["projects"][0]["altered"])
    assert said(capsys, "verify", "--quiet", code=1) == ""


def test_a_record_that_cannot_be_read_is_not_called_empty(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, "export", "--project", "Income", "--out", "to-alter.zip")
    monkeypatch.setenv("KDCAL_HOME", str(home / "unreadable"))
    said(capsys, "import", "to-alter.zip")
    (path,) = (home / "unreadable").rglob("audits.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE kdcal_entry SET payload = '{'")
        database.commit()
    for more in ((), ("--json",)):
        assert main(["audit", "list", *more]) == 0
        printed = capsys.readouterr()
        assert "no audit in the record" not in printed.out
        assert "warning: 1 project cannot be read" in printed.err
    assert main(["audit", "show", "0000"]) == 2
    assert "A project cannot be read, too. Run 'kdcal audit verify'." in capsys.readouterr().err


def test_the_list_tells_the_calibrated_model_from_the_model(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = json.loads(said(capsys, "list", "--json"))[:2]
    assert (before["calibrator"], after["calibrator"]) == ("", "adult-beta.kdcal")
    assert before["model"] != after["model"]
    assert "model.json with" in said(capsys, "list")


def test_a_list_of_one_project_names_it_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(said(capsys, "list", "--json", "--project", "Income"))
    assert {one["project"] for one in found} == {"Income"}
    assert found == json.loads(said(capsys, "list", "--json"))
    wrong = said(capsys, "list", "--project", "Incom", code=2)
    assert "There is no project 'Incom'. The projects are: Income." in wrong


def test_the_public_key_pins_the_record(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("key.json").write_text(said(capsys, "key"))
    assert "holds" in said(capsys, "verify", "--key", "key.json")


def test_errors_name_what_the_configuration_gives(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("audit.toml").read_text().replace('event = ">50K"', 'event = "rich"')
    Path("wrong.toml").write_text(text)
    assert "roles.event names no class: 'rich'" in said(
        capsys, "run", "--config", "wrong.toml", code=2
    )
    Path("wrong.toml").write_text(text.replace("income", "incme"))
    found = said(capsys, "run", "--config", "wrong.toml", code=2)
    assert "incme" in found


def test_nothing_is_overwritten_unasked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("init", "--predictions", "sample_data/digits_predictions/calibration.parquet")
    assert "exists already" in said(
        capsys, *words, "--target", "label", "--out", "audit.toml", code=2
    )
    made = json.loads(said(capsys, *words, "--target", "label", "--out", "new.toml", "--json"))
    assert made == {"out": "new.toml", "review": None, "files": {"predictions": words[2]}}
    assert Path("new.toml").stat().st_size
