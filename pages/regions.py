"""Regions: where in the inputs the model is wrong beyond chance, and the effect of a repair."""

from __future__ import annotations

import streamlit as st

from app.regions import (
    regions_finding,
    regions_region,
    regions_repair,
    regions_search,
    regions_settings,
)
from app.regions import regions_found as parts
from app.shared import page_top

review = page_top.scored_review("regions")
if review is not None:
    asked = None
    with st.container(horizontal=True, vertical_alignment="center"):
        looked = parts.looked_at(review)
        if looked is not None:
            asked = regions_settings.asked_for(looked)
    if looked is not None and asked is not None:
        top = st.container()
        view = parts.searched(looked, asked)
        if view is not None:
            below = st.container()
            # every section is computed: the finding names the repair and what it changes
            titles = ["One region", "Every region", "Repair", *parts.pays(looked)]
            one, every, repaired, *pays = st.tabs(titles, key="regions_sections")
            with one:
                panels = regions_region.closely(view)
            with every:
                parts.every_region(looked, view.found)
            repair = measured = None
            with repaired:
                if looked.regression:
                    regions_repair.elsewhere()
                else:
                    repair = regions_repair.repaired(view)
                    if repair is not None:
                        regions_repair.before_and_after(view, repair)
            for tab in pays:
                measured = regions_search.whole_of(looked)
                if measured is not None and panels is not None:
                    with tab:
                        regions_repair.conditions(view, measured, panels.fits, repair)
            with top:
                regions_finding.finding(view, repair)
            with below:
                regions_finding.estimates(view, measured, repair)
