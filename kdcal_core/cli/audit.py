"""``kdcal audit``: gates for pipelines, and the way of one audit through the record."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.cli.as_json import json_report
from kdcal_core.cli.audit_compare import compare
from kdcal_core.cli.audit_keeping import (
    admit_key,
    back_up_record,
    expire_files,
    export_record,
    import_record,
    print_key,
    restore_record,
    verify_record,
)
from kdcal_core.cli.audit_named import VERIFY, find_audit, names_of, project_id, the_record
from kdcal_core.cli.gate_outputs import check_outs, keep_the_record
from kdcal_core.cli.review_of_options import named_files
from kdcal_core.cli.terminal import (
    Report,
    check_out,
    progress_line,
    table,
    temporary_folder,
    warn,
    write_file,
)
from kdcal_core.errors import InputError
from kdcal_core.text import counted, printable

if TYPE_CHECKING:
    from kdcal_core.audit import Audit, AuditConfig, AuditContent, Gate, Record
    from kdcal_core.review import Review

_NO_AUDIT = "There is no audit in the record yet."
_NO_AUDIT_OF_IT = "There is no audit in this project yet."
_UNREADABLE = "There is no audit that can be read."
RUN_FILES = ("audit.json", "gate.json", "report.html", "report.md", "receipt.json")
_SHORT = 8  # characters of an identifier that are shown


def run(options: argparse.Namespace) -> Report:
    """Carry out ``kdcal audit`` with one of its actions.

    Raises
    ------
    InputError
        For input that cannot be used.
    """
    return _ACTIONS[options.action](options)


def _run(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import gate_junit, json_text, read_config, run_gate

    if options.all:
        from kdcal_core.cli.audit_all import run_all

        return run_all(options)
    config = read_config(Path(options.config))
    out = check_outs(options.out, RUN_FILES, options.junit, (options.config, *config.reads))
    with progress_line() as progress:
        gate = run_gate(config, progress=progress)
    if out is not None:
        write_gate(gate, out)
    if options.junit:
        write_file(Path(options.junit), gate_junit(gate).encode("utf-8", "replace"))
    if gate.audit:
        deliver()
    if options.json:
        return Report(json_text(gate).rstrip(), gate.exit_code, asked=True)
    said = [_content_text(gate.content)]
    if gate.audit:
        said.append(f"Recorded in project {printable(config.project, 80)} as {gate.audit}.")
    if out is not None:
        said.append(f"Wrote {printable(out, 200)}.")
    return Report("\n\n".join(said), gate.exit_code)


def write_gate(gate: Gate, out: Path) -> None:
    """Write the files of a gate into a folder."""
    from kdcal_core.audit import content_bytes, json_text
    from kdcal_core.audit.report import html_report, markdown_report

    write_file(out / "audit.json", content_bytes(gate.content))
    write_file(out / "gate.json", json_text(gate).encode())
    project, audit = find_audit(the_record(), gate.audit) if gate.audit else (None, None)
    write_file(out / "report.html", html_report(gate.content, audit, project, gate.receipt))
    write_file(out / "report.md", markdown_report(gate.content, audit, project).encode())
    if gate.receipt is not None:
        write_file(out / "receipt.json", json.dumps(gate.receipt, indent=2).encode())


def _init(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import AuditConfig, audit_settings, config_text, limits_of, subject_of
    from kdcal_core.review import Workspace

    tables = ("calibration", "evaluation", "training", "predictions")
    places = ("model", "signature", "signature_key", *tables)
    if options.review:
        review = Workspace().read(options.review)
        if not review.ready:
            raise InputError("The review has no scored rows", fix="Finish it on the Load page.")
        names: dict[str, Any] = {"model": review.model.name} if review.model else {}
        names |= _signed_names(review)
        first = "calibration" if review.model else "predictions"
        names |= {
            first if which == "calibration" else which: one.name
            for which, one in review.tables.items()
        }
        names |= {"training": review.training.name} if review.training else {}
        foreign = [one.name for one in review.foreign.values()]
        reads = (*names.values(), *foreign)
    else:
        files = named_files(options)
        if files.predictions and not files.target:
            raise InputError(
                "The predictions have no --target", fix="Name the column of what happened."
            )
        if not files.target or not (files.data or files.predictions):
            raise InputError(
                "Neither a review nor files are given",
                fix="Give --review ID, or --target with --model and --data, or --predictions.",
            )
        config = AuditConfig("", files, event=files.event, groups=options.groups)
        with temporary_folder() as folder:
            review = _first_look(config, folder)
        reads = config.reads
        given = {one: getattr(files, one, None) for one in places} | {"calibration": files.data}
        home = Path(options.out).absolute().parent
        names = {one: _from_all(home, path) for one, path in given.items() if path}
        foreign = [_from(home, path) for path in files.foreign]
    ordered = {one: names[one] for one in places if one in names}
    asked = audit_settings(review)
    open_questions = [one for one in review.doubts if one.about in ("cluster", "time")]
    text = config_text(
        subject_of(review, asked),
        limits_of(review.task, (), asked.limits),
        title=review.title,
        project=options.project or "",
        files=ordered,
        foreign=foreign,
        dependence=[
            (doubt.about, one.answer)
            for doubt in open_questions
            for one in doubt.choices
            if one.answer
        ],
    )
    check_out(options.out, reads, force=options.force)
    keep_the_record(options.out)
    write_file(Path(options.out), text.encode())
    if options.json:
        given = {**ordered, **({"foreign": foreign} if foreign else {})}
        return json_report({"out": options.out, "review": options.review, "files": given})
    note = " Change the files' paths, which it does not know." if options.review else ""
    asks = "".join(f" {printable(one.sentence, 600)}" for one in open_questions)
    return Report(f"Wrote {printable(options.out, 200)}.{note}{asks}")


def _first_look(config: AuditConfig, folder: Path) -> Review:
    """The scored review of the files that a configuration names; of a folder, of some rows."""
    from kdcal_core.audit.gate_files import with_question
    from kdcal_core.data.parquet_folder import allowed_roots, name_of_parted
    from kdcal_core.review import Workspace, check_files, scored_review
    from kdcal_core.review.folder_review import is_folder, sampled_review

    workspace, files = Workspace(folder / "reviews"), config.files
    if is_folder(files):
        sample = folder / "sample"
        sample.mkdir()
        review, _ = sampled_review(workspace, files, sample, allowed_roots() or None)
    else:
        check_files(files)
        review = scored_review(workspace, files)
    asked = with_question(workspace, review, config, files)
    if is_folder(files):  # not of the sample of its rows
        return replace(asked, title=asked.title if files.model else name_of_parted(files.rows))
    return asked


def _from_all(home: Path, paths: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """As `_from`, of several files where there are several."""
    return _from(home, paths) if isinstance(paths, str) else tuple(_from(home, p) for p in paths)


def _from(home: Path, path: str) -> str:
    """A file's path relative to the configuration's folder, where the two move together.

    They do where the file lies beneath that folder, or both beneath the working directory.
    Elsewhere the path is absolute.
    """
    with suppress(ValueError):  # on another drive
        near = Path(os.path.relpath(path, home))
        here = [Path(os.path.relpath(one)) for one in (path, home)]
        together = ".." not in near.parts or not any(".." in one.parts for one in here)
        # a link to a folder leads ".." elsewhere
        if together and (home / near).resolve() == Path(path).resolve():
            return near.as_posix()
    return str(Path(path).absolute())


def _signed_names(review: Review) -> dict[str, str]:
    """The files of a signature of the review's model, which a gate verifies again."""
    signed = review.signature
    if review.model is None or signed is None or not signed.file:
        return {}
    key = {"signature_key": signed.key_name or "maker.pub"} if signed.key_file else {}
    return {"signature": signed.name or f"{review.model.name}.sig", **key}


