"""Audits side by side and over time: what changed in model, data, settings and every estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

from kdcal_core.audit.asked import audit_settings, limits_of, subject_of
from kdcal_core.audit.content import AuditContent, Subject
from kdcal_core.audit.project import Audit
from kdcal_core.audit.words import audit_title, short
from kdcal_core.charts import Trend, TrendPoint, changed_words
from kdcal_core.checks import CHECKS, VERDICTS, CheckResult, JudgedPart, Verdict, limit_text
from kdcal_core.data import Roles
from kdcal_core.data.row_sketch import RowOverlap, row_overlap
from kdcal_core.diagnostics import (
    ChangedEstimate,
    Estimate,
    changed_estimate,
    corrected_changes,
    distinct_labels,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, Review
from kdcal_core.statistics import GroupSums, correlation
from kdcal_core.text import figures_text, in_sentence, listed

_ALMOST_ALL = 0.9  # share of rows in common, below which two sets are others
_NAMES_SAID = 4
Facts = tuple[tuple[str, str, str], ...]
"""What differs, with what it was and what it is. Untrusted text."""


@dataclass(frozen=True)
class ChangedVerdict:
    """A check of both audits, or of one of them (then the other verdict is None)."""

    code: str
    before: Verdict | None
    after: Verdict | None


@dataclass(frozen=True)
class ComparedAudits:
    """What changed between two audits.

    Attributes
    ----------
    facts : tuple of (what, before, after)
        Facts about model, data and settings that differ. Untrusted text.
    same_rows : bool
        Whether the judged rows are the same: ``same_file``, or the outcomes and weights are the
        same in one order that is no coincidence.
    verdicts : tuple of ChangedVerdict
        Of every check.
    estimates : tuple of ChangedEstimate
        In the order of the later audit.
    only_before, only_after : tuple of str
        Names of estimates that one audit alone has. Untrusted text.
    same_file : bool
        Whether the judged tables are the same file, by digest.
    overlap : RowOverlap or None
        How many of the later rows the earlier audit judged too; None where the rows are the same.
    paired : bool
        Whether any difference is paired.
    unpaired : tuple of str
        On the same rows, the labels of the estimates whose interval is that of independent rows.
        Untrusted text.
    """

    facts: Facts
    same_rows: bool
    verdicts: tuple[ChangedVerdict, ...]
    estimates: tuple[ChangedEstimate, ...]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    same_file: bool = False
    paired: bool = False
    unpaired: tuple[str, ...] = ()
    overlap: RowOverlap | None = None


def same_question(before: AuditContent, after: AuditContent) -> bool:
    """Whether two audits ask the same: of the same task and classes, about the same event."""
    return _question(before) == _question(after)


def _question(content: AuditContent) -> tuple[object, ...]:
    subject = content.subject
    return subject.task, sorted(subject.classes), subject.event


def compare_audits(before: AuditContent, after: AuditContent) -> ComparedAudits:
    """Compare two audits of the same task.

    As `compare_with_baseline` with one version.

    Raises
    ------
    InputError
        If the audits are of other tasks, classes or events.
    """
    (found,) = compare_with_baseline(before, [after])
    return found


def compare_with_baseline(
    baseline: AuditContent, versions: Sequence[AuditContent]
) -> tuple[ComparedAudits, ...]:
    """Compare each of several audits with one audit of the same task, which is "before" in each.

    An audit holds no rows, but how strongly groups of rows pull at its estimates. So on the same
    rows differences are paired, to first order (`kdcal_core.diagnostics.difference_on_same_rows`):
    intervals are then up to some ten times narrower. Those of other rows are independent, and so
    are, on the same rows, those of estimates that ``unpaired`` names, which are too wide: errors
    whose interval reaches 0, and everything in audits of earlier versions, of summaries of rows and
    of few rows, except shares that are 0 or 1
    (`kdcal_core.diagnostics.between_sets.difference_of_no_share`). What audits of earlier versions
    say of repairs, of the range, of the largest gap and of the stability between sets is not paired
    either. Of the same predictions of one file, and of tables alone, equal estimates differ by
    nothing.
    With several versions, directions allow for the number of all differences together
    (`kdcal_core.diagnostics.corrected_changes`).

    Raises
    ------
    InputError
        If the audits are of other tasks, classes or events.
    """
    for one in versions:
        if not same_question(baseline, one):
            raise InputError(
                "The audits are of other tasks, classes or events",
                fix="Compare audits of the same task and classes, about the same event.",
            )
    found = [_compared(baseline, one) for one in versions]
    if len(found) < 2:
        return tuple(found)
    corrected = corrected_changes([one.estimates for one in found])
    return tuple(
        replace(one, estimates=estimates) for one, estimates in zip(found, corrected, strict=True)
    )


def _compared(before: AuditContent, after: AuditContent) -> ComparedAudits:
    old, new = _named(before), _named(after)
    both = {name: (old[name], one) for name, one in new.items() if name in old}
    same_file = before.judged_file == after.judged_file
    overlap = row_overlap(before.sketch, after.sketch)
    disproved = not overlap.why_not and overlap.high < _ALMOST_ALL
    same_rows = same_file or (_same_rows(before, after) and not disproved)
    pairs = {
        name: (then.sums, now.sums) if same_rows else (None, None)
        for name, (then, now) in both.items()
    }
    changes = (
        changed_estimate(
            *(then.estimate, now.estimate, pairs[name]),
            same_rows=same_rows,
            name=name,
            label=now.label,
        )
        for name, (then, now) in both.items()
    )
    same_said = same_file and _said_by(before) == _said_by(after)
    estimates = tuple(
        _by_nothing(one) if same_said or (same_rows and both[one.name][1].of_tables) else one
        for one in changes
    )
    return ComparedAudits(
        facts=tuple(_facts(before, after)),
        same_rows=same_rows,
        verdicts=tuple(_verdicts(before, after)),
        estimates=estimates,
        only_before=tuple(name for name in old if name not in new),
        only_after=tuple(name for name in new if name not in old),
        same_file=same_file,
        overlap=None if same_rows else overlap,
        paired=same_said or any(correlation(*pair) is not None for pair in pairs.values()),
        unpaired=tuple(
            one.label for one in estimates if same_rows and one.reach > 0.0 and not one.paired
        ),
    )


def _said_by(content: AuditContent) -> tuple[str, str]:
    """What identifies the judged predictions of a file."""
    return content.model_digest, content.rows_digest


def _by_nothing(one: ChangedEstimate) -> ChangedEstimate:
    """Of the same contents of tables, or predictions: equal estimates differ by exactly 0."""
    ends = [(each.value, each.low, each.high) for each in (one.before, one.after)]
    if ends[0] != ends[1]:
        return one
    counted = "counted: a difference of 0 on the same rows"
    return replace(one, difference=replace(one.difference, low=0.0, high=0.0, interval=counted))


def compared_words(found: ComparedAudits, *names: str) -> str:
    """What changed, in a sentence. Untrusted text.

    Parameters
    ----------
    names : str
        None, or what the baseline and the version are called.

    Examples
    --------
    >>> compared_words(ComparedAudits((), True, (), ()))
    'The audits have no estimate in common.'
    """
    return changed_words(found.estimates, "audits", *names)


def overlap_words(found: ComparedAudits) -> str:
    """Of other rows, how many were judged before, in a sentence; else empty.

    Examples
    --------
    >>> some = RowOverlap(0.341, 0.312, 0.371, 1024)
    >>> overlap_words(ComparedAudits((), False, (), (), overlap=some))
    'About 34% of the later rows (31% to 37%) were judged before.'
    >>> overlap_words(ComparedAudits((), False, (), (), overlap=row_overlap(None, None)))
    'How many of them were judged before is not known: an audit has no sketch of its rows.'
    """
    one = found.overlap
    if one is None:
        return ""
    if one.why_not:
        return f"How many of them were judged before is not known: {one.why_not}."
    share, low, high = (_share_text(each) for each in (one.share, one.low, one.high))
    if one.low <= one.chance:
        if one.share == 0.0:
            most = f" (at most {high})" if one.high > 0.0 else ""
            return (
                f"Few or none of the later rows equal, in every column, one that was judged before"
                f"{most}."
            )
        return (
            f"{share} of the later rows ({low} to {high}) equal one that was judged before, and "
            f"chance gives {_share_text(one.chance)}: that is no sign that they are the same."
        )
    if one.low == one.high:
        return f"{share} of the later rows were judged before."
    return f"About {share} of the later rows ({low} to {high}) were judged before."


def _share_text(share: float) -> str:
    """A share in percent, with a decimal below 1% and above 99%.

    Examples
    --------
    >>> [_share_text(one) for one in (0.0, 0.0035, 0.341, 0.9963, 1.0)]
    ['0%', '0.4%', '34%', '99.6%', '100%']
    """
    percent = 100.0 * share
    few = 0.0 < percent < 1.0 or 99.0 < percent < 100.0
    return f"{percent:.{1 if few else 0}f}%"


def paired_words(found: ComparedAudits) -> str:
    """On the same rows, which differences are paired, in a sentence; else empty. Untrusted text.

    Examples
    --------
    >>> paired_words(ComparedAudits((), False, (), ()))
    ''
    """
    if not found.same_rows or not found.estimates:
        return ""
    if not found.paired:
        return (
            "Intervals of differences are those of independent rows, and mostly too wide. Nothing "
            "pairs audits of an earlier version of kdcal, of a summary of rows, of fewer than 160 "
            "rows or of few clusters, nor audits with other weights or clusters."
        )
    if not found.unpaired:
        return "Differences are paired."
    names = listed(dict.fromkeys(found.unpaired), _NAMES_SAID, between=";")
    return (
        f"Differences are paired, except: {names}. The intervals of these are those of "
        "independent rows, which are too wide."
    )


@dataclass(frozen=True)
class SideBySide:
    """Something of a baseline and of every version compared with it.

    Attributes
    ----------
    name : str
        Untrusted text.
    before : object or None
        Of the baseline; None where it has none.
    after : tuple
        Of each version.
    """

    name: str
    before: Any
    after: tuple[Any, ...]


def estimates_beside(found: Sequence[Sequence[ChangedEstimate]]) -> tuple[SideBySide, ...]:
    """Every estimate of a baseline, with its changes in each version; None where it has none."""
    known = [{one.name: one for one in changes} for changes in found]
    return tuple(
        SideBySide(
            name,
            next(one[name].before for one in known if name in one),
            tuple(one.get(name) for one in known),
        )
        for name in dict.fromkeys(name for one in known for name in one)
    )


def facts_beside(found: Sequence[Facts]) -> tuple[SideBySide, ...]:
    """Every fact in which any version differs from a baseline, of all of them."""
    known = [{what: (then, now) for what, then, now in facts} for facts in found]
    beside = []
    for what in dict.fromkeys(what for one in known for what in one):
        before = next(one[what][0] for one in known if what in one)
        after = tuple(one[what][1] if what in one else before for one in known)
        beside.append(SideBySide(what, before, after))
    return tuple(beside)


def verdicts_beside(contents: Sequence[AuditContent]) -> tuple[SideBySide, ...]:
    """The verdict of every check in a baseline and in each version; None without one."""
    each = [{one.code: one.verdict for one in content.checked.results} for content in contents]
    return tuple(
        SideBySide(code, each[0].get(code), tuple(one.get(code) for one in each[1:]))
        for code in dict.fromkeys(code for one in each for code in one)
    )


def trends(audits: Sequence[tuple[Audit, AuditContent]]) -> tuple[Trend, ...]:
    """Every estimate of the last audit over all audits that ask the same.

    Parameters
    ----------
    audits : sequence of (Audit, AuditContent)
        In the order in which they were drafted. Charts in them are not looked at.

    Returns
    -------
    tuple of Trend
        The worst check's first: of those that fail, of those that need more evidence, of those
        that pass; and of its parts the worst first. The estimates that no check judges come last.
    """
    if not audits:
        return ()
    last = audits[-1][1]
    alike = [(audit, one, _named(one)) for audit, one in audits if same_question(one, last)]
    named = _named(last)
    worst = [one for verdict in VERDICTS for one in last.checked.of(verdict)]
    order = {one.code: place for place, one in enumerate(worst)}
    names = sorted(
        named, key=lambda name: (order.get(named[name].code, len(order)), named[name].part)
    )
    return tuple(
        Trend(
            name,
            named[name].label,
            tuple(
                _points([(audit, one, known[name]) for audit, one, known in alike if name in known])
            ),
        )
        for name in names
    )


def _points(found: Sequence[tuple[Audit, AuditContent, _Named]]) -> Iterator[TrendPoint]:
    before: AuditContent | None = None
    for audit, content, one in found:
        subject = content.subject
        judged = next(table for table in subject.tables if table.part == subject.which)
        yield TrendPoint(
            audit.drafted.when.at,
            audit_title(audit),
            one.estimate,
            one.limit,
            one.verdict,
            state=audit.state,
            model=f"{subject.model.name}, {short(subject.model.digest)}"
            if subject.model
            else "predictions alone",
            calibrator=content.judged_calibrator,
            judged=f"{judged.name}, {short(content.judged_file)}",
            joined=before is not None and _same_model(before, content),
        )
        before = content


def _same_model(before: AuditContent, after: AuditContent) -> bool:
    """Whether model and calibrator are the same; of predictions alone the model is not known."""
    if before.subject.model is None and after.subject.model is None:
        return before.judged_calibrator == after.judged_calibrator
    return before.model_digest == after.model_digest


def _same_rows(before: AuditContent, after: AuditContent) -> bool:
    """Whether both judged one file, or the same outcomes and weights in one order."""
    same_file = before.judged_file == after.judged_file
    return same_file or before.rows_known_by == after.rows_known_by != ""


@dataclass(frozen=True)
class _Named:
    """An estimate of an audit, with the check that judges it, if one does."""

    label: str
    estimate: Estimate
    code: str = ""
    part: int = 0
    limit: Limit | None = None
    verdict: Verdict | None = None
    sums: GroupSums | None = None
    of_tables: bool = False


def _named(content: AuditContent) -> dict[str, _Named]:
    """Every estimate once, by what it measures, as the check that judges it has it."""
    labels = distinct_labels(content.estimates)
    found = {
        one.name: _Named(labels[one.name], one, sums=content.sums.get(one.name))
        for one in content.estimates
    }
    sums = {
        (one.code, part.estimate.label, part.name): part.sums
        for one in content.measured.checks
        for part in one.parts
    }
    for result in content.checked.results:
        # what a search found in one audit is no part of another
        if result.code in CHECKS and result.check.comparable:
            for place, part in enumerate(result.parts):
                own = part.own
                judged = _judged(result, place, sums.get((result.code, own.label, part.name)))
                if (twin := _twin(found, part)) is None:
                    name = f"{result.check.title}: {own.label}"
                    found.setdefault(name + f", {part.name}" * bool(part.name), judged)
                elif not found[twin].code:
                    found[twin] = replace(judged, sums=judged.sums or found[twin].sums)
    return found


def _twin(found: Mapping[str, _Named], part: JudgedPart) -> str | None:
    """The name under which the part's estimate is known; it may say more of what was measured."""
    own = part.own
    longer = (
        name
        for name in found
        if name.startswith(own.name) and (not part.name or name.endswith(f": {part.name}"))
    )
    for name in (own.name, *longer):
        if name in found and isclose(found[name].estimate.value, own.value):
            return name
    return None


