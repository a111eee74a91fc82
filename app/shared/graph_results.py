"""The kernel density version of a review's model: fitted once as a job, with adjustable settings.

Pages that show it share one job. Gamma, variance and floor change existing arrays (`Version`), so a
slider needs no new fit; `foreign_results` and the map page measure the effect of a setting.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from app.shared import job_results, session
from app.shared.emphasis import emphasis
from app.shared.graph_settings import Distance, Further, distance_key
from app.shared.kept import by_digest
from kdcal_core.charts import fit_offer
from kdcal_core.data import FloatArray
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
    """A fitted graph: its key and its record.

    Measures read its arrays.
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
    def of(
        cls,
        fit: Fit,
        gamma: float,
        variance_factor: float,
        alpha: float,
        further: Further | None = None,
    ) -> Version:
        """The version of a fit at a setting."""
        more = further or Further()
        setting = GraphSetting(
            str(fit.folder), gamma, variance_factor, alpha, more.log_floor, more.prior
        )
        return cls(fit, setting)

    @property
    def prior(self) -> FloatArray:
        """The prior of the classes, (K,): the given one, or their shares among the fit rows."""
        own = self.setting.prior
        return np.array(self.fit.facts.prior if own is None else own)


def setting_words(version: Version) -> str:
    """How the version is set, in a few words."""
    setting, facts = version.setting, version.fit.facts
    floor = (
        f"alpha {setting.alpha:.1%}"
        if setting.log_floor is None
        else f"log b {setting.log_floor:g}"
    )
    exponent = facts.exponents[facts.gammas.index(setting.gamma)]
    own = ", its own prior" if setting.prior is not None else ""
    return (
        f"kernel density version by {version.fit.record.distance} distance, {floor}, exponent "
        f"{exponent:.3g}, {setting.variance_factor:g} times the fitted variance floor{own}"
    )


def asked(version: Version | None) -> dict[str, Any]:
    """The setting as arguments of every measure; empty without a version."""
    return {} if version is None else {"graph": asdict(version.setting)}


@dataclass(frozen=True, eq=False)
class Foreign:
    """Foreign rows with the model's outputs: their key and their record.

    Measures read the arrays.
    """

    key: str
    folder: Path
    record: ForeignRecord


def fitted(
    review: Review, will_show: str = "", *, settings: GraphSettings | None = None
) -> Fit | None:
    """The review's kernel density version after the fit; until then the page shows progress.

    Parameters
    ----------
    will_show : str
        What the page will then show, above the button that starts the fit. Our own text. If it is
        empty, or a version with another distance has been fitted, the fit starts without a button.
    settings : GraphSettings, optional
        By default those with the distance chosen in this session.
    """
    if st.session_state.get(f"graph_fitted_{review.id}") and settings is None:
        will_show = ""
    distance: Distance = st.session_state.get(distance_key(review.id)) or "geodesic"
    asked = fit_graph.request(
        session.workspace(), review.id, settings or GraphSettings(distance=distance)
    )
    job = job_results.finished(
        asked, review.id, offer=(lambda: _offer(review, asked, will_show)) if will_show else None
    )
    if job is None:
        return None
    st.session_state[f"graph_fitted_{review.id}"] = True
    return job_results.answer_of(job, lambda key, folder: _fit(key, folder=folder))


def foreign_of(job: JobSnapshot) -> Foreign | None:
    """The foreign rows of a finished job; if unreadable, None and an error on the page."""
    return job_results.answer_of(job, lambda key, folder: _foreign(key, folder=folder))


@by_digest
def _fit(key: str, *, folder: Path) -> Fit:
    return Fit(key, folder, load_part(folder, "record", GraphRecord))


@by_digest
def _foreign(key: str, *, folder: Path) -> Foreign:
    return Foreign(key, folder, load_part(folder, "record", ForeignRecord))


def _offer(review: Review, asked: Request, will_show: str) -> bool:
    """An explanation of the fit for this review, and the button that starts it."""
    training = review.training
    n_calibration = review.tables["calibration"].n_rows
    with st.container(border=True):
        st.markdown(will_show)
        st.markdown(fit_offer(training.n_rows if training else None, n_calibration))
        return st.button(
            "Fit the kernel density version",
            key=f"fit_{asked.key[:16]}",
            type=emphasis(),
            icon=":material/play_arrow:",
        )
