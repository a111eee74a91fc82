"""An audit that takes no time, for the tests and the study of kills."""

from __future__ import annotations

from workerless import working_here

from kdcal_core.audit import AuditContent, AuditSettings, audit_settings, make_audit
from kdcal_core.review import Review, ReviewReader, Workspace, score, start_sample
from kdcal_core.tasks import Sets

CODES = ("KC001", "KC002", "KC101")
"""Checks that take no time."""


def scored_sample(workspace: Workspace) -> Review:
    """The sample of cancers, scored."""
    with working_here():
        return score(workspace, start_sample(workspace, "breast_cancer").id)


def quick_audit(workspace: Workspace, review: Review) -> AuditContent:
    """An audit of few checks."""
    settings = audit_settings(review)
    quick = AuditSettings(
        settings.title, settings.which, settings.event, limits=settings.limits, codes=CODES
    )
    return make_audit(Sets(ReviewReader(workspace, review.id, review=review)), settings=quick)
