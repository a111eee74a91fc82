"""What checks found, in sentences with numbers. Names pass through: callers escape them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kdcal_core.checks.check import in_form, limit_text
from kdcal_core.checks.verdicts import CheckedReview, CheckResult, JudgedPart
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.review import Limit
from kdcal_core.text import counted, in_sentence, listed, printable

_MOST = 3  # faults or titles in the headline
_NAMED = 1e8  # rows; larger numbers of them say nothing more
_IN_REACH = 20  # times the rows at hand: what more of them would decide is not asked for


def headline(checked: CheckedReview, what: str = "The model") -> str:
    """The verdict in a sentence that can be repeated.

    Parameters
    ----------
    checked : CheckedReview
    what : str
        What was judged, at the beginning of a sentence.

    Examples
    --------
    >>> headline(CheckedReview((), 0.95, 0))
    'No check could be answered on these rows.'
    """
    return " ".join(filter(None, (_found_text(checked, what), _unanswered_text(checked))))


def _found_text(checked: CheckedReview, what: str) -> str:
    """What the answered checks say together."""
    answered = [one for one in checked.results if one.verdict is not None]
    if not answered:
        return "No check could be answered on these rows."
    failed, unsure = checked.of("fail"), checked.of("not enough evidence")
    n = len(answered)
    if failed:
        # groups first: somebody asked about them, and a repair of all rows may leave one wrong
        place = {one.code: one.check.place and one.apart(checked.n) for one in failed}
        shared = [one for one in failed if one.check.place and not place[one.code]]
        own = [one for one in failed if one not in shared] or shared
        ordered = sorted(own, key=lambda one: not (place[one.code] and one.check.place == "in"))
        faults = list(dict.fromkeys(one.fault for one in each_kind_first(ordered)))
        named = ", ".join(faults[:_MOST]) + " and more" if len(faults) > _MOST else listed(faults)
        return f"{what} fails {len(failed)} of {counted(n, 'check')}: {named}."
    if unsure:
        verb = "needs" if len(unsure) == 1 else "need"
        return (
            f"No check fails, but {len(unsure)} of {counted(n, 'check')} {verb} more evidence: "
            f"{_titles(unsure)}."
        )
    if checked.unanswered:
        return f"No check fails of the {n:,} that could be answered."
    return f"{what} passes all {counted(n, 'check')} on {counted(checked.n, 'row')}."


def each_kind_first(failed: Sequence[CheckResult]) -> list[CheckResult]:
    """One check of each kind of fault, and then the others, in the order in which they came.

    A kind is a family of checks. Of each, a fault that no calibrator repairs is taken before
    others. That a repair gains is a fault of calibration.
    """
    first: dict[str, str] = {}
    for one in sorted(failed, key=lambda one: not one.check.lasting):
        first.setdefault("calibration" if one.check.repairs else one.check.family, one.code)
    return sorted(failed, key=lambda one: one.code not in first.values())


def _unanswered_text(checked: CheckedReview) -> str:
    """Which checks must be answered and could not be, and why; empty without any."""
    missing = checked.unanswered
    if not missing:
        return ""
    named = [f"{in_sentence(one.check.title)} ({_reason(one)})" for one in missing]
    verb = "has" if len(missing) == 1 else "have"
    count = counted(len(missing), "check")
    return f"{count} that must be answered {verb} no answer: {listed(named, _MOST)}."


def _reason(result: CheckResult) -> str:
    return in_sentence(result.why_not).rstrip(".")


def _titles(results: tuple[CheckResult, ...]) -> str:
    titles = [in_sentence(one.check.title) for one in results]
    return listed(titles, _MOST, between=";" if any("," in one for one in titles) else ",")


def part_text(result: CheckResult, part: JudgedPart, longest_name: int = 2000) -> str:
    """A part's estimate with its interval, and the limit that it is held against.

    Parameters
    ----------
    result : CheckResult
    part : JudgedPart
    longest_name : int, default=2000
        Characters of the part's name, which is cut if it has more.

    Examples
    --------
    >>> from kdcal_core.review import Limit
    >>> part = JudgedPart("", Estimate("ECE", "ECE", 0.08, 0.07, 0.09, 900), "fail")
    >>> part_text(CheckResult("KC001", "fail", Limit(high=0.05), (part,)), part)
    'ECE 0.080 (0.070 to 0.090), limit: at most 0.05'
    """
    estimate = part.estimate
    name = printable(part.name, longest_name)
    named = f"{estimate.label}, {name}," if name else estimate.label
    found = found_text(estimate, result.limit)
    return f"{named} {found}, limit: {limit_text(result.limit, estimate)}"


def found_text(estimate: Estimate, limit: Limit | None = None) -> str:
    """An estimate with its interval; a counted number has none.

    An end of the interval is written as an end of the ``limit`` only where it is the same number.

    Examples
    --------
    >>> found_text(Estimate("Rows", "Rows", 46.0, 46.0, 46.0, 600))
    '46'
    """
    if estimate.low == estimate.high == estimate.value:
        return in_form(estimate, estimate.value)
    ends = () if limit is None else (limit.low, limit.high)
    return estimate_text(estimate, chance=False, apart_from=ends)


def evidence_text(result: CheckResult, part: JudgedPart) -> str:
    """Why the evidence is not enough, and how many rows would be; empty for other verdicts."""
    if part.verdict != "not enough evidence":
        return ""
    largest = max((one.estimate.n for one in result.parts), default=0)
    here = part.is_place and (result.check.place or (part.name and part.estimate.n < largest))
    kind = f"of this part, which has {part.estimate.n:,}," if here else "of the same kind"
    needed = part.rows_needed or 0
    about = f"About {needed:,}" if needed <= _NAMED else f"More than {_NAMED:,.0f}"
    rows = f"{about} {'row' if needed == 1 else 'rows'} {kind} would decide."
    if part.spared:
        alone = (
            "Judged alone it would fail. Among so many numbers one may lie beyond its limit by "
            "chance, so the interval shown is widened to allow for all of them."
        )
        return f"{alone} {rows}" if part.rows_needed else alone
    if part.rows_needed is not None:
        return rows
    estimate, limit = part.estimate, result.limit
    if not math.isfinite(estimate.value):
        return f"It cannot be computed from these rows: {estimate.interval or 'not defined'}."
    if estimate.value in (limit.low, limit.high):
        return "The estimate lies on the limit, so no number of rows can be named."
    return "There are too few rows even to say how many would decide."


def result_text(result: CheckResult, longest_name: int = 2000) -> str:
    """The answer to a check in a line: its worst part, or why there is no answer.

    Parameters
    ----------
    result : CheckResult
    longest_name : int, default=2000
        As of `part_text`.
    """
    if not result.parts:
        return result.why_not
    more = len(result.parts) - 1
    others = f"; {more:,} more in the details" if more else ""
    return f"{part_text(result, result.worst, longest_name)}{others}"


def next_step(
    checked: CheckedReview,
    *,
    complete: bool = True,
    keep: str = "the model as it is",
    undeclared: Sequence[str] = (),
    questions: Sequence[str] = (),
) -> str:
    """What to do now, and what the best of the repairs that were tried gains.

    A fault of one group or region that the others do not share comes before other fails, because
    a repair of all rows alike does not correct it. A fault that no calibrator repairs is always
    named, and one of the data comes before all: it may be the cause of the others.

    Parameters
    ----------
    checked : CheckedReview
    complete : bool
        Whether every check has been made. Before, rows that may be missing are not asked for.
    keep : str
        What is kept where nothing has to be done.
    undeclared : sequence of str
        Columns by which groups could be declared. They are named where a check of groups has no
        answer.
    questions : sequence of str
        Open questions about the data, as `kdcal_core.review.open_questions` words them. They come
        before all else, because every number may change with the answer.

    Examples
    --------
    >>> next_step(CheckedReview((), 0.95, 900))
    'Nothing. Keep the model as it is, and check again on new rows.'
    >>> next_step(CheckedReview((), 0.95, 900), questions=["is 'a' or 'b' the target?"])
    "Answer the open question: is 'a' or 'b' the target? Keep the model as it is, and check again \
on new rows."
    """
    step = _step(checked, complete, keep, undeclared)
    if not questions:
        return step
    what = "the open question" if len(questions) == 1 else f"{len(questions):,} open questions"
    asked = f"Answer {what}: {' '.join([questions[0], *map(_capital, questions[1:])])}"
    return f"{asked} {step.removeprefix('Nothing. ')}".rstrip()


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _step(checked: CheckedReview, complete: bool, keep: str, undeclared: Sequence[str]) -> str:
    """What to do now with the model."""
    failed, unsure = checked.of("fail"), checked.of("not enough evidence")
    for one in failed:
        if one.check.lasting and one.check.family == "data":
            fault = one.check.fault.removeprefix("it ")
            return f"Begin with the data: the model {fault}. {one.check.remedy}"
    groups = _groups_text(checked, undeclared)
    local = next(((one, part) for one in failed if (part := one.apart(checked.n))), None)
    step = ""
    if local is not None:
        step = f"{_place_text(*local)} {local[0].remedy}"
    elif failed and failed[0].check.place:
        step = _everywhere_text(failed[0])
    elif failed:
        step = failed[0].remedy
    elif complete and unsure:
        of_time = tuple(one for one in unsure if one.check.of_time)
        others = tuple(one for one in unsure if not one.check.of_time)
        rows = _rows_text(others, checked.n) if others else ""
        step = " ".join(filter(None, (_suspect_text(unsure), _later_text(of_time), rows)))
    elif complete and checked.unanswered:
        step = (
            "Give what the checks without an answer need, or take them out of those that must be "
            "answered."
        )
    elif complete and not groups:
        step = f"Nothing. Keep {keep}, and check again on new rows."
    repair = _repair_text(checked)
    if local is not None and repair:
        repair = f"Over all rows, {in_sentence(repair)}"
    return " ".join(filter(None, (step, groups, repair, _lasting_text(failed, step))))


def _lasting_text(failed: Sequence[CheckResult], step: str) -> str:
    """The fault that no calibrator repairs, and what does; empty if the step says it already."""
    lasting = next((one for one in failed if one.check.lasting), None)
    if lasting is None or step == lasting.remedy:
        return ""
    return f"The model has another fault: {lasting.fault}. {lasting.remedy}"


def _groups_text(checked: CheckedReview, undeclared: Sequence[str]) -> str:
    """That no group is judged, and by which columns groups could be; empty without any."""
    asked = any(one.check.place == "in" and one.verdict is None for one in checked.results)
    if not (asked and undeclared):
        return ""
    return (
        f"Declare the groups that matter, for instance by {listed(undeclared, _MOST, last='or')}, "
        "which the model does not read: no group is judged yet."
    )


def _place_text(result: CheckResult, part: JudgedPart) -> str:
    """A place where a check fails unlike elsewhere, and that other repairs leave it."""
    found = f"{in_sentence(part.estimate.label)} {found_text(part.estimate, result.limit)}"
    return (
        f"Most wrong {result.check.place} {part.name}: {found}. "
        "A repair that treats all rows alike leaves this as it is."
    )


def _everywhere_text(result: CheckResult) -> str:
    """A fault that all places share."""
    worst = result.worst
    found = f"{in_sentence(worst.estimate.label)} is {found_text(worst.estimate, result.limit)}"
    where, elsewhere = "over all rows, ", ""
    if worst.is_place:
        where = f"{result.check.place} {worst.name}, "
        elsewhere = ", and elsewhere no different beyond chance"
    what = "group" if result.check.place == "in" else "part of the inputs"
    return (
        f"No {what} stands out: {where}{found}{elsewhere}. Use a repair that treats all rows alike."
    )


def _suspect_text(unsure: tuple[CheckResult, ...]) -> str:
    """The place that may be beyond its limit, by its estimate; empty without one."""
    for one in unsure:
        value = one.worst.estimate.value
        beyond = value < one.limit.low or value > one.limit.high
        if one.check.place and one.worst.is_place and beyond:
            estimate = one.worst.estimate
            found = f"{in_sentence(estimate.label)} {found_text(estimate, one.limit)}"
            return f"Look {one.check.place} {one.worst.name}: {found} may be beyond the limit."
    return ""


def _later_text(of_time: tuple[CheckResult, ...]) -> str:
    """What to do where only later rows decide whether the latest ones are within a limit."""
    if not of_time:
        return ""
    moved = next(
        (
            part
            for one in of_time
            for part in one.parts
            if part.estimate.low > 0.0 or part.estimate.high < 0.0
        ),
        None,
    )
    if moved is None:
        return "Check again once there are later rows."
    return (
        f"The latest rows differ from those before beyond chance, {moved.name}; whether by more "
        "than the limit, later rows will show. Look on Groups when it began."
    )


def _rows_text(unsure: tuple[CheckResult, ...], n: int) -> str:
    """How many rows would decide, without those checks that as good as never will."""
    total = {
        one.check.title: one.worst.rows_needed * _times(one.worst, n)
        for one in unsure
        if one.worst.rows_needed is not None
    }
    near = [rows for rows in total.values() if rows <= _IN_REACH * n]
    most = max(near or total.values(), default=None)
    if most is not None and most > _NAMED:
        what = listed([in_sentence(title) for title in total], _MOST)
        return (
            f"More rows are no help: to decide {what} would take more than {_rows(_NAMED)}, "
            "because the estimate lies too close to its limit."
        )
    rows = "more held-out rows" if most is None else f"about {_rows(most)}"
    step = f"Collect {rows} of the same kind, and check again."
    far = [title for title, rows in total.items() if near and rows > _IN_REACH * n]
    if far:
        least = min(total[title] for title in far)
        rows = f"{_rows(least)} or more" if least <= _NAMED else f"more than {_rows(_NAMED)}"
        step += (
            f" To decide {listed([in_sentence(title) for title in far], _MOST)} would take "
            f"{rows}: the estimate lies too close to its limit."
        )
    return step


def _times(part: JudgedPart, n: int) -> float:
    """How many rows there are for one of the part; 1 for a part that is no share of them."""
    of_part = part.estimate.n
    return n / of_part if part.name and 0 < of_part < n else 1.0


def _rows(number: float) -> str:
    """A number of rows with two digits."""
    whole = round(number)
    return counted(round(whole, 2 - len(str(whole))), "held-out row")


def _repair_text(checked: CheckedReview) -> str:
    """What the best of the repairs that were tried gains; empty where none was tried."""
    found = next((one for one in checked.results if one.check.repairs and one.parts), None)
    if found is None or found.check.repairs is None:
        return ""
    name, loss = found.check.repairs.name, found.check.repairs.loss
    best = max(found.parts, key=lambda part: part.own.value)
    gain, n = estimate_text(best.own, chance=False), len(found.parts)
    if best.own.low > 0.0:
        return f"The best of the {n} {name} tried, {best.name}, lowers {loss} by {gain}."
    return (
        f"None of the {n} {name} tried lowers {loss} beyond chance; {best.name} comes closest, "
        f"with {gain}."
    )