def _judged(result: CheckResult, place: int, sums: GroupSums | None) -> _Named:
    part = result.parts[place]
    several = part.own.label if len(result.parts) > 1 else ""
    label = f"{result.check.title}: {part.name or several}".removesuffix(": ")
    estimate, target = part.own, result.check.target
    if result.check.of_rows or target is not None:  # more rows are no better model
        estimate = replace(estimate, lower_is_better=None, target=target)
    judged = label, estimate, result.code, place, result.limit, part.verdict, sums
    return _Named(*judged, of_tables=result.check.of_tables)


def _verdicts(before: AuditContent, after: AuditContent) -> Iterator[ChangedVerdict]:
    old, new = ({one.code: one.verdict for one in each.checked.results} for each in (before, after))
    for code in dict.fromkeys((*new, *old)):
        yield ChangedVerdict(code, old.get(code), new.get(code))


def changed_facts(before: Review, after: Review) -> Facts:
    """What differs between two reviews in model, data, settings and limits."""
    return tuple(_differing(*(_facts_of_review(one) for one in (before, after))))


def _facts_of_review(review: Review) -> Mapping[str, str]:
    subject = subject_of(review, audit_settings(review))
    limits = limits_of(review.task, given=review.question.limits)
    return {**_facts_of_subject(subject), **_facts_of_limits(limits)}


