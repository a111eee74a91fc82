"""KC102: whether the probabilities are worth more than the classes' shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import FloatArray, ScoredSet
from kdcal_core.evaluation import MEASURES
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    base = np.broadcast_to(_shares(evidence), rows.proba.shape)
    parts = []
    for key in ("log_loss", "brier"):
        measure = MEASURES[key]
        assert measure.paired is not None
        gained = measure.paired(base, rows.proba, rows.y, level=level, sample_weight=rows.weight)
        parts.append(Part(replace(gained, label="Gain"), measure.title.lower()))
    return parts


def _shares(evidence: Evidence) -> FloatArray:
    """Shares of the classes in the calibration set, where the judged rows are others."""
    rows = evidence.calibration or evidence.scored
    assert isinstance(rows, ScoredSet)
    n_classes = len(rows.classes)
    # half a row more in each class, so that a class without rows is not called impossible
    counts = np.bincount(rows.y, weights=rows.weight, minlength=n_classes) + 0.5
    return np.asarray(counts / counts.sum())


Check(
    code="KC102",
    title="Better than the base rate",
    question="Do the probabilities say more than how often each class occurs?",
    family="usefulness",
    tasks=("classification",),
    limit=Limit(low=0.0),
    measured=_measured,
    remedy="Stating the classes' shares for every row would be as good. Check that target and "
    "probabilities belong together; otherwise the model adds nothing.",
    page="reliability",
    method="What log loss and Brier score gain over the classes' shares, paired by row.",
).offer()
