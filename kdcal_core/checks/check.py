"""What a check is: a question, an estimate with its interval, a limit, and words about a fail.

A check offers itself at the end of the module that defines it (`Check.offer`), and with the room
every module of `kdcal_core.checks` is imported. So a new check is one new file. The Overview page,
gates, reports and records read the list `CHECKS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import Task
from kdcal_core.diagnostics import Estimate, value_text
from kdcal_core.diagnostics.influence import Influence
from kdcal_core.errors import InputError
from kdcal_core.offers import offer
from kdcal_core.review import RETIRED, Limit
from kdcal_core.statistics import largest_share
from kdcal_core.text import formatted

Family = Literal["calibration", "usefulness", "data"]

FAMILIES: dict[Family, str] = {
    "calibration": "Calibration",
    "usefulness": "Usefulness",
    "data": "Data",
}


@dataclass(frozen=True)
class Part:
    """One number that a check judges: its only one, or that of one class, group or level.

    ``name`` is empty where there is only one. It may name a class or a column: untrusted text.
    ``key`` is what the part is known by in other reviews, where the data choose the name.
    """

    estimate: Estimate
    name: str = ""
    key: str | None = None


E = TypeVar("E")


def _everywhere(evidence: Any) -> str | None:
    return None


@dataclass(frozen=True)
class Way(Generic[E]):
    """How a check is answered from evidence of one kind: rows, or a summary of them.

    Parameters
    ----------
    measured : callable
        ``(evidence, level) -> parts``, as of `Check`.
    by_chance, needs : callable, optional
        As of `Check`.
    of_groups : bool
        Whether it judges the declared groups, which are counted only where there are any.
    """

    measured: Callable[[E, float], Sequence[Part]]
    by_chance: Callable[[E], Sequence[float]] | None = None
    needs: Callable[[E], str | None] = _everywhere
    of_groups: bool = False


@dataclass(frozen=True)
class Repairs:
    """The repairs that a check tries: what they are called, in the plural, and which loss falls."""

    name: str
    loss: str


@dataclass(frozen=True)
class Check:
    """A question about a model, how it is answered, and what answers are good enough.

    Parameters
    ----------
    code : str
        Stable identifier, "KC" and three digits.
    title : str
        A few words.
    question : str
        What the check answers, for people to whom its title means nothing.
    fault : str
        What a fail says of the model, as the clause after "The model fails 1 check:". ``{name}``
        stands for the name of the worst part.
    family : str
        Of `FAMILIES`: they order the list.
    tasks : tuple of str
        The tasks that it is for.
    limit : Limit
        The default limit.
    measured : callable
        ``(evidence, level) -> parts``: the estimates with intervals of this level. All parts
        have the same limit. No part means that there is nothing to judge.
    remedy : str
        What to do about a fail, in one or two sentences.
    page : str
        Name of the page that shows what the check looked at.
    method : str
        Which estimator or test answers, and why this one, in a sentence.
    by_chance : callable, optional
        ``(evidence) -> p values``, one a part, of the hypothesis that nothing but chance is at
        work, for limits against chance; without it the check has no such limit.
    needs : callable, optional
        ``(evidence) -> why the check cannot be answered``, or None where it can.
    draws : int
        Resamples behind the intervals, 0 where they need none. Levels whose tails hold fewer than
        ten draws follow from those of lower levels (`MeasuredPart.at`).
    of_rows : bool
        Whether the estimates are numbers of rows. Too few of them are a lack of evidence, and no
        fault of the model: then no part fails.
    percent : bool
        Whether the estimates are shown in percent, and so is the limit. Where parts differ, not.
    quick : bool
        Whether the answer takes less than a second for some ten thousand rows.
    place : str
        The word before the name of a part, where parts are places among the rows: "in" a group,
        "where" a rule holds. Such a fault stays if all rows are repaired alike. Else empty.
    repairs : Repairs, optional
        Of a check that tries repairs, whose parts are their gains.
    comparable : bool
        Whether other reviews have the same parts, so that a limit may apply to the difference
        from one. Those of a search do not.
    target : float, optional
        The best value of the estimates, where it is neither the lowest nor the highest. Of two
        audits the one that is nearer to it is better.
    fault_below : str
        The clause where the estimate is below the limit, if that is another fault; else empty.
    bounds : tuple of two float
        The least and the largest value that its estimates can have; infinite where it is not known.
    lasting : bool
        Whether no calibrator repairs a fail, or not for sure; the remedy says what does.
    above : str
        What to do instead where the estimate, a signed difference, is above 0, if that is another
        fault than one below it; else empty.
    from_summary : Way, optional
        How it is answered where only a summary of the rows is held: under the same names, and with
        a test against chance if there is one of rows. Without it there is no answer.
    influence : callable, optional
        ``(evidence) -> influence values`` of the rows (n,) on each part, in the order of the parts:
        with them a difference from another model is paired on the same rows. None of a part that
        has none, and without it none has.
    other_influence : callable, optional
        As ``influence``, of the rows of the calibration set, where they move the parts too.
    of_time : bool
        Whether it compares rows by their time, so that only later rows decide it.
    of_tables : bool
        Whether it looks at the tables alone and at no prediction, so that what it finds on the same
        ones differs by nothing, whatever the model.
    no_chance : str
        Why there is no limit against chance, as the end of a sentence after "because", of a check
        without ``by_chance`` and ``target``.
    """

    code: str
    title: str
    question: str
    fault: str
    family: Family
    tasks: tuple[Task, ...]
    limit: Limit
    measured: Callable[[Evidence, float], Sequence[Part]] = field(repr=False)
    remedy: str
    page: str
    method: str
    by_chance: Callable[[Evidence], Sequence[float]] | None = field(default=None, repr=False)
    needs: Callable[[Evidence], str | None] = field(default=_everywhere, repr=False)
    draws: int = 0
    of_rows: bool = False
    percent: bool = False
    quick: bool = True
    place: str = ""
    repairs: Repairs | None = None
    comparable: bool = True
    target: float | None = None
    fault_below: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)
    lasting: bool = False
    above: str = ""
    from_summary: Way[SummaryEvidence] | None = field(default=None, repr=False)
    influence: Callable[[Evidence], Sequence[Influence]] | None = field(default=None, repr=False)
    other_influence: Callable[[Evidence], Sequence[Influence]] | None = field(
        default=None, repr=False
    )
    of_time: bool = False
    of_tables: bool = False
    no_chance: str = "it says nothing of calibration, so that a calibrated model may have any value"

    @property
    def from_rows(self) -> Way[Evidence]:
        """How it is answered from rows."""
        return Way(self.measured, self.by_chance, self.needs)

    @property
    def key(self) -> str:
        """The code."""
        return self.code

    @property
    def ways(self) -> tuple[str, ...]:
        """What a limit of this check may be against, as `Limit.against` names it."""
        return (
            "value",
            *["chance"] * (self.by_chance is not None),
            *["baseline"] * self.comparable,
        )

    def limited(self, limit: Limit) -> Limit:
        """A limit for this check, after a look whether the check can be held against it.

        Raises
        ------
        InputError
            Against chance, where the check has no test of it, or against a baseline, where no
            other review has its parts.
        """
        if limit.against == "chance" and "chance" not in self.ways:
            raise self._no_chance()
        if limit.against == "baseline" and "baseline" not in self.ways:
            raise InputError(
                f"The check {self.code} ({self.title.lower()}) cannot be compared with another "
                "review, because each finds parts of its own",
                fix="Give it a limit for the estimate itself.",
            )
        return limit

    def _no_chance(self) -> InputError:
        """What a limit against chance would have to be here, and why there is none."""
        why, fix = self.no_chance, "Give it a lower or an upper end."
        if self.target is not None:
            best = formatted(self.target, "g")
            why = (
                f"chance moves its estimate both ways about {best}, its best value, and its "
                "interval shows how far"
            )
            fix = (
                f"Give it a lower or an upper end; with {best} as both it fails where its interval "
                f"does not hold {best}."
            )
        return InputError(
            f"The check {self.code} ({self.title.lower()}) has no limit against chance, because "
            f"{why}",
            fix=fix,
        )

    def chosen(self, limit: Limit) -> Limit:
        """As `limited`, for a limit that is chosen now: its ends lie where estimates can.

        Earlier versions allowed others, and what they stored stays readable.

        Raises
        ------
        InputError
            As `limited`, and for an end beyond the bounds.
        """
        low, high = self.bounds
        ends = [one for one in (limit.low, limit.high) if math.isfinite(one)]
        if limit.against == "value" and any(not low <= one <= high for one in ends):
            raise InputError(
                f"Values of the check {self.code} ({self.title.lower()}) are "
                f"{limit_text(Limit(low, high), self)}, and the limit is {limit_text(limit, self)}",
                fix="Give ends within that range.",
            )
        return self.limited(limit)

    def offer(self) -> None:
        """Put the check into the list.

        Raises
        ------
        ValueError
            The code is of another form, another check has it, or one had it that is retired.
        """
        if not re.fullmatch(r"KC\d{3}", self.code):
            raise ValueError(f"{self.code!r} is not 'KC' and three digits")
        if self.code in RETIRED:
            raise ValueError(f"{self.code} is retired: stored limits for it mean another estimate")
        offer(self, CHECKS, get_args(Family))
        ordered = sorted(
            CHECKS.values(), key=lambda one: (get_args(Family).index(one.family), one.code)
        )
        CHECKS.clear()
        CHECKS.update({one.code: one for one in ordered})


CHECKS: dict[str, Check] = {}
"""Every check by code, in the order in which they are shown: by family, then by code."""


def check_of(code: str) -> Check:
    """The check of this code, which a stored audit or baseline names.

    Raises
    ------
    InputError
        If this version of kdcal has none.
    """
    found = CHECKS.get(code)
    if found is None:
        raise InputError(
            f"This version of kdcal has no check {code[:40]!r}",
            fix="Use the version that wrote the audit.",
        )
    return found


def exact(name: str, label: str, value: float, n: int) -> Part:
    """A number that is counted, so that its interval has no width.

    Examples
    --------
    >>> exact("Rows of the smallest class", "Rows", 12, 900).estimate.high
    12.0
    """
    counted = float(value)
    return Part(Estimate(name, label, counted, counted, counted, n, interval=""))


def largest(name: str, label: str, shares: Sequence[float], n: int, level: float) -> Estimate:
    """The largest of several shares of ``n`` rows, with an interval that allows for the choice.

    Examples
    --------
    >>> found = largest("Share without a value", "Missing", [0.1, 0.3], 200, 0.95)
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.3, 0.23, 0.37)
    """
    value, low, high = largest_share(shares, n, level)
    words = "Clopper-Pearson" + ", corrected for the choice" * (len(shares) > 1)
    return Estimate(name, label, value, low, high, n, level, words, percent=True)


def in_form(estimate: Estimate, value: float) -> str:
    """A number in the form of an estimate: as many decimals as its interval or the number needs.

    Examples
    --------
    >>> rows = exact("Rows of the rarest class", "Rarest class", 46, 600).estimate
    >>> in_form(rows, 30.0)
    '30'
    """
    exact_value = estimate.low == estimate.high == estimate.value
    if exact_value and not estimate.percent:
        return formatted(value, ",.4g" if abs(value) < 1000 else ",.0f")
    return value_text(estimate, value)


def limit_text(limit: Limit, of: Estimate | Check | None = None) -> str:
    """A limit with all its own digits, in percent where the estimate that it is for is.

    Parameters
    ----------
    limit : Limit
    of : Estimate or Check, optional
        What it is for: the check where there is no estimate.

    Examples
    --------
    >>> gap = Estimate("Gap", "Gap", 0.031, 0.01, 0.05, 900, percent=True)
    >>> limit_text(Limit(-0.05, 0.05), gap), limit_text(Limit(high=0.05), gap)
    ('−5% to 5%', 'at most 5%')
    >>> limit_text(Limit(-0.05, 0.05))
    '−0.05 to 0.05'
    >>> limit_text(Limit(against="chance"), gap)
    'no more than chance'
    """
    if limit.against == "chance":
        return "no more than chance"
    percent = of is not None and of.percent
    low, high = (
        formatted(100.0 * end if percent else end, ",.12g") + "%" * percent
        for end in (limit.low, limit.high)
    )
    if math.isinf(limit.low):
        ends = f"at most {high}"
    elif math.isinf(limit.high):
        ends = f"at least {low}"
    else:
        ends = f"{low} to {high}"
    return f"{ends} above the baseline" if limit.against == "baseline" else ends
