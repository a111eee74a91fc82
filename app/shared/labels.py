"""Labels of choices that stay apart."""

from __future__ import annotations

from collections.abc import Sequence


def unique_labels(labels: Sequence[str]) -> list[str]:
    """The labels, with a number after each one that occurred before.

    A Streamlit widget sends back the label that was chosen, so no two may be equal.

    Examples
    --------
    >>> unique_labels(["a", "b", "a", "a (2)", "a"])
    ['a', 'b', 'a (2)', 'a (2) (2)', 'a (3)']
    """
    found: list[str] = []
    for label in labels:
        names = (label, *(f"{label} ({at})" for at in range(2, len(labels) + 2)))
        found.append(next(one for one in names if one not in found))
    return found
