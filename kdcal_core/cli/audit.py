"""``kdcal audit``: gates for pipelines, and the record of audits."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.cli.as_json import json_report
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
from kdcal_core.progress import silent
from kdcal_core.text import counted, printable

if TYPE_CHECKING:
    from kdcal_core.audit import Audit, AuditContent, ComparedAudits, Gate, Project, Record
    from kdcal_core.diagnostics import ChangedEstimate
    from kdcal_core.review import Review

_ALTERED = 1
_VERIFY = "Run 'kdcal audit verify'."
_NO_AUDIT = "There is no audit in the record yet."
_NO_AUDIT_OF_IT = "There is no audit in this project yet."
_UNREADABLE = "There is no audit that can be read."
RUN_FILES = ("audit.json", "gate.json", "report.html", "report.md", "receipt.json")
_SHORTEST = 4  # characters of an identifier that may be given
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
    project, audit = _find(_record(), gate.audit) if gate.audit else (None, None)
    write_file(out / "report.html", html_report(gate.content, audit, project, gate.receipt))
    write_file(out / "report.md", markdown_report(gate.content, audit, project).encode())
    if gate.receipt is not None:
        write_file(out / "receipt.json", json.dumps(gate.receipt, indent=2).encode())


def _init(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import AuditConfig, audit_settings, config_text, limits_of, subject_of
    from kdcal_core.audit.gate import with_question
    from kdcal_core.review import Workspace, check_files, scored_review

    tables = ("calibration", "evaluation", "training", "predictions")
    places = ("model", "signature", "signature_key", *tables)
    if options.review:
        review = Workspace().read(options.review)
        if not review.ready:
            raise InputError("The review has no scored rows", fix="Finish it on the Load page.")
        names = {"model": review.model.name} if review.model else {}
        names |= _signed_names(review)
        first = "calibration" if review.model else "predictions"
        names |= {
            first if which == "calibration" else which: one.name
            for which, one in review.tables.items()
        }
        names |= {"training": review.training.name} if review.training else {}
        foreign = [one.name for one in review.foreign.values()]
    else:
        files = named_files(options)
        if not files.target or not (files.data or files.predictions):
            raise InputError(
                "Neither a review nor files are given",
                fix="Give --review ID, or --target with --model and --data, or --predictions.",
            )
        check_files(files)
        config = AuditConfig("", files, event=files.event, groups=options.groups)
        with temporary_folder() as folder:
            workspace = Workspace(folder)
            review = with_question(workspace, scored_review(workspace, files), config, files)
        given = {one: getattr(files, one, None) for one in places} | {"calibration": files.data}
        names = {one: str(Path(path).absolute()) for one, path in given.items() if path}
        foreign = [str(Path(path).absolute()) for path in files.foreign]
    ordered = {one: names[one] for one in places if one in names}
    asked = audit_settings(review)
    text = config_text(
        subject_of(review, asked),
        limits_of(review.task, (), asked.limits),
        title=review.title,
        project=options.project or "",
        files=ordered,
        foreign=foreign,
    )
    check_out(options.out, (*ordered.values(), *foreign), force=options.force)
    keep_the_record(options.out)
    write_file(Path(options.out), text.encode())
    note = " Change the files' paths, which it does not know." if options.review else ""
    return Report(f"Wrote {printable(options.out, 200)}.{note}")


def _signed_names(review: Review) -> dict[str, str]:
    """The files of a signature of the review's model, which a gate verifies again."""
    signed = review.signature
    if review.model is None or signed is None or not signed.file:
        return {}
    key = {"signature_key": signed.key_name or "maker.pub"} if signed.key_file else {}
    return {"signature": signed.name or f"{review.model.name}.sig", **key}


def _list(options: argparse.Namespace) -> Report:
    record = _record()
    asked = [record.project(_project(record, options.project))] if options.project else None
    rows = [
        (
            audit.id[:_SHORT],
            project.name,
            audit.facts.title,
            audit.facts.verdict,
            audit.state,
            f"{audit.facts.n:,}",
            audit.drafted.when.at[:16].replace("T", " "),
        )
        for project in asked or record.projects()
        for audit in project.audits.values()
    ]
    hidden = () if asked else record.unreadable()
    if hidden:
        warn(f"{counted(len(hidden), 'project')} cannot be read. {_VERIFY}")
    if options.json:
        header = ("audit", "project", "title", "verdict", "state", "rows", "drafted")
        return Report(json.dumps([dict(zip(header, one, strict=True)) for one in rows], indent=2))
    if not rows:
        return Report(_UNREADABLE if hidden else _NO_AUDIT_OF_IT if asked else _NO_AUDIT)
    header = ("Audit", "Project", "Title", "Verdict", "State", "Rows", "Drafted, UTC")
    return Report(table(header, rows, left=(0, 1, 2, 3, 4, 6)))


