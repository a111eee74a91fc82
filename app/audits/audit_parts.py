"""The two faces of the page Audits: the list, and one audit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app.audits import (
    audit_actions,
    audit_address,
    audit_files,
    audit_list,
    audit_view,
    members,
    projects,
    recording,
)
from app.shared import audits_here, navigation, page_top, people, session
from app.shared.emphasis import emphasis, quiet
from app.shared.kept_audits import whole_content
from app.shared.sections import sections
from kdcal_core.audit import Audit, Person, Project, Record
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.text import counted, escape_markdown


def title() -> None:
    """The page's one heading of the first level."""
    st.title(navigation.places()["audits"].title, anchor=False)


def overview(record: Record, review: Review | None, who: Person) -> None:
    """All audits that this person may see, the projects, and the way from a review to an audit."""
    page_top.header(review)
    if not people.may_work(who):
        st.info(
            "On a server that others visit too, audits are neither listed nor recorded for people "
            "who have not signed in. An audit can be opened by its address, to be read.",
            icon=":material/lock:",
        )
        return
    ready = review if review is not None and review.ready else None
    seen = record.projects(who)
    found = audit_list.audits_of(seen)
    if hidden := record.unreadable():
        st.warning(
            f"{counted(len(hidden), 'project')} cannot be read: the record was altered, or a newer "
            "kdcal wrote it. Run 'kdcal audit verify' on this server to see what is wrong.",
            icon=":material/gpp_bad:",
        )
    if found:
        st.header(escape_markdown(audit_list.summary(found, seen), 300), anchor=False)
    if ready is not None and not recording.is_recording(ready):
        _offer(ready, first=not found)
    recording.recording(record, ready, seen, who)
    if not found and ready is None and not recording.is_recording(ready):
        page_top.empty_state("audits", unfinished=review is not None)
    if seen:
        sections(
            "audits_sections",
            {
                "All audits": partial(audit_list.audit_list, seen),
                "Projects": partial(projects.projects_list, record, seen, who),
            },
        )
    else:
        members.ask_for_access(who)
        with st.expander("Projects", icon=":material/folder:", key="audits_first_project"):
            projects.projects_list(record, seen, who)


def _offer(review: Review, *, first: bool) -> None:
    """The button that opens the form, with what will appear where there is no audit yet."""
    if audits_here.asked_to_record(review):
        return
    if first:
        with st.container(border=True):
            st.markdown(navigation.places()["audits"].will_show)
            _open_form(review)
    else:
        _open_form(review)


def _open_form(review: Review) -> None:
    if st.button(
        "Record an audit", key="audit_form_open", type=emphasis(), icon=":material/history_edu:"
    ):
        audits_here.ask_to_record(review)
        st.rerun()


def one_audit(record: Record, asked: tuple[str, str], who: Person) -> None:
    """The audit that the address names, as it was."""
    audit_address.without_review()
    found = _find(record, asked, who)
    if found is None:
        st.warning(
            "The audit named in the address is not here, or you may not see it. The address may "
            "be incomplete, or you may have to sign in.",
            icon=":material/link_off:",
        )
        members.ask_for_access(who)
        if st.button("All audits", key="audits_all", icon=":material/arrow_back:"):
            audit_address.close()
        return
    project, audit = found
    above = st.container(horizontal=True, vertical_alignment="center", gap="small")
    audit_view.header(project, audit)
    allowed = people.may_work(who) and project.may(who, "reviewer")
    working = allowed and audit_address.to_work_on(project.id, audit.id)
    write = audit_actions.writer(record, project, who) if working else None
    with above:
        event = _bar(record, project, audit, who, working=working, allowed=allowed)
    if event is not None and write is not None:
        write(event)
    audit_view.verdict(project, audit)
    of = f"{project.name} {audit.facts.title}"
    try:
        content = whole_content(record, audit) if audit.has_files else None
    except InputError as error:
        session.error_box(error)
        content = None
    if content is not None:
        audit_view.answer(content, of=of)
    elif not audit.has_files:
        audit_view.without_files(audit)
    parts: dict[str, Callable[[], None]] = {}
    if content is not None:
        parts["Charts"] = partial(audit_view.charts, content, of=of)
    parts |= {
        "Findings": partial(audit_actions.findings, audit, write),
        "Comments": partial(audit_actions.comments, audit, write),
        "History": partial(audit_view.history, project, audit),
        "Limits": partial(audit_view.limits, project, audit),
    }
    if content is not None:
        parts |= {
            "Estimates": partial(audit_view.estimates, content, of=of),
            "What was audited": partial(audit_view.identity, content, audit),
        }
    parts["Verify"] = partial(audit_files.verification, record, project, audit)
    sections("audit_sections" if content is not None else "audit_sections_left", parts)


def _find(record: Record, asked: tuple[str, str], who: Person) -> tuple[Project, Audit] | None:
    """The project and the audit of an address, if they are there and this person may see them."""
    project_id, audit_id = asked
    if not record.database.has(project_id):
        return None
    project = record.project(project_id)
    audit = project.audits.get(audit_id)
    return (project, audit) if audit is not None and project.may(who, "viewer") else None


def _bar(
    record: Record, project: Project, audit: Audit, who: Person, *, working: bool, allowed: bool
) -> Any:
    """The way back, the steps that lead on, and files; the event that was asked for."""
    if st.button("All audits", key="audits_all", icon=":material/arrow_back:", type=quiet()):
        audit_address.close()
    event = audit_actions.steps(project, audit, who) if working else None
    if not working:
        st.badge("Read-only", icon=":material/visibility:", color="gray")
        if allowed and st.button("Work on it", key="audit_work", icon=":material/edit:"):
            audit_address.allow_work(project.id, audit.id)
            st.rerun()
    audit_files.downloads(record, project, audit)
    if link := audit_address.link(st.context.url, project.id, audit.id):
        with st.popover("Link", icon=":material/link:", type=quiet()):
            st.caption("It opens this audit read-only, for whoever may see it.")
            st.code(link, language=None)
    return event
