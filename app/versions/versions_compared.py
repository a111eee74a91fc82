"""Audits side by side: what is better or worse, what changed, and the charts of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from app.shared import session
from app.shared.kept_audits import whole_content
from app.shared.sections import sections
from app.versions import versions_several
from app.versions.versions_shown import (
    SIDE_WIDTH,
    all_verdicts,
    changed_verdicts,
    charts,
    rows_words,
)
from app.versions.versions_tables import differences, estimates_table, facts_table
from kdcal_core.audit import (
    Audit,
    ComparedAudits,
    Project,
    Record,
    audit_choices,
    audit_labels,
    compare_audits,
    compared_words,
)
from kdcal_core.errors import InputError
from kdcal_core.text import counted, escape_markdown, listed

_COLUMNS = ("Earlier", "Later")


def side_by_side(record: Record, project: Project, audits: Sequence[Audit]) -> None:
    """Two audits, at first the last two, or one beside several."""
    labels = audit_labels(project.audits.values())
    baseline, versions = _chosen(project, audits)
    if not versions:
        st.markdown("Choose two different audits.")
    elif len(versions) == 1:
        _two(record, project, audits, (baseline, *versions), labels)
    else:
        versions_several.audits_beside(record, project, (baseline, *versions), labels)


def _two(
    record: Record,
    project: Project,
    audits: Sequence[Audit],
    pair: Sequence[Audit],
    labels: Mapping[str, str],
) -> None:
    """Two audits in the order of time."""
    earlier, later = sorted(pair, key=audits.index)
    names = [labels[one.id] for one in (earlier, later)]
    try:
        contents = [whole_content(record, one) for one in (earlier, later)]
        found = compare_audits(*contents)
    except InputError as error:
        session.error_box(error)
        return
    st.header(escape_markdown(compared_words(found), 900), anchor=False)
    st.caption(rows_words(found, *contents))
    of = f"{project.name} {later.facts.title}"
    line = st.container(horizontal=True)
    left, right = line.container(), line.container(width=SIDE_WIDTH)
    with left:
        differences(
            found.estimates,
            key="versions_differences",
            of=of,
            compared="audits",
            paired=found.paired,
            unpaired=found.unpaired,
        )
    with right.container(border=True):
        changed_verdicts(names, contents)
    sections(
        "versions_further",
        {
            "What changed": partial(_facts, found),
            "All verdicts": partial(all_verdicts, names, contents),
            "All estimates": partial(
                estimates_table,
                found.estimates,
                columns=_COLUMNS,
                key="versions_estimates",
                of="audits",
            ),
            "Charts": partial(charts, list(zip(names, contents, strict=True)), of=of),
        },
    )


def _chosen(project: Project, audits: Sequence[Audit]) -> tuple[Audit, tuple[Audit, ...]]:
    """The audit that is compared with and the others, in the order of time."""
    labels = audit_choices(project.audits.values())
    ids = [one.id for one in audits]
    cells = st.columns(2 if len(ids) < 3 else 3)
    # no choice of several in one: its labels have too little contrast in the dark theme
    one, other = (
        cell.selectbox(
            label,
            ids,
            index=len(ids) - back,
            format_func=labels.__getitem__,
            key=f"versions_{key}_{project.id}",
            persist_state="session",
        )
        for cell, label, key, back in (
            (cells[0], "An audit", "one", 2),
            (cells[1], "Compared with", "other", 1),
        )
    )
    left = {key: labels[key] for key in ids if key not in (one, other)}
    more = versions_several.further(cells[-1], left, key=f"versions_more_{project.id}")
    known = {audit.id: audit for audit in audits}
    versions = sorted({other, *more} - {one}, key=ids.index)
    return known[one], tuple(known[key] for key in versions)


def _facts(found: ComparedAudits) -> None:
    """What differs in model, data, settings, limits and version."""
    facts_table(found.facts, columns=_COLUMNS, key="versions_facts", of="audits")
    for names, which in ((found.only_before, "earlier"), (found.only_after, "later")):
        if names:
            said = escape_markdown(listed(names, 5, between=";"), 900)
            n = counted(len(names), "estimate")
            st.caption(f"{n} of the {which} audit alone: {said}.")
