"""What a report shows, as plain texts and rows. Names pass through: the template escapes them."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from kdcal_core.audit.content import AuditContent, KeptChart
from kdcal_core.audit.project import Audit
from kdcal_core.audit.report.fitting import WHOLE, ChartBytes, LeftOut
from kdcal_core.audit.report.happenings import ordered_findings
from kdcal_core.audit.report.prose import how_to_read
from kdcal_core.audit.words import FINDING_WORDS, date_text
from kdcal_core.charts import stacked
from kdcal_core.checks import (
    FAMILIES,
    VERDICTS,
    CheckResult,
    JudgedPart,
    Verdict,
    each_kind_first,
    evidence_text,
    found_text,
    limit_text,
    part_text,
)
from kdcal_core.data import to_csv
from kdcal_core.diagnostics import (
    Estimate,
    distinct_labels,
    has_interval,
    interval_text,
    reference_text,
    value_text,
)
from kdcal_core.text import and_more, counted, figures_text, listed, typed

PLACES = {"decisions": "Decisions", "groups": "Declared groups", "regions": "Regions"}
"""Pages of the app whose charts and checks have headings of their own."""

_MOST_NAMES = 40
_LEADING = 3


@dataclass(frozen=True)
class Mark:
    """A verdict's word, its sign, and the class of its colour."""

    word: str
    sign: str
    style: str


MARKS: dict[Verdict | None, Mark] = {
    "fail": Mark("Fail", "✕", "fail"),
    "not enough evidence": Mark("Not enough evidence", "?", "unsure"),
    "pass": Mark("Pass", "✓", "pass"),
    None: Mark("Not answered", "–", "none"),
}


@dataclass(frozen=True)
class Leading:
    """One of the findings on the first page. Untrusted text."""

    title: str
    words: str


def with_named_groups(content: AuditContent) -> AuditContent:
    """The content with the column before the name of each group, where one column declares them.

    Of several columns, their names are there already.
    """
    if len(content.subject.groups) != 1:
        return content
    (column,) = content.subject.groups
    results = tuple(
        replace(
            one, parts=tuple(replace(part, name=f"{column}: {part.name}") for part in one.parts)
        )
        if one.check.place == "in"
        else one
        for one in content.checked.results
    )
    return replace(content, checked=replace(content.checked, results=results))


def leading(content: AuditContent, audit: Audit | None) -> tuple[Leading, ...]:
    """What matters most: declared findings that are not resolved, then failed checks.

    Of checks, one of each kind of fault comes first. Of calibration that is a fault of one place
    unlike the others, as `next_step` has it: a repair of all rows alike does not correct it.
    """
    declared = ordered_findings(audit) if audit is not None else ()
    found = [
        Leading(
            one.title,
            f"A finding of severity {one.severity}, {FINDING_WORDS[one.state].lower()}"
            f"{f', owned by {one.owner}' if one.owner else ''}"
            f"{f', due {date_text(one.due)}' if one.due else ''}.",
        )
        for one in declared
        if one.state != "resolved"
    ]
    checked = content.checked
    failed = sorted(checked.of("fail"), key=lambda one: one.apart(checked.n) is None)
    worst = [*each_kind_first(failed), *checked.of("not enough evidence")]
    found += [Leading(one.check.title, _worst_words(one)) for one in worst]
    return tuple(found[:_LEADING])


def answer_text(result: CheckResult) -> str:
    """The answer to a check in a line: its worst part, or why there is no answer."""
    if not result.parts:
        return result.why_not
    more = counted(len(result.parts) - 1, "other part")
    others = f" ({more} in section 3)" if result.parts[1:] else ""
    return f"{part_text(result, result.worst)}{others}."


def _worst_words(result: CheckResult) -> str:
    found = f"{MARKS[result.verdict].word}. {part_text(result, result.worst)}."
    return f"{result.check.question} {found} {evidence_text(result, result.worst)}".strip()


@dataclass(frozen=True)
class PartRow:
    """One number of a check. The name is untrusted text; the label says what was measured."""

    name: str
    label: str
    found: str
    limit: str
    mark: Mark
    n: int
    evidence: str


