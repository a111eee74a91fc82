"""What is wrong with the numbers that a figure shows under the pointer.

Plotly writes U+2212 where an axis has the format, and a hyphen where a hover template has it:
`tests/charts/test_hover.py` shows it in a browser. Texts that Python wrote are checked as they are.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go

_FIELD = re.compile(r"%\{([^}:]+)(?::([^}]*))?\}")
_HARMLESS = re.compile(r",|,?\.([0-3])?~?[f%]")  # no exponent, and at most three decimals
_HYPHEN = re.compile(r"(?<![\w.,)\]-])-\.?\d")  # a hyphen as a sign, not one inside a name
_EXPONENT = re.compile(r"\d[eE][+\-−]?\d")
_MANY = re.compile(r"(?<!\d)0\.0*[1-9]\d{4,}|[1-9]\d*\.\d{5,}")  # four are enough


def faults(figure: go.Figure) -> Iterator[str]:
    """A sentence for each number that would show a hyphen, an exponent or too many decimals."""
    for trace in figure.data:
        template = getattr(trace, "hovertemplate", None)
        if not isinstance(template, str):
            continue
        yield from _wrong_text(re.sub(r"%\{[^}]*\}", "", template))
        for name, form in _FIELD.findall(template):
            if not name.startswith("fullData"):
                yield from _wrong_field(trace, name, form)


def _wrong_field(trace: Any, name: str, form: str) -> Iterator[str]:
    values = _values(trace, name)
    if form:
        if not _HARMLESS.fullmatch(form):
            yield f"the format {form} of {name} may write an exponent or a hyphen"
        elif (values.astype(float) < 0).any():
            yield f"{name} in the format {form} is negative"
        return
    if name in ("x", "y"):
        return  # as the axis writes it
    for value in values.ravel():
        if isinstance(value, str):
            yield from _wrong_text(value)
        elif value is not None and not isinstance(value, int | np.integer):
            yield f"{name} is the number {value} without a format"


def _values(trace: Any, name: str) -> np.ndarray:
    name, _, column = name.partition("[")
    held = getattr(trace, name)
    if isinstance(held, dict):  # cut out of another figure, as plotly sends it
        held = np.frombuffer(base64.b64decode(held["bdata"]), held["dtype"]).reshape(
            [int(n) for n in str(held.get("shape", "-1")).split(",")]
        )
    values = np.asarray(held, dtype=object)
    if column and values.ndim > 1:
        return np.asarray(values[:, int(column.rstrip("]"))])
    return values


def _wrong_text(text: str) -> Iterator[str]:
    for pattern, what in ((_HYPHEN, "a hyphen"), (_EXPONENT, "an e"), (_MANY, "many decimals")):
        if pattern.search(text):
            yield f"{what} in {text}"
