"""What checks found, in sentences with numbers. Names pass through: callers escape them."""

from __future__ import annotations

import math

from kdcal_core.checks.check import in_form, limit_text
from kdcal_core.checks.verdicts import CheckedReview, CheckResult, JudgedPart
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.text import counted, listed

_MOST = 3  # titles in the headline
LOCAL = ("KC007", "KC008", "KC024", "KC025")
"""Checks of one part of the rows, whose faults a repair of all rows alike leaves as they are."""
_REPAIRS = {"KC103": ("calibrators", "log loss"), "KC123": ("recalibrators", "CRPS")}


def headline(checked: CheckedReview) -> str:
    """The verdict in a sentence that can be repeated.

    Examples
    --------
    >>> headline(CheckedReview((), 0.95, 0))
    'No check could be answered on these rows.'
    """
    answered = [one for one in checked.results if one.verdict is not None]
    if not answered:
        return "No check could be answered on these rows."
    failed, unsure = checked.of("fail"), checked.of("not enough evidence")
    n = len(answered)
    if failed:
        return f"The model fails {len(failed)} of {counted(n, 'check')}: {_titles(failed)}."
    if unsure:
        verb = "needs" if len(unsure) == 1 else "need"
        return (
            f"No check fails, but {len(unsure)} of {counted(n, 'check')} {verb} more evidence: "
            f"{_titles(unsure)}."
        )
    return f"The model passes all {counted(n, 'check')} on {counted(checked.n, 'row')}."


def _titles(results: tuple[CheckResult, ...]) -> str:
    return listed([one.check.title.lower() for one in results], _MOST)


def part_text(result: CheckResult, part: JudgedPart) -> str:
    """A part's estimate with its interval, and the limit that it is held against.

    Examples
    --------
    >>> from kdcal_core.review import Limit
    >>> part = JudgedPart("", Estimate("ECE", "ECE", 0.08, 0.07, 0.09, 900), "fail")
    >>> part_text(CheckResult("KC001", "fail", Limit(high=0.05), (part,)), part)
    'ECE 0.080 (0.070 to 0.090), limit: at most 0.050'
    """
    estimate = part.estimate
    named = f"{estimate.label}, {part.name}," if part.name else estimate.label
    return f"{named} {found_text(estimate)}, limit: {limit_text(result.limit, estimate)}"


def found_text(estimate: Estimate) -> str:
    """An estimate with its interval; a counted number has none.

    Examples
    --------
    >>> found_text(Estimate("Rows", "Rows", 46.0, 46.0, 46.0, 600))
    '46'
    """
    if estimate.low == estimate.high == estimate.value:
        return in_form(estimate, estimate.value)
    return estimate_text(estimate, chance=False)


def place_text(result: CheckResult) -> str:
    """Where a check of parts of the rows fails worst, and that other repairs leave it.

    Examples
    --------
    >>> from kdcal_core.review import Limit
    >>> gap = Estimate("Gap", "Observed minus stated", 0.23, 0.18, 0.28, 386)
    >>> found = CheckResult("KC007", "fail", Limit(), (JudgedPart("region is Coast", gap, "fail"),))
    >>> place_text(found).partition(". ")[0]
    'Most wrong where region is Coast: observed minus stated 0.23 (0.18 to 0.28)'
    """
    worst = result.worst
    where = f"where {worst.name}" if result.code in ("KC007", "KC024") else f"in {worst.name}"
    label = worst.estimate.label
    return (
        f"Most wrong {where}: {label[0].lower()}{label[1:]} {found_text(worst.estimate)}. A "
        "calibrator that treats all rows alike leaves this as it is."
    )


def evidence_text(result: CheckResult, part: JudgedPart) -> str:
    """Why the evidence is not enough, and how many rows would be; empty for other verdicts."""
    if part.verdict != "not enough evidence":
        return ""
    if part.spared:
        return (
            "Its interval is beyond the limit, but this can happen by chance among so "
            "many checks. More rows would decide."
        )
    if part.rows_needed is not None:
        return f"About {counted(part.rows_needed, 'row')} of the same kind would decide."
    estimate, limit = part.estimate, result.limit
    if not math.isfinite(estimate.value):
        return f"It cannot be computed from these rows: {estimate.interval or 'not defined'}."
    if estimate.value in (limit.low, limit.high):
        return "The estimate lies on the limit, so no number of rows can be named."
    return "There are too few rows even to say how many would decide."


def result_text(result: CheckResult) -> str:
    """The answer to a check in a line: its worst part, or why there is no answer."""
    if not result.parts:
        return result.why_not
    more = len(result.parts) - 1
    others = f"; {more:,} more in the details" if more else ""
    return f"{part_text(result, result.worst)}{others}"


def repair_text(checked: CheckedReview) -> str:
    """What the best of the repairs that were tried gains; empty where none was tried.

    Examples
    --------
    >>> from kdcal_core.review import Limit
    >>> gained = Estimate("Gain", "Gain", 0.12, 0.1, 0.14, 900, percent=True)
    >>> best, other = (JudgedPart(name, gained, "fail") for name in ("Beta", "Platt"))
    >>> found = CheckResult("KC103", "fail", Limit(high=0.05), (best, other))
    >>> repair_text(CheckedReview((found,), 0.95, 900))
    'The best of the 2 calibrators tried, Beta, lowers log loss by 12.0% (10.0% to 14.0%).'
    """
    found = next((one for one in checked.results if one.code in _REPAIRS and one.parts), None)
    if found is None:
        return ""
    tried, loss = _REPAIRS[found.code]
    best = max(found.parts, key=lambda part: part.estimate.value)
    gain, n = estimate_text(best.estimate, chance=False), len(found.parts)
    if best.estimate.low > 0.0:
        return f"The best of the {n} {tried} tried, {best.name}, lowers {loss} by {gain}."
    return (
        f"None of the {n} {tried} tried lowers {loss} beyond chance; {best.name} comes closest, "
        f"with {gain}."
    )
