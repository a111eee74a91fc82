"""Measure what checks judge: each number once, with intervals for every level that may be asked.

Measuring takes long and does not depend on limits; judging takes no time and does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kdcal_core.checks.check import CHECKS, Check, E, Way, check_of
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import NEEDS_ROWS, SummaryEvidence
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.influence import kept_sums, row_groups
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.statistics import GroupSums, RowGroups, normal_quantile

LEVELS = (0.95, 0.99, 0.999, 0.9999)
"""Levels of the intervals that are measured; others follow from them (`MeasuredPart.at`)."""

_LEAST_DRAWS = 9.9  # of those beyond an interval: ten, with room for rounding


@dataclass(frozen=True)
class MeasuredPart:
    """One number of a check, with its interval at several levels.

    Attributes
    ----------
    name : str
        As of `kdcal_core.checks.Part`. Untrusted text.
    estimate : Estimate
        With its interval at the first of `LEVELS`.
    low, high : tuple of float
        The ends of its intervals, one for each of the first of `LEVELS`: fewer than all where
        random draws do not resolve the others.
    p_value : float or None
        Against chance, where the check has a test of it.
    known_as : str or None
        The key of `kdcal_core.checks.Part`.
    sums : GroupSums or None
        The rows' influence on the estimate, summed over groups: with it a difference from another
        model is paired on the same rows (`with_group_sums`).
    """

    name: str
    estimate: Estimate
    low: tuple[float, ...]
    high: tuple[float, ...]
    p_value: float | None = None
    known_as: str | None = None
    sums: GroupSums | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """What distinguishes it from the other parts of its check, the same in every review."""
        return self.estimate.label, self.name if self.known_as is None else self.known_as

    def at(self, level: float) -> Estimate:
        """The estimate with its interval at any level.

        Between the measured levels, and beyond them, the ends are taken to be linear in the
        normal quantile of the level, as those of a normal interval are.

        Examples
        --------
        >>> whole = Estimate("Gap", "Gap", 0.0, -1.96, 1.96, 900)
        >>> ends = (1.96, 2.576, 3.291, 3.891)
        >>> part = MeasuredPart("", whole, tuple(-one for one in ends), ends)
        >>> round(part.at(0.95).high, 2), round(part.at(0.995).high, 2)
        (1.96, 2.81)
        """
        if level == self.estimate.level:
            return self.estimate
        low, high = (_along(ends, level) for ends in (self.low, self.high))
        value = self.estimate.value
        return replace(
            self.estimate, low=float(min(low, value)), high=float(max(high, value)), level=level
        )


def _along(ends: Sequence[float], level: float) -> float:
    known = [normal_quantile(one) for one in LEVELS[: len(ends)]]
    asked = normal_quantile(level)
    at = int(np.clip(np.searchsorted(known, asked), 1, len(known) - 1))
    near, far = ends[at - 1], ends[at]
    if not (np.isfinite(near) and np.isfinite(far)):
        return far
    return near + (asked - known[at - 1]) / (known[at] - known[at - 1]) * (far - near)


@dataclass(frozen=True)
class MeasuredCheck:
    """What a check found, before it is held against a limit.

    Attributes
    ----------
    code : str
    parts : tuple of MeasuredPart
        Empty where the check could not be answered.
    why_not : str
        Why it could not be answered. Untrusted text.
    """

    code: str
    parts: tuple[MeasuredPart, ...] = ()
    why_not: str = ""

    @property
    def check(self) -> Check:
        """The check that was measured."""
        return check_of(self.code)


@dataclass(frozen=True)
class MeasuredChecks:
    """What checks found on the rows of one set."""

    checks: tuple[MeasuredCheck, ...]
    n: int


def measure_checks(
    evidence: Evidence | SummaryEvidence,
    codes: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> MeasuredChecks:
    """Measure checks.

    Parameters
    ----------
    evidence : Evidence or SummaryEvidence
        From a summary, checks that need the rows have no answer.
    codes : sequence of str, optional
        The checks; by default all for the evidence's task.
    progress : callable, optional

    Raises
    ------
    InputError
        For a code that no check has. An error of the data is the reason why a check could not
        be answered.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.data import ScoredSet
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (500, 1))
    >>> rows = ScoredSet(proba, np.tile([0, 0], 500), ("no", "yes"), "", "evaluation")
    >>> (found,) = measure_checks(Evidence(rows), ["KC002"]).checks
    >>> round(found.parts[0].estimate.value, 2)
    0.35
    """
    asked = [one for one in asked_checks(codes) if evidence.task in one.tasks]
    found = []
    for at, check in enumerate(asked):
        if progress is not None:
            progress(at / len(asked), f"Checking: {check.title.lower()}")
        if isinstance(evidence, Evidence):
            found.append(_measured(check, check.from_rows, evidence))
        elif check.from_summary is None:
            found.append(MeasuredCheck(check.code, why_not=NEEDS_ROWS))
        else:
            found.append(_measured(check, check.from_summary, evidence))
    return MeasuredChecks(tuple(found), evidence.n_rows)


def with_group_sums(measured: MeasuredChecks, evidence: Evidence) -> MeasuredChecks:
    """The same checks with what pairs their differences from another model on the same rows.

    Parameters
    ----------
    evidence : Evidence
        The rows, also where a summary of them gave the answers.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.data import ScoredSet
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (500, 1))
    >>> y = np.random.default_rng(0).integers(0, 2, 1000)
    >>> rows = ScoredSet(proba, y, ("no", "yes"), "", "evaluation")
    >>> measured = measure_checks(Evidence(rows), ["KC002"])
    >>> (found,) = with_group_sums(measured, Evidence(rows)).checks
    >>> round(found.parts[0].sums.error, 3)  # of the estimate, from groups of rows
    0.016
    """
    groups = row_groups(evidence.rows, evidence.file)
    if groups is None:
        return measured
    return replace(
        measured, checks=tuple(_with_sums(one, evidence, groups) for one in measured.checks)
    )


def _with_sums(measured: MeasuredCheck, evidence: Evidence, groups: RowGroups) -> MeasuredCheck:
    influence = measured.check.influence
    if influence is None or not measured.parts:
        return measured
    found = influence(evidence)
    sums = [
        kept_sums(groups, part.estimate, one)
        for part, one in zip(measured.parts, found, strict=True)
    ]
    if (of_other := measured.check.other_influence) is not None:
        assert evidence.calibration is not None
        others = row_groups(evidence.calibration)
        more = [
            None if others is None or one is None else others.sums(one)
            for one in of_other(evidence)
        ]
        sums = [
            None if one is None or other is None else one.and_of(other)
            for one, other in zip(sums, more, strict=True)
        ]
    parts = zip(measured.parts, sums, strict=True)
    return replace(measured, parts=tuple(replace(part, sums=one) for part, one in parts))


def asked_checks(codes: Sequence[str] | None) -> list[Check]:
    """The checks of these codes in the order of `CHECKS`; all without codes.

    Raises
    ------
    InputError
        For a code that no check has.
    """
    for code in codes or ():
        if code not in CHECKS:
            raise InputError(
                f"There is no check {code!r}", fix=f"Choose among {', '.join(CHECKS)}."
            )
    return [one for one in CHECKS.values() if codes is None or one.code in codes]


def _measured(check: Check, way: Way[E], evidence: E) -> MeasuredCheck:
    if (why_not := way.needs(evidence)) is not None:
        return MeasuredCheck(check.code, why_not=why_not)
    try:
        at_levels = [tuple(way.measured(evidence, level)) for level in _resolved(check.draws)]
        p_values: Sequence[float | None] = [None] * len(at_levels[0])
        if (by_chance := way.by_chance) is not None:
            p_values = [*by_chance(evidence)]
    except InputError as error:
        return MeasuredCheck(check.code, why_not=str(error))
    parts = tuple(
        MeasuredPart(
            each[0].name,
            each[0].estimate,
            tuple(one.estimate.low for one in each),
            tuple(one.estimate.high for one in each),
            p_value,
            each[0].key,
        )
        for p_value, *each in zip(p_values, *at_levels, strict=True)
    )
    if not parts:
        return MeasuredCheck(check.code, why_not="There is nothing to judge on these rows.")
    return MeasuredCheck(check.code, parts)


def _resolved(draws: int) -> tuple[float, ...]:
    """The levels that so many draws resolve, at least two."""
    held = sum(draws * (1.0 - level) >= _LEAST_DRAWS for level in LEVELS)
    return LEVELS if draws == 0 else LEVELS[: max(held, 2)]
