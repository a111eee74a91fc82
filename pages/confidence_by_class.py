"""Confidence by class: how often each predicted class is right, at every score."""

from __future__ import annotations

from app.widgets import confidence_parts as parts
from app.widgets import results, session

review = session.scored_review("confidence")
if review is not None:
    workspace = session.workspace()
    fit_set = results.scored_set(workspace, review, "calibration")
    eval_set = (
        results.scored_set(workspace, review, "evaluation") if review.has_evaluation else None
    )
    label = parts.choose_class(review, fit_set)
    parts.curve(review, fit_set, eval_set, label)
    parts.advice()
    parts.bandwidths(review, fit_set)
    parts.methods(review, fit_set, eval_set, label)
    parts.noise(review, fit_set)
