"""What is asked on the Regions page, and the partition that answers it at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.widgets.kept import kept_by_bytes
from app.widgets.regions_rows import Looked, training_of
from kdcal_core.data import IntArray
from kdcal_core.data.numbers import is_number
from kdcal_core.diagnostics import (
    RegionSearch,
    column_regions,
    describe_pit_regions,
    describe_regions,
    find_pit_regions,
    find_regions,
)
from kdcal_core.diagnostics.regression.regions import OTHERS
from kdcal_core.tasks.regions_partition import class_regions

Purpose = Literal["wrong", "classes", "column"]
COLUMN_BINS, COLUMN_LEVELS = 10, 30


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
class Found:
    """A partition with its judgement, and what tells it from every other."""

    key: str
    search: RegionSearch
    ranked: bool = True  # the regions stand by evidence; else as a number's stretches follow

    @property
    def short(self) -> str:
        """For the keys of widgets."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]


def search_of(looked: Looked, asked: Question) -> Found:
    """The partition and what is wrong in each of its regions, without a job.

    Raises
    ------
    InputError
        Where there are too few rows, or a column holds what cannot be cut.
    """
    search = _search(looked.key, asked, looked)
    column = None if asked.column is None else looked.frame[asked.column]
    return Found(f"{looked.key} {asked}", search, column is None or not is_number(column))


@kept_by_bytes(show_spinner="Looking for regions")
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
    known = training_of(_looked)
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
