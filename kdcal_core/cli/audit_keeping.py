"""Commands that keep the record of audits: verify, move, back up, restore, expire, and keys."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kdcal_core.cli.as_json import json_report
from kdcal_core.cli.audit_named import json_file, names_of, project_id, the_record
from kdcal_core.cli.gate_outputs import keep_the_record
from kdcal_core.cli.terminal import Report, check_out, progress_line
from kdcal_core.errors import InputError
from kdcal_core.progress import silent
from kdcal_core.text import counted, printable

_ALTERED = 1


def verify_record(options: argparse.Namespace) -> Report:
    """Hold the record against its files, receipts and keys; code 1 where it was altered."""
    from kdcal_core.audit import key_there, verify

    record = the_record()
    receipts = [(_receipt_of(read := json_file(one), one), read) for one in options.receipt]
    keys = [json_file(one) for one in options.key]
    projects = [project_id(record, options.project)] if options.project else (
        sorted({*record.database.projects(), *record.pins.projects()})
    )  # fmt: skip
    checks = [
        verify(record, project, receipts=[one for of, one in receipts if of == project], keys=keys)
        for project in projects
    ]
    # a receipt of something else says nothing about the record
    strange = [of for of, _ in receipts if of not in projects]
    code = 0 if all(one.holds for one in checks) and not strange else _ALTERED
    names = names_of(record, strange)
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


def export_record(options: argparse.Namespace) -> Report:
    """Write a project into a file."""
    from kdcal_core.audit import export_project

    check_out(options.out, (), force=options.force)
    keep_the_record(options.out)
    record = the_record()
    n = export_project(record, project_id(record, options.project), Path(options.out))
    if options.json:
        return json_report({"project": options.project, "entries": n, "out": options.out})
    return Report(f"Wrote {counted(n, 'entry', 'entries')} to {printable(options.out, 200)}.")


def import_record(options: argparse.Namespace) -> Report:
    """Read a project from a file."""
    from kdcal_core.audit import import_project

    record = the_record()
    project = record.project(import_project(record, Path(options.file)))
    if options.json:
        return json_report({"project": project.name, "id": project.id, "entries": project.number})
    return Report(
        f"The project {printable(project.name, 80)} is in the record, with "
        f"{counted(project.number, 'entry', 'entries')}."
    )


def back_up_record(options: argparse.Namespace) -> Report:
    """Write the whole record into a file."""
    from kdcal_core.audit import back_up

    check_out(options.file, (), force=options.force)
    keep_the_record(options.file)
    with progress_line() as progress:
        made = back_up(
            the_record(), Path(options.file), with_key=options.with_key, progress=progress or silent
        )
    if options.json:
        return json_report({**asdict(made), "with_key": options.with_key, "out": options.file})
    key = (
        "It holds the key that signs: whoever has the file can write in your name."
        if options.with_key
        else "The key that signs is not in it: keep a copy of the key elsewhere."
    )
    return Report(f"Wrote {made.words} to {printable(options.file, 200)}. {key}")


def restore_record(options: argparse.Namespace) -> Report:
    """Put a backup in the place of the record."""
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


def expire_files(options: argparse.Namespace) -> Report:
    """List the audits whose files a project need not keep any more, and delete these if asked."""
    record = the_record()
    asked = [record.project(project_id(record, options.project))] if options.project else None
    rows = []
    for project in asked or record.projects():
        old = record.expired(project.id)
        if old and options.delete:
            record.delete_expired(project.id, record.acting(project))
        rows += [
            {
                "audit": one.id,
                "project": project.name,
                "title": one.facts.title,
                "drafted": one.drafted.when.at,
            }
            for one in old
        ]
    if options.json:
        return json_report({"deleted": options.delete, "audits": rows})
    if not rows:
        return Report("No audit is older than its project keeps files.")
    listed = [f"{one['project']}, {one['title']}, of {one['drafted'][:10]}" for one in rows]
    head = (
        f"Deleted the files of {counted(len(rows), 'audit')}. Their lines stay in the record."
        if options.delete
        else f"The files of {counted(len(rows), 'audit')} may be deleted, with --delete:"
    )
    return Report("\n".join((head, *(f"  {printable(one, 200)}" for one in listed))))


def admit_key(options: argparse.Namespace) -> Report:
    """Let the key of another machine sign in a project."""
    record, key = the_record(), json_file(options.key)
    project = project_id(record, options.project)
    who, named = record.acting(record.project(project)), printable(options.project, 80)
    name = None
    if options.role:
        name = str(options.name or Path(options.key).stem)
        number = record.add_key(project, key, name, options.role, who)
        said = f"the key is a member of {named}, as its {options.role}"
    else:
        number = record.admit(project, key, who)
        said = f"the key may sign in {named}"
    if options.json:
        found = {"entry": number, "project": options.project, "key": options.key}
        return json_report({**found, "role": options.role, "name": name})
    return Report(f"Entry {number}: {said}.")


def print_key(options: argparse.Namespace) -> Report:
    """Print the public key of this machine, which is JSON with and without --json."""
    from kdcal_core.audit import root_of_audits, signer_of

    return json_report(signer_of(root_of_audits()).public)
