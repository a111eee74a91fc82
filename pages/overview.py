"""Overview: every check of the model with its verdict, and what to do next."""

from __future__ import annotations

import streamlit as st

from app.overview import limits_form
from app.overview import overview_parts as parts
from app.shared import audits_here, checked, page_top
from app.shared.set_choice import choose_set

review = page_top.scored_review("overview")
if review is not None:
    with st.container(horizontal=True, vertical_alignment="center"):
        which = choose_set(review, "overview")
        parts.question(review)
        limits_form.limits_button(review)
        audits_here.record_button(review)
        onward = st.container(horizontal=True, horizontal_alignment="right")
    quick = checked.quick(review, which)
    if quick is not None:
        above = st.container()
        line = st.container(horizontal=True)
        left, right = line.container(), line.container(width=parts.PICTURE_WIDTH)
        listed, running = left.container(), left.container()
        with running:
            further = checked.thorough(review, which)
            compared = checked.baseline(review)
        judged = parts.judged(review, compared, quick, further.measured)
        if further.measured is not None and compared.complete:
            parts.keep_verdict(review, which, judged)
        with above:
            parts.verdict(judged, further, compared)
            parts.what_next(review, judged, further, compared)
            parts.later(review, which)
        with onward:
            parts.onward(review, judged)
        with listed:
            parts.checks(judged, compared)
        with right:  # last: the browser's first figure of a visit takes half a second
            parts.picture(review, which)
