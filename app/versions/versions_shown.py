"""What the page Versions shows of two audits or more: verdicts, rows, and charts of two."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.shared import in_browser, session
from app.shared.charts import drawn_once, is_dark, show
from app.shared.check_list import MARKS
from app.shared.kept_audits import kept_chart, overlaid, same_regions, verdict_badge
from app.shared.tables import show_table
from kdcal_core.audit import (
    AuditContent,
    ComparedAudits,
    KeptChart,
    overlap_words,
    paired_words,
    verdicts_beside,
)
from kdcal_core.charts import can_be_overlaid
from kdcal_core.checks import CHECKS
from kdcal_core.errors import InputError
from kdcal_core.text import counted, escape_label, escape_markdown, listed

_VERDICTS_SHOWN = 8
SIDE_WIDTH = 330
"""Of the box with changed verdicts, in pixels."""


def rows_words(found: ComparedAudits, before: AuditContent, after: AuditContent) -> str:
    """Whether the rows are the same, by digest, and what else changed. Our own Markdown."""
    digests = [one.judged_file[:12] for one in (before, after)]
    if found.same_rows:
        files = (
            f"both judged the file {digests[0]}"
            if found.same_file
            else f"the files {digests[0]} and {digests[1]} hold the same outcomes in one order"
        )
        n = len(found.unpaired)
        paired = (
            f"Differences are paired, except {n} that How to read this names."
            if found.paired and n
            else escape_markdown(paired_words(found), 900)
        )
        rows = f":material/fingerprint: The same rows: {files}. {paired}".rstrip()
    else:
        rows = (
            f":material/shuffle: Other rows: {digests[0]} ({before.checked.n:,} rows), then "
            f"{digests[1]} ({after.checked.n:,} rows). {overlap_words(found)} Differences may come "
            "from the rows."
        )
    if not found.facts:
        return f"{rows} Model, settings and limits are the same."
    names = escape_markdown(listed([what for what, _, _ in found.facts], 4), 300)
    return f"{rows} Changed: {names}."


def changed_verdicts(labels: Sequence[str], contents: Sequence[AuditContent]) -> None:
    """The checks whose verdict is not the same in all audits, from the first to the last."""
    verdicts = verdicts_beside(contents)
    changed = [one for one in verdicts if set(one.after) != {one.before}]
    n = len(changed)
    st.subheader(f"{counted(n, 'changed verdict')}" if n else "No verdict changed", anchor=False)
    if n and len(labels) > 2:
        order = escape_markdown(listed(labels, len(labels), between=";"), 900)
        st.caption(f"In this order: {order}.")
    for one in changed[:_VERDICTS_SHOWN]:
        with st.container(gap=None):
            st.markdown(f"{_check_title(one.name)}")
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                for place, verdict in enumerate((one.before, *one.after)):
                    if place:
                        st.markdown(":material/arrow_forward:", width="content")
                    verdict_badge(verdict)
    if n > _VERDICTS_SHOWN:
        st.caption(f"{n - _VERDICTS_SHOWN:,} more under All verdicts")
    if not n:
        st.caption(f"All {counted(len(verdicts), 'check')} have the verdict that they had.")


def _check_title(code: str) -> str:
    return CHECKS[code].title if code in CHECKS else escape_markdown(code, 20)


def all_verdicts(labels: Sequence[str], contents: Sequence[AuditContent]) -> None:
    """The verdict of every check in each audit, as a table."""
    verdicts = verdicts_beside(contents)
    columns = {
        label: [MARKS[(one.before, *one.after)[place]].word for one in verdicts]
        for place, label in enumerate(labels)
    }
    show_table(
        pd.DataFrame({"Check": [_check_title(one.name) for one in verdicts], **columns}),
        key="versions_verdicts",
        alt="The verdict of every check in each audit",
    )


def _not_overlaid(
    pair: Sequence[KeptChart], before: AuditContent, after: AuditContent
) -> str | None:
    """Why charts of both audits do not lie on the same axes, or None if they can."""
    key = pair[0].key
    if not can_be_overlaid(key):
        return ""
    if key == "cost" and before.subject.decision.costs != after.subject.decision.costs:
        return "The costs differ, and with them what the charts show."
    if key == "confidence" and after.subject.event is None:
        return "Each is of the class that is most often wrong, which may be another one."
    if key == "regions" and not same_regions(*pair):
        return "The audits found other regions, so that their lines cannot be paired."
    return None


def charts(pair: Sequence[tuple[str, AuditContent]], *, of: str) -> None:
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
    (one, before), (other, after) = pair
    both = held[0][key], held[1][key]
    try:
        why_not = _not_overlaid(both, before, after)
    except InputError as error:
        session.error_box(error)
        return
    if why_not:
        st.caption(f"{why_not} They stand side by side.")
    if why_not is None and not st.checkbox("Side by side", key=f"versions_side_{key}"):
        try:
            chart = drawn_once(overlaid, (one, both[0]), (other, both[1]), dark=is_dark())
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
            chart = drawn_once(
                kept_chart, charts[key], dark=is_dark(), narrow=in_browser.is_narrow()
            )
            show(chart, key=f"versions_{key}_{place}", of=f"{of} {place}")
