"""What the Regions page shows, computed once for each content digest and setting.

Inputs are coded once; every other tree is grown on the codes, so that sliders act at once. Rows
are never hashed, and arrays are shared and must not be changed.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets import graph_results, map_results, results, session
from app.widgets.pit_results import Judged
from kdcal_core.calibration.heterogeneous import Hierarchy, RegionFit, Scores, fit_maps
from kdcal_core.calibration.heterogeneous.flags import region_fits
from kdcal_core.data import IntArray, Roles, ScoredSet, target_labels, used_columns
from kdcal_core.diagnostics import (
    Estimate,
    Fault,
    PitHistogram,
    RegionSearch,
    ReliabilityCurve,
    auc,
    column_regions,
    confidence_gap,
    confidence_reliability,
    describe_pit_regions,
    describe_regions,
    fault,
    find_pit_regions,
    find_regions,
    log_loss,
    pit_histogram,
)
from kdcal_core.diagnostics.regression.regions import OTHERS
from kdcal_core.diagnostics.targets import Target, targets
from kdcal_core.errors import InputWarning
from kdcal_core.figures import RegionMap
from kdcal_core.jobs import JobSnapshot
from kdcal_core.partition.tree import BinnedInputs, bin_inputs, unusable_columns
from kdcal_core.review import Review, Which, rows_of
from kdcal_core.review.reviewed import input_columns
from kdcal_core.runs import RegionsRun
from kdcal_core.runs.regions_partition import class_regions

Purpose = Literal["wrong", "classes", "column"]
COLUMN_BINS, COLUMN_LEVELS = 10, 30
REGION_BINS = 10


@dataclass(frozen=True)
class Question:
    """What is asked of the rows.

    Attributes
    ----------
    purpose : str
        "wrong": where stated and observed differ; "classes": where classes differ (paper 004);
        "column": along one column.
    max_depth : int
    min_rows : int or None
    target : "confidence" or int
    column : str or None
    """

    purpose: Purpose = "wrong"
    max_depth: int = 3
    min_rows: int | None = None
    target: str | int = "confidence"
    column: str | None = None


@dataclass(frozen=True, eq=False)
class Looked:
    """The rows that the page looks at, and what everything on it follows from."""

    review: Review
    which: Which

    @property
    def regression(self) -> bool:
        return self.review.task == "regression"

    @cached_property
    def judged(self) -> Judged:
        """The rows of a regression with their PIT values."""
        return Judged(self.review, self.which)

    @cached_property
    def scored(self) -> ScoredSet:
        """The rows of a classification with their probabilities."""
        return results.scored_set(session.workspace(), self.review, self.which)

    @property
    def n_rows(self) -> int:
        return self.review.tables[self.which].n_rows

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as they came."""
        return map_results.table_of(session.workspace(), self.review, self.which)

    @cached_property
    def key(self) -> str:
        """What every cached result goes by."""
        told = repr(
            (
                self.review.sets[self.which].digest,
                self.review.tables[self.which].digest,
                self.review.training.digest if self.review.training else None,
                self.review.roles,
            )
        )
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def binary(self) -> bool:
        return not self.regression and len(self.review.classes) == 2

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Columns that trees can be grown on."""
        names = input_columns(self.review)
        return tuple(name for name in names if name not in self.left_out)

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Columns that no tree can be grown on, with the reason."""
        return unusable_columns(self.frame[input_columns(self.review)])

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns to look along: the inputs, then those without a role."""
        taken = set(used_columns(self.review.roles or Roles()))
        others = [str(name) for name in self.frame.columns if name not in {*taken, *self.inputs}]
        return (*self.inputs, *others)

    @cached_property
    def binned(self) -> BinnedInputs:
        return _binned(self.key, self)


@st.cache_resource(max_entries=4, show_spinner="Coding the inputs")
def _binned(key: str, _looked: Looked) -> BinnedInputs:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # pooled categories are named "other"
        return bin_inputs(_looked.frame[list(_looked.inputs)])


@dataclass(frozen=True, eq=False)
class _Training:
    """The training rows coded, and the looked-at rows in the same codes."""

    inputs: BinnedInputs
    y: IntArray
    looked: BinnedInputs


@st.cache_resource(max_entries=2, show_spinner="Reading the training rows")
def _training(key: str, _looked: Looked) -> _Training:
    review, names = _looked.review, list(_looked.inputs)
    assert review.training is not None
    frame = rows_of(session.workspace(), review.id, review.training)
    y = target_labels(frame, review.roles or Roles(), review.classes, file=review.training.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        inputs = bin_inputs(frame[names])
        looked = bin_inputs(_looked.frame[names], like=inputs.columns)
    return _Training(inputs, y, looked)


def search_of(looked: Looked, asked: Question) -> RegionSearch:
    """The partition and what is wrong in each of its regions.

    Raises
    ------
    InputError
        Where there are too few rows, or a column holds what cannot be cut.
    """
    return _search(looked.key, asked, looked)


@st.cache_resource(max_entries=16, show_spinner="Looking for regions")
def _search(key: str, asked: Question, _looked: Looked) -> RegionSearch:
    if asked.purpose == "column":
        return _along(_looked, asked)
    depth, least = asked.max_depth, asked.min_rows
    if _looked.regression:
        judged = _looked.judged
        return find_pit_regions(
            judged.pit,
            _looked.binned,
            max_depth=depth,
            min_rows=least,
            sample_weight=judged.scored.weight,
        )
    scored, target = _looked.scored, asked.target
    if asked.purpose == "wrong":
        return find_regions(scored, _looked.binned, target=target, max_depth=depth, min_rows=least)
    if _looked.review.training is None:
        return class_regions(scored, _looked.binned, target=target, max_depth=depth, min_rows=least)
    known = _training(key, _looked)
    return class_regions(
        scored,
        known.looked,
        training=(known.inputs, known.y),
        target=target,
        max_depth=depth,
        min_rows=least,
    )


def _along(looked: Looked, asked: Question) -> RegionSearch:
    assert asked.column is not None
    labels, names = column_regions(looked.frame[asked.column], COLUMN_BINS, COLUMN_LEVELS)
    words = [_value_words(asked.column, name) for name in names]
    if looked.regression:
        weight = looked.judged.scored.weight
        return describe_pit_regions(looked.judged.pit, labels, words, sample_weight=weight)
    return describe_regions(looked.scored, labels, words, target=asked.target)


def _value_words(column: str, name: str) -> str:
    return f"{column} is any other" if name == OTHERS else f"{column} is {name}"


def rows_in(search: RegionSearch, leaf: int) -> IntArray:
    """The judged rows of a region, ascending."""
    return np.sort(search.judged[search.leaf[search.judged] == leaf])


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


def reliability_of(looked: Looked, asked: Question, leaf: int) -> Beside:
    """The two reliability diagrams, of the target that is asked for."""
    return _beside(looked.key, asked, leaf, looked)


@st.cache_data(max_entries=64, show_spinner=False)
def _beside(key: str, asked: Question, leaf: int, _looked: Looked) -> Beside:
    search = search_of(_looked, asked)
    goal = _goal(_looked.scored, asked.target)
    region, everything = (
        _curve(goal, rows) for rows in (rows_in(search, leaf), np.sort(search.judged))
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


def pit_of(looked: Looked, asked: Question, leaf: int) -> BesidePit:
    """The two PIT histograms."""
    return _pit_of(looked.key, asked, leaf, looked)


@st.cache_data(max_entries=64, show_spinner=False)
def _pit_of(key: str, asked: Question, leaf: int, _looked: Looked) -> BesidePit:
    search, judged = search_of(_looked, asked), _looked.judged
    found = []
    for rows in (rows_in(search, leaf), search.judged):
        pit = judged.pit[rows]
        weight = None if judged.scored.weight is None else judged.scored.weight[rows]
        found.append(
            (pit_histogram(pit, 10, sample_weight=weight), fault(pit, sample_weight=weight))
        )
    return BesidePit(*found[0], *found[1])


def fits_of(looked: Looked, asked: Question) -> tuple[RegionFit, ...]:
    """Platt's map of every region, fitted on its rows, with what to be careful about."""
    return _fits(looked.key, asked, looked)


@st.cache_resource(max_entries=32, show_spinner=False)
def _fits(key: str, asked: Question, _looked: Looked) -> tuple[RegionFit, ...]:
    search, scored = search_of(_looked, asked), _looked.scored
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


def maps_of(looked: Looked, asked: Question, label: int) -> list[RegionMap]:
    """The maps of one class as lines, over the probabilities that each region states."""
    search, fits = search_of(looked, asked), fits_of(looked, asked)
    at = 0 if looked.binary else label
    p = looked.scored.proba[:, label]
    lines = []
    for one in fits:
        mine = p[search.leaf == one.leaf]
        if len(mine):
            lines.append(
                RegionMap(
                    one.leaf,
                    one.words,
                    one.parameters["slope"][at],
                    one.parameters["offset"][at],
                    float(mine.min()),
                    float(mine.max()),
                    one.n,
                )
            )
    return lines


def run_of(job: JobSnapshot) -> RegionsRun | None:
    """The run of a job that is done; None, and why, where it cannot be read."""
    return graph_results.answer_of(job, _run)


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
