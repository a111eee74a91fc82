"""Confidence by class: how often each predicted class is right, at every score."""

from __future__ import annotations

from functools import partial

from app.confidence_by_class import confidence_parts as parts
from app.shared import page_top, set_results
from app.shared.sections import sections
from kdcal_core.tasks import set_overview

review = page_top.scored_review("confidence_by_class")
if review is not None:
    overview = set_results.of(review, set_overview, which=parts.FIT)
    if overview is not None:
        label = parts.choose_class(review, overview)
        parts.curve(review, overview, label)
        sections(
            "confidence_sections",
            {
                "Every class": partial(parts.bandwidths, review, overview, label),
                "Methods": partial(parts.methods, review, overview, label),
                "Noise": partial(parts.noise, review, overview),
                "Before you rely on it": parts.advice,
            },
        )
