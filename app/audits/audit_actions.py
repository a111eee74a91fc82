"""What can be done with an audit: its next state, its findings, comments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import streamlit as st

from app.audits.audit_words import SEVERITY_MARKS, today
from app.shared import in_browser, session
from app.shared.emphasis import emphasis, quiet
from app.shared.labels import unique_labels, words_of
from app.shared.sections import folded
from kdcal_core.audit import (
    FINDING_STATES,
    FINDING_WORDS,
    SEVERITIES,
    Audit,
    AuditApproved,
    AuditRejected,
    AuditSubmitted,
    AuditSuperseded,
    Commented,
    Finding,
    FindingChanged,
    FindingOpened,
    Person,
    Project,
    Record,
    Role,
    audit_choices,
    date_text,
    deliver_in_background,
    moment_text,
    new_id,
    person_text,
)
from kdcal_core.errors import InputError
from kdcal_core.text import escape_markdown

_LONGEST_NAME, _LONGEST_TEXT = 200, 10_000
_AT_FIRST = 1_000  # characters of a comment that are shown before it is unfolded
_SHOWN = 20  # comments or findings
_BY_HAND = (
    "Nobody signed in, so the record cannot show that this is another person than the one who "
    "drafted it."
)

Write = Callable[[Any], None]


def writer(record: Record, project: Project, who: Person) -> Write:
    """Writes an event to the project's record and shows the page anew, or says what was refused."""

    def write(event: Any) -> None:
        try:
            record.write(project.id, event, who)
        except InputError as error:
            session.error_box(error, of_action=True)
        else:
            deliver_in_background(record)
            in_browser.focus_title()  # where the button is gone with its step
            st.rerun()

    return write


def steps(project: Project, audit: Audit, who: Person) -> Any:
    """The steps that lead on from the audit's state, each in a popover that asks first.

    Returns
    -------
    The event that was asked for; None without one.
    """
    if audit.state == "draft" and project.may(who, "reviewer"):
        return _submit(audit)
    if audit.state == "submitted":
        if not project.may(who, "approver"):
            return _waits("approver", "approved or rejected")
        return _approve(audit, who) or _reject(audit)
    if audit.state == "approved" and project.may(who, "approver"):
        return _supersede(project, audit)
    return None


def _waits(role: Role, what: str) -> None:
    st.caption(f"It can be {what} by an {role} of the project.")


def _submit(audit: Audit) -> Any:
    with st.popover("Submit", icon=":material/outbox:", type=emphasis(), key="step_submit"):
        st.markdown(
            "Submit this audit for approval. From here on it cannot be a draft again: it will be "
            "approved or rejected."
        )
        if st.button("Submit it", key="audit_submit", type=emphasis()):
            return AuditSubmitted(audit.id)
    return None


def _approve(audit: Audit, who: Person) -> Any:
    with st.popover("Approve", icon=":material/verified:", type=emphasis(), key="step_approve"):
        st.markdown(escape_markdown(audit.facts.headline, 500))
        st.markdown(
            "An approval says that the audit is right, whatever its verdict on the model is. It "
            "cannot be taken back, only superseded."
        )
        if who.identity is None:
            st.caption(_BY_HAND)
        label = "Remark (optional)" if audit.facts.verdict == "pass" else "Reason"
        words = st.text_area(label, key="audit_approve_words", max_chars=_LONGEST_TEXT, height=80)
        if st.button("Approve it", key="audit_approve", type=emphasis()):
            return AuditApproved(audit.id, words)
    return None


def _reject(audit: Audit) -> Any:
    with st.popover("Reject", icon=":material/block:", key="step_reject"):
        st.markdown(
            "Reject this audit, with the reason. A rejection cannot be taken back: a new audit of "
            "the same review can be recorded."
        )
        words = st.text_area("Reason", key="audit_reject_words", max_chars=_LONGEST_TEXT, height=80)
        if st.button("Reject it", key="audit_reject", type=emphasis()):
            return AuditRejected(audit.id, words)
    return None


def _supersede(project: Project, audit: Audit) -> Any:
    others = [
        one for one in project.audits.values() if one.state == "approved" and one.id != audit.id
    ]
    with st.popover("Supersede", icon=":material/history:", key="step_supersede"):
        st.markdown(
            "Another approved audit of the project takes the place of this one. This cannot be "
            "taken back."
        )
        if not others:
            st.caption("The project has no other approved audit.")
            return None
        labels = audit_choices(project.audits.values())
        by = st.selectbox(
            "Superseded by",
            [one.id for one in others],
            format_func=labels.__getitem__,
            key="audit_by",
        )
        if st.button("Supersede it", key="audit_supersede", type=emphasis()):
            return AuditSuperseded(audit.id, by)
    return None


