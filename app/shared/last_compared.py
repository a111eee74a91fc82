"""What was compared last of a review, for pages that go on from it: calibrators, recalibrators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from app.shared.job_results import key_today, stored, stored_result
from app.shared.kept import by_digest
from kdcal_core.review import Review
from kdcal_core.store import load_part
from kdcal_core.tasks import (
    ComparisonRun,
    RecalibrationRecord,
    ReviewTask,
    compare_calibrators,
    recalibrate,
)

T = TypeVar("T", ComparisonRun, RecalibrationRecord)


def last_comparison(review: Review) -> ComparisonRun | None:
    """The comparison that Compare showed last in this session, or else that of its first settings.

    None if none is stored, or if the rows, their roles or the model have changed since.
    """
    return _last(
        review, "compare", compare_calibrators, lambda key: stored_result(key, compare_calibrators)
    )


def last_recalibration(review: Review) -> RecalibrationRecord | None:
    """As `last_comparison`, of a regression's recalibrators and the page Recalibration."""
    return _last(review, "recalibration", recalibrate, _record_of)


def _last(
    review: Review, name: str, task: ReviewTask[Any], read: Callable[[str], T | None]
) -> T | None:
    """The result of the job that `job_results.asked_for` remembers by this name."""
    shown = st.session_state.get(f"{name}_last", {}).get(review.id)
    found = None if shown is None else read(shown)
    if found is not None and key_today(task, review, found.settings) == shown:
        return found
    usual = key_today(task, review, None)
    return None if usual is None else read(usual)


def _record_of(key: str) -> RecalibrationRecord | None:
    """The record of a recalibration, without its rows."""
    return stored(key, lambda key, folder: _record(key, folder=folder))


@by_digest
def _record(key: str, *, folder: Path) -> RecalibrationRecord:
    return load_part(folder, "record", RecalibrationRecord)
