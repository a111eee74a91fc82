"""What the runs have left, read once, and what follows from it for the posterior map."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from app.shared.job_results import answer_of
from app.shared.kept import kept_by_bytes
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics import Estimate, accuracy, mean_max_confidence
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review, Which, Workspace, load_frame
from kdcal_core.store import load
from kdcal_core.tasks import GridRun


@dataclass(frozen=True, eq=False)
class Map:
    """A map, and what tells it from others."""

    key: str
    run: GridRun


def map_of(job: JobSnapshot) -> Map | None:
    """The map of a job that is done; None, and why, where it cannot be read."""
    return answer_of(job, _map)


@st.cache_resource(max_entries=16, show_spinner="Reading the map")
def _map(key: str, _at: Path) -> Map:
    return Map(key, load(_at, GridRun))


def table_of(workspace: Workspace, review: Review, which: Which) -> pd.DataFrame:
    """The rows of a set's table as they came."""
    return _table(review.id, which, review.tables[which].digest, workspace)


@kept_by_bytes(show_spinner="Reading the rows")
def _table(review_id: str, which: Which, digest: str, _workspace: Workspace) -> pd.DataFrame:
    return load_frame(_workspace, review_id, which)


def some_rows(scored: ScoredSet, rows: IntArray, proba: FloatArray, name: str) -> ScoredSet:
    """Some rows of a set, with probabilities of whoever is judged on them.

    ``name`` tells the probabilities apart: it enters the digest, which caches go by.
    """
    told = hashlib.sha256(rows.tobytes()).hexdigest()
    return ScoredSet(
        proba=proba,
        y=scored.y[rows],
        classes=scored.classes,
        digest=f"{scored.digest}, {told}, {name}",
        name=scored.name,
        weight=None if scored.weight is None else scored.weight[rows],
    )


def right_and_sure(scored: ScoredSet) -> tuple[Estimate, Estimate]:
    """Accuracy and mean confidence of at least one row."""
    return (
        accuracy(scored.proba, scored.y, sample_weight=scored.weight),
        mean_max_confidence(scored.proba, sample_weight=scored.weight),
    )
