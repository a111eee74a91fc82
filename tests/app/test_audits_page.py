"""The page Audits: recording, reading, deciding, and what it refuses."""

from __future__ import annotations

import errno
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sql
from app_pages import healthy, launch, plain, settle, started, visit, words
from made_reviews import line, review_of, too_sure
from streamlit.testing.v1 import AppTest
from texts.pages import page_text
from texts.snapshot import Texts, visible

from kdcal_core.audit import (
    URL,
    Audit,
    AuditApproved,
    AuditContent,
    AuditDrafted,
    AuditSettings,
    AuditSubmitted,
    Commented,
    FindingOpened,
    KeptChart,
    LimitsLocked,
    MemberSet,
    Moment,
    Person,
    Project,
    Record,
    RetentionSet,
    audit_settings,
    config_of,
    content_bytes,
    date_text,
    keep_pending,
    kept_charts,
    limits_of,
    make_audit,
    moment_text,
    new_id,
    pending_of,
    root_of_audits,
    system_user,
)
from kdcal_core.audit.receipts import RECEIPT
from kdcal_core.audit.signing import ENTRY, canonical, digest, signer_of, statement
from kdcal_core.charts import comparison_finding, method_name
from kdcal_core.checks import CHECKS
from kdcal_core.jobs import jobs
from kdcal_core.review import (
    FirstResults,
    KnownResults,
    Limit,
    Review,
    ReviewReader,
    Workspace,
    add_table,
    read_review,
    rename_review,
    score,
    set_question,
    start_sample,
)
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import (
    ComparisonSettings,
    ExportSettings,
    RecalibrationSettings,
    Sets,
    compare_calibrators,
    export_calibrator,
    recalibrate,
    recalibration_judged_text,
)
from kdcal_core.tasks.export import CALIBRATOR_FILE

PAGE = "audits"
ME = Person("Me", believed="a test")
ANN = Person("Ann", "https://id.example.org", "subject-ann", "a test")
HOSTILE = "<b>x</b> *y* [z](http://e.org) \u202egnp ![i](http://e.org/i)"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.shared import people, reviews_here

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    monkeypatch.setattr(people, "current_person", lambda: ME)  # whoever runs the tests
    monkeypatch.setenv("KDCAL_CHROMIUM", "no-such-browser")  # whatever is installed here


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, _here: None) -> None:
    """The visitor of a server that others visit too, who has not signed in."""
    from app.shared import reviews_here

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: False)


@pytest.fixture(scope="module")
def review(workspace: Workspace) -> Review:
    review_id = review_of(workspace, calibration=too_sure(300, 0), evaluation=too_sure(300, 1))
    return read_review(workspace, review_id)


