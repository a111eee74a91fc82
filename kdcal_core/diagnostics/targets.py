"""The data of a diagnostic: a score, whether its event happened, and a weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration.base import top_label
from kdcal_core.data import FloatArray, IntArray, check_labels, check_proba, check_weight
from kdcal_core.errors import InputError

Kind = Literal["confidence", "top-label", "class"]
Strategy = Literal["uniform", "quantile"]
Norm = Literal["l1", "l2", "max"]

KINDS: dict[Kind, str] = {
    "confidence": "Confidence",
    "top-label": "Top-label",
    "class": "Classwise",
}


@dataclass(frozen=True, eq=False)
class Target:
    """One binary calibration problem.

    ``score`` (m,) in [0, 1] is the stated probability, ``hit`` (m,) float 0 or 1 says whether
    the event happened, ``weight`` (m,) is positive. ``rows`` (m,) are the rows of the input
    they came from. ``label`` is the class, None for all rows and their top label. ``share`` is
    the target's weight in an error that pools several targets; the shares of the targets of one
    kind sum to one.
    """

    label: int | None
    score: FloatArray
    hit: FloatArray
    weight: FloatArray
    rows: IntArray
    share: float


def targets(
    proba: Any, y: Any, sample_weight: Any, kind: Kind, label: int | None = None
) -> tuple[Target, ...]:
    """The binary problems of ``kind``: one for "confidence", otherwise one for each class.

    "confidence": all rows, top label. "top-label": for each predicted class its rows
    (Salamon et al.). "class": all rows, p_k against whether the class is k. With ``label`` only
    that class's problem.
    """
    proba, y, weight = checked(proba, y, sample_weight)
    check_choice("kind", kind, tuple(KINDS))
    n, n_classes = proba.shape
    labels = _labels(label, kind, n_classes)
    every = np.arange(n)
    if kind == "class":
        share_k = 1.0 / len(labels)
        return tuple(
            Target(k, np.minimum(proba[:, k], 1.0), (y == k).astype(float), weight, every, share_k)
            for k in labels
        )
    predicted, score = top_label(proba)
    hit = (predicted == y).astype(np.float64)
    whole = Target(None, np.minimum(score, 1.0), hit, weight, every, 1.0)
    if kind == "confidence":
        return (whole,)
    rows = [np.flatnonzero(predicted == k) for k in labels]
    mass = np.array([weight[r].sum() for r in rows])
    share = mass / mass.sum() if mass.sum() > 0 else mass
    return tuple(
        Target(k, whole.score[r], hit[r], weight[r], r, float(s))
        for k, r, s in zip(labels, rows, share, strict=True)
    )


def confidence_target(confidence: Any, correct: Any, sample_weight: Any = None) -> Target:
    """The binary problem of calibrated confidences (n,) in [0, 1] and whether each was right.

    Raises
    ------
    InputError
        For a confidence that is missing or outside [0, 1], or lengths that differ; the first
        faulty row is named.
    """
    score = np.asarray(confidence, dtype=np.float64)
    if score.ndim != 1 or len(score) == 0:
        raise InputError(
            f"The confidences must be one column with rows, but have shape {score.shape}",
            fix="Give one confidence for each row.",
        )
    bad = ~((score >= 0.0) & (score <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"A confidence is {score[row]:.6g}",
            fix="Confidences lie between 0 and 1.",
            row=row + 1,
        )
    hit = check_labels(correct, 2, n_rows=len(score)).astype(np.float64)
    weight = check_weight(sample_weight, len(score))
    return Target(None, score, hit, weight, np.arange(len(score)), 1.0)


def checked(proba: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, IntArray, FloatArray]:
    """Probabilities, labels and weights of one length, or an InputError that names the row."""
    proba = check_proba(proba)
    y = check_labels(y, proba.shape[1], n_rows=proba.shape[0])
    return proba, y, check_weight(sample_weight, proba.shape[0])


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a setting that is not one of ``allowed``."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r}", fix=f"Choose one of: {', '.join(allowed)}.")


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}", fix="Choose a number between 0 and 1.")


def check_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number from 0."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}", fix="Choose a whole number from 0.")


def _labels(label: int | None, kind: Kind, n_classes: int) -> list[int]:
    if label is None:
        return list(range(n_classes))
    if kind == "confidence":
        raise InputError(
            'label is given, but kind "confidence" covers all classes at once',
            fix='Leave label out, or choose kind "top-label" or "class".',
        )
    if not 0 <= label < n_classes:
        raise InputError(
            f"label is {label}, but there are {n_classes} classes",
            fix=f"Choose a class index from 0 to {n_classes - 1}.",
        )
    return [int(label)]
