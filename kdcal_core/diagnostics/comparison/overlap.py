"""Rows that the evaluation set shares with the calibration set."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from kdcal_core.data.equal_rows import EqualRows, are_fine, equal_rows, row_keys
from kdcal_core.review import ReviewData

_HARM = "what is judged there flatters every calibrator that was fitted on them"


def overlap(review: ReviewData) -> EqualRows | None:
    """Rows of the evaluation set that lie in the calibration set; None without one.

    Equal are rows with the same features and class, as :func:`kdcal_core.data.equal_rows
    .equal_rows` counts them; without features, with the same probabilities and class. Where
    features number the rows, so that none match, probabilities may tell, and ``rows`` is 0 unless
    more of them match than by chance.
    """
    evaluation = review.evaluation
    if evaluation is None:
        return None
    sets = review.calibration, evaluation
    frames = [review.inputs.get(name) for name in ("calibration", "evaluation")]
    featured = all(frame is not None and frame.shape[1] > 0 for frame in frames)
    if featured:
        keys = [row_keys(f, rows.y) for f, rows in zip(frames, sets, strict=True) if f is not None]
        found = equal_rows(keys[0], keys[1], fine=are_fine(*frames))
        if found.rows:
            return found
    keys = [row_keys(pd.DataFrame(rows.proba), rows.y) for rows in sets]
    alike = replace(equal_rows(keys[0], keys[1], unseen=1.0), by="probabilities")
    return replace(alike, rows=0) if featured and not alike.beyond_chance else alike


def overlap_words(found: EqualRows) -> str | None:
    """What is to be said of them; None where no rows are equal."""
    return found.words("evaluation set", "calibration set", _HARM)
