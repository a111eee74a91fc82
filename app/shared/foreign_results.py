"""What follows from foreign rows, computed once for each setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from app.shared import session, set_results
from app.shared.graph_results import Fit, Foreign, Version
from app.shared.kept import kept_by_bytes
from kdcal_core.calibration import Selection
from kdcal_core.data import FloatArray, ScoredSet
from kdcal_core.diagnostics import (
    DistanceCurve,
    Estimate,
    fpr_at_95_tpr,
    mean_max_confidence,
    ood_auroc,
    ood_calibration_error,
    unknown_share,
)
from kdcal_core.review import Review
from kdcal_core.tasks import (
    ForeignRun,
    ForeignSet,
    Rows,
    by_distance,
    calibrated_by_distance,
    class_shares,
    foreign_frame,
    separated,
    separated_by_confidence,
)

Method = Literal["parent", "isotonic", "sigmoid", "kde_mon2", "geodesic", "euclidean"]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The set of foreign rows that is looked at, and the run it is part of."""

    foreign: Foreign
    one: ForeignSet
    name: str

    @property
    def rows(self) -> Rows:
        return self.foreign.run.rows_of(self.one)

    @property
    def key(self) -> str:
        return f"{self.foreign.key} {self.one.start} {self.one.stop}"


@dataclass(frozen=True, eq=False)
class View:
    """All that the page shows: the review, its ordinary rows, its foreign ones, the setting.

    Attributes
    ----------
    review : Review
    prior : (K,) float64
    foreign : Foreign
        Spheres, uploaded rows, noise.
    version : Version or None
        None for a parent without a partition.
    chosen : Chosen or None
        None while its answers are under way.
    """

    review: Review
    prior: FloatArray
    foreign: Foreign
    version: Version | None = None
    chosen: Chosen | None = None


def ordinary_of(fit: Fit) -> ScoredSet:
    """The ordinary rows: those the graph is judged on."""
    return _as_set(fit.key, "judged", fit.run.rows.proba, fit)


def inside(version: Version) -> ScoredSet:
    """The same ordinary rows as the kernel density version answers them."""
    proba = version.posterior("judged", version.fit.run.rows.located)
    return _as_set(version.key, "judged", proba, version.fit)


def _as_set(key: str, who: str, proba: FloatArray, fit: Fit) -> ScoredSet:
    rows = fit.run.rows
    assert rows.y is not None
    return ScoredSet(proba, rows.y, fit.run.record.classes, f"{key} {who}", "ordinary rows")


def parent_curve(foreign: Foreign) -> DistanceCurve:
    """Mean max confidence of the parent on the spheres."""
    return _curve((foreign.key, "parent"), foreign.run, lambda: foreign.run.rows.proba)


def calibrated_curve(view: View, method: str) -> DistanceCurve | None:
    """The same of a calibrator that is fitted on the calibration set."""
    return set_results.of(
        view.review,
        calibrated_by_distance,
        which="calibration",
        key=method,
        run=str(view.foreign.folder),
    )


def version_curve(version: Version, foreign: Foreign) -> DistanceCurve:
    """The same of a kernel density version, whatever distance it goes by."""
    return _curve(
        (foreign.key, version.key),
        foreign.run,
        lambda: version.posterior(foreign.key, foreign.run.rows.located),
    )


def unknown_by_radius(version: Version, foreign: Foreign) -> FloatArray:
    """Share of the rows on each sphere whose density lies below the floor, (R,)."""
    run = foreign.run
    spheres = run.sets("sphere")
    density = version.log_density(foreign.key, run.rows.located)
    below = density[spheres[0].start : spheres[-1].stop] < version.graph.effective_log_floor
    return np.asarray(below.reshape(len(spheres), -1).mean(axis=1))


@st.cache_data(max_entries=128, show_spinner=False)
def _curve(
    who: tuple[str, ...], _run: ForeignRun, _proba: Callable[[], FloatArray]
) -> DistanceCurve:
    return by_distance(_run, _proba())


@dataclass(frozen=True)
class Tiles:
    """The estimates of one set of foreign rows, for the parent and for the graph.

    Attributes
    ----------
    parent : OCE, AUROC and FPR@95 of the parent, by its confidence
    graph : the same of the graph, by its log density; None without a graph
    by_confidence : AUROC of the graph by its confidence, for comparison; None without a graph
    confidence : mean max confidence on the foreign rows, of the parent and of the graph
    unknown : share of ordinary rows below the floor; None without a graph
    n_unknown : foreign rows below the floor
    """

    parent: tuple[Estimate, Estimate, Estimate]
    confidence: tuple[Estimate, Estimate | None]
    graph: tuple[Estimate, Estimate, Estimate] | None = None
    by_confidence: Estimate | None = None
    unknown: Estimate | None = None
    n_unknown: int | None = None


