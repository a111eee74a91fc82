"""The kernel density version of a review's model: fitted once as a job, read once, set anew.

Pages that show it share one job and one copy in memory. Gamma, variance and floor act on the
arrays that are there already (`Version`), so a slider needs no fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from app.widgets import session, waiting
from kdcal_core.calibration import KernelDensityGraph, Located
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.figures import foreign_words
from kdcal_core.jobs import JobSnapshot, jobs
from kdcal_core.review import Review
from kdcal_core.runs import ForeignRun, GraphRun, GraphSettings, Request, graph_request

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """What can be changed without a fit.

    Attributes
    ----------
    gamma : float
        One of the graph's gammas.
    variance_factor : float
        What the graph's own variance floor is multiplied with.
    alpha : float
        Share of ordinary rows that may count as unknown; sets the floor.
    """

    gamma: float
    variance_factor: float
    alpha: float


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted graph, where its files are, and what tells it from others."""

    key: str
    folder: Path
    run: GraphRun


@dataclass(frozen=True, eq=False)
class Version:
    """The kernel density version: a fitted graph at a setting, which needs no other fit.

    ``rows`` tells the rows that are asked about from others, for the cache.
    """

    fit: Fit
    setting: Setting

    @property
    def key(self) -> str:
        """What tells it from others."""
        return f"{self.fit.key} {self.setting}"

    @property
    def graph(self) -> KernelDensityGraph:
        """The graph at the setting; it shares its arrays with the others of its fit."""
        return graph_at(self.fit, self.setting)

    def posterior(self, rows: str, located: Located | None) -> FloatArray:
        """Probabilities of rows, (m, K)."""
        assert located is not None  # a graph was fitted, so there is a partition
        return posterior(self.fit, self.setting, rows, located)

    def log_density(self, rows: str, located: Located | None) -> FloatArray:
        """Log marginal density of rows, (m,); it does not depend on alpha."""
        assert located is not None  # as for `posterior`
        return log_density(self.fit, self.setting, rows, located)


@dataclass(frozen=True, eq=False)
class Foreign:
    """Foreign rows with the parent's answers, and what tells them from others."""

    key: str
    run: ForeignRun


def fitted(
    review: Review, will_show: str = "", *, settings: GraphSettings | None = None
) -> Fit | None:
    """The review's kernel density version once it is fitted; until then the page says how it is.

    Parameters
    ----------
    will_show : str
        What the page will show then, our own words, above the button that begins the fit.
        Without it the fit begins by itself.
    """
    asked = graph_request(session.workspace(), review.id, settings)
    job = finished(
        asked, review, offer=(lambda: _offer(review, asked, will_show)) if will_show else None
    )
    return None if job is None else answer_of(job, _fit)


def finished(
    asked: Request, review: Review, *, offer: Callable[[], bool] | None = None
) -> JobSnapshot | None:
    """The job of a request once it is done; until then its progress or why there is no result.

    ``offer`` draws what is offered and tells whether it was taken up; without it a job that was
    never begun begins.
    """
    job = waiting.find(asked.key)
    if job is None:
        if offer is not None and not offer():
            return None
        job = begin(asked, review)
        if offer is not None:
            st.rerun()  # what was offered gives way to the progress
    if job.state == "done":
        return job
    if not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        begin(asked, review)
        st.rerun()
    return None


def asked_for(
    asked: Request, review: Review, place: Any, *, label: str, name: str, will_show: str
) -> JobSnapshot | None:
    """The job of these settings, or that of the last ones while these were not begun.

    Parameters
    ----------
    place : container
        Of the button that begins the job, with this ``label``.
    name : str
        Of what is computed: tells the session's last one of each review from those of others.
    will_show : str
        What the page will show then, our own words, while there is nothing yet.
    """
    kept = st.session_state.setdefault(f"{name}_last", {})
    if waiting.find(asked.key) is not None:
        job = finished(asked, review)
        if job is not None:
            kept[review.id] = asked.key
        return job
    if place.button(label, key=f"{name}_start", type="primary", icon=":material/play_arrow:"):
        begin(asked, review)
        st.rerun()
    former = kept.get(review.id)
    last = None if former is None else waiting.find(former)
    if last is not None and last.state == "done":
        st.info(
            "The settings have changed: below stands what the former ones gave.",
            icon=":material/info:",
        )
        return last
    with st.container(border=True):
        st.markdown(will_show)
    return None