@dataclass(frozen=True)
class CheckRow:
    """A check with its worst number first. Texts may hold untrusted names.

    ``parts`` may be the first of ``n_parts``.
    """

    code: str
    title: str
    question: str
    method: str
    remedy: str
    mark: Mark
    label: str
    parts: tuple[PartRow, ...]
    n_parts: int
    why_not: str
    line: str

    @property
    def labelled(self) -> bool:
        """Whether its parts measure different things, so that each needs its label."""
        return len({one.label for one in self.parts}) > 1

    @property
    def worst(self) -> PartRow | None:
        """The part that decides; None where there is no answer."""
        return self.parts[0] if self.parts else None


def _part(result: CheckResult, part: JudgedPart) -> PartRow:
    return PartRow(
        part.name,
        part.estimate.label,
        found_text(part.estimate, result.limit),
        limit_text(result.limit, part.estimate),
        MARKS[part.verdict],
        part.estimate.n,
        evidence_text(result, part),
    )


def check_row(result: CheckResult, left_out: LeftOut = WHOLE) -> CheckRow:
    """One check as the report shows it."""
    check = result.check
    return CheckRow(
        check.code,
        check.title,
        check.question,
        check.method,
        result.remedy if result.verdict == "fail" else "",
        MARKS[result.verdict],
        result.worst.estimate.label if result.parts else "",
        tuple(_part(result, one) for one in left_out.first(result.parts)),
        len(result.parts),
        result.why_not,
        answer_text(result),
    )


@dataclass(frozen=True)
class Family:
    """The checks of one family."""

    title: str
    checks: tuple[CheckRow, ...]


def families(content: AuditContent, left_out: LeftOut) -> tuple[Family, ...]:
    """All checks by family, in their order."""
    return tuple(
        Family(
            title,
            tuple(
                check_row(one, left_out)
                for one in content.checked.results
                if one.check.family == key
            ),
        )
        for key, title in FAMILIES.items()
        if any(one.check.family == key for one in content.checked.results)
    )


def counts_text(content: AuditContent) -> str:
    """How many checks have each verdict.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from kdcal_core.checks import CheckedReview
    >>> counts_text(SimpleNamespace(checked=CheckedReview((), 0.95, 0)))
    'No check was made.'
    """
    checked = content.checked
    if not checked.results:
        return "No check was made."
    found = {verdict: len(checked.of(verdict)) for verdict in VERDICTS}
    each = ", ".join(f"{verdict} {n:,}" for verdict, n in found.items() if n)
    answered = f"{sum(found.values()):,} of {counted(len(checked.results), 'check')}"
    return f"Answered: {answered}{f' ({each})' if each else ''}."


@dataclass(frozen=True)
class EstimateRow:
    """An estimate as a row. The name may hold untrusted names."""

    label: str
    name: str
    value: str
    interval: str
    reference: str
    n: int
    how: str


def estimate_rows(estimates: Sequence[Estimate]) -> tuple[EstimateRow, ...]:
    """Each estimate with its interval, in words; no two rows have the same label."""
    labels = distinct_labels(estimates)
    return tuple(
        EstimateRow(
            labels[one.name],
            one.name,
            value_text(one) if not isinf(one.value) else "infinite",
            interval_text(one),
            reference_text(one),
            one.n,
            _how(one),
        )
        for one in estimates
    )


def _how(estimate: Estimate) -> str:
    """How the interval was computed, or why there is none, as a sentence without a full stop."""
    how = estimate.interval
    if has_interval(estimate):
        return f"{estimate.level:.0%} interval: {how}"
    why = re.sub("^none:? ", "", how)
    return f"No interval{' ' if why.startswith('on ') else ': '}{why}" if why else "No interval"


@dataclass(frozen=True)
class ChartView:
    """A chart as the report shows it. Texts may hold untrusted names.

    Attributes
    ----------
    id : str
        Of its element.
    how_to_read : Markup
    figure : Markup
        Plotly's JSON, for a script element of data; empty where the picture is left out.
    heading, rows : tuple of str, tuple of tuples
        Its data.
    csv : str
        Its data as the address of a file; empty where they are left out.
    """

    id: str
    key: str
    title: str
    finding: str
    alt: str
    how_to_read: Markup
    figure: Markup
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    csv: str


