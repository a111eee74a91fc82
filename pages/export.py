"""Choose and export: one calibrator, what it gains, and its file."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.export import export_files as files
from app.export import export_gain as parts
from app.export import export_repair
from app.shared import page_top
from app.shared.sections import sections

review = page_top.scored_review("export")
if review is not None and review.task == "regression":
    export_repair.page(review)
elif review is not None:
    row = st.container(horizontal=True, vertical_alignment="center")
    view = parts.exported(review, row)
    if view is None:
        files.try_a_file(review)
    else:
        with row:
            files.take_away(view)
        parts.answer(view)
        sections(
            "export_sections",
            {
                "What the calibrator does": partial(parts.mapping, view),
                "How to use the file": partial(files.how_to_use, view),
                "Card of the file": partial(files.card, view),
                "Try a calibrator file": partial(files.try_a_file, review),
            },
        )