def findings(audit: Audit, write: Write | None) -> None:
    """The findings of an audit; with ``write`` they can be opened and changed."""
    found = sorted(
        audit.findings.values(),
        key=lambda one: (FINDING_STATES.index(one.state), -SEVERITIES.index(one.severity)),
    )
    if not found:
        st.markdown("No finding has been opened.")
    shown = found if st.session_state.get("audit_all_findings") else found[:_SHOWN]
    names = unique_labels([words_of(one.title, 40) for one in shown])
    for one, name in zip(shown, names, strict=True):
        _finding(audit, one, name, write)
    if len(found) > len(shown):
        st.checkbox(f"Show all {len(found):,} findings", key="audit_all_findings")
    if write is not None:
        _open_finding(audit, write)


def _finding(audit: Audit, finding: Finding, name: str, write: Write | None) -> None:
    mark = SEVERITY_MARKS[finding.severity]
    with st.container(gap=None):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(mark.word, icon=mark.icon, color=mark.colour)  # type: ignore[arg-type]
            st.badge(FINDING_WORDS[finding.state], color="gray")
            if finding.overdue(today()):
                st.badge("Overdue", icon=":material/alarm:", color="red")
            st.subheader(escape_markdown(finding.title, 200), anchor=False, width="content")
            if write is not None:
                st.space("stretch")
                with st.popover(f"Change {name}", type=quiet(), key=f"finding_{finding.id}"):
                    _change_finding(audit, finding, write)
        st.caption(_facts(finding))


def _facts(finding: Finding) -> str:
    parts = [
        f"Owner: {escape_markdown(finding.owner, 200)}" if finding.owner else "No owner",
        f"due {date_text(finding.due)}" if finding.due else "no date",
        f"opened {date_text(finding.history[0].when.at)} by "
        f"{escape_markdown(finding.history[0].who.name, 80)}",
    ]
    words = getattr(finding.history[-1].event, "words", "")
    return " · ".join([*parts, *([escape_markdown(words, 600)] if words else [])])


def _open_finding(audit: Audit, write: Write) -> None:
    with st.popover("Open a finding", icon=":material/add:"):
        title = st.text_input("What must be dealt with", max_chars=_LONGEST_NAME, key="finding_new")
        severity, owner, due = _asked("new", "medium", "", None)
        if not st.button("Open it", key="finding_open", type=emphasis()):
            return
    write(FindingOpened(audit.id, new_id(), title, severity, owner, due))


def _asked(key: str, severity: Any, owner: str, due: date | None) -> tuple[Any, str, str]:
    """Severity, owner and date, as chosen."""
    chosen = st.segmented_control(
        "Severity",
        SEVERITIES,
        default=severity,
        required=True,
        format_func=lambda one: SEVERITY_MARKS[one].word,
        key=f"finding_severity_{key}",
    )
    name = st.text_input(
        "Owner (optional)", value=owner, max_chars=_LONGEST_NAME, key=f"finding_owner_{key}"
    )
    day = st.date_input("Due (optional)", value=due, key=f"finding_due_{key}")
    return chosen, name, day.isoformat() if isinstance(day, date) else ""


def _change_finding(audit: Audit, finding: Finding, write: Write) -> None:
    state = st.segmented_control(
        "State",
        FINDING_STATES,
        default=finding.state,
        required=True,
        format_func=FINDING_WORDS.__getitem__,
        key=f"finding_state_{finding.id}",
    )
    due = date.fromisoformat(finding.due) if finding.due else None
    severity, owner, day = _asked(finding.id, finding.severity, finding.owner, due)
    words = st.text_input(
        "What was done, or who decided", max_chars=1_000, key=f"finding_words_{finding.id}"
    )
    if st.button("Save", key=f"finding_save_{finding.id}", type=emphasis()):
        write(FindingChanged(audit.id, finding.id, state, severity, owner, day, words))


def comments(audit: Audit, write: Write | None) -> None:
    """The comments on an audit, the last one first; with ``write`` another can be added."""
    said = [one for one in reversed(audit.history) if isinstance(one.event, Commented)]
    if not said:
        st.markdown("No comment yet.")
    shown = said if st.session_state.get("audit_all_comments") else said[:_SHOWN]
    for one in shown:
        by = escape_markdown(person_text(one.who), 200)
        st.caption(f"**{by}**, {moment_text(one.when.at)}, entry {one.number}")
        _words(one.event.words, key=f"comment_{one.number}")
    if len(said) > len(shown):
        st.checkbox(f"Show all {len(said):,} comments", key="audit_all_comments")
    if write is not None:
        with st.form("audit_comment", clear_on_submit=True, border=False):
            words = st.text_area("Comment", max_chars=_LONGEST_TEXT, height=80)
            sent = st.form_submit_button("Add the comment", icon=":material/add_comment:")
        if sent:
            write(Commented(audit.id, words))


def _words(words: str, *, key: str) -> None:
    """A text of several paragraphs; what is long is cut until it is unfolded."""
    if len(words) <= _AT_FIRST:
        st.markdown(_paragraphs(words))
        return
    st.markdown(_paragraphs(words[:_AT_FIRST]) + " …")
    folded("All of it", key, lambda: st.markdown(_paragraphs(words)))


def _paragraphs(words: str) -> str:
    escape = partial(escape_markdown, limit=_LONGEST_TEXT)
    return "\n\n".join(filter(None, map(escape, words.splitlines())))
