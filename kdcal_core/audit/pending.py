"""An audit that is being computed: kept beside its review until it has been drafted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kdcal_core.audit.beginning import Begun
from kdcal_core.audit.content import CalibratorFacts, KeptChart
from kdcal_core.errors import InputError
from kdcal_core.review import Workspace
from kdcal_core.store import decode, encode
from kdcal_core.store.disk import locked, write_json
from kdcal_core.tasks import Request

_FILE = "audit_to_draft.json"
_SECONDS = 30.0


@dataclass(frozen=True)
class PendingAudit:
    """An audit whose content a job computes, and what its draft adds.

    Attributes
    ----------
    review : str
        Id of the review that is audited.
    asked : Request
        The job.
    project : str
        Id of the project that it goes to.
    title : str
        Untrusted text.
    audit : str
        The identifier that its draft will have, so that it is drafted once whatever happens.
    begun : Begun
        What was known of its results as it was begun.
    calibrator : CalibratorFacts or None
        The calibrator that was chosen for the model.
    charts : tuple of KeptChart
        Of results that were there when the audit was begun, after those that it draws itself.
    code : str
        SHA-256 of the files of the kdcal that began it, which alone can finish its computation.
    """

    review: str
    asked: Request
    project: str
    title: str
    audit: str
    begun: Begun
    calibrator: CalibratorFacts | None = None
    code: str = ""
    charts: tuple[KeptChart, ...] = field(default=(), repr=False)


def keep_pending(workspace: Workspace, pending: PendingAudit) -> None:
    """Remember the audit, in place of another one of the same review.

    Raises
    ------
    InputError
        If there is no such review.
    OSError
        If its folder cannot be written.
    """
    write_json(_path(workspace, pending.review), encode(pending))


def pending_of(workspace: Workspace, review_id: str) -> PendingAudit | None:
    """The audit of this review that waits for its draft; None without one."""
    if not workspace.exists(review_id):
        return None
    try:
        values = json.loads(_path(workspace, review_id).read_bytes())
        found = decode(PendingAudit, values)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    # a copy of a review has the file of the review that it was copied from
    return found if found.review == review_id else None


def left_behind(workspace: Workspace, review_id: str) -> bool:
    """Whether an audit of this review waits that this kdcal cannot read, as after an update."""
    if not workspace.exists(review_id) or pending_of(workspace, review_id) is not None:
        return False
    try:
        values = json.loads(_path(workspace, review_id).read_bytes())
    except OSError:
        return False
    except (ValueError, RecursionError):
        return True
    # a copy of a review has the file of the review that it was copied from
    named = values.get("review") if isinstance(values, dict) else None
    return not isinstance(named, str) or named == review_id


def forget_pending(workspace: Workspace, review_id: str) -> None:
    """Remember no audit of this review any more."""
    if workspace.exists(review_id):
        _path(workspace, review_id).unlink(missing_ok=True)


@contextmanager
def drafting(workspace: Workspace, pending: PendingAudit) -> Iterator[bool]:
    """Whether this audit still waits for its draft, which the body then writes, and no other does.

    It is forgotten once the body has ended, and kept if the body fails.

    Raises
    ------
    InputError
        If another process writes the draft for too long.
    """
    try:
        with locked(workspace.lock(pending.review, "draft"), seconds=_SECONDS):
            waits = pending_of(workspace, pending.review) == pending
            yield waits
            if waits:
                forget_pending(workspace, pending.review)
    except TimeoutError as error:
        raise InputError(
            "Another session is writing the draft of this audit", fix="Load the page again."
        ) from error


def _path(workspace: Workspace, review_id: str) -> Path:
    return workspace.folder(review_id) / _FILE
