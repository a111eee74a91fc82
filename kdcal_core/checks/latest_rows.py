"""KC012: whether calibration holds for the latest rows as for those before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.checks.by_group import declared_groups
from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.data.column_kinds import simple
from kdcal_core.data.times import dates_of, looks_like_dates, time_words
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.influence import Influence, of_some
from kdcal_core.diagnostics.latest_rows import (
    GroupOfTimes,
    LatestOfGroup,
    LatestRows,
    TimeSums,
    changed_groups,
    changes_of_groups,
    latest_of_times,
    latest_rows,
)
from kdcal_core.review import Limit
from kdcal_core.statistics import Dependence
from kdcal_core.text import number_text

_WIDTH = 0.1  # means are written with two decimals
_LABEL = "Change of observed minus stated"
INTERVAL = "Student's t, with the variance of the slowest waves of the residuals"
METHOD = (
    "The change of {what} in the last half, quarter, eighth and sixteenth of the rows, where these "
    "are 30 or more. Rows of one time stay together, and near times may be alike: the interval "
    "follows from the slowest waves of their residuals (Lazarus, Lewis, Stock and Watson 2018). Of "
    "the same changes in declared groups, the clearest is judged if it differs from 0 and from the "
    "change of all rows at that time; its interval is corrected for all changes. Groups of fewer "
    "than 8 times or with fewer than 30 rows in their last half are not judged."
)
_LONGEST_GROUP = 40  # characters
_NO_TIME = "No column has the role Time."
_SHOWN = 0.99  # level at which the change of a group is beyond chance


def times_of(evidence: Evidence) -> Dependence | None:
    """The order of the judged rows in time; None without one."""
    found = evidence.rows.dependence
    return found if found is not None and found.kind == "time" else None


def needs_time(evidence: Evidence) -> str | None:
    """Why the latest rows cannot be judged; None where rows have an order in time."""
    return None if times_of(evidence) is not None else _NO_TIME


def needs_time_of_summary(evidence: SummaryEvidence) -> str | None:
    """As `needs_time`."""
    return None if evidence.summary.by_time is not None else _NO_TIME


def from_when(column: pd.Series[Any], first: int) -> str:
    """In words: from the time in a row of a column of times on. Untrusted text."""
    if looks_like_dates(simple(column.name), column):
        dates = dates_of(column)
        column = column if dates.isna().any() else dates
    return f"from {time_words(column[first])[:40]} on"


def _from_when(evidence: Evidence, unit: IntArray, first: int) -> str:
    """The same of a time (n,), counted from 0."""
    if evidence.times is None:
        return f"from time {first + 1:,} of {int(unit.max()) + 1:,} on"
    column = evidence.once("times", evidence.times).reset_index(drop=True)
    return from_when(column, int(np.argmax(unit == first)))


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of one mean: those of all rows, and those of the declared groups.

    ``looked_at`` is the number of all changes among which those that are judged were chosen.
    """

    whole: list[LatestRows]
    groups: list[LatestOfGroup]
    looked_at: int = 0

    @classmethod
    def of(
        cls, evidence: Evidence, seen: FloatArray, stated: FloatArray, own: FloatArray
    ) -> Changes:
        """Those of observed minus stated, as of `kdcal_core.diagnostics.latest_rows`."""
        times, weight = times_of(evidence), check_weight(evidence.rows.weight, evidence.n_rows)
        assert times is not None
        values = (seen, stated, own, weight, times)
        groups = [] if evidence.groups is None else declared_groups(evidence)
        return cls(latest_rows(*values), changed_groups(*values, groups))

    @classmethod
    def of_summary(cls, evidence: SummaryEvidence, question: int) -> Changes:
        """Those of one of the questions that a summary counts by time."""
        times = evidence.summary.by_time
        assert times is not None
        every = times.sums_of(question)
        return cls(latest_of_times(every), _changed_groups(evidence, every, question))

    def parts(
        self, when: Callable[[int], str], level: float, label: str, *, says: bool = False
    ) -> list[Part]:
        """The changes with intervals of a level; ``says`` names what is stated too.

        ``when`` gives the words of `from_when` for a time, counted from 0.
        """
        found = [part_of(one, when(one.start), level, label, says) for one in self.whole]
        for each in self.groups:
            part = part_of(each.latest, when(each.start), level, label, says)
            low, high = each.interval(level)
            corrected = f"corrected, with the check's parts, for {self.looked_at:,} changes"
            interval = f"{INTERVAL}, {corrected}"
            estimate = replace(part.estimate, low=low, high=high, interval=interval)
            name = f"for {each.name[:_LONGEST_GROUP]} {part.name}"
            found.append(Part(estimate, name, f"{part.key} of {each.name}"))
        return found

    def influences(self, evidence: Evidence, gap: FloatArray) -> list[Influence]:
        """The rows' influence on each change of observed minus stated, ``gap`` (n,)."""
        weight = check_weight(evidence.rows.weight, evidence.n_rows)
        times = times_of(evidence)
        assert times is not None
        unit = times.present
        sides = [(unit >= one.start, unit < one.start) for one in self.whole]
        for group in self.groups:
            rows = declared_groups(evidence)[group.division][0] == group.group
            sides.append((rows & (unit >= group.start), rows & (unit < group.start)))
        each: list[Influence] = []
        for one, other in sides:
            late, before = of_some(gap, one, weight), of_some(gap, other, weight)
            each.append(None if late is None or before is None else late - before)
        return each


