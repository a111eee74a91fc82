"""Rows far from the data, on which calibrators are compared too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.foreign_rows import extent, on_spheres
from kdcal_core.errors import InputError
from kdcal_core.review import ReviewData

RADIUS = 5.0
POINTS = 1000
MOST = 10_000


@dataclass(frozen=True, eq=False)
class FarRows:
    """The model's probabilities (m, K) of far rows, their features, and what they are."""

    proba: FloatArray
    X: pd.DataFrame
    words: str


def far_rows(review: ReviewData, seed: int) -> FarRows:
    """The review's foreign rows, at most 10,000; else 1,000 on a sphere about the data.

    The sphere's radius is five times the distance of the farthest row from the centre, every
    column measured in its standard deviation (Dey et al., section 3.1.1).

    Raises
    ------
    InputError
        Where there is no model to ask or no feature that is a number.
    """
    model, reference = review.model, review.inputs.get("calibration")
    if model is None or reference is None or reference.shape[1] == 0:
        raise InputError(
            "Nothing is measured far away: there is no model to ask about rows far from the data",
            fix="Review the model itself and not only its predictions.",
        )
    if review.foreign:
        frame = pd.concat(list(review.foreign.values()), ignore_index=True)
        words = f"{min(len(frame), MOST):,} foreign rows of the review"
        if len(frame) > MOST:
            chosen = np.random.default_rng(seed).choice(len(frame), MOST, replace=False)
            frame = frame.iloc[np.sort(chosen)].reset_index(drop=True)
    else:
        about = review.inputs.get("training", reference)
        frame = on_spheres(about, extent(about), (RADIUS,), POINTS, seed)
        words = (
            f"{POINTS:,} points on a sphere at {RADIUS:g} times the distance of the farthest row, "
            "every column in its standard deviations (not possible rows)"
        )
    return FarRows(model.predict_proba(frame), frame, words)
