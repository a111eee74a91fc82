"""KC121: whether the distributions say more than the outcomes' own distribution."""

from __future__ import annotations

import math

from kdcal_core.checks.bias import needs_spread, needs_spread_of_summary
from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics import climatology_crps, ratio_estimate
from kdcal_core.diagnostics.influence import Influence, ratio_influence
from kdcal_core.diagnostics.regression.distribution_scores import CRPS_SKILL
from kdcal_core.diagnostics.summaries import summary_skill
from kdcal_core.distributions import RegressionSet
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.predicted
    trivial, own = _losses(evidence)
    found = ratio_estimate(
        trivial - own,
        trivial,
        weight=rows.design,
        level=level,
        name=CRPS_SKILL[0],
        label=CRPS_SKILL[1],
        lower_is_better=False,
    )
    return [Part(found)]


def _losses(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """CRPS of each row (n,): of the outcomes' own distribution, and of the predicted ones."""
    rows = evidence.predicted
    past = evidence.calibration or rows
    assert isinstance(past, RegressionSet)
    trivial = evidence.once(
        "climatology", lambda: climatology_crps(past.y, rows.y, sample_weight=past.weight)
    )
    own = evidence.once("crps", lambda: rows.distribution.crps(rows.y))
    return trivial, own


def _influence(evidence: Evidence) -> list[Influence]:
    rows, (trivial, own) = evidence.predicted, _losses(evidence)
    weight = check_weight(rows.weight, rows.n_rows)
    return [ratio_influence(trivial - own, trivial, weight)]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_skill(evidence.predicted, evidence.past, level=level))]


Check(
    code="KC121",
    title="Sharper than the trivial forecast",
    question="Do the distributions say more than how outcomes are spread over all rows?",
    fault="it says no more than how outcomes are spread over all rows",
    family="usefulness",
    tasks=("regression",),
    limit=Limit(low=0.0),
    bounds=(-math.inf, 1.0),
    lasting=True,
    measured=_measured,
    remedy="The spread of all outcomes would be as good a forecast. Check that outcome and "
    "predictions belong together. If they do, and this fails after a recalibration too, the model "
    "needs better inputs, more rows or another method.",
    page="pit",
    method="What the CRPS gains over the empirical distribution of the calibration set's "
    "outcomes (without a second set, of these rows' own), over the CRPS of that distribution. "
    "Fieller's interval: both are uncertain, and paired by row.",
    needs=needs_spread,
    influence=_influence,
    from_summary=Way(_from_summary, needs=needs_spread_of_summary),
    no_chance="the trivial rule has the value 0, which can be the lower end",
).offer()