def with_clearest_group(*found: Changes) -> list[Changes]:
    """The same changes of all rows, and of all those of groups the clearest, or none.

    It is kept only if an interval corrected for all groups by all means holds neither 0 nor the
    change of all rows: else groups of few rows would keep a sound model from passing. It is judged
    as one of all changes looked at. A sound model fails by a group in at most 1 of 100 reviews, as
    far as intervals hold their level.
    """
    groups = sum(len(some.groups) for some in found)
    whole = sum(len(some.whole) for some in found)
    clearest = max(
        (replace(one, looks=groups) for some in found for one in some.groups),
        key=lambda one: one.beyond(_SHOWN),
        default=None,
    )
    if clearest is None or clearest.beyond(_SHOWN) <= 1.0:
        return [replace(some, groups=[]) for some in found]
    # the check corrects for its parts, and both together for every change
    kept = replace(clearest, looks=(whole + groups) / (whole + 1))
    return [
        replace(
            some,
            groups=[kept for one in some.groups if one.latest is kept.latest],
            looked_at=whole + groups,
        )
        for some in found
    ]


def part_of(one: LatestRows, when: str, level: float, label: str, says: bool = False) -> Part:
    """A change with the interval of a level; ``when`` are the words of `from_when`."""
    low, high = one.interval(level)
    estimate = Estimate(
        name=f"{label}: that of the latest rows minus that of the rows before",
        label=label,
        value=one.change,
        low=low,
        high=high,
        n=one.n,
        level=level,
        interval=INTERVAL,
        target=0.0,
    )
    late, before = (number_text(mean, _WIDTH) for mean in one.seen)
    if says:
        stated, earlier = (number_text(mean, _WIDTH) for mean in one.stated)
        late, before = f"says {stated}, sees {late}", f"{earlier} and {before}"
    return Part(estimate, f"{when} ({late}; before {before})", f"the last 1/{round(1 / one.share)}")


def _changed_groups(
    evidence: SummaryEvidence, every: TimeSums, question: int
) -> list[LatestOfGroup]:
    """The changes of declared groups; none where their times are too many to count."""
    groups = evidence.summary.groups
    by_time = None if groups is None else groups.by_time
    if groups is None or by_time is None:
        return []

    def found() -> Iterator[GroupOfTimes]:
        for division, (labels, names) in enumerate(groups.divisions()):
            for group, name in enumerate(names):
                table = by_time.of_group(labels == group)
                if table is not None:
                    places = table.times.astype(np.int64)
                    yield name, division, group, places, table.sums_of(question)

    return changes_of_groups(every, found())


def when_of_rows(evidence: Evidence) -> Callable[[int], str]:
    """In words, from which time on."""
    times = times_of(evidence)
    assert times is not None
    return partial(_from_when, evidence, times.present)


def when_of_summary(evidence: SummaryEvidence) -> Callable[[int], str]:
    """As `when_of_rows`."""
    times = evidence.summary.by_time
    assert times is not None
    return partial(from_when, times.column_of_times)


def _found(evidence: Evidence) -> Changes:
    def make() -> Changes:
        target = evidence.target()
        own = target.score * (1.0 - target.score)
        (found,) = with_clearest_group(Changes.of(evidence, target.hit, target.score, own))
        return found

    return evidence.once("latest rows", make)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return _found(evidence).parts(when_of_rows(evidence), level, _LABEL, says=True)


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    (found,) = with_clearest_group(Changes.of_summary(evidence, 0))
    return found.parts(when_of_summary(evidence), level, _LABEL, says=True)


def _influence(evidence: Evidence) -> list[Influence]:
    target = evidence.target()
    return _found(evidence).influences(evidence, target.hit - target.score)


Check(
    code="KC012",
    title="Latest rows",
    question="Does calibration hold up to the latest rows?",
    fault="its calibration changes {name}",
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
    from_summary=Way(_from_summary, needs=needs_time_of_summary),
).offer()
