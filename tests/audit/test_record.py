"""Projects and their audits on both databases: what is allowed, kept and refused."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from audit_people import ANN, BEN, EVE, ME
from audit_place import Place

from kdcal_core.audit import (
    AuditApproved,
    AuditContent,
    AuditRejected,
    AuditSubmitted,
    AuditSuperseded,
    Commented,
    Database,
    FindingChanged,
    FindingOpened,
    Happened,
    LimitsLocked,
    MemberSet,
    Moment,
    Person,
    Record,
    RetentionSet,
    content_bytes,
    verify,
)
from kdcal_core.audit.bounds import require_bounded
from kdcal_core.audit.signing import read_statement
from kdcal_core.errors import InputError
from kdcal_core.review import Limit


def test_an_audit_goes_its_way_and_is_read_as_it_was(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    record.write(project.id, AuditSubmitted(audit.id), ME)
    record.write(project.id, AuditApproved(audit.id, "Good enough."), ME)
    found = record.project(project.id).audits[audit.id]
    assert found.state == "approved"
    assert [type(one.event).__name__ for one in found.history] == [
        *("AuditDrafted", "AuditSubmitted", "AuditApproved")
    ]
    assert found.history[-1].who == ME
    assert content_bytes(record.content(found)) == content_bytes(content)
    assert found.facts.verdict == content.checked.verdict


def test_another_process_sees_the_same(place: Place, content: AuditContent) -> None:
    first, second = place.open(), place.open()
    project = first.create("Credit risk", ME)
    audit = first.draft(project.id, content, ME)
    assert second.project(project.id) == first.project(project.id)
    second.write(project.id, AuditSubmitted(audit.id), ME)
    assert first.project(project.id).audits[audit.id].state == "submitted"


STEPS = {
    "approve a draft": lambda a: AuditApproved(a, "Good enough."),
    "reject a draft": lambda a: AuditRejected(a, "No."),
    "supersede a draft": lambda a: AuditSuperseded(a, a),
    "another audit": lambda a: AuditSubmitted("none"),
    "an empty comment": lambda a: Commented(a, " "),
    "a finding without a name": lambda a: FindingOpened(a, "f", "", "low"),
    "a finding of no date": lambda a: FindingOpened(a, "f", "Drift", "low", "", "soon"),
    "an unknown finding": lambda a: FindingChanged(a, "g", "open", "low"),
    "no limits": lambda a: LimitsLocked({}),
    "kept for no day": lambda a: RetentionSet(0),
    "a comment that is a book": lambda a: Commented(a, "x" * 10_001),
    "a finding that is a book": lambda a: FindingOpened(a, "f", "x" * 201, "low"),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_what_is_not_allowed_is_refused_and_leaves_no_line(
    record: Record, content: AuditContent, step: Any
) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    before = record.project(project.id)
    with pytest.raises(InputError):
        record.write(project.id, step(audit.id), ME)
    assert record.project(project.id) == before
    assert len(record.database.read(project.id)) == before.number


def test_a_submitted_audit_cannot_be_submitted_again(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    record.write(project.id, AuditSubmitted(audit.id), ME)
    with pytest.raises(InputError, match="Only an audit that is draft can be submitted"):
        record.write(project.id, AuditSubmitted(audit.id), ME)


def test_an_approval_needs_a_reason_unless_the_verdict_is_pass(
    place: Place, record: Record, content: AuditContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = record.create("Credit risk", ME)
    failed, decided, before = (record.draft(project.id, content, ME).id for _ in range(3))
    assert content.checked.verdict != "pass"
    for one in (failed, decided, before):
        record.write(project.id, AuditSubmitted(one), ME)
    with pytest.raises(InputError, match="An approval needs its reason where the verdict is"):
        record.write(project.id, AuditApproved(failed, " "), ME)
    assert record.project(project.id).audits[failed].state == "submitted"
    record.write(project.id, AuditApproved(decided, "Good enough for triage."), ME)
    # an earlier version asked for none, and what it wrote stays valid
    with monkeypatch.context() as patch:
        patch.setattr("kdcal_core.audit.record.require_reason", lambda *_: None)
        record.write(project.id, AuditApproved(before), ME)
    assert verify(record, project.id).holds
    again = place.open()
    assert again.project(project.id).audits[before].state == "approved"
    again.database.close()
    passing = tuple(one for one in content.checked.results if one.verdict in ("pass", None))
    passed = replace(content, checked=replace(content.checked, results=passing))
    audit = record.draft(project.id, passed, ME).id
    record.write(project.id, AuditSubmitted(audit), ME)
    record.write(project.id, AuditApproved(audit), ME)


def test_a_second_person_approves_where_people_signed_in(
    record: Record, content: AuditContent
) -> None:
    project = record.create("Credit risk", ANN)
    record.write(project.id, MemberSet(BEN.issuer, BEN.subject, "Ben", "approver"), ANN)
    audit = record.draft(project.id, content, ANN)
    record.write(project.id, AuditSubmitted(audit.id), ANN)
    with pytest.raises(InputError, match="second person, and you drafted this one"):
        record.write(project.id, AuditApproved(audit.id, "Good enough."), ANN)
    record.write(project.id, AuditApproved(audit.id, "Good enough."), BEN)
    assert record.project(project.id).audits[audit.id].last(AuditApproved).who == BEN


def test_the_second_of_the_same_name_is_another_person(
    record: Record, content: AuditContent
) -> None:
    project = record.create("Credit risk", ANN)
    twin = Person(ANN.name, ANN.issuer, "another subject", ANN.believed)
    record.write(project.id, MemberSet(twin.issuer, twin.subject, twin.name, "approver"), ANN)
    audit = record.draft(project.id, content, ANN)
    record.write(project.id, AuditSubmitted(audit.id), ANN)
    record.write(project.id, AuditApproved(audit.id, "Good enough."), twin)
    assert record.project(project.id).audits[audit.id].state == "approved"


@pytest.mark.parametrize(
    ("role", "refused"),
    [
        (None, ("draft", "comment", "approve", "member", "keep")),
        ("viewer", ("draft", "comment", "approve", "member", "keep")),
        ("reviewer", ("approve", "member", "keep")),
        ("approver", ("member", "keep")),
        ("administrator", ()),
    ],
)
def test_what_each_role_may_do(
    record: Record, content: AuditContent, role: Any, refused: tuple[str, ...]
) -> None:
    project = record.create("Credit risk", ANN)
    if role is not None:
        record.write(project.id, MemberSet(BEN.issuer, BEN.subject, "Ben", role), ANN)
    audit = record.draft(project.id, content, ANN)
    record.write(project.id, AuditSubmitted(audit.id), ANN)
    steps = {
        "draft": lambda: record.draft(project.id, content, BEN),
        "comment": lambda: record.write(project.id, Commented(audit.id, "Hm."), BEN),
        "approve": lambda: record.write(project.id, AuditApproved(audit.id, "Good enough."), BEN),
        "member": lambda: record.write(
            project.id, MemberSet(EVE.issuer, EVE.subject, "Eve", "viewer"), BEN
        ),
        "keep": lambda: record.write(project.id, RetentionSet(30), BEN),
    }
    found = []
    for name, step in steps.items():
        try:
            step()
        except InputError:
            found.append(name)
    assert tuple(found) == refused


def test_who_did_not_sign_in_is_no_second_person(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    record.write(project.id, AuditSubmitted(audit.id), ME)
    record.write(project.id, MemberSet(ANN.issuer, ANN.subject, "Ann", "administrator"), ME)
    with pytest.raises(InputError, match="it is not known who"):
        record.write(project.id, AuditApproved(audit.id, "Good enough."), ANN)
    with pytest.raises(InputError, match="role of an approver"):
        record.write(project.id, AuditApproved(audit.id, "Good enough."), ME)


def test_a_lock_of_another_project_or_of_two_is_no_excuse(
    record: Record, content: AuditContent
) -> None:
    one, other = (record.create(name, ME).id for name in ("A", "B"))
    looser = replace(content, limits={**content.limits, "KC001": Limit(high=0.9)})
    for limits in (content.limits, looser.limits):
        record.write(one, LimitsLocked(limits), ME)
    assert record.draft(one, content, ME).facts.results_known == ""
    assert record.draft(one, content, ME).facts.results_known == ""  # again under the same lock
    assert record.draft(one, looser, ME).facts.results_known.startswith("since")
    record.write(other, LimitsLocked(content.limits), ME)
    assert record.draft(other, content, ME).facts.results_known.startswith("since")


def test_projects_are_seen_by_their_members_alone(record: Record) -> None:
    project = record.create("Credit risk", ANN)
    record.write(project.id, MemberSet(BEN.issuer, BEN.subject, "Ben", "viewer"), ANN)
    record.create("Fraud", ANN)
    assert [one.name for one in record.projects(ANN)] == ["Credit risk", "Fraud"]
    assert [one.name for one in record.projects(BEN)] == ["Credit risk"]
    assert record.projects(EVE) == ()


def test_the_last_administrator_stays(record: Record) -> None:
    project = record.create("Credit risk", ANN)
    for role in ("viewer", None):
        with pytest.raises(InputError, match="without an administrator"):
            record.write(project.id, MemberSet(ANN.issuer, ANN.subject, "Ann", role), ANN)


def test_findings_have_owners_and_reasons(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    record.write(
        project.id, FindingOpened(audit.id, "f1", "Over-confident", "high", "Ben", "2026-12-31"), ME
    )
    with pytest.raises(InputError, match="for a reason"):
        record.write(project.id, FindingChanged(audit.id, "f1", "resolved", "high"), ME)
    record.write(
        project.id,
        FindingChanged(audit.id, "f1", "resolved", "low", "Ben", "", "Calibrated."),
        ME,
    )
    found = record.project(project.id).audits[audit.id].findings["f1"]
    assert (found.state, found.severity, found.due, len(found.history)) == (
        "resolved",
        "low",
        "",
        2,
    )


def test_limits_locked_before_the_results_are_named(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    number = record.write(project.id, LimitsLocked(content.limits), ME)
    audit = record.draft(project.id, content, ME)
    assert (audit.facts.locked, audit.facts.results_known) == (number, "")


def test_limits_locked_after_the_results_are_said_to_be(
    record: Record, content: AuditContent
) -> None:
    project = record.create("Credit risk", ME)
    first = record.draft(project.id, content, ME)
    assert (first.facts.locked, first.facts.results_known) == (None, "")
    record.write(project.id, LimitsLocked(content.limits), ME)
    second = record.draft(project.id, content, ME)
    assert second.facts.locked is not None
    assert second.facts.results_known.startswith(f"since {first.drafted.when.at}")


def test_an_audit_cannot_name_a_lock_of_other_limits(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    number = record.write(project.id, LimitsLocked(content.limits), ME)
    event = record.draft(project.id, content, ME).facts
    forged = replace(event, audit="other", limits={}, locked=number)
    with pytest.raises(InputError, match="did not lock the limits"):
        record.write(project.id, forged, ME)


def test_deleted_files_are_gone_and_the_record_says_so(
    record: Record, content: AuditContent
) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    other = record.draft(project.id, replace(content, title="Another"), ME)
    record.delete_files(project.id, (audit.id,), "asked by the owner of the data", ME)
    gone = record.project(project.id).audits[audit.id]
    assert not gone.has_files
    assert gone.history[-1].event.words == "asked by the owner of the data"
    assert not record.files.has(audit.facts.content)
    with pytest.raises(InputError, match="were deleted"):
        record.content(gone)
    assert record.content(record.project(project.id).audits[other.id]).title == "Another"


def test_a_deletion_that_was_cut_off_is_made_up_for(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    first, second = (
        record.draft(project.id, replace(content, title=one), ME) for one in ("A", "B")
    )
    stored = record.files.get(first.facts.content)
    record.delete_files(project.id, (first.id,), "asked", ME)
    record.files.put(stored)  # as if the process had ended before it deleted the file
    record.delete_files(project.id, (second.id,), "asked", ME)
    assert not record.files.has(first.facts.content)


def test_another_question_under_the_same_lock_is_said_to_come_later(
    record: Record, content: AuditContent
) -> None:
    project = record.create("Credit risk", ME)
    record.write(project.id, LimitsLocked(content.limits), ME)
    assert record.draft(project.id, content, ME).facts.results_known == ""
    other = replace(content, subject=replace(content.subject, groups=("mean radius",)))
    assert record.draft(project.id, other, ME).facts.results_known.startswith("since")


def test_files_that_another_audit_needs_stay(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    audit, same = (record.draft(project.id, content, ME) for _ in range(2))
    record.delete_files(project.id, (audit.id,), "why not", ME)
    assert record.content(record.project(project.id).audits[same.id]).title == content.title


def test_retention_deletes_what_is_older(place: Place, content: AuditContent) -> None:
    at = ["2026-01-01T00:00:00.000000Z"]
    record = Record(place.root, place.url, clock=lambda: Moment(at[0], "a test"))
    project = record.create("Credit risk", ME)
    old = record.draft(project.id, content, ME)
    record.write(project.id, RetentionSet(30), ME)
    at[0] = "2026-01-30T00:00:00.000000Z"
    assert record.delete_expired(project.id, ME) == ()
    at[0] = "2026-02-02T00:00:00.000000Z"
    assert [one.id for one in record.delete_expired(project.id, ME)] == [old.id]
    assert not record.files.has(old.facts.content)


NAMES = (
    "../../etc/passwd",
    "🦊 fox",
    "\u202eltr",
    "x" * 200,
    "a\x00b",
    "<script>alert(1)</script>",
)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_kept_as_it_is(record: Record, name: str) -> None:
    assert record.project(record.create(name, ME).id).name == name


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "half \ud800"])
def test_names_that_cannot_be_kept_are_refused(record: Record, name: str) -> None:
    with pytest.raises(InputError):
        record.create(name, ME)
    assert record.projects() == ()


UNSEEN = ("\u200b\u200d", "\u202e \u2066", "\u3164", "\ufe0f", "\x00")


@pytest.mark.parametrize("name", UNSEEN)
def test_names_that_show_nothing_are_refused(
    record: Record, content: AuditContent, name: str
) -> None:
    kept = record.create("Credit risk", ANN)
    audit = record.draft(kept.id, content, ANN).id
    opened = partial(FindingOpened, audit, "f", severity="low")
    nobody = replace(ANN, name=name)
    before = record.project(kept.id)

    def write(event: Any, who: Person = ANN) -> None:
        record.write(kept.id, event, who)

    for act, said in (
        (lambda: record.create(name, ANN), "The name of the project shows nothing"),
        (lambda: write(opened(name)), "The title of the finding shows nothing"),
        (lambda: write(opened("Drift", owner=name)), "The owner of the finding shows nothing"),
        (lambda: write(MemberSet("i", "s", name, "viewer")), "The name of the member shows"),
        (lambda: write(Commented(audit, "Why?"), nobody), "The name of the person shows nothing"),
        (
            lambda: record.draft(kept.id, replace(content, title=name), ANN),
            "The title of the audit shows nothing",
        ),
    ):
        with pytest.raises(InputError, match=said) as error:
            act()
        assert error.value.fix == "Write it with letters, digits or signs."
    assert record.projects() == (before,)


def test_a_name_that_shows_nothing_is_read_where_it_was_kept_before(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = place.open()
    with monkeypatch.context() as patch:
        patch.setattr("kdcal_core.audit.record.require_visible_names", lambda _: None)
        project = record.create("\u200b", ANN).id
        record.write(project, MemberSet("i", "s", "\u200b", "viewer"), ANN)
    record.database.close()
    again = place.open()
    assert again.named("\u200b") == again.project(project)
    again.write(project, MemberSet("i", "s", "\u200b", None), ANN)
    assert ("i", "s") not in again.project(project).members
    assert verify(again, project).holds
    again.database.close()


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Commented("a", "x" * 10_001), "The comment has 10,001 characters, and at most 10,000"),
        (FindingOpened("a", "f", "x" * 201, "low"), "The title of the finding has 201"),
        (FindingOpened("a", "f", "Drift", "low", "x" * 201), "The owner of the finding has 201"),
        (AuditRejected("a", "\udc80"), "The reason for the rejection holds characters that no fi"),
        (MemberSet("i", "s" * 2001, "Ann", "viewer"), "The field 'subject' has 2,001 characters"),
        (LimitsLocked({}, note="x" * 10_001), "The note on the limits has 10,001 characters"),
    ],
)
def test_a_text_that_is_too_long_is_named(event: Any, said: str) -> None:
    happened = Happened(1, Moment("2026-01-03T09:00:00Z", "a test"), ME, event)
    with pytest.raises(InputError, match=said):
        require_bounded(happened)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The projects whose lines were read, in order."""
    found, lines = list[str](), Database.read
    monkeypatch.setattr(Database, "read", lambda *given: found.append(given[1]) or lines(*given))
    return found


