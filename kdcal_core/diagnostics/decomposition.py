"""The Brier score split into miscalibration, discrimination and uncertainty (CORP)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.smooth import FineCells, fine_cells, isotonic_values
from kdcal_core.diagnostics.targets import (
    Target,
    check_choice,
    check_level,
    confidence_target,
    targets,
)
from kdcal_core.statistics import mean_interval

NULL_DRAWS = 50


def brier_decomposition(
    proba: Any,
    y: Any,
    *,
    of: Literal["top-label", "vector"] = "top-label",
    level: float = 0.95,
    seed: int = 0,
    sample_weight: Any = None,
) -> tuple[Estimate, Estimate, Estimate]:
    """Miscalibration, discrimination and uncertainty: Brier = MCB - DSC + UNC, exactly.

    The CORP split (Dimitriadis, Gneiting and Jordan 2021): with c the isotonic regression of
    the outcomes on the scores and m their mean, MCB = Brier(score) - Brier(c), DSC = Brier(m) -
    Brier(c), UNC = Brier(m). MCB is what calibration can correct; UNC - DSC is the refinement.

    Parameters
    ----------
    proba, y, level, sample_weight
        As in :func:`kdcal_core.diagnostics.reliability`.
    of : {"top-label", "vector"}
        "top-label": is the predicted class right (Salamon et al., Eq. 15). "vector": all of it,
        whose Brier score is the sum over the classes, each split by itself.
    seed : int
        Seed of the 50 draws behind the miscalibration's ``expected``.

    Returns
    -------
    tuple of three Estimate
        Normal intervals of the rows' differences, the isotonic curve held fixed (it minimises
        its own score, so its error is of second order).

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> mcb, dsc, unc = brier_decomposition(proba, [0, 0, 1, 0])
    >>> round(mcb.value - dsc.value + unc.value, 6) == round((0.01 + 0.04 + 0.09 + 0.36) / 4, 6)
    True
    """
    check_choice("of", of, ("top-label", "vector"))
    found = targets(proba, y, sample_weight, "confidence" if of == "top-label" else "class")
    return _decompose(found, of, level, seed)


def confidence_brier_decomposition(
    confidence: Any,
    correct: Any,
    *,
    level: float = 0.95,
    seed: int = 0,
    sample_weight: Any = None,
) -> tuple[Estimate, Estimate, Estimate]:
    """:func:`brier_decomposition` of confidences (n,) and whether each row was right.

    Examples
    --------
    >>> confidence_brier_decomposition([0.5, 0.5], [1, 0])[0].value
    0.0
    """
    found = (confidence_target(confidence, correct, sample_weight),)
    return _decompose(found, "top-label", level, seed)


def _decompose(
    found: tuple[Target, ...], of: str, level: float, seed: int
) -> tuple[Estimate, Estimate, Estimate]:
    check_level(level)
    rng = np.random.default_rng(seed)
    n = len(found[0].score)
    parts = np.zeros((3, n))
    for target in found:
        parts += _row_parts(target)
    floor = sum(_expected_miscalibration(fine_cells(t), rng) for t in found)
    weight = found[0].weight
    noun = "top-label Brier score" if of == "top-label" else "full-vector Brier score"
    miscalibration = _part(parts[0], weight, level, "Miscalibration", noun, True, floor)
    discrimination = _part(parts[1], weight, level, "Discrimination", noun, False, None)
    uncertainty = _part(parts[2], weight, level, "Uncertainty", noun, None, None)
    return miscalibration, discrimination, uncertainty


def _part(
    values: FloatArray,
    weight: FloatArray,
    level: float,
    label: str,
    noun: str,
    lower_is_better: bool | None,
    expected: float | None,
) -> Estimate:
    value, low, high = mean_interval(values, weight, level)
    value = max(value, 0.0)  # below 0 only by a rounding error
    return Estimate(
        name=f"{label} part of the {noun} (CORP)",
        label=f"Top-label {label.lower()}" if noun.startswith("top-label") else label,
        value=value,
        low=min(max(low, 0.0), value),
        high=max(min(high, 2.0), value),
        n=len(values),
        level=level,
        interval="normal, isotonic curve held fixed",
        expected=expected,
        lower_is_better=lower_is_better,
    )


def _row_parts(target: Target) -> FloatArray:
    """Each row's part of MCB, DSC and UNC, (3, n); the isotonic curve is of distinct scores."""
    order = np.argsort(target.score)
    score, hit, weight = target.score[order], target.hit[order], target.weight[order]
    start = np.flatnonzero(np.diff(score, prepend=-1.0) != 0.0)
    mass = np.add.reduceat(weight, start)
    cells = FineCells(score[start], mass, mass, np.add.reduceat(weight * hit, start))
    recalibrated = np.repeat(isotonic_values(cells), np.diff(np.append(start, len(score))))
    best = np.square(recalibrated - hit)
    base = np.square(float(weight @ hit / weight.sum()) - hit)
    parts = np.empty((3, len(score)))
    parts[:, order] = np.square(score - hit) - best, base - best, base
    return parts


def _expected_miscalibration(cells: FineCells, rng: np.random.Generator) -> float:
    """Mean MCB where every score is the true chance: isotonic regression fits noise too."""
    n = np.maximum(np.rint(cells.weight**2 / cells.weight_sq), 1.0)
    chance = np.clip(cells.score, 0.0, 1.0)
    total = 0.0
    for hits in rng.binomial(n.astype(np.int64), chance, size=(NULL_DRAWS, len(n))):
        drawn = FineCells(cells.score, cells.weight, cells.weight_sq, hits / n * cells.weight)
        rate = hits / n
        excess = np.square(chance - rate) - np.square(isotonic_values(drawn) - rate)
        total += float(cells.weight @ excess / cells.weight.sum())
    return total / NULL_DRAWS
