"""KC102: whether the probabilities are worth more than the classes' shares."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import gains_over_shares
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    found = gains_over_shares(evidence.scored, evidence.known, level=level)
    return [Part(*one) for one in zip(found, ("log loss", "brier score"), strict=True)]


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
