"""The comparison of calibrators of a review that was made last, for pages that go on from it."""

from __future__ import annotations

import streamlit as st

from app.shared import job_results, session, waiting
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.tasks import ComparisonRun, ComparisonSettings, compare_calibrators

_LAST = "compare_last"  # of the page Compare: the key of each review's last job


def last_comparison(review: Review) -> ComparisonRun | None:
    """The one that Compare showed last in this session, or else that of its first settings.

    None if none is stored, or if the rows, their roles or the model have changed since.
    """
    shown = st.session_state.get(_LAST, {}).get(review.id)
    run = None if shown is None else _stored(shown)
    if run is not None and _key_today(review, run.settings) == shown:
        return run
    usual = _key_today(review, None)
    return None if usual is None else _stored(usual)


def _key_today(review: Review, settings: ComparisonSettings | None) -> str | None:
    """The key of a comparison of this review as it is now; None if none can be made."""
    try:
        return compare_calibrators.request(session.workspace(), review, settings).key
    except InputError:
        return None


def _stored(key: str) -> ComparisonRun | None:
    job = waiting.find(key)
    if job is None or job.state != "done" or job.folder is None:
        return None
    try:
        return job_results.task_result(job.key, task=compare_calibrators, folder=job.folder)
    except InputError:  # the page Compare reports it
        return None
