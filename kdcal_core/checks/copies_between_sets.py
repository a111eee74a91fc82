"""KC201: whether judged rows were seen in training or in calibration."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import Estimate
from kdcal_core.errors import InputError
from kdcal_core.evaluation.overlap import shared
from kdcal_core.review import Limit

_ALONE = "It needs a second table"
_SECOND = "Give the training rows, or a calibration set besides these rows."
_FIVE_ERRORS = 1e-6  # about the p value of matches five standard errors beyond chance


def _needs(evidence: Evidence) -> str | None:
    if evidence.sets is None:
        return f"{_ALONE}. {_SECOND}"
    return None


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return evidence.once("copies", lambda: _parts(evidence))


def _parts(evidence: Evidence) -> list[Part]:
    assert evidence.sets is not None
    tables = {one.kind: one for one in evidence.sets() if one.kind != "foreign"}
    judged = tables.pop(evidence.rows.name)  # type: ignore[call-overload]
    tables.pop("evaluation", None)  # it is judged against others, and they not against it
    if not tables:
        raise InputError(_ALONE, fix=_SECOND)
    parts = []
    for kind, other in tables.items():
        if (found := shared(judged, other)) is None:
            continue
        value, low, high = found.share
        estimate = Estimate(
            name=f"Share of the {judged.title}'s rows that are copies of rows of the {kind} set",
            label="Copies",
            value=value,
            low=low,
            high=high,
            n=found.n,
            interval="five standard errors of the matches that chance gives",
            percent=True,
        )
        parts.append(Part(estimate, f"the {kind} set"))
    return parts


def _by_chance(evidence: Evidence) -> list[float]:
    parts = _measured(evidence, 0.95)
    return [_FIVE_ERRORS if part.estimate.low > 0.0 else 1.0 for part in parts]


Check(
    code="KC201",
    title="Rows in two sets",
    question="Are the judged rows new to the model and to its calibrator?",
    fault="some of these rows are in another set too",
    family="data",
    tasks=("classification", "regression"),
    limit=Limit(against="chance"),
    bounds=(0.0, 1.0),
    percent=True,
    measured=_measured,
    remedy="Take the copies out of the judged rows, and check how the sets were drawn. Results on "
    "rows that were learnt from flatter the model.",
    page="load",
    method="Matching rows beyond those that rows of few distinct values give by chance.",
    by_chance=_by_chance,
    needs=_needs,
    of_tables=True,
    quick=False,
).offer()
