"""What the PIT page shows, computed once for each content digest and setting.

Rows are never hashed: keys are digests and settings. Arrays are shared and must not be changed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets import job_results, map_results, session
from app.widgets.kept import kept_by_bytes
from app.widgets.regression_results import regression_set
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    Coverage,
    EcdfDifference,
    Fault,
    LocalPit,
    PitHistogram,
    QuantileReliability,
    RegionPit,
    RegressionScores,
    UniformityTest,
    coverage,
    ecdf_difference,
    fault,
    local_pit,
    mean_scale,
    neighbourhoods,
    pit_by_column,
    pit_histogram,
    quantile_reliability,
    regression_scores,
    uniformity_tests,
)
from kdcal_core.distributions import RegressionSet, randomised_pit
from kdcal_core.review import Review, Which
from kdcal_core.runs import Space, load_space, principal_axes, regression_space, space_request

SEED = 0  # of randomised PIT values, bootstraps and tests
CENTRES, DRAWS = 300, 199
MAX_LOCAL = 20_000  # rows among which neighbours are sought
LEVELS = tuple(i / 20 for i in range(1, 20))


@dataclass(frozen=True, eq=False)
class Judged:
    """The rows a page looks at, and what everything on it follows from."""

    review: Review
    which: Which

    @cached_property
    def scored(self) -> RegressionSet:
        """The rows with their distributions and outcomes."""
        return regression_set(session.workspace(), self.review, self.which)

    @cached_property
    def key(self) -> str:
        """What every cached result goes by: scored rows, table and the roles of its columns."""
        digests = (self.scored.digest, self.review.tables[self.which].digest)
        told = repr((digests, self.review.roles))
        return hashlib.sha256(told.encode()).hexdigest()

    @cached_property
    def pit(self) -> FloatArray:
        """PIT values, (n,)."""
        return _pit(self.key, self.scored)

    @cached_property
    def moments(self) -> FloatArray:
        """Mean and standard deviation of every distribution, (n, 2)."""
        return _moments(self.key, self.scored)

    @cached_property
    def scale(self) -> float | None:
        """Mean absolute outcome of the calibration set, which sMIS is measured in (D71)."""
        found = mean_scale(regression_set(session.workspace(), self.review, "calibration").y)
        return found if found > 0 else None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as they came."""
        return map_results.table_of(session.workspace(), self.review, self.which)

    @cached_property
    def looked_at(self) -> IntArray:
        """Rows of the local view, ascending: all, or a uniform sample where they are many."""
        n = self.scored.n_rows
        if n <= MAX_LOCAL:
            return np.arange(n)
        return np.sort(np.random.default_rng(SEED).choice(n, MAX_LOCAL, replace=False))

    @property
    def outcome(self) -> str:
        """The outcome's name. Untrusted text."""
        return (self.review.roles and self.review.roles.target) or "Outcome"


@kept_by_bytes(show_spinner="Placing the outcomes in their distributions")
def _pit(key: str, _scored: RegressionSet) -> FloatArray:
    return randomised_pit(_scored.distribution, _scored.y, SEED)


@kept_by_bytes()
def _moments(key: str, _scored: RegressionSet) -> FloatArray:
    return np.column_stack([_scored.distribution.mean(), _scored.distribution.std()])


@dataclass(frozen=True, eq=False)
class Whole:
    """What is seen when all rows are taken together."""

    ecdf: EcdfDifference
    tests: tuple[UniformityTest, ...]
    fault: Fault
    coverage: Coverage
    quantiles: QuantileReliability
    scores: RegressionScores


def whole_of(judged: Judged) -> Whole:
    """Everything about all rows together, but for the histogram with its bins."""
    return _whole(judged.key, judged.scale, judged)


@st.cache_data(max_entries=16, show_spinner="Measuring, with intervals")
def _whole(key: str, scale: float | None, _judged: Judged) -> Whole:
    scored, pit = _judged.scored, _judged.pit
    weight = scored.weight
    return Whole(
        ecdf=ecdf_difference(pit, sample_weight=weight),
        tests=uniformity_tests(pit, seed=SEED, sample_weight=weight),
        fault=fault(pit, sample_weight=weight),
        coverage=coverage(scored.distribution, scored.y, scale=scale, weight=weight),
        quantiles=quantile_reliability(pit, LEVELS, sample_weight=weight),
        scores=regression_scores(
            scored.distribution,
            scored.y,
            scale=scale or 1.0,
            true_mean=scored.true_mean,
            pit=pit,
            weight=weight,
            seed=SEED,
        ),
    )


def histogram_of(judged: Judged, bins: int) -> PitHistogram:
    """The PIT histogram of all rows."""
    return _histogram(judged.key, bins, judged)


@st.cache_data(max_entries=64, show_spinner=False)
def _histogram(key: str, bins: int, _judged: Judged) -> PitHistogram:
    return pit_histogram(_judged.pit, bins, sample_weight=_judged.scored.weight)


