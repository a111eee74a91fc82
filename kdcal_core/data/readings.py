"""What the columns of a table were taken for, which of it is doubtful, and what an answer changes.

:func:`guess_roles` names one role for each column. Here stands what it cannot know: which of
several columns is the target, the level of an interval, whether numbers are percentages, the order
of columns without names. Such a question is a :class:`Doubt` with its possible answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from kdcal_core.data.array_checks import SUM_TOLERANCE, rounding_of
from kdcal_core.data.class_reading import ClassReader
from kdcal_core.data.column_doubts import (
    MOST_CHOICES,
    Choice,
    ColumnReader,
    Doubt,
    Reading,
    they_hold,
)
from kdcal_core.data.column_kinds import (
    SEVERAL_ROWS,
    is_number,
    names_rows,
    sampled,
    signed_shares,
    simple,
    why_no_input,
)
from kdcal_core.data.forecast_columns import without_sign
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.regression_reading import RegressionReader, two_numbers
from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.role_guesses import guess_roles
from kdcal_core.data.schema import UNITS, Family, Roles, Table, Task
from kdcal_core.data.times import FEWEST_ASKED, dates_of, looks_like_dates, may_order_rows
from kdcal_core.text import in_sentence, listed

_UNNAMED = re.compile(r"unnamed_\d+(_\d+)?")  # as pandas calls the index that it wrote
_INDEX = ("index", "level_0", "index_level_0")


def read_columns(
    table: Table | pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    n_classes: int | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    task: Task | None = None,
    family: Family | None = None,
    answers: Mapping[str, str] | None = None,
) -> Reading:
    """What a table was taken for, and what is doubtful about it.

    Parameters
    ----------
    table, classes, feature_names, n_features, task, family
        As for :func:`guess_roles`.
    n_classes : int, optional
        How many classes the model has, where it names none.
    answers : mapping of str to str, optional
        What a doubt is about, and the answer that was chosen. A question with an answer is not
        asked again.

    Returns
    -------
    Reading

    Examples
    --------
    >>> frame = pd.DataFrame({"price": [1.5, 2.5, 9.0], "forecast": [2.0, 2.0, 8.0]})
    >>> frame = frame.assign(lower=frame["forecast"] - 1, upper=frame["forecast"] + 1)
    >>> reading = read_columns(frame, task="regression")
    >>> reading.doubts[0].about, reading.roles.parameters
    ('level', ())
    >>> read_columns(frame, task="regression", answers={"level": "0.9"}).roles.parameters
    (('0.05', 'lower'), ('0.5', 'forecast'), ('0.95', 'upper'))
    """
    whole = table.frame if isinstance(table, Table) else as_pandas(table)
    index = [name for name in index_columns(whole) if name not in set(feature_names or ())]
    frame = whole.drop(columns=index)
    notes = tuple(f"The column {name!r} only numbers the rows: not used." for name in index)
    model = n_features is not None or bool(feature_names) or bool(classes)

    def guess(target: str | None, of: pd.DataFrame | None = None) -> Roles:
        return guess_roles(
            frame if of is None else of,
            classes=classes,
            feature_names=feature_names,
            n_features=n_features,
            task=task,
            family=family,
            target=target,
        )

    said = dict(answers or {})
    if "labels" in said and not model:  # the reader of classes takes shares as forecasts too
        task = "classification"
    roles = guess(said.get("target"))
    inputs = {*roles.features}
    signed = {} if model else signed_shares(frame, list(map(str, frame.columns)))
    if signed:
        read = frame.assign(**signed)
        if (forecasts := guess(said.get("target"), read)).task == "regression":
            frame, roles = read, forecasts
        elif free := {name: one for name, one in signed.items() if name != roles.target}:
            signed, frame = free, frame.assign(**free)
            roles = guess(roles.target)
    if roles.task == "regression":
        reader: ColumnReader = RegressionReader(frame, said, guess, model)
    else:
        reader = ClassReader(frame, said, guess, model, tuple(classes or ()), n_classes)
    unnamed = not (model or task or roles.target) and two_numbers(frame, roles, said)
    found = unnamed or reader.read(roles)
    if signed:
        roles = found.roles
        forecasts_in = [roles.target or "", *(column for _, column in roles.parameters)]
        stated = [*(column for _, column in roles.outputs), *forecasts_in]
        said_so = [column for column in stated if column in signed]
        features = (name for name in roles.features if name in inputs or name not in signed)
        found = replace(found, roles=replace(roles, features=tuple(features)))
        if roles.task == "regression" and (plain := without_sign(roles, signed)):
            found = _of_two_units(found, said_so, plain)
        elif said_so:
            notes += (f"{they_hold(said_so)} percentages: read as shares.",)
    notes = (*notes, *found.notes, *_rounded_note(frame, found.roles))
    return _with_dependence(frame, replace(found, notes=notes), said)


def _with_dependence(frame: pd.DataFrame, found: Reading, said: Mapping[str, str]) -> Reading:
    """The reading with the column by which rows depend on one another, or the questions for it."""
    cluster, time = said.get("cluster"), said.get("time")
    if cluster or time:  # one of both is used
        roles = replace(found.roles, cluster=None if time else cluster, time=time or None)
        return replace(found, roles=roles)
    taken = {*used_columns(found.roles), *found.roles.features}
    asked = [
        None if cluster is not None else _doubt_of_clusters(frame, taken),
        None if time is not None else _doubt_of_time(frame, taken),
    ]
    return replace(found, doubts=(*found.doubts, *(one for one in asked if one is not None)))


def _doubt_of_time(frame: pd.DataFrame, taken: set[str]) -> Doubt | None:
    """Whether rows are in the order of a column of dates; None where no free column holds any."""
    different = {
        name: frame[name].drop_duplicates()
        for name in map(str, frame.columns)
        if name not in taken
        and may_order_rows(simple(name))
        and looks_like_dates(simple(name), frame[name])
    }
    read = {
        name: f"{len(values):,} different ones in {len(frame):,} rows"
        for name, values in different.items()
        if len(values) >= FEWEST_ASKED and bool(dates_of(values).notna().all())
    }
    if not read:
        return None
    shown = dict(list(read.items())[:MOST_CHOICES])
    each = [f"{name[:40]!r} ({count})" for name, count in shown.items()]
    verb = "holds" if len(shown) == 1 else "hold"
    return Doubt(
        "time",
        f"{listed(each)} {verb} dates or times. If rows come one after the other in that order, "
        "kdcal checks whether calibration holds for the latest of them, and intervals allow for "
        "rows near in time that are alike.",
        (
            *(
                Choice(name, f"Order the rows by {name[:40]}", count)
                for name, count in shown.items()
            ),
            Choice("", "The order in time does not matter"),
        ),
    )


def _doubt_of_clusters(frame: pd.DataFrame, taken: set[str]) -> Doubt | None:
    """Whether rows that a column names alike belong together; None without such a column."""
    named = [name for name in map(str, frame.columns) if names_rows(simple(name))]
    several = [
        name
        for name in named
        if name not in taken and why_no_input(simple(name), frame[name]) == SEVERAL_ROWS
    ][:MOST_CHOICES]
    if not several:
        return None
    counts = {name: f"{frame[name].nunique():,} in {len(frame):,} rows" for name in several}
    each = [f"{name[:40]!r} ({count})" for name, count in counts.items()]
    verb = "names" if len(several) == 1 else "name"
    return Doubt(
        "cluster",
        f"{listed(each)} {verb} what several rows belong to. If rows of one are alike, intervals "
        "that count each row by itself are too narrow: such rows are then to be kept together.",
        (
            *(
                Choice(name, f"Keep rows of one {name[:40]} together", count)
                for name, count in counts.items()
            ),
            Choice("", "Every row counts by itself"),
        ),
    )


def _rounded_note(frame: pd.DataFrame, roles: Roles) -> tuple[str, ...]:
    """That rows of probabilities do not sum to one because their numbers are rounded."""
    columns = [column for _, column in roles.outputs]
    if len(columns) < 2 or roles.output_kind not in ("probability", "percent", "permille"):
        return ()
    values = sampled(frame, columns) / UNITS.get(roles.output_kind, 1.0)
    values = values[np.isfinite(values).all(axis=1)]
    off = np.abs(values.sum(axis=1) - 1.0).max(initial=0.0)
    if not SUM_TOLERANCE < off <= rounding_of(values):
        return ()
    return (f"{they_hold(columns)} rounded numbers: each row is divided by its sum.",)


def _of_two_units(found: Reading, signed: Sequence[str], plain: Sequence[str]) -> Reading:
    doubt = Doubt(
        "outputs",
        f"{they_hold(signed)} percentages with their sign and {in_sentence(they_hold(plain))} "
        "numbers without it, so that it is not known whether 0.5 is a half or half a per cent. "
        "Write all of them with a percent sign, or all of them without.",
    )
    return replace(
        found, roles=replace(found.roles, parameters=()), doubts=(*found.doubts, doubt), notes=()
    )


def index_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that hold a data frame's index: so named, with whole numbers that never repeat.

    Examples
    --------
    >>> frame = pd.DataFrame({"Unnamed: 0": [0, 1], "index": [7, 7], "x": [0, 1]})
    >>> index_columns(frame)
    ['Unnamed: 0']
    """
    return [
        str(name)
        for name in frame.columns
        if (_UNNAMED.fullmatch(simple(name)) or simple(name) in _INDEX)
        and is_number(frame[name])
        and frame[name].is_unique
        and bool((frame[name] % 1 == 0).all())
    ]
