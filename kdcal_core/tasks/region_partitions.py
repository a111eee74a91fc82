"""Partitions of a scored set into regions, for the Regions page and what else looks at them.

The size of the results does not depend on the number of rows: a search is kept without the region
of each row.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.data import IntArray, Roles, target_labels, used_columns
from kdcal_core.data.column_kinds import is_number, simple, why_no_input
from kdcal_core.diagnostics import (
    RegionSearch,
    column_regions,
    describe_pit_regions,
    describe_regions,
    find_pit_regions,
    find_regions,
)
from kdcal_core.diagnostics.regression.local_faults import OTHERS
from kdcal_core.errors import InputError, quiet
from kdcal_core.partition.tree import BinnedInputs, bin_inputs, unusable_columns
from kdcal_core.review import Part, Which, input_columns, left_out
from kdcal_core.store import decode, load
from kdcal_core.tasks.decorators import Sets, review_task, the_set
from kdcal_core.tasks.drawn_sets import drawn_of
from kdcal_core.tasks.pit_measures import pit_values
from kdcal_core.tasks.region_search import RegionSearchRun, class_regions
from kdcal_core.tasks.set_measures import Refused

COLUMN_BINS, COLUMN_LEVELS = 10, 30
Purpose = Literal["wrong", "classes", "column"]


@dataclass(frozen=True)
class RegionQuestion:
    """A question about the rows.

    Attributes
    ----------
    purpose : str
        "wrong": where stated and observed differ; "classes": where the classes differ (Durfee et
        al., Heterogeneous Calibration, Algorithm 1); "column": along one column.
    max_depth : int
    min_rows : int or None
        Fewest rows of a region; None for the search's default.
    label : int or None
        The class whose probability is examined; None for the confidence.
    column : str or None
        The column, for the purpose "column". Untrusted text.
    """

    purpose: Purpose = "wrong"
    max_depth: int = 3
    min_rows: int | None = None
    label: int | None = None
    column: str | None = None

    @property
    def target(self) -> str | int:
        """The stated quantity, as `find_regions` takes it."""
        return "confidence" if self.label is None else self.label


@dataclass(frozen=True, eq=False)
class RegionColumns:
    """The columns of a set that can define regions. All names are untrusted text.

    Attributes
    ----------
    inputs : tuple of str
        Columns on which trees can be grown.
    not_searched : dict of str to str
        Every other column but those of the target and the outputs, with the reason: no tree can
        divide the rows by it.
    columns : tuple of str
        Columns that can define regions alone: the inputs, then those without a role.
    """

    inputs: tuple[str, ...]
    not_searched: dict[str, str]
    columns: tuple[str, ...]


SEARCHES = (
    "maps of either of two classes, intervals by scatter, smooth curves, boxes, parts, drawn "
    "rows of many, clusters, ends of the corrected test"
)


def divided_parts(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is divided into regions, and the training rows if regions follow the classes."""
    grown = arguments["asked"]["purpose"] == "classes"
    return (*the_set(arguments), "training") if grown else the_set(arguments)


@review_task("Regions: reading the columns", reads=the_set, edition="not searched, drawn rows")
def region_columns(sets: Sets, *, which: Which) -> RegionColumns:
    """The columns of a set that can define regions, in trees and alone."""
    review = sets.reader.review
    roles = review.roles or Roles()
    names = input_columns(review)
    drawn = drawn_of(sets, which)
    frame = drawn.frame(which, tuple(names))
    unusable = unusable_columns(frame)
    inputs = tuple(name for name in names if name not in unusable)
    constant = [name for name in inputs if _is_constant(frame[name])]
    if drawn is not sets:
        constant = [one for one in constant if _is_constant(sets.frame(which, (one,))[one])]
    taken = {*used_columns(roles), *inputs}
    others = [one.name for one in review.tables[which].columns if one.name not in taken]
    beside = (
        *(("Cluster", roles.cluster), ("Time", roles.time)),
        *(("Split", roles.split), ("Weight", roles.weight)),
    )
    reasons = {
        **left_out(review),
        **{name: why_no_input(simple(name), frame[name]) or unusable[name] for name in unusable},
        **dict.fromkeys(constant, "the same value in every row"),
        **{name: f"its role is {role!r}" for role, name in beside if name is not None},
    }
    if review.model is not None:
        reasons |= dict.fromkeys(others, "the model does not read it")
    return RegionColumns(inputs, reasons, (*inputs, *others))


def _is_constant(column: pd.Series[Any]) -> bool:
    known = column.dropna()
    if known.empty:
        return True
    return len(known) == len(column) and bool((known == known.iloc[0]).all())


@dataclass(frozen=True, eq=False)
class FoundRegions:
    """A partition with its results.

    Attributes
    ----------
    search : RegionSearch or None
        The search without the region of each row; None where there are no regions.
    ranked : bool
        Whether regions are sorted by their evidence; otherwise by the values of the column.
    refused : Refused or None
        Why there are no regions.
    """

    search: RegionSearch | None
    ranked: bool = True
    refused: Refused | None = None