def begin(asked: Request, review: Review) -> JobSnapshot:
    """Begin the job of a request, or join it."""
    return waiting.run(
        asked.target, asked.kwargs, key=asked.key, title=asked.title, owner=review.id
    )


def foreign_of(job: JobSnapshot) -> Foreign | None:
    """The foreign rows of a job that is done; None, and why, where they cannot be read."""
    return answer_of(job, _foreign)


def graph_at(fit: Fit, setting: Setting) -> KernelDensityGraph:
    """The graph at another setting: no fit, and its arrays are shared."""
    return _graph_at(fit.key, setting, fit.run.graph)


def posterior(fit: Fit, setting: Setting, rows: str, located: Located) -> FloatArray:
    """The graph's posterior of rows, (m, K). ``rows`` tells them from others, for the cache."""
    return _posterior(fit.key, setting, rows, graph_at(fit, setting), located)


def log_density(fit: Fit, setting: Setting, rows: str, located: Located) -> FloatArray:
    """Log marginal density of rows, (m,); it does not depend on alpha."""
    graph = graph_at(fit, setting)
    return _log_density(fit.key, setting.gamma, setting.variance_factor, rows, graph, located)


@st.cache_resource(max_entries=4, show_spinner="Reading the kernel density version")
def _fit(key: str, _at: Path) -> Fit:
    return Fit(key, _at, GraphRun.read(_at))


@st.cache_resource(max_entries=8, show_spinner="Reading the foreign rows")
def _foreign(key: str, _at: Path) -> Foreign:
    return Foreign(key, ForeignRun.read(_at))


@st.cache_resource(max_entries=32, show_spinner=False)
def _graph_at(key: str, setting: Setting, _graph: KernelDensityGraph) -> KernelDensityGraph:
    return _graph.with_settings(
        gamma=setting.gamma,
        variance_floor=_graph.variance_floor * setting.variance_factor,
        floor_quantile=setting.alpha,
    )


@st.cache_resource(max_entries=32, show_spinner=False)
def _posterior(
    key: str, setting: Setting, rows: str, _graph: KernelDensityGraph, _located: Located
) -> FloatArray:
    return _graph.posterior(_located)


@st.cache_resource(max_entries=32, show_spinner=False)
def _log_density(
    key: str,
    gamma: float,
    variance_factor: float,
    rows: str,
    _graph: KernelDensityGraph,
    _located: Located,
) -> FloatArray:
    return _graph.log_marginal(_located)


def _offer(review: Review, asked: Request, will_show: str) -> bool:
    """What fitting means for this review, and the button that begins it."""
    training = review.training
    n_calibration = review.tables["calibration"].n_rows
    with st.container(border=True):
        st.markdown(will_show)
        st.markdown(foreign_words.fit_offer(training.n_rows if training else None, n_calibration))
        return st.button(
            "Fit the kernel density version",
            key=f"fit_{asked.key[:16]}",
            type="primary",
            icon=":material/play_arrow:",
        )


def answer_of(job: JobSnapshot, read: Callable[[str, Path], T]) -> T | None:
    """What a job has left; where that is damaged, says so and offers to compute it anew."""
    assert job.folder is not None  # of every job with a key that is done
    try:
        return read(job.key, job.folder)
    except InputError as error:
        session.error_box(error)
    if st.button("Compute again", key=f"anew_{job.key[:16]}", icon=":material/refresh:"):
        jobs().forget(job.key)
        st.rerun()
    return None
