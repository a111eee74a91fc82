"""One audit exactly as it was: its verdict, its checks and charts, and all that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from app.audits.audit_words import STATE_MARKS
from app.shared import in_browser
from app.shared.charts import drawn_once, is_dark, show
from app.shared.check_list import MARKS, check_list
from app.shared.kept_audits import kept_chart
from app.shared.tables import show_estimates, show_table
from kdcal_core.audit import (
    NOT_KEPT,
    Audit,
    AuditContent,
    FilesDeleted,
    Happened,
    Project,
    audit_title,
    event_text,
    limits_text,
    moment_text,
    person_text,
    with_moments,
)
from kdcal_core.checks import CHECKS, CheckedReview, limit_text
from kdcal_core.text import counted, escape_label, escape_markdown, listed, printable

_PICTURE_WIDTH = 380
_PICTURE_HEIGHT = 300
_EVENTS_SHOWN = 25


def header(project: Project, audit: Audit) -> None:
    """The slim line above the verdict: which audit this is, and its state."""
    facts, drafted = audit.facts, audit.drafted
    mark = STATE_MARKS[audit.state]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(mark.word, icon=mark.icon, color=mark.colour)  # type: ignore[arg-type]
        st.caption(
            f"**{escape_markdown(audit_title(audit))}** · project "
            f"{escape_markdown(project.name)} · {counted(facts.n, 'row')} · "
            f"{escape_markdown(person_text(drafted.who))}, "
            f"{moment_text(drafted.when.at)}",
            width="content",
        )


def verdict(project: Project, audit: Audit) -> None:
    """The verdict in one sentence, and whether its limits were chosen beforehand."""
    facts = audit.facts
    mark = MARKS.get(facts.verdict, MARKS[None])  # type: ignore[call-overload]
    sentence = escape_markdown(facts.headline, 500)
    st.header(f":{mark.colour}[{mark.icon}] {sentence}", anchor=False)
    beforehand = facts.locked is not None and not facts.results_known
    icon = ":material/lock:" if beforehand else ":material/lock_open:"
    st.caption(f"{icon} {escape_markdown(limits_text(audit, project), 700)}")


def without_files(audit: Audit) -> None:
    """What is left of an audit whose files were deleted."""
    gone = audit.last(FilesDeleted)
    by = (
        ""
        if gone is None
        else f" on {moment_text(gone.when.at)} by {escape_markdown(person_text(gone.who), 200)}: "
        f"{escape_markdown(gone.event.words, 1000)}"
    )
    st.info(
        f"The files of this audit were deleted{by}. Its verdict, limits, digests and history stay.",
        icon=":material/delete:",
    )


def answer(content: AuditContent, *, of: str) -> None:
    """What to do next, the checks, and the main picture beside them."""
    if content.what_to_do:
        words = escape_markdown(content.what_to_do, 800)
        st.markdown(f"**What to do next.** {words}")
    line = st.container(horizontal=True)
    left, right = line.container(), line.container(width=_PICTURE_WIDTH)
    with left.container(border=True):
        st.subheader("Checks", anchor=False)
        check_list(_still_made(content.checked), links=False)
        if gone := [one.code for one in content.checked.results if one.code not in CHECKS]:
            st.caption(
                f"This version of kdcal no longer makes {listed(gone)}. The file of the audit "
                "has the results."
            )
    if content.charts:
        with right.container(border=True):
            first = content.charts[0]
            show(
                drawn_once(kept_chart, first, dark=is_dark(), height=_PICTURE_HEIGHT),
                key="audit_picture",
                of=of,
            )


def _still_made(checked: CheckedReview) -> CheckedReview:
    return replace(checked, results=tuple(one for one in checked.results if one.code in CHECKS))


def charts(content: AuditContent, *, of: str) -> None:
    """The charts of the audit, one at a time, as they were drawn; the first stands above too."""
    titles = {one.key: one for one in content.charts}
    if not titles:
        st.markdown("This audit holds no charts.")
        return
    key = st.pills(
        "Chart",
        list(titles),
        format_func=lambda one: escape_label(titles[one].title),
        default=content.charts[:2][-1].key,
        required=True,
        key="audit_chart",
        label_visibility="collapsed",
    )
    show(
        drawn_once(kept_chart, titles[key], dark=is_dark(), narrow=in_browser.is_narrow()),
        key=f"audit_chart_{key}",
        of=of,
        which="again" if key == content.charts[0].key else "",
    )
    st.caption(
        "Kept are the charts with which pages begin, and those that were looked at before the "
        "audit was recorded. Not kept, because an audit holds no rows: "
        f"{NOT_KEPT[content.subject.task]}."
    )


def estimates(content: AuditContent, *, of: str) -> None:
    """All numbers of the audit beside those of its checks."""
    show_estimates(content.estimates, key="audit_estimates", of=of, what="estimates")


def limits(project: Project, audit: Audit) -> None:
    """The limits that the checks were held against, and when they were fixed."""
    facts = audit.facts
    st.markdown(escape_markdown(limits_text(audit, project), 700))
    lock = next((one for one in project.locks if one.number == facts.locked), None)
    if lock is not None and lock.event.note:
        st.markdown(f"Note: {escape_markdown(lock.event.note, 1000)}")
    show_table(
        pd.DataFrame(
            {
                "Check": [CHECKS[code].title if code in CHECKS else code for code in facts.limits],
                "Code": list(facts.limits),
                "Limit": [limit_text(one, CHECKS.get(code)) for code, one in facts.limits.items()],
            }
        ),
        key="audit_limits",
        alt="The limit of every check of this audit",
    )


def identity(content: AuditContent, audit: Audit) -> None:
    """What was audited and what computed it, by digests that anybody can compare."""
    subject, code = content.subject, content.code
    named = [
        ("Audit", "audit.json", audit.facts.content),
        *(
            [("Model", f"{subject.model.name} ({subject.model.kind})", subject.model.digest)]
            if subject.model is not None
            else []
        ),
        *((f"{one.part.capitalize()} table", one.name, one.digest) for one in subject.tables),
        *(
            (f"{one.part.capitalize()} rows as judged", f"{one.n_rows:,} rows", one.scored)
            for one in subject.tables
            if one.scored
        ),
        ("kdcal's own files", f"kdcal {code.kdcal}, Python {code.python}", code.digest),
    ]
    if content.baseline is not None:
        named.append(("Baseline", content.baseline.name, content.baseline.digest))
    if content.calibrator is not None:
        file = content.calibrator.digest or "no file"
        named.append(("Calibrator", content.calibrator.title, file))
    show_table(
        pd.DataFrame(
            {
                "What": [what for what, _, _ in named],
                "Name": [printable(name, 80) for _, name, _ in named],
                "SHA-256": [digest for _, _, digest in named],
            }
        ),
        key="audit_identity",
        alt="What the audit was made of, with the digest of each file",
    )
    for words in _said_of(content):
        st.caption(escape_markdown(words, 1500))


def _said_of(content: AuditContent) -> list[str]:
    """The question, the open doubts and the versions, in sentences."""
    subject, code = content.subject, content.code
    event = "" if subject.event is None else f" The event is {subject.event[:80]}."
    groups = f" Groups: {listed([one[:80] for one in subject.groups])}." if subject.groups else ""
    packages = ", ".join(f"{name} {version}" for name, version in code.packages.items())
    signature = subject.model.signature if subject.model is not None else ""
    chosen = content.calibrator
    calibrator = (
        "No calibrator was chosen with this audit."
        if chosen is None
        else f"The calibrator {chosen.title[:120]} was chosen. {chosen.finding}"
    )
    return [
        f"A {subject.task}, judged on the {subject.which} set.{event}{groups}",
        *([f"Signature of the model: {signature}."] if signature else []),
        calibrator,
        *(f"Open doubt when it was recorded: {one}" for one in subject.doubts),
        f"Random numbers start from the seed {content.seed}. Versions: {packages}.",
    ]


def history(project: Project, audit: Audit) -> None:
    """What happened to this audit, the last entry first."""
    events = [*reversed(audit.history)]
    shown = events if st.session_state.get("audit_all_events") else events[:_EVENTS_SHOWN]
    history_table(shown, project, audit, key="audit_history")
    if len(events) > len(shown):
        st.checkbox(f"Show all {counted(len(events), 'entry', 'entries')}", key="audit_all_events")


def history_table(
    events: Sequence[Happened], project: Project, audit: Audit | None = None, *, key: str
) -> None:
    """Entries of the record: number, time, person, and what happened."""
    show_table(
        pd.DataFrame(
            {
                "Entry": [one.number for one in events],
                "When": [moment_text(one.when.at) for one in events],
                "Who": [printable(one.who.name, 80) for one in events],
                "What": [
                    printable(with_moments(event_text(one, project, audit)), 1000) for one in events
                ],
                "Believed because": [printable(one.who.believed, 200) for one in events],
                "Clock": [printable(one.when.clock, 120) for one in events],
            }
        ),
        key=key,
        alt="What happened: entry, time, person and event",
    )
