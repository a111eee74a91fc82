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
    keys = _offered(review, regions)
    chosen: str = st.selectbox(
        label,
        options=[_AS_IT_IS, *keys],
        format_func=lambda key: "Model only" if key == _AS_IT_IS else CALIBRATORS[key].label,
        key=_key(review, page),
        persist_state="session",
        label_visibility="collapsed",
        width=260,
        help="Fitted on the calibration set and judged on other rows: the evaluation set, or "
        "cross-fitted where there is none.",
    )
    return None if chosen == _AS_IT_IS else chosen


def preselect_version(review: Review, page: str, method: str) -> None:
    """Let another page begin with a calibrated version, where the review can use it."""
    also_offer(review, method)
    if method in _offered(review, regions=True):
        st.session_state[_key(review, page)] = method


def also_offer(review: Review, method: str) -> None:
    """Let every page offer a calibrator that was chosen, beside the quick ones."""
    st.session_state.setdefault(_chosen_key(review), {})[method] = True


def _offered(review: Review, regions: bool) -> list[str]:
    usable = usable_calibrators(review)
    chosen = st.session_state.get(_chosen_key(review), {})
    by_region = [key for key, one in CALIBRATORS.items() if one.family == "partition"]
    all_alike = [key for key in (*QUICK_CALIBRATORS, *chosen) if key not in by_region]
    wanted = dict.fromkeys([*all_alike, *(by_region if regions else ())])
    return [
        key for key in wanted if usable.get(key, "") is None and CALIBRATORS[key].family != "model"
    ]


def _chosen_key(review: Review) -> str:
    return f"chosen_versions_{review.id}"


def _key(review: Review, page: str) -> str:
    return f"{page}_method_{review.id}"
