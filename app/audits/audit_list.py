"""The list of audits over all projects that a person may see, with its filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import streamlit as st

from app.audits import audit_address
from app.audits.audit_words import STATE_MARKS, overdue_findings
from app.shared.check_list import MARKS, Mark
from app.shared.labels import unique_labels
from kdcal_core.audit import STATES, Audit, AuditDrafted, Project, State, audit_labels, short
from kdcal_core.checks import Verdict
from kdcal_core.text import counted, escape_markdown, listed, printable

_TEN = 10
_SHOWN = "audits_shown"
# pixels of project, verdict, state, rows, model or predictions, and who; the title has the
# rest, and what has no room in the line stands below it
_WIDTHS = (100, 155, 105, 75, 95, 120)
_VERDICTS: tuple[Verdict, ...] = ("fail", "not enough evidence", "pass")


@dataclass(frozen=True)
class Listed:
    """An audit with its project."""

    project: Project
    audit: Audit

    @property
    def mark(self) -> Mark:
        """The verdict's word, icon and colour."""
        verdict = self.audit.facts.verdict
        return MARKS.get(verdict, MARKS[None])  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True)
class Filters:
    """Which audits are listed; None and empty text stand for all."""

    project: str | None = None
    verdict: str | None = None
    state: State | None = None
    text: str = ""

    def keep(self, one: Listed) -> bool:
        """Whether an audit is listed."""
        facts = one.audit.facts
        searched = (
            *(facts.title, facts.calibrator, facts.headline),
            *(one.project.name, one.audit.drafted.who.name),
        )
        text = self.text.strip().casefold()
        return (
            self.project in (None, one.project.id)
            and self.verdict in (None, facts.verdict)
            and self.state in (None, one.audit.state)
            and any(text in field.casefold() for field in (*searched, one.audit.id, facts.model))
        )


def audits_of(projects: Sequence[Project]) -> list[Listed]:
    """Every audit of these projects, the last drafted first.

    Within a project the order is that of its entries: where a clock jumped back, an audit stands
    at the latest time that was written before it.
    """
    found = []
    for project in projects:
        latest = ""
        for audit in project.audits.values():
            latest = max(latest, audit.drafted.when.at)
            found.append((latest, audit.drafted.number, Listed(project, audit)))
    return [one for *_, one in sorted(found, key=itemgetter(0, 1), reverse=True)]


def summary(found: Sequence[Listed], projects: Sequence[Project]) -> str:
    """How many audits there are and what waits, in a sentence.

    Examples
    --------
    >>> summary([], [])
    'No audits in 0 projects.'
    """
    waiting = sum(one.audit.state == "submitted" for one in found)
    overdue = sum(overdue_findings(one.audit) for one in found)
    n = f"{counted(len(found), 'audit') if found else 'No audits'}"
    parts = []
    if waiting:
        parts.append(f"{waiting:,} {'waits' if waiting == 1 else 'wait'} for approval")
    if overdue:
        parts.append(f"{counted(overdue, 'finding')} {'is' if overdue == 1 else 'are'} overdue")
    said = f"{n} in {counted(len(projects), 'project')}"
    return f"{said}: {listed(parts)}." if parts else f"{said}."


def audit_list(projects: Sequence[Project]) -> None:
    """The filters and a row for each audit, ten at first."""
    everything = audits_of(projects)
    if not everything:
        st.markdown("No audit has been recorded yet.")
        return
    filters = _filters(projects)
    found = [one for one in everything if filters.keep(one)]
    if len(found) < len(everything):
        st.caption(f"{len(found):,} of {counted(len(everything), 'audit')} shown")
    if not found:
        st.markdown("No audit fits these filters.")
        return
    shown = found[: st.session_state.get(_SHOWN, _TEN)]
    with st.container(gap="small"):
        for one in shown:
            _row(one)
    if len(found) > len(shown) and st.button("Show ten more", key="audits_more"):
        st.session_state[_SHOWN] = len(shown) + _TEN
        st.rerun()


def _judged(facts: AuditDrafted) -> str:
    """What the digest beside it names: a review without a model is known by its predictions."""
    return "Predictions" if facts.model == facts.rows else "Model"


def _filters(projects: Sequence[Project]) -> Filters:
    names = unique_labels([printable(one.name, 80) for one in projects])
    labels = {one.id: name for one, name in zip(projects, names, strict=True)}
    project, verdict, state, text = st.columns(4)
    return Filters(
        project.selectbox(
            "Project",
            list(labels),
            index=None,
            format_func=labels.__getitem__,
            placeholder="All projects",
            key="audits_project",
        ),
        verdict.selectbox(
            "Verdict",
            _VERDICTS,
            index=None,
            format_func=lambda one: MARKS[one].word,
            placeholder="All verdicts",
            key="audits_verdict",
        ),
        state.selectbox(
            "State",
            STATES,
            index=None,
            format_func=lambda one: STATE_MARKS[one].word,
            placeholder="All states",
            key="audits_state",
        ),
        text.text_input(
            "Search", key="audits_text", placeholder="Title, project, person or digest"
        ),
    )


def _row(one: Listed) -> None:
    facts, who = one.audit.facts, one.audit.drafted.who
    label = audit_labels(one.project.audits.values())[one.audit.id]
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    title, *cells = (line.container(width=width) for width in ("stretch", *_WIDTHS))
    project, verdict, state, rows, model, drafted = cells
    if title.button(
        escape_markdown(label, 200),
        key=f"open_{one.project.id}_{one.audit.id}",
        type="tertiary",
        help="Open this audit",
    ):
        audit_address.open_to_work(one.project.id, one.audit.id)
    project.caption(escape_markdown(one.project.name, 40))
    mark = one.mark
    verdict.badge(mark.word, icon=mark.icon, color=mark.colour)  # type: ignore[arg-type]
    mark = STATE_MARKS[one.audit.state]
    state.badge(mark.word, icon=mark.icon, color=mark.colour)  # type: ignore[arg-type]
    if overdue := overdue_findings(one.audit):
        state.badge(f"{overdue:,} overdue", icon=":material/alarm:", color="red")
    rows.caption(counted(facts.n, "row"))
    model.caption(f"{_judged(facts)} {escape_markdown(short(facts.model))}")
    drafted.caption(escape_markdown(who.name, 40))
