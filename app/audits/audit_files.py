"""Files of an audit to download, and whether its record holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.shared import job_results, session, sign_in
from app.shared.charts import file_stem
from app.shared.emphasis import quiet
from app.shared.kept import by_digest
from kdcal_core import __version__
from kdcal_core.audit import Audit, Project, Record, Verified, short, verify
from kdcal_core.errors import InputError
from kdcal_core.jobs import job_key
from kdcal_core.tasks import Request
from kdcal_core.text import counted, escape_markdown, listed

if TYPE_CHECKING:
    from kdcal_core.audit.report import Printed

_MOST_SAID = 20
_PRINTED: tuple[tuple[Printed, str, str], ...] = (
    ("pdf", "a PDF of the report", "application/pdf"),
    ("png", "a picture of its first page", "image/png"),
)


def report_of(record: Record, project: Project, audit: Audit) -> bytes:
    """The report of an audit as one HTML file."""
    from kdcal_core.audit.report import recorded_report  # only a download needs it

    return recorded_report(record, project, audit)


def printed(record: Record, project: Project, audit: Audit, stem: str) -> None:
    """The report as PDF, or its first page as a picture, printed by a job where Chromium is."""
    from kdcal_core.audit.report import can_print, printed_file

    if not can_print():
        return
    for kind, label, mime in _PRINTED:
        asked = _print_request(record, project, audit, kind)
        job = job_results.finished(
            asked,
            audit.id,
            offer=partial(
                st.button, f"Make {label}", key=f"audit_print_{kind}", icon=":material/print:"
            ),
        )
        if job is not None and job.folder is not None:
            made = printed_file(job.folder, kind)
            st.download_button(
                f"Report ({kind.upper()})",
                data=sign_in.while_it_lasts(made.read_bytes),
                file_name=f"{stem}-report.{kind}",
                mime=mime,
                key=f"audit_report_{kind}",
                icon=":material/download:",
                on_click="ignore",
            )


def _print_request(record: Record, project: Project, audit: Audit, kind: Printed) -> Request:
    """The job that prints an audit's report as it is after its last entry."""
    target = "kdcal_core.audit.report.recorded:print_recorded"
    as_of = record.as_of(project, audit)
    asked = {"root": str(record.root), "project": project.id, "audit": audit.id, "kind": kind}
    key = job_key(target, asked, as_of.head or "", f"{as_of.number}", __version__)
    kwargs = _to_print(
        *(str(record.root), as_of.head, audit.id), record=record, project=project, audit=audit
    )
    return Request(target, {**kwargs, "kind": kind}, key, "Audit: printing the report")


@by_digest
def _to_print(
    root: str, head: str | None, of: str, *, record: Record, project: Project, audit: Audit
) -> dict[str, Any]:
    """What a worker needs to print an audit that has this last entry."""
    from kdcal_core.audit.report import to_print

    return to_print(record, project, audit)


def downloads(record: Record, project: Project, audit: Audit) -> None:
    """What the audit found, a receipt for it, and its report."""
    stem = file_stem(f"{project.name} {audit.facts.title}")
    with st.popover("Download", icon=":material/download:", type=quiet()):
        if audit.has_files:
            _file(
                "Report (HTML)",
                partial(report_of, record, project, audit),
                f"{stem}-report.html",
                "audit_report",
            )
            printed(record, project, audit, stem)
            _file(
                "What was found (JSON)",
                lambda: record.files.get(audit.facts.content),
                f"{stem}-audit.json",
                "audit_json",
            )
        _file(
            "Receipt (JSON)",
            lambda: json.dumps(record.receipt(project.id, audit.id), indent=1).encode(),
            f"{stem}-receipt.json",
            "audit_receipt",
        )
        st.caption(
            "A receipt states how far the record goes now. Keep it elsewhere: it shows later "
            "whether the record was shortened or replaced."
        )


def _file(label: str, make: Callable[[], bytes], name: str, key: str) -> None:
    st.download_button(
        label,
        data=sign_in.while_it_lasts(make),
        file_name=name,
        mime="text/html" if name.endswith("html") else "application/json",
        key=key,
        icon=":material/download:",
        on_click="ignore",
    )


def verification(record: Record, project: Project, audit: Audit) -> None:
    """A button that checks the whole record of the project, with receipts that were kept."""
    st.markdown(
        "This checks every signature, the order of all entries, the rules that they follow, every "
        "file against its digest, and the record against what this machine knew of it when it last "
        "wrote to it. A receipt that was kept elsewhere also shows that the record was shortened, "
        "written anew or replaced where somebody could change this machine's files too."
    )
    given = st.file_uploader(
        "Receipts (optional)",
        type=["json"],
        accept_multiple_files=True,
        max_upload_size=1,
        key="audit_receipts",
    )
    if not st.button("Verify this record", key="audit_verify", icon=":material/policy:"):
        return
    try:
        receipts = [_receipt(one) for one in given]
        with st.spinner("Checking every entry and file"):
            found = verify(record, project.id, receipts=receipts)
    except InputError as error:
        session.error_box(error, of_action=True)
        return
    said(found)


def _receipt(file: Any) -> Any:
    try:
        return json.loads(file.getvalue())
    except (ValueError, RecursionError) as error:
        raise InputError(
            "This is no receipt",
            fix="Give a file that the button Receipt wrote, unchanged.",
            file=file.name,
        ) from error


def said(found: Verified) -> None:
    """What a check of the record found, in words."""
    checked = listed(
        [
            counted(found.n_entries, "entry", "entries"),
            counted(found.n_files, "file"),
            *([counted(found.n_receipts, "receipt")] if found.n_receipts else []),
        ]
    )
    if found.holds:
        keys = listed([short(one) for one in found.keys])
        st.success(
            f"The record holds. {checked} were checked and nothing was altered. Signed with "
            f"{'the key' if len(found.keys) == 1 else 'the keys'} {escape_markdown(keys, 400)}.",
            icon=":material/verified_user:",
        )
    if found.altered:
        _sentences(st.error, f"The record does not hold. {checked} were checked.", found.altered)
    if found.newer:
        first = f"The record cannot be checked whole. {checked} were looked at."
        _sentences(st.warning, first, found.newer)
    if found.noticed:
        _sentences(st.info, "Worth knowing:", found.noticed)


def _sentences(box: Callable[[str], Any], first: str, sentences: tuple[str, ...]) -> None:
    shown = [f"- {escape_markdown(one, 600)}" for one in sentences[:_MOST_SAID]]
    rest = len(sentences) - len(shown)
    more = [f"- {rest:,} more"] if rest else []
    box("\n".join([first, "", *shown, *more]))
