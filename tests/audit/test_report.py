"""Reports: what they say, that they are the same every time, and that no name runs in them."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pandas as pd
import pytest
from audit_people import ANN, BEN, ME

from kdcal_core.audit import (
    Audit,
    AuditApproved,
    AuditContent,
    AuditRejected,
    AuditSettings,
    AuditSubmitted,
    AuditSuperseded,
    Baseline,
    CalibratorFacts,
    Commented,
    FindingChanged,
    FindingOpened,
    LimitsLocked,
    MemberSet,
    Moment,
    Project,
    Record,
    audit_settings,
    config_of,
    content_bytes,
    make_audit,
)
from kdcal_core.audit.chart_keeping import chart_of_regions
from kdcal_core.audit.report import (
    html_report,
    markdown_report,
    pdf_report,
    png_of_first_page,
    sections,
)
from kdcal_core.audit.report.guidelines import GUIDELINES, answers
from kdcal_core.audit.report.references import references
from kdcal_core.charts.palette import palette
from kdcal_core.checks import CheckResult, JudgedPart, Verdict, headline
from kdcal_core.diagnostics import Estimate, describe_regions, has_interval
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.errors import InputError
from kdcal_core.review import Decision, Limit, Review, ReviewReader, Workspace, score, start_sample
from kdcal_core.tasks import Sets, set_decisions, threshold_of
from kdcal_core.tasks.foreign import RADII

ROOT = Path(__file__).parents[2]
MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def forecasts(workspace: Workspace) -> AuditContent:
    """An audit of a regression, of few checks."""
    review = score(workspace, start_sample(workspace, "heteroscedastic").id)
    asked = audit_settings(review)
    settings = AuditSettings(asked.title, asked.which, codes=("KC022", "KC203"))
    return make_audit(Sets(ReviewReader(workspace, review.id, review=review)), settings=settings)


@pytest.fixture(params=["content", "forecasts"])
def either(request: pytest.FixtureRequest) -> AuditContent:
    found: AuditContent = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """A record whose clock stands."""
    return Record(tmp_path / "audits", clock=lambda: Moment("2026-11-25T16:20:00.5Z", "a test"))


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.styles: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))
        elif tag == "style":
            self.styles.append("")

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside == "style":
            self.styles[-1] += data
        else:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    @property
    def said(self) -> str:
        return " ".join(self.text.split())

    @property
    def shown(self) -> str:
        """Everything but scripts and style sheets."""
        values = [one or "" for _, every in self.elements for one in every.values()]
        return self.text + "".join(values)

    @property
    def policy(self) -> dict[str, str]:
        content = next(
            one["content"]
            for tag, one in self.elements
            if tag == "meta" and one.get("http-equiv") == "Content-Security-Policy"
        )
        rules = (one.strip().partition(" ") for one in (content or "").split(";"))
        return {name: sources for name, _, sources in rules}


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_report_is_the_same_every_time(either: AuditContent) -> None:
    assert html_report(either) == html_report(either)


def test_a_report_is_the_same_in_another_process(content: AuditContent, tmp_path: Path) -> None:
    stored = tmp_path / "audit.json"
    stored.write_bytes(content_bytes(content))
    code = (
        "import sys, hashlib, pathlib\n"
        "from kdcal_core.audit import read_content\n"
        "from kdcal_core.audit.report import html_report\n"
        "page = html_report(read_content(pathlib.Path(sys.argv[1]).read_bytes()))\n"
        "print(hashlib.sha256(page).hexdigest())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(stored)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "PYTHONPATH": str(ROOT)},
    )
    assert answer.stdout.strip() == hashlib.sha256(html_report(content)).hexdigest()


def test_nothing_is_loaded_and_nothing_else_can_run(either: AuditContent) -> None:
    raw = html_report(either)
    page = Page(raw)
    assert len(raw) < MOST_BYTES
    assert page.elements[0] == ("html", {"lang": "en"})
    loads = {"src", "srcset", "data", "poster", "action", "background", "xlink:href"}
    for tag, attributes in page.elements:
        assert tag not in {"link", "base", "iframe", "object", "embed", "img", "form"}
        assert not loads & attributes.keys()
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        address = attributes.get("href") or "#"
        assert tag == "a" or address == "#"
        assert address.startswith(("#", "https://", "data:text/csv;"))
    assert not any("url(" in one or "@import" in one for one in page.styles)
    run = [text for kind, text in page.scripts if kind is None]
    assert len(run) == 2
    assert {kind for kind, _ in page.scripts} == {None, "application/json"}
    policy = page.policy
    assert policy["default-src"] == "'none'"
    assert policy["script-src"].split() == [hashed(one) for one in run]
    assert set(policy["style-src"].split()) == {hashed(one) for one in page.styles}


def test_every_chart_has_its_words_and_its_data(either: AuditContent) -> None:
    page = Page(html_report(either))
    plots = [one for tag, one in page.elements if tag == "div" and one.get("class") == "plot"]
    names = [one.get("download") for tag, one in page.elements if tag == "a" and "download" in one]
    assert len(plots) == len(names) == len(either.charts)
    assert all(one["role"] == "img" and one["aria-label"] for one in plots)
    for chart in either.charts:
        assert " ".join(chart.finding.split()) in page.said
        assert f"{chart.key}.csv" in names
    figures = [text for kind, text in page.scripts if kind is not None]
    assert not any(re.search("[<>&]", one) for one in figures)
    assert page.said.count("How to read this") == len(either.charts)


def test_headings_and_the_order_of_the_sections(either: AuditContent) -> None:
    page = Page(html_report(either))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    sections = [one["id"] for tag, one in page.elements if tag == "section"]
    assert sections == [
        *("summary", "identity", "checks", "charts", "places", "estimates", "method", "history"),
        "guidelines",
    ]
    links = {one["href"] for tag, one in page.elements if tag == "a"}
    assert {f"#{one}" for one in sections} <= links
    ids = [one["id"] for _, one in page.elements if "id" in one]
    assert len(ids) == len(set(ids))


def test_the_summary_says_what_matters(either: AuditContent) -> None:
    page = Page(html_report(either))
    for words in (either.headline, either.next_step, either.rows_digest, either.code.digest):
        assert " ".join(words.split()) in page.said
    for result in either.checked.results:
        assert result.check.title in page.said
        assert result.check.question in page.said
    assert "No record holds this audit" in page.said


def made(name: str, value: float, low: float, high: float, interval: str = "normal") -> Estimate:
    return Estimate(name, name.partition(":")[0], value, low, high, 90, interval=interval)


def test_every_number_says_what_it_measures() -> None:
    parts = [JudgedPart("north", made(one, 0.1, 0.0, 0.2), "pass") for one in ("Shift", "Spread")]
    row = sections.check_row(CheckResult("KC024", "pass", Limit(-0.2, 0.2), tuple(parts)))
    assert row.labelled
    assert [(one.label, one.name) for one in row.parts] == [("Shift", "north"), ("Spread", "north")]
    assert not sections.check_row(CheckResult("KC024", "pass", Limit(), tuple(parts[:1]))).labelled
    alike = [made(f"Gain: of {one}", 0.1, 0.0, 0.2) for one in ("log loss", "Brier score")]
    labels = [one.label for one in sections.estimate_rows(alike)]
    assert len(set(labels)) == 2


@pytest.mark.parametrize(
    ("estimate", "value", "interval", "how"),
    [
        (made("ECE", 0.1, 0.05, 0.15), "0.10", "0.05 to 0.15", "95% interval: normal"),
        (made("MCE", 0.4, nan, nan, "none: few rows"), "0.400", "no interval",
         "No interval: few rows"),
        (made("Smooth", 0.4, nan, nan, "none on fewer than 200 rows: why"), "0.400", "no interval",
         "No interval on fewer than 200 rows: why"),
        (made("Log score", inf, inf, inf, "infinite: 1 outcome"), "infinite", "no interval",
         "No interval: infinite: 1 outcome"),
    ],
)  # fmt: skip
def test_an_estimate_without_an_interval_says_why(
    estimate: Estimate, value: str, interval: str, how: str
) -> None:
    (row,) = sections.estimate_rows([estimate])
    assert (row.value, row.interval, row.how) == (value, interval, how)


def test_open_doubts_stand_beside_the_verdict(content: AuditContent) -> None:
    doubt = "The column 'patient' repeats its values."
    doubted = replace(content, subject=replace(content.subject, doubts=(doubt,)))
    for found, times in ((content, 0), (doubted, 1)):
        summary = Page(html_report(found)).said.split("State and signatures")[0]
        assert summary.count(doubt) == times
        assert summary.count("Open doubts about the data") == times
        assert markdown_report(found).count("**Open doubts about the data.** The col") == times


def test_the_first_page_names_each_kind_of_fault_once(content: AuditContent) -> None:
    part = (JudgedPart("", made("Gap", 0.23, 0.18, 0.28), "fail"),)

    def first(*codes: str) -> list[str]:
        results = tuple(CheckResult(one, "fail", Limit(), part) for one in codes)
        checked = replace(content.checked, results=results)
        return [one.title for one in sections.leading(replace(content, checked=checked), None)]

    assert first("KC001", "KC004", "KC005", "KC101", "KC103", "KC203", "KC205") == [
        "Overall calibration",
        "Discrimination",
        "Ranked the right way round",
    ]
    assert first("KC001", "KC004", "KC005", "KC103") == [
        "Overall calibration",
        "Calibration slope",
        "By predicted class",
    ]


def test_spiegelhalter_s_test_stands_beside_intercept_and_slope(content: AuditContent) -> None:
    labels = [one.label for one in content.estimates]
    at = labels.index("Brier minus expected")
    assert labels[at - 2 : at] == ["Calibration intercept", "Calibration slope"]
    (row,) = sections.estimate_rows([content.estimates[at]])
    assert re.search(r"Spiegelhalter's z .*, p value ", row.how)


def test_the_counts_of_checks_add_up(content: AuditContent) -> None:
    def said(*verdicts: Verdict | None) -> str:
        results = tuple(CheckResult("KC001", one, Limit(high=0.05)) for one in verdicts)
        checked = replace(content.checked, results=results)
        return sections.counts_text(replace(content, checked=checked))

    assert said("fail", "pass", "pass") == "Answered: 3 of 3 checks (fail 1, pass 2)."
    unsure = "Answered: 1 of 2 checks (not enough evidence 1)."
    assert said("not enough evidence", None) == unsure
    assert said(None) == "Answered: 0 of 1 check."
    assert said() == "No check was made."


HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)> \u202etxt.exe\u202c \u200f',
    "<!--<script>",
    "{{ 7 * 7 }} {% raw %}",
    "=cmd|' /C calc'!A0",
    "`]]> a|b \\ \x07 \x85",
    "x" * 10_000,
)


def named(content: AuditContent, name: str) -> AuditContent:
    """The content with this name in every place where a name of somebody may be."""
    subject, chart = content.subject, content.charts[0]
    assert subject.model is not None
    first = content.checked.results[0]
    part = replace(first.parts[0], name=name)
    results = (replace(first, parts=(part, part)), *content.checked.results[1:])
    layout = f'{{"data":[],"layout":{{"title":{{"text":{json.dumps(name)}}}}}}}'
    return replace(
        content,
        title=name,
        headline=f"Fails: {name}",
        next_step=f"Repair {name}",
        subject=replace(
            subject,
            model=replace(subject.model, name=name, kind=name, signature=name),
            tables=tuple(
                replace(one, name=name, columns=(name, *one.columns)) for one in subject.tables
            ),
            roles=replace(
                subject.roles, target=name, features=(name,), outputs=((name, name),), weight=name
            ),
            classes=(name, f"{name} 2"),
            event=name,
            groups=(name,),
            doubts=(name,),
        ),
        checked=replace(content.checked, results=results),
        charts=(
            replace(
                chart,
                finding=name,
                alt=name,
                light=layout,
                how_to_read=name,
                table=f'a,"{name.replace(chr(34), chr(34) * 2)}"\n1.5,2\n',
            ),
        ),
        baseline=Baseline(name, "a" * 64, content.measured),
        calibrator=CalibratorFacts("beta", name, "b" * 64, name),
    )


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_becomes_more_than_text(content: AuditContent, record: Record, name: str) -> None:
    found = named(content, name)
    short = name[:200]
    project = record.create(short, ME)
    who = replace(ME, name=short)
    audit = record.draft(project.id, content, who)
    opened = FindingOpened(audit.id, "f", short, "high", short)
    for event in (opened, Commented(audit.id, name[:10_000]), AuditSubmitted(audit.id)):
        record.write(project.id, event, who)
    project = record.project(project.id)
    raw = html_report(found, project.audits[audit.id], project)
    page, plain = Page(raw), Page(html_report(content))
    assert [one for one, _ in page.scripts].count(None) == 2
    assert len(page.scripts) == 2 + len(found.charts)
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in plain.elements} | {"ul", "em"}
    assert not any(one.startswith("on") for _, every in page.elements for one in every)
    assert not set("\u202e\u202c\u200f\x07\x85") & set(page.shown)
    assert len(page.styles) == len(plain.styles)
    assert hashed(page.styles[0]) in page.policy["style-src"]
    assert "49 " not in page.text.split("Audit of a model's confidence")[1][:40]
    assert len(raw) < MOST_BYTES
    asked = tomllib.loads(config_of(found, name))
    assert asked["audit"] == {"title": name, "project": name}
    assert asked["roles"]["classes"] == list(found.subject.classes)
    words = markdown_report(found, project.audits[audit.id], project)
    assert "<script" not in words
    assert "<img" not in words
    table = [one for one in words.splitlines() if one.startswith("|")]
    assert {one.count("|") for one in table} <= {5}
    assert len(words) < 12_000


def states(record: Record, content: AuditContent) -> dict[str, tuple[Audit, Project]]:
    """One audit in each state, with the people who brought it there."""
    project = record.create("Credit risk", ANN)
    record.write(project.id, MemberSet(BEN.issuer, BEN.subject, "Ben", "approver"), ANN)
    made = [record.draft(project.id, content, ANN).id for _ in range(5)]
    for one in made[1:]:
        record.write(project.id, AuditSubmitted(one), ANN)
    record.write(project.id, AuditRejected(made[2], "Too few rows."), BEN)
    record.write(project.id, AuditApproved(made[3], "Good enough."), BEN)
    record.write(project.id, AuditApproved(made[4], "Good enough."), BEN)
    record.write(project.id, AuditSuperseded(made[4], made[3]), BEN)
    project = record.project(project.id)
    audits = [project.audits[one] for one in made]
    return {one.state: (one, project) for one in audits}


def test_a_report_says_how_far_its_audit_came(content: AuditContent, record: Record) -> None:
    found = states(record, content)
    assert set(found) == {"draft", "submitted", "rejected", "approved", "superseded"}
    for state, (audit, project) in found.items():
        page = html_report(content, audit, project)
        assert html_report(content, audit, project) == page
        said = Page(page).said
        assert f"State: {state}." in said
        for words in (project.head, *project.keys, audit.facts.content, ANN.believed):
            assert words in said
        assert f"{project.number} entries" in said
        assert f"{state}, limits not locked" in markdown_report(content, audit, project)
    rejected = Page(html_report(content, *found["rejected"])).said
    assert "Too few rows." in rejected
    assert re.search("Rejected *Ben", rejected)


def test_a_report_says_where_one_person_did_every_step(
    content: AuditContent, record: Record
) -> None:
    words = "The same person drafted, submitted and approved it; nobody else checked it."
    project = record.create("Income", ME)
    audit = record.draft(project.id, content, ME)
    submitted, other = record.draft(project.id, content, ME), replace(ME, name="Somebody else")
    seen = []
    for one, who in (
        (audit, ME),
        (submitted, None),
        (record.draft(project.id, content, other), ME),
    ):
        record.write(project.id, AuditSubmitted(one.id), ME)
        if who is not None:
            record.write(project.id, AuditApproved(one.id, "Good enough."), who)
        known = record.project(project.id)
        found = known.audits[one.id]
        said = Page(html_report(content, found, known)).said.partition("Contents")[0]
        assert (words in said) == (words in markdown_report(content, found, known))
        seen.append(words in said)
    assert seen == [True, False, False]
    signed, of = states(record, content)["approved"]
    assert words not in Page(html_report(content, signed, of)).said


def test_a_report_says_whether_limits_came_first(content: AuditContent, record: Record) -> None:
    other = record.create("Another", ME)
    first = record.write(other.id, LimitsLocked(content.limits), ME)
    early = record.draft(other.id, content, ME)
    project = record.create("Credit risk", ME)
    free = record.draft(project.id, content, ME)
    locked = replace(content, limits={**content.limits, "KC001": Limit(high=0.2)})
    number = record.write(project.id, LimitsLocked(locked.limits), ME)
    late = record.draft(project.id, locked, ME)

    def said(audit: Audit, of: str) -> str:
        return Page(html_report(content, audit, record.project(of))).said

    assert "The limits were not locked beforehand." in said(free, project.id)
    by = "by Me (not signed in), 25 November 2026, 16:20 UTC."
    assert f"locked in entry {number} of the record {by}" in said(late, project.id)
    assert "were known when they were locked: since 25 November 2026" in said(late, project.id)
    assert f"locked in entry {first} of the record" in said(early, other.id)
    assert "holds no earlier result of this model on these rows" in said(early, other.id)


def test_findings_come_first_and_severe_ones_before_others(
    content: AuditContent, record: Record
) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    for name, severity in (("Light", "low"), ("Done", "high"), ("Heavy", "high")):
        opened = FindingOpened(audit.id, name, f"{name} fault", severity, "Ben", "2026-12-31")  # type: ignore[arg-type]
        record.write(project.id, opened, ME)
    changed = FindingChanged(audit.id, "Done", "resolved", "high", "Ben", "", "Calibrated.")
    record.write(project.id, changed, ME)
    project = record.project(project.id)
    said = Page(html_report(content, project.audits[audit.id], project)).said
    first, rest = said.split("What to do next", 1)
    assert first.index("Heavy fault") < first.index("Light fault")
    assert "Done fault" not in first
    assert "A finding of severity high, open, owned by Ben, due 31 December 2026." in first
    assert "Calibrated." in rest


def test_a_receipt_is_shown_where_a_key_of_the_project_signed_it(
    content: AuditContent, record: Record, tmp_path: Path
) -> None:
    project = record.create("Credit risk", ME)
    audit = record.draft(project.id, content, ME)
    project = record.project(project.id)
    receipt = record.receipt(project.id, audit.id)
    said = Page(html_report(content, audit, project, receipt)).said
    assert "the record had 2 entries" in said
    assert receipt["payload"][:40] in said
    stranger = Record(tmp_path / "elsewhere")
    foreign = stranger.receipt(stranger.create("Credit risk", ME).id)
    with pytest.raises(InputError, match="None of the known keys"):
        html_report(content, audit, project, foreign)
    with pytest.raises(InputError, match="not a signed envelope"):
        html_report(content, audit, project, {"payload": 1})


def test_the_question_is_whole(either: AuditContent) -> None:
    asked = tomllib.loads(config_of(either))
    assert asked["audit"] == {"title": either.title}
    assert asked["files"] == {
        "model": either.subject.model.name if either.subject.model else "",
        **{one.part: one.name for one in either.subject.tables},
    }
    assert set(asked["limits"]) == set(either.limits)
    for code, limit in either.limits.items():
        found = asked["limits"][code]
        against = found.get("against", "value")
        ends = (found.get("at_least", float("-inf")), found.get("at_most", float("inf")))
        assert against == limit.against
        assert against == "chance" or ends == (limit.low, limit.high)


def test_predictions_without_a_model_are_named_as_such(content: AuditContent) -> None:
    found = replace(content, subject=replace(content.subject, model=None))
    asked = tomllib.loads(config_of(found))
    assert "model" not in asked["files"]
    assert asked["files"]["predictions"] == content.subject.tables[0].name
    assert "A table of predictions" in Page(html_report(found)).said
    assert "A table of predictions" in markdown_report(found)


def test_a_limit_of_zero_is_kept(content: AuditContent) -> None:
    found = replace(content, limits={"KC102": Limit(low=0.0)})
    assert tomllib.loads(config_of(found))["limits"] == {"KC102": {"at_least": 0.0}}


def test_every_item_is_answered_or_asks_a_person(either: AuditContent) -> None:
    for guideline in GUIDELINES:
        numbers = [one.number for one in guideline.items]
        assert len(numbers) == len(set(numbers))
        for answer in answers(guideline, either, None):
            assert answer.says or answer.item.person


def test_signalling_questions_have_the_facts_of_the_audit(content: AuditContent) -> None:
    (probast,) = [one for one in GUIDELINES if one.name == "PROBAST+AI"]

    def said(found: AuditContent) -> dict[str, str]:
        return {one.item.number: one.says for one in answers(probast, found, None)}

    says, n, roles = said(content), content.checked.n, content.subject.roles
    asked = Counter(one.partition(", ")[0] for one in says if ", question " in one)
    assert asked == {"Domain 1": 3, "Domain 2": 4, "Domain 3": 4, "Domain 4": 7}  # 18
    assert says["Domain 1, question 3"].startswith(f"{n:,} of {n:,} rows of the ")
    apart = f"The column of the outcome, {roles.target!r}, is not among the "
    assert says["Domain 3, question 3"].startswith(apart)
    measured = says["Domain 4, question 7"]
    assert "Overall calibration:" in measured
    assert "AUROC" in measured
    bare = sum(not has_interval(one) for one in content.estimates)
    assert bare  # otherwise the sentence has another form
    assert f"Estimates have intervals, but for {bare} that say why they have none." in measured
    assert "No entry of a record locked the limits" in measured
    leak = replace(roles, features=(*roles.features, str(roles.target)))
    leaking = said(replace(content, subject=replace(content.subject, roles=leak)))
    assert "is among the" in leaking["Domain 3, question 3"]


def test_an_item_whose_text_was_not_read_asks_a_person_to_check_it(content: AuditContent) -> None:
    items = [one for every in GUIDELINES for one in every.items]
    unread = [one.asks for one in items if not one.compared]
    assert {one.number for one in items if one.number.startswith("Principle 4.")} == {
        f"Principle 4.{at}" for at in range(1, 6)
    }
    assert [one.compared for one in items if one.number in ("12e", "23a", "Principle 4.2")] == [
        *(True, True, False)
    ]
    said = Page(html_report(content)).said
    assert said.count("A person must check the item's wording.") == len(unread)
    for asks in unread:
        assert f"{asks}A person must check the item's wording." in said


def test_the_list_of_tripod_is_whole_and_in_order() -> None:
    letters = dict.fromkeys(range(1, 28), "")
    letters |= {3: "abc", 5: "ab", 6: "abc", 8: "abc", 9: "abc", 12: "abcdefg", 18: "abcdef"}
    letters |= {20: "abc", 23: "ab", 27: "abc"}
    whole = [f"{at}{one}" for at, each in letters.items() for one in each or ("",)]
    assert [one.number for one in GUIDELINES[0].items] == whole


def test_references_are_those_that_texts_name(
    content: AuditContent, forecasts: AuditContent
) -> None:
    binary, regression = " ".join(references(content)), " ".join(references(forecasts))
    for words in (binary, regression):
        assert "Holm" in words
        assert "Clopper" in words
    assert "Decision curve analysis" in binary
    assert "DeLong" in binary
    assert "Model-Free Local Recalibration" in regression
    assert "DeLong" not in regression


def test_no_formula_of_ours_stays_in_tex(either: AuditContent) -> None:
    page = Page(html_report(either))
    texts = page.said[page.said.index("4. Charts") : page.said.index("6. Estimates")]
    assert not re.search(r"[$\\]|\*\*", texts)


def test_a_comment_has_the_digest_that_the_judged_file_has(content: AuditContent) -> None:
    (judged,) = (one for one in content.subject.tables if one.part == content.subject.which)
    said = html.unescape(markdown_report(content))
    assert f"set (SHA-256 of {judged.name}: `{judged.digest[:12]}`)." in said
    assert content.rows_digest[:12] not in said
    tables = tuple(replace(one, files=3) for one in content.subject.tables)
    folder = replace(content, subject=replace(content.subject, tables=tables))
    assert f"SHA-256 of the list of its files: `{judged.digest[:12]}`" in markdown_report(folder)


def test_a_comment_is_short(either: AuditContent) -> None:
    words = markdown_report(either)
    assert words.count("\n") < 60
    assert len(words) < 8_000
    assert words.startswith("### ")
    for result in either.checked.of("fail"):
        assert result.code in words


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_verdicts_can_be_read() -> None:
    colours = palette(dark=False)
    for one in (colours.passed, colours.failed, colours.undecided, colours.muted):
        assert 1.05 / (luminance(one) + 0.05) >= 4.5
    dark = palette(dark=True)
    for one in (dark.passed, dark.failed, dark.undecided):
        assert (luminance(one) + 0.05) / (luminance(dark.surface) + 0.05) >= 4.5


@pytest.mark.parametrize("make", [pdf_report, png_of_first_page])
def test_without_a_browser_there_is_no_pdf(
    make: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_CHROMIUM", "no-such-browser")
    with pytest.raises(InputError, match="needs Chromium"):
        make(b"<!DOCTYPE html>")


@pytest.mark.parametrize("program", ["false", "true"])
def test_a_browser_that_does_not_print_is_an_error(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_CHROMIUM", program)
    with pytest.raises(InputError, match="did not print the report"):
        pdf_report(b"<!DOCTYPE html>")


def test_settings_of_a_content_are_shown(content: AuditContent) -> None:
    changed = replace(content, limits={**content.limits, "KC001": Limit(high=0.123)}, seed=41)
    said = Page(html_report(changed)).said
    assert "at most 0.123" in said
    assert "this review" in said
    assert "Seed41" in said.replace(" ", "")


LINKS = (
    "[Read](javascript:alert(1)) <javascript:alert(1)> [a]\n\n[a]: https://evil.example/ref",
    "[Read](https://evil.example/link) <https://evil.example/auto> ![i](https://evil.example/i)",
    "<a href='https://evil.example'>Read</a> (Durfee et al.)",
)


@pytest.mark.parametrize("text", LINKS)
def test_no_text_of_an_audit_leads_elsewhere(content: AuditContent, text: str) -> None:
    figure = json.loads(content.charts[0].light)
    figure["layout"] |= {"title": {"text": f"<a href='https://evil.example/c'>{text}</A >"}}
    chart = replace(
        content.charts[0],
        **dict.fromkeys(("title", "finding", "alt", "how_to_read"), text),
        light=json.dumps(figure),
    )
    made = replace(
        content, title=text, headline=text, next_step=text, charts=(chart, *content.charts[1:])
    )
    before, after = (Page(html_report(one)) for one in (content, made))
    # "Durfee et al." is a paper of ours that is cited; its address is known
    cited = {"https://arxiv.org/abs/2202.04837"} if "Durfee" in text else set()
    assert led_to(after) == led_to(before) | cited
    figure_of = next(one for kind, one in after.scripts if kind == "application/json")
    assert not re.search(r"<(\\u002f|/)?a\b", figure_of.replace("\\u003c", "<"), re.IGNORECASE)


@pytest.mark.parametrize("kind", ["image", "scattermap", "choropleth"])
def test_a_chart_has_no_marks_that_are_fetched(content: AuditContent, kind: str) -> None:
    figure = json.loads(content.charts[0].light)
    figure["data"].append({"type": kind, "source": "https://evil.example/i.png"})
    chart = replace(content.charts[0], light=json.dumps(figure))
    with pytest.raises(InputError):
        chart.figure(dark=False)


def led_to(page: Page) -> set[str | None]:
    """Every address that a page names, but for tables that it holds itself."""
    every = [one.get(name) for _, one in page.elements for name in ("href", "src")]
    return {one for one in every if one and not one.startswith("data:text/csv")}


def test_what_a_model_with_regions_states_far_away_is_kept(
    content: AuditContent, forecasts: AuditContent
) -> None:
    (far,) = (one for one in content.charts if one.key == "far_away")
    table = pd.read_csv(io.StringIO(far.table))
    assert list(table["radius"]) == list(RADII)
    confidence = table["mean_max_confidence"]
    assert confidence.between(1.0 / len(content.subject.classes), 1.0).all()
    assert (table["percentile_10"] <= table["percentile_90"]).all()
    assert f"{confidence.iloc[-1]:.2f}" in far.finding
    assert "far_away" not in [one.key for one in forecasts.charts]


def test_an_audit_draws_the_threshold_that_the_page_begins_at(
    workspace: Workspace, review: Review, content: AuditContent
) -> None:
    settings = audit_settings(review)
    assert settings.event is not None
    sets = Sets(ReviewReader(workspace, review.id))
    counts = set_decisions(sets, which=settings.which, event=settings.event)
    chart = next(one for one in content.charts if one.key == "net_benefit")
    line = json.loads(chart.light)["layout"]["shapes"][0]
    assert line["x0"] == threshold_of(counts, Decision()) != 0.5


def test_the_curve_by_class_is_short_enough_for_a_report(content: AuditContent) -> None:
    (curve,) = (one for one in content.charts if one.key == "confidence")
    assert curve.finding.startswith("How often malignant happens against its stated probability: ")
    assert "These are rows of the calibration set." in curve.finding
    assert 80 <= len(curve.table.splitlines()) <= 165  # both classes of the sample
    assert len(curve.light) + len(curve.table) < 100_000


def test_terms_are_explained_where_they_are_used(either: AuditContent) -> None:
    page = html_report(either).decode()
    listed = page[page.index('id="terms"') :].partition("<h3>References")[0]
    explained = [html.unescape(one) for one in re.findall(r"<dt><strong>(.*?)</strong>", listed)]
    assert explained == sorted(explained, key=str.casefold)
    tables = page[: page.index('id="terms"')]
    assert [one for one in explained if one not in html.unescape(tables)] == []
    regression = either.subject.task == "regression"
    assert ("CRPS" in explained, "ECE" in explained) == (regression, not regression)
    measured = replace(either, checked=replace(either.checked, results=()), estimates=(), charts=())
    assert 'id="terms"' not in html_report(measured).decode()


def test_a_report_says_where_the_threshold_comes_from(content: AuditContent) -> None:
    (decisions,) = (one for one in content.charts if one.key == "decisions")
    assert "No threshold was chosen: this one is the share of the rows" in decisions.finding
    page = html_report(content).decode()
    assert "None was chosen." in page
    decision = Decision(0.2, {"false_negative": 5.0})
    chosen = replace(content, subject=replace(content.subject, decision=decision))
    assert "0.2, as chosen. Costs: false negative 5." in html_report(chosen).decode()


def test_groups_of_one_column_are_named_with_it(content: AuditContent) -> None:
    first, *others = content.checked.results
    part = replace(first.parts[0], name="1")
    result = replace(first, code="KC008", parts=(part,))
    checked = replace(content.checked, results=(result, *others))
    for groups, name in ((("cut",), "cut: 1"), (("cut", "colour"), "1")):
        subject = replace(content.subject, groups=groups)
        page = html_report(replace(content, checked=checked, subject=subject)).decode()
        assert f"<bdi>{name}</bdi>" in page


def test_regions_say_what_they_show_and_why_the_check_has_others(content: AuditContent) -> None:
    (regions,) = (one for one in content.charts if one.key == "regions")
    assert regions.finding.startswith("Probability of malignant: no part of the inputs stands out")
    assert "its regions are others" not in regions.finding  # it has none
    said, hits = [0.9] * 400, [1] * 360 + [0] * 40
    search = describe_regions(confidence_target(said, hits), [0] * 200 + [1] * 200, ("a", "b"))
    *_, draw = chart_of_regions(replace(search, redraws=200), "sick")
    found = draw(False).finding
    assert found.startswith("Probability of sick: ")
    assert "Where " in found
    assert found.endswith("judges them on the other, so that its regions are others.")


def test_lists_of_checks_whose_titles_hold_commas_can_be_read(forecasts: AuditContent) -> None:
    (one,) = (one for one in forecasts.checked.results if one.code == "KC022")
    unsure = [
        replace(one, code=code, verdict="not enough evidence", parts=one.parts[:1])
        for code in ("KC022", "KC024")
    ]
    checked = replace(forecasts.checked, results=tuple(unsure))
    assert headline(checked).endswith(
        "more evidence: coverage of the intervals; and distributions, region by region."
    )
    text = markdown_report(replace(forecasts, checked=checked))
    assert "| Found (95% interval) |" in text
