"""Uploaded files: bytes go at once into the workspace, never into a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Literal

import streamlit as st

from app.shared import session, waiting
from app.shared.task_choice import wanted_task
from kdcal_core.models import model_formats, model_suffixes
from kdcal_core.progress import Progress
from kdcal_core.review import Review, add_foreign, add_model, add_table, add_training, set_task

Upload = Literal["model", "calibration", "evaluation", "training", "foreign"]

TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")
# Offered so that choosing a pickle gives the reason and the remedy, not a greyed-out file.
REFUSED_SUFFIXES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")

CALIBRATION_HELP = (
    "Rows that were never used to train the model or to choose it. Calibrators are fitted on them."
)
EVALUATION_HELP = (
    "Further held-out rows on which the calibrators are judged. Without them results are "
    "cross-fitted on the calibration set."
)
TRAINING_HELP = (
    "The rows that the model was trained on, with their target. They show where the model has "
    "seen data and where it has not; a kernel density version of it is fitted on them. They are "
    "never used for calibration."
)
FOREIGN_HELP = (
    "Rows unlike the data, with the model's features under the same names. They need no true "
    "class. They are only looked at: nothing is fitted on them."
)


def foreign_uploader(review: Review) -> None:
    """One uploader for a table of foreign rows; the Out of distribution page shows them."""
    _uploader("foreign", "A table of foreign rows", FOREIGN_HELP, TABLE_SUFFIXES, review)


def upload_row(review: Review | None) -> None:
    """Four uploaders side by side: model, calibration set, evaluation set, training set."""
    model, calibration, evaluation, training = st.columns(4)
    with model:
        suffixes = (*model_suffixes(), *REFUSED_SUFFIXES)
        _uploader("model", "Model", _model_help(), suffixes, review)
        st.caption("Leave it out if the table holds the model's predictions.")
    with calibration:
        _uploader("calibration", "Calibration set", CALIBRATION_HELP, TABLE_SUFFIXES, review)
        st.caption("CSV or Parquet, one row a case, with the true class or outcome.")
    with evaluation:
        _uploader("evaluation", "Evaluation set", EVALUATION_HELP, TABLE_SUFFIXES, review)
        st.caption("Optional. It has the same columns.")
    early = review is None or "calibration" not in review.tables
    with training:
        _uploader("training", "Training set", TRAINING_HELP, TABLE_SUFFIXES, review, early)
        first = " Add the calibration set first." if early else ""
        st.caption(f"Optional. Shows where the model has seen data and where not.{first}")


def _model_help() -> str:
    known = (f"{one.title} ({', '.join(one.suffixes)})" for one in model_formats().values())
    return (
        f"One of: {', '.join(known)}. A pickle is refused, because opening one runs whatever code "
        "it holds."
    )


def _uploader(
    which: Upload,
    label: str,
    help_text: str,
    suffixes: tuple[str, ...],
    review: Review | None,
    disabled: bool = False,
) -> None:
    generation = st.session_state.setdefault(f"{which}_uploads", 0)
    # nothing that is fitted or asked meanwhile reads a new foreign table
    busy = waiting.reading if which == "foreign" else waiting.busy
    waits = review is not None and busy(review.id)
    uploaded = st.file_uploader(
        label,
        type=list(dict.fromkeys(suffixes)),
        help=help_text,
        key=f"{which}_file_{generation}",
        disabled=disabled or waits,
    )
    if uploaded is None or waits:  # a file that came meanwhile waits for the next run
        return
    review_id = review.id if review is not None else session.new_review()
    if (task := wanted_task()) is not None:
        set_task(session.workspace(), review_id, task)
    # A fresh key empties the uploader, so that the bytes do not stay in memory.
    st.session_state[f"{which}_uploads"] = generation + 1
    waiting.start(
        _step(which, review_id, uploaded, uploaded.name),
        title=f"Reading {uploaded.name}",
        owner=review_id,
        short=True,
    )
    st.rerun()


def _step(
    which: Upload, review_id: str, source: BinaryIO, name: str
) -> Callable[[Progress, Callable[[], bool]], Review]:
    workspace = session.workspace()

    def work(progress: Progress, cancelled: Callable[[], bool]) -> Review:
        at = (workspace, review_id)
        if which == "model":
            return add_model(*at, source, name, progress=progress, cancelled=cancelled)
        if which == "training":
            return add_training(*at, source, name, progress=progress, cancelled=cancelled)
        if which == "foreign":
            return add_foreign(*at, source, name, progress=progress, cancelled=cancelled)
        return add_table(*at, which, source, name, progress=progress, cancelled=cancelled)

    return work
