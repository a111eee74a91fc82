"""The kernel density version of a review's model: fitted once as a job, read once, set anew.

Pages that show it share one job and one copy in memory. Gamma, variance and floor act on the
arrays that are there already (`Version`), so a slider needs no fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app.shared import job_results, session
from app.shared.kept import kept_by_bytes
from kdcal_core.calibration import KernelDensityGraph, Located
from kdcal_core.charts import foreign_words
from kdcal_core.data import FloatArray
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.store import load
from kdcal_core.tasks import ForeignRun, GraphRun, GraphSettings, Request, graph_request


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
    """Foreign rows with the parent's answers, where they are, and what tells them from others."""

    key: str
    folder: Path
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
    job = job_results.finished(
        asked, review, offer=(lambda: _offer(review, asked, will_show)) if will_show else None
    )
    return None if job is None else job_results.answer_of(job, _fit)


def foreign_of(job: JobSnapshot) -> Foreign | None:
    """The foreign rows of a job that is done; None, and why, where they cannot be read."""
    return job_results.answer_of(job, _foreign)


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
    return Fit(key, _at, load(_at, GraphRun))


@st.cache_resource(max_entries=8, show_spinner="Reading the foreign rows")
def _foreign(key: str, _at: Path) -> Foreign:
    return Foreign(key, _at, load(_at, ForeignRun))


@kept_by_bytes()
def _graph_at(key: str, setting: Setting, _graph: KernelDensityGraph) -> KernelDensityGraph:
    return _graph.with_settings(
        gamma=setting.gamma,
        variance_floor=_graph.variance_floor * setting.variance_factor,
        floor_quantile=setting.alpha,
    )


@kept_by_bytes()
def _posterior(
    key: str, setting: Setting, rows: str, _graph: KernelDensityGraph, _located: Located
) -> FloatArray:
    return _graph.posterior(_located)


@kept_by_bytes()
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
