"""Out of distribution: how confident the model stays as rows leave its data."""

from __future__ import annotations

from app.out_of_distribution import foreign_choice
from app.out_of_distribution import foreign_parts as parts
from app.shared import page_top

review = page_top.scored_review("out_of_distribution")
if review is not None and parts.has_model(review):
    parts.uploads(review)
    fit, go_on = parts.kernel_density(review)
    foreign = foreign_choice.foreign_rows(review, fit) if go_on else None
    if foreign is not None:
        parts.page(review, fit, foreign)