def two_projects(place: Place, content: AuditContent) -> tuple[str, str, str]:
    """Two projects, and the id of the one audit, which is in the second."""
    record = place.open()
    first, second = (record.create(one, ME).id for one in ("Credit risk", "Fraud"))
    audit = record.draft(second, content, ME).id
    record.database.close()
    return first, second, audit


def test_creating_a_project_reads_no_record_of_another(
    place: Place, content: AuditContent, read: list[str]
) -> None:
    two_projects(place, content)
    record = place.open()
    read.clear()
    made = record.create('Churn 100% "_"', ME)
    assert set(read) == {made.id}
    record.database.close()


def test_an_audit_is_found_without_reading_other_projects(
    place: Place, content: AuditContent, read: list[str]
) -> None:
    first, second, audit = two_projects(place, content)
    record = place.open()
    record.write(first, LimitsLocked(content.limits, note=f'"audit":"{audit}"'), ME)
    read.clear()
    for begins in (audit, audit[:4]):
        assert [(one.id, it.id) for one, it in record.audits_like(begins)] == [(second, audit)]
    assert set(read) == {second}
    for begins in (audit.upper() + "x", "%", "_" * 16, "x" * 129, "half \ud800"):
        assert record.audits_like(begins) == ()
    record.database.close()


def test_a_draft_reads_the_projects_that_know_its_rows_alone(
    place: Place, content: AuditContent, read: list[str]
) -> None:
    _first, second, _ = two_projects(place, content)
    record = place.open()
    other = record.create("Churn", ME).id
    read.clear()
    made = record.draft(other, content, ME)
    assert "by an earlier audit" in made.facts.results_known  # that of another project
    assert set(read) == {second, other}
    record.database.close()


