"""What an audit found: everything that was computed, and nothing about who or when.

The same review, limits and seed give the same bytes, whatever the machine's number of cores. Who
drafted it, when, and what became of it is in the record (`kdcal_core.audit.record`). It holds no
rows, only aggregates, and, where a record's key is given, keyed hashes of at most 1,024 rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import kdcal_core
from kdcal_core.audit.signing import canonical, digest
from kdcal_core.checks import (
    CHECKS,
    LEVELS,
    CheckedReview,
    MeasuredChecks,
    evidence_text,
    result_text,
)
from kdcal_core.data import Roles, Task
from kdcal_core.data.row_sketch import RowSketch
from kdcal_core.diagnostics import Estimate
from kdcal_core.errors import InputError, NewerVersionError
from kdcal_core.review import Decision, Limit, Which
from kdcal_core.statistics import GroupSums
from kdcal_core.store import decode, encode
from kdcal_core.text import listed, printable

FORMAT = 1
"""Increased when a field is renamed, removed or changes its meaning."""
_FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What values that do not fit each other lead to."""


@dataclass(frozen=True)
class ModelFacts:
    """The model that was audited. Its name is untrusted text.

    Attributes
    ----------
    name, kind : str
    digest : str
        SHA-256 of its file.
    signature : str
        What is known of a signature beside the model, in words; empty without one.
    """

    name: str
    kind: str
    digest: str
    signature: str = ""


@dataclass(frozen=True)
class TableFacts:
    """A table of the review, without its rows. Names are untrusted text.

    Attributes
    ----------
    part : str
        "calibration", "evaluation", "training" or "foreign".
    name : str
        Of its file.
    digest : str
        SHA-256 of the file as it was loaded.
    n_rows : int
    columns : tuple of str
    scored : str
        Digest of what was judged (predictions, outcomes, weights); empty for other tables.
    files : int
        Number of files of a folder, of whose rows a summary was judged; its digest is that of
        their list (`kdcal_core.data.parquet_folder.digest_of_files`). 0 for one file.
    listed : tuple of str
        Where a list of files or a pattern was judged, their paths, or the pattern, from the
        folder that holds them all.
    """

    part: str
    name: str
    digest: str
    n_rows: int
    columns: tuple[str, ...]
    scored: str = ""
    files: int = 0
    listed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """What was audited.

    Attributes
    ----------
    task : str
    model : ModelFacts or None
        None for a table of predictions.
    tables : tuple of TableFacts
    roles : Roles
    classes : tuple of str
        Untrusted text.
    event : str or None
        The class whose probability is judged; None for the confidence in the prediction.
    groups : tuple of str
        Columns of the declared groups.
    which : str
        The set that was judged.
    decision : Decision
        From which probability of the event rows are flagged, and what that costs.
    doubts : tuple of str
        Open questions about the data. Untrusted text.
    """

    task: Task
    model: ModelFacts | None
    tables: tuple[TableFacts, ...]
    roles: Roles
    classes: tuple[str, ...]
    event: str | None
    groups: tuple[str, ...]
    which: Which
    doubts: tuple[str, ...] = ()
    decision: Decision = field(default_factory=Decision)


@dataclass(frozen=True)
class Code:
    """What computed it.

    Attributes
    ----------
    kdcal : str
        Version.
    digest : str
        SHA-256 over the names and contents of kdcal's own files.
    python : str
    packages : dict of name to version
    """

    kdcal: str
    digest: str
    python: str
    packages: dict[str, str]


@dataclass(frozen=True)
class Baseline:
    """The audit or review that limits compared with.

    Attributes
    ----------
    name : str
        Untrusted text.
    digest : str
        SHA-256 of its content, or of what identifies its rows.
    measured : MeasuredChecks
    """

    name: str
    digest: str
    measured: MeasuredChecks

    @property
    def without_sums(self) -> Baseline:
        """The same without what pairs it: once the verdicts are there, nothing asks for that."""
        checks = tuple(
            replace(one, parts=tuple(replace(part, sums=None) for part in one.parts))
            for one in self.measured.checks
        )
        return replace(self, measured=replace(self.measured, checks=checks))


