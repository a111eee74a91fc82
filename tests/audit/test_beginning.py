"""What was known of results before limits were locked: by the list's numbers, not by a clock."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audit_people import ME
from audit_place import Place

from kdcal_core.audit import (
    AuditContent,
    Happened,
    LimitsLocked,
    Moment,
    Record,
    begin,
    limits_text,
    since_when,
    verify,
)
from kdcal_core.review import FirstResults, Known, KnownResults, PlaceInList, Review, note_results

ROWS = "a" * 64
NOON, LATER = "2026-11-25T12:00:00.000000Z", "2026-11-25T13:00:00.000000Z"
KNOWN = Known("one", NOON, last=9, rows={ROWS: FirstResults(5, LATER, "a-server")})


def lock(at: str, place: PlaceInList | None) -> Happened:
    return Happened(2, Moment(at, "a clock"), ME, LimitsLocked({}, "", place))


@pytest.mark.parametrize(
    ("at", "place", "before", "doubt"),
    [
        (NOON, PlaceInList("one", 4), False, ""),
        ("2026-11-25T14:00:00.000000Z", PlaceInList("one", 5), True, ""),
        # locked first, by a clock that was set back since
        ("2026-11-25T14:00:00.000000Z", PlaceInList("one", 4), False, "the clock was set back"),
        # locked after the results, when the clock had been set back
        (NOON, PlaceInList("one", 5), True, "the clock was set back"),
        (NOON, PlaceInList("another", 99), False, "only the clocks say"),
        ("2026-11-25T14:00:00.000000Z", PlaceInList("another", 0), True, "only the clocks say"),
        (NOON, None, False, "only the clocks say"),
        (LATER, None, True, "only the clocks say"),
    ],
)
def test_the_list_s_numbers_say_what_came_first(
    at: str, place: PlaceInList | None, before: bool, doubt: str
) -> None:
    known, after = since_when(lock(at, place), KNOWN, [ROWS])
    assert bool(known) is before
    assert bool(after) is not before
    assert LATER in known + after
    for words in ("the clock was set back", "only the clocks say"):
        assert (words in known + after) is (words == doubt)


def test_what_is_not_known_is_not_claimed() -> None:
    for one in (None, lock(NOON, None)):
        assert since_when(one, None, [ROWS]) == ("", "")
        known, said = since_when(one, replace(KNOWN, rows={}, forgotten=1_200), [ROWS])
        assert known == ""
        assert said.endswith(f"since {NOON}, when its list began, of which it forgot the oldest "
                             "1,200")  # fmt: skip


def drafted(record: Record, content: AuditContent, review: Review, name: str, *steps: str) -> str:
    """What an audit says of its limits after some steps in a new project."""
    project, begun = record.create(name, ME).id, None
    for step in steps if "begin" in steps else (*steps, "begin"):
        if step == "see":
            note_results(review)
        elif step == "lock":
            record.lock(project, content.limits, ME)
        else:
            begun = begin(record.project(project), content.limits, review, content.subject.which)
    audit = record.draft(project, content, ME, begun=begun)
    assert verify(record, project).holds
    return limits_text(audit, record.project(project))


def test_an_audit_says_what_this_machine_knew(
    record: Record, content: AuditContent, review: Review
) -> None:
    said = drafted(record, content, review, "A", "lock", "see")
    assert "The record holds no earlier result" in said
    assert "on this machine" in said
    assert said.endswith("after the lock.")


def test_limits_that_are_locked_after_results_elsewhere_on_this_machine_are_said_to_be(
    record: Record, content: AuditContent, review: Review
) -> None:
    said = drafted(record, content, review, "A", "see", "lock")
    assert "were known when they were locked: since" in said
    assert "when kdcal first computed them on this machine" in said


def test_without_results_on_this_machine_it_says_since_when_it_would_know(
    record: Record, content: AuditContent, review: Review
) -> None:
    said = drafted(record, content, review, "A", "lock")
    assert "none had been computed on this machine since" in said
    assert said.endswith("when its list began.")


def test_a_lock_that_is_made_while_results_are_computed_comes_too_late(
    record: Record, content: AuditContent, review: Review
) -> None:
    said = drafted(record, content, review, "A", "begin", "lock")
    assert said.startswith("The limits were not locked beforehand.")
    other = drafted(record, replace(content, seed=1), review, "B", "lock")
    assert "were known when they were locked: since" in other


def test_a_lock_names_how_far_the_list_went(place: Place, content: AuditContent) -> None:
    record = place.open()
    project = record.create("A", ME).id
    KnownResults().note([ROWS])
    record.lock(project, content.limits, ME, note="As agreed")
    (found,) = place.open().project(project).locks
    known = KnownResults().read()
    assert known is not None
    assert found.event == LimitsLocked(content.limits, "As agreed", known.place)
    assert known.place.number == 1
