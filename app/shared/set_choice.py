"""The choice of the set that a page shows."""

from __future__ import annotations

from app.shared.one_of import one_of
from kdcal_core.review import Review, Which

_SETS: dict[Which, str] = {"calibration": "Calibration set", "evaluation": "Evaluation set"}


def choose_set(review: Review, page: str) -> Which:
    """The chosen set; the calibration set if there is no other.

    Each page keeps its own choice.
    """
    if not review.has_evaluation:
        return "calibration"
    return one_of(
        "Rows",
        _SETS,
        "evaluation",
        key=f"{page}_set",
        label_visibility="collapsed",
        help="Both are held-out rows. Calibrators are fitted on the calibration set.",
    )
