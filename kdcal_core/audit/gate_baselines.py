"""The earlier audits with which a gate's limits may compare, and whether one asked the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kdcal_core.audit.config import AuditConfig
from kdcal_core.audit.content import AuditContent, Baseline, read_content
from kdcal_core.audit.events import AuditApproved
from kdcal_core.audit.project import Audit
from kdcal_core.audit.record import Record
from kdcal_core.audit.signing import digest
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.text import listed

LATEST = "latest"


def earlier_audits(config: AuditConfig, record: Record | None) -> list[Callable[[], bytes]]:
    """What reads the earlier audits that limits may compare with, the preferred one first."""
    if config.baseline == LATEST:
        assert record is not None
        files = record.files
        return [partial(files.get, one.facts.content) for one in _approved(config, record)]
    if not config.baseline:
        return []
    path = Path(config.baseline)
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The baseline cannot be read ({error.strerror or error})",
            fix="Name the file audit.json of an earlier audit.",
            file=path.name,
        ) from error
    return [lambda: stored]


def first_alike(
    earlier: Sequence[Callable[[], bytes]], review: Review, event: int | None
) -> Baseline:
    """The first of the earlier audits that asked the same; the first one's error without any."""
    errors = []
    for read in earlier:
        stored = read()
        content = read_content(stored)
        try:
            _require_alike(content, review, event)
        except InputError as error:
            errors.append(error)
        else:
            return Baseline(content.title, digest(stored), content.measured)
    if len(errors) == 1:
        raise errors[0]
    raise InputError(
        f"None of the {len(errors):,} approved audits asked what this audit asks. The latest: "
        f"{errors[0].what}",
        fix="Approve one that asks the same, or name its file as the baseline.",
    )


def _require_alike(content: AuditContent, review: Review, event: int | None) -> None:
    """Refuse an earlier audit of another task, other classes, or another event or view."""
    subject, named = content.subject, f"The baseline {content.title[:80]!r}"
    if subject.task != review.task:
        raise InputError(
            f"{named} is of a {subject.task}, and this audit of a {review.task}",
            fix="Name an audit of the same task.",
        )
    if sorted(subject.classes) != sorted(review.classes):
        theirs, ours = (
            listed([repr(one[:40]) for one in names], 5)
            for names in (subject.classes, review.classes)
        )
        raise InputError(
            f"{named} has the classes {theirs}, and this audit {ours}",
            fix="Name an audit of the same classes.",
        )
    asked = None if event is None else review.classes[event]
    if subject.event != asked:
        theirs, ours = (
            "the confidence in the predicted class" if one is None else f"the event {one[:40]!r}"
            for one in (subject.event, asked)
        )
        raise InputError(
            f"{named} judges {theirs}, and this audit {ours}",
            fix="Name an audit of the same event and view.",
        )


def _approved(config: AuditConfig, record: Record) -> list[Audit]:
    """The project's approved audits whose files are there, the one approved last first."""
    project = record.named(config.project) if config.project else None
    approved = [
        (found.number, one)
        for one in (project.audits.values() if project is not None else ())
        if one.state == "approved" and one.has_files and (found := one.last(AuditApproved))
    ]
    if not approved:
        raise InputError(
            "There is no approved audit that limits could compare with",
            fix="Approve one in the project, or name a file as the baseline.",
        )
    return [one for _, one in sorted(approved, key=lambda pair: pair[0], reverse=True)]
