"""What a scored set suffices for: rows of each class, missing values, outcomes and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.data.labels import odd_answers
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.text import counted, listed

FEW_ROWS = 30
SUSPICIOUS_ACCURACY = 0.995
_ENOUGH_TO_SUSPECT = 200
_MANY_TIES = 0.01  # of the rows


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
    """Rows of each class of a scored set, its accuracy and its flags.

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
        *_tie_flags(proba),
        *missing_flags(missing or {}),
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


def _tie_flags(proba: FloatArray) -> list[str]:
    largest = proba.max(axis=1, keepdims=True)
    tied = int(((proba == largest).sum(axis=1) > 1).sum())
    if tied < _MANY_TIES * len(proba):
        return []
    return [
        f"In {tied:,} of {counted(len(proba), 'row')} more than one class has the largest "
        "probability: the first of them counts as predicted."
    ]


def missing_flags(missing: Mapping[str, int]) -> list[str]:
    """The flag of columns with missing values, by name; none without any."""
    some = [f"{name} ({count:,})" for name, count in missing.items() if count]
    return [f"Missing values in {listed(some)}."] if some else []


_NORMAL_95 = 1.959963984540054  # standard normal quantile of 0.975


@dataclass(frozen=True)
class RegressionFitness:
    """Outcomes, errors and what should make a reviewer careful.

    Attributes
    ----------
    n_rows : int
    low, median, high : float
        Smallest, middle and largest outcome.
    n_distinct : int
        Distinct outcomes.
    rmse : float
        Root mean squared error of the predictive means against the outcomes.
    rmse_low, rmse_high : float
        Its 95% interval: that of the mean squared error by the central limit theorem, rooted.
    outside : int
        Outcomes outside the predictive support or its samples: PIT exactly 0 or 1.
    flags : tuple of str
        Plain sentences. They may hold column names: untrusted text.
    """

    n_rows: int
    low: float
    median: float
    high: float
    n_distinct: int
    rmse: float
    rmse_low: float
    rmse_high: float
    outside: int
    flags: tuple[str, ...]


def regression_fitness(
    mean: FloatArray,
    y: FloatArray,
    *,
    outside: int = 0,
    missing: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> RegressionFitness:
    """Outcomes and errors of a scored regression set, and its flags.

    Parameters
    ----------
    mean : (n,) array
        Predictive means.
    y : (n,) array
        Outcomes, n >= 1.
    outside : int
        Rows whose PIT is exactly 0 or 1.
    missing : mapping of column name to number of missing values, optional
        For the columns that the model reads.
    notes : sequence of str
        Notes of the scoring; they become flags.

    Examples
    --------
    >>> found = regression_fitness(np.zeros(40), np.resize([-1.0, 1.0], 40))
    >>> found.rmse, found.flags
    (1.0, ('The outcome has two values only: it may be a class. Then the task is classification.',))
    """
    squared = (y - mean) ** 2
    mse = float(squared.mean())
    spread = float(squared.std(ddof=1)) if len(y) > 1 else float("nan")
    margin = _NORMAL_95 * spread / np.sqrt(len(y))
    n_distinct = len(np.unique(y))
    flags = [
        *_row_flags(len(y), n_distinct),
        *_error_flags(mse, y),
        *_outside_flags(outside, len(y)),
        *notes,
        *missing_flags(missing or {}),
    ]
    return RegressionFitness(
        n_rows=len(y),
        low=float(y.min()),
        median=float(np.median(y)),
        high=float(y.max()),
        n_distinct=n_distinct,
        rmse=float(np.sqrt(mse)),
        rmse_low=float(np.sqrt(max(mse - margin, 0.0))) if len(y) > 1 else float("nan"),
        rmse_high=float(np.sqrt(mse + margin)),
        outside=outside,
        flags=tuple(flags),
    )


def _row_flags(n: int, n_distinct: int) -> list[str]:
    flags = []
    if n < FEW_ROWS:
        flags.append(
            f"There are only {n:,} rows: hardly anything can be said about the distributions."
        )
    if n_distinct == 2:
        flags.append(
            "The outcome has two values only: it may be a class. Then the task is classification."
        )
    return flags


def _error_flags(mse: float, y: FloatArray) -> list[str]:
    plain = float(np.var(y))
    if mse == 0.0:
        return [
            "Every prediction equals its outcome: better than held-out rows allow. Were these "
            "rows used to train the model, or is the outcome among its inputs?"
        ]
    if mse > plain:
        return [
            f"The predictions miss by {np.sqrt(mse):.4g} (root mean square), more than the mean of "
            f"all outcomes would ({np.sqrt(plain):.4g}). Are the columns and their units right?"
        ]
    return []


def _outside_flags(outside: int, n: int) -> list[str]:
    if not outside:
        return []
    rows = (
        "1 outcome is impossible under its predicted distribution"
        if outside == 1
        else f"{outside:,} outcomes are impossible under their predicted distributions"
    )
    return [
        f"{rows}, to numerical precision ({outside:,} of {n:,} rows): PIT values of exactly 0 or 1."
    ]