def _facts(before: AuditContent, after: AuditContent) -> Iterator[tuple[str, str, str]]:
    return _differing(_facts_of(before), _facts_of(after))


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for what in dict.fromkeys((*old, *new)):
        if old.get(what, "") != new.get(what, ""):
            yield what, old.get(what, "none"), new.get(what, "none")


def _facts_of(content: AuditContent) -> Mapping[str, str]:
    return {
        **_facts_of_subject(content.subject),
        "kdcal": content.code.kdcal,
        "kdcal's own files": content.code.digest[:12],
        "Calibrator": _calibrator_words(content),
        **_facts_of_limits(content.limits),
    }


def _calibrator_words(content: AuditContent) -> str:
    one = content.calibrator
    if one is None:
        return "none"
    return one.title if one.rows else f"{one.title} (chosen; the model is judged without it)"


def _facts_of_subject(subject: Subject) -> dict[str, str]:
    threshold, costs = subject.decision.threshold, subject.decision.costs
    facts = {
        "Model": subject.model.name if subject.model else "predictions alone",
        "Model's digest": subject.model.digest[:12] if subject.model else "none",
        "Judged set": subject.which,
        "Event": subject.event or "confidence in the prediction",
        "Groups": listed(subject.groups) or "none",
        "Threshold": "none" if threshold is None else figures_text(threshold),
        "Costs": listed([f"{case} {figures_text(cost)}" for case, cost in costs.items()]) or "none",
        **_facts_of_roles(subject.roles),
    }
    for table in subject.tables:
        facts[f"{table.part.capitalize()} table"] = (
            f"{table.name} ({table.n_rows:,} rows, {table.digest[:12]})"
        )
    return facts


def _facts_of_roles(roles: Roles) -> dict[str, str]:
    columns = [*roles.outputs, *roles.parameters]
    return {
        "Target": roles.target or "none",
        "Weights": roles.weight or "none",
        "Clusters": roles.cluster or "none",
        "Order in time": roles.time or "none",
        "Columns of predictions": listed([f"{what}: {column}" for what, column in columns])
        or "none",
        "Kind of predictions": roles.family or roles.output_kind,
        "Column of the predicted class": roles.predicted or "none",
        "Inputs": listed(roles.features) or "none",
    }


def _facts_of_limits(limits: Mapping[str, Limit]) -> dict[str, str]:
    facts = {}
    for code, limit in limits.items():
        title = f" ({in_sentence(CHECKS[code].title)})" if code in CHECKS else ""
        facts[f"Limit of {code}{title}"] = limit_text(limit, CHECKS.get(code))
    return facts
