"""What the calibration rows show of their target before they are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kdcal_core.data import (
    FloatArray,
    IntArray,
    Roles,
    output_matrix,
    split_by_column,
    target_labels,
    weight_column,
)
from kdcal_core.data.labels import default_event, encode_labels, odd_answers
from kdcal_core.data.role_columns import true_labels
from kdcal_core.data.target_words import event_shows, target_shows
from kdcal_core.errors import InputError
from kdcal_core.review.reader import ReviewReader
from kdcal_core.review.review import Review
from kdcal_core.review.workspace import Workspace
from kdcal_core.text import counted

if TYPE_CHECKING:
    import pandas as pd

_MOST = 200_000  # rows; the app itself reads them, whatever the size of the table


@dataclass(frozen=True)
class FirstLook:
    """The rows' classes, and the predictions that the table holds.

    Attributes
    ----------
    shows : str
        For the target as a whole; empty where the rows have one class. Untrusted text.
    event : str or None
        Of two classes the default event, which is the one after scoring. Untrusted text.
    of_event : dict of str to str
        With two classes, what the rows show if this one is the event. Untrusted text.
    odd : str
        What speaks beyond chance against the classes of the table's predictions, with the likely
        fix; empty if nothing does. Scoring asks about the same. Untrusted text.
    """

    shows: str
    event: str | None = None
    of_event: dict[str, str] = field(default_factory=dict)
    odd: str = ""


def first_look(workspace: Workspace, review: Review, most: int = _MOST) -> FirstLook | None:
    """How often each class occurs and, without a model, how its predictions compare with that.

    None for a regression, and without a calibration table or a target. A model is not run, so only
    the frequencies are known before it has scored the rows. Rows that a split column gives to
    another set do not count, weighted rows count by their weight, and of a table of more than
    ``most`` rows as many are drawn. The default event is that of all rows, as after scoring.

    Raises
    ------
    InputError
        If the table's file is missing or was changed.
    """
    table, roles = review.tables.get("calibration"), review.roles
    if table is None or roles is None or roles.target is None or review.task == "regression":
        return None
    stated = [] if review.model else [column for _, column in roles.outputs]
    stated += [roles.predicted] if roles.predicted and stated else []
    split = None if review.has_evaluation else roles.split  # else it is not divided
    columns = [roles.target, *stated, *(one for one in (split, roles.weight) if one)]
    reader = ReviewReader(workspace, review.id, review=review)
    frame = reader.frame("calibration", columns, most)
    drawn = len(frame) < table.n_rows
    frame = _calibration_rows(frame, split).dropna(subset=[roles.target]).reset_index(drop=True)
    labels, names = frame[roles.target], review.classes
    rows = f"{counted(len(frame), 'row')} drawn" if drawn else "the rows"
    proba, weight = None, None
    try:
        labels = true_labels(frame, roles)
        y = encode_labels(labels, names)
        proba = output_matrix(frame, roles, names) if stated else None
        weight = weight_column(frame, roles)
    except InputError:  # scoring reports it, with its row
        return FirstLook(target_shows(labels, rows=rows))
    rows += " (weighted)" if weight is not None else ""
    odd = "" if proba is None else _odd(proba, y, names)
    if len(names) != 2:
        return FirstLook(target_shows(labels, names, proba, weight, rows), odd=odd)
    class_rows = np.bincount(y, minlength=2)
    if drawn:
        try:
            class_rows = _class_rows(reader, roles, split, names)
        except InputError:  # a label that was not drawn; scoring reports it, with its row
            return FirstLook(target_shows(labels, names, proba, weight, rows))
    return FirstLook(
        target_shows(labels, names, proba, weight, rows),
        default_event(names, class_rows.tolist()),
        {name: event_shows(labels, name, names, proba, weight, rows) for name in names},
        odd,
    )


def _odd(proba: FloatArray, y: IntArray, names: tuple[str, ...]) -> str:
    found = odd_answers(proba, y, names)
    return found.sentence if found is not None and found.beyond_chance else ""


def _class_rows(
    reader: ReviewReader, roles: Roles, split: str | None, names: Sequence[str]
) -> IntArray:
    """Rows of each class among all calibration rows, (K,)."""
    columns = [*roles.label_columns, *([split] if split else [])]
    frame, times = reader.counts("calibration", columns)
    frame = _calibration_rows(frame, split).dropna(subset=[roles.target])
    y = target_labels(frame, roles, names)
    return np.bincount(y, weights=times[frame.index], minlength=len(names)).astype(np.int64)


def _calibration_rows(frame: pd.DataFrame, split: str | None) -> pd.DataFrame:
    """The rows that a split column gives to the calibration set; all without such a column."""
    if split is None:
        return frame
    try:
        positions = split_by_column(frame, split).get("calibration")
    except InputError:  # dividing the rows reports it
        return frame
    return frame if positions is None else frame.iloc[positions]
