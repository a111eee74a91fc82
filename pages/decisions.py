"""Decisions: what follows if rows above a threshold are flagged."""

from __future__ import annotations

import streamlit as st

from app.decisions import decision_parts as parts
from app.shared import page_top
from app.shared.set_choice import choose_set

review = page_top.scored_review("decisions")
if review is not None:
    with st.container(horizontal=True, vertical_alignment="center"):
        which = choose_set(review, "decisions")
        event = parts.choose_event(review)
        view = parts.decided(review, which, event)
    if view is not None:
        parts.consequences(parts.answer(view))
