"""The comparison of calibrators of a review that was made last, for pages that go on from it."""

from __future__ import annotations

import streamlit as st

from app.shared.job_results import key_today, stored_result
from kdcal_core.review import Review
from kdcal_core.tasks import ComparisonRun, compare_calibrators

_LAST = "compare_last"  # of the page Compare: the key of each review's last job


def last_comparison(review: Review) -> ComparisonRun | None:
    """The one that Compare showed last in this session, or else that of its first settings.

    None if none is stored, or if the rows, their roles or the model have changed since.
    """
    shown = st.session_state.get(_LAST, {}).get(review.id)
    run = None if shown is None else stored_result(shown, compare_calibrators)
    if run is not None and key_today(compare_calibrators, review, run.settings) == shown:
        return run
    usual = key_today(compare_calibrators, review, None)
    return None if usual is None else stored_result(usual, compare_calibrators)
