"""Results of the core, computed once for each content digest and setting.

The rows themselves are never hashed: large arrays are hashed from a sample only, and an edit
outside the sample would give the result of other rows. Results are small and are copied out of
the cache; rows and fitted calibrators are shared and must not be changed.
"""

from __future__ import annotations

import streamlit as st

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    Estimate,
    Kind,
    Reliability,
    Strategy,
    reliability,
    summary,
)
from kdcal_core.review import Review, Which, Workspace, load_set


def scored_set(workspace: Workspace, review: Review, which: Which) -> ScoredSet:
    """The scored rows of a review's set, kept in memory for the last few sets."""
    return _scored_set(review.id, which, review.sets[which].digest, workspace)


@st.cache_resource(max_entries=4, show_spinner="Reading the scored rows")
def _scored_set(review_id: str, which: Which, digest: str, _workspace: Workspace) -> ScoredSet:
    del digest  # only the cache's key: rows that were scored anew are read anew
    return load_set(_workspace, review_id, which)


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
