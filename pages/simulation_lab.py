"""Simulation lab: a model and its calibrated versions where the truth is known."""

from __future__ import annotations

import streamlit as st

from app.simulation_lab import (
    lab_results,
    lab_run,
    lab_settings,
    lab_sizes,
    lab_text,
    regression_lab,
)
from kdcal_core.tasks import simulate

st.title("Simulation lab")
if lab_settings.task() == "regression":
    st.caption(lab_text.REGRESSION_INTRODUCTION)
    regression_lab.page()
else:
    st.caption(lab_text.INTRODUCTION)
    settings = lab_settings.choose()
    request = simulate.request(settings)
    run = lab_results.result_of(request, simulate, lab_run.offer)
    if run is not None:
        lab_run.results(run, request.key)
        lab_sizes.card(settings)
        lab_run.ignored_feature()
        lab_run.flaws()
