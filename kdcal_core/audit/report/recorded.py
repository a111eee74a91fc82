"""The report of an audit of a record: as HTML, or printed by a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from kdcal_core.audit.content import read_content
from kdcal_core.audit.files import Files
from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.record import Record
from kdcal_core.audit.record_lines import followed
from kdcal_core.audit.report.page import html_report
from kdcal_core.audit.report.printing import pdf_report, png_of_first_page
from kdcal_core.audit.signing import Signed
from kdcal_core.progress import Progress, silent

Printed = Literal["pdf", "png"]
_PRINTERS = {"pdf": pdf_report, "png": png_of_first_page}


def recorded_report(record: Record, project: Project, audit: Audit) -> bytes:
    """The report of an audit as one HTML file, with a receipt if this machine may sign one.

    Raises
    ------
    InputError
        If the audit's files are gone or were altered.
    """
    receipt = _receipt(record, project, audit)
    return html_report(record.content(audit), audit, record.as_of(project, audit), receipt)


def _receipt(record: Record, project: Project, audit: Audit) -> dict[str, Any] | None:
    if not record.may_sign(project):
        return None
    return record.receipt(project.id, audit.id, as_of_audit=True)


def to_print(record: Record, project: Project, audit: Audit) -> dict[str, Any]:
    """What `print_recorded` needs of a record, as JSON values.

    Its worker does not know how to reach a database, because the address may hold a password.
    """
    lines = record.database.read(project.id)[: audit.history[-1].number]
    return {
        "files": str(record.files.folder),
        "project": project.id,
        "audit": audit.id,
        "lines": [signed.envelope() for _, signed in lines],
        "receipt": _receipt(record, project, audit),
    }


def print_recorded(
    files: str,
    project: str,
    audit: str,
    lines: list[dict[str, Any]],
    receipt: dict[str, Any] | None,
    kind: Printed,
    folder: str,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Print the report of an audit to `printed_file`; runs in a worker.

    Parameters
    ----------
    files, project, audit, lines, receipt
        Of `to_print`.

    Raises
    ------
    InputError
        As of `recorded_report`, and if there is no Chromium or it does not print.
    """
    progress(0.1, "Writing the report")
    read = tuple(enumerate(map(Signed.of, lines), 1))
    known = followed(project, None, lambda _: read)
    assert known is not None  # it has lines
    one = known.audits[audit]
    html = html_report(read_content(Files(Path(files)).get(one.facts.content)), one, known, receipt)
    progress(0.3, "Printing it")
    printed_file(Path(folder), kind).write_bytes(_PRINTERS[kind](html))
    return {}


def printed_file(folder: Path, kind: Printed) -> Path:
    """Where `print_recorded` leaves its file."""
    return folder / f"report.{kind}"
