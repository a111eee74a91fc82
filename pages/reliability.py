"""Reliability: what the model says against how often it is right."""

from __future__ import annotations

import streamlit as st

from app.reliability import reliability_parts as parts
from app.shared import page_top
from app.shared.sections import sections
from app.shared.set_choice import choose_set

review = page_top.scored_review("reliability")
if review is not None:
    with st.container(horizontal=True, vertical_alignment="center"):
        which = choose_set(review, "reliability")
        drawn = parts.asked(review)
    overview = parts.answer(review, which, drawn)
    if overview is not None:
        sections("reliability_sections", parts.further(review, which, drawn, overview))
