"""Load: a sample in one click, or a model and its held-out tables."""

from __future__ import annotations

import streamlit as st

from app.widgets import load_parts, role_form, session, waiting

review = session.current_review()
session.header(review)

ended = waiting.show(review.id) if review is not None else None
if ended is not None:
    load_parts.report(ended)

if review is not None and review.ready:
    load_parts.about_sample(review)
    load_parts.fit_for_use(review)

if review is None:
    st.markdown(
        "kdcal shows how far a model's stated confidence can be trusted: overall, class by class, "
        "and far from the data. Of a regression it shows where the predicted distributions hold. "
        "Every number comes with the uncertainty that the number of rows leaves. "
        "Open a sample to look around, or bring your own model."
    )
    load_parts.sample_cards()

load_parts.own_files(review)
if review is not None:
    load_parts.start_scoring(review)
    role_form.roles(review)
if review is not None:
    load_parts.another(review)
