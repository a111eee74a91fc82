"""The declared groups of a set of very many rows, counted once beside its summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.column_kinds import is_number, simple
from kdcal_core.data.times import looks_like_dates
from kdcal_core.diagnostics import RegionSearch, column_regions, declared_pit_regions
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    GroupSummary,
    RegressionSummary,
    class_groups,
    pit_groups,
    summary_pit_group_search,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Which
from kdcal_core.tasks.decorators import Sets, review_task, the_set
from kdcal_core.tasks.pit_measures import pit_values


def with_class_groups(
    sets: Sets, which: Which, event: int | None, columns: Sequence[str]
) -> ClassSummary | None:
    """The summary of a set with its groups counted; None of few rows, or too many columns."""
    whole = sets.summary(which)
    if whole is None:
        return None

    def count(frame: pd.DataFrame) -> GroupSummary:
        return class_groups(frame, sets.read(which), event, every_class=True)

    found = _groups(sets, which, columns, partial(sets.read, which), count, event)
    return None if found is None else replace(whole, groups=found)


def with_pit_groups(sets: Sets, which: Which, columns: Sequence[str]) -> RegressionSummary | None:
    """As `with_class_groups`, of the PIT values of a regression."""
    whole = sets.regression_summary(which)
    if whole is None:
        return None

    def count(frame: pd.DataFrame) -> GroupSummary:
        return pit_groups(frame, pit_values(sets, which))

    found = _groups(sets, which, columns, partial(pit_values, sets, which), count)
    return None if found is None else replace(whole, groups=found)


@review_task(
    "Groups: judging the distributions of every group",
    reads=the_set,
    edition="with every column, and many rows counted",
)
def set_pit_groups(sets: Sets, *, which: Which, columns: Sequence[str]) -> RegionSearch:
    """Place and spread of the PIT values in every group of each column, and of all together."""
    summary = with_pit_groups(sets, which, columns)
    if summary is not None:
        return summary_pit_group_search(summary)
    weight, pit = sets.distributions(which).design, pit_values(sets, which)
    return declared_pit_regions(pit, sets.frame(which, tuple(columns)), sample_weight=weight)


def _groups(
    sets: Sets,
    which: Which,
    columns: Sequence[str],
    read: Callable[[], object],
    count: Callable[[pd.DataFrame], GroupSummary],
    event: int | None = None,
) -> GroupSummary | None:
    def make() -> GroupSummary | None:
        with ThreadPoolExecutor(1) as pool:  # the columns while the rows are checked
            table = pool.submit(sets.reader.frame, which, tuple(columns), coded=True)
            read()
        frame = table.result()
        left = set(frame.columns)
        while True:
            try:
                return count(frame)
            except InputError as error:
                if error.column not in left:
                    return None  # the rows themselves are divided
                left.remove(error.column)
                frame[error.column] = _fewer(frame[error.column])

    found: GroupSummary | None = sets.keep(("groups", which, tuple(columns), event), make)
    return found


def _fewer(column: pd.Series[Any]) -> pd.Series[Any]:
    """The stretch of each number, or the commonest texts and "all others", as groups of rows have.

    A missing value has none.
    """
    in_order = is_number(column) or looks_like_dates(simple(column.name), column)
    if in_order:
        labels, names = column_regions(column)
        missing = column.isna().to_numpy()
    else:
        coded = column.astype("category")
        code = coded.cat.codes.to_numpy().astype(np.int64)
        missing, every = code < 0, coded.cat.categories
        rows = np.bincount(code[~missing], minlength=len(every))
        used = np.flatnonzero(rows)
        of_value, names = column_regions(pd.Series(every[used]), counts=rows[used])
        labels = np.full(len(every) + 1, -1)  # the last is of a missing value
        labels[used] = of_value
        labels = labels[code]
    labels[missing] = -1
    words = pd.Index(names[:-1] if in_order and missing.any() else names)
    return pd.Series(pd.Categorical.from_codes(labels, words, ordered=in_order), name=column.name)
