"""KC012: whether calibration holds for the latest rows as for those before them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import FloatArray, check_weight
from kdcal_core.data.column_kinds import simple
from kdcal_core.data.times import dates_of, looks_like_dates, time_words
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.influence import Influence, of_some
from kdcal_core.diagnostics.latest_rows import LatestRows, latest_rows
from kdcal_core.review import Limit
from kdcal_core.statistics import Dependence
from kdcal_core.text import number_text

_WIDTH = 0.1  # means are written with two decimals
INTERVAL = "Student's t, with the variance of the slowest waves of the residuals"
METHOD = (
    "The change of {what} in the last half, quarter, eighth and sixteenth of the rows, where these "
    "are 30 or more. Rows of one time stay together, and near times may be alike: the interval "
    "follows from the slowest waves of their residuals (Lazarus, Lewis, Stock and Watson 2018)."
)


def times_of(evidence: Evidence) -> Dependence | None:
    """The order of the judged rows in time; None without one."""
    found = evidence.rows.dependence
    return found if found is not None and found.kind == "time" else None


def needs_time(evidence: Evidence) -> str | None:
    """Why the latest rows cannot be judged; None where rows have an order in time."""
    return None if times_of(evidence) is not None else "No column has the role Time."


def from_when(evidence: Evidence, found: LatestRows) -> str:
    """From which time on the latest rows are, in words. Untrusted text."""
    times = times_of(evidence)
    assert times is not None
    unit = times.present
    first = int(unit[found.late].min())
    if evidence.times is None:
        return f"from time {first + 1:,} of {int(unit.max()) + 1:,} on"
    column = evidence.once("times", evidence.times).reset_index(drop=True)
    if looks_like_dates(simple(column.name), column):
        dates = dates_of(column)
        column = column if dates.isna().any() else dates
    return f"from {time_words(column[int(np.argmax(unit == first))])[:40]} on"


def part_of(
    evidence: Evidence, found: LatestRows, level: float, label: str, *, says: bool = False
) -> Part:
    """The change with its interval of a level; ``says`` names what is stated too."""
    low, high = found.interval(level)
    estimate = Estimate(
        name=f"{label}: that of the latest rows minus that of the rows before",
        label=label,
        value=found.change,
        low=low,
        high=high,
        n=int(found.late.sum()),
        level=level,
        interval=INTERVAL,
        target=0.0,
    )
    late, before = (number_text(one, _WIDTH) for one in found.seen)
    if says:
        stated, earlier = (number_text(one, _WIDTH) for one in found.stated)
        late, before = f"says {stated}, sees {late}", f"{earlier} and {before}"
    name = f"{from_when(evidence, found)} ({late}; before {before})"
    return Part(estimate, name, f"the last 1/{round(1 / found.share)}")


def influences(evidence: Evidence, gap: FloatArray, found: Sequence[LatestRows]) -> list[Influence]:
    """The rows' influence on each change of the mean of ``gap`` (n,)."""
    weight = check_weight(evidence.rows.weight, evidence.n_rows)
    each: list[Influence] = []
    for one in found:
        late, before = of_some(gap, one.late, weight), of_some(gap, ~one.late, weight)
        each.append(None if late is None or before is None else late - before)
    return each


def _found(evidence: Evidence) -> list[LatestRows]:
    def make() -> list[LatestRows]:
        target, times = evidence.target(), times_of(evidence)
        assert times is not None
        own = target.score * (1.0 - target.score)
        return latest_rows(target.hit, target.score, own, target.weight, times)

    return evidence.once("latest rows", make)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    label = "Change of observed minus stated"
    return [part_of(evidence, one, level, label, says=True) for one in _found(evidence)]


def _influence(evidence: Evidence) -> list[Influence]:
    target = evidence.target()
    return influences(evidence, target.hit - target.score, _found(evidence))


Check(
    code="KC012",
    title="Latest rows",
    question="Does calibration hold up to the latest rows?",
    fault="its calibration changes in the latest rows",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.05, 0.05),
    bounds=(-2.0, 2.0),
    target=0.0,
    measured=_measured,
    remedy="Look on Groups when it began, and find out what changed then: inputs, labels, or the "
    "world. Recalibrate or refit on rows from after it, and watch new rows.",
    page="groups",
    of_time=True,
    method=METHOD.format(what="observed minus stated"),
    needs=needs_time,
    influence=_influence,
).offer()
