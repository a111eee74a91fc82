"""KC026: whether predicted distributions hold for the latest rows as for those before them."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.latest_rows import (
    METHOD,
    Changes,
    needs_time,
    needs_time_of_summary,
    when_of_rows,
    when_of_summary,
    with_clearest_group,
)
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.influence import Influence
from kdcal_core.diagnostics.summaries.regression_summary import BY_TIME, interval_by_time
from kdcal_core.review import Limit

_PLACE, _HELD = "Change of the mean PIT", "Change of the coverage of the {:g}% interval"


def _inside(evidence: Evidence) -> tuple[float, FloatArray]:
    """The stated level of the intervals, and whether each outcome lies in its interval, (n,)."""
    rows = evidence.predicted
    (level,) = rows.distribution.stated_intervals((BY_TIME,))
    low, high = rows.distribution.interval(level)
    return level, ((low <= rows.y) & (rows.y <= high)).astype(np.float64)


def _found(evidence: Evidence) -> tuple[Changes, Changes]:
    """The changes of the mean PIT value, and of the coverage."""

    def make() -> tuple[Changes, Changes]:
        n = evidence.n_rows
        level, inside = _inside(evidence)
        half, own = np.full(n, 0.5), np.full(n, level * (1.0 - level))
        place, held = with_clearest_group(
            Changes.of(evidence, evidence.pit, half, np.full(n, 1.0 / 12.0)),
            Changes.of(evidence, inside, np.full(n, level), own),
        )
        return place, held

    return evidence.once("latest forecasts", make)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    (place, held), when = _found(evidence), when_of_rows(evidence)
    return [
        *place.parts(when, level, _PLACE),
        *held.parts(when, level, _HELD.format(100 * _inside(evidence)[0])),
    ]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    label = _HELD.format(100 * interval_by_time(evidence.predicted.stated))
    place, held = with_clearest_group(*(Changes.of_summary(evidence, one) for one in (0, 1)))
    when = when_of_summary(evidence)
    return [*place.parts(when, level, _PLACE), *held.parts(when, level, label)]


def _influence(evidence: Evidence) -> list[Influence]:
    place, held = _found(evidence)
    level, inside = _inside(evidence)
    return [
        *place.influences(evidence, evidence.pit - 0.5),
        *held.influences(evidence, inside - level),
    ]


Check(
    code="KC026",
    title="Latest forecasts",
    question="Do the predicted distributions hold up to the latest rows?",
    fault="its calibration changes {name}",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.1, 0.1),
    bounds=(-2.0, 2.0),
    target=0.0,
    measured=_measured,
    remedy="Look on Groups when it began, and find out what changed then: inputs, outcomes, or the "
    "world. Recalibrate or refit on rows from after it, and watch new rows.",
    page="groups",
    of_time=True,
    method=METHOD.format(
        what="the mean PIT value, and of the share of outcomes in the central 80% interval,"
    ),
    needs=needs_time,
    influence=_influence,
    from_summary=Way(_from_summary, needs=needs_time_of_summary),
).offer()
