"""What the simulation lab shows of a run, kept for each run and setting of the graphs."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from kdcal_core.diagnostics import Estimate
from kdcal_core.simulation import SIMULATIONS, Simulated, trunk
from kdcal_core.store import load
from kdcal_core.tasks import LabRun
from kdcal_core.tasks.lab_measures import (
    GraphChoice,
    LabAnswers,
    Method,
    fixed_answers,
    graph_answers,
    measured,
)
from kdcal_core.tasks.lab_sizes import SizesRun


@st.cache_resource(max_entries=4, show_spinner="Reading the simulation")
def run_of(key: str, _folder: Path) -> LabRun:
    """The finished run of this key."""
    del key
    return load(_folder, LabRun)


@st.cache_resource(max_entries=8, show_spinner=False)
def sizes_of(key: str, _folder: Path) -> SizesRun:
    """The finished run over training sizes of this key."""
    del key
    return SizesRun.read(_folder)


def answers_of(run: LabRun, key: str, choice: GraphChoice) -> dict[Method, LabAnswers]:
    """Every method's answers: those that no setting moves, and both graphs at ``choice``."""
    fixed, moved = _fixed(key, run), _moved(key, choice, run)
    named: tuple[Method, ...] = ("model", "isotonic", "sigmoid")
    papers: tuple[Method, ...] = ("geodesic_paper", "euclidean_paper")
    return {
        **{method: fixed[method] for method in named},
        "geodesic": moved["geodesic"],
        "euclidean": moved["euclidean"],
        **{method: fixed[method] for method in papers},
    }


def measures_of(
    run: LabRun, key: str, choice: GraphChoice, answers: dict[Method, LabAnswers]
) -> dict[Method, dict[str, Estimate]]:
    """The measures of every method."""
    chosen = {"geodesic": choice, "euclidean": choice}
    return {
        method: _measured(key, method, chosen.get(method), run, answers[method])
        for method in answers
    }


@st.cache_resource(max_entries=4, show_spinner=False)
def _fixed(key: str, _run: LabRun) -> dict[Method, LabAnswers]:
    return fixed_answers(_run)


@st.cache_resource(max_entries=16, show_spinner=False)
def _moved(key: str, choice: GraphChoice, _run: LabRun) -> dict[Method, LabAnswers]:
    moved = graph_answers(_run, choice)
    return {"geodesic": moved["geodesic"], "euclidean": moved["euclidean"]}


@st.cache_data(max_entries=128, show_spinner=False)
def _measured(
    key: str, method: Method, choice: GraphChoice | None, _run: LabRun, _answers: LabAnswers
) -> dict[str, Estimate]:
    return measured(_run, _answers)


@st.cache_resource(max_entries=32, show_spinner=False)
def glance_of(simulation: str, n_features: int) -> Simulated:
    """A few hundred rows of a simulation, for its small picture."""
    if simulation == "trunk":
        return trunk(600, seed=0, n_features=n_features)
    return SIMULATIONS[simulation].function(600, seed=0)
