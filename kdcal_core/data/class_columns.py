"""Probabilities and true classes as people have them at hand: named columns, names, one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.array_checks import check_labels, check_proba, check_values, refuse_rows
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.labels import encode_labels
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.text import listed

_SHOWN = 8
_ANY = int(np.iinfo(np.int64).max)  # as many classes as there may be


def check_rows(
    proba: Any, y: Any, classes: Sequence[str] | None = None
) -> tuple[FloatArray, IntArray, tuple[str, ...] | None]:
    """Probabilities (n, K), class indices (n,) and class names, each checked.

    Parameters
    ----------
    proba : (n, K) array-like or data frame, or (n,)
        As of :func:`check_columns`.
    y : (n,) array-like
        Names of classes, or whole numbers. Without ``classes``, numbers are column indices.
    classes : sequence of K str, optional
        The classes in the order of the columns. By default those of text in ``y`` as
        `numpy.unique` sorts them, or as many as the columns of a frame name; None of numbers.

    Raises
    ------
    InputError
        As of :func:`check_columns`; for a label that is missing or no class, and for another
        number of labels than rows.

    Examples
    --------
    >>> proba, y, classes = check_rows([0.9, 0.2], ["yes", "no"])
    >>> proba.round(1).tolist(), y.tolist(), classes
    ([[0.1, 0.9], [0.8, 0.2]], [1, 0], ('no', 'yes'))
    """
    if classes is None and is_text(y):
        classes = _classes_of_text(y, column_names(proba))
    if classes is None:
        stated = check_columns(proba)
        return stated, check_labels(y, stated.shape[1], n_rows=len(stated)), None
    names = tuple(classes)
    true = encode_labels(y, names)
    if len(names) == 1:
        raise InputError(
            f"All rows are of one class, {names[0][:80]!r}, so the columns' classes are unknown",
            fix="Name the columns of a data frame after the classes, or give column indices as "
            "labels.",
        )
    stated = check_columns(proba, names)
    if stated.shape[1] != len(names):
        raise InputError(
            f"There are {stated.shape[1]:,} columns of probabilities for {len(names):,} classes "
            f"({listed(names, _SHOWN)})",
            fix="Name all classes in the order of the columns with classes=, or name the columns "
            "of a data frame after them.",
        )
    return stated, check_labels(true, len(names), n_rows=len(stated)), names


def check_classes(*labels: Any, n_classes: int | None = None) -> tuple[tuple[IntArray, ...], int]:
    """Columns of class labels as indices, and the number of classes K.

    Parameters
    ----------
    *labels : (n,) array-like
        Names of classes, or whole numbers from 0. Names of all columns together are sorted as
        `numpy.unique` does.
    n_classes : int, optional
        K. By default as many as there are names, or one more than the largest number.

    Raises
    ------
    InputError
        For a label that is missing or no class, and for columns of different lengths.

    Examples
    --------
    >>> (said, true), k = check_classes(["cat", "dog"], ["dog", "ant"])
    >>> said.tolist(), true.tolist(), k
    ([1, 2], [2, 0], 3)
    """
    if any(map(is_text, labels)):
        names = tuple(sorted({name for one in labels if is_text(one) for name in _texts(one)}))
        if n_classes is not None and len(names) != n_classes:
            raise InputError(
                f"The labels name {len(names):,} classes ({listed(names, _SHOWN)}), not "
                f"{n_classes:,}",
                fix="Give column indices as labels: whole numbers from 0.",
            )
        n_classes = len(names)
        given: tuple[Any, ...] = tuple(encode_labels(one, names) for one in labels)
    else:
        given = labels
    if n_classes is None:
        n_classes = 1 + int(max(np.max(check_labels(one, _ANY)) for one in given))
    first = check_labels(given[0], n_classes)
    others = (check_labels(one, n_classes, n_rows=len(first)) for one in given[1:])
    return (first, *others), n_classes


def check_hits(hit: Any, n_rows: int | None = None) -> IntArray:
    """Whether the event happened in each row, 0 or 1, (n,); of two names the second happened.

    Raises
    ------
    InputError
        For a value that is missing or not one of two, and for another number of rows.

    Examples
    --------
    >>> check_hits(["yes", "no"]).tolist(), check_hits([True, False]).tolist()
    ([1, 0], [1, 0])
    """
    if is_text(hit):
        ((hit,), _) = check_classes(hit, n_classes=2)
    return check_labels(hit, 2, n_rows=n_rows)


def check_columns(
    proba: Any, *orders: Sequence[str] | None, n_classes: int | None = None
) -> FloatArray:
    """Class probabilities, (n, K), with named columns put in the order of the classes.

    Parameters
    ----------
    proba : (n, K) array-like or data frame, or (n,)
        A single column is the probability of the second of two classes. The columns of a frame
        whose names are exactly those of one order are put in that order; others keep theirs.
    *orders : sequence of K str, optional
        Names in the order of the columns: of the classes, or of the frame of a fit. The name of
        a lone column orders nothing.
    n_classes : int, optional
        The K that is expected.

    Raises
    ------
    InputError
        As of :func:`check_proba`, and for a column that has the name of another column's class.

    Examples
    --------
    >>> frame = pd.DataFrame({"yes": [0.9, 0.2], "no": [0.1, 0.8]})
    >>> check_columns(frame, ("no", "yes")).tolist()
    [[0.1, 0.9], [0.8, 0.2]]
    >>> check_columns(frame.rename(columns={"no": "rest"}), ("no", "yes"))
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The first column of probabilities is named 'yes', and its place \
is that of 'no'. ...
    """
    if isinstance(proba, np.ndarray) and proba.ndim == 2 and proba.shape[1] > 1:
        return check_proba(proba, n_classes=n_classes)
    given, names = as_pandas(proba), column_names(proba)
    known = [tuple(order) for order in orders if order is not None and len(order) > 1]
    if names is not None and (order := _order(names, known)) is not None:
        given = given.iloc[:, [names.index(name) for name in order]]
        names = order
    elif names is not None:
        for order in known:
            _refuse_contradiction(names, order)
    if not isinstance(given, pd.DataFrame) or given.shape[1] == 1:
        values = check_values(given)
        one = values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)
        if one and n_classes in (None, 2) and all(len(order) == 2 for order in known):
            return _pair(values.reshape(-1))
    return check_proba(given, n_classes=n_classes, columns=names)


def column_names(proba: Any) -> tuple[str, ...] | None:
    """The names of a data frame's columns, or None if it only counts them; a column has its own.

    Examples
    --------
    >>> column_names(pd.DataFrame({"no": [0.1], "yes": [0.9]})), column_names([[0.1, 0.9]])
    (('no', 'yes'), None)
    """
    given = as_pandas(proba)
    if isinstance(given, pd.Series):
        return (given.name,) if isinstance(given.name, str) else None
    if not isinstance(given, pd.DataFrame) or given.columns.equals(pd.RangeIndex(given.shape[1])):
        return None
    return tuple(map(str, given.columns))


def is_text(labels: Any) -> bool:
    """Whether labels are text, at least one of them.

    Examples
    --------
    >>> is_text(["no", "yes"]), is_text([0, 1]), is_text(pd.Series(["a", None], dtype="category"))
    (True, False, True)
    """
    values = _objects(labels)
    if values.dtype.kind == "O":
        return any(isinstance(value, str | bytes) for value in values.ravel())
    return values.dtype.kind in "US"


def _objects(labels: Any) -> NDArray[Any]:
    labels = as_pandas(labels)
    if isinstance(labels, pd.Series | pd.Index) and not isinstance(labels.dtype, np.dtype):
        return np.asarray(labels.to_numpy(dtype=object))
    return np.asarray(labels)


def _classes_of_text(y: Any, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Sorted as numpy.unique does; all names of the columns where they include the labels."""
    known = _texts(y)
    if names is not None and known < set(names) and len(set(names)) == len(names):
        known = set(names)
    return tuple(sorted(known))


