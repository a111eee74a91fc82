"""Estimates as tiles, in a row or beside a page's main picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from kdcal_core.diagnostics import (
    Estimate,
    interval_text,
    reference_text,
    value_text,
)
from kdcal_core.evaluation import meaning_of
from kdcal_core.text import escape_markdown


def answer() -> tuple[Any, Any]:
    """Places for a page's main picture and, beside it, for its estimates.

    With the tiles beside it the picture is in the first screen of a laptop. On a narrow screen
    they follow it.
    """
    picture, tiles = st.columns([2.6, 1], gap="small")
    return picture.container(border=True, height="stretch"), tiles


def estimate_row(estimates: Sequence[Estimate], *, notes: Sequence[str] | None = None) -> None:
    """At most four tiles side by side: value, interval, and the value to compare with.

    ``notes`` are our own texts below the intervals, instead of the usual ones.
    """
    for column, (estimate, note) in zip(
        st.columns(len(estimates), gap="small"), _noted(estimates, notes), strict=True
    ):
        with column:
            estimate_tile(estimate, note)


def estimate_column(estimates: Sequence[Estimate], *, notes: Sequence[str] | None = None) -> None:
    """The same tiles, one below the other, in one frame."""
    with st.container(border=True, height="stretch", gap="xsmall", vertical_alignment="distribute"):
        for estimate, note in _noted(estimates, notes):
            estimate_metric(estimate, note)


def estimate_tile(estimate: Estimate, note: str) -> None:
    """One tile in a frame, as high as its neighbours."""
    with st.container(border=True, height="stretch"):
        estimate_metric(estimate, note)


def estimate_metric(estimate: Estimate, note: str) -> None:
    """An estimate with its interval, and our own text below."""
    with st.container(gap=None):
        st.metric(
            escape_markdown(estimate.label),
            value_text(estimate),
            delta=interval_text(estimate),
            delta_color="off",
            delta_arrow="off",
            help=escape_markdown(
                f"{meaning_of(estimate)} {estimate.name}. {estimate.n:,} rows. "
                f"{estimate.level:.0%} interval: {estimate.interval}.".lstrip(),
                800,
            ),
        )
        st.caption(note)


def _noted(
    estimates: Sequence[Estimate], notes: Sequence[str] | None
) -> list[tuple[Estimate, str]]:
    said = notes or [reference_text(one) or f"{one.n:,} rows" for one in estimates]
    return list(zip(estimates, said, strict=True))
