"""The choice of the set that a page shows."""

from __future__ import annotations

import streamlit as st

from kdcal_core.review import Review, Which


def choose_set(review: Review, page: str) -> Which:
    """The chosen set; the calibration set if there is no other.

    Each page keeps its own choice.
    """
    if not review.has_evaluation:
        return "calibration"
    chosen: Which = st.segmented_control(
        "Rows",
        options=["calibration", "evaluation"],
        default="evaluation",
        required=True,
        format_func={"calibration": "Calibration set", "evaluation": "Evaluation set"}.__getitem__,
        key=f"{page}_set",
        persist_state="session",
        label_visibility="collapsed",
        help="Both are held-out rows. Calibrators are fitted on the calibration set.",
    )
    return chosen
