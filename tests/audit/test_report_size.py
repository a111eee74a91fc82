"""A report stays below 6 MB, whatever an audit holds, and says what it leaves out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
from audit_people import ME

from kdcal_core.audit import AuditContent, Commented, FindingOpened, Moment, Record
from kdcal_core.audit.content import KeptChart
from kdcal_core.audit.report import html_report
from kdcal_core.checks import CheckedReview

LEAVES_OUT = "So that it stays below 6 MB, this report leaves out"
MOST = 6_000_000


def large_chart(chart: KeptChart, rows: int = 0, hover: int = 0, marks: int = 0) -> KeptChart:
    """The chart with so many rows of data, characters under the pointer, and marks."""
    figure = json.loads(chart.light)
    figure["data"][0] |= {"hovertext": ["h" * hover], "x": [0.125] * marks}
    table = pd.DataFrame({"name": ["a name" * 100] * rows, "value": range(rows)})
    return replace(chart, light=json.dumps(figure), table=table.to_csv(index=False))


def with_first(content: AuditContent, *first: KeptChart) -> AuditContent:
    return replace(content, charts=(*first, *content.charts[len(first) :]))


def test_the_data_of_the_largest_chart_go_first(content: AuditContent) -> None:
    one, other, *_ = content.charts
    page = html_report(content).decode()
    n_charts = page.count("Download as CSV")
    assert LEAVES_OUT not in page
    found = with_first(content, large_chart(one, 10), large_chart(other, 1_000, hover=1_000))
    page = html_report(found).decode()
    assert len(page.encode()) < MOST
    assert f"{LEAVES_OUT} the data of 1 chart." in page
    assert page.count("The data of this chart are left out.") == 1
    assert page.count("Download as CSV") == n_charts - 1
    assert page.count("h" * 1_000) == 1


def test_then_texts_under_the_pointer_and_pictures_last(content: AuditContent) -> None:
    one = content.charts[0]
    silent = html_report(with_first(content, large_chart(one, hover=1_500_000))).decode()
    assert len(silent.encode()) < MOST
    assert "and the texts under the pointer of 1 chart." in silent
    assert "h" * 1_000 not in silent
    assert silent.count('class="plot"') == len(content.charts)
    without = html_report(with_first(content, large_chart(one, marks=300_000))).decode()
    assert len(without.encode()) < MOST
    assert "the picture of 1 chart and the rest of long lists and texts." in without
    assert without.count("The picture is left out.") == 1
    assert without.count('class="plot"') == len(content.charts) - 1


def test_long_comments_and_lists_are_shortened(content: AuditContent, tmp_path: Path) -> None:
    record = Record(tmp_path / "audits", clock=lambda: Moment("2026-11-25T16:20:00.5Z", "a test"))
    result = next(one for one in content.checked.results if one.parts)
    part = result.parts[0]
    many = replace(
        result, parts=(part, *(replace(part, name=f"part {at} " + 280 * "x") for at in range(100)))
    )
    results = tuple(many if one is result else one for one in content.checked.results)
    checked: CheckedReview = replace(content.checked, results=results)
    content = replace(content, checked=checked)
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    for at in range(130):
        record.write(project.id, Commented(audit.id, f"comment {at} " + 9_900 * "y"), ME)
    opened = FindingOpened(audit.id, "late", "A late finding", "high", "", "")
    record.write(project.id, opened, ME)
    project = record.project(project.id)
    page = html_report(content, project.audits[audit.id], project).decode()
    assert len(page.encode()) < MOST
    assert "the rest of long lists and texts" in page
    assert f"The first 40 of 101 parts of {result.code}" in page
    assert "100 of 132 entries: the first and the last ones." in page
    assert "comment 0 y" in page
    assert "comment 129 y" in page
    assert "comment 65 y" not in page
    assert "A late finding" in page
    assert html_report(content, project.audits[audit.id], project).decode() == page
