"""Class names: a column of labels of any type becomes indices into the model's classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from kdcal_core.data.types import IntArray
from kdcal_core.errors import InputError
from kdcal_core.text import listed

_WHOLE = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_TRUTH = {"true": "1", "false": "0", "1": "1", "0": "0"}
_MAX_LISTED = 8


def encode_labels(
    labels: Any,
    classes: Sequence[str],
    *,
    column: str | None = None,
    file: str | None = None,
) -> IntArray:
    """Map each label to the index of its class, (n,) int64 in 0 to ``len(classes) - 1``.

    A label is compared with the class names as text; where that fails as a number (``1.0`` is
    class ``"1"``), then as a truth value (classes 0 and 1, or False and True), then without
    regard to case. A comparison counts only where it picks one class.

    Parameters
    ----------
    labels : (n,) array-like
        Text, integers, floats, booleans, pandas nullable, categorical or Arrow values; n >= 1.
    classes : sequence of str
        The K class names in the order of the probability columns.
    column, file : str, optional
        Where the labels come from, for the errors.

    Raises
    ------
    InputError
        For a missing label, a label unknown to the model (labels that count from 1 where the
        classes count from 0 are recognised), or no rows.

    Examples
    --------
    >>> encode_labels([1.0, 0.0, True], ("0", "1")).tolist()
    [1, 0, 1]
    >>> encode_labels(["Cat ", "dog"], ("cat", "dog")).tolist()
    [0, 1]
    """
    codes, uniques = _factorise(labels)
    if len(codes) == 0:
        raise InputError("There are no rows", fix="Give at least one row.", file=file)
    finders = [_finder(classes, form) for form in (str, _number_text, _truth_text, _folded)]
    position = np.full(len(uniques) + 1, -1, dtype=np.int64)  # the last entry is for code -1
    for index, value in enumerate(uniques):
        text = _text(value)
        found = next((at for find in finders if (at := find(text)) is not None), None)
        if found is None:
            row = int(np.argmax(codes == index)) + 1
            _raise_unknown(text, uniques, classes, column=column, file=file, row=row)
        position[index] = found
    encoded = position[codes]
    if encoded.min() < 0:
        _raise_missing(column, file, int(np.argmax(encoded < 0)) + 1)
    return encoded


def classes_of(labels: Any) -> tuple[str, ...]:
    """The distinct labels as class names in natural order; missing labels are left out.

    Examples
    --------
    >>> classes_of([10.0, 9.0, 10.0])
    ('9', '10')
    >>> classes_of(["c10", "c9"])
    ('c9', 'c10')
    """
    _, uniques = _factorise(labels)
    names = {_text(value).strip() for value in uniques}
    return tuple(sorted(names - {""}, key=_natural))


def _factorise(labels: Any) -> tuple[IntArray, list[Any]]:
    """Codes in order of first appearance, -1 where missing, and the distinct values."""
    series = labels if isinstance(labels, pd.Series) else pd.Series(labels)
    codes, uniques = pd.factorize(series)
    return codes.astype(np.int64), list(uniques)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and np.isfinite(value) and value == int(value):
        return str(int(value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number_text(text: str) -> str:
    stripped = text.strip()
    whole = _WHOLE.fullmatch(stripped)
    if not whole:
        return stripped
    sign, digits = whole.groups()
    number = digits.lstrip("0") or "0"
    return f"-{number}" if sign == "-" and number != "0" else number


def _truth_text(text: str) -> str:
    number = _number_text(text).casefold()
    return _TRUTH.get(number, number)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _finder(classes: Sequence[str], form: Callable[[str], str]) -> Callable[[str], int | None]:
    """Look a label up among the class names, both brought to one form; None unless unique."""
    index: dict[str, int | None] = {}
    for position, name in enumerate(classes):
        key = form(name)
        index[key] = None if key in index else position
    if form is _truth_text and not (len(classes) == 2 and set(index) == {"0", "1"}):
        return lambda text: None
    return lambda text: index.get(form(text))


def _raise_missing(column: str | None, file: str | None, row: int) -> NoReturn:
    raise InputError(
        "A label is missing",
        fix="Remove the row or fill the label in.",
        file=file,
        column=column,
        row=row,
    )


def _raise_unknown(
    text: str,
    uniques: Sequence[Any],
    classes: Sequence[str],
    *,
    column: str | None,
    file: str | None,
    row: int,
) -> NoReturn:
    if not text.strip():
        _raise_missing(column, file, row)
    k = len(classes)
    counted = tuple(classes) == tuple(map(str, range(k)))
    seen = {_number_text(_text(value)) for value in uniques}
    if counted and str(k) in seen and seen <= set(map(str, range(1, k + 1))):
        raise InputError(
            f"The labels look counted from 1 (1 to {k}), but the model's classes count from 0 "
            f"(0 to {k - 1})",
            fix=f"Name the model's classes 1 to {k}, in the order of its outputs (on the Load "
            "page, or with --classes), or subtract 1 from the labels.",
            file=file,
            column=column,
            row=row,
        )
    shown = text if len(text) <= 60 else text[:59] + "…"
    raise InputError(
        f"Label {shown!r} is unknown to the model",
        fix=_fix_of_unknown(uniques, classes, counted=counted),
        file=file,
        column=column,
        row=row,
    )


def _fix_of_unknown(uniques: Sequence[Any], classes: Sequence[str], *, counted: bool) -> str:
    k = len(classes)
    named = listed(map(repr, classes), _MAX_LISTED)
    rename = "name the model's classes as the target spells them, in the order of its outputs"
    where = "(on the Load page, or with --classes)"
    if counted and len(uniques) == k:
        return f"The model only counts its classes: {named}. {rename.capitalize()} {where}."
    quantity = " Where the model predicts a quantity, choose the task regression." * counted
    return (
        f"The model's classes are {named}. Choose another target column, rename the label, "
        f"or {rename} {where}.{quantity}"
    )


def _natural(name: str) -> tuple[Any, ...]:
    """Numbers by value before text, and digits inside text by value."""
    if _NUMBER.fullmatch(name):
        return (0, float(name), name)
    # Every second part is a run of digits: compared by length, then as text, it needs no integer.
    parts = re.split(r"0*([0-9]+)", name)
    return (1, [(len(part), part) if at % 2 else part for at, part in enumerate(parts)], name)
