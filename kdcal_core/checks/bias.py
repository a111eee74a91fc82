"""KC023: whether predictions lie too low or too high on average."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import ratio_estimate
from kdcal_core.review import Limit


def needs_spread(evidence: Evidence) -> str | None:
    """Why nothing can be said in units of the outcome's spread; None where there is any."""
    return None if np.ptp(evidence.predicted.y) > 0.0 else "All outcomes are equal."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.predicted
    # in spreads of the outcome, so that one limit suits every unit
    centred = rows.y - np.average(rows.y, weights=rows.weight)
    variance = float(np.average(np.square(centred), weights=rows.weight))
    # each row's share in the standard deviation, to first order; their mean is that deviation
    spread = 0.5 * (variance + np.square(centred)) / variance**0.5
    found = ratio_estimate(
        rows.distribution.mean() - rows.y,
        spread,
        weight=rows.weight,
        level=level,
        name="Predictive mean minus outcome, in standard deviations of the outcome",
        label="Mean minus outcome",
    )
    return [Part(found)]


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
    method="The mean error of the predictive means over the standard deviation of the outcome, "
    "with Fieller's interval, because both are uncertain.",
    needs=needs_spread,
).offer()
