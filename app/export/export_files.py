"""The lower part of the page Choose and export: files to take away, and a file to try."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app.export import export_gain
from app.export import export_results as found
from app.export import export_text as text
from app.export.export_results import View
from app.shared import job_results, session, sign_in
from app.shared.charts import csv_button
from app.shared.emphasis import emphasis, quiet
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.export import CalibratorCard
from kdcal_core.charts import gain_finding
from kdcal_core.review import Review
from kdcal_core.tasks import try_calibrator
from kdcal_core.text import bytes_text, escape_markdown

SUFFIX = ".kdcal"
_TRIED = "export_tried"


def take_away(view: View) -> None:
    """The calibrator file, and the ONNX model if there is one."""
    run, review = view.run, view.review
    key = run.record.settings.key
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _download("Calibrator file", run.calibrator_file, _name(view), "calibrator", primary=True)
        if run.onnx_file is not None:
            onnx = text.file_name(review, key, ".onnx")
            _download("Model and calibrator as ONNX", run.onnx_file, onnx, "onnx")


def _name(view: View) -> str:
    return text.file_name(view.review, view.run.record.settings.key, SUFFIX)


def how_to_use(view: View) -> None:
    """How to apply the files, who may use them, and the card."""
    run, review = view.run, view.review
    with st.container(border=True):
        if run.onnx_file is not None:
            st.caption(
                "The ONNX file is the model followed by the calibrator and needs no kdcal. Over "
                f"{run.record.onnx_rows:,} real rows its probabilities differ from the "
                f"calibrator's by at most {run.record.onnx_difference:.1g}."
            )
        else:
            why = escape_markdown(run.record.why_no_onnx or "", 600)
            st.caption(f"There is no ONNX file. {why}")
        _usage(view, _name(view))
        with st.popover("Who may use it, and where", type=quiet(), icon=":material/help:"):
            st.markdown(text.use(review))


def card(view: View) -> None:
    """The card of the calibrator file."""
    key = view.run.record.settings.key
    with st.container(border=True):
        card_table(view.run.card, f"{view.review.title} {key}", "card", "export_card")


def _download(label: str, path: Path, name: str, key: str, *, primary: bool = False) -> None:
    st.download_button(
        f"{label} ({bytes_text(path.stat().st_size)})",
        data=sign_in.while_it_lasts(path.read_bytes),  # read on download, and not kept
        file_name=name,
        mime="application/octet-stream",
        key=f"export_download_{key}",
        type=emphasis(wanted=primary),
        icon=":material/download:",
        on_click="ignore",
    )


def _usage(view: View, name: str) -> None:
    card, entry = view.run.card, CALIBRATORS[view.run.record.settings.key]
    python, command = st.columns(2, gap="medium")
    with python:
        st.markdown("In Python:")
        st.code(
            text.python_lines(name, card, reads_rows="inputs" in entry.needs),
            language=None,
            wrap_lines=True,
        )
    with command:
        st.markdown(text.ON_COMMAND_LINE)
        st.code(text.score_line(name, card), language=None, wrap_lines=True)


def card_table(card: CalibratorCard, of: str, what: str, key: str) -> None:
    """The card as a table of plain text, also as CSV, named as in `charts.csv_button`."""
    rows = text.card_rows(card)
    table = pd.DataFrame({"": list(rows), "Value": list(rows.values())})
    # a plain table breaks long lines, which a data frame cuts off
    st.table(
        table.map(lambda cell: escape_markdown(text.breakable(cell), 2000)),
        border="horizontal",
        hide_index=True,
        hide_header=True,
        alt="The card of the calibrator file",
    )
    csv_button(lambda: table.rename(columns={"": "What"}), key=f"{key}_csv", of=of, what=what)


def try_a_file(review: Review) -> None:
    """An uploaded calibrator file on the rows of this review."""
    with st.container(border=True):
        st.header("Try a calibrator file", anchor=False)
        st.markdown(text.TRY)
        _uploader(review)
        asked = st.session_state.get(_TRIED, {}).get(review.id)
        if asked is None:
            return
        job = job_results.finished(asked, review.id)
        tried = None if job is None else found.tried_of(job)
        if tried is None:
            return
        st.markdown(
            f"**{escape_markdown(tried.card.title, 200)}.** {text.belongs(tried.has_model, review)}"
        )
        if tried.same_rows:
            st.warning(
                "It was fitted on the rows that are used to judge it here, so it looks better than "
                "it is.",
                icon=":material/visibility:",
            )
        st.markdown(escape_markdown(gain_finding("The file", tried.gain), 600))
        of_it = "of the tried file"
        export_gain.gained(tried.gain, tried.card.key, review.title, "tried", which=of_it)
        card_table(tried.card, review.title, f"card {of_it}", "tried_card")


def _uploader(review: Review) -> None:
    generation = st.session_state.setdefault("export_uploads", 0)
    uploaded: Any = st.file_uploader(
        "Calibrator file", type=[SUFFIX], key=f"export_file_{generation}"
    )
    if uploaded is None:
        return
    workspace = session.workspace()
    path = workspace.keep(review.id, uploaded, f"tried{SUFFIX}")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    asked = try_calibrator.request(
        workspace,
        review.id,
        path=str(path),
        name=uploaded.name,
        digest=digest,
        event=review.event,
    )
    st.session_state[_TRIED] = {**st.session_state.get(_TRIED, {}), review.id: asked}
    # A new key empties the uploader, so that the bytes do not stay in memory.
    st.session_state["export_uploads"] = generation + 1
    job_results.begin(asked, review.id)
    st.rerun()
