"""Which calibrator is taken away: the choice, which the address keeps, and its settings."""

from __future__ import annotations

from typing import Any, get_args

import streamlit as st

from app.widgets import export_results
from app.widgets import export_text as text
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.registry import Family
from kdcal_core.review import Review
from kdcal_core.runs.comparison_run import usable_calibrators
from kdcal_core.runs.export_results import ExportSettings
from kdcal_core.runs.export_run import partition_columns

ADDRESS = "calibrator"
_USUAL = "platt"
_TREE = "A tree"
_KEPT: dict[str, Any] = {"persist_state": "session"}


def choose(review: Review) -> ExportSettings:
    """The settings that stand in the card."""
    usable = usable_calibrators(review)
    keys = [
        key
        for family in get_args(Family)
        for key, why in usable.items()
        if why is None and CALIBRATORS[key].family == family
    ]
    compared = export_results.comparison_of(review)
    key: str = st.selectbox(
        "Calibrator",
        options=keys,
        index=keys.index(_first(keys, None if compared is None else text.preselected(compared))),
        format_func=_named,
        key=f"export_calibrator_{review.id}",
        help="Only those that this review can have. The page Compare holds them against each "
        "other.",
        **_KEPT,
    )
    if st.query_params.get(ADDRESS) != key:
        st.query_params[ADDRESS] = key
    entry = CALIBRATORS[key]
    st.markdown(f"{entry.description} Described in {entry.reference}.")
    if compared is not None:
        st.caption(text.compared(compared, key))
    return _regions(review, key) if entry.family == "partition" else ExportSettings(key)


def _first(keys: list[str], best: str | None) -> str:
    """What the address names, else the best of the last comparison, else a usual one."""
    asked = st.query_params.get(ADDRESS)
    return next(one for one in (asked, best, _USUAL, keys[0]) if one in keys)


def _named(key: str) -> str:
    entry = CALIBRATORS[key]
    return f"{entry.label}: {entry.name} ({text.FAMILIES[entry.family]})"


def _regions(review: Review, key: str) -> ExportSettings:
    """What matters for calibration region by region."""
    first, second, third, fourth = st.columns(4, vertical_alignment="bottom")
    columns = partition_columns(review) if key == "heterogeneous_tree" else ()
    with first:
        by: str | None = st.selectbox(
            "Regions by",
            options=[None, *columns],
            format_func=lambda name: _TREE if name is None else f"Column {name[:40]}",
            key=f"export_column_{review.id}",
            disabled=not columns,
            help="A tree over all inputs, or the values of one column, such as a branch or a "
            "device.",
            **_KEPT,
        )
    with second:
        inner: str = st.selectbox(
            "In each region",
            options=list(text.INNER),
            format_func=text.INNER.__getitem__,
            key="export_inner",
            help="Regions with few rows lean on the region around them.",
            **_KEPT,
        )
    with third:
        depth: int | None = st.number_input(
            "Depth",
            min_value=1,
            max_value=12,
            value=None,
            placeholder="As measured best",
            key=f"export_depth_{key}",
            disabled=by is not None,
            help="Questions asked before a region is reached.",
            **_KEPT,
        )
    with fourth:
        rows: int | None = st.number_input(
            "Fewest rows",
            min_value=1,
            max_value=10**9,
            value=None,
            placeholder="By rule",
            key=f"export_rows_{key}",
            disabled=by is not None,
            help="Calibration rows in a region of a tree.",
            **_KEPT,
        )
    column = by if columns else None
    if column is not None:
        return ExportSettings(key, inner, column=column)
    return ExportSettings(key, inner, max_depth=depth, min_rows=rows)
