"""Gates: exit codes, JSON by its schema, JUnit, baselines, calibrators, and the record."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest
from audit_people import ANN, BEN, ME
from audit_place import Place

import kdcal_core.audit
from kdcal_core.audit import (
    AuditApproved,
    AuditConfig,
    AuditContent,
    AuditSettings,
    AuditSubmitted,
    CalibratorFacts,
    Gate,
    LimitsLocked,
    MemberSet,
    Record,
    assert_passes,
    compare_audits,
    content_bytes,
    gate_json,
    gate_junit,
    json_text,
    overlap_words,
    paired_words,
    read_config,
    read_content,
    run_gate,
    verify,
)
from kdcal_core.audit.asked import limits_of
from kdcal_core.audit.calibrated import Calibrated, of_sources
from kdcal_core.audit.config_file import config_of
from kdcal_core.audit.gate_baselines import _approved
from kdcal_core.audit.report import html_report, markdown_report
from kdcal_core.checks import CHECKS
from kdcal_core.cli import main
from kdcal_core.errors import InputError
from kdcal_core.review import Decision, Limit, NamedFiles, Review

pytestmark = pytest.mark.usefixtures("work_here")

GUIDE = (Path(__file__).parents[2] / "app" / "guides" / "gates.md").read_text()
IN_CI = [
    command
    for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    for command in re.findall(r"kdcal (audit run .*)", block)
]
SCHEMA = json.loads((Path(kdcal_core.audit.__file__).parent / "gate.schema.json").read_text())
CODES = ("KC001", "KC002", "KC008", "KC202")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty place in a file. A gate asks the record alone, whose tests try both databases."""
    return Place(tmp_path / "audits", None)


