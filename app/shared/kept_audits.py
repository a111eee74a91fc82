"""Audits as they were kept, for pages that show several of them."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.shared.check_list import MARKS
from kdcal_core.audit import (
    Audit,
    AuditContent,
    KeptChart,
    Record,
    errors_of_content,
)
from kdcal_core.charts import Chart, beside_text, overlaid_chart, same_lines, stacked
from kdcal_core.checks import Verdict
from kdcal_core.text import without_links


def whole_content(record: Record, audit: Audit) -> AuditContent:
    """What an audit found, with its charts, read once.

    Raises
    ------
    InputError
        As of `kdcal_core.audit.Record.content`.
    """
    if not audit.has_files:
        return record.content(audit)  # which says what became of them
    return _whole(audit.facts.content, record, audit)


@st.cache_resource(max_entries=16, show_spinner="Reading the audit")
def _whole(digest: str, _record: Record, _audit: Audit) -> AuditContent:
    del digest  # only the cache's key
    return _record.content(_audit)


def numbers_of(record: Record, audit: Audit) -> AuditContent:
    """What an audit found, without its charts, which are most of it.

    Raises
    ------
    InputError
        As of `kdcal_core.audit.Record.content`.
    """
    return _numbers(audit.facts.content, record, audit)


@st.cache_resource(max_entries=1024, show_spinner="Reading the audits")
def _numbers(digest: str, _record: Record, _audit: Audit) -> AuditContent:
    del digest  # only the cache's key
    return replace(_record.content(_audit), charts=())


def kept_chart(
    kept: KeptChart, *, dark: bool, height: int | None = None, narrow: bool = False
) -> Chart:
    """A chart as it was drawn, in the theme.

    One above ``height`` is lowered to stand beside text. On a ``narrow`` page panels stand one
    below the other.

    Raises
    ------
    InputError
        If it is none, as in an audit from elsewhere.
    """
    with errors_of_content():
        drawn = kept.figure(dark=dark)
        if narrow:
            drawn["layout"] = {**drawn["layout"], **stacked(drawn["layout"])}
        figure = go.Figure(drawn)
    if height is not None and (figure.layout.height or height) > height:
        beside_text(figure, height)
    return Chart(
        figure,
        finding=kept.finding,
        alt=kept.alt,
        how_to_read=without_links(kept.how_to_read),
        table=partial(_table, kept.table),
        name=kept.key,
    )


def overlaid(earlier: tuple[str, KeptChart], later: tuple[str, KeptChart], *, dark: bool) -> Chart:
    """The same chart of two audits on the same axes; each comes with its audit's label.

    Raises
    ------
    InputError
        If the data of one of them are none, as in an audit from elsewhere.
    """
    first, second = ((label, kept.finding, kept.table) for label, kept in (earlier, later))
    with errors_of_content():
        return overlaid_chart(
            earlier[1].key,
            (*first[:2], _table(first[2])),
            (*second[:2], _table(second[2])),
            dark=dark,
        )


def same_regions(earlier: KeptChart, later: KeptChart) -> bool:
    """Whether the regions that two audits found are the same.

    Raises
    ------
    InputError
        If the data of one of them are none, as in an audit from elsewhere.
    """
    with errors_of_content():
        return same_lines(_table(earlier.table), _table(later.table))


def _table(csv: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(csv))


def verdict_badge(verdict: Verdict | None) -> None:
    """A verdict by its word, mark and colour."""
    mark = MARKS[verdict]
    st.badge(mark.word, icon=mark.icon, color=mark.colour)  # type: ignore[arg-type]