def chart_view(chart: KeptChart, at: int, left_out: LeftOut) -> ChartView:
    """A chart of an audit as the report shows it; ``at`` is its place among all charts."""
    name = f"chart-{at}"
    heading, *body = _table(chart)
    with_table = name not in left_out.tables
    return ChartView(
        name,
        chart.key,
        chart.title,
        chart.finding,
        left_out.text(chart.alt),
        how_to_read(chart.how_to_read),
        Markup("") if name in left_out.pictures else _figure(chart, name not in left_out.hovers),
        tuple(heading),
        tuple(tuple(map(shown_cell, one)) for one in body if with_table),
        _csv_address(heading, body) if with_table else "",
    )


def chart_bytes(chart: KeptChart, at: int) -> ChartBytes:
    """How large the parts of the chart at this place are."""
    heading, *body = _table(chart)
    figure, silent = _figure(chart), _figure(chart, hover=False)
    table = len(_csv_address(heading, body))
    return ChartBytes(f"chart-{at}", table, max(len(figure) - len(silent), 0), len(silent))


def _table(chart: KeptChart) -> list[list[str]]:
    return list(csv.reader(io.StringIO(chart.table))) or [[]]


def _figure(chart: KeptChart, hover: bool = True) -> Markup:
    figure = _still(chart.figure(dark=False))
    if not hover:
        said = ("hovertext", "hovertemplate", "customdata")
        figure["data"] = [
            {name: one for name, one in trace.items() if name not in said} | {"hoverinfo": "skip"}
            for trace in figure["data"]
        ]
    return script_json(figure)


def _still(figure: dict[str, Any]) -> dict[str, Any]:
    """The figure as a document shows it: as wide as its place, without zooming, and small."""
    layout = {name: one for name, one in figure["layout"].items() if name != "width"}
    layout["dragmode"] = False
    return {
        "data": _in_single_precision(figure["data"]),
        "layout": layout,
        "narrow": stacked(layout),
    }


def _in_single_precision(value: Any) -> Any:
    """A part of a figure with packed numbers in half their bytes: seven digits can be seen.

    Examples
    --------
    >>> _in_single_precision([{"x": {"dtype": "f8", "bdata": "AAAAAAAA4D8="}, "y": [0.5]}])
    [{'x': {'dtype': 'f4', 'bdata': 'AAAAPw=='}, 'y': [0.5]}]
    """
    match value:
        case {"dtype": "f8", "bdata": str(packed)}:
            numbers = np.frombuffer(base64.b64decode(packed), "<f8").astype("<f4")
            return {**value, "dtype": "f4", "bdata": base64.b64encode(numbers.tobytes()).decode()}
        case list():
            return [_in_single_precision(one) for one in value]
        case dict():
            return {name: _in_single_precision(one) for name, one in value.items()}
    return value


def script_json(value: Any) -> Markup:
    r"""JSON that ends no script element and begins no comment, whatever it holds.

    Examples
    --------
    >>> print(script_json({"a": "</script><!--"}))
    {"a":"\u003c/script\u003e\u003c!--"}
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def shown_cell(cell: str) -> str:
    """A cell of a chart's table: numbers with four figures.

    Examples
    --------
    >>> [shown_cell(one) for one in ("0.30000000000000004", "986.0", "12", "benign", "")]
    ['0.3', '986', '12', 'benign', '']
    """
    if not any(sign in cell for sign in ".e"):
        return cell
    try:
        number = float(cell)
    except ValueError:
        return cell
    return figures_text(number)


def is_number(cell: str) -> bool:
    """Whether a cell is shown as a number, on the right.

    Examples
    --------
    >>> [is_number(one) for one in ("1,200", "−2.4 × 10⁻⁷", "", "benign")]
    [True, True, True, False]
    """
    try:
        float(typed(cell).replace(",", ""))
    except ValueError:
        return not cell
    return True


def _csv_address(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = to_csv(pd.DataFrame(rows, columns=list(heading), dtype=str))
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(table).decode()}"


def names_text(names: Iterable[str]) -> str:
    """Names in a row, each shortened; of very many the first ones."""
    every = list(names)
    shown = [one if len(one) <= 80 else f"{one[:79]}…" for one in every[:_MOST_NAMES]]
    more = and_more(len(every) - _MOST_NAMES)
    return f"{', '.join(shown)}{more}" if more else listed(shown, _MOST_NAMES)