def predictions(folder: Path, sharpness: float, n: int = 3000, name: str = "p.csv") -> str:
    """A table of predictions whose log odds are too large by a factor."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0.0, 1.5, n)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    stated = 1.0 / (1.0 + np.exp(-sharpness * odds))
    table = pd.DataFrame(
        {
            "proba_no": 1.0 - stated,
            "proba_yes": stated,
            "y": np.where(y, "yes", "no"),
            "<b>sex": np.where(np.arange(n) % 2, "f", "m"),
        }
    )
    table.to_csv(folder / name, index=False)
    return str(folder / name)


def config(path: str, **more: object) -> AuditConfig:
    files = NamedFiles(target="y", predictions=path)
    return replace(AuditConfig("A gate", files, event="yes", codes=CODES), **more)


@pytest.fixture(scope="module")
def passed(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> Gate:
    return run_gate(config(predictions(tmp_path_factory.mktemp("good"), 1.0), groups=("<b>sex",)))


def test_the_chosen_threshold_is_kept_and_drawn(tmp_path: Path) -> None:
    path = predictions(tmp_path, 1.0, n=400)
    asked = config(path, codes=("KC002",), decision=Decision(0.15, {"false_negative": 4.0}))
    content = run_gate(asked).content
    assert content.subject.decision == asked.decision
    again = read_content(content_bytes(content))
    assert again.subject.decision == asked.decision
    plain = run_gate(config(path, codes=("KC002",))).content
    drawn, known = ({one.key: one.light for one in each.charts} for each in (content, plain))
    other = [key for key in drawn if drawn[key] != known.get(key)]
    assert other == ["net_benefit", "decisions", "rates", "cost"]
    assert known.keys() == drawn.keys() - {"cost"}  # without costs there is none
    (decided,) = (one for one in content.charts if one.key == "decisions")
    assert decided.finding.startswith("At a threshold of 15%: flags ")
    changed = {what: (old, new) for what, old, new in compare_audits(plain, content).facts}
    assert changed["Threshold"] == ("none", "0.15")
    assert changed["Costs"] == ("none", "false_negative 4")
    with pytest.raises(InputError, match=r"\[decision\] is about an event"):
        run_gate(replace(asked, view="confidence"))


@pytest.fixture(scope="module")
def failed(work_here: None, tmp_path_factory: pytest.TempPathFactory) -> Gate:
    return run_gate(config(predictions(tmp_path_factory.mktemp("bad"), 3.0)))


def test_exit_codes_follow_the_verdict(passed: Gate, failed: Gate) -> None:
    assert (passed.verdict, passed.exit_code) == ("pass", 0)
    assert (failed.verdict, failed.exit_code) == ("fail", 1)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(("counts_as", "code"), [("own", 3), ("pass", 0), ("fail", 1)])
def test_not_enough_evidence_counts_as_configured(
    tmp_path: Path, counts_as: str, code: int
) -> None:
    few = config(predictions(tmp_path, 1.0, n=60), codes=("KC002",), undecided=counts_as)
    gate = run_gate(few)
    assert (gate.verdict, gate.exit_code) == ("not enough evidence", code)
    suite = ElementTree.fromstring(gate_junit(gate))
    assert suite.get("failures") == ("0" if code == 0 else "1")


def test_the_json_follows_its_published_schema(passed: Gate, failed: Gate) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert (gate_json(passed)["baseline"], gate_json(passed)["record"]) == (None, None)
    for gate in (passed, failed):
        jsonschema.validate(json.loads(json_text(gate)), SCHEMA)
        assert gate_json(gate)["exit_code"] == gate.exit_code
    checks = {one["code"]: one for one in gate_json(failed)["checks"]}
    assert checks["KC001"]["verdict"] == "fail"
    assert checks["KC008"]["verdict"] is None
    assert checks["KC008"]["why_not"]


def test_junit_has_a_case_for_each_check(passed: Gate, failed: Gate) -> None:
    suite = ElementTree.fromstring(gate_junit(failed))
    cases = {str(one.get("name"))[:5]: one for one in suite}
    assert set(cases) == set(CODES)
    assert cases["KC001"].find("failure") is not None
    assert cases["KC008"].find("skipped") is not None
    counts = [suite.get(one) for one in ("tests", "failures", "skipped")]
    assert counts == ["4", str(sum(one.find("failure") is not None for one in suite)), "1"]


def test_junit_survives_any_title(passed: Gate) -> None:
    strange = replace(passed, content=replace(passed.content, title="a\x00<b>\ud800&\u202e"))
    ElementTree.fromstring(gate_junit(strange).encode("utf-8", "replace").decode())


def test_worker_processes_give_the_same_bytes(
    passed: Gate, real_workers: None, tmp_path: Path
) -> None:
    again = run_gate(config(predictions(tmp_path, 1.0), groups=("<b>sex",)))
    assert content_bytes(again.content) == content_bytes(passed.content)


@pytest.mark.usefixtures("no_pictures")
def test_limits_are_locked_before_the_results(place: Place, tmp_path: Path) -> None:
    record = place.open()
    path = predictions(tmp_path, 1.0)
    gate = run_gate(config(path, project="Credit risk"), record=record, who=ME)
    audit = record.project(gate.project).audits[gate.audit]
    assert (audit.facts.locked, audit.facts.results_known) == (2, "")
    assert gate.receipt is not None
    assert verify(record, gate.project, receipts=[gate.receipt]).holds
    looser = config(path, project="Credit risk", limits={"KC001": Limit(high=0.5)})
    again = run_gate(looser, record=record, who=ME)
    facts = record.project(again.project).audits[again.audit].facts
    assert facts.locked == 4
    assert facts.results_known.startswith("since")


def test_who_may_not_draft_is_told_before_a_file_is_read(place: Place, tmp_path: Path) -> None:
    record, missing = place.open(), config(str(tmp_path / "none.csv"), project="P")
    project = record.create("P", ANN).id
    limits = limits_of("classification", missing.codes)
    record.write(project, LimitsLocked(limits, "by a gate"), ANN)
    record.write(project, MemberSet(BEN.issuer, BEN.subject, "Ben", "viewer"), ANN)
    for person in (ME, BEN):
        with pytest.raises(InputError, match="This needs the role of a reviewer"):
            run_gate(missing, record=record, who=person)
    with pytest.raises(InputError, match="no such file"):
        run_gate(missing, record=record, who=ANN)
    (place.root / "audit-key.pem").unlink()  # as on a machine whose key nobody admitted
    elsewhere = place.open()
    with pytest.raises(InputError, match="key"):
        run_gate(missing, record=elsewhere, who=ANN)


def test_a_bad_table_leaves_nothing_but_the_record(place: Place, tmp_path: Path) -> None:
    record = place.open()
    (tmp_path / "p.csv").write_text("proba_no,proba_yes,y\n0.5,0.5,no\n0.4,2,yes\n")
    with pytest.raises(InputError):
        run_gate(config(str(tmp_path / "p.csv"), project="P"), record=record, who=ME)
    assert record.projects() == ()


@pytest.mark.usefixtures("no_pictures")
def test_against_the_latest_approved_audit(place: Place, tmp_path: Path) -> None:
    record = place.open()
    good = config(predictions(tmp_path, 1.0), project="P")
    against = {"KC001": Limit(high=0.02, against="baseline")}
    worse = config(
        predictions(tmp_path, 3.0, name="worse.csv"),
        project="P", baseline="latest", limits=against, codes=("KC001",),
    )  # fmt: skip
    first = run_gate(good, record=record, who=ME)
    with pytest.raises(InputError, match="no approved audit"):
        run_gate(worse, record=record, who=ME)
    record.write(first.project, AuditSubmitted(first.audit), ME)
    record.write(first.project, AuditApproved(first.audit, "Good enough."), ME)
    gate = run_gate(worse, record=record, who=ME)
    assert gate.verdict == "fail"
    assert gate.content.baseline is not None
    assert gate.content.checked.results[0].worst.estimate.label == "ECE minus the baseline's"
    assert "The limits of KC001 compare with it." in gate.content.baseline_text
    assert "The limits of KC001 compare with it" in markdown_report(gate.content)
    written = gate_json(gate)
    jsonschema.validate(written, SCHEMA)
    stored = content_bytes(first.content)
    compared = {"name": first.content.title, "sha256": hashlib.sha256(stored).hexdigest()}
    assert written["baseline"] == compared
    unused = replace(gate.content, limits={"KC001": Limit(high=0.02)})
    assert "No limit compares with it." in unused.baseline_text


@pytest.mark.usefixtures("no_pictures")
def test_the_json_says_whether_limits_were_locked_before_results(tmp_path: Path) -> None:
    record, files = Record(tmp_path / "audits"), predictions(tmp_path, 1.0)
    asked = config(files, project="P", codes=("KC002",))
    first, later = (
        run_gate(replace(asked, limits=limits), record=record, who=ME)
        for limits in ({}, {"KC002": Limit(-0.5, 0.5)})
    )
    for gate, number in ((first, 2), (later, 4)):
        written = gate_json(gate)
        jsonschema.validate(written, SCHEMA)
        facts = record.project(gate.project).audits[gate.audit].facts
        assert (written["record"]["locked"], facts.locked) == (number, number)
        assert written["record"]["results_known"] == facts.results_known
    assert gate_json(later)["record"]["results_known"].startswith("since ")


@pytest.mark.usefixtures("no_pictures")
def test_audits_of_one_record_know_how_far_their_rows_overlap(place: Place, tmp_path: Path) -> None:
    record = place.open()
    table = pd.read_csv(predictions(tmp_path, 1.0, n=900))
    table["income"] = np.random.default_rng(1).normal(size=900)
    contents = []
    for name, rows in (("early", slice(0, 600)), ("late", slice(300, 900))):
        table[rows].to_csv(tmp_path / f"{name}.csv", index=False)
        asked = config(str(tmp_path / f"{name}.csv"), project="P", codes=("KC002",))
        gate = run_gate(asked, record=record, who=ME)
        contents.append(record.content(record.project(gate.project).audits[gate.audit]))
    alone = run_gate(replace(asked, project="")).content
    early, late = contents
    found = compare_audits(early, late)
    assert (found.same_rows, found.overlap.share, found.overlap.seen) == (False, 0.5, 600)
    assert overlap_words(found) == "50% of the later rows were judged before."
    assert compare_audits(late, late).overlap is None
    assert alone.sketch is None
    assert "not known: an audit has no sketch" in overlap_words(compare_audits(early, alone))
    stored = content_bytes(late)
    assert b"income" in stored  # the name of a column, and nothing of its values
    assert not any(repr(float(one)).encode() in stored for one in table["income"])
    assert record.rows_key() not in stored.decode()


def test_the_latest_is_the_one_approved_last(place: Place, passed: Gate, failed: Gate) -> None:
    record = place.open()
    project = record.create("P", ME).id
    first, second = (record.draft(project, one.content, ME).id for one in (passed, failed))
    for audit in (second, first):
        record.write(project, AuditSubmitted(audit), ME)
        record.write(project, AuditApproved(audit, "Good enough."), ME)
    asked = AuditConfig("t", NamedFiles(), project="P", baseline="latest")
    assert [one.id for one in _approved(asked, record)] == [first, second]
    record.delete_files(project, (first,), "asked", ME)
    assert [one.id for one in _approved(asked, record)] == [second]


@pytest.mark.usefixtures("no_pictures")
def test_how_to_reproduce_calibrates_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, further = predictions(tmp_path, 3.0), str(tmp_path / "more.csv")
    rows = pd.read_csv(path).assign(amount=np.random.default_rng(1).normal(size=3000))
    rows.to_csv(path, index=False)
    rows[:2000].to_csv(further, index=False)
    out = str(tmp_path / "platt.kdcal")
    words = ["calibrate", "--calibrator", "platt", "--predictions", path, "--target", "y"]
    assert main([*words, "--out", out]) == 0
    asked = config(path, calibrator=out, codes=("KC002", "KC010", "KC011", "KC201"))
    gate = run_gate(replace(asked, files=replace(asked.files, evaluation=further)))
    assert [one.name for one in gate.content.subject.tables] == ["p.csv", "more.csv"]
    assert gate.content.subject.which == "evaluation"
    assert gate.content.headline.startswith("The calibrated model fails")
    assert "with the calibrator" in html_report(gate.content).decode().partition("What to do")[0]
    far, copies = (gate.content.checked.results[at] for at in (1, 3))
    assert "here are only predictions" in far.why_not
    assert copies.verdict == "fail"  # both files hold the same rows
    with pytest.raises(InputError, match="was fitted on the rows that are judged") as error:
        run_gate(replace(asked, project="P"), record=Record(tmp_path / "audits"))
    assert error.value.file == "p.csv"
    assert Record(tmp_path / "audits").projects() == ()  # nothing was locked
    without = replace(asked, codes=("KC002",), files=replace(asked.files, evaluation=further))
    (doubt,) = run_gate(without).content.subject.doubts
    assert doubt.startswith("2,000 rows of the evaluation set are in the calibration set too")
    assert "flatter every calibrator fitted on them" in doubt
    Path("again.toml").write_text(config_of(gate.content))
    again = run_gate(read_config(Path("again.toml")))
    assert content_bytes(again.content) == content_bytes(gate.content)


def test_the_report_of_calibrated_output_keeps_the_model_s_signature(
    content: AuditContent, review: Review
) -> None:
    facts = CalibratorFacts("beta", "beta.kdcal", "b" * 64, model="c" * 64, rows="d" * 64)
    asked = AuditSettings("t", "calibration", signature="Signed by the maker.")
    found = of_sources(content, Calibrated(review, "calibration", facts), asked)
    assert found.subject.model is not None
    report = html_report(found).decode()
    for said in ("Signed by the maker.", found.subject.model.digest, "b" * 64):
        assert said in report
    markdown = html.unescape(markdown_report(found)).replace("\u200b", "")
    assert "with the calibrator beta.kdcal" in markdown


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"title": "x" * 201}, "201 characters"),
        ({"project": "\U0001f98a" * 10_000}, "10,000 characters"),
        ({"project": "half \ud800"}, "characters that no file can keep"),
    ],
)
def test_names_are_refused_before_anything_is_computed(
    tmp_path: Path, names: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        run_gate(config(str(tmp_path / "none.csv"), **names))


@pytest.mark.usefixtures("no_pictures")
def test_a_gate_on_the_rows_of_its_baseline_is_paired(passed: Gate, tmp_path: Path) -> None:
    """Two tables of predictions of the same rows, told by their outcomes."""
    before = content_bytes(passed.content)
    limits = {code: Limit(-0.02, 0.02, against="baseline") for code in ("KC002", "KC008")}
    path = tmp_path / "before.json"
    asked = config(
        predictions(tmp_path, 1.1),
        baseline=str(path),
        limits=limits,
        codes=("KC002", "KC008"),
        groups=("<b>sex",),
    )
    path.write_bytes(before)
    content = run_gate(asked).content
    path.write_bytes(_of_an_earlier_version(before))
    wide = run_gate(asked).content
    for one, other in zip(content.checked.results, wide.checked.results, strict=True):
        assert (one.verdict, other.verdict) == ("pass", "not enough evidence")
        assert one.worst.estimate.interval.endswith("paired by groups of rows")
        assert other.worst.estimate.interval.endswith("of the difference by Zou and Donner")
    assert content.baseline is not None
    kept = [part for one in content.baseline.measured.checks for part in one.parts]
    assert all(part.sums is None for part in kept)
    found, unknown = (
        compare_audits(each, content) for each in (passed.content, read_content(before))
    )
    assert found == unknown
    assert (found.same_rows, found.same_file, found.paired) == (True, False, True)
    assert paired_words(found).startswith("Differences are paired, except: ")
    assert {"MCE", "ECE, equal mass"} < set(found.unpaired)  # their intervals reach 0
    assert "Range in log odds" not in found.unpaired
    directions = {one.label: one.direction for one in found.estimates}
    assert (directions["Calibration slope"], directions["Accuracy"]) == ("other", "not told apart")
    old = compare_audits(read_content(_of_an_earlier_version(before)), content)
    assert (old.same_rows, old.paired) == (False, False)
    assert paired_words(old) == ""


def _of_an_earlier_version(stored: bytes) -> bytes:
    """An audit without what pairs it, as versions before wrote it."""
    values = json.loads(stored)
    del values["sums"]
    for one in values["measured"]["checks"]:
        for part in one["parts"]:
            del part["sums"]
    return json.dumps(values).encode()


def test_a_baseline_of_other_classes_is_refused(passed: Gate, tmp_path: Path) -> None:
    stored = replace(passed.content, subject=replace(passed.content.subject, classes=("a", "b")))
    path = tmp_path / "audit.json"
    path.write_bytes(content_bytes(stored))
    with pytest.raises(InputError, match="has the classes 'a' and 'b', and this audit"):
        run_gate(config(predictions(tmp_path, 1.0), baseline=str(path)))
    regression = replace(passed.content, subject=replace(passed.content.subject, task="regression"))
    path.write_bytes(content_bytes(regression))
    with pytest.raises(InputError, match="is of a regression"):
        run_gate(config(predictions(tmp_path, 1.0), baseline=str(path)))


def about(content: AuditContent, event: str | None) -> AuditContent:
    return replace(content, subject=replace(content.subject, event=event))


def test_a_baseline_of_another_event_or_view_is_refused(passed: Gate, tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    given = config(predictions(tmp_path, 1.0), baseline=str(path), codes=("KC001",))
    path.write_bytes(content_bytes(about(passed.content, "no")))
    with pytest.raises(InputError, match="judges the event 'no', and this audit the event 'yes'"):
        run_gate(given)
    path.write_bytes(content_bytes(about(passed.content, None)))
    with pytest.raises(InputError, match="judges the confidence in the predicted class, and this"):
        run_gate(given)
    path.write_bytes(content_bytes(passed.content))
    with pytest.raises(InputError, match="judges the event 'yes', and this audit the confidence"):
        run_gate(replace(given, view="confidence"))


@pytest.mark.usefixtures("no_pictures")
def test_the_latest_is_one_that_asked_the_same(passed: Gate, tmp_path: Path) -> None:
    record = Record(tmp_path / "audits")
    project = record.create("P", ME).id

    def approve(content: AuditContent) -> None:
        audit = record.draft(project, content, ME).id
        record.write(project, AuditSubmitted(audit), ME)
        record.write(project, AuditApproved(audit, "Good enough."), ME)

    given = config(
        predictions(tmp_path, 1.0), project="P", baseline="latest", codes=("KC001",)
    )  # fmt: skip
    approve(about(passed.content, "no"))
    with pytest.raises(InputError, match="judges the event 'no'"):
        run_gate(given, record=record, who=ME)
    approve(about(passed.content, None))
    with pytest.raises(InputError, match=r"None of the 2 approved.*judges the confidence"):
        run_gate(given, record=record, who=ME)
    approve(replace(passed.content, title="The same question"))
    approve(about(passed.content, "no"))
    found = run_gate(given, record=record, who=ME).content.baseline
    assert found is not None
    assert found.name == "The same question"
    record.database.close()


def test_a_baseline_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    for content in ("{}", "[1", '{"format": 99}'):
        path.write_text(content)
        with pytest.raises(InputError, match=r"not an audit|newer version of kdcal"):
            run_gate(config(predictions(tmp_path, 1.0), baseline=str(path)))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"groups": ("age",)}, "no such column"),
        ({"event": "maybe"}, "maybe"),
    ],
)
def test_names_that_the_table_lacks_are_refused(
    tmp_path: Path, more: dict[str, object], said: str
) -> None:
    given = config(predictions(tmp_path, 1.0), **more)
    files = replace(given.files, event=given.event)
    with pytest.raises(InputError, match=said):
        run_gate(replace(given, files=files))


@pytest.mark.usefixtures("no_pictures")
def test_pytest_says_what_fails(tmp_path: Path) -> None:
    assert assert_passes(config(predictions(tmp_path, 1.0))).exit_code == 0
    with pytest.raises(AssertionError, match=r"KC001 Overall calibration: fail\. ECE"):
        assert_passes(config(predictions(tmp_path, 3.0)))


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("command", [IN_CI[1], IN_CI[0].replace("audit/", "audit/tests/ci/")])
def test_the_guide_s_pipelines_run_on_a_clean_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    predictions(tmp_path, 1.0)
    monkeypatch.chdir(tmp_path)
    Path("audit.toml").write_text(
        '[files]\npredictions = "p.csv"\n[roles]\ntarget = "y"\nevent = "yes"\n'
        '[checks]\nonly = ["KC001"]\n'
    )
    words = shlex.split(command)
    assert main(words) == 0
    junit = Path(words[words.index("--junit") + 1])
    assert ElementTree.parse(junit).getroot().get("tests") == "1"
    assert Path("audit/report.html").is_file()


def test_the_guide_shows_two_pipelines() -> None:
    assert len(IN_CI) == 2


UNANSWERED = "1 check that must be answered has no answer: {} (no groups are declared)."


def asked(folder: Path, rows: str, more: str) -> AuditConfig:
    """What is read of a configuration of quick checks."""
    path = folder / "asked.toml"
    path.write_text(
        f'[files]\npredictions = "{rows}"\n[roles]\ntarget = "y"\nevent = "yes"\n{more}'
    )
    found = read_config(path)
    return found if found.codes else replace(found, codes=CODES)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    "more", ["[limits.KC008]\nat_most = 0.2\n", '[checks]\nonly = ["KC001", "KC008"]\n']
)
def test_a_check_that_was_asked_for_must_be_answered(tmp_path: Path, more: str) -> None:
    rows = predictions(tmp_path, 1.0)
    gate = run_gate(asked(tmp_path, rows, more))
    assert (gate.verdict, gate.exit_code) == ("not enough evidence", 3)
    said = UNANSWERED.format(CHECKS["KC008"].title.lower())
    assert gate.content.headline.endswith(said)
    assert gate_json(gate)["headline"] == gate.content.headline
    assert gate.content.next_step.startswith("Give what the checks without an answer need")
    assert read_content(content_bytes(gate.content)) == gate.content
    (case,) = ElementTree.fromstring(gate_junit(gate)).iterfind("*/failure/..")
    assert str(case.get("name")).startswith("KC008")


@pytest.mark.usefixtures("no_pictures")
def test_pytest_names_the_missing_answer_which_counts_as_configured(tmp_path: Path) -> None:
    rows, more = predictions(tmp_path, 1.0), "[limits.KC008]\nat_most = 0.2\n"
    with pytest.raises(AssertionError, match=r"KC008 .*: no answer\. No groups are declared"):
        assert_passes(asked(tmp_path, rows, more))
    answered = run_gate(asked(tmp_path, rows, f'groups = ["<b>sex"]\n{more}'))
    assert "must be answered" not in answered.content.headline
    for counts_as, code in (("pass", 0), ("fail", 1)):
        counted = run_gate(replace(asked(tmp_path, rows, more), undecided=counts_as))
        assert counted.exit_code == code
        failures = ElementTree.fromstring(gate_junit(counted)).get("failures")
        assert failures == str(code)


@pytest.mark.usefixtures("no_pictures")
def test_a_fail_comes_before_a_missing_answer(tmp_path: Path) -> None:
    rows = predictions(tmp_path, 3.0)
    gate = run_gate(asked(tmp_path, rows, "[limits.KC008]\nat_most = 0.2\n"))
    assert gate.exit_code == 1
    assert gate.content.headline.startswith("The model fails")
    assert gate.content.headline.endswith(UNANSWERED.format(CHECKS["KC008"].title.lower()))


def test_a_check_of_another_task_is_refused(tmp_path: Path) -> None:
    rows = predictions(tmp_path, 1.0)
    other = next(code for code, one in CHECKS.items() if "classification" not in one.tasks)
    with pytest.raises(InputError, match=f"{other} is not one of a classification"):
        run_gate(asked(tmp_path, rows, f'[checks]\nonly = ["KC001", "{other}"]\n'))