@review_task("Regions: looking for regions", reads=divided_parts, edition=SEARCHES)
def region_search(
    sets: Sets, *, which: Which, asked: dict[str, Any], run: str | None = None
) -> FoundRegions:
    """The partition that answers a question, with the faults of each region.

    Parameters
    ----------
    asked : dict
        `RegionQuestion` as JSON.
    run : str, optional
        Folder of the finished `RegionSearchRun` that answers it. Without it, the regions are found
        on half of the rows and judged on the other half; of very many, in drawn ones.
    """
    question, sets = decode(RegionQuestion, asked), judged_sets(sets, which, run)
    sets.progress(0.05, "Looking for regions")
    try:
        search = searched(sets, which, question, run)
    except _NoRegionsError as error:
        return FoundRegions(None, refused=Refused.of(error.why))
    return FoundRegions(search.without_rows(), _ranked(sets, which, question))


def rows_in(search: RegionSearch, leaf: int) -> IntArray:
    """The judged rows of a region, ascending."""
    return np.sort(search.judged[search.leaf[search.judged] == leaf])


class _NoRegionsError(Exception):
    """There are no regions in the rows, for this reason; unlike rows that cannot be read."""

    def __init__(self, why: InputError) -> None:
        super().__init__(str(why))
        self.why = why


def searched(sets: Sets, which: Which, question: RegionQuestion, run: str | None) -> RegionSearch:
    """The search with the region of each row."""

    def make() -> RegionSearch:
        if run is not None:
            return load(run, RegionSearchRun).search
        if question.purpose == "column":
            return _along(sets, which, question)
        inputs = region_columns(sets, which=which).inputs
        frame = sets.frame(which, tuple(input_columns(sets.reader.review)))[list(inputs)]
        if is_regression(sets):
            return _of_pit(sets, which, question, frame)
        return _of_stated(sets, which, question, frame)

    found: RegionSearch = sets.keep(("regions", *search_key(which, question, run)), make)
    return found


def judged_sets(sets: Sets, which: Which, run: str | None) -> Sets:
    """The sets that a search divides: drawn rows of very many, but all for a thorough one."""
    return sets if run is not None else drawn_of(sets, which)


def _of_pit(
    sets: Sets, which: Which, question: RegionQuestion, frame: pd.DataFrame
) -> RegionSearch:
    pit, weight = pit_values(sets, which), sets.distributions(which).design
    depth, least = question.max_depth, question.min_rows
    try:
        binned = _binned(sets, which, frame)
        return find_pit_regions(pit, binned, max_depth=depth, min_rows=least, sample_weight=weight)
    except InputError as error:
        raise _NoRegionsError(error) from error


def _of_stated(
    sets: Sets, which: Which, question: RegionQuestion, frame: pd.DataFrame
) -> RegionSearch:
    scored, target = sets.read(which), question.target
    depth, least = question.max_depth, question.min_rows
    known = None
    if question.purpose == "classes" and sets.reader.has("training"):
        known = _training(sets, which, frame)
    try:
        if known is not None:
            inputs, y, looked = known
            return class_regions(
                scored,
                looked,
                training=(inputs, y),
                target=target,
                max_depth=depth,
                min_rows=least,
            )
        binned = _binned(sets, which, frame)
        find = find_regions if question.purpose == "wrong" else class_regions
        return find(scored, binned, target=target, max_depth=depth, min_rows=least)
    except InputError as error:
        raise _NoRegionsError(error) from error


def _along(sets: Sets, which: Which, question: RegionQuestion) -> RegionSearch:
    assert question.column is not None
    column = sets.frame(which, (question.column,))[question.column]
    regression = is_regression(sets)
    pit = pit_values(sets, which) if regression else None
    try:
        labels, names = column_regions(column, COLUMN_BINS, COLUMN_LEVELS)
        words = [_value_words(question.column, name) for name in names]
        if pit is not None:
            weight = sets.distributions(which).design
            return describe_pit_regions(pit, labels, words, sample_weight=weight)
        return describe_regions(sets.read(which), labels, words, target=question.target)
    except InputError as error:
        raise _NoRegionsError(error) from error


def _value_words(column: str, name: str) -> str:
    return f"{column} is any other" if name == OTHERS else f"{column} is {name}"


def _ranked(sets: Sets, which: Which, question: RegionQuestion) -> bool:
    column = question.column
    return column is None or not is_number(sets.frame(which, (column,))[column])


def search_key(
    which: Which, question: RegionQuestion, run: str | None
) -> tuple[str, str, str | None]:
    return which, json.dumps(asdict(question)), run


def is_regression(sets: Sets) -> bool:
    return sets.reader.review.task == "regression"


def _binned(sets: Sets, which: Which, frame: pd.DataFrame) -> BinnedInputs:
    def make() -> BinnedInputs:
        with quiet():  # pooled categories are named "other"
            return bin_inputs(frame)

    sets.progress(0.1, "Coding the inputs")
    binned: BinnedInputs = sets.keep(("coded", which), make)
    return binned


def _training(
    sets: Sets, which: Which, frame: pd.DataFrame
) -> tuple[BinnedInputs, IntArray, BinnedInputs]:
    """The coded training rows with their classes, and the set's rows in the same codes."""

    def make() -> tuple[BinnedInputs, IntArray, BinnedInputs]:
        reader = sets.reader
        known = reader.frame("training")
        name = reader.name("training")
        y = target_labels(known, reader.roles, reader.review.classes, file=name)
        with quiet():
            inputs = bin_inputs(known[list(frame.columns)])
            return inputs, y, bin_inputs(frame, like=inputs.columns)

    sets.progress(0.1, "Reading the training rows")
    found: tuple[BinnedInputs, IntArray, BinnedInputs] = sets.keep(("training", which), make)
    return found