@dataclass(frozen=True)
class KeptChart:
    """A chart as it was drawn. Texts are plain, and may hold untrusted names.

    Attributes
    ----------
    key : str
        What it shows, the same in every audit.
    title : str
    page : str
        The page of the app that shows it.
    finding, alt, how_to_read : str
    light, dark : str
        The figure for either theme, as plotly's JSON.
    table : str
        Its data as CSV.
    """

    key: str
    title: str
    page: str
    finding: str
    alt: str
    how_to_read: str
    light: str
    dark: str
    table: str

    def figure(self, *, dark: bool) -> dict[str, Any]:
        """The figure of a theme as plotly's JSON has it, without anything that leads elsewhere.

        Raises
        ------
        InputError
            If it is none, or not of the kinds of marks that kdcal draws.
        """
        with errors_of_content():
            found = json.loads(self.dark if dark else self.light)
            data, layout = found["data"], found["layout"]
            if not isinstance(data, list) or not isinstance(layout, dict):
                raise TypeError("no figure")
            if any(one.get("type", "scatter") not in _MARKS for one in data):
                raise TypeError("other marks")
            return {"data": _without_links(data), "layout": _without_links(layout)}


_MARKS = frozenset({"scatter", "bar", "heatmap"})
# of a layout: pictures and maps are fetched from where they say, and menus may bring them in
_FETCHED = frozenset({"images", "map", "mapbox", "geo", "updatemenus", "sliders"})
_LINK = re.compile(r"<(?=/?a(?![a-z]))", re.IGNORECASE)


def _without_links(value: Any) -> Any:
    """A part of a figure in which plotly finds no link and nothing to fetch: ours have neither.

    Examples
    --------
    >>> _without_links([{"text": "<b>Bold</b> <A href='https://evil.example'>link</A>"}])
    [{'text': "<b>Bold</b> &lt;A href='https://evil.example'>link&lt;/A>"}]
    >>> _without_links({"images": [{"source": "https://evil.example"}], "height": 300})
    {'height': 300}
    """
    match value:
        case str():
            return _LINK.sub("&lt;", value)
        case list():
            return [_without_links(one) for one in value]
        case dict():
            return {
                name: _without_links(one) for name, one in value.items() if name not in _FETCHED
            }
    return value


@dataclass(frozen=True)
class CalibratorFacts:
    """The calibrator that was chosen for the model. Texts are untrusted.

    Attributes
    ----------
    key, title : str
    digest : str
        SHA-256 of its file; empty where none was written.
    finding : str
        What it gains, in a sentence.
    model, rows : str
        SHA-256 of the files of the model and of the rows, where the audit judges the calibrator's
        output in place of the model's; empty where it judges the model's.
    """

    key: str
    title: str
    digest: str
    finding: str = ""
    model: str = ""
    rows: str = ""


@dataclass(frozen=True)
class AuditContent:
    """What an audit found.

    Attributes
    ----------
    format : int
    title : str
        Untrusted text.
    subject : Subject
    code : Code
    seed : int
    limits : dict of code to Limit
        Of every check that was made, defaults included.
    measured : MeasuredChecks
        What the checks found, with intervals at every level, so that another audit can be held
        against this one.
    checked : CheckedReview
        The verdicts.
    headline, next_step : str
        In sentences. Untrusted text.
    estimates : tuple of Estimate
        All other numbers that pages show of the set.
    charts : tuple of KeptChart
    baseline : Baseline or None
    calibrator : CalibratorFacts or None
    sums : dict of str to GroupSums
        By the names of estimates, what pairs them with those of another model on the same rows: the
        influence of at most 128 groups of ten rows or more. Empty in audits of earlier versions.
    sketch : RowSketch or None
        Keyed hashes of some of the judged rows, which say how far another audit of this machine's
        record judged the same ones. None without a record, without columns that describe the rows,
        and in audits of earlier versions.
    """

    format: int
    title: str
    subject: Subject
    code: Code
    seed: int
    limits: dict[str, Limit]
    measured: MeasuredChecks
    checked: CheckedReview
    headline: str
    next_step: str
    estimates: tuple[Estimate, ...]
    charts: tuple[KeptChart, ...] = field(repr=False)
    baseline: Baseline | None = None
    calibrator: CalibratorFacts | None = None
    sums: dict[str, GroupSums] = field(default_factory=dict, repr=False, compare=False)
    sketch: RowSketch | None = field(default=None, repr=False, compare=False)

    @property
    def what_to_do(self) -> str:
        """What to do next, and which calibrator was chosen for the judged model. Untrusted text."""
        one = self.calibrator
        if one is None or one.rows:
            return self.next_step
        chosen = f"Chosen for it: {one.title}. All numbers here are the model's without it."
        return " ".join(filter(None, (self.next_step, chosen, one.finding)))

    @property
    def judged_calibrator(self) -> str:
        """The title of the calibrator whose output was judged; else empty. Untrusted text."""
        one = self.calibrator
        return one.title[:200] if one is not None and one.rows else ""

    @property
    def judged_file(self) -> str:
        """The digest of the judged table's file; a calibrator's output is of the same rows."""
        if self.calibrator is not None and self.calibrator.rows:
            return self.calibrator.rows
        which = self.subject.which
        return next(one.digest for one in self.subject.tables if one.part == which)

    @property
    def baseline_text(self) -> str:
        """With what limits compare, and which of them do; empty without a baseline. Untrusted."""
        if self.baseline is None:
            return ""
        codes = [code for code, one in self.limits.items() if one.against == "baseline"]
        said = f"The limits of {listed(codes)} compare" if codes else "No limit compares"
        name = printable(self.baseline.name, 120)
        return f"Baseline: {name} ({self.baseline.digest[:12]}). {said} with it."

    @property
    def rows_known_by(self) -> str:
        """What says that other audits judged the same rows in the same order; empty without."""
        return next((one.rows for one in self.sums.values()), "")

    @property
    def model_digest(self) -> str:
        """What identifies the model: its file, or the judged predictions without one."""
        model, calibrator = self.subject.model, self.calibrator
        if calibrator is not None and calibrator.rows:
            return digest(f"{calibrator.model} {calibrator.digest}".encode())
        return model.digest if model is not None else self.rows_digest

    @property
    def question_digest(self) -> str:
        """What identifies the question: the judged set, the event and the groups."""
        asked = self.subject
        return digest(canonical([asked.which, asked.event, list(asked.groups)]))

    @property
    def rows_digest(self) -> str:
        """What identifies the judged rows."""
        return next(one.scored for one in self.subject.tables if one.part == self.subject.which)


