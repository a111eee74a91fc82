"""The kernel density version of a review's model: fitted once as a job, set again at once.

Pages that show it share one job. Gamma, variance and floor act on the arrays that are there already
(`Version`), so a slider needs no fit; what follows from a setting is measured, as `foreign_results`
and `map_results` ask for it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from app.shared import job_results, session
from app.shared.kept import by_digest
from kdcal_core.charts import fit_offer
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.store import load_part
from kdcal_core.tasks import (
    ForeignRecord,
    GraphFacts,
    GraphRecord,
    GraphSetting,
    GraphSettings,
    Request,
    fit_graph,
)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted graph: what distinguishes it from others, and what is known of it.

    Its arrays are left to those who measure.
    """

    key: str
    folder: Path
    record: GraphRecord

    @property
    def facts(self) -> GraphFacts:
        """Facts about the graph, without its arrays."""
        return self.record.facts


@dataclass(frozen=True, eq=False)
class Version:
    """The kernel density version: a fitted graph at a setting, which needs no other fit."""

    fit: Fit
    setting: GraphSetting

    @classmethod
    def of(cls, fit: Fit, gamma: float, variance_factor: float, alpha: float) -> Version:
        """The version of a fit at a setting."""
        return cls(fit, GraphSetting(str(fit.folder), gamma, variance_factor, alpha))


def asked(version: Version | None) -> dict[str, Any]:
    """The setting as every measure takes it; nothing without a version."""
    return {} if version is None else {"graph": asdict(version.setting)}


@dataclass(frozen=True, eq=False)
class Foreign:
    """Foreign rows with the model's answers: what distinguishes them, and what is known of them.

    Its arrays are left to those who measure.
    """

    key: str
    folder: Path
    record: ForeignRecord


def fitted(
    review: Review, will_show: str = "", *, settings: GraphSettings | None = None
) -> Fit | None:
    """The review's kernel density version once it is fitted; before, the page shows progress.

    Parameters
    ----------
    will_show : str
        What the page will show then, our own words, above the button that begins the fit.
        Without it the fit begins by itself.
    """
    asked = fit_graph.request(session.workspace(), review.id, settings)
    job = job_results.finished(
        asked, review, offer=(lambda: _offer(review, asked, will_show)) if will_show else None
    )
    return (
        None
        if job is None
        else job_results.answer_of(job, lambda key, folder: _fit(key, folder=folder))
    )


def foreign_of(job: JobSnapshot) -> Foreign | None:
    """The foreign rows of a job that is done; None, and why, where they cannot be read."""
    return job_results.answer_of(job, lambda key, folder: _foreign(key, folder=folder))


@by_digest
def _fit(key: str, *, folder: Path) -> Fit:
    return Fit(key, folder, load_part(folder, "record", GraphRecord, whole=True))


@by_digest
def _foreign(key: str, *, folder: Path) -> Foreign:
    return Foreign(key, folder, load_part(folder, "record", ForeignRecord, whole=True))


def _offer(review: Review, asked: Request, will_show: str) -> bool:
    """What fitting means for this review, and the button that begins it."""
    training = review.training
    n_calibration = review.tables["calibration"].n_rows
    with st.container(border=True):
        st.markdown(will_show)
        st.markdown(fit_offer(training.n_rows if training else None, n_calibration))
        return st.button(
            "Fit the kernel density version",
            key=f"fit_{asked.key[:16]}",
            type="primary",
            icon=":material/play_arrow:",
        )
