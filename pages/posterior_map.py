"""Posterior map: the model's probabilities over a plane, beside its kernel density version."""

from __future__ import annotations

import streamlit as st

from app.posterior_map import map_box, map_pair
from app.posterior_map import map_parts as parts
from app.shared import foreign_results, page_top

review = page_top.scored_review("posterior_map")
if review is not None and parts.can_be_drawn(review):
    plane, label = parts.controls(review)
    finding = st.container()
    picture, below = st.container(), st.container()
    with below:
        fit = parts.fitted_graph(review)
    with picture:
        drawn = parts.grid(review, plane, fit)
    version = None
    if fit is not None and drawn is not None:
        with below, st.expander("Settings of the kernel density version", icon=":material/tune:"):
            version = parts.set_again(review, fit)
    prior = None
    if drawn is not None:
        prior = foreign_results.prior_of(review, fit) if version is None else version.prior
    if drawn is not None and prior is not None:
        maps = parts.maps(review, drawn, version, label)
        if maps is not None:
            with finding:
                sentence = parts.finding(review, drawn.run, maps, prior)
            with picture.container(border=True):
                on_box = map_box.on_box(review, drawn.run)
                parts.picture(
                    *(review, drawn.run, maps, label, prior, on_box),
                    version=version,
                    sentence=sentence,
                )
            map_box.rows_in_box(review, drawn, version)
            if fit is not None and fit.record.distance == "geodesic":
                map_pair.two_rows(review, fit)
