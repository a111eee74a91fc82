"""Reliability: what the model says against how often it is right."""

from __future__ import annotations

from app.reliability import reliability_parts as parts
from app.shared import page_top, set_results
from app.shared.set_choice import choose_set
from kdcal_core.tasks import set_overview

review = page_top.scored_review("reliability")
if review is not None:
    which = choose_set(review, "reliability")
    overview = set_results.of(review, set_overview, which=which)
    if overview is not None:
        parts.finding(overview)
    parts.diagram(review, which)
    if overview is not None:
        parts.scores_and_confusion(review, which, overview)
    parts.every_estimate(review, which)
