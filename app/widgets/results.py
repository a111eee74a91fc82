"""Results of the core, computed once for each content digest and setting.

The rows themselves are never hashed: large arrays are hashed from a sample only, and an edit
outside the sample would give the result of other rows. Results are small and are copied out of
the cache; rows and fitted calibrators are shared and must not be changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import streamlit as st

from kdcal_core.calibration import (
    ConfidenceCurve,
    HistogramAnchor,
    MethodLosses,
    TopLabelCalibrator,
    TopLabelKDE,
    compare_methods,
    histogram_anchor,
    score_calibrator,
    two_halves,
)
from kdcal_core.calibration.base import VectorCalibrator
from kdcal_core.data import FloatArray, ScoredSet
from kdcal_core.diagnostics import (
    Confusion,
    Estimate,
    Kind,
    Reliability,
    ScoreHistogram,
    Strategy,
    all_estimates,
    confusion,
    reliability,
    score_histogram,
    summary,
)
from kdcal_core.errors import InputWarning
from kdcal_core.jobs import Cancelled, JobSnapshot, Progress, jobs
from kdcal_core.review import Review, Which, Workspace, load_set

MAX_CLOUD = 2000
Calibrator = TypeVar("Calibrator", bound=TopLabelCalibrator)


def scored_set(workspace: Workspace, review: Review, which: Which) -> ScoredSet:
    """The scored rows of a review's set, kept in memory for the last few sets."""
    return _scored_set(review.id, which, review.sets[which].digest, workspace)


@st.cache_resource(max_entries=4, show_spinner="Reading the scored rows")
def _scored_set(review_id: str, which: Which, digest: str, _workspace: Workspace) -> ScoredSet:
    del digest  # only the cache's key: rows that were scored anew are read anew
    return load_set(_workspace, review_id, which)


def predicted_as(scored: ScoredSet, label: int) -> ScoredSet:
    """The rows of a set whose predicted class is ``label``; there may be none."""
    return _predicted_as(scored.digest, label, scored)


@st.cache_resource(max_entries=32, show_spinner=False)
def _predicted_as(digest: str, label: int, _scored: ScoredSet) -> ScoredSet:
    mine = _scored.proba.argmax(axis=1) == label
    return replace(
        _scored,
        proba=_scored.proba[mine],
        y=_scored.y[mine],
        weight=None if _scored.weight is None else _scored.weight[mine],
        digest=f"{digest}, predicted {label}",
    )


def reliability_of(
    scored: ScoredSet,
    kind: Kind,
    *,
    n_bins: int,
    strategy: Strategy,
    label: int | None = None,
    smooth: bool = True,
) -> Reliability:
    """Reliability diagrams: one class's with its smooth curves, or all classes' without."""
    return _reliability(scored.digest, kind, n_bins, strategy, label, smooth, scored)


@st.cache_data(max_entries=64, show_spinner="Drawing up the reliability diagram")
def _reliability(
    digest: str,
    kind: Kind,
    n_bins: int,
    strategy: Strategy,
    label: int | None,
    smooth: bool,
    _scored: ScoredSet,
) -> Reliability:
    return reliability(
        _scored.proba,
        _scored.y,
        kind=kind,
        n_bins=n_bins,
        strategy=strategy,
        sample_weight=_scored.weight,
        label=label,
        smooth=smooth,
    )


def summary_of(scored: ScoredSet) -> tuple[Estimate, ...]:
    """The four estimates above the picture."""
    return _summary(scored.digest, scored)


@st.cache_data(max_entries=64, show_spinner="Measuring, with intervals")
def _summary(digest: str, _scored: ScoredSet) -> tuple[Estimate, ...]:
    return tuple(summary(_scored))


def estimates_of(scored: ScoredSet) -> tuple[Estimate, ...]:
    """Every estimate there is."""
    return _estimates(scored.digest, scored)


