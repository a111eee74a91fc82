"""KC207: whether stated probabilities differ between rows."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import Estimate
from kdcal_core.review import Limit
from kdcal_core.statistics import quantile_interval

_ENDS = (0.01, 0.99)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    score = evidence.target().score
    # the two intervals share the error
    (least, low), (high, most) = (quantile_interval(score, end, 0.5 + 0.5 * level) for end in _ENDS)
    range_ = float(np.ptp(np.quantile(score, _ENDS)))
    found = Estimate(
        name="99% quantile minus 1% quantile of the stated probabilities",
        label="Range",
        value=range_,
        low=min(max(high - low, 0.0), range_),
        high=max(min(most, 1.0) - max(least, 0.0), range_),
        n=len(score),
        level=level,
        interval="order statistics of both quantiles",
        lower_is_better=None,
    )
    return [Part(found)]


Check(
    code="KC207",
    title="Range of the probabilities",
    question="Do stated probabilities differ from row to row?",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.05),
    measured=_measured,
    remedy="The model says nearly the same of every row. Check that the columns hold its "
    "probabilities and that its inputs vary.",
    page="reliability",
    method="The distance of the 1% and the 99% quantile of what is stated, with an interval from "
    "order statistics.",
).offer()