def _list(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import audit_title

    record = the_record()
    asked = [record.project(project_id(record, options.project))] if options.project else None
    found = [
        (project, audit)
        for project in asked or record.projects()
        for audit in project.audits.values()
    ]
    hidden = () if asked else record.unreadable()
    if hidden:
        warn(f"{counted(len(hidden), 'project')} cannot be read. {VERIFY}")
    if options.json:
        values = [
            {
                "audit": audit.id,
                "project": project.name,
                "title": audit.facts.title,
                "calibrator": audit.facts.calibrator,
                "verdict": audit.facts.verdict,
                "state": audit.state,
                "rows": audit.facts.n,
                "model": audit.facts.model,
                "judged": audit.facts.rows,
                "drafted": audit.drafted.when.at,
            }
            for project, audit in found
        ]
        return json_report(values)
    if not found:
        none = _UNREADABLE if hidden else _NO_AUDIT_OF_IT if asked else _NO_AUDIT
        return Report(none, asked=True)
    header = ("Audit", "Project", "Title", "Verdict", "State", "Rows", "Drafted, UTC")
    rows = [
        (
            audit.id[:_SHORT],
            project.name,
            audit_title(audit),
            audit.facts.verdict,
            audit.state,
            f"{audit.facts.n:,}",
            _minute(audit),
        )
        for project, audit in found
    ]
    return Report(table(header, rows, left=(0, 1, 2, 3, 4, 6)), asked=True)


def _minute(audit: Audit) -> str:
    return audit.drafted.when.at[:16].replace("T", " ")


def _show(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import event_text, limits_text

    record = the_record()
    project, audit = find_audit(record, options.audit)
    if options.json:
        from kdcal_core.store import encode

        return json_report(encode(audit))
    facts = audit.facts
    lines = [
        f"Project {project.name}, audit {audit.id}: {audit.state}",
        limits_text(audit, project),
        *(
            f"{one.number}. {one.when.at} {one.who.name} ({one.who.believed}): "
            f"{event_text(one, project, audit)}"
            for one in audit.history
        ),
        *(
            f"Finding ({one.severity}, {one.state}): {one.title}"
            + f", {one.owner}" * bool(one.owner)
            + f", due {one.due}" * bool(one.due)
            for one in audit.findings.values()
        ),
    ]
    head = "\n".join(printable(one, 300) for one in lines)
    if not audit.has_files:
        gone = f"Its files were deleted. It said: {printable(facts.headline)}"
        return Report(f"{head}\n\n{gone}", asked=True)
    return Report(f"{head}\n\n{_content_text(record.content(audit))}", asked=True)


_REPORTS = (".html", ".md", ".pdf", ".png")


def _report(options: argparse.Namespace) -> Report:
    from kdcal_core.audit.report import (
        markdown_report,
        pdf_report,
        png_of_first_page,
        recorded_report,
    )

    check_out(options.out, (), force=options.force)
    keep_the_record(options.out)
    kind = Path(options.out).suffix.lower()
    if kind not in _REPORTS:
        raise InputError(
            f"The suffix {kind!r} names no report",
            fix=f"Name the file {', '.join(_REPORTS[:-1])} or {_REPORTS[-1]}.",
            file=options.out,
        )
    record = the_record()
    project, audit = find_audit(record, options.audit)
    if kind == ".md":
        as_of = record.as_of(project, audit)
        made = markdown_report(record.content(audit), audit, as_of).encode()
    else:
        made = recorded_report(record, project, audit)
        printers = {".pdf": pdf_report, ".png": png_of_first_page}
        made = printers[kind](made) if kind in printers else made
    write_file(Path(options.out), made)
    if options.json:
        said = {"project": project.name, "audit": audit.id, "out": options.out}
        return json_report({**said, "sha256": hashlib.sha256(made).hexdigest()})
    return Report(f"Wrote {printable(options.out, 200)}.")


def _notify(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import Outbox, configured_channels, deliver_due, require_channels

    require_channels()
    if options.test:
        return _tested(options)
    record = the_record()
    outbox = Outbox(record.database)
    if options.again:
        outbox.begin_again(configured_channels(), time.time())
    done = deliver_due(record)
    left = outbox.messages()
    code = 1 if any(one.said for one in left) else 0
    names = names_of(record, {one.project for one in left})
    if options.json:
        values = [
            {
                "project": names.get(one.project, one.project),
                "entry": one.number,
                "channel": one.channel,
                "tries": one.tries,
                "due": None if one.given_up else one.due,
                "why": one.said,
            }
            for one in left
        ]
        return json_report({"sent": done.sent, "left": values}, code)
    lines = [f"Sent {counted(done.sent, 'message')}."]
    if left:
        rows = [
            (
                "given up" if one.given_up else _at(one.due),
                one.channel,
                names.get(one.project, one.project),
                f"{one.number}",
                f"{one.tries}",
                one.said or "is being sent, or waits",
            )
            for one in left
        ]
        header = ("Next try, UTC", "By", "Project", "Entry", "Tries", "Why it did not arrive")
        lines += ["", table(header, rows, left=(0, 1, 2, 5))]
    if any(one.given_up for one in left):
        lines += ["", "'kdcal audit notify --again' tries again what was given up."]
    return Report("\n".join(lines), code)


def _tested(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import now, send_test

    found = send_test(now().at)
    code = int(any(found.values()))
    if options.json:
        tests = [{"channel": one, "accepted": not why, "why": why} for one, why in found.items()]
        return json_report({"tests": tests}, code)
    said = [
        f"By {channel}: the test message was {'not sent. ' + why + '.' if why else 'accepted.'}"
        for channel, why in found.items()
    ]
    return Report("\n".join(printable(one, 600) for one in said), code)


def _at(seconds: int) -> str:
    if seconds <= time.time():
        return "now"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def deliver(record: Record | None = None) -> None:
    """Tell people, where that is configured, and wait some seconds for it at most."""
    from kdcal_core.audit import configured_channels, deliver_before_exit

    if configured_channels():
        with suppress(InputError):  # what was recorded holds without it
            deliver_before_exit(record or the_record())


def _step(
    make: Callable[[Any, str, argparse.Namespace], Any],
) -> Callable[[argparse.Namespace], Report]:
    """An action that adds an event to an audit."""

    def carry_out(options: argparse.Namespace) -> Report:
        from kdcal_core import audit as room

        if options.receipt:
            check_out(options.receipt, ())
            keep_the_record(options.receipt)
        record = the_record()
        project, audit = find_audit(record, options.audit)
        number = record.write(project.id, make(room, audit.id, options), record.acting(project))
        state = record.project(project.id).audits[audit.id].state
        if options.receipt:
            receipt = json.dumps(record.receipt(project.id, audit.id), indent=2)
            try:
                write_file(Path(options.receipt), receipt.encode())
            except InputError as error:
                raise InputError(
                    f"Entry {number} is kept, and the audit is {state}, but there is no receipt of "
                    f"it. {error.what}",
                    fix="Download a receipt on the page Audits.",
                    file=options.receipt,
                ) from error
        deliver(record)
        if options.json:
            said = {"entry": number, "project": project.name, "audit": audit.id, "state": state}
            return json_report({**said, "receipt": options.receipt})
        return Report(f"Entry {number}: the audit {audit.id} is {state}.")

    return carry_out


def _superseded(room: Any, audit: str, options: argparse.Namespace) -> Any:
    """The event of an audit whose place another one of the record takes."""
    return room.AuditSuperseded(audit, find_audit(the_record(), options.by)[1].id)


_ACTIONS: dict[str, Callable[[argparse.Namespace], Report]] = {
    "run": _run,
    "init": _init,
    "list": _list,
    "show": _show,
    "compare": compare,
    "report": _report,
    "verify": verify_record,
    "export": export_record,
    "import": import_record,
    "backup": back_up_record,
    "restore": restore_record,
    "expire": expire_files,
    "key": print_key,
    "admit": admit_key,
    "notify": _notify,
    "submit": _step(lambda room, audit, _: room.AuditSubmitted(audit)),
    "approve": _step(lambda room, audit, given: room.AuditApproved(audit, given.words)),
    "reject": _step(lambda room, audit, given: room.AuditRejected(audit, given.words)),
    "supersede": _step(_superseded),
    "comment": _step(lambda room, audit, given: room.Commented(audit, given.words)),
}


def _content_text(content: AuditContent) -> str:
    """An audit's verdict and checks, ready to print."""
    from kdcal_core.audit import errors_of_content
    from kdcal_core.checks import evidence_text, result_text

    rows = []
    with errors_of_content():
        for one in content.checked.results:
            more = evidence_text(one, one.worst) if one.parts else ""
            rows.append((one.verdict or "no answer", one.code, f"{one.check.title}. "
                         f"{result_text(one)}{'. ' if more else ''}{more}"))  # fmt: skip
    parts = [
        printable(content.headline, 600),
        table(("Verdict", "Check", "What was found"), rows, left=(0, 1, 2)),
        printable(content.next_step, 800),
        *filter(None, [content.baseline_text]),
    ]
    doubts = [f"Warning: {printable(one, 600)}" for one in content.subject.doubts]
    return "\n\n".join(["\n".join(doubts), *parts] if doubts else parts)
