"""Results of regression reviews, computed once for each content digest and setting.

As in `app.widgets.results`: rows are shared and must not be changed, and are never hashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets import map_results, session
from app.widgets.kept import kept_by_bytes
from app.widgets.pit_results import Judged
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.distributions import RegressionSet, randomised_pit
from kdcal_core.review import Review, Which, Workspace, load_regression_set
from kdcal_core.tasks import MEAN, OUTCOME, SPREAD, PitRows
from kdcal_core.tasks.pit_measures import SEED, rows_read


def regression_set(workspace: Workspace, review: Review, which: Which) -> RegressionSet:
    """The scored rows of a regression's set, kept in memory for the last few sets.

    Raises
    ------
    InputError
        Where their files are gone or damaged, or the review is of a classification.
    """
    return _regression_set(review.id, which, review.sets[which].digest, workspace)


@st.cache_resource(max_entries=4, show_spinner="Reading the scored rows")
def _regression_set(
    review_id: str, which: Which, digest: str, _workspace: Workspace
) -> RegressionSet:
    del digest  # only the cache's key: rows that were scored anew are read anew
    return load_regression_set(_workspace, review_id, which)


@dataclass(frozen=True, eq=False)
class RegressionRows(Judged):
    """The rows themselves, for pages that look at them in the server."""

    @cached_property
    def scored(self) -> RegressionSet:
        """The rows with their distributions and outcomes."""
        return regression_set(session.workspace(), self.review, self.which)

    @cached_property
    def pit(self) -> FloatArray:
        """PIT values, (n,)."""
        return _pit(self.key, self.scored)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as they came."""
        return map_results.table_of(session.workspace(), self.review, self.which)

    def values_of(self, column: str) -> Any:
        """A column of the table, of what was predicted, or of the outcome, (n,)."""
        if column == MEAN:
            return self.scored.distribution.mean()
        if column == SPREAD:
            return self.scored.distribution.std()
        return self.scored.y if column == OUTCOME else self.frame[column]

    def read(self, rows: IntArray, level: float) -> PitRows:
        """Some rows with their intervals, in their order."""
        return rows_read(self.scored, self.pit, self.frame, self.review, rows, level)

    def furthest_first(self, rows: IntArray) -> IntArray:
        """Rows whose outcome lies furthest out in its distribution come first."""
        away = np.abs(self.pit[rows] - 0.5)
        return np.asarray(rows[np.argsort(-away, kind="stable")])


@kept_by_bytes(show_spinner="Placing the outcomes in their distributions")
def _pit(key: str, _scored: RegressionSet) -> FloatArray:
    return randomised_pit(_scored.distribution, _scored.y, SEED)