def test_projects_that_are_known_are_not_read_again(
    place: Place, content: AuditContent, read: list[str]
) -> None:
    first, second, audit = two_projects(place, content)
    record, other = place.open(), place.open()
    before = record.projects()
    read.clear()
    assert record.projects() == before
    assert record.unreadable() == ()
    assert read == []
    other.write(second, AuditSubmitted(audit), ME)
    read.clear()
    assert {one.id: one.number for one in record.projects()} == {first: 1, second: 3}
    assert set(read) == {second}
    record.database.close()
    other.database.close()


def test_a_name_is_taken_once(record: Record) -> None:
    record.create("Credit risk", ME)
    with pytest.raises(InputError, match="already"):
        record.create("Credit risk", ME)


def test_two_writers_lose_nothing(place: Place, content: AuditContent) -> None:
    opened = place.open()
    project = opened.create("Credit risk", ME)
    audit = opened.draft(project.id, content, ME)

    def write(name: str) -> None:
        mine = place.open()
        for at in range(10):
            mine.write(project.id, Commented(audit.id, f"{name} {at}"), ME)

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = opened.project(project.id).audits[audit.id].history[1:]
    assert sorted(one.event.words for one in found) == sorted(
        f"{name} {at}" for name in "ab" for at in range(10)
    )


def test_a_receipt_names_head_and_content(record: Record, content: AuditContent) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    receipt = record.receipt(project.id, audit.id)
    said = read_statement(
        receipt, "https://kdcal.org/receipt/v1", [*record.project(project.id).keys.values()]
    )
    digests = {one["name"]: one["digest"]["sha256"] for one in said["subject"]}
    assert digests == {
        "record": record.project(project.id).head,
        "audit": audit.facts.content,
    }
    assert said["predicate"]["number"] == 2
