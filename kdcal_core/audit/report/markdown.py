"""A report in a few lines of Markdown, such as for a comment on a pull request."""

from __future__ import annotations

from kdcal_core.audit.content import AuditContent, errors_of_content
from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.report.sections import MARKS, check_row, counts_text, with_named_groups
from kdcal_core.audit.words import approval_text
from kdcal_core.checks import CheckResult
from kdcal_core.text import counted, escape_markdown

_MOST = 12  # rows of the table


def markdown_report(
    content: AuditContent, audit: Audit | None = None, project: Project | None = None
) -> str:
    """The verdict, the checks that do not pass, what to do, and what was audited.

    Names are escaped: they make no table, link, mention or HTML.

    Parameters
    ----------
    content, audit, project
        As of `kdcal_core.audit.report.html_report`.

    Raises
    ------
    InputError
        If the content contradicts itself.
    """
    with errors_of_content():
        return _text(with_named_groups(content), audit, project)


def _text(content: AuditContent, audit: Audit | None, project: Project | None) -> str:
    mark = MARKS[content.checked.verdict]
    parts = [
        f"### {mark.sign} {mark.word}: {escape_markdown(content.title, 120)}",
        escape_markdown(content.headline, 600),
        _table(content),
        _doubts(content),
        f"**What to do next.** {escape_markdown(content.what_to_do, 1000)}",
        escape_markdown(content.baseline_text, 600),
        _identity(content),
        _state(audit, project),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _doubts(content: AuditContent) -> str:
    doubts = " ".join(escape_markdown(one, 600) for one in content.subject.doubts)
    return f"**Open doubts about the data.** {doubts}" if doubts else ""


def _table(content: AuditContent) -> str:
    checked = content.checked
    shown = [*checked.of("fail"), *checked.of("not enough evidence")]
    if not shown:
        return counts_text(content)
    rows = [_row(one) for one in shown[:_MOST]]
    more = len(shown) - _MOST
    last = [f"{counted(more, 'further check')} in the report."] if more > 0 else []
    found = f"Found ({checked.level:.0%} interval)"
    head = [f"| Verdict | Check | {found} | Limit |", "| --- | --- | --- | --- |"]
    return "\n\n".join(["\n".join([*head, *rows]), *last, counts_text(content)])


def _row(result: CheckResult) -> str:
    row = check_row(result)
    worst = row.worst
    assert worst is not None  # it has a verdict
    where = f", {escape_markdown(worst.name, 60)}" if worst.name else ""
    more = f" and {len(row.parts) - 1:,} more" if len(row.parts) > 1 else ""
    found = f"{escape_markdown(row.label, 60)}{where}: {worst.found}{more}"
    title = f"{escape_markdown(row.title)} ({row.code})"
    return f"| {row.mark.sign} {row.mark.word} | {title} | {found} | {worst.limit} |"


def _identity(content: AuditContent) -> str:
    model, judged = content.subject.model, content.subject.which
    what = (
        f"Model {escape_markdown(model.name)} (`{model.digest[:12]}`)"
        if model is not None
        else _predictions(content)
    )
    chosen = content.calibrator
    if chosen is not None and chosen.rows:
        what += f" with the calibrator {escape_markdown(chosen.title)} (`{chosen.digest[:12]}`)"
    table = next(one for one in content.subject.tables if one.part == judged)
    of = "the list of its files" if table.files else escape_markdown(table.name, 120)
    rows = f"{counted(content.checked.n, 'row')} of the {judged} set"
    digest = f"SHA-256 of {of}: `{table.digest[:12]}`"
    return f"{what}, judged on {rows} ({digest}). kdcal {escape_markdown(content.code.kdcal)}."


def _predictions(content: AuditContent) -> str:
    files = sum(one.files for one in content.subject.tables)
    if not files:
        return "A table of predictions"
    return f"{counted(files, 'file')} of rows, of which counts are kept"


def _state(audit: Audit | None, project: Project | None) -> str:
    if audit is None:
        return "No record holds this audit."
    where = f" of the project {escape_markdown(project.name)}" if project is not None else ""
    locked = audit.facts.locked
    limits = f"limits locked in entry {locked}" if locked is not None else "limits not locked"
    return f"Audit `{audit.id}`{where}: {audit.state}, {limits}. {approval_text(audit)}".rstrip()
