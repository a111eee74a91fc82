"""Constraints on parameters as text, and the reading of values that users write."""

from __future__ import annotations

import csv
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.text import listed

# No data need more bins or more rows in each region than the upper limit, which also bounds the
# memory; no bandwidth or strength needs to be nearer to zero than the lower one.
LEAST, MOST = 1e-6, 1e6
UNREAD = object()
"""Marks a text that is not a valid value of a parameter."""


def read(constraints: list[Any], text: str) -> Any:
    """The value that a text stands for, or ``UNREAD``.

    Several names are separated by commas; a name with a comma is written in double quotes.

    Examples
    --------
    >>> read([None, Interval(Integral, 1, None, closed="left")], "20")
    20
    >>> read(["boolean"], "perhaps") is UNREAD
    True
    """
    for reader in (_option, _nothing, _truth, _number, _names):
        for constraint in constraints:
            value = reader(constraint, text)
            if value is not UNREAD:
                return value
    return UNREAD


def in_reach(value: float) -> bool:
    """Whether a number is zero, or neither tiny nor huge.

    Examples
    --------
    >>> in_reach(0), in_reach(-2.5), in_reach(1e-300), in_reach(10**30)
    (True, True, False, False)
    """
    return value == 0 or LEAST <= abs(value) <= MOST


def allowed(constraints: list[Any]) -> str:
    """What a parameter with these constraints may be, in words.

    Examples
    --------
    >>> allowed([None, Interval(Integral, 1, 12, closed="both")])
    'none or a whole number from 1 to 12'
    """
    words = [word for one in constraints for word in _words(one)]
    return listed(words, len(words), last="or")


def _words(constraint: Any) -> list[str]:
    if constraint is None:
        return ["none"]
    if isinstance(constraint, StrOptions):
        return sorted(constraint.options)
    if isinstance(constraint, Interval):
        return [_interval(constraint)]
    return {"boolean": ["yes", "no"], "array-like": ["several, separated by commas"]}.get(
        constraint, ["a column's name"]
    )


def _interval(one: Interval) -> str:
    kind = "a whole number" if one.type is Integral else "a number"
    open_at_nought = one.left == 0 and one.closed in ("neither", "right")
    low = f" from {f'{LEAST:f}' if open_at_nought else f'{one.left:,}'}"
    return f"{kind}{low} to {min(MOST, one.right or MOST):,.0f}"


def _option(constraint: Any, text: str) -> Any:
    found = isinstance(constraint, StrOptions) and text in constraint.options
    return text if found else UNREAD


def _nothing(constraint: Any, text: str) -> Any:
    return None if constraint is None and text.lower() == "none" else UNREAD


def _truth(constraint: Any, text: str) -> Any:
    known = {"yes": True, "true": True, "no": False, "false": False}
    return known.get(text.lower(), UNREAD) if constraint == "boolean" else UNREAD


def _number(constraint: Any, text: str) -> Any:
    if not isinstance(constraint, Interval):
        return UNREAD
    try:
        value = int(text) if constraint.type is Integral else float(text)
    except ValueError:
        return UNREAD
    return value if value in constraint and in_reach(value) else UNREAD


def _names(constraint: Any, text: str) -> Any:
    if constraint is not str or not text.strip():
        return UNREAD
    found = next(csv.reader([text], skipinitialspace=True))
    if not all(found):
        return UNREAD
    return found[0] if len(found) == 1 else found
