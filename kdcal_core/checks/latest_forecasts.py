"""KC026: whether predicted distributions hold for the latest rows as for those before them."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.latest_rows import METHOD, influences, needs_time, part_of, times_of
from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics.influence import Influence
from kdcal_core.diagnostics.latest_rows import LatestRows, latest_rows
from kdcal_core.review import Limit

_LEVEL = 0.8  # of the intervals whose coverage is judged


def _inside(evidence: Evidence) -> tuple[float, FloatArray]:
    """The stated level of the intervals, and whether each outcome lies in its interval, (n,)."""
    rows = evidence.predicted
    (level,) = rows.distribution.stated_intervals((_LEVEL,))
    low, high = rows.distribution.interval(level)
    return level, ((low <= rows.y) & (rows.y <= high)).astype(np.float64)


def _found(evidence: Evidence) -> tuple[list[LatestRows], list[LatestRows]]:
    """The latest rows by the mean PIT value, and by the coverage."""

    def make() -> tuple[list[LatestRows], list[LatestRows]]:
        n, times = evidence.n_rows, times_of(evidence)
        assert times is not None
        weight = check_weight(evidence.rows.weight, n)
        level, inside = _inside(evidence)
        place = latest_rows(evidence.pit, np.full(n, 0.5), np.full(n, 1.0 / 12.0), weight, times)
        stated, own = np.full(n, level), np.full(n, level * (1.0 - level))
        return place, latest_rows(inside, stated, own, weight, times)

    return evidence.once("latest forecasts", make)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    place, held = _found(evidence)
    coverage = f"{100 * _inside(evidence)[0]:g}% interval"
    return [
        *(part_of(evidence, one, level, "Change of the mean PIT") for one in place),
        *(
            part_of(evidence, one, level, f"Change of the coverage of the {coverage}")
            for one in held
        ),
    ]


def _influence(evidence: Evidence) -> list[Influence]:
    place, held = _found(evidence)
    inside = _inside(evidence)[1]
    return [*influences(evidence, evidence.pit, place), *influences(evidence, inside, held)]


Check(
    code="KC026",
    title="Latest forecasts",
    question="Do the predicted distributions hold up to the latest rows?",
    fault="its calibration changes in the latest rows",
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
).offer()