@pytest.fixture(scope="module")
def content(workspace: Workspace, review: Review) -> AuditContent:
    """An audit of few checks."""
    settings = audit_settings(review, "March")
    few = AuditSettings(settings.title, settings.which, settings.event, codes=("KC001", "KC101"))
    reader = ReviewReader(workspace, review.id, review=review)
    return make_audit(Sets(reader), settings=few)


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch, _here: None) -> None:
    """An audit of one or two checks, in tests of what else it keeps."""
    from app.audits import recording

    codes: dict[str, tuple[str, ...]] = {
        "classification": ("KC001", "KC101"),
        "regression": ("KC021",),
    }

    def few(review: Review) -> AuditSettings:
        return replace(audit_settings(review), codes=codes[review.task])

    monkeypatch.setattr(recording, "audit_settings", few)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call it with those charts that an audit should draw itself, of all that it would."""

    def only(*keys: str) -> None:
        def few(drawn: Iterable[Any]) -> tuple[KeptChart, ...]:
            return kept_charts(tuple(one for one in drawn if one[0] in keys))

        monkeypatch.setattr("kdcal_core.audit.making.kept_charts", few)

    return only


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """An empty record, which the app uses too; reviews are those of the whole file."""
    from app.shared import audits_here

    monkeypatch.delenv(URL, raising=False)
    opened = Record(tmp_path / "audits")
    monkeypatch.setattr(audits_here, "record", lambda: opened)
    yield opened
    opened.database.close()


@pytest.fixture
def project(record: Record) -> Project:
    return record.create("Credit risk", ME)


@pytest.fixture
def draft(record: Record, project: Project, content: AuditContent) -> Audit:
    return record.draft(project.id, content, ME)


def address(project: Project, audit: Audit) -> str:
    return f"{project.id}:{audit.id}"


def opened(project: Project, audit: Audit) -> AppTest:
    """An audit as somebody sees it who opens it from the list."""
    at = healthy(launch(PAGE))
    return healthy(at.button(key=f"open_{project.id}_{audit.id}").click().run())


def press(at: AppTest, key: str) -> AppTest:
    return healthy(at.button(key=key).click().run())


def state(record: Record, project: Project, audit: Audit) -> str:
    return record.project(project.id).audits[audit.id].state


def keys(at: AppTest) -> set[str]:
    return {str(one.key) for one in at.button}


def test_without_an_audit_the_page_says_what_it_shows(record: Record, texts: Texts) -> None:
    texts(healthy(launch(PAGE)))


def test_an_audit_is_recorded_from_a_review(
    workspace: Workspace, record: Record, texts: Texts
) -> None:
    review_id = review_of(workspace, calibration=too_sure(250, 2))
    rename_review(workspace, review_id, "March")
    at = healthy(settle(launch("overview", review_id)))
    known = first_results(read_review(workspace, review_id))
    assert known is not None
    at.button(key="record_an_audit").click().run()
    at = healthy(at)
    assert at.title[0].value == "Audits"
    healthy(visit(at, PAGE))  # where the test runner has not followed the button
    texts(at, "form")
    at.button(key="audit_begin").click().run()
    assert "A project needs a name" in at.error[0].value
    at.text_input(key="audit_new_project").set_value("Credit risk").run()
    at.text_input(key=f"audit_title_{review_id}").set_value("First audit").run()
    press(at, "audit_begin")
    healthy(settle(at))
    (project,) = record.projects()
    (audit,) = project.audits.values()
    assert at.query_params["audit"] == address(project, audit)
    assert "review" not in at.query_params  # whoever has it may change the review
    assert audit.facts.title == record.content(audit).title == "First audit"
    sketch = record.content(audit).sketch
    assert sketch is not None
    assert sketch.n == audit.facts.n
    assert audit.facts.results_known == (
        f"since {known.at}, when kdcal first computed them on this machine ({known.host})"
    )
    assert "were known when they were chosen: since" in words(at)
    assert audit.drafted.who == ME
    assert set(audit.facts.limits) == {one.code for one in CHECKS.values() if _of(one)}
    healthy(visit(at, "overview"))
    assert "Record an audit" in {one.label for one in at.button}  # the review stayed open
    assert record.project(project.id).number == 2  # one draft, whatever was run again


def _recorded(record: Record) -> tuple[Project, Audit]:
    (project,) = record.projects()
    (audit,) = project.audits.values()
    return project, audit


def _fill(at: AppTest) -> AppTest:
    press(at, "audit_form_open")
    at.text_input(key="audit_new_project").set_value("Credit risk").run()
    return at


def test_the_project_is_the_one_that_last_had_such_an_audit(
    workspace: Workspace, record: Record, content: AuditContent
) -> None:
    review_id = review_of(workspace, calibration=too_sure(200, 20))
    review = score(workspace, review_id)
    regression = record.create("A regression", ME)
    limits = {"KC021": Limit(high=0.05)}
    record.draft(regression.id, replace(content, limits=limits), ME)
    at = press(launch(PAGE, review_id), "audit_form_open")
    key = f"audit_into_project_{review_id}"
    assert at.selectbox(key=key).value is None
    assert at.button(key="audit_begin").disabled
    assert not at.text_input(key=f"audit_title_{review_id}").disabled
    another = record.create("B, of the same task", ME)
    record.draft(another.id, content, ME)
    at = press(launch(PAGE, review_id), "audit_form_open")
    assert at.selectbox(key=key).value == another.id
    which = audit_settings(review).which
    tables = tuple(
        replace(one, part=which, scored=review.sets[which].digest) for one in content.subject.tables
    )
    own = record.create("C, of this review", ME)
    subject = replace(content.subject, which=which, tables=tables)
    record.draft(own.id, replace(content, subject=subject), ME)
    record.draft(another.id, content, ME)
    at = press(launch(PAGE, review_id), "audit_form_open")
    assert at.selectbox(key=key).value == own.id
    assert not at.button(key="audit_begin").disabled


@pytest.mark.usefixtures("no_pictures")
def test_a_reload_while_it_is_recorded_loses_nothing(
    workspace: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import job_results

    review_id = review_of(workspace, calibration=too_sure(200, 20))
    with monkeypatch.context() as patch:
        patch.setattr(job_results, "finished", lambda asked, owner: None)  # it runs for long
        healthy(_fill(launch(PAGE, review_id)).button(key="audit_begin").click().run())
    assert not record.projects()[0].audits
    at = healthy(launch(PAGE, review_id))  # a new session, as after a reload
    assert "Recording the audit" in at.subheader[0].value or "audit" in at.query_params
    healthy(settle(at))
    project, audit = _recorded(record)
    assert at.query_params["audit"] == address(project, audit)
    assert pending_of(workspace, review_id) is None
    healthy(launch(PAGE, review_id))
    assert len(record.project(project.id).audits) == 1


@pytest.mark.usefixtures("no_pictures")
def test_a_recording_can_be_given_up(
    workspace: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import job_results

    review_id = review_of(workspace, calibration=too_sure(200, 21))
    with monkeypatch.context() as patch:
        patch.setattr(job_results, "finished", lambda asked, owner: None)
        at = _fill(launch(PAGE, review_id))
        at = healthy(at.button(key="audit_begin").click().run())
        assert pending_of(workspace, review_id) is not None
        patch.setattr("app.shared.waiting.find", lambda key: None)  # it was stopped
        press(at.run(), "audit_give_up")
    assert pending_of(workspace, review_id) is None
    assert not record.projects()[0].audits


@pytest.mark.usefixtures("no_pictures")
def test_an_audit_that_an_update_cut_off_is_begun_again(
    workspace: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import job_results

    review_id = review_of(workspace, calibration=too_sure(200, 22))
    with monkeypatch.context() as patch:
        patch.setattr(job_results, "finished", lambda asked, owner: None)
        healthy(_fill(launch(PAGE, review_id)).button(key="audit_begin").click().run())
    pending = pending_of(workspace, review_id)
    assert pending is not None
    keep_pending(workspace, replace(pending, code="f" * 64))
    monkeypatch.setattr("app.shared.waiting.find", lambda key: None)  # the server was started anew
    at = healthy(launch(PAGE, review_id))
    assert "was being computed when kdcal was updated" in at.warning[0].value
    at = press(at, "audit_again")
    assert pending_of(workspace, review_id) is None
    assert at.text_input(key=f"audit_title_{review_id}").value
    (workspace.folder(review_id) / "audit_to_draft.json").write_text('{"of": "a later version"}')
    at = healthy(launch(PAGE, review_id))
    assert "cannot be finished" in at.warning[0].value


@pytest.mark.usefixtures("few_checks", "no_pictures")
def test_the_chosen_calibrator_is_recorded_with_its_file(
    workspace: Workspace, record: Record
) -> None:
    review_id = review_of(workspace, calibration=too_sure(250, 22))
    at = launch("export", review_id, calibrator="beta")
    press(at, "export_start")
    healthy(settle(at))
    healthy(visit(at, PAGE))
    _fill(at)
    chosen = at.selectbox(key=f"audit_calibrator_{review_id}")
    assert chosen.value == "beta"  # the one that was exported
    assert "With its file" in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    kept = record.content(audit).calibrator
    assert kept is not None
    run = export_calibrator.request(
        workspace, review_id, ExportSettings("beta", event=read_review(workspace, review_id).event)
    )
    job = jobs().find(run.key)
    assert job is not None
    assert job.folder is not None
    assert kept.digest == digest_of(job.folder / CALIBRATOR_FILE)
    assert (kept.key, kept.model, kept.rows) == ("beta", "", "")
    assert "log loss" in kept.finding
    identity = next(one.value for one in at.dataframe if "SHA-256" in one.value)
    row = identity[identity["What"] == "Calibrator"].iloc[0]
    assert (row["Name"], row["SHA-256"]) == (kept.title, kept.digest)
    assert f"The calibrator {kept.title} was chosen" in words(at)
    report = report_text(record, project, audit)
    assert kept.digest[:8] in report
    assert kept.title in report
    assert "calibrator =" not in config_of(record.content(audit))  # it judged the model as it is


@pytest.mark.usefixtures("few_checks")
def test_a_comparison_that_was_made_is_kept(
    workspace: Workspace, record: Record, pictures: Callable[..., None]
) -> None:
    pictures("confidence")
    review_id = review_of(workspace, calibration=too_sure(250, 24))
    asked = compare_calibrators.request(workspace, review_id, ComparisonSettings(("sts", "beta")))
    done = jobs().submit(asked.target, asked.kwargs, key=asked.key, title="", owner=review_id)
    job = jobs().wait(done, 120)
    run = compare_calibrators.read(job.folder)
    at = launch("load", review_id)
    at.session_state["compare_last"] = {review_id: asked.key}
    healthy(visit(at, PAGE))
    _fill(at)
    assert "The comparison of 2 calibrators that is on the page Compare is kept" in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    kept = {one.key: one for one in record.content(audit).charts}
    chart = kept["compare"]
    assert comparison_finding(run.comparison, "log_loss") in chart.finding
    assert "Cross-fitted in 5 folds" in chart.finding
    for one in run.comparison.methods:
        assert method_name(run.comparison, one.key) in chart.table
    assert "compare_paired" in kept
    at.pills(key="audit_chart").set_value("compare").run()
    assert plain(comparison_finding(run.comparison, "log_loss")) in words(at)
    assert "Calibrators against the model" in report_text(record, project, audit)
    assert "confidence" in kept  # which each audit of few rows draws itself


@pytest.mark.usefixtures("few_checks", "no_pictures")
def test_a_comparison_of_recalibrators_that_was_made_is_kept(
    workspace: Workspace, record: Record
) -> None:
    review_id = review_of(workspace, calibration=line(400, 24), evaluation=line(300, 25))
    asked = recalibrate.request(workspace, review_id, RecalibrationSettings(("global", "local")))
    done = jobs().submit(asked.target, asked.kwargs, key=asked.key, title="", owner=review_id)
    folder = jobs().wait(done, 120).folder
    found = recalibrate.read(folder).record
    at = launch("load", review_id)
    at.session_state["recalibration_last"] = {review_id: asked.key}
    healthy(visit(at, PAGE))
    _fill(at)
    sentence = "The comparison of 2 recalibrators that is on the page Recalibration is kept"
    assert sentence in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    kept = {one.key: one for one in record.content(audit).charts}
    for part in (recalibration_judged_text(found), found.choice.reason):
        assert part in kept["recalibration"].finding
    for key in found.keys:
        crps = found.result(key).scores.rows["crps"]
        assert repr(crps.value) in kept["recalibration"].table
    assert "recalibration_changes" in kept
    at.pills(key="audit_chart").set_value("recalibration").run()
    assert plain(found.choice.reason) in words(at)
    assert "Recalibrators against the model" in report_text(record, project, audit)


@pytest.mark.parametrize("stage", ["project", "pending"])
@pytest.mark.usefixtures("no_pictures")
def test_an_error_of_recording_stays_when_a_job_ends_meanwhile(
    workspace: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """As when the disk is full, so that a job of another page fails in the same second."""
    from app.audits import recording

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    review_id = review_of(workspace, calibration=too_sure(200, 31))
    at = launch(PAGE, review_id)
    _fill(at)
    if stage == "project":
        monkeypatch.setattr(record, "create", full)
    else:
        monkeypatch.setattr(recording, "keep_pending", full)
    at.button(key="audit_begin").click().run()
    assert not at.exception
    (said,) = at.error
    assert "No space left on device" in said.value
    at.session_state["run_by_job"] = True  # as its timer leaves it
    at.run()
    assert [one.value for one in at.error] == [said.value]
    assert not at.run().error


@pytest.mark.usefixtures("few_checks", "no_pictures")
def test_a_comparison_of_other_rows_is_not_kept(workspace: Workspace, record: Record) -> None:
    review_id = review_of(workspace, calibration=too_sure(250, 25))
    asked = compare_calibrators.request(workspace, review_id, ComparisonSettings(("sts",)))
    done = jobs().submit(asked.target, asked.kwargs, key=asked.key, title="", owner=review_id)
    jobs().wait(done, 120)
    later = too_sure(250, 26).to_csv(index=False).encode()
    add_table(workspace, review_id, "calibration", io.BytesIO(later), "later.csv")
    score(workspace, review_id)
    at = launch("load", review_id)
    at.session_state["compare_last"] = {review_id: asked.key}
    healthy(visit(at, PAGE))
    _fill(at)
    assert "The comparison of" not in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    _, audit = _recorded(record)
    assert "compare" not in {one.key for one in record.content(audit).charts}


@pytest.mark.usefixtures("few_checks")
def test_what_was_seen_with_other_settings_is_kept(
    workspace: Workspace, record: Record, pictures: Callable[..., None]
) -> None:
    pictures("reliability", "confidence")
    review_id = review_of(workspace, calibration=too_sure(250, 27))
    at = healthy(launch("reliability", review_id))
    healthy(at.slider(key="reliability_bins").set_value(31).run())
    healthy(visit(at, "confidence_by_class"))  # as it begins
    at = healthy(launch(PAGE, review_id))  # as after a reload
    _fill(at)
    assert "Charts that you looked at with other settings are kept as you saw them" in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    charts = {one.key: one for one in record.content(audit).charts}
    assert list(charts)[:2] == ["reliability", "reliability_seen"]
    seen = charts["reliability_seen"]
    assert "As the page Reliability showed it: Probability of yes; 31 bins of equal" in seen.finding
    assert len(seen.table.splitlines()) > len(charts["reliability"].table.splitlines())
    assert "confidence" in charts
    assert not [key for key in charts if key.endswith("_seen") and key != "reliability_seen"]
    assert "Reliability, as it was seen" in report_text(record, project, audit)


@pytest.mark.usefixtures("few_checks")
@pytest.mark.parametrize(
    ("table", "pages"),
    [
        (too_sure, ("reliability", "decisions", "groups", "regions", "confidence_by_class")),
        (line, ("pit", "groups", "regions")),
    ],
)
def test_what_pages_begin_with_is_kept_once(
    workspace: Workspace, record: Record, table: Callable[..., Any], pages: tuple[str, ...]
) -> None:
    made = table(300, 30).assign(place=["north", "south", "east"] * 100)
    review_id = review_of(workspace, calibration=made)
    question = replace(read_review(workspace, review_id).question, groups=("place",))
    set_question(workspace, review_id, question)
    at = started(review_id)
    for page in pages:
        healthy(settle(visit(at, page)))
    healthy(visit(at, PAGE))
    _fill(at)
    press(at, "audit_begin")
    healthy(settle(at))
    _, audit = _recorded(record)
    found = [one.key for one in record.content(audit).charts]
    assert [key for key in found if key.endswith("_seen")] == []
    assert "groups" in found
    assert len(found) == len(set(found))


@pytest.mark.usefixtures("few_checks")
def test_pictures_of_rows_are_kept_as_means_on_a_grid(workspace: Workspace, record: Record) -> None:
    review_id = review_of(workspace, calibration=line(700, 31), evaluation=line(600, 32))
    at = healthy(settle(launch("pit", review_id)))
    healthy(settle(visit(at, PAGE)))
    _fill(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    charts = {one.key: one for one in record.content(audit).charts}
    field = charts["pit_map"]
    assert "on a grid in place of the map of single rows; evaluation set" in field.finding
    assert {one["type"] for one in field.figure(dark=False)["data"]} == {"heatmap"}
    table = pd.read_csv(io.StringIO(field.table))
    assert "row" not in " ".join(table.columns)
    assert 5 < len(table) < 145
    assert table["neighbourhoods"].sum() > len(table)
    places = charts["pit_places"]
    assert "Place A: " in places.finding
    assert "row " not in places.finding + places.table
    assert "Not kept, because an audit holds no rows: the rows on maps" in words(at)
    assert len(report_text(record, project, audit).encode()) < 6_000_000


@pytest.mark.usefixtures("few_checks")
def test_what_was_seen_of_another_set_is_kept_beside_the_audit_s(
    workspace: Workspace, record: Record, pictures: Callable[..., None]
) -> None:
    pictures("net_benefit", "decisions", "rates")
    review_id = review_of(workspace, calibration=too_sure(260, 33), evaluation=too_sure(250, 34))
    at = healthy(settle(launch("decisions", review_id)))
    at.segmented_control[0].set_value("calibration").run()
    healthy(settle(at))
    healthy(settle(visit(at, "regions")))
    healthy(settle(visit(at, PAGE)))
    _fill(at)
    press(at, "audit_begin")
    healthy(settle(at))
    _, audit = _recorded(record)
    charts = {one.key: one for one in record.content(audit).charts}
    for key in ("net_benefit", "decisions", "rates"):
        assert "calibration set" in charts[f"{key}_seen"].finding
        assert charts[f"{key}_seen"].table != charts[key].table
    assert "As the page Regions showed it: region 1, " in charts["region"].finding


@pytest.mark.usefixtures("few_checks", "no_pictures")
def test_what_was_seen_of_other_rows_is_not_kept(workspace: Workspace, record: Record) -> None:
    review_id = review_of(workspace, calibration=too_sure(250, 28))
    at = healthy(launch("reliability", review_id))
    healthy(at.slider(key="reliability_bins").set_value(31).run())
    later = too_sure(250, 29).to_csv(index=False).encode()
    add_table(workspace, review_id, "calibration", io.BytesIO(later), "later.csv")
    score(workspace, review_id)
    healthy(visit(at, PAGE))
    _fill(at)
    assert "as you saw them" not in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    _, audit = _recorded(record)
    assert not record.content(audit).charts


@pytest.mark.usefixtures("few_checks")
def test_the_kernel_density_version_that_was_seen_is_kept_without_rows(
    workspace: Workspace, record: Record
) -> None:
    review_id = score(workspace, start_sample(workspace, "xor_forest").id).id
    at = started(review_id)
    at.session_state["map_resolution"] = 50
    healthy(settle(visit(at, "posterior_map")))
    press(at, next(key for key in keys(at) if key.startswith("fit_")))
    healthy(settle(at))
    healthy(settle(visit(at, "out_of_distribution")))
    healthy(visit(at, PAGE))
    _fill(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    charts = {one.key: one for one in record.content(audit).charts}
    field = charts["posterior_map"]
    assert "without the rows, of which an audit keeps none" in field.finding
    assert "its kernel density version on" in field.finding
    assert {one["type"] for one in field.figure(dark=False)["data"]} == {"heatmap"}
    assert len(field.table.splitlines()) == 1 + 25 * 25
    assert len(field.light) + len(field.dark) < 150_000
    far, own = charts["far_away_seen"], charts["far_away"]
    assert "Kernel density" in far.table
    assert "Kernel density" not in own.table
    assert "kernel density version by geodesic distance, alpha 1.0%" in far.finding
    beside = charts["densities"]
    assert "The kernel density version against the model itself: OCE" in beside.finding
    report = report_text(record, project, audit)
    assert "Posterior map" in report
    assert len(report.encode()) < 6_000_000


def test_a_calibrator_of_other_rows_is_not_the_chosen_one(
    workspace: Workspace, record: Record
) -> None:
    review_id = review_of(workspace, calibration=too_sure(250, 23))
    at = launch("export", review_id, calibrator="beta")
    press(at, "export_start")
    healthy(settle(at))
    content = io.BytesIO(too_sure(400, 24).to_csv(index=False).encode())
    add_table(workspace, review_id, "calibration", content, "other.csv")
    score(workspace, review_id)
    healthy(visit(at, PAGE))
    _fill(at)
    assert at.selectbox(key=f"audit_calibrator_{review_id}").value == "none"


def report_text(record: Record, project: Project, audit: Audit) -> str:
    from app.audits.audit_files import report_of

    return report_of(record, record.project(project.id), audit).decode()


@pytest.mark.usefixtures("few_checks", "no_pictures")
def test_no_calibrator_or_one_without_a_file_is_a_choice_too(
    workspace: Workspace, record: Record
) -> None:
    review_id = review_of(workspace, calibration=too_sure(200, 23))
    at = _fill(launch(PAGE, review_id))
    choice = at.selectbox(key=f"audit_calibrator_{review_id}")
    assert choice.value == "none"
    healthy(choice.set_value("isotonic").run())
    assert "no file of it is written yet" in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    project, audit = _recorded(record)
    kept = record.content(audit).calibrator
    assert kept is not None
    assert (kept.key, kept.digest) == ("isotonic", "")
    identity = next(one.value for one in at.dataframe if "SHA-256" in one.value)
    assert "no file" in set(identity["SHA-256"])
    assert "SHA-256 </p>" not in report_text(record, project, audit)
    press(at, "audits_all")
    at.query_params["review"] = review_id
    at = healthy(launch(PAGE, review_id))
    press(at, "audit_form_open")
    at.text_input(key=f"audit_title_{review_id}").set_value("Second").run()
    press(at, "audit_begin")
    healthy(settle(at))
    second = next(
        one for one in record.project(project.id).audits.values() if one.facts.title == "Second"
    )
    assert record.content(second).calibrator is None
    assert "No calibrator was chosen with this audit" in words(at)


def test_a_regression_names_its_recalibrator(workspace: Workspace, record: Record) -> None:
    from app.shared import chosen_calibrator

    review = read_review(workspace, review_of(workspace, calibration=line(100, 24)))
    assert "isotonic" in chosen_calibrator.choices(review)
    assert chosen_calibrator.export_of(review, "isotonic") is None
    at = healthy(_fill(launch(PAGE, review.id)))
    at.selectbox(key=f"audit_calibrator_{review.id}").set_value("isotonic").run()
    assert "A recalibrator has no file" in words(healthy(at))


def test_without_sign_in_the_user_of_the_machine_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.shared import people

    monkeypatch.undo()
    who = people.current_person()
    assert who.name == system_user().name
    assert who.believed == "the user of this machine; nobody signed in"
    assert who.identity is None


def _of(check: Any) -> bool:
    return "classification" in check.tasks


@pytest.mark.usefixtures("no_pictures")
def test_limits_locked_before_the_first_results_count(workspace: Workspace, record: Record) -> None:
    review_id = review_of(workspace, calibration=too_sure(200, 3))
    at = healthy(launch(PAGE, review_id))
    press(at, "audit_form_open")
    assert "knows no results of these rows yet" in words(at)
    at.text_input(key="audit_new_project").set_value("Locked").run()
    at.text_input(key="audit_lock_note").set_value("As agreed in March").run()
    press(at, "audit_lock")
    (project,) = record.projects()
    reviewed = read_review(workspace, review_id)
    assert project.lock_of(limits_of(reviewed.task)) is not None
    assert "before this machine knew results of these rows" in words(at)
    healthy(settle(visit(at, "overview")))
    visit(at, PAGE)
    assert "before this machine knew results of these rows" in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    (audit,) = record.project(project.id).audits.values()
    assert (audit.facts.locked, audit.facts.results_known) == (2, "")
    assert "holds no earlier result of this model" in words(at)
    assert "when its list began" not in words(at)
    assert words(at).count("after the lock") >= 1


def first_results(review: Review) -> FirstResults | None:
    """What this machine knows of results of the calibration set."""
    known = KnownResults().read()
    return None if known is None else known.rows.get(review.sets["calibration"].digest)


@pytest.mark.usefixtures("no_pictures")
def test_neither_another_review_nor_the_same_table_again_makes_results_unknown(
    workspace: Workspace, record: Record
) -> None:
    rows = too_sure(200, 4)
    review_id = review_of(workspace, calibration=rows)
    healthy(launch("reliability", review_id))
    known = first_results(read_review(workspace, review_id))
    assert known is not None
    again = io.BytesIO(rows.to_csv(index=False).encode())
    add_table(workspace, review_id, "calibration", again, "again.csv")
    assert first_results(score(workspace, review_id)) == known
    other = review_of(workspace, calibration=rows)
    assert first_results(read_review(workspace, other)) == known
    at = healthy(launch(PAGE, other))
    press(at, "audit_form_open")
    assert f"have been known since {moment_text(known.at)}" in words(at)
    at.text_input(key="audit_new_project").set_value("Locked").run()
    press(at, "audit_lock")
    assert "but results of these rows have been known since" in words(at)
    press(at, "audit_begin")
    healthy(settle(at))
    _, audit = _recorded(record)
    assert audit.facts.locked == 2
    assert audit.facts.results_known.startswith(f"since {known.at}")


@pytest.mark.usefixtures("no_pictures")
def test_limits_that_are_locked_while_the_audit_is_computed_were_not_locked_before(
    workspace: Workspace, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import job_results

    review_id = review_of(workspace, calibration=too_sure(200, 25))
    with monkeypatch.context() as patch:
        patch.setattr(job_results, "finished", lambda asked, owner: None)
        healthy(_fill(launch(PAGE, review_id)).button(key="audit_begin").click().run())
    (project,) = record.projects()
    record.lock(project.id, limits_of(read_review(workspace, review_id).task), ME)
    healthy(settle(healthy(launch(PAGE, review_id))))
    _, audit = _recorded(record)
    assert audit.facts.locked is None


def test_an_audit_is_shown_as_it_was(
    record: Record, project: Project, draft: Audit, texts: Texts
) -> None:
    at = opened(project, draft)
    assert [title.value for title in at.title] == ["Audits"]
    texts([one for one in page_text(at).splitlines() if "Versions:" not in one])


def test_an_audit_is_submitted_and_approved(
    record: Record, project: Project, draft: Audit, texts: Texts
) -> None:
    at = opened(project, draft)
    press(at, "audit_submit")
    assert state(record, project, draft) == "submitted"
    texts(page_text(at).partition("[popover] Download")[0], "submitted")
    at.text_area(key="audit_approve_words").set_value("Good enough").run()
    press(at, "audit_approve")
    found = record.project(project.id).audits[draft.id]
    assert found.state == "approved"
    assert found.history[-1].event == AuditApproved(draft.id, "Good enough")
    assert not keys(at) & {"audit_submit", "audit_approve", "audit_reject"}


def test_a_rejection_needs_its_reason(record: Record, project: Project, draft: Audit) -> None:
    at = press(opened(project, draft), "audit_submit")
    at.button(key="audit_reject").click().run()
    assert "A rejection needs its reason" in at.error[0].value
    assert state(record, project, draft) == "submitted"
    at.text_area(key="audit_reject_words").set_value("Too few rows").run()
    press(at, "audit_reject")
    assert state(record, project, draft) == "rejected"


def test_an_audit_is_superseded_by_another_approved_one(
    record: Record, project: Project, draft: Audit, content: AuditContent
) -> None:
    second = record.draft(project.id, replace(content, title="April"), ME)
    for one in (draft, second):
        record.write(project.id, AuditSubmitted(one.id), ME)
    record.write(project.id, AuditApproved(draft.id, "Good enough"), ME)
    at = opened(project, draft)
    assert "no other approved audit" in words(at)
    record.write(project.id, AuditApproved(second.id, "Good enough"), ME)
    press(at.run(), "audit_supersede")
    assert record.project(project.id).audits[draft.id].superseded_by == second.id
    (history,) = [one.value for one in at.dataframe if "Entry" in one.value]
    april = f"April ({moment_text(second.drafted.when.at)})"
    assert history["What"][0] == f"Superseded: by the audit {april}"


def test_what_changed_meanwhile_is_refused(record: Record, project: Project, draft: Audit) -> None:
    at = opened(project, draft)
    record.write(project.id, AuditSubmitted(draft.id), ME)
    at.button(key="audit_submit").click()
    # the page that is open still shows the step that somebody else has taken
    at.run()
    assert state(record, project, draft) == "submitted"
    assert not at.exception


def test_findings_are_opened_changed_and_overdue(
    record: Record, project: Project, draft: Audit, texts: Texts
) -> None:
    record.write(
        project.id, FindingOpened(draft.id, "f1", "Drift", "high", "Ann", "2020-01-31"), ME
    )
    at = opened(project, draft)
    assert "Overdue" in words(at)
    said = page_text(at).partition("[tab] Findings")[2].partition("[tab]")[0]
    opened_at = record.project(project.id).audits[draft.id].findings["f1"].history[0].when.at
    texts(said.replace(date_text(opened_at), "today"), "one")
    at.text_input(key="finding_new").set_value("No monitoring").run()
    press(at, "finding_open")
    found = record.project(project.id).audits[draft.id].findings
    assert {one.title for one in found.values()} == {"Drift", "No monitoring"}
    at.button_group(key="finding_state_f1").set_value("resolved").run()
    at.button(key="finding_save_f1").click().run()
    assert "for a reason" in at.error[0].value
    at.text_input(key="finding_words_f1").set_value("Trained again").run()
    press(at, "finding_save_f1")
    assert record.project(project.id).audits[draft.id].findings["f1"].state == "resolved"
    assert "Overdue" not in words(at)
    assert "1 finding is overdue" not in words(healthy(launch(PAGE)))


def test_a_comment_is_kept_and_an_empty_one_refused(
    record: Record, project: Project, draft: Audit
) -> None:
    at = opened(project, draft)
    add = next(one for one in at.button if one.label == "Add the comment")
    add.click().run()
    assert "The comment is empty" in at.error[0].value
    area = next(one for one in at.text_area if one.label == "Comment")
    area.set_value("Looks right")
    next(one for one in at.button if one.label == "Add the comment").click().run()
    healthy(at)
    assert "Looks right" in words(at)


def test_an_address_opens_an_audit_to_read(record: Record, project: Project, draft: Audit) -> None:
    at = healthy(launch(PAGE, audit=address(project, draft)))
    assert "Read-only" in words(at)
    assert not keys(at) & {"audit_submit", "finding_open"}
    assert not at.text_area
    press(at, "audit_work")
    assert "audit_submit" in keys(at)
    press(at, "audits_all")
    assert "audit" not in at.query_params
    assert f"open_{project.id}_{draft.id}" in keys(at)


@pytest.mark.usefixtures("elsewhere")
def test_on_a_shared_server_an_address_alone_opens_an_audit(
    record: Record, project: Project, draft: Audit, review: Review, texts: Texts
) -> None:
    at = healthy(launch(PAGE, review.id))
    texts(at, "list")
    assert "March" not in str(at.main)
    at = healthy(launch(PAGE, audit=address(project, draft)))
    assert "The model fails" in plain(at.header[0].value)
    assert not keys(at) & {"audit_work", "audit_submit", "finding_open"}


def test_a_project_with_members_is_for_them_alone(
    record: Record, project: Project, draft: Audit
) -> None:
    member = MemberSet("https://id.example.org", "subject-ann", "Ann", "administrator")
    record.write(project.id, member, ME)
    at = healthy(launch(PAGE))
    assert "March" not in str(at.main)
    at = healthy(launch(PAGE, audit=address(project, draft)))
    assert "you may not see it" in words(at)
    assert "March" not in str(at.main)


@pytest.mark.parametrize("asked", ["x", "x:y", ":", "a" * 5000, "../../etc:passwd"])
def test_an_address_of_no_audit_says_so(record: Record, project: Project, asked: str) -> None:
    at = healthy(launch(PAGE, audit=asked))
    assert "not here" in words(at)
    assert "not here" not in words(press(at, "audits_all"))


def test_a_viewer_sees_no_step_and_a_reviewer_no_approval(
    record: Record, project: Project, draft: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import people

    ben = Person("Ben", "https://id.example.org", "subject-ben", "a test")
    monkeypatch.setattr(people, "current_person", lambda: ben)
    for person, role in ((ANN, "administrator"), (ben, "viewer")):
        assert person.issuer is not None
        assert person.subject is not None
        record.write(
            project.id,
            MemberSet(person.issuer, person.subject, person.name, role),  # type: ignore[arg-type]
            ME if role == "administrator" else ANN,
        )
    at = opened(project, draft)
    assert not keys(at) & {"audit_submit", "audit_work", "finding_open"}
    record.write(project.id, MemberSet(ben.issuer, ben.subject, "Ben", "reviewer"), ANN)  # type: ignore[arg-type]
    press(at.run(), "audit_submit")
    assert "audit_approve" not in keys(at)
    assert "by an approver of the project" in words(at)


def test_the_list_is_filtered(record: Record, project: Project, content: AuditContent) -> None:
    other = record.create("Fraud", ME)
    march = record.draft(project.id, content, ME)
    record.draft(other.id, replace(content, title="April"), ME)
    record.write(project.id, AuditSubmitted(march.id), ME)
    at = healthy(launch(PAGE))
    assert plain(at.header[0].value) == "2 audits in 2 projects: 1 waits for approval."

    def shown() -> set[str]:
        labels = [visible(one.label) for one in at.button if str(one.key).startswith("open_")]
        assert all(re.fullmatch(r"\w+ \(\d+ \w+ \d{4}, \d\d:\d\d UTC\)", one) for one in labels)
        return {one.partition(" ")[0] for one in labels}

    assert shown() == {"March", "April"}
    assert "Predictions " in words(at)  # the review has no model
    assert "Model " not in words(at)
    at.selectbox(key="audits_project").set_value(other.id).run()
    assert shown() == {"April"}
    at.selectbox(key="audits_state").set_value("submitted").run()
    assert shown() == set()
    assert "No audit fits" in words(at)
    at.selectbox(key="audits_project").set_value(None).run()
    assert shown() == {"March"}
    at.selectbox(key="audits_state").set_value(None).run()
    at.text_input(key="audits_text").set_value("APRIL").run()
    assert shown() == {"April"}
    at.text_input(key="audits_text").set_value("").run()
    at.selectbox(key="audits_verdict").set_value("pass").run()
    assert shown() == set()


def test_the_list_grows_by_ten(record: Record, project: Project, content: AuditContent) -> None:
    for at in range(12):
        record.draft(project.id, replace(content, title=f"Audit {at}"), ME)
    page = healthy(launch(PAGE))
    count = lambda: sum(str(one.key).startswith("open_") for one in page.button)  # noqa: E731
    assert count() == 10
    press(page, "audits_more")
    assert count() == 12


def test_names_are_no_markup(
    record: Record, content: AuditContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = record.create(HOSTILE, replace(ME, name=HOSTILE))
    event = LimitsLocked(content.limits, HOSTILE)
    record.write(project.id, event, ME)
    figure = json.loads(content.charts[0].light)
    figure["layout"]["images"] = [{"source": "http://e.org/i"}]
    said = dict.fromkeys(("title", "finding", "alt", "how_to_read"), HOSTILE)
    chart = replace(content.charts[0], **said, light=json.dumps(figure), dark=json.dumps(figure))
    bad = replace(content, title=HOSTILE, charts=(chart,))
    audit = record.draft(project.id, bad, replace(ME, name=HOSTILE))
    record.write(project.id, Commented(audit.id, f"{HOSTILE}\n\n# {'x' * 9_000}"), ME)
    record.write(project.id, FindingOpened(audit.id, "f", HOSTILE, "low", HOSTILE), ME)
    listed = healthy(launch(PAGE))
    one = opened(project, audit)
    for at in (listed, one):
        kinds = (at.header, at.markdown, at.caption, at.info, at.success, at.warning)
        for element in (text for kind in kinds for text in kind):
            assert "<b>" not in element.value, element.value
            assert "](http" not in element.value.replace("](https://", ""), element.value
            assert "\u202e" not in element.value, element.value
        for button in at.button:
            assert "<b>" not in button.label
            assert "\u202e" not in button.label
        for table in at.dataframe:
            assert "\u202e" not in table.value.to_csv()
    assert one.get("plotly_chart")
    assert not any("http://e.org" in chart.proto.spec for chart in one.get("plotly_chart"))
    assert HOSTILE.replace("\u202e", "") in words(one)


def test_a_record_is_verified_with_its_receipt(
    record: Record, project: Project, draft: Audit, texts: Texts
) -> None:
    receipt = json.dumps(record.receipt(project.id, draft.id)).encode()
    at = opened(project, draft)
    at.file_uploader(key="audit_receipts").upload("receipt.json", receipt).run()
    press(at, "audit_verify")
    assert "The record holds. 2 entries, 1 file and 1 receipt were checked" in at.success[0].value
    at.file_uploader(key="audit_receipts").upload("receipt.json", b"[" * 100_000).run()
    at.button(key="audit_verify").click().run()
    assert "This is no receipt" in at.error[0].value


def test_what_was_altered_is_named(record: Record, project: Project, draft: Audit) -> None:
    path = next(one for one in (record.root / "files").rglob("*") if one.is_file())
    path.write_bytes(path.read_bytes() + b" ")
    at = healthy(launch(PAGE))
    at.button(key=f"open_{project.id}_{draft.id}").click().run()
    if at.error:  # unless its content was read before
        assert "was altered" in at.error[0].value
    at.button(key="audit_verify").click().run()
    assert not at.exception
    assert any("The record does not hold" in one.value for one in at.error)


def test_what_a_newer_version_wrote_is_neither_altered_nor_holds(
    record: Record, project: Project, draft: Audit, content: AuditContent
) -> None:
    newer = canonical({**json.loads(content_bytes(content)), "format": 2})
    event = replace(draft.facts, audit="later", title="Later", content=record.files.put(newer))
    record.write(project.id, event, ME)
    at = opened(project, draft)
    kind = RECEIPT.replace("/v1", "/v2")
    receipt = statement({"record": "0" * 64}, kind, {}, signer_of(record.root))
    at.file_uploader(key="audit_receipts").upload("r.json", json.dumps(receipt).encode()).run()
    press(at, "audit_verify")
    assert not at.success
    said = [one.value for one in at.warning if "cannot be checked whole" in one.value]
    assert len(said) == 1
    assert "3 entries, 2 files and 1 receipt were looked at" in said[0]
    for one in ("The audit 'Later'", "Receipt 1"):
        assert f"{one} was written by a newer version of kdcal: update kdcal" in plain(said[0])
    later = launch(PAGE, audit=f"{project.id}:later")
    assert "written by a newer version of kdcal" in plain(later.error[0].value)
    assert not later.exception


def test_a_project_with_an_entry_of_a_newer_version_is_not_passed_over(
    record: Record, project: Project, draft: Audit
) -> None:
    with record.database.writing(project.id) as writing:
        number, last = writing.lines()[-1]
        entry = json.loads(last.payload)
        entry |= {"number": number + 1, "previous": digest(last.payload), "what": "AuditWitnessed"}
        signed = signer_of(record.root).sign(canonical(entry), ENTRY)
        writing.append(number + 1, signed)
    at = healthy(launch(PAGE))
    assert "1 project cannot be read: the record was altered, or a newer kdcal wrote it" in plain(
        at.warning[0].value
    )
    assert f"open_{project.id}_{draft.id}" not in keys(at)


def test_files_of_expired_audits_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: AuditContent, texts: Texts
) -> None:
    from app.shared import audits_here

    old = Moment("2020-01-01T00:00:00.000000Z", "a clock")
    then = Record(tmp_path / "old", clock=lambda: old)
    project = then.create("Credit risk", ME)
    audit = then.draft(project.id, content, ME)
    record = Record(tmp_path / "old")
    monkeypatch.setattr(audits_here, "record", lambda: record)
    at = healthy(launch(PAGE))
    assert f"expired_{project.id}" not in keys(at)
    at.checkbox(key=f"retention_ever_{project.id}").uncheck().run()
    at.number_input(key=f"retention_days_{project.id}").set_value(30).run()
    press(at, f"retention_{project.id}")
    assert record.project(project.id).retention == 30
    assert at.button(key=f"expired_{project.id}").disabled
    at.checkbox(key=f"expired_sure_{project.id}").check().run()
    press(at, f"expired_{project.id}")
    assert not record.project(project.id).audits[audit.id].has_files
    assert not record.files.has(audit.facts.content)
    press(at, f"open_{project.id}_{audit.id}")
    texts(at)


def test_a_project_is_created_and_its_name_is_taken(record: Record) -> None:
    at = healthy(launch(PAGE))
    for _ in range(2):
        at.text_input[-1].set_value("Fraud")
        next(one for one in at.button if one.label == "Create the project").click().run()
    assert "There is a project named 'Fraud' already" in plain(at.error[0].value)
    assert [one.name for one in record.projects()] == ["Fraud"]


def _newer(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(home))
    Record().database.close()
    engine = sql.create_engine(f"sqlite:///{root_of_audits() / 'audits.sqlite'}")
    with engine.begin() as connection:
        connection.execute(sql.text("UPDATE kdcal_schema SET version_num = '9999'"))
    engine.dispose()


def _away(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv(URL, "postgresql://secret-user@127.0.0.1:1/none")


@pytest.mark.parametrize(("broken", "said"), [(_newer, "newer kdcal"), (_away, "cannot be used")])
def test_a_database_that_cannot_be_used_is_one_error_of_this_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, review: Review, broken: Any, said: str
) -> None:
    with monkeypatch.context() as patch:
        broken(patch, tmp_path)
        at = launch(PAGE)
        assert not at.exception
        (error,) = at.error
        assert said in plain(error.value)
        assert at.title[0].value == "Audits"
        healthy(visit(at, "load"))
        healthy(visit(at, "overview"))


@pytest.mark.usefixtures("elsewhere")
def test_a_shared_server_does_not_say_where_its_database_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _away(patch, tmp_path)
        at = launch(PAGE)
        (error,) = at.error
        assert "Ask whoever runs this server" in plain(error.value)
        assert "secret-user" not in str(at.main)


def test_a_regression_is_recorded(workspace: Workspace, record: Record, project: Project) -> None:
    review_id = review_of(workspace, calibration=line(200, 0))
    reviewed = read_review(workspace, review_id)
    settings = replace(audit_settings(reviewed, "Line"), codes=("KC201",))
    reader = ReviewReader(workspace, review_id, review=reviewed)
    found = make_audit(Sets(reader), settings=settings)
    audit = record.draft(project.id, found, ME)
    at = opened(project, audit)
    assert "PIT histogram" in at.button_group(key="audit_chart").options
    at.button_group(key="audit_chart").set_value("coverage").run()
    healthy(at)


def test_the_report_and_the_receipt_are_of_this_audit(
    record: Record, project: Project, draft: Audit
) -> None:
    from app.audits.audit_files import report_of

    report = report_of(record, record.project(project.id), draft).decode()
    assert "March" in report
    assert draft.facts.content in report


def test_the_same_audit_gives_the_same_report_and_the_same_record_the_same_receipt(
    record: Record, project: Project, draft: Audit, content: AuditContent
) -> None:
    from app.audits.audit_files import report_of

    def report() -> bytes:
        now = record.project(project.id)
        return report_of(record, now, now.audits[draft.id])

    first = report()
    assert record.receipt(project.id, draft.id) == record.receipt(project.id, draft.id)
    assert b"Receipt: with this audit" in first
    record.draft(project.id, replace(content, title="Another"), ME)
    assert report() == first
    record.write(project.id, Commented(draft.id, "A word."), ME)
    assert report() != first


def test_audits_of_a_project_stand_in_the_order_of_its_entries_though_a_clock_jumped_back(
    record: Record, project: Project, content: AuditContent
) -> None:
    from app.audits.audit_list import audits_of
    from app.versions.versions_parts import comparable

    other = record.create("Fraud", ME)
    for where, title, hour in (
        (project, "first", 10),
        (project, "second", 8),  # the clock jumped back
        (other, "between", 11),
        (project, "third", 12),
    ):
        record._clock = lambda at=hour: Moment(f"2026-11-25T{at:02}:00:00Z", "a test")
        record.draft(where.id, replace(content, title=title), ME)
    found = record.project(project.id)
    assert [one.facts.title for one in comparable(found)] == ["first", "second", "third"]
    listed = audits_of([found, record.project(other.id)])
    assert [one.audit.facts.title for one in listed] == ["third", "between", "second", "first"]


def test_every_event_has_its_words() -> None:
    from kdcal_core.audit.events import EVENTS
    from kdcal_core.audit.words import _SAID

    assert set(_SAID) == set(EVENTS)


def test_a_check_that_is_no_longer_made_is_named(
    record: Record, project: Project, content: AuditContent
) -> None:
    result = replace(content.checked.results[0], code="KC999")
    checked = replace(content.checked, results=(result, *content.checked.results[1:]))
    audit = record.draft(project.id, replace(content, checked=checked, title="Old"), ME)
    at = opened(project, audit)
    assert "no longer makes KC999" in words(at)


def test_the_file_is_what_was_drafted(
    record: Record, project: Project, draft: Audit, content: AuditContent
) -> None:
    assert record.files.get(draft.facts.content) == content_bytes(content)
    assert isinstance(draft.drafted.event, AuditDrafted)
    assert RetentionSet(30).days == 30
    assert len(new_id()) == 16


BROWSER = """#!/bin/sh
for one in "$@"; do
    case "$one" in --print-to-pdf=*) printf 'pages' > "${one#*=}" ;; esac
done
"""


def test_a_report_is_printed_by_a_job_where_there_is_a_browser(
    project: Project, draft: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [one for one in opened(project, draft).button if one.key == "audit_print_pdf"]
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    monkeypatch.setenv("KDCAL_CHROMIUM", str(browser))
    at = opened(project, draft)
    at = healthy(settle(at.button(key="audit_print_pdf").click().run()))
    assert "Report (PDF)" in [one.label for one in at.get("download_button")]
    assert at.button(key="audit_print_png")
