"""Simulation lab: where the truth is known, what a model and its kernel density version say."""

from __future__ import annotations

import streamlit as st

from app.simulation_lab import lab_jobs, lab_parts, lab_settings, lab_sizes, lab_text
from app.simulation_lab.lab_results import run_of
from kdcal_core.tasks import lab_request

st.title("Simulation lab")
st.caption(lab_text.INTRODUCTION)
settings = lab_settings.choose()
request = lab_request(settings)
run = lab_jobs.result_of(request, run_of, lab_parts.offer)
if run is not None:
    lab_parts.results(run, request.key)
    lab_sizes.card(settings)
    lab_parts.flaws()
