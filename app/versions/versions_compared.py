"""Audits side by side: what is better or worse, what changed, and the charts of both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app.shared import session
from app.shared.charts import drawn_once, is_dark, show
from app.shared.check_list import MARKS
from app.shared.kept_audits import (
    audit_labels,
    kept_chart,
    numbers_of,
    overlaid,
    verdict_badge,
    whole_content,
)
from app.shared.sections import sections
from app.shared.tables import show_table
from app.versions.versions_tables import differences, estimates_table, facts_table
from kdcal_core.audit import (
    Audit,
    AuditContent,
    ComparedAudits,
    Project,
    Record,
    compare_audits,
    compared_words,
)
from kdcal_core.charts import can_be_overlaid
from kdcal_core.checks import CHECKS, Verdict
from kdcal_core.errors import InputError
from kdcal_core.text import counted, escape_label, escape_markdown, listed

_VERDICTS_SHOWN = 8
_MOST_BETWEEN = 4
_SIDE_WIDTH = 330
_COLUMNS = ("Earlier", "Later")


def side_by_side(record: Record, project: Project, audits: Sequence[Audit]) -> None:
    """Two audits, at first the last two, and the verdicts of those between them."""
    chosen = _chosen(project, audits)
    if len(chosen) < 2:
        st.markdown("Choose two different audits.")
        return
    earlier, *between, later = chosen
    try:
        contents = {one.id: whole_content(record, one) for one in (earlier, later)}
        contents |= {one.id: numbers_of(record, one) for one in between}
        found = compare_audits(contents[earlier.id], contents[later.id])
    except InputError as error:
        session.error_box(error)
        return
    st.header(escape_markdown(compared_words(found), 900), anchor=False)
    st.caption(_rows_words(found, contents[earlier.id], contents[later.id]))
    of = f"{project.name} {later.facts.title}"
    line = st.container(horizontal=True)
    left, right = line.container(), line.container(width=_SIDE_WIDTH)
    with left:
        differences(found.estimates, key="versions_differences", of=of, compared="audits")
    with right.container(border=True):
        _changed_verdicts(chosen, contents)
    first, last = contents[earlier.id], contents[later.id]
    labels = audit_labels(chosen)
    sections(
        "versions_further",
        {
            "What changed": partial(_facts, found),
            "All verdicts": partial(_all_verdicts, chosen, contents),
            "All estimates": partial(
                estimates_table,
                found.estimates,
                columns=_COLUMNS,
                key="versions_estimates",
                of="audits",
            ),
            "Charts": partial(
                _charts, [(labels[earlier.id], first), (labels[later.id], last)], of=of
            ),
        },
    )


def _chosen(project: Project, audits: Sequence[Audit]) -> tuple[Audit, ...]:
    """The two audits that are chosen and the last of those between them, in the order of time."""
    labels = audit_labels(audits)
    ids = list(labels)
    earlier, later = st.columns(2)
    # no choice of several in one: its labels have too little contrast in the dark theme
    ends = [
        cell.selectbox(
            label,
            ids,
            index=len(ids) - back,
            format_func=labels.__getitem__,
            key=f"versions_{key}_{project.id}",
            persist_state="session",
        )
        for cell, label, key, back in (
            (earlier, "An audit", "one", 2),
            (later, "Compared with", "other", 1),
        )
    ]
    first, last = sorted(map(ids.index, ends))
    if first == last:
        return (audits[first],)
    between = audits[first + 1 : last][-_MOST_BETWEEN:]
    return (audits[first], *between, audits[last])


def _rows_words(found: ComparedAudits, before: AuditContent, after: AuditContent) -> str:
    """Whether the rows are the same, by digest, and what else changed. Our own Markdown."""
    digests = [_judged_digest(one)[:12] for one in (before, after)]
    if found.same_rows:
        rows = (
            f":material/fingerprint: The same rows: both judged the file {digests[0]}. Intervals "
            "of differences are therefore too wide."
        )
    else:
        rows = (
            f":material/shuffle: Other rows: {digests[0]} ({before.checked.n:,} rows), then "
            f"{digests[1]} ({after.checked.n:,} rows). Differences may come from the rows."
        )
    if not found.facts:
        return f"{rows} Model, settings and limits are the same."
    names = escape_markdown(listed([what for what, _, _ in found.facts], 4), 300)
    return f"{rows} Changed: {names}."


def _judged_digest(content: AuditContent) -> str:
    subject = content.subject
    return next(one.digest for one in subject.tables if one.part == subject.which)


def _verdicts(contents: Sequence[AuditContent]) -> dict[str, list[Verdict | None]]:
    """The verdict of every check in each audit; None where it was not made or not answered."""
    each = [{one.code: one.verdict for one in content.checked.results} for content in contents]
    codes = dict.fromkeys(code for one in each for code in one)
    return {code: [one.get(code) for one in each] for code in codes}


def _changed_verdicts(chosen: Sequence[Audit], contents: dict[str, AuditContent]) -> None:
    """The checks whose verdict is not the same in all audits, from the first to the last."""
    verdicts = _verdicts([contents[one.id] for one in chosen])
    changed = {code: given for code, given in verdicts.items() if len(set(given)) > 1}
    n = len(changed)
    st.subheader(f"{counted(n, 'changed verdict')}" if n else "No verdict changed", anchor=False)
    for code, given in list(changed.items())[:_VERDICTS_SHOWN]:
        with st.container(gap=None):
            st.markdown(f"{_check_title(code)}")
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                for place, verdict in enumerate(given):
                    if place:
                        st.markdown(":material/arrow_forward:", width="content")
                    verdict_badge(verdict)
    if n > _VERDICTS_SHOWN:
        st.caption(f"{n - _VERDICTS_SHOWN:,} more under All verdicts")
    if not n:
        st.caption(f"All {counted(len(verdicts), 'check')} have the verdict that they had.")


def _check_title(code: str) -> str:
    return CHECKS[code].title if code in CHECKS else escape_markdown(code, 20)


def _all_verdicts(chosen: Sequence[Audit], contents: dict[str, AuditContent]) -> None:
    verdicts = _verdicts([contents[one.id] for one in chosen])
    labels = audit_labels(chosen)
    columns = {
        labels[one.id]: [MARKS[given[place]].word for given in verdicts.values()]
        for place, one in enumerate(chosen)
    }
    show_table(
        pd.DataFrame({"Check": [_check_title(code) for code in verdicts], **columns}),
        key="versions_verdicts",
        alt="The verdict of every check in each audit",
    )


def _facts(found: ComparedAudits) -> None:
    """What differs in model, data, settings, limits and version."""
    facts_table(found.facts, columns=_COLUMNS, key="versions_facts", of="audits")
    for names, which in ((found.only_before, "earlier"), (found.only_after, "later")):
        if names:
            said = escape_markdown(listed(names, 5, between=";"), 900)
            n = counted(len(names), "estimate")
            st.caption(f"{n} of the {which} audit alone: {said}.")


def _charts(pair: Sequence[tuple[str, AuditContent]], *, of: str) -> None:
    """The charts that both audits hold, one kind at a time: overlaid where they can be."""
    held = [{one.key: one for one in content.charts} for _, content in pair]
    titles = {key: escape_label(one.title) for key, one in held[1].items() if key in held[0]}
    if not titles:
        st.markdown("The audits have no chart in common.")
        return
    key = st.pills(
        "Chart",
        list(titles),
        format_func=titles.__getitem__,
        default=next(iter(titles)),
        required=True,
        key="versions_chart",
        label_visibility="collapsed",
    )
    (one, _), (other, _) = pair
    if can_be_overlaid(key) and not st.checkbox("Side by side", key=f"versions_side_{key}"):
        kept = ((one, held[0][key]), (other, held[1][key]))
        try:
            chart = drawn_once(overlaid, *kept, dark=is_dark())
        except InputError as error:
            session.error_box(error)
            return
        show(chart, key=f"versions_{key}", of=of)
        return
    for cell, (label, _), charts, place in zip(
        st.columns(2), pair, held, ("earlier", "later"), strict=True
    ):
        with cell:
            st.subheader(escape_markdown(label, 120), anchor=False)
            chart = drawn_once(kept_chart, charts[key], dark=is_dark())
            show(chart, key=f"versions_{key}_{place}", of=f"{of} {place}")
