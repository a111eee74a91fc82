"""Recalibration: the predictive distributions of a regression before and after a repair."""

from __future__ import annotations

from app.recalibration import recalibration_answer as parts
from app.recalibration.recalibration_sections import further
from app.shared import page_top
from app.shared.sections import sections

review = page_top.scored_review("recalibration")
if review is not None:
    view = parts.recalibrated(review)
    if view is not None:
        places = parts.answer(view)
        sections("recalibration_sections", further(view, places))
