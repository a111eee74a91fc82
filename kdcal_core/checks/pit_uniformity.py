"""KC021: whether outcomes fall where the predicted distributions say, over all rows."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import check_weight
from kdcal_core.diagnostics import uniformity_tests, wasserstein
from kdcal_core.diagnostics.influence import Influence, pit_distance_influence
from kdcal_core.diagnostics.summaries import summary_wasserstein
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    weight = evidence.predicted.design
    found = wasserstein(evidence.pit, level=level, seed=evidence.seed, sample_weight=weight)
    return [Part(found)]


def _by_chance(evidence: Evidence) -> list[float]:
    tests = uniformity_tests(evidence.pit, sample_weight=evidence.predicted.design)
    return [one.p_value for one in tests if one.name == "anderson_darling"]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_wasserstein(evidence.predicted, level=level, seed=evidence.seed))]


def _by_chance_from_summary(evidence: SummaryEvidence) -> list[float]:
    return [evidence.predicted.cells.anderson_darling().p_value]


def _influence(evidence: Evidence) -> list[Influence]:
    rows = evidence.predicted
    return [pit_distance_influence(evidence.pit, check_weight(rows.weight, rows.n_rows))]


Check(
    code="KC021",
    title="Distributions, over all rows",
    question="Do outcomes fall where the predicted distributions say?",
    fault="outcomes do not fall where its distributions say",
    family="calibration",
    tasks=("regression",),
    limit=Limit(high=0.05),
    bounds=(0.0, 0.5),
    measured=_measured,
    remedy="Recalibrate the distributions. The PIT histogram shows whether they lie too low, too "
    "high, or are too narrow or too wide.",
    page="pit",
    method="Wasserstein's distance between the PIT values and the uniform distribution. Against "
    "chance: Anderson and Darling's test, which weighs the ends most.",
    by_chance=_by_chance,
    draws=1_000,
    from_summary=Way(_from_summary, by_chance=_by_chance_from_summary),
    influence=_influence,
).offer()
