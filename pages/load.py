"""Load: a model and its held-out tables, or a sample in one click."""

from __future__ import annotations

import streamlit as st

from app.load import kept_reviews, load_parts, role_form
from app.shared import navigation, page_top, session, waiting
from app.shared.reviews_here import reviews_here

review = session.current_review()
# Two places of their own: whatever comes and goes above, the uploaders stay where they are, so
# that a file still on its way when another has begun to be read is not lost.
above, files = st.container(), st.container()

with above:
    st.title(navigation.places()["load"].title, anchor=False)
    page_top.header(review, in_full=True)
    ended = waiting.show(review.id) if review is not None else None
    if ended is not None:
        load_parts.report(ended)
    if review is not None:
        load_parts.settle_doubts(review)
        load_parts.open_when_scored(review)
    if review is not None and review.ready:
        from app.load.fitness_card import fit_for_use  # slow to import, and the first page has none

        load_parts.about_sample(review)
        fit_for_use(review)
    if review is None:
        load_parts.welcome()

with files:
    kept = reviews_here() if review is None else []
    load_parts.own_files(review, kept)
    if review is not None:
        load_parts.start_scoring(review)
        load_parts.first_rows(review)
        role_form.roles(review)
        load_parts.another(review)
    else:
        load_parts.sample_gallery()
        kept_reviews.kept_reviews(kept)
