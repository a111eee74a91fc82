"""From estimates and limits to verdicts, with one error rate for all checks of a review."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kdcal_core.checks.check import Check, check_of
from kdcal_core.checks.measuring import (
    LEVELS,
    MeasuredCheck,
    MeasuredChecks,
    MeasuredPart,
    asked_checks,
)
from kdcal_core.diagnostics import ANY_PART, Estimate, difference
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import ALL_ROWS
from kdcal_core.review import Limit
from kdcal_core.text import printable

_LONGEST_NAME = 40  # characters of a name in the headline
Verdict = Literal["pass", "fail", "not enough evidence"]
VERDICTS: tuple[Verdict, ...] = ("fail", "not enough evidence", "pass")


@dataclass(frozen=True)
class JudgedPart:
    """One number of a check and what follows from it.

    Attributes
    ----------
    name : str
        As of `Part`. Untrusted text.
    estimate : Estimate
        With its interval at the level of the review's checks, or at the corrected one where the
        part is spared; against a baseline the difference.
    verdict : str
    rows_needed : int or None
        About how many rows would decide, where the evidence is not enough; None where no number
        of rows can be named, because the estimate lies on the limit.
    spared : bool
        Whether the interval is beyond the limit, but not by enough for the number of checks.
    now : Estimate or None
        The estimate on these rows alone, where ``estimate`` is a difference from a baseline.
    """

    name: str
    estimate: Estimate
    verdict: Verdict
    rows_needed: int | None = None
    spared: bool = False
    now: Estimate | None = None

    @property
    def own(self) -> Estimate:
        """The estimate on these rows alone, whatever the limit compares it with."""
        return self.estimate if self.now is None else self.now

    @property
    def is_place(self) -> bool:
        """Whether its name says where its rows are, if its check looks at places."""
        return self.name not in (ALL_ROWS, ANY_PART)


@dataclass(frozen=True)
class CheckResult:
    """The answer to one check.

    Attributes
    ----------
    code : str
    verdict : str or None
        That of the worst part; None where the check could not be answered.
    limit : Limit
    parts : tuple of JudgedPart
        The worst first.
    why_not : str
        Why it could not be answered; empty where it was. Untrusted text.
    """

    code: str
    verdict: Verdict | None
    limit: Limit
    parts: tuple[JudgedPart, ...] = ()
    why_not: str = ""

    @property
    def check(self) -> Check:
        """The check that was answered."""
        return check_of(self.code)

    @property
    def worst(self) -> JudgedPart:
        """The part that decides; there is none where the check could not be answered."""
        return self.parts[0]

    def apart(self, n: int) -> JudgedPart | None:
        """The failed place that differs most from the mean of n rows, if it does beyond chance.

        A repair that treats all rows alike corrects what all places share. The mean is that of the
        places by their rows. A place is part of it, so that the difference has the place's half
        width times ``sqrt(1 - rows / n)``. Where only one place is known, it stands alone.
        """
        places = [one for one in self.parts if one.is_place] if self.check.place else []
        found: list[tuple[float, JudgedPart]] = []
        for part in places:
            own = part.estimate
            alike = [one.estimate for one in places if one.estimate.label == own.label]
            rows = sum(one.n for one in alike)
            mean = sum(one.value * one.n for one in alike) / rows if len(alike) > 1 else 0.0
            chance = 0.5 * (own.high - own.low) * math.sqrt(max(1.0 - own.n / n, 0.0))
            if part.verdict == "fail" and abs(own.value - mean) > chance:
                found.append((abs(own.value - mean), part))
        return max(found, key=lambda one: one[0])[1] if found else None

    @property
    def fault(self) -> str:
        """What a fail says of the model, on the side where the worst part lies. Untrusted text."""
        worst, check = self.worst, self.check
        below = worst.estimate.value < self.limit.low
        words = check.fault_below if below and check.fault_below else check.fault
        if "{name}" not in words:
            return words
        n = sum(one.verdict == "fail" for one in self.parts)
        more = f" (the worst of {n:,} that fail)" if n > 1 else ""
        name, longest = worst.name, _LONGEST_NAME
        if check.of_time:  # "for a group from a time on", without the numbers that follow
            name, longest = name.rpartition(" (")[0], 2 * _LONGEST_NAME + len("for  from  on")
        return words.replace("{name}", printable(name, longest)) + more

    @property
    def remedy(self) -> str:
        """What to do about a fail, on the side where the worst part lies."""
        over = bool(self.parts) and self.worst.own.value > 0.0
        return self.check.above if over and self.check.above else self.check.remedy


@dataclass(frozen=True)
class CheckedReview:
    """All checks of a review, judged together.

    Attributes
    ----------
    results : tuple of CheckResult
        In the order of `CHECKS`.
    level : float
        Of intervals; a calibrated model within all limits fails any check in at most 1 - level
        of all reviews.
    n : int
        Rows that were judged.
    required : tuple of str
        Codes of checks that must be answered: without an answer there is not enough evidence.
    """

    results: tuple[CheckResult, ...]
    level: float
    n: int
    required: tuple[str, ...] = ()

    def of(self, verdict: Verdict | None) -> tuple[CheckResult, ...]:
        """The results with this verdict, in their order."""
        return tuple(one for one in self.results if one.verdict == verdict)

    @property
    def unanswered(self) -> tuple[CheckResult, ...]:
        """The results without an answer that must have one."""
        return tuple(one for one in self.of(None) if one.code in self.required)

    @property
    def verdict(self) -> Verdict:
        """Fail where any check fails; pass where all that could be answered pass.

        Not enough evidence, if none fails, where one that must be answered could not be.
        """
        found = {one.verdict for one in self.results}
        if self.unanswered:
            found.add("not enough evidence")
        return next((one for one in VERDICTS if one in found), "not enough evidence")


def verdict_of(estimate: Estimate, limit: Limit) -> Verdict:
    """Pass where the whole interval is within the limit, fail where it is wholly beyond.

    Examples
    --------
    >>> gap = Estimate("Gap", "Gap", 0.031, 0.01, 0.05, 900)
    >>> [verdict_of(gap, Limit(high=high)) for high in (0.06, 0.04, 0.005)]
    ['pass', 'not enough evidence', 'fail']
    >>> verdict_of(Estimate("Gap", "Gap", 0.3, math.nan, math.nan, 2), Limit(high=0.1))
    'not enough evidence'
    """
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return "not enough evidence"
    if limit.low <= estimate.low and estimate.high <= limit.high:
        return "pass"
    if estimate.high < limit.low or estimate.low > limit.high:
        return "fail"
    return "not enough evidence"


def rows_needed(estimate: Estimate, limit: Limit) -> int | None:
    """About how many rows would bring the interval to one side of the limit.

    Its ends are taken to come closer to the estimate by the root of the number of rows. None
    where the estimate lies on the limit, or has no interval.

    Examples
    --------
    >>> rows_needed(Estimate("Gap", "Gap", 0.03, 0.01, 0.05, 900), Limit(high=0.04))
    3600
    >>> rows_needed(Estimate("Gap", "Gap", 0.04, 0.01, 0.05, 900), Limit(high=0.04)) is None
    True

    Of a share that was never seen, Clopper and Pearson's upper end is known for every n:

    >>> never = Estimate("Lacking", "Lacking", 0, 0, 0.0362, 100, interval="Clopper-Pearson")
    >>> rows_needed(never, Limit(high=0.02))
    190
    """
    value = estimate.value
    never = estimate.low == value == 0.0 and estimate.interval.startswith("Clopper-Pearson")
    if never and limit.low <= 0.0 < limit.high < 1.0:
        # the end is 1 - a^(1/n), and the same a holds with more rows
        return _rounded(estimate.n * math.log1p(-estimate.high) / math.log1p(-limit.high))
    inside = limit.low <= value <= limit.high
    shares = []
    for end, reach in ((limit.low, value - estimate.low), (limit.high, estimate.high - value)):
        if math.isinf(end):
            continue
        away = abs(value - end)
        if not inside:  # what reaches back over the end that was passed
            if (end == limit.low) != (value < limit.low):
                continue
            reach = estimate.high - value if value < limit.low else value - estimate.low
        shares.append(math.inf if away == 0.0 else reach / away)
    largest = max(shares, default=math.inf)
    if not math.isfinite(largest):
        return None
    return _rounded(estimate.n * largest**2)


def rows_for(counted: Estimate, limit: Limit) -> int | None:
    """About how many rows of the same kind would hold as many of those counted as the limit asks.

    None where none was counted.

    Examples
    --------
    >>> rows_for(Estimate("Rows", "Rows", 12.0, 12.0, 12.0, 400), Limit(low=30.0))
    1000
    """
    if counted.value <= 0.0 or math.isinf(limit.low):
        return None
    return _rounded(counted.n * limit.low / counted.value)


def _rounded(rows: float) -> int:
    """Rows with two digits, rounded up."""
    digits = 10 ** max(len(str(int(rows))) - 2, 0)
    return int(math.ceil(round(rows / digits, 6)) * digits)


def judge_checks(
    measured: MeasuredChecks,
    limits: Mapping[str, Limit] | None = None,
    *,
    baseline: MeasuredChecks | None = None,
    level: float = LEVELS[0],
    required: Sequence[str] = (),
) -> CheckedReview:
    """Hold measured checks against their limits, with one error rate for all of them.

    Parameters
    ----------
    measured : MeasuredChecks
    limits : mapping of code to Limit, optional
        In place of the checks' own.
    baseline : MeasuredChecks, optional
        What limits "against the baseline" compare with: the same checks of another review. A
        part that it lacks gets no verdict but "not enough evidence". On the same rows differences
        are paired, where both hold what that takes (`kdcal_core.checks.with_group_sums`).
    level : float
        Of intervals.
    required : sequence of str
        Codes of checks that must be answered, as of `CheckedReview`.

    Raises
    ------
    InputError
        For a code that no check has, a limit against chance where the check has no test of it, or
        a level outside (0, 1). A check that cannot be compared with a baseline has no answer.

    Notes
    -----
    A check passes where the whole interval of each of its parts lies within the limit. So all
    checks pass together by mistake, with one of them beyond its limit in truth, in at most
    1 - level of all reviews (Berger 1982), without a correction.

    Fails are corrected for the number of checks by Holm's method (1979), inside a check with
    several parts by Bonferroni's: in at most 1 - level of all reviews any check fails that
    should not. The interval at the corrected level must lie wholly beyond the limit.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.checks import Evidence, measure_checks
    >>> from kdcal_core.data import ScoredSet
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (500, 1))
    >>> rows = ScoredSet(proba, np.tile([0, 0], 500), ("no", "yes"), "", "evaluation")
    >>> judge_checks(measure_checks(Evidence(rows), ["KC002"])).verdict
    'fail'
    """
    check_level(level)
    limits = limits or {}
    asked_checks(tuple(limits))  # refuses unknown codes
    before = {one.code: one for one in baseline.checks} if baseline is not None else {}
    answers = [
        _Answer(one, limits.get(one.code, one.check.limit), before, level)
        for one in measured.checks
    ]
    _fail([one for one in answers if one.parts], level)
    results = tuple(one.result() for one in answers)
    return CheckedReview(results, level, measured.n, tuple(required))


class _Answer:
    """One check on its way to a verdict."""

    def __init__(
        self,
        measured: MeasuredCheck,
        limit: Limit,
        before: Mapping[str, MeasuredCheck],
        level: float,
    ) -> None:
        self.measured, self.limit = measured, limit
        self.why_not = measured.why_not
        if limit.against != "baseline":  # of which a stored one must not keep a review from opening
            measured.check.limited(limit)
        self._before: dict[tuple[str, str], MeasuredPart] = {}
        if limit.against == "baseline":
            known = before.get(measured.code)
            self._before = {one.key: one for one in known.parts} if known is not None else {}
            self.why_not = self.why_not or self._why_incomparable(known)
        self.parts = [] if self.why_not else [*measured.parts]
        self.estimates = [self._at(one, level) for one in self.parts]
        self.verdicts = [self._verdict(one, level) for one in self.parts]
        self.failed: set[int] = set()
        self.error = 1.0 - level  # at which it did not fail, or did

    def _why_incomparable(self, known: MeasuredCheck | None) -> str:
        """Why nothing can be compared with the baseline; empty where something can."""
        try:
            self.measured.check.limited(self.limit)
        except InputError as error:
            return str(error)
        if known is None or not known.parts:
            return "There is no baseline that answered this check."
        if any(one.key in self._before for one in self.measured.parts):
            return ""
        return "The baseline has none of the parts that this check judges, such as these groups."

    def _at(self, part: MeasuredPart, level: float) -> Estimate:
        now = part.at(level)
        if self.limit.against != "baseline":
            return now
        label, before = f"{now.label} minus the baseline's", self._before.get(part.key)
        if before is None:  # a group or class that only these rows have
            nothing = math.nan
            return replace(
                now, label=label, value=nothing, low=nothing, high=nothing,
                interval="the baseline has no such part",
            )  # fmt: skip
        found = difference(now, before.at(level), part.sums, before.sums)
        return replace(found, label=label)

    def _verdict(self, part: MeasuredPart, level: float) -> Verdict:
        if self.limit.against == "chance":
            beyond = part.p_value is not None and part.p_value <= 1.0 - level
            return "fail" if beyond else "pass"
        found = verdict_of(self._at(part, level), self.limit)
        few = found == "fail" and self.measured.check.of_rows
        return "not enough evidence" if few else found

    @property
    def may_fail(self) -> bool:
        """Whether it fails where it is the only check, and has not failed among all yet."""
        return "fail" in self.verdicts and not self.failed

    def fails_at(self, error: float) -> set[int]:
        """The parts that are beyond the limit at this error probability of the whole check."""
        self.error = error
        level = self._each()
        return {at for at, one in enumerate(self.parts) if self._verdict(one, level) == "fail"}

    def _each(self) -> float:
        """Level of every part's interval at the error probability of the whole check."""
        return 1.0 - self.error / len(self.parts)

    def result(self) -> CheckResult:
        if not self.parts:
            return CheckResult(self.measured.code, None, self.limit, why_not=self.why_not)
        parts = tuple(sorted(map(self._part, range(len(self.parts))), key=self._order))
        return CheckResult(self.measured.code, parts[0].verdict, self.limit, parts)

    def _part(self, at: int) -> JudgedPart:
        estimate, verdict = self.estimates[at], self.verdicts[at]
        spared = verdict == "fail" and at not in self.failed
        if spared and self.limit.against == "chance":
            verdict = "pass"
        elif spared:  # shown with the interval that decided, which reaches the limit
            verdict, estimate = "not enough evidence", self._at(self.parts[at], self._each())
        needed = None
        if verdict == "not enough evidence":
            needed = (rows_for if self.measured.check.of_rows else rows_needed)(
                estimate, self.limit
            )
        part = self.parts[at]
        now = part.at(estimate.level) if self.limit.against == "baseline" else None
        return JudgedPart(part.name, estimate, verdict, needed, spared, now)

    def _order(self, part: JudgedPart) -> tuple[int, float]:
        """The worst verdict first, and of one verdict the one farthest beyond the limit."""
        value = part.estimate.value
        beyond = max(self.limit.low - value, value - self.limit.high)
        return VERDICTS.index(part.verdict), -beyond if math.isfinite(beyond) else 0.0


def _fail(answers: Sequence[_Answer], level: float) -> None:
    """Let those checks fail that do so among all of them: Holm's method, by levels."""
    left = len(answers)
    while True:
        error = (1.0 - level) / max(left, 1)
        found = [one for one in answers if one.may_fail]
        for answer in found:
            answer.failed = answer.fails_at(error)
        failed = sum(bool(one.failed) for one in found)
        if not failed:
            return
        left -= failed