def failures(content: AuditContent) -> list[str]:
    """A line for each check that does not pass."""
    found = []
    for one in content.checked.results:
        made = one.code in CHECKS  # a stored audit may hold one that is retired since
        missing = one in content.checked.unanswered
        if made and missing:
            found.append(f"{one.code} {one.check.title}: no answer. {result_text(one)}")
        elif made and one.verdict in ("fail", "not enough evidence"):
            more = evidence_text(one, one.worst)
            line = f"{one.code} {one.check.title}: {one.verdict}. {result_text(one)}."
            found.append(f"{line} {more}".rstrip())
    return found


def content_bytes(content: AuditContent) -> bytes:
    """The content as canonical JSON."""
    return canonical(encode(content))


def read_content(stored: bytes) -> AuditContent:
    """The content that `content_bytes` wrote.

    Raises
    ------
    InputError
        If it is none, or contradicts itself.
    NewerVersionError
        If a newer version of kdcal wrote it.
    """
    try:
        values: Any = json.loads(stored)
        known = values["format"]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise _unreadable() from error
    if type(known) is int and known > FORMAT:
        raise _newer()
    try:
        content = decode(AuditContent, values)
    except _FAULTS as error:
        raise (_newer() if _is_newer(values) else _unreadable()) from error
    if not _fits(content):
        raise _unreadable()
    return content


@contextmanager
def errors_of_content() -> Iterator[None]:
    """Report what a content from elsewhere breaks as an error of that content."""
    try:
        yield
    except InputError:
        raise
    except _FAULTS as error:
        raise _unreadable() from error


def _fits(content: AuditContent) -> bool:
    """Whether what belongs together in a content is there together."""
    measured = (part for one in content.measured.checks for part in one.parts)
    return (
        any(one.part == content.subject.which for one in content.subject.tables)
        and all(bool(one.parts) == (one.verdict is not None) for one in content.checked.results)
        and all(2 <= len(one.low) == len(one.high) <= len(LEVELS) for one in measured)
    )


def _is_newer(values: Any) -> bool:
    """Whether a content says that a later version than this one wrote it."""
    try:
        return _release(values["code"]["kdcal"]) > _release(kdcal_core.__version__)
    except _FAULTS:
        return False


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version)[:3])


def _newer() -> NewerVersionError:
    return NewerVersionError(
        "The audit was written by a newer version of kdcal", fix="Update kdcal."
    )


def _unreadable() -> InputError:
    return InputError(
        "This is not an audit that kdcal wrote, or it was altered",
        fix="Give the file audit.json of an audit, unchanged.",
    )
