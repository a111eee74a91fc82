"""An estimate over the audits of a project, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.shared import session
from app.shared.charts import drawn_once, is_dark, show
from app.shared.check_list import MARKS
from app.shared.kept_audits import numbers_of
from app.shared.labels import unique_labels
from app.shared.tables import show_table
from kdcal_core.audit import Audit, AuditContent, Project, Record, moment_text, trends
from kdcal_core.charts import Trend, trend_chart, trend_words
from kdcal_core.checks import limit_text
from kdcal_core.diagnostics import interval_text, value_text
from kdcal_core.errors import InputError
from kdcal_core.text import counted, escape_markdown, printable

_MOST_AUDITS = 100


def over_time(record: Record, project: Project, audits: Sequence[Audit]) -> None:
    """One estimate over all audits that ask what the last one asks; at first the worst check's."""
    read, unread = _read(record, audits[-_MOST_AUDITS:])
    found = {one.name: one for one in trends(read)}
    if not found:
        st.markdown("No audit can be read.")
    else:
        trend = found[_chosen(project, list(found.values()))]
        st.header(escape_markdown(trend_words(trend), 700), anchor=False)
        chart = drawn_once(trend_chart, trend, dark=is_dark())
        show(chart, key="versions_trend", of=project.name, finding=False)
        made = trend.points[-1].estimate.interval
        said = f"{trend.name} ({made})" if made else trend.name
        st.caption(escape_markdown(said, 400))
        _left_out(len(trend.points), len(audits))
        _table(trend)
    for error in unread[:1]:
        session.error_box(error)


def _read(
    record: Record, audits: Sequence[Audit]
) -> tuple[list[tuple[Audit, AuditContent]], list[InputError]]:
    """What can be read of these audits, and what went wrong with the others."""
    read, unread = [], []
    for one in audits:
        try:
            read.append((one, numbers_of(record, one)))
        except InputError as error:
            unread.append(error)
    return read, unread


def _chosen(project: Project, found: Sequence[Trend]) -> str:
    texts = unique_labels([printable(one.label, 120) for one in found])
    labels = {one.name: text for one, text in zip(found, texts, strict=True)}
    name: str = st.selectbox(
        "Estimate",
        list(labels),
        format_func=labels.__getitem__,
        key=f"versions_estimate_{project.id}",
        width=620,
    )
    return name


def _left_out(n: int, of: int) -> None:
    if n < of:
        st.caption(
            f"{counted(of - n, 'audit')} of {of:,} left out: without this estimate, about another "
            f"task, other classes or another event, or before the last {_MOST_AUDITS}."
        )


def _table(trend: Trend) -> None:
    points = trend.points[::-1]
    show_table(
        pd.DataFrame(
            {
                "Audit": [printable(one.title, 80) for one in points],
                "Drafted": [moment_text(one.at) for one in points],
                "State": [one.state for one in points],
                "Estimate": [value_text(one.estimate) for one in points],
                "Interval": [interval_text(one.estimate) for one in points],
                "Limit": [
                    "" if one.limit is None else limit_text(one.limit, one.estimate)
                    for one in points
                ],
                "Verdict": [
                    "" if one.verdict is None else MARKS[one.verdict].word for one in points
                ],
                "Rows": [one.estimate.n for one in points],
                "Model": [printable(one.model, 80) for one in points],
                "Calibrator": [printable(one.calibrator, 80) for one in points],
                "Judged file": [printable(one.judged, 80) for one in points],
            }
        ),
        key="versions_trend_table",
        alt="The estimate in each audit, the last one first",
    )
