"""Marks of states and severities, and what the page alone says of audits."""

from __future__ import annotations

from datetime import UTC, date, datetime

from app.shared.check_list import Mark
from kdcal_core.audit import Audit, Severity, State

STATE_MARKS: dict[State, Mark] = {
    "draft": Mark("Draft", ":material/edit_note:", "gray"),
    "submitted": Mark("Submitted", ":material/outbox:", "blue"),
    "approved": Mark("Approved", ":material/verified:", "green"),
    "rejected": Mark("Rejected", ":material/block:", "red"),
    "superseded": Mark("Superseded", ":material/history:", "gray"),
}
SEVERITY_MARKS: dict[Severity, Mark] = {
    "high": Mark("High", ":material/keyboard_double_arrow_up:", "red"),
    "medium": Mark("Medium", ":material/keyboard_arrow_up:", "orange"),
    "low": Mark("Low", ":material/keyboard_arrow_down:", "gray"),
}


def today() -> date:
    """The day in UTC, as all times of the record are."""
    return datetime.now(UTC).date()


def overdue_findings(audit: Audit) -> int:
    """How many findings are open after their date."""
    return sum(one.overdue(today()) for one in audit.findings.values())