@st.cache_data(max_entries=64, show_spinner="Measuring everything, with intervals")
def _estimates(digest: str, _scored: ScoredSet) -> tuple[Estimate, ...]:
    return tuple(all_estimates(_scored))


def confusion_of(scored: ScoredSet) -> Confusion:
    """Joint, confusion and reverse confusion table."""
    return _confusion(scored.digest, scored)


@st.cache_data(max_entries=64, show_spinner=False)
def _confusion(digest: str, _scored: ScoredSet) -> Confusion:
    return confusion(_scored.proba, _scored.y, len(_scored.classes), sample_weight=_scored.weight)


def score_histogram_of(scored: ScoredSet, label: int | None = None) -> ScoreHistogram:
    """Scores of right and wrong predictions, of all rows or of one predicted class."""
    return _score_histogram(scored.digest, label, scored)


@st.cache_data(max_entries=64, show_spinner=False)
def _score_histogram(digest: str, label: int | None, _scored: ScoredSet) -> ScoreHistogram:
    return score_histogram(
        _scored.proba,
        _scored.y,
        kind="confidence" if label is None else "top-label",
        label=label,
        sample_weight=_scored.weight,
    )


def anchor_of(scored: ScoredSet, label: int, n_bins: int) -> HistogramAnchor:
    """The histogram under the curves of one predicted class."""
    return _anchor(scored.digest, label, n_bins, scored)


@st.cache_data(max_entries=256, show_spinner=False)
def _anchor(digest: str, label: int, n_bins: int, _scored: ScoredSet) -> HistogramAnchor:
    return histogram_anchor(
        _scored.proba, _scored.y, label=label, n_bins=n_bins, sample_weight=_scored.weight
    )


def halves_of(scored: ScoredSet, label: int, seed: int) -> tuple[HistogramAnchor, HistogramAnchor]:
    """The histograms of two random halves of the rows."""
    return _halves(scored.digest, label, seed, scored)


@st.cache_data(max_entries=256, show_spinner="Halving the rows")
def _halves(
    digest: str, label: int, seed: int, _scored: ScoredSet
) -> tuple[HistogramAnchor, HistogramAnchor]:
    return two_halves(
        _scored.proba, _scored.y, label=label, seed=seed, sample_weight=_scored.weight
    )


def kde_of(scored: ScoredSet, bandwidth: str | float) -> TopLabelKDE:
    """Kernel densities fitted on the set, under a rule or with a number as bandwidth."""
    return _kde(scored.digest, bandwidth, scored)


@st.cache_resource(max_entries=16, show_spinner="Choosing bandwidths")
def _kde(digest: str, bandwidth: str | float, _scored: ScoredSet) -> TopLabelKDE:
    if bandwidth in ("mon", "mon4"):  # found in the same search
        return kde_of(_scored, "mon2").with_rule(str(bandwidth))
    return _fit(TopLabelKDE(bandwidth), _scored)


def curve_of(scored: ScoredSet, bandwidth: str | float, label: int) -> ConfidenceCurve:
    """The curve of one predicted class."""
    return _curve(scored.digest, bandwidth, label, scored)


@st.cache_data(max_entries=512, show_spinner=False)
def _curve(digest: str, bandwidth: str | float, label: int, _scored: ScoredSet) -> ConfidenceCurve:
    return kde_of(_scored, bandwidth).curve(label)


Points = tuple[FloatArray, FloatArray]


def method_points(scored: ScoredSet, key: str, label: int) -> tuple[bool, Points]:
    """A method's confidences for one predicted class, and whether they are a curve.

    They are a curve in the score except for methods that use the whole vector of more than two
    classes: those are evaluated on an even sample of the set's own rows.
    """
    return _method_points(scored.digest, key, label, scored)


