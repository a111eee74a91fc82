"""KC001: how far stated probabilities lie from what happens, on average."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import confidence_calibration_error, event_calibration_error
from kdcal_core.diagnostics.calibration_test import target_test
from kdcal_core.diagnostics.influence import Influence, error_influence
from kdcal_core.diagnostics.summaries import summary_calibration_error, summary_test
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    target, seed = evidence.target(), evidence.seed
    if evidence.event is not None:
        return [Part(event_calibration_error(target, level, seed))]
    right = target.hit.astype(np.int64)
    found = confidence_calibration_error(
        target.score, right, level=level, seed=seed, sample_weight=target.design
    )
    return [Part(found)]


def _by_chance(evidence: Evidence) -> list[float]:
    return [target_test(evidence.target(), evidence.seed)]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    summary, event, seed = evidence.scored, evidence.event, evidence.seed
    return [Part(summary_calibration_error(summary, event, level=level, seed=seed))]


def _by_chance_from_summary(evidence: SummaryEvidence) -> list[float]:
    return [summary_test(evidence.scored, evidence.event, seed=evidence.seed)]


def _influence(evidence: Evidence) -> list[Influence]:
    return [error_influence([evidence.target()], evidence.n_rows)]


Check(
    code="KC001",
    title="Overall calibration",
    question="Do events happen as often as stated?",
    fault="its probabilities do not match what happens",
    family="calibration",
    tasks=("classification",),
    limit=Limit(high=0.05),
    bounds=(0.0, 1.0),
    measured=_measured,
    remedy="Recalibrate, and audit the calibrated version. The reliability "
    "diagram shows where the curve leaves the diagonal.",
    page="reliability",
    method="The expected calibration error of 15 equal bins; its interval inverts a test, because "
    "the percentiles of resampled errors are no interval. Against "
    "chance: Fan's adaptive Neyman test, with Spiegelhalter's contrast among its shapes.",
    by_chance=_by_chance,
    draws=1_000,
    from_summary=Way(_from_summary, _by_chance_from_summary),
    influence=_influence,
).offer()
