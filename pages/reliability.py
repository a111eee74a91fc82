"""Reliability: what the model says against how often it is right."""

from __future__ import annotations

from app.widgets import reliability_parts as parts
from app.widgets import results, session
from app.widgets.set_choice import choose_set

review = session.scored_review("reliability")
if review is not None:
    scored = results.scored_set(session.workspace(), review, choose_set(review, "reliability"))
    parts.finding(scored)
    parts.diagram(review, scored)
    parts.scores_and_confusion(review, scored)
    parts.every_estimate(review, scored)
