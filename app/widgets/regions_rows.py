"""The rows that the Regions page looks at, coded once for each content digest.

Every tree is grown on the codes, so that sliders act at once. Rows are never hashed, and arrays
are shared and must not be changed.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from app.widgets import map_results, results, session
from app.widgets.kept import kept_by_bytes
from app.widgets.regression_results import RegressionRows
from kdcal_core.data import IntArray, Roles, ScoredSet, target_labels, used_columns
from kdcal_core.errors import InputWarning
from kdcal_core.partition.tree import BinnedInputs, bin_inputs, unusable_columns
from kdcal_core.review import Review, Which, input_columns, rows_of


@dataclass(frozen=True, eq=False)
class Looked:
    """The rows that the page looks at, and what everything on it follows from."""

    review: Review
    which: Which

    @property
    def regression(self) -> bool:
        return self.review.task == "regression"

    @cached_property
    def judged(self) -> RegressionRows:
        """The rows of a regression with their PIT values."""
        return RegressionRows(self.review, self.which)

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


@kept_by_bytes(show_spinner="Coding the inputs")
def _binned(key: str, _looked: Looked) -> BinnedInputs:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # pooled categories are named "other"
        return bin_inputs(_looked.frame[list(_looked.inputs)])


@dataclass(frozen=True, eq=False)
class Training:
    """The training rows coded, and the looked-at rows in the same codes."""

    inputs: BinnedInputs
    y: IntArray
    looked: BinnedInputs


def training_of(looked: Looked) -> Training:
    """The training rows of a review that has them."""
    return _training(looked.key, looked)


@kept_by_bytes(show_spinner="Reading the training rows")
def _training(key: str, _looked: Looked) -> Training:
    review, names = _looked.review, list(_looked.inputs)
    assert review.training is not None
    frame = rows_of(session.workspace(), review.id, review.training)
    y = target_labels(frame, review.roles or Roles(), review.classes, file=review.training.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        inputs = bin_inputs(frame[names])
        looked = bin_inputs(_looked.frame[names], like=inputs.columns)
    return Training(inputs, y, looked)
