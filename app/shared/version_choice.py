"""The choice of a calibrated version to stand beside the model."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kdcal_core.calibration import CALIBRATORS

_AS_IT_IS = "none"


def choose_version(keys: Sequence[str], page: str) -> str | None:
    """The key of a calibrator, or None for the model alone, which is the default."""
    chosen: str = st.selectbox(
        "Beside a calibrated version",
        options=[_AS_IT_IS, *keys],
        format_func=lambda key: "Model only" if key == _AS_IT_IS else CALIBRATORS[key].label,
        key=f"{page}_method",
        persist_state="session",
        label_visibility="collapsed",
        width=260,
        help="Fitted on the calibration set and judged on other rows: the evaluation set, or "
        "cross-fitted where there is none.",
    )
    return None if chosen == _AS_IT_IS else chosen
