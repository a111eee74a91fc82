"""Out of distribution: how confident the model stays as rows leave its data."""

from __future__ import annotations

from app.widgets import foreign_choice, foreign_text, graph_results, session
from app.widgets import foreign_parts as parts

review = session.scored_review("foreign")
if review is not None and parts.has_model(review):
    parts.uploads(review)
    whole = parts.has_partition(review)
    fit = graph_results.fitted(review, foreign_text.WILL_SHOW) if whole else None
    if fit is not None or not whole:
        foreign = foreign_choice.foreign_rows(review, fit)
        if foreign is not None:
            parts.page(review, fit, foreign)
