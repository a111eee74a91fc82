"""Reliability: what the model says against how often it is right."""

from __future__ import annotations

import streamlit as st

from app.reliability import reliability_parts as parts
from app.shared import page_top
from app.shared.sections import sections
from app.shared.set_choice import choose_set

review = page_top.scored_review("reliability")
if review is not None:
    which = choose_set(review, "reliability")
    top = st.container()
    drawn = parts.diagram(review, which)
    overview = parts.overview(review, which, drawn.asked)
    if overview is not None:
        with top:
            parts.finding(review, which, drawn.asked, overview)
        sections("reliability_sections", parts.further(review, which, drawn, overview))