def _texts(labels: Any) -> set[str]:
    values = _objects(labels).ravel()
    return {
        one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)
        for one in values[~pd.isna(values)]
    }


def _order(names: tuple[str, ...], orders: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The first order with exactly these names; without orders, that of numbered columns."""
    if len(set(names)) < len(names):
        return None
    for order in orders or [tuple(map(str, range(len(names))))]:
        if set(order) == set(names) and len(order) == len(names):
            return order
    return None


def _refuse_contradiction(names: tuple[str, ...], order: tuple[str, ...]) -> None:
    places = order[1:] if len(names) == 1 and len(order) == 2 else order
    for at, (name, place) in enumerate(zip(names, places, strict=False)):
        if name != place and name in order:
            which = "The column" if len(names) == 1 else f"{_ordinal(at)} column"
            raise InputError(
                f"{which} of probabilities is named {name[:80]!r}, and its place is that of "
                f"{place[:80]!r}",
                fix=f"Name the columns {listed(map(repr, order), _SHOWN)}, in any order, or give "
                "an array of these columns in this order.",
            )


def _ordinal(at: int) -> str:
    return ("The first", "The second", "The third")[at] if at < 3 else f"The {at + 1}th"


def _pair(values: FloatArray) -> FloatArray:
    """Both columns of two classes, from that of the second."""
    outside = (values < 0.0) | (values > 1.0 + 1e-6)
    refuse_rows(
        outside,
        "A probability is below 0 or above 1",
        "A single column is the probability of the second class, between 0 and 1.",
    )
    values = np.minimum(values, 1.0)
    return check_proba(np.column_stack([1.0 - values, values]))
