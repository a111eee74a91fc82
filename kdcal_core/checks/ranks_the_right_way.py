"""KC205: whether rows are ranked in the right direction."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import auroc
from kdcal_core.diagnostics.influence import Influence, area_influence
from kdcal_core.diagnostics.summaries import summary_auroc
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    return [
        Part(
            auroc(rows.proba, rows.y, level=level, sample_weight=rows.design, classes=rows.classes)
        )
    ]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_auroc(evidence.scored, level=level))]


def _influence(evidence: Evidence) -> list[Influence]:
    return [area_influence(evidence.scored)]


Check(
    code="KC205",
    title="Ranked the right way round",
    question="Do rows of a class get a higher probability of it than others?",
    fault="it ranks the rows the wrong way round",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.5),
    bounds=(0.0, 1.0),
    lasting=True,
    measured=_measured,
    remedy="No calibrator repairs that. An area below one half usually means that two classes are "
    "exchanged or that the target is another column: check both first.",
    page="load",
    method="The area under the ROC curve, with DeLong's interval on the log-odds.",
    from_summary=Way(_from_summary),
    influence=_influence,
    no_chance="a calibrated model may have any value, and one that puts rows in no order has 0.5, "
    "which can be the lower end",
).offer()
