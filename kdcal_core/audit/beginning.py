"""What was known of an audit's results when their computation began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.events import Happened
from kdcal_core.audit.project import Project
from kdcal_core.audit.record_reading import RecordReader
from kdcal_core.review import Known, Limit, Review, Which, note_results


@dataclass(frozen=True)
class Begun:
    """Which lock an audit has, and what was known of its results.

    A lock that is made while they are computed comes too late, so that all of this is settled when
    the computation begins.

    Attributes
    ----------
    locked : int or None
        Number of the entry that had locked the limits.
    results_known, first_results : str
        As of `AuditDrafted`.
    """

    locked: int | None = None
    results_known: str = ""
    first_results: str = ""


def begin(
    project: Project | None, limits: Mapping[str, Limit], review: Review, which: Which
) -> Begun:
    """What is known now, before results of a review's rows are computed for an audit.

    From here on this machine knows results of these rows.

    Parameters
    ----------
    project : Project or None
        None for an audit that goes into no record.
    limits : mapping of code to Limit
        Of every check that the audit makes.
    """
    lock = None if project is None else project.lock_of(limits)
    known, else_said = since_when(lock, note_results(review), review.sets[which].known_as)
    return Begun(None if lock is None else lock.number, known, else_said)


def since_when(lock: Happened | None, known: Known | None, rows: Sequence[str]) -> tuple[str, str]:
    """Since when results were known to whoever chose the limits, and what else is known of them.

    Parameters
    ----------
    lock : Happened or None
        The entry that locked the limits; None where they are chosen now.
    known : Known or None
        What this machine knows; None where it keeps no list.
    rows : sequence of str
        Digests by which the judged rows are known; the first results of any of them count.

    Returns
    -------
    tuple of str
        The first is empty where no results were known before, the second where they were.

    Examples
    --------
    >>> from kdcal_core.review import FirstResults
    >>> first = FirstResults(1, "2026-11-25T16:20:00.000000Z", "a-server")
    >>> known = Known("one", "2026-11-01T09:00:00.000000Z", rows={"a" * 64: first})
    >>> since_when(None, known, ["a" * 64])[0]
    'since 2026-11-25T16:20:00.000000Z, when kdcal first computed them on this machine (a-server)'
    >>> since_when(None, known, ["b" * 64])[1]
    'none had been computed on this machine since 2026-11-01T09:00:00.000000Z, when its list began'
    """
    if known is None:
        return "", ""
    found = [known.rows[one] for one in rows if one in known.rows]
    first = min(found, key=lambda one: (one.number, one.at), default=None)
    if first is None:
        gone = f", of which it forgot the oldest {known.forgotten:,}" if known.forgotten else ""
        since = f"since {known.since}, when its list began{gone}"
        return "", f"none had been computed on this machine {since}"
    computed = f"kdcal first computed them on this machine ({first.host})"
    if lock is None:
        return f"since {first.at}, when {computed}", ""
    place, by_clock = lock.event.results, first.at > lock.when.at
    if place is None or place.list != known.id:
        later, doubt = by_clock, "; only the clocks say which came first"
    else:
        later = first.number > place.number
        doubt = "" if later == by_clock else "; the clock was set back in between"
    if later:
        return "", f"{computed} at {first.at}, after the lock{doubt}"
    return f"since {first.at}, when {computed}{doubt}", ""


def known_before(
    reader: RecordReader, project: Project, begun: Begun, content: AuditContent
) -> str:
    """Since when the record has results of this model on these rows; empty if it has none.

    The same question under this very lock does not show that its limits came after a result.
    """
    asked = (project.id, begun.locked, content.question_digest)
    same = (content.model_digest, content.rows_digest)
    words = (f'"{what}":"{which}"' for what, which in zip(("model", "rows"), same, strict=True))
    for every in reader.readable(reader.database.holding(*words)):
        for one in every.audits.values():
            facts = one.facts
            if (facts.model, facts.rows) == same and (
                begun.locked is None or (every.id, facts.locked, facts.question) != asked
            ):
                return f"since {one.drafted.when.at}, by an earlier audit"
    return ""
