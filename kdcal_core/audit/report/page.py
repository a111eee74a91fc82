"""A report as one HTML file that opens anywhere, offline, and is the same for the same audit."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from kdcal_core.audit.config_file import COMMAND, config_of
from kdcal_core.audit.content import AuditContent, errors_of_content
from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.receipts import RECEIPT
from kdcal_core.audit.report import sections
from kdcal_core.audit.report.fitting import MOST_LINES, MOST_QUESTION, LeftOut, fitted
from kdcal_core.audit.report.guidelines import GUIDELINES, answers
from kdcal_core.audit.report.happenings import (
    history,
    last_words,
    ordered_findings,
    signatures,
)
from kdcal_core.audit.report.prose import prose
from kdcal_core.audit.report.references import VERDICTS, references, terms
from kdcal_core.audit.signing import read_statement
from kdcal_core.audit.words import FINDING_WORDS, approval_text, date_text, limits_text
from kdcal_core.charts.chart import FONT
from kdcal_core.charts.palette import palette
from kdcal_core.checks import check_of, limit_text
from kdcal_core.text import counted, escape_html

_HOME = Path(__file__).parent
_NAME, _TEXT, _LONGEST = 200, 2_000, 12_000  # characters that are shown
_ABSENT = {
    "decisions": "There is no chart of decisions: they are judged where two classes have an event.",
    "groups": "There is no chart of groups: none were declared.",
    "regions": "There is no chart of regions in this audit.",
}
_NO_GROUPS = "There is no chart of groups in this audit."


def html_report(
    content: AuditContent,
    audit: Audit | None = None,
    project: Project | None = None,
    receipt: dict[str, Any] | None = None,
) -> bytes:
    """The report of an audit, as one HTML file without any request to elsewhere.

    It holds aggregates only, and no time but those of the record: the same arguments give the same
    bytes. A policy in it forbids every script but its own two, and every load. It is smaller than
    6 MB: of an audit of very many groups, classes or comments it leaves out what `LeftOut` names,
    and says so.

    Parameters
    ----------
    content : AuditContent
        What the audit found.
    audit : Audit, optional
        What happened to it. Without, the report says that no record holds the audit.
    project : Project, optional
        The project of the audit.
    receipt : dict, optional
        As of `Record.receipt`: how far the record went with the audit's last entry.

    Raises
    ------
    InputError
        If the receipt is none, or none of the project's keys signed it, or the content contradicts
        itself.
    """
    with errors_of_content():
        return _page(sections.with_named_groups(content), audit, project, receipt)


def _page(
    content: AuditContent,
    audit: Audit | None,
    project: Project | None,
    receipt: dict[str, Any] | None,
) -> bytes:
    style = _style(content.title)
    same = {
        "receipt": None if receipt is None else _receipt(receipt, project),
        "style": Markup(style),
        "foreign_styles": _foreign_styles(),
        "scripts": [Markup(one) for one in _scripts()],
        "policy": _policy(style),
    }

    def render(left_out: LeftOut) -> bytes:
        template = _templates().get_template("report.html.j2")
        return template.render(**same, **_context(content, audit, project, left_out)).encode()

    return fitted(
        lambda: [sections.chart_bytes(one, at + 1) for at, one in enumerate(content.charts)], render
    )


def _context(
    content: AuditContent, audit: Audit | None, project: Project | None, left_out: LeftOut
) -> dict[str, Any]:
    charts = [sections.chart_view(one, at + 1, left_out) for at, one in enumerate(content.charts)]
    pages = {one.key: one.page for one in content.charts}
    rows = sections.families(content, left_out)
    findings = ordered_findings(audit) if audit is not None else ()
    happened = history(project, audit) if audit is not None else ()
    return {
        "left_out": left_out.words,
        "content": content,
        "subject": content.subject,
        "judged": next(one for one in content.subject.tables if one.part == content.subject.which),
        "audit": audit,
        "project": project,
        "mark": sections.MARKS[content.checked.verdict],
        "leading": sections.leading(content, audit),
        "signatures": signatures(project, audit) if audit is not None else (),
        "approval_words": approval_text(audit) if audit is not None else "",
        "limits_words": limits_text(audit, project) if audit is not None else "",
        "families": rows,
        "counts": sections.counts_text(content),
        "verdicts": VERDICTS,
        "general": [one for one in charts if pages[one.key] not in sections.PLACES],
        "places": [
            (
                key,
                title,
                [one for one in charts if pages[one.key] == key],
                [
                    sections.check_row(one, left_out)
                    for one in content.checked.results
                    if one.check.page == key
                ],
            )
            for key, title in sections.PLACES.items()
        ],
        "absent": _ABSENT | ({"groups": _NO_GROUPS} if content.subject.groups else {}),
        "finding_words": FINDING_WORDS,
        "estimates": sections.estimate_rows(left_out.first(content.estimates)),
        "limits": [
            (
                code,
                check_of(code).title,
                limit_text(limit, _estimate_of(content, code) or check_of(code)),
                limit == check_of(code).limit,
            )
            for code, limit in content.limits.items()
        ],
        "references": references(content),
        "terms": terms(content),
        "threshold": _threshold(content),
        "question": left_out.text(
            config_of(content, project.name if project is not None else ""), MOST_QUESTION
        ),
        "command": COMMAND,
        "history": [
            replace(one, words=left_out.text(one.words)) for one in left_out.ends(happened)
        ],
        "n_happened": len(happened),
        "findings": [
            (one, left_out.text(last_words(one))) for one in left_out.first(findings, MOST_LINES)
        ],
        "n_findings": len(findings),
        "n_estimates": len(content.estimates),
        "guidelines": [(one, answers(one, content, audit)) for one in GUIDELINES],
    }


def _estimate_of(content: AuditContent, code: str) -> Any:
    """An estimate of a check, for the unit of its limit; None where there is no answer."""
    found = (one for one in content.checked.results if one.code == code and one.parts)
    result = next(found, None)
    return result.worst.estimate if result is not None else None


def _threshold(content: AuditContent) -> str:
    """From which probability of the event rows are flagged; empty without an event."""
    subject, decision = content.subject, content.subject.decision
    if subject.event is None:
        return ""
    costs = [f"{case.replace('_', ' ')} {cost:g}" for case, cost in decision.costs.items()]
    said = f" Costs: {', '.join(costs)}." if costs else ""
    if decision.threshold is not None:
        return f"{decision.threshold:.4g}, as chosen.{said}"
    return f"None was chosen.{said}"


def _receipt(receipt: dict[str, Any], project: Project | None) -> dict[str, Any]:
    """What a receipt says, and the receipt itself."""
    keys = tuple(project.keys.values()) if project is not None else ()
    said = read_statement(receipt, RECEIPT, keys)
    digests = {one["name"]: one["digest"]["sha256"] for one in said["subject"]}
    return {
        "number": said["predicate"].get("number", ""),
        "head": digests.get("record", ""),
        "text": json.dumps(receipt, sort_keys=True),
    }


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HOME),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {
        "short": lambda text: _shown(text, _NAME),
        "name": lambda text, limit=80: Markup(f"<bdi>{_shown(text, limit)}</bdi>"),
        "whole": lambda text: _shown(text, _LONGEST),
        "exact": lambda text: Markup(html.escape(text)),
        "prose": prose,
        "counted": counted,
        "date": date_text,
        "names": lambda names: _shown(sections.names_text(names), _LONGEST),
    }
    made.tests["number"] = sections.is_number
    return made


def _shown(value: Any, limit: int = _TEXT) -> Markup:
    """Any value as text that shows as itself; what is markup already stays."""
    if isinstance(value, Markup):
        return value
    return Markup("" if value is None else escape_html(value, limit))


@cache
def _scripts() -> tuple[str, str]:
    """Plotly, and what draws the charts; a parser would read other line ends as these."""
    drawing = (_HOME / "report.js").read_text(encoding="utf-8")
    return get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n"), drawing


@cache
def _foreign_styles() -> tuple[str, ...]:
    """The ids of style sheets that plotly would add for maps, unless an element has them already.

    The page's policy lets none in.
    """
    return tuple(sorted(set(re.findall(r'getElementById\("([0-9a-f]{64})"\)', _scripts()[0]))))


@cache
def _sheet() -> str:
    return (_HOME / "report.css").read_text(encoding="utf-8")


def _style(title: str) -> str:
    """The style sheet with the palette, and the title for the head of printed pages."""
    colours = palette(dark=False)
    known = {one.name: getattr(colours, one.name) for one in fields(colours)}
    variables = "".join(
        f"--{name.replace('_', '-')}: {value};"
        for name, value in known.items()
        if isinstance(value, str)
    )
    head = css_string(str(Markup(escape_html(title, 70)).unescape()))
    return f":root {{{variables} --font: {FONT};}}\n" + _sheet().replace('"TITLE"', head)


def css_string(text: str) -> str:
    r"""A string of CSS that ends neither itself nor the style sheet.

    Examples
    --------
    >>> print(css_string('a"</style>'))
    "a\000022 \00003c \00002f style\00003e "
    """
    plain = (one if one.isalnum() or one == " " else f"\\{ord(one):06x} " for one in text)
    return f'"{"".join(plain)}"'


def _policy(style: str) -> str:
    """What the page may run and load: its own scripts and style sheet, and nothing else.

    Plotly adds an empty style element and writes rules into it, and sets style attributes.
    """
    scripts = " ".join(_hash(one) for one in _scripts())
    return (
        f"default-src 'none'; script-src {scripts}; style-src {_hash(style)} {_hash('')}; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
