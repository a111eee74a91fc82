"""The columns whose values divide the rows into declared groups: one widget for every page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from app.shared.one_of import several_of
from kdcal_core.review import Review, group_columns, offered_groups

_MOST = 3  # columns that are crossed


def choose_groups(
    review: Review, key: str, label: str, on_change: Callable[..., None] | None = None, **more: Any
) -> tuple[str, ...]:
    """The chosen columns; those of the review's question at first.

    Parameters
    ----------
    key : str
        Of the widget.
    on_change : callable, optional
        As of `st.pills`, which takes ``more`` too.
    """
    columns, offered = group_columns(review), {*offered_groups(review)}
    every = len(offered) == len(columns) or st.session_state.get(f"every_{key}", False)
    before = st.session_state.get(key, ())
    shown = [name for name in columns if every or name in offered or name in before]
    chosen = several_of(
        label,
        {name: name for name in shown},
        most=_MOST,
        key=key,
        on_change=on_change,
        help="Several columns are crossed, numbers are divided into five parts, and groups of "
        "fewer than 30 rows are merged. The checks and the Groups page use the same groups.",
        **more,
    )
    if len(offered) < len(columns):
        st.checkbox(
            "Offer identifiers, dates and free text too",
            key=f"every_{key}",
            persist_state="session",
        )
    return tuple(chosen)


def declared(review: Review) -> list[str]:
    """The columns that the review's question names, as far as its tables still have them."""
    columns = group_columns(review)
    return [name for name in review.question.groups if name in columns]
