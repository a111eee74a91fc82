"""What the jobs of the Regions page have left, read once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from app.widgets import job_results
from app.widgets.regions_search import Found
from kdcal_core.diagnostics import ReliabilityCurve, confidence_reliability
from kdcal_core.jobs import JobSnapshot
from kdcal_core.tasks import RegionSearchRun, RegionsRun


def search_run_of(job: JobSnapshot) -> Found | None:
    """The search of a job that is done; None, and why, where it cannot be read."""
    run = job_results.answer_of(job, _search_run)
    return None if run is None else Found(job.key, run.search)


@st.cache_resource(max_entries=8, show_spinner="Reading the result")
def _search_run(key: str, _at: Path) -> RegionSearchRun:
    return RegionSearchRun.read(_at)


def run_of(job: JobSnapshot) -> RegionsRun | None:
    """The run of a job that is done; None, and why, where it cannot be read."""
    return job_results.answer_of(job, _run)


@st.cache_resource(max_entries=8, show_spinner="Reading the result")
def _run(key: str, _at: Path) -> RegionsRun:
    return RegionsRun.read(_at)


def run_reliability(key: str, run: RegionsRun, method: str) -> ReliabilityCurve:
    """Reliability of a method's scores on the judged rows."""
    return _run_reliability(key, method, run)


@st.cache_data(max_entries=32, show_spinner=False)
def _run_reliability(key: str, method: str, _run: RegionsRun) -> ReliabilityCurve:
    found = _run.scores(method)
    diagram = confidence_reliability(
        found.score, found.hit.astype(np.int64), n_bins=15, sample_weight=_run.weight()
    )
    return diagram.curves[0]
