"""Audits: signed records of reviews, their history, and what must still be dealt with."""

from __future__ import annotations

from app.audits import audit_address
from app.audits import audit_parts as parts
from app.shared import audits_here, people, session

parts.title()
who = people.current_person()
asked = audit_address.asked()
with audits_here.reporting_errors():
    record = audits_here.record()
    if asked is not None:
        parts.one_audit(record, asked, who)
    else:
        parts.overview(record, session.current_review(), who)