def by_column(judged: Judged, column: str, bins: int) -> tuple[RegionPit, ...]:
    """The PIT over a column of the table, or over what was predicted (`MEAN`, `SPREAD`)."""
    return _by_column(judged.key, column, bins, judged.scale, judged)


@st.cache_data(max_entries=64, show_spinner="Looking along the column")
def _by_column(
    key: str, column: str, bins: int, scale: float | None, _judged: Judged
) -> tuple[RegionPit, ...]:
    scored = _judged.scored
    return pit_by_column(
        _judged.pit,
        values_of(_judged, column),
        bins,
        distribution=scored.distribution,
        y=scored.y,
        scale=scale,
        sample_weight=scored.weight,
    )


MEAN, SPREAD, OUTCOME = "\0mean", "\0spread", "\0outcome"  # no file can name a column so


def values_of(judged: Judged, column: str) -> Any:
    """The values of a column of the table, of what was predicted, or of the outcome, (n,)."""
    if column == MEAN:
        return judged.moments[:, 0]
    if column == SPREAD:
        return judged.moments[:, 1]
    return judged.scored.y if column == OUTCOME else judged.frame[column]


def space_of(judged: Judged, name: str) -> Space:
    """Coordinates of the rows in a space that needs no model.

    Raises
    ------
    InputError
        Where the rows have none there.
    """
    return _space(judged.key, judged.review.id, name)


@kept_by_bytes(show_spinner="Reading the rows' coordinates")
def _space(key: str, review_id: str, name: str) -> Space:
    return regression_space(session.workspace(), review_id, name)


def layer_of(judged: Judged, name: str) -> Space | None:
    """Coordinates in a hidden layer, once a job has read it; until then the page says how it is."""
    asked = space_request(session.workspace(), judged.review.id, name)
    job = job_results.finished(asked, judged.review)
    return None if job is None else job_results.answer_of(job, _layer)


@st.cache_resource(max_entries=6, show_spinner="Reading the hidden layer")
def _layer(key: str, _at: Path) -> Space:
    return load_space(_at)


def coordinates(judged: Judged, space: Space) -> FloatArray:
    """Coordinates of the rows of the local view, (m, d)."""
    all_rows = space.calibration if judged.which == "calibration" else space.evaluation
    assert all_rows is not None  # there is a set, so there is its space
    return np.asarray(all_rows[judged.looked_at])


def is_one_place(judged: Judged, space: Space) -> bool:
    """Whether all rows of the local view have the same coordinates."""
    at = coordinates(judged, space)
    return bool((at == at[:1]).all())


def principal_of(judged: Judged, space: Space) -> FloatArray:
    """The rows of the local view on the space's principal axes, (m, 2)."""
    return _principal(judged.key, space.name, judged, space)


@kept_by_bytes(show_spinner="Finding the principal axes")
def _principal(key: str, name: str, _judged: Judged, _space: Space) -> FloatArray:
    step = -(-len(_space.calibration) // MAX_LOCAL)
    return principal_axes(_space.calibration[::step], coordinates(_judged, _space))


def local_of(judged: Judged, space: Space, k: int, xy: FloatArray) -> LocalPit:
    """Faults of neighbourhoods in a space, placed on the map ``xy`` (m, 2).

    Rows are counted among those of the local view.
    """
    found = _local(judged.key, space.name, k, judged, space)
    return replace(found, xy=xy[found.rows])


@st.cache_data(max_entries=32, show_spinner="Testing the neighbourhoods")
def _local(key: str, name: str, k: int, _judged: Judged, _space: Space) -> LocalPit:
    at = coordinates(_judged, _space)
    return local_pit(
        _judged.pit[_judged.looked_at],
        at,
        np.zeros((len(at), 2)),
        k,
        centres=CENTRES,
        draws=DRAWS,
        seed=SEED,
    )


def near(judged: Judged, space: Space, row: int, k: int) -> IntArray:
    """The ``k`` rows nearest to one, both counted among the rows of the local view."""
    return _near(judged.key, space.name, row, k, judged, space)


@st.cache_data(max_entries=256, show_spinner=False)
def _near(key: str, name: str, row: int, k: int, _judged: Judged, _space: Space) -> IntArray:
    return np.sort(neighbourhoods(coordinates(_judged, _space), [row], k)[0])


@dataclass(frozen=True, eq=False)
class Group:
    """Some rows of the set: where their PIT values fall, and what is wrong with them."""

    rows: IntArray
    histogram: PitHistogram
    fault: Fault
    coverage: Coverage


def group_of(judged: Judged, rows: IntArray, bins: int, place: str) -> Group:
    """What holds for some rows of the set, counted in the set."""
    scored = judged.scored
    pit, weight = judged.pit[rows], None if scored.weight is None else scored.weight[rows]
    return Group(
        rows,
        pit_histogram(pit, bins, sample_weight=weight),
        fault(pit, place=place, sample_weight=weight),
        coverage(scored.distribution[rows], scored.y[rows], (0.95,), weight=weight),
    )
