"""Compare: every calibrator on the same rows, and which ones can be told apart."""

from __future__ import annotations

from app.compare import compare_parts as parts
from app.shared import page_top
from app.shared.sections import sections

review = page_top.scored_review("compare")
if review is not None:
    view = parts.compared(review)
    if view is not None:
        parts.answer(view)
        sections("compare_sections", parts.further(view))
        parts.onward()
