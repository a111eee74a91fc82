"""KC023: whether predictions lie too low or too high on average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import paired_difference
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    return None if np.ptp(evidence.predicted.y) > 0.0 else "All outcomes are equal."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.predicted
    # in spreads of the outcome, so that one limit suits every unit
    spread = float(np.std(rows.y))
    found = paired_difference(
        rows.distribution.mean() / spread,
        rows.y / spread,
        weight=rows.weight,
        level=level,
        name="Predictive mean minus outcome, in standard deviations of the outcome",
        label="Mean minus outcome",
    )
    return [Part(replace(found, label="Mean minus outcome"))]


Check(
    code="KC023",
    title="Bias",
    question="Are predictions too low or too high on average?",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.1, 0.1),
    measured=_measured,
    remedy="Check units and that these rows are like the training rows. Recalibration moves the "
    "distributions back.",
    page="pit",
    method="The mean error of the predictive means, in standard deviations of the outcome, with "
    "a normal interval.",
    needs=_needs,
).offer()
