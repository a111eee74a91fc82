"""Estimates as tiles, in a row or beside a page's main picture."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.shared import in_browser
from kdcal_core.diagnostics import (
    Estimate,
    estimate_text,
    interval_text,
    reference_text,
    rows_text,
    value_text,
)
from kdcal_core.evaluation import meaning_of
from kdcal_core.text import escape_label, escape_markdown

TILE_WIDTH = 130
"""Pixels: two tiles on a phone, four beside the sidebar of a small laptop."""
BESIDE_WIDTH = 170
SQUARE_WIDTH, LARGE_SQUARE_WIDTH = 460, 620
"""Pixels that a square picture can use: its height limits it, which is larger in a wide window."""
_LONGEST_LABEL = 24  # characters beside a picture


def answer(*, square: bool = False) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Places for a page's main picture and, beside it, for its estimates.

    With the tiles beside it the picture is in the first screen of a laptop. On a narrow screen
    they follow it. On a wide screen they take what a square picture cannot use; its figure is then
    drawn large.
    """
    if not square:
        picture, tiles = st.columns([11, 5], gap="small")
        return picture.container(border=True, height="stretch"), tiles
    line = st.container(horizontal=True, gap="small")
    width = LARGE_SQUARE_WIDTH if in_browser.is_wide() else SQUARE_WIDTH
    return line.container(border=True, width=width), line.container()


def before_and_change(before: Estimate | None, change: Estimate | None) -> str:
    """The note under a tile: the value before, and the paired change."""
    text = "" if before is None else f"{value_text(before)} before"
    return text if change is None else f"{text}; change {estimate_text(change, chance=False)}"


def estimate_row(estimates: Sequence[Estimate], *, notes: Sequence[str] | None = None) -> None:
    """At most four tiles side by side: value, interval, and the value to compare with.

    ``notes`` are our own texts below the intervals, instead of the usual ones.
    """
    with st.grid(len(estimates), min_column_width=TILE_WIDTH):
        for estimate, note in _noted(estimates, notes):
            estimate_tile(estimate, note)


def estimate_column(estimates: Sequence[Estimate], *, notes: Sequence[str] | None = None) -> None:
    """The same tiles in one frame, one below the other unless there is room."""
    if not estimates:
        return
    with (
        st.container(border=True, height="stretch"),
        st.grid(min_column_width=BESIDE_WIDTH, gap="xsmall"),
    ):
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
            escape_label(_short(estimate.label)),
            value_text(estimate),
            delta=interval_text(estimate),
            delta_color="off",
            delta_arrow="off",
            help=escape_markdown(
                f"{meaning_of(estimate)} {estimate.name}. {rows_text(estimate)}. "
                f"{estimate.level:.0%} interval: {estimate.interval}.".lstrip(),
                800,
            ),
        )
        st.caption(note)


def _short(label: str) -> str:
    """Without what is in brackets where a tile has no room for it; its help has the full name."""
    return label.partition(" (")[0] if len(label) > _LONGEST_LABEL else label


def _noted(
    estimates: Sequence[Estimate], notes: Sequence[str] | None
) -> list[tuple[Estimate, str]]:
    said = notes or [reference_text(one) or rows_text(one) for one in estimates]
    return list(zip(estimates, said, strict=True))
