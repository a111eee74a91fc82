"""Confidence by class: how often each predicted class is right, at every score."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.confidence_by_class import confidence_parts as parts
from app.shared import page_top
from app.shared.sections import sections

review = page_top.scored_review("confidence_by_class")
if review is not None:
    with st.container(horizontal=True, vertical_alignment="center"):
        view = parts.shown(review)
        settings = parts.settings(review)
    if view is not None:
        fitted = parts.curve(view, settings)
        sections(
            "confidence_sections",
            {
                "Bandwidth rules" if view.of_event else "Every class": partial(
                    parts.bandwidths, view, fitted=fitted
                ),
                "Methods": partial(parts.methods, view),
                "Noise": partial(parts.noise, view),
                "Before you rely on it": parts.advice,
            },
        )
