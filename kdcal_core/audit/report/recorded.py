"""The report of an audit of a record: as HTML, or printed by a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.record import Record
from kdcal_core.audit.report.page import html_report
from kdcal_core.audit.report.printing import pdf_report, png_of_first_page
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
    receipt = None
    if record.may_sign(project):
        receipt = record.receipt(project.id, audit.id, as_of_audit=True)
    return html_report(record.content(audit), audit, record.as_of(project, audit), receipt)


def print_recorded(
    root: str, project: str, audit: str, kind: Printed, folder: str, progress: Progress = silent
) -> dict[str, Any]:
    """Print the report of an audit to `printed_file`; runs in a worker.

    Parameters
    ----------
    root : str
        The folder of audits.
    project, audit : str
        Their ids.

    Raises
    ------
    InputError
        As of `recorded_report`, and if there is no Chromium or it does not print.
    """
    record = Record(Path(root))
    known = record.project(project)
    progress(0.1, "Writing the report")
    html = recorded_report(record, known, known.audits[audit])
    record.database.close()
    progress(0.3, "Printing it")
    printed_file(Path(folder), kind).write_bytes(_PRINTERS[kind](html))
    return {}


def printed_file(folder: Path, kind: Printed) -> Path:
    """Where `print_recorded` leaves its file."""
    return folder / f"report.{kind}"
