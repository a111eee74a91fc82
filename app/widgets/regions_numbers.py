"""What the Regions page shows of one region, computed once for each partition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets.kept import kept_by_bytes
from app.widgets.regions_rows import Looked
from app.widgets.regions_search import Found, rows_in
from kdcal_core.calibration.regions import Hierarchy, RegionFit, Scores, fit_maps
from kdcal_core.calibration.regions.flags import region_fits
from kdcal_core.charts import RegionMap
from kdcal_core.data import IntArray, ScoredSet
from kdcal_core.diagnostics import (
    Estimate,
    Fault,
    PitHistogram,
    RegionSearch,
    ReliabilityCurve,
    auc,
    confidence_gap,
    confidence_reliability,
    fault,
    log_loss,
    pit_histogram,
)
from kdcal_core.diagnostics.targets import Target, targets

REGION_BINS = 10


@dataclass(frozen=True, eq=False)
class Whole:
    """What is measured on all rows of a classification."""

    log_loss: Estimate
    gap: Estimate
    auc: Estimate | None


def whole_of(looked: Looked) -> Whole:
    """The model as it is, on all rows that are looked at."""
    return _whole(looked.key, looked.scored)


@st.cache_data(max_entries=16, show_spinner=False)
def _whole(key: str, _scored: ScoredSet) -> Whole:
    proba, y, weight = _scored.proba, _scored.y, _scored.weight
    two = proba.shape[1] == 2 and len(np.unique(y)) == 2
    return Whole(
        log_loss(proba, y, sample_weight=weight),
        confidence_gap(proba, y, sample_weight=weight),
        auc(proba[:, 1], y, sample_weight=weight) if two else None,
    )


@dataclass(frozen=True, eq=False)
class Beside:
    """Reliability of a region's rows and of all judged rows."""

    region: ReliabilityCurve
    everything: ReliabilityCurve


def reliability_of(looked: Looked, found: Found, target: str | int, leaf: int) -> Beside:
    """The two reliability diagrams, of the target that is asked for."""
    return _beside(found.key, target, leaf, looked, found.search)


@st.cache_data(max_entries=64, show_spinner=False)
def _beside(
    key: str, target: str | int, leaf: int, _looked: Looked, _search: RegionSearch
) -> Beside:
    goal = _goal(_looked.scored, target)
    region, everything = (
        _curve(goal, rows) for rows in (rows_in(_search, leaf), np.sort(_search.judged))
    )
    return Beside(region, everything)


def _goal(scored: ScoredSet, target: str | int) -> Target:
    kind: Literal["confidence", "class"] = "confidence" if isinstance(target, str) else "class"
    label = None if isinstance(target, str) else target
    (goal,) = targets(scored.proba, scored.y, scored.weight, kind, label)
    return goal


def _curve(goal: Target, rows: IntArray) -> ReliabilityCurve:
    found = confidence_reliability(
        goal.score[rows],
        goal.hit[rows].astype(np.int64),
        n_bins=REGION_BINS,
        sample_weight=goal.weight[rows],
        smooth=False,
    )
    return found.curves[0]


@dataclass(frozen=True, eq=False)
class BesidePit:
    """PIT histograms of a region's rows and of all judged rows, with their faults."""

    region: PitHistogram
    region_fault: Fault
    everything: PitHistogram
    everything_fault: Fault


def pit_of(looked: Looked, found: Found, leaf: int) -> BesidePit:
    """The two PIT histograms."""
    return _pit_of(found.key, leaf, looked, found.search)


@st.cache_data(max_entries=64, show_spinner=False)
def _pit_of(key: str, leaf: int, _looked: Looked, _search: RegionSearch) -> BesidePit:
    judged = _looked.judged
    found = []
    for rows in (rows_in(_search, leaf), _search.judged):
        pit = judged.pit[rows]
        weight = None if judged.scored.weight is None else judged.scored.weight[rows]
        found.append(
            (pit_histogram(pit, 10, sample_weight=weight), fault(pit, sample_weight=weight))
        )
    return BesidePit(*found[0], *found[1])


def fits_of(looked: Looked, found: Found) -> tuple[RegionFit, ...]:
    """Platt's map of every region, fitted on its rows, with what to be careful about."""
    return _fits(found.key, looked, found.search)


@kept_by_bytes()
def _fits(key: str, _looked: Looked, _search: RegionSearch) -> tuple[RegionFit, ...]:
    search, scored = _search, _looked.scored
    kept = np.flatnonzero(search.leaf >= 0)
    weight = np.ones(len(kept)) if scored.weight is None else scored.weight[kept]
    scores = Scores(scored.proba[kept], scored.y[kept], weight / weight.mean())
    n_regions = len(search.regions)
    hierarchy = Hierarchy.flat(n_regions)
    if search.tree is not None:
        hierarchy = Hierarchy.of_tree(search.tree)
    leaf = search.leaf[kept]
    fit = fit_maps("platt", scores, leaf, hierarchy)
    words = {one.leaf: one.words for one in search.regions}
    return region_fits(fit, scores, leaf, n_regions, words.__getitem__)


def maps_of(looked: Looked, found: Found, label: int) -> list[RegionMap]:
    """The maps of one class as lines, over the probabilities that each region states."""
    return _maps(found.key, label, looked, found)


@kept_by_bytes()
def _maps(key: str, label: int, _looked: Looked, _found: Found) -> list[RegionMap]:
    looked, search, fits = _looked, _found.search, fits_of(_looked, _found)
    at = 0 if looked.binary else label
    p, weight = looked.scored.proba[:, label], looked.scored.weight
    lines = []
    for one in fits:
        mine = np.flatnonzero(search.leaf == one.leaf)
        if len(mine):
            slope, offset = (one.parameters[name][at] for name in ("slope", "offset"))
            weights = None if weight is None else weight[mine]
            lines.append(RegionMap.of(one.leaf, one.words, slope, offset, p[mine], weights))
    return lines


def worst_first(scored: ScoredSet, rows: IntArray) -> IntArray:
    """Rows whose true class was given the least probability come first."""
    return rows[np.argsort(scored.proba[rows, scored.y[rows]], kind="stable")]


def answers(looked: Looked, rows: IntArray) -> pd.DataFrame:
    """What the model says of rows, and what they are."""
    scored = looked.scored
    names = np.array(scored.classes, dtype=object)
    predicted = scored.proba[rows].argmax(axis=1)
    columns = {
        "True class": names[scored.y[rows]],
        "Predicted": names[predicted],
        "Confidence": scored.proba[rows, predicted],
    }
    if looked.binary:
        columns[f"P({scored.classes[1]})"] = scored.proba[rows, 1]
    return pd.DataFrame(columns)


def with_label(curve: ReliabilityCurve, at: int) -> ReliabilityCurve:
    """The curve as the ``at``-th of several small diagrams."""
    return replace(curve, label=at)
