"""The choice of a calibrated version to stand beside the model."""

from __future__ import annotations

import streamlit as st

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.checks import QUICK_CALIBRATORS
from kdcal_core.review import Review
from kdcal_core.tasks import usable_calibrators

_AS_IT_IS = "none"


def choose_version(
    review: Review,
    page: str,
    *,
    regions: bool = True,
    label: str = "Beside a calibrated version",
) -> str | None:
    """The key of a calibrator, or None for the model alone, which is the default.

    Calibrators that treat all rows alike come first, then those that tell regions apart, unless
    ``regions`` is False. The label is read aloud.
    """
    usable = usable_calibrators(review)
    by_region = [key for key, one in CALIBRATORS.items() if regions and one.family == "partition"]
    keys = [key for key in (*QUICK_CALIBRATORS, *by_region) if usable.get(key, "") is None]
    chosen: str = st.selectbox(
        label,
        options=[_AS_IT_IS, *keys],
        format_func=lambda key: "Model only" if key == _AS_IT_IS else CALIBRATORS[key].label,
        key=f"{page}_method_{review.id}",
        persist_state="session",
        label_visibility="collapsed",
        width=260,
        help="Fitted on the calibration set and judged on other rows: the evaluation set, or "
        "cross-fitted where there is none.",
    )
    return None if chosen == _AS_IT_IS else chosen
