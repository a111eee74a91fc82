"""The columns whose values divide the rows into declared groups: one widget for every page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from kdcal_core.review import Review, group_columns

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
        As of `st.multiselect`, which takes ``more`` too.
    """
    columns = group_columns(review)
    chosen: list[str] = st.multiselect(
        label,
        options=columns,
        format_func=lambda name: name[:80],
        max_selections=_MOST,
        key=key,
        on_change=on_change,
        placeholder="Choose up to three columns" if columns else "There are no further columns",
        help="Several columns are crossed, numbers are divided into five parts, and groups of "
        "fewer than 30 rows are merged. The checks and the Groups page use the same groups.",
        **more,
    )
    return tuple(chosen)


def declared(review: Review) -> list[str]:
    """The columns that the review's question names, as far as its tables still have them."""
    columns = group_columns(review)
    return [name for name in review.question.groups if name in columns]
