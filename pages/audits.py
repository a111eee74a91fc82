"""Audits: signed records of reviews, their history, and what must still be dealt with."""

from __future__ import annotations

from app.audits import audit_address
from app.audits import audit_parts as parts
from app.shared import audits_here, page_top, people, session

parts.title()
who = people.current_person()
asked = audit_address.asked()
review = session.current_review()
with audits_here.reporting_errors():
    record = audits_here.record()
    if asked is not None:
        page_top.doubts_alone(review)
        parts.one_audit(record, asked, who)
    else:
        parts.overview(record, review, who)
