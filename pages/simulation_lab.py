"""Simulation lab: a model and its calibrated versions where the truth is known."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.shared import page_top, session
from app.simulation_lab import classification_lab, image_lab, lab_settings, regression_lab
from app.simulation_lab.lab import Lab, show_lab

LABS: dict[lab_settings.LabTask, Lab[Any]] = {
    "classification": classification_lab.LAB,
    "regression": regression_lab.LAB,
    "images": image_lab.LAB,
}

with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
    st.title("Simulation lab", width="content")
    task = lab_settings.task()
page_top.doubts_alone(session.current_review())
show_lab(LABS[task], task)
