"""An audit that waits for its draft: kept beside its review, drafted once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from audit_people import ME

from kdcal_core.audit import (
    AuditContent,
    Begun,
    PendingAudit,
    Record,
    drafting,
    forget_pending,
    keep_pending,
    left_behind,
    named_facts,
    pending_of,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Workspace, create_review
from kdcal_core.tasks import Request

HOSTILE = "<b>x</b> \u202e"


@pytest.fixture
def pending(workspace: Workspace) -> PendingAudit:
    review = create_review(workspace)
    asked = Request(
        "a:b", {"given": {"limits": {"KC001": None}}, "n": [1, 2.5]}, "k", "T", review.id
    )
    begun = Begun(2, "since then", "")
    kept = PendingAudit(review.id, asked, "p", HOSTILE, "a", begun, named_facts("platt"))
    keep_pending(workspace, kept)
    return kept


def test_it_is_found_again_as_it_was(workspace: Workspace, pending: PendingAudit) -> None:
    assert pending_of(Workspace(workspace.root), pending.review) == pending
    later = replace(pending, title="Later", calibrator=None)
    keep_pending(workspace, later)
    assert pending_of(workspace, pending.review) == later
    forget_pending(workspace, pending.review)
    assert pending_of(workspace, pending.review) is None
    forget_pending(workspace, pending.review)


def test_a_copy_of_the_review_has_none(workspace: Workspace, pending: PendingAudit) -> None:
    copy = workspace.duplicate(pending.review, "Copy")
    assert pending_of(workspace, copy) is None
    assert not left_behind(workspace, copy)
    assert not left_behind(workspace, pending.review)
    assert pending_of(workspace, pending.review) == pending


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[" * 100_000, b'{"review": 1}', b"\xff"])
def test_a_damaged_file_is_none(
    workspace: Workspace, pending: PendingAudit, content: bytes
) -> None:
    (file,) = workspace.folder(pending.review).glob("audit*.json")
    file.write_bytes(content)
    assert pending_of(workspace, pending.review) is None
    assert pending_of(workspace, "no such review") is None
    assert left_behind(workspace, pending.review)
    assert not left_behind(workspace, "no such review")
    forget_pending(workspace, pending.review)
    assert not left_behind(workspace, pending.review)


def test_it_is_drafted_once(workspace: Workspace, pending: PendingAudit) -> None:
    for expected in (True, False):
        with drafting(workspace, pending) as waits:
            assert waits is expected


def test_a_draft_that_fails_is_kept(workspace: Workspace, pending: PendingAudit) -> None:
    with pytest.raises(InputError), drafting(workspace, pending):
        raise InputError("The disk is full")
    assert pending_of(workspace, pending.review) == pending


class Killed(BaseException):
    pass


def test_one_that_is_killed_before_it_is_forgotten_is_drafted_once(
    workspace: Workspace, pending: PendingAudit, record: Record, content: AuditContent
) -> None:
    project = record.create("Credit risk", ME).id
    drafted = []
    for killed in (True, False):
        with suppress(Killed), drafting(workspace, pending) as waits:
            assert waits
            drafted.append(record.draft(project, content, ME, audit=pending.audit))
            if killed:
                raise Killed
    assert pending_of(workspace, pending.review) is None
    assert drafted[0] == drafted[1]
    assert drafted[0].id == pending.audit
    assert (record.project(project).number, len(record.project(project).audits)) == (2, 1)
    assert record.draft(project, content, ME).id != pending.audit


def test_one_that_took_its_place_is_not_drafted_for_it(
    workspace: Workspace, pending: PendingAudit
) -> None:
    keep_pending(workspace, replace(pending, title="Another"))
    with drafting(workspace, pending) as waits:
        assert not waits
    assert pending_of(workspace, pending.review) is not None
