"""Compare: every calibrator on the same rows, and which ones can be told apart."""

from __future__ import annotations

import streamlit as st

from app.compare import compare_parts as parts
from app.shared import page_top
from app.shared.sections import sections

review = page_top.scored_review("compare")
if review is not None:
    top = st.container()  # the finding comes first, above the settings that led to it
    view = parts.compared(review)
    if view is not None:
        parts.answer(view)
        sections("compare_sections", parts.further(view))
        parts.onward()