@st.cache_data(max_entries=512, show_spinner="Fitting the methods")
def _method_points(digest: str, key: str, label: int, _scored: ScoredSet) -> tuple[bool, Points]:
    calibrator = _method(digest, key, _scored)
    n_classes = len(_scored.classes)
    is_curve = n_classes == 2 or not isinstance(calibrator, VectorCalibrator)
    if is_curve:
        score = np.linspace(1.0 / n_classes + 1e-6, 1.0, 400)
        rows = np.repeat(((1.0 - score) / (n_classes - 1))[:, None], n_classes, axis=1)
        rows[:, label] = score
    else:
        rows = predicted_as(_scored, label).proba
        rows = rows[:: max(len(rows) // MAX_CLOUD, 1)]
        score = rows[:, label]
    return is_curve, (score, calibrator.predict_confidence(rows) if len(rows) else score)


def fitted_method(scored: ScoredSet, key: str) -> TopLabelCalibrator:
    """A method of the registry, fitted on the set with its default settings."""
    return _method(scored.digest, key, scored)


@st.cache_resource(max_entries=32, show_spinner="Fitting the methods")
def _method(digest: str, key: str, _scored: ScoredSet) -> TopLabelCalibrator:
    if key.startswith("kde_mon"):
        return kde_of(_scored, key.removeprefix("kde_"))
    return _fit(score_calibrator(key), _scored)


def _fit(calibrator: Calibrator, scored: ScoredSet) -> Calibrator:
    # what the warnings say stands in the fitted calibrator's notes, which the page shows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return calibrator.fit(scored.proba, scored.y, sample_weight=scored.weight)


Losses = tuple[MethodLosses, MethodLosses, MethodLosses | None]


def comparison_of(
    fit_set: ScoredSet, eval_set: ScoredSet | None, methods: tuple[str, ...]
) -> Losses:
    """Losses refitted on the calibration set itself, cross-fitted, and on the evaluation set."""
    return _comparison(*_comparison_key(fit_set, eval_set, methods), fit_set, eval_set)


def start_comparison(
    owner: str, fit_set: ScoredSet, eval_set: ScoredSet | None, methods: tuple[str, ...]
) -> None:
    """The same as a job, for so many rows that one would wait."""

    def work(progress: Progress, cancelled: Callable[[], bool]) -> Losses:
        def report(share: float, note: str) -> None:
            if cancelled():
                raise Cancelled
            progress(share, note)

        return _compare(fit_set, eval_set, methods, report)

    key = _comparison_key(fit_set, eval_set, methods)
    _comparison_jobs()[key] = jobs().start(work, title="Comparing the methods", owner=owner)


def comparison_job(
    fit_set: ScoredSet, eval_set: ScoredSet | None, methods: tuple[str, ...]
) -> JobSnapshot | None:
    """The job that `start_comparison` began for these sets and methods; it holds the losses."""
    job_id = _comparison_jobs().get(_comparison_key(fit_set, eval_set, methods))
    return None if job_id is None else jobs().get(job_id)


ComparisonKey = tuple[str, str, tuple[str, ...]]


def _comparison_key(
    fit_set: ScoredSet, eval_set: ScoredSet | None, methods: tuple[str, ...]
) -> ComparisonKey:
    return fit_set.digest, eval_set.digest if eval_set is not None else "", methods


@st.cache_resource
def _comparison_jobs() -> dict[ComparisonKey, str]:
    return {}


@st.cache_data(max_entries=32, show_spinner="Fitting and cross-fitting the methods")
def _comparison(
    digest: str,
    eval_digest: str,
    methods: tuple[str, ...],
    _fit_set: ScoredSet,
    _eval_set: ScoredSet | None,
) -> Losses:
    return _compare(_fit_set, _eval_set, methods, None)


def _compare(
    fit_set: ScoredSet,
    eval_set: ScoredSet | None,
    methods: tuple[str, ...],
    progress: Progress | None,
) -> Losses:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        found = compare_methods(fit_set, eval_set, methods=methods, progress=progress)
    return found.resubstitution, found.cross_fitted, found.evaluation