def tiles(view: View, chosen: Chosen) -> Tiles | None:
    """The estimates for the chosen foreign rows; None while a job measures."""
    if view.version is not None:
        return _tiles(view.version.key, chosen.key, view, view.version, chosen)
    found = set_results.of(
        view.review,
        separated_by_confidence,
        which="evaluation" if view.review.has_evaluation else "calibration",
        run=str(chosen.foreign.folder),
        start=chosen.one.start,
        stop=chosen.one.stop,
    )
    if found is None:
        return None
    parent = (_oce(view, chosen.rows.proba), found.auroc, found.fpr_at_95_tpr)
    return Tiles(parent, (mean_max_confidence(chosen.rows.proba), None))


@st.cache_data(max_entries=128, show_spinner=False)
def _tiles(version: str, foreign: str, _view: View, _version: Version, _chosen: Chosen) -> Tiles:
    ordinary = ordinary_of(_version.fit)
    parent = _parent_tiles(foreign, ordinary.digest, _view, ordinary, _chosen)
    said = mean_max_confidence(_chosen.rows.proba)
    inner, outer = densities(_version, _chosen)
    proba = foreign_posterior(_version, _chosen)
    floor = _version.graph.effective_log_floor
    return Tiles(
        parent,
        (said, mean_max_confidence(proba)),
        graph=(_oce(_view, proba), ood_auroc(inner, outer), fpr_at_95_tpr(inner, outer)),
        by_confidence=ood_auroc(
            inside(_version).proba.max(axis=1), proba.max(axis=1), by="confidence"
        ),
        unknown=unknown_share(inner < floor),
        n_unknown=int((outer < floor).sum()),
    )


@st.cache_data(max_entries=128, show_spinner=False)
def _parent_tiles(
    foreign: str, ordinary: str, _view: View, _ordinary: ScoredSet, _chosen: Chosen
) -> tuple[Estimate, Estimate, Estimate]:
    found = separated(_ordinary.proba, _chosen.rows.proba)
    return _oce(_view, _chosen.rows.proba), found.auroc, found.fpr_at_95_tpr


def _oce(view: View, proba: FloatArray) -> Estimate:
    return ood_calibration_error(proba, view.prior, prior_kind="empirical")


def densities(version: Version, chosen: Chosen) -> tuple[FloatArray, FloatArray]:
    """Log densities of the ordinary rows and of the chosen foreign ones."""
    foreign, one = chosen.foreign, chosen.one
    ordinary = version.log_density("judged", version.fit.run.rows.located)
    whole = version.log_density(foreign.key, foreign.run.rows.located)
    return ordinary, whole[one.start : one.stop]


def foreign_posterior(version: Version, chosen: Chosen) -> FloatArray:
    """What the kernel density version says of the chosen rows."""
    foreign, one = chosen.foreign, chosen.one
    return version.posterior(foreign.key, foreign.run.rows.located)[one.start : one.stop]


def selection_of(version: Version) -> Selection:
    """Held-out log loss of every exponent at the setting in force."""
    return _selection(version.key, version)


@st.cache_data(max_entries=64, show_spinner=False)
def _selection(key: str, _version: Version) -> Selection:
    return _version.graph.selection()


def frame_of(view: View, chosen: Chosen) -> pd.DataFrame:
    """The features of the chosen rows, as they were read or made. Untrusted names and texts.

    Raises
    ------
    InputError
        Where an uploaded table is gone.
    """
    return _frame(chosen.key, view.review.id, chosen)


@kept_by_bytes()
def _frame(key: str, review_id: str, _chosen: Chosen) -> pd.DataFrame:
    settings = _chosen.foreign.run.record.settings
    return foreign_frame(session.workspace(), review_id, settings, _chosen.one)


def prior_of(review: Review, fit: Fit | None) -> FloatArray | None:
    """Class shares: of the graph's fit, or of the calibration set; None while they are counted."""
    if fit is not None:
        return fit.run.graph.prior
    found = set_results.of(review, class_shares, which="calibration")
    return None if found is None else found.share
