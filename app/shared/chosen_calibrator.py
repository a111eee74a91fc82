"""The calibrator that was chosen for a review: the one last exported, or one of the list."""

from __future__ import annotations

import streamlit as st

from app.shared import job_results
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.regression import RECALIBRATORS
from kdcal_core.review import Review
from kdcal_core.tasks import ExportRun, ExportSettings, export_calibrator, usable_calibrators

_EXPORTED = "export_last"  # of the page Choose and export: the key of each review's last job


def choices(review: Review) -> dict[str, str]:
    """The calibrators that can be chosen for this review, with their names."""
    if review.task == "regression":
        return {key: one.title for key, one in RECALIBRATORS.items() if not one.comparison}
    usable = usable_calibrators(review)
    return {key: CALIBRATORS[key].name for key, why in usable.items() if why is None}


def last_exported(review: Review) -> ExportRun | None:
    """The calibrator that Choose and export showed last in this session, if it is still stored.

    None if the rows, their roles or the model have changed since: it would be another one today.
    """
    key = st.session_state.get(_EXPORTED, {}).get(review.id)
    run = None if key is None else _stored(key)
    if run is None or job_results.key_today(export_calibrator, review, run.record.settings) != key:
        return None
    return run


def export_of(review: Review, key: str) -> ExportRun | None:
    """The calibrator as it was exported: last in this session, or else with the usual settings."""
    last = last_exported(review)
    if last is not None and last.record.settings.key == key:
        return last
    if review.task == "regression":
        return None
    today = job_results.key_today(
        export_calibrator, review, ExportSettings(key, event=review.event)
    )
    return None if today is None else _stored(today)


def _stored(key: str) -> ExportRun | None:
    run = job_results.stored_result(key, export_calibrator)
    return run if run is not None and run.calibrator_file.is_file() else None
