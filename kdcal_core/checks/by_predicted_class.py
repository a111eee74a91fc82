"""KC005: confidence against accuracy for the rows of every predicted class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data.labels import states_a_risk
from kdcal_core.diagnostics.influence import Influence, class_gap_influences
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.diagnostics.summaries import summary_class_gaps, summary_risk
from kdcal_core.diagnostics.targets import Target, targets
from kdcal_core.review import Limit

_FEWEST = 100
"""Rows in which a stated risk is named; of fewer, an interval seldom fits into the limit."""


def _asked(rows: Sequence[int], risk: str | None) -> Callable[[int], bool]:
    """Which parts are judged, from the rows of each: not a risk that is named in hardly any row."""
    if risk is None or min(rows) >= _FEWEST:
        return lambda at: True
    rarest = rows.index(min(rows))
    return lambda at: at != rarest or len(rows) == 1


def _named(evidence: Evidence) -> tuple[list[Target], Callable[[int], bool]]:
    rows = evidence.scored
    found = [one for one in targets(rows.proba, rows.y, rows.design, "top-label") if len(one.hit)]
    risk = None if evidence.event is None else states_a_risk(rows.proba, rows.y, rows.classes)
    return found, _asked([len(one.hit) for one in found], risk)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    found, asked = _named(evidence)
    names = evidence.scored.classes
    return [
        Part(target_gap(one, level), names[one.label])
        for at, one in enumerate(found)
        if asked(at) and one.label is not None
    ]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    summary = evidence.scored
    found = summary_class_gaps(summary, "top-label", level=level)
    risk = None if evidence.event is None else summary_risk(summary)
    asked = _asked([gap.n for gap in found.values()], risk)
    return [
        Part(gap, summary.classes[label])
        for at, (label, gap) in enumerate(found.items())
        if asked(at)
    ]


def _influence(evidence: Evidence) -> list[Influence]:
    _, asked = _named(evidence)
    found = class_gap_influences(evidence.scored, "top-label")
    return [one for at, one in enumerate(found) if asked(at)]


Check(
    code="KC005",
    title="By predicted class",
    question="Is the confidence right for each class that is predicted, not only on average?",
    fault="it is too sure where it predicts {name}",
    fault_below="it is not sure enough where it predicts {name}",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.05, 0.05),
    bounds=(-1.0, 1.0),
    target=0.0,
    percent=True,
    measured=_measured,
    remedy="Find out where rows of this predicted class are wrong, and recalibrate: "
    "kernel densities and histograms treat each predicted class by itself.",
    page="reliability",
    method="Mean confidence minus accuracy of the rows of each predicted class, with two hits "
    "and two misses added to each interval (Agresti and Coull 1998). Where a model of two classes "
    f"states the risk of a rare event, which it names in fewer than {_FEWEST} rows, only the rows "
    "of the other class are judged.",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
