"""A folder of Parquet files that lies on the server, read as one table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.shared import session, waiting
from app.shared.task_choice import review_to_fill
from kdcal_core.data import allowed_roots
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import (
    MOST_FOLDERS,
    Arrival,
    Review,
    add_files,
    gathered_table,
    server_folders,
)
from kdcal_core.text import printable

_OPEN = "server_folder"
DRAWN = 1_000_000  # rows, if they are not all read


def server_folder(review: Review | None) -> None:
    """The choice of a folder, where a setting names folders that may be read."""
    roots = allowed_roots()
    if not roots:
        return
    with st.popover(
        "A folder on the server",
        icon=":material/folder_open:",
        key=_OPEN,
        on_change="rerun",
    ) as shown:
        if not shown.open:  # looking for folders may take a while
            return
        folders = server_folders(roots)
        if not folders:
            st.caption("The folders of the setting hold no Parquet file.")
            return
        chosen = st.selectbox(
            "Folder of Parquet files",
            folders,
            index=None,
            placeholder="Choose a folder",
            format_func=lambda one: printable(str(one), 200),
            help="The rows of all files in it are read as one table.",
        )
        if len(folders) == MOST_FOLDERS:
            st.caption(f"Only the first {MOST_FOLDERS:,} folders are listed.")
        drawn = st.checkbox(
            f"Draw {DRAWN:,} rows",
            key="server_folder_drawn",
            help="The app keeps all rows of a review, because its pages show them and fit to them. "
            "Of a folder that is too large for this, or too slow, it keeps rows drawn at random "
            "from all files: more would not narrow any interval that can be seen. `kdcal audit "
            "run` judges all rows of a folder of any size.",
        )
        busy = review is not None and waiting.busy(review.id)
        st.button(
            "Read the folder",
            disabled=chosen is None or busy,
            on_click=_start,
            args=(review, chosen, drawn),
        )


def _start(review: Review | None, folder: Path, drawn: bool) -> None:
    """Callback: read the folder, and close the choice, which would cover the page."""
    st.session_state[_OPEN] = False
    review_id = review_to_fill(review)
    some = f", {DRAWN:,} rows drawn" if drawn else ""
    workspace, name = session.workspace(), f"{folder.name or 'folder'}{some}.parquet"

    def work(progress: Progress, cancelled: Callable[[], bool]) -> Review:
        with tempfile.TemporaryDirectory(prefix="kdcal-", ignore_cleanup_errors=True) as into:
            table = gathered_table(
                folder,
                Path(into),
                allowed_roots(),
                most=DRAWN if drawn else None,
                progress=part_of(progress, 0.0, 0.5),
                cancelled=cancelled,
            )
            files = [Arrival(table, name)]
            rest = part_of(progress, 0.5, 1.0)
            return add_files(workspace, review_id, files, progress=rest, cancelled=cancelled)

    waiting.start(work, title=f"Reading {name}", owner=review_id, short=True)
