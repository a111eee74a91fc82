"""Posterior map: what the model says all over a plane, beside its kernel density version."""

from __future__ import annotations

import streamlit as st

from app.widgets import map_parts as parts
from app.widgets import map_region, session

review = session.scored_review("map")
if review is not None and parts.can_be_drawn(review):
    finding = st.container()
    fit = parts.fitted_graph(review)
    with st.container(border=True):
        plane, label = parts.controls(review)
        drawn = parts.grid(review, plane, fit)
        picture = st.container()
        setting = None
        if fit is not None and drawn is not None:
            setting = parts.setting(review, fit.run.graph)
            parts.about_graph(fit.run)
    if drawn is not None:
        maps = parts.posteriors(review, drawn, fit, setting)
        prior = parts.prior_of(review, fit)
        with finding:
            parts.finding(drawn.run, maps, prior)
        with picture:
            parts.picture(
                review, drawn.run, maps, label, prior, map_region.on_box(review, drawn.run)
            )
        map_region.region(review, drawn.run, fit, setting)