def _show(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import event_text, limits_text

    record = _record()
    project, audit = _find(record, options.audit)
    if options.json:
        from kdcal_core.store import encode

        return Report(json.dumps(encode(audit), indent=2))
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
        return Report(f"{head}\n\nIts files were deleted. It said: {printable(facts.headline)}")
    return Report(f"{head}\n\n{_content_text(record.content(audit))}")


def _compare(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import compare_with_baseline, errors_of_content

    record = _record()
    names = (options.before, *options.after)
    contents = [_content(record, one) for one in names]
    with errors_of_content():
        found = compare_with_baseline(contents[0], contents[1:])
        if options.json:
            from kdcal_core.cli.audit_json import compared_values

            return json_report(compared_values(names, contents, found))
        if len(found) == 1:
            return Report(_compared_text(found[0]))
        return Report(_several_text(contents, found))


def _compared_text(found: ComparedAudits) -> str:
    """What changed between two audits, ready to print."""
    from kdcal_core.audit import compared_words
    from kdcal_core.charts import direction_text
    from kdcal_core.diagnostics import estimate_text, value_text

    parts = [printable(compared_words(found), 1000)]
    if found.facts:
        parts.append(table(("Changed", "Before", "After"), found.facts, left=(0, 1, 2)))
    verdicts = [
        (f"{one.code}", one.before or "not made", one.after or "not made")
        for one in found.verdicts
        if one.before != one.after
    ]
    if verdicts:
        parts.append(table(("Verdict of", "Before", "After"), verdicts, left=(0, 1, 2)))
    rows = [
        (one.name, value_text(one.before), value_text(one.after),
         estimate_text(one.difference, chance=False), direction_text(one.direction))
        for one in found.estimates
    ]  # fmt: skip
    header = ("Estimate", "Before", "After", "Difference", "Is")
    parts.append(table(header, rows, left=(0, 4)))
    same = "the same rows" if found.same_rows else "other rows"
    parts.append(f"Both were judged on {same}." if found.same_rows else f"They judged {same}.")
    return "\n\n".join(parts)


def _several_text(contents: Sequence[AuditContent], found: Sequence[ComparedAudits]) -> str:
    """What changed from one audit to each of several, ready to print."""
    from kdcal_core.audit import compared_words, estimates_beside, facts_beside, verdicts_beside
    from kdcal_core.charts import direction_text
    from kdcal_core.diagnostics import estimate_text, value_text

    def said(one: ChangedEstimate) -> str:
        found = estimate_text(one.difference, chance=False)
        return f"{found}, {direction_text(one.direction)}"

    letters = [chr(ord("A") + at) if at < 26 else f"A{at}" for at in range(len(contents))]
    where = [
        "",
        *(", the same rows as A" if one.same_rows else ", other rows than A" for one in found),
    ]
    parts = [
        "\n".join(
            printable(f"{letter} is {one.title}{more}.", 200)
            for letter, one, more in zip(letters, contents, where, strict=True)
        ),
        "\n".join(
            printable(compared_words(one, letters[0], letter), 1000)
            for letter, one in zip(letters[1:], found, strict=True)
        ),
    ]
    left = tuple(range(len(letters) + 1))
    facts = [
        (one.name, one.before, *one.after) for one in facts_beside([one.facts for one in found])
    ]
    if facts:
        parts.append(table(("Changed", *letters), facts, left=left))
    verdicts = [
        tuple(one or "not made" for one in (each.name, each.before, *each.after))
        for each in verdicts_beside(contents)
        if set(each.after) != {each.before}
    ]
    if verdicts:
        parts.append(table(("Verdict of", *letters), verdicts, left=left))
    rows = [
        (
            each.name,
            value_text(each.before),
            *("" if one is None else said(one) for one in each.after),
        )
        for each in estimates_beside([one.estimates for one in found])
    ]
    header = ("Estimate", "A", *(f"{letter} minus A" for letter in letters[1:]))
    parts.append(table(header, rows, left=left))
    parts.append(
        "Each interval is for its difference alone. What is better or worse allows for the number "
        "of all differences here (Holm)."
    )
    return "\n\n".join(parts)


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
    record = _record()
    project, audit = _find(record, options.audit)
    if kind == ".md":
        as_of = record.as_of(project, audit)
        made = markdown_report(record.content(audit), audit, as_of).encode()
    else:
        made = recorded_report(record, project, audit)
        printers = {".pdf": pdf_report, ".png": png_of_first_page}
        made = printers[kind](made) if kind in printers else made
    write_file(Path(options.out), made)
    return Report(f"Wrote {printable(options.out, 200)}.")


def _verify(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import key_there, verify

    record = _record()
    receipts = [(_receipt_of(read := _json_file(one), one), read) for one in options.receipt]
    keys = [_json_file(one) for one in options.key]
    projects = [_project(record, options.project)] if options.project else (
        sorted({*record.database.projects(), *record.pins.projects()})
    )  # fmt: skip
    checks = [
        verify(record, project, receipts=[one for of, one in receipts if of == project], keys=keys)
        for project in projects
    ]
    # a receipt of something else says nothing about the record
    strange = [of for of, _ in receipts if of not in projects]
    code = 0 if all(one.holds for one in checks) and not strange else _ALTERED
    names = _names(record, strange)
    if options.json:
        values = [{**asdict(one), "holds": one.holds} for one in checks]
        others = [{"project": of, "name": names.get(of)} for of in strange]
        return json_report(
            {"holds": code == 0, "projects": values, "receipts_of_others": others}, code
        )
    lines, own = [], key_there(record.root)
    for project, found in zip(projects, checks, strict=True):
        checked = ", ".join(
            (
                counted(found.n_entries, "entry", "entries"),
                counted(found.n_files, "file"),
                counted(found.n_receipts, "receipt"),
            )
        )
        mark = "holds" if found.holds else "was altered"
        if found.newer and not found.altered:
            mark = "cannot be checked whole"
        lines.append(f"{found.name or project}: {mark} ({checked})")
        lines += [f"  Key {one}{' (of this machine)' * (one == own)}" for one in found.keys]
        lines += [f"  {one}" for one in (*found.altered, *found.newer, *found.noticed)]
    for of in strange:
        where = "was not asked for" if of in names else "is not in the record"
        lines.append(f"A receipt is of the project {names.get(of, of)}, which {where}.")
    text = "\n".join(printable(one, 400) for one in lines) or "There is no project in the record."
    return Report(text, code)


def _receipt_of(receipt: Any, file: str) -> str:
    from kdcal_core.audit import receipt_project

    try:
        return receipt_project(receipt)
    except InputError as error:
        raise error.at(file=file) from error


def _export(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import export_project

    check_out(options.out, (), force=options.force)
    keep_the_record(options.out)
    record = _record()
    n = export_project(record, _project(record, options.project), Path(options.out))
    if options.json:
        return json_report({"project": options.project, "entries": n, "out": options.out})
    return Report(f"Wrote {counted(n, 'entry', 'entries')} to {printable(options.out, 200)}.")


def _import(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import import_project

    record = _record()
    project = record.project(import_project(record, Path(options.file)))
    if options.json:
        return json_report({"project": project.name, "id": project.id, "entries": project.number})
    return Report(
        f"The project {printable(project.name, 80)} is in the record, with "
        f"{counted(project.number, 'entry', 'entries')}."
    )


def _backup(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import back_up

    check_out(options.file, (), force=options.force)
    keep_the_record(options.file)
    with progress_line() as progress:
        made = back_up(
            _record(), Path(options.file), with_key=options.with_key, progress=progress or silent
        )
    if options.json:
        return json_report({**asdict(made), "with_key": options.with_key, "out": options.file})
    key = (
        "It holds the key that signs: whoever has the file can write in your name."
        if options.with_key
        else "The key that signs is not in it: keep a copy of the key elsewhere."
    )
    return Report(f"Wrote {made.words} to {printable(options.file, 200)}. {key}")


def _restore(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import restore

    with progress_line() as progress:
        found = restore(Path(options.file), replace=options.replace, progress=progress or silent)
    if options.json:
        return json_report(
            {
                **asdict(found.backup),
                "folder": str(found.root),
                "aside": None if found.aside is None else str(found.aside),
                "schema": found.schema or None,
                "key": found.key,
            }
        )
    said = [f"Restored {found.backup.words} to {printable(found.root, 200)}."]
    if found.aside is not None:
        said.append(f"The folder of before lies in {printable(found.aside, 200)}.")
    if found.schema:
        said.append(f"The tables of before are in the schema {found.schema} of the database.")
    said += [_KEYS[found.key], "Now verify it with the receipts that you kept."]
    return Report(" ".join(said))


_KEYS = {
    "backup": "The key that signs is that of the backup.",
    "kept": "The key that signs is the one that was here before.",
    "none": "There is no key: put your copy beside the database, or admit this machine's key.",
}


def _admit(options: argparse.Namespace) -> Report:
    record, key = _record(), _json_file(options.key)
    project = _project(record, options.project)
    who, named = record.acting(record.project(project)), printable(options.project, 80)
    if not options.role:
        number = record.admit(project, key, who)
        return Report(f"Entry {number}: the key may sign in {named}.")
    number = record.add_key(project, key, options.name or Path(options.key).stem, options.role, who)
    return Report(f"Entry {number}: the key is a member of {named}, as its {options.role}.")


def _key(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import root_of_audits, signer_of

    return Report(json.dumps(signer_of(root_of_audits()).public, indent=2))


def _notify(options: argparse.Namespace) -> Report:
    from kdcal_core.audit import Outbox, configured_channels, deliver_due, require_channels

    require_channels()
    if options.test:
        return _tested()
    record = _record()
    outbox = Outbox(record.database)
    if options.again:
        outbox.begin_again(configured_channels(), time.time())
    done = deliver_due(record)
    left = outbox.messages()
    lines = [f"Sent {counted(done.sent, 'message')}."]
    if left:
        names = _names(record, {one.project for one in left})
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
    return Report("\n".join(lines), 1 if any(one.said for one in left) else 0)


def _tested() -> Report:
    from kdcal_core.audit import now, send_test

    found = send_test(now().at)
    said = [
        f"By {channel}: the test message was {'not sent. ' + why + '.' if why else 'accepted.'}"
        for channel, why in found.items()
    ]
    return Report("\n".join(printable(one, 600) for one in said), int(any(found.values())))


def _at(seconds: int) -> str:
    if seconds <= time.time():
        return "now"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def deliver(record: Record | None = None) -> None:
    """Tell people, where that is configured, and wait some seconds for it at most."""
    from kdcal_core.audit import configured_channels, deliver_before_exit

    if configured_channels():
        with suppress(InputError):  # what was recorded holds without it
            deliver_before_exit(record or _record())


def _step(make: Callable[[Any, str, str], Any]) -> Callable[[argparse.Namespace], Report]:
    """An action that adds an event to an audit."""

    def carry_out(options: argparse.Namespace) -> Report:
        from kdcal_core import audit as room

        if options.receipt:
            check_out(options.receipt, ())
            keep_the_record(options.receipt)
        record = _record()
        project, audit = _find(record, options.audit)
        number = record.write(
            project.id, make(room, audit.id, options.words or ""), record.acting(project)
        )
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


_ACTIONS: dict[str, Callable[[argparse.Namespace], Report]] = {
    "run": _run,
    "init": _init,
    "list": _list,
    "show": _show,
    "compare": _compare,
    "report": _report,
    "verify": _verify,
    "export": _export,
    "import": _import,
    "backup": _backup,
    "restore": _restore,
    "key": _key,
    "admit": _admit,
    "notify": _notify,
    "submit": _step(lambda room, audit, words: room.AuditSubmitted(audit)),
    "approve": _step(lambda room, audit, words: room.AuditApproved(audit, words)),
    "reject": _step(lambda room, audit, words: room.AuditRejected(audit, words)),
    "comment": _step(lambda room, audit, words: room.Commented(audit, words)),
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
    ]
    doubts = [f"Warning: {printable(one, 600)}" for one in content.subject.doubts]
    return "\n\n".join(["\n".join(doubts), *parts] if doubts else parts)


def _record() -> Record:
    from kdcal_core.audit import Record

    return Record()


def _find(record: Record, name: str) -> tuple[Project, Audit]:
    """The audit whose id begins so."""
    found = [
        (project, audit)
        for project, audit in record.audits_like(name)
        if audit.id == name or len(name) >= _SHORTEST
    ]
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{'No' if not found else 'More than one'} audit has an id that begins with {name[:40]!r}",
        fix="Choose one of 'kdcal audit list'."
        + f" A project cannot be read, too. {_VERIFY}" * bool(not found and record.unreadable()),
    )


def _names(record: Record, projects: Iterable[str]) -> dict[str, str]:
    """The names of those of the projects, given by their ids, that can be read."""
    found = {}
    for one in projects:
        with suppress(InputError):
            found[one] = record.project(one).name
    return found


def _content(record: Record, name: str) -> AuditContent:
    """The content of an audit: of the file of this name, or of the record."""
    from kdcal_core.audit import read_content

    if Path(name).is_file():
        try:
            return read_content(Path(name).read_bytes())
        except InputError as error:
            raise error.at(file=name) from error
    return record.content(_find(record, name)[1])


def _project(record: Record, name: str) -> str:
    found = record.named(name)
    if found is None:
        names = [one.name for one in record.projects()]
        raise InputError(
            f"There is no project {name[:80]!r}",
            fix=f"The projects are: {', '.join(one[:80] for one in names[:20]) or 'none yet'}.",
        )
    return found.id


def _json_file(name: str) -> Any:
    try:
        return json.loads(Path(name).read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError("The file is not JSON", fix="Give it unchanged.", file=name) from error
