"""Histogram of scores, split by whether the prediction was right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.targets import Kind, targets
from kdcal_core.errors import InputError


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """Counts of scores per bin, split by whether the prediction was right."""

    label: int | None
    edges: FloatArray
    correct: FloatArray
    wrong: FloatArray


def score_histogram(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    label: int | None = None,
    n_bins: int = 50,
    sample_weight: Any = None,
) -> ScoreHistogram:
    """Weight of rows per score bin on [0, 1], right and wrong apart.

    Parameters
    ----------
    proba, y, kind, sample_weight
        As in :func:`kdcal_core.diagnostics.reliability`. With "class", "correct" holds the rows
        of the class and "wrong" the others.
    label : int
        The class; required unless ``kind`` is "confidence".
    n_bins : int

    Raises
    ------
    InputError
        For arrays or settings not of this form.

    Examples
    --------
    >>> result = score_histogram([[0.9, 0.1], [0.2, 0.8]], [0, 0], n_bins=2)
    >>> result.correct.tolist(), result.wrong.tolist()
    ([0.0, 1.0], [0.0, 1.0])
    """
    if kind != "confidence" and label is None:
        raise InputError(f'Kind "{kind}" needs a class', fix="Give label, a class index.")
    (target,) = targets(proba, y, sample_weight, kind, label)
    edges = uniform_edges(n_bins)
    index = bin_index(target.score, edges)
    return ScoreHistogram(
        target.label,
        edges,
        correct=bin_sums(index, n_bins, target.weight * target.hit),
        wrong=bin_sums(index, n_bins, target.weight * (1.0 - target.hit)),
    )
