"""KC023: whether predictions lie too low or too high on average."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import check_weight
from kdcal_core.diagnostics import standardised_bias
from kdcal_core.diagnostics.influence import Influence, bias_influence
from kdcal_core.diagnostics.summaries import summary_bias
from kdcal_core.review import Limit


def needs_spread(evidence: Evidence) -> str | None:
    """Why nothing can be said in units of the outcome's spread; None where there is any."""
    return _why_not(float(np.ptp(evidence.predicted.y)))


def needs_spread_of_summary(evidence: SummaryEvidence) -> str | None:
    """As `needs_spread`, of a summary of the rows."""
    return _why_not(float(np.ptp(evidence.predicted.ends)))


def _why_not(spread: float) -> str | None:
    return None if spread > 0.0 else "All outcomes are equal."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.predicted
    found = standardised_bias(rows.distribution.mean(), rows.y, weight=rows.design, level=level)
    return [Part(found)]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_bias(evidence.predicted, level=level))]


def _influence(evidence: Evidence) -> list[Influence]:
    rows = evidence.predicted
    weight = check_weight(rows.weight, rows.n_rows)
    return [bias_influence(rows.distribution.mean(), rows.y, weight)]


Check(
    code="KC023",
    title="Bias",
    question="Are predictions too low or too high on average?",
    fault="its predictions are too high on average",
    fault_below="its predictions are too low on average",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.1, 0.1),
    target=0.0,
    measured=_measured,
    remedy="Check units and that these rows are like the training rows. Recalibration moves the "
    "distributions back.",
    page="pit",
    method="The mean error of the predictive means over the standard deviation of the outcome: "
    "0.1 means that they lie a tenth of it too high. The interval is Fieller's, because both are "
    "uncertain.",
    needs=needs_spread,
    from_summary=Way(_from_summary, needs=needs_spread_of_summary),
    influence=_influence,
).offer()
