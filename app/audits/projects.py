"""The projects of audits: to create one, to say how long files are kept, to delete old files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app.audits import members
from app.audits.audit_view import history_table
from app.shared import session
from app.shared.emphasis import quiet
from app.shared.labels import words_of
from kdcal_core.audit import (
    Audit,
    Person,
    Project,
    Record,
    RetentionSet,
    audit_labels,
    expired,
    now,
)
from kdcal_core.errors import InputError
from kdcal_core.text import counted, escape_markdown, listed

_DAYS = (1, 36_600)
_YEARS = 3_650  # days that are offered where files have been kept for ever


def projects_list(record: Record, projects: Sequence[Project], who: Person) -> None:
    """Every project with what it holds, and a form for a new one."""
    for project in projects:
        _project(record, project, who)
    if not projects:
        st.markdown("There is no project yet. A project holds the audits of one model or team.")
    with (
        st.form("project_new", clear_on_submit=True, border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        name = st.text_input("Name of a new project", max_chars=200)
        sent = st.form_submit_button("Create the project", icon=":material/add:")
    if sent:
        _doing(lambda: record.create(name, who))
    if projects:
        members.ask_for_access(who)


def _project(record: Record, project: Project, who: Person) -> None:
    of_it = f"of {words_of(project.name, 40)}"
    with st.container(gap=None):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.subheader(escape_markdown(project.name, 200), anchor=False, width="content")
            st.space("stretch")
            with st.popover(
                f"History {of_it}",
                type=quiet(),
                icon=":material/history:",
                key=f"project_history_{project.id}",
                on_change="rerun",
            ) as opened:
                if opened.open:
                    history_table(
                        [*reversed(project.history)][:50], project, key=f"entries_{project.id}"
                    )
            if project.may(who, "administrator"):
                members.members(record, project, who, f"Members {of_it}")
                with st.popover(
                    f"Files {of_it}",
                    type=quiet(),
                    icon=":material/tune:",
                    key=f"project_{project.id}",
                ):
                    _retention(record, project, who)
                    _deletion(record, project, who)
        st.caption(_facts(project))


def _facts(project: Project) -> str:
    n = len(project.audits)
    parts = [
        counted(n, "audit") if n else "no audits",
        f"limits locked {counted(len(project.locks), 'time')}" if project.locks else "no lock",
        "files kept for ever"
        if project.retention is None
        else f"files kept for {counted(project.retention, 'day')}",
        counted(project.number, "entry", "entries"),
    ]
    return " · ".join(parts)


def _retention(record: Record, project: Project, who: Person) -> None:
    st.subheader("How long files are kept", anchor=False)
    for_ever = st.checkbox(
        "For ever", value=project.retention is None, key=f"retention_ever_{project.id}"
    )
    days = st.number_input(
        "Days",
        *_DAYS,
        value=project.retention or _YEARS,
        key=f"retention_days_{project.id}",
        disabled=for_ever,
    )
    chosen = None if for_ever else int(days)
    if st.button("Save", key=f"retention_{project.id}", disabled=chosen == project.retention):
        _doing(lambda: record.write(project.id, RetentionSet(chosen), who))


def _deletion(record: Record, project: Project, who: Person) -> None:
    old = expired(project, now().at)
    st.subheader("Files that need not be kept any more", anchor=False)
    if not old:
        st.caption("There are none.")
        return
    st.markdown(
        f"The files of {counted(len(old), 'audit')}: "
        f"{escape_markdown(_titles(project, old), 600)}. Their verdicts, digests and history stay "
        "in the record."
    )
    sure = st.checkbox(
        "Delete these files. They cannot be restored.", key=f"expired_sure_{project.id}"
    )
    if st.button("Delete the files", key=f"expired_{project.id}", disabled=not sure):
        _doing(lambda: record.delete_expired(project.id, who))


def _titles(project: Project, audits: Sequence[Audit]) -> str:
    labels = audit_labels(project.audits.values())
    return listed([labels[one.id] for one in audits], between=";")


def _doing(act: Callable[[], object]) -> None:
    try:
        act()
    except InputError as error:
        session.error_box(error, of_action=True)
    else:
        st.rerun()
