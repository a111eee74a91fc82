"""What rows show of a class that may be the target or the event, in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.labels import classes_of, default_event, encode_labels, rank_area
from kdcal_core.data.schema import FloatArray
from kdcal_core.errors import InputError


def target_shows(
    labels: pd.Series[Any],
    names: Sequence[str] = (),
    proba: FloatArray | None = None,
    weight: FloatArray | None = None,
    rows: str = "the rows",
) -> str:
    """What rows show if a column is their true class, in a few words; empty for one class.

    Of two classes it is said of the default event.

    Parameters
    ----------
    labels : Series of n labels
        Without missing values.
    names : sequence of K str
        The classes of the columns of ``proba``.
    proba : (n, K) array or None
        The predictions; None if there are none.
    weight : (n,) array or None
        Row weights, above zero; None if all count the same.
    rows : str
        Which rows these are, in words.

    Examples
    --------
    >>> labels = pd.Series(["no", "yes", "no", "yes"])
    >>> target_shows(labels)
    'class yes: 50.0% of the rows'
    >>> target_shows(pd.Series(["left", "right", "right", "right"]))
    'class left: 25.0% of the rows'
    >>> target_shows(labels, ("no", "yes"), np.array([[0.9, 0.1], [0.2, 0.8]] * 2))
    'class yes: 50.0% of the rows, mean prediction 45.0%, AUROC 1.000'
    """
    classes = classes_of(labels)
    if len(classes) < 2:
        return ""
    y = encode_labels(labels, classes)
    event = default_event(classes, np.bincount(y, minlength=2).tolist()) or classes[-1]
    rate = f"class {event[:40]}: {event_shows(labels, event, weight=weight, rows=rows)}"
    if len(classes) > 2:
        rate = f"{len(classes)} classes"
    if proba is None:
        return rate
    try:
        y = encode_labels(labels, names)
    except InputError:  # the names are those of another column
        return rate
    if len(names) > 2:
        right = float(np.average(proba.argmax(axis=1) == y, weights=weight))
        return f"{rate}, {right:.1%} of {rows} predicted right"
    named = names[int(encode_labels(pd.Series([event]), names)[0])]
    return f"class {event[:40]}: {event_shows(labels, named, names, proba, weight, rows)}"


def event_shows(
    labels: pd.Series[Any],
    event: str,
    names: Sequence[str] = (),
    proba: FloatArray | None = None,
    weight: FloatArray | None = None,
    rows: str = "the rows",
) -> str:
    """How often a class is true and, with predictions, what they say of it, in a few words.

    Parameters
    ----------
    labels : Series of n labels
        Without missing values.
    event : str
        One of ``names``, or of the classes of the labels where there are none.
    names, proba, weight, rows
        As for :func:`target_shows`.

    Examples
    --------
    >>> labels = pd.Series(["no", "yes", "no", "yes"])
    >>> event_shows(labels, "no")
    '50.0% of the rows'
    >>> event_shows(labels, "yes", ("no", "yes"), np.array([[0.9, 0.1], [0.2, 0.8]] * 2))
    '50.0% of the rows, mean prediction 45.0%, AUROC 1.000'
    """
    classes = tuple(names) or classes_of(labels)
    at = classes.index(event)
    is_event = encode_labels(labels, classes) == at
    rate = f"{np.average(is_event, weights=weight):.1%} of {rows}"
    if proba is None:
        return rate
    stated = proba[:, at]
    area, _ = rank_area(stated, is_event)
    if weight is not None:
        area = _weighted_area(stated, is_event, weight)
    mean = np.average(stated, weights=weight)
    return f"{rate}, mean prediction {mean:.1%}, AUROC {area:.3f}"


def _weighted_area(score: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> float:
    """Area under the ROC curve of weighted rows; one half where all rows are of one side."""
    _, place = np.unique(score, return_inverse=True)
    hit = np.bincount(place, weights=np.where(positive, weight, 0.0))
    miss = np.bincount(place, weights=np.where(positive, 0.0, weight))
    pairs = hit.sum() * miss.sum()
    return float(hit @ (np.cumsum(miss) - 0.5 * miss) / pairs) if pairs else 0.5
