"""The settings of a recalibration: methods, space, neighbours; all have defaults."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from app.recalibration import recalibration_text as text
from app.shared.emphasis import quiet
from app.shared.one_of import one_of
from kdcal_core.charts import PAPERS, recalibrator_title
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.review import Review
from kdcal_core.tasks import RecalibrationSettings, space_names, space_title

How = Literal["choose", "k", "radius"]
HOW: dict[How, str] = {"choose": "Chosen by CRPS", "k": "A number", "radius": "A distance"}
KERNELS = {"epanechnikov": "Nearer rows count more (Epanechnikov)", "uniform": "All alike"}
SMOOTHING = {
    "auto": "Smoothed, amount chosen by CRPS",
    "kernel": "Smoothed by Silverman's rule",
    "none": "As in Torres et al.",
}
SEARCH = {"exact": "Exact", "approximate": "Approximate, faster for many rows"}
_KEPT: dict[str, Any] = {"persist_state": "session"}


def choose(review: Review) -> RecalibrationSettings:
    """The settings in the card."""
    methods = st.pills(
        "Methods",
        options=list(RECALIBRATORS),
        selection_mode="multi",
        default=list(RecalibrationSettings().methods),
        format_func=lambda key: recalibrator_title(key, RECALIBRATORS[key].title),
        key="recalibration_methods",
        help="All are fitted and judged on the same rows.",
        **_KEPT,
    )
    left, middle, right = st.columns([1.4, 1, 1], vertical_alignment="bottom", gap="medium")
    with left:
        how = one_of(
            "Neighbours",
            HOW,
            "choose",
            key="recalibration_how",
            help="For the methods that use neighbours.",
        )
    space, k, radius = space_names(review)[0], RecalibrationSettings().k, None
    if how != "choose":
        with middle:
            space = _space(review)
        with right:
            if how == "k":
                k = _number(review)
            else:
                radius = _distance()
    return RecalibrationSettings(
        methods=tuple(key for key in RECALIBRATORS if key in (methods or ())),
        space=space,
        k=k,
        radius=radius,
        choose=how == "choose",
        **_more(),
    )


def _space(review: Review) -> str:
    space: str = st.selectbox(
        "Space",
        options=space_names(review),
        format_func=space_title,
        key=f"recalibration_space_{review.id}",
        help="The space that defines which rows are near each other.",
        **_KEPT,
    )
    return space


def _number(review: Review) -> int:
    rows = review.tables["calibration"].n_rows
    k: int = st.number_input(
        "Number of neighbours",
        min_value=1,
        max_value=10_000_000,
        value=RecalibrationSettings().k,
        step=50,
        key="recalibration_k",
        help=f"The calibration set has {rows:,} rows; a larger number means all of them.",
        **_KEPT,
    )
    if k > rows:
        st.caption(f"There are {rows:,} calibration rows; all will be used.")
    return k


def _distance() -> float:
    radius: float = st.number_input(
        "Distance",
        min_value=0.01,
        max_value=100.0,
        value=0.5,
        step=0.1,
        key="recalibration_radius",
        help="In standard deviations of the space.",
        **_KEPT,
    )
    return radius


def _more() -> dict[str, Any]:
    with st.container(horizontal=True, gap="small"):
        with st.popover("More settings", icon=":material/tune:", type=quiet()):
            kernel = st.radio(
                "Weights of the neighbours",
                options=list(KERNELS),
                format_func=KERNELS.__getitem__,
                key="recalibration_kernel",
                **_KEPT,
            )
            smoothing = st.radio(
                "Tails",
                options=list(SMOOTHING),
                format_func=SMOOTHING.__getitem__,
                key="recalibration_smoothing",
                **_KEPT,
            )
            search = st.radio(
                "Search for neighbours",
                options=list(SEARCH),
                format_func=SEARCH.__getitem__,
                key="recalibration_search",
                **_KEPT,
            )
            folds = st.slider(
                "Folds",
                min_value=2,
                max_value=20,
                value=5,
                key="recalibration_folds",
                help="Parts of the calibration set for cross-fitting, which chooses the neighbours "
                "and, without an evaluation set, judges the methods.",
                **_KEPT,
            )
            seed = st.number_input(
                "Seed", min_value=0, max_value=2**31 - 1, value=0, key="recalibration_seed", **_KEPT
            )
        with st.popover("What the settings mean", icon=":material/help:", type=quiet()):
            st.markdown(text.SETTINGS)
            st.markdown(text.WORK)
            st.caption(f"Summarised from {PAPERS['Torres et al.']}.")
    return {
        "kernel": kernel,
        "smoothing": smoothing,
        "search": search,
        "folds": folds,
        "seed": seed,
    }
