"""What a scored set is fit for: rows a class, missing values, accuracy too good or too bad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kdcal_core.data.orientation import odd_answers
from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.text import listed

FEW_ROWS = 30
SUSPICIOUS_ACCURACY = 0.995
_ENOUGH_TO_SUSPECT = 200


@dataclass(frozen=True, eq=False)
class Fitness:
    """Rows per class and what should make a reviewer careful.

    Attributes
    ----------
    n_rows : int
    accuracy : float
        Share of rows whose largest probability is at the true class.
    rows_true, rows_predicted : (K,) int
        Rows of each true class, and rows predicted as each class.
    flags : tuple of str
        Plain sentences. They may hold class and column names: untrusted text.
    """

    n_rows: int
    accuracy: float
    rows_true: IntArray
    rows_predicted: IntArray
    flags: tuple[str, ...]


def fitness(
    proba: FloatArray,
    y: IntArray,
    classes: tuple[str, ...],
    missing: Mapping[str, int] | None = None,
) -> Fitness:
    """Look over a scored set.

    Parameters
    ----------
    proba : (n, K) array
        Checked probabilities.
    y : (n,) array of int
        Checked class indices.
    classes : tuple of str
        The K class names.
    missing : mapping of column name to number of missing values, optional
        For the columns that the model reads.

    Examples
    --------
    >>> import numpy as np
    >>> fitness(np.array([[0.9, 0.1]] * 40), np.zeros(40, dtype=int), ("a", "b")).flags[0]
    'No row belongs to the class b: nothing can be said of it.'
    """
    predicted = np.argmax(proba, axis=1)
    n_classes = len(classes)
    rows_true = np.bincount(y, minlength=n_classes).astype(np.int64)
    rows_predicted = np.bincount(predicted, minlength=n_classes).astype(np.int64)
    accuracy = float(np.mean(predicted == y))
    odd = odd_answers(proba, y, classes)
    flags = [
        *_class_flags(rows_true, rows_predicted, classes),
        *([odd.sentence] if odd is not None else []),
        *_accuracy_flags(accuracy, len(y)),
        *_missing_flags(missing or {}),
    ]
    return Fitness(len(y), accuracy, rows_true, rows_predicted, tuple(flags))


def _class_flags(
    rows_true: IntArray, rows_predicted: IntArray, classes: tuple[str, ...]
) -> list[str]:
    absent = [name for name, count in zip(classes, rows_true, strict=True) if count == 0]
    never = [name for name, count in zip(classes, rows_predicted, strict=True) if count == 0]
    thin = [
        f"{name} ({count})"
        for name, count in zip(classes, rows_predicted, strict=True)
        if 0 < count < FEW_ROWS
    ]
    noun = "class" if len(absent) == 1 else "classes"
    pronoun = "it" if len(absent) == 1 else "them"
    flags = []
    if absent:
        flags.append(
            f"No row belongs to the {noun} {listed(absent)}: nothing can be said of {pronoun}."
        )
    if never:
        flags.append(f"The model never predicts {listed(never)} on these rows.")
    if thin:
        flags.append(
            f"Fewer than {FEW_ROWS} rows are predicted as {listed(thin)}: the curves there are "
            "mostly noise."
        )
    return flags


def _accuracy_flags(accuracy: float, n: int) -> list[str]:
    if accuracy >= SUSPICIOUS_ACCURACY and n >= _ENOUGH_TO_SUSPECT:
        return [
            f"{accuracy:.1%} of the rows are predicted right: better than held-out rows usually "
            "allow. Were these rows used to train the model?"
        ]
    return []


def _missing_flags(missing: Mapping[str, int]) -> list[str]:
    some = [f"{name} ({count:,})" for name, count in missing.items() if count]
    return [f"Missing values in {listed(some)}."] if some else []
