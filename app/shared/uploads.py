"""Uploaded files: bytes are written to the workspace at once, never to a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from app.shared import session, waiting
from app.shared.task_choice import review_to_fill
from kdcal_core.models import model_formats, model_suffixes
from kdcal_core.progress import Progress
from kdcal_core.quotas import UPLOAD
from kdcal_core.review import (
    KEY_SUFFIXES,
    SIGNATURE_SUFFIXES,
    TABLE_SUFFIXES,
    Arrival,
    Review,
    add_files,
    add_foreign,
    add_watched,
)
from kdcal_core.text import bytes_text, counted, escape_markdown, listed

Upload = Literal["files", "foreign", "watched"]

# Listed so that choosing a pickle shows the reason and the remedy, not a greyed-out file.
REFUSED_SUFFIXES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")

TABLES_HELP = (
    "Tables are CSV or Parquet, one row a case, with the true class or outcome. A name that holds "
    "calibration, evaluation, test, validation or training says which set a table is. Others take "
    "the places that are free, and one without the true class is taken for foreign rows. This can "
    "be changed afterwards."
)
FOREIGN_HELP = (
    "Rows unlike the data, with the model's features under the same names. They need no true "
    "class. Nothing is fitted on them."
)
WATCHED_HELP = (
    "Rows for the model, or its predictions, in the columns of the reference table. The column of "
    "the true class or outcome may be missing, wholly or in some rows. Rows stand in the order in "
    "which they came."
)


def watched_uploader(review: Review) -> None:
    """One uploader for a new table that the Watch page holds against the review's rows."""
    _uploader("watched", "A new table", WATCHED_HELP, TABLE_SUFFIXES, review)


def foreign_uploader(review: Review) -> None:
    """One uploader for a table of foreign rows; the Out of distribution page shows them."""
    _uploader("foreign", "A table of foreign rows", FOREIGN_HELP, TABLE_SUFFIXES, review)


def loaded_tables(
    review: Review, which: Literal["foreign", "watched"], remove: Callable[[str], None]
) -> None:
    """The loaded tables of a kind, each with a button to remove it."""
    tables = review.foreign if which == "foreign" else review.watched
    for at, (name, table) in enumerate(tables.items()):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{escape_markdown(name, 60)} · {counted(table.n_rows, 'row')}")
            st.button(
                f"Remove {escape_markdown(name, 40)}",
                key=f"remove_{which}_{at}",
                icon=":material/close:",
                type="tertiary",
                on_click=remove,
                args=(name,),
                disabled=waiting.busy(review.id),
            )


def drop_zone(review: Review | None) -> None:
    """One uploader for all files of a review, in any order."""
    _uploader(
        "files",
        "Your model and tables",
        f"{_model_help()} {TABLES_HELP}",
        (
            *model_suffixes(),
            *REFUSED_SUFFIXES,
            *TABLE_SUFFIXES,
            *SIGNATURE_SUFFIXES,
            *KEY_SUFFIXES,
        ),
        review,
        several=True,
    )


def _model_help() -> str:
    known = (f"{one.title} ({', '.join(one.suffixes)})" for one in model_formats().values())
    return (
        f"One of: {', '.join(known)}. A pickle is refused, because opening one runs any code in "
        f"it. A signature of the model ({', '.join(SIGNATURE_SUFFIXES)}) is verified with its "
        f"maker's public key ({', '.join(KEY_SUFFIXES)})."
    )


def _uploader(
    which: Upload,
    label: str,
    help_text: str,
    suffixes: tuple[str, ...],
    review: Review | None,
    several: bool = False,
) -> None:
    generation = st.session_state.setdefault(f"{which}_uploads", 0)
    # no other computation reads a new table beside the sets meanwhile
    busy = waiting.busy if which == "files" else waiting.reading
    waits = review is not None and busy(review.id)
    uploaded = st.file_uploader(
        label,
        type=list(dict.fromkeys(suffixes)),
        help=f"{help_text} A file may have up to {bytes_text(UPLOAD.amount)}. {UPLOAD.raised}",
        key=f"{which}_file_{generation}",
        disabled=waits,
        accept_multiple_files=several,
    )
    if not uploaded or waits:  # a file that came meanwhile waits for the next run
        return
    files = uploaded if isinstance(uploaded, list) else [uploaded]
    review_id = review_to_fill(review)
    # A new key empties the uploader, so that the bytes do not stay in memory.
    st.session_state[f"{which}_uploads"] = generation + 1
    arrivals = [Arrival(file, file.name) for file in files]
    waiting.start(
        _step(which, review_id, arrivals),
        title=f"Reading {listed([file.name for file in files], 3)}",
        owner=review_id,
        short=True,
    )
    st.rerun()


def _step(
    which: Upload, review_id: str, files: list[Arrival]
) -> Callable[[Progress, Callable[[], bool]], Review]:
    workspace = session.workspace()

    def work(progress: Progress, cancelled: Callable[[], bool]) -> Review:
        if which != "files":
            (one,) = files
            add = add_foreign if which == "foreign" else add_watched
            return add(
                workspace, review_id, one.source, one.name, progress=progress, cancelled=cancelled
            )
        return add_files(workspace, review_id, files, progress=progress, cancelled=cancelled)

    return work
