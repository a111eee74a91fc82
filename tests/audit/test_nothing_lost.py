"""A process that is killed at any moment loses nothing it confirmed and leaves nothing half done.

A child does what a user does, and says what was confirmed; it is killed without a warning at a
random moment. Whoever opens the record then finds every confirmed entry, whole files for all that
the record names, and a record that holds.
"""

from __future__ import annotations

import os
import random
import threading
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from audit_people import ME
from audit_place import Place
from killing import KILLS, Act, Says, Tally, killed, kills

from kdcal_core.audit import (
    AuditApproved,
    AuditContent,
    AuditSubmitted,
    Commented,
    Record,
    RetentionSet,
    export_project,
    import_project,
    verify,
)
from kdcal_core.audit.report import recorded_report
from kdcal_core.audit.signing import digest
from kdcal_core.cli.terminal import write_file
from kdcal_core.errors import InputError
from kdcal_core.store.disk import PART


def audits_go_their_way(place: Place, content: AuditContent) -> Act:
    def act(child: Says) -> None:
        child.begins("open")
        record = place.open()
        child.begins("create")
        project = record.create(f"Project {os.getpid()}", ME).id
        child.confirms(f"{project}:1")
        for at in range(1000):
            child.begins("draft")
            audit = record.draft(project, replace(content, title=f"{content.title} {at}"), ME).id
            child.confirms(f"{project}:{record.project(project).number}")
            for step, event in (
                ("submit", AuditSubmitted(audit)),
                ("approve", AuditApproved(audit, "Good enough.")),
                ("comment", Commented(audit, "Done.")),
            ):
                child.begins(step)
                child.confirms(f"{project}:{record.write(project, event, ME)}")
            child.begins("delete files")
            record.delete_files(project, (audit,), "not needed", ME)
            child.confirms(f"{project}:{record.project(project).number}")

    return act


def check(place: Place, confirmed: list[str]) -> None:
    record = place.open()
    numbers = [one.split(":") for one in confirmed]
    for project in record.database.projects():
        found = verify(record, project)
        assert found.holds, found.altered
        mine = [int(number) for name, number in numbers if name == project]
        assert found.n_entries >= max(mine, default=0)
    assert {name for name, _ in numbers} <= set(record.database.projects())
    assert record.unreadable() == ()
    stored = [one for one in record.files.folder.glob("*/*") if not one.name.endswith(PART)]
    assert all(digest(one.read_bytes()) == one.name for one in stored)
    record.database.close()


def kill_while_audits_go_their_way(
    place: Place, content: AuditContent, n: int, seconds: float = 0.3, step: str | None = None
) -> Tally:
    moments, tally = random.Random(0), Tally(step)
    place.open().database.close()
    act, confirmed = audits_go_their_way(place, content), []
    for at, said in enumerate(kills(act, n, seconds, moments, tally)):
        confirmed += said
        if at % 10 == 9:
            check(place, confirmed)
            place.clear()  # many projects would leave little time for what comes after "open"
            place.open().database.close()
            confirmed.clear()
    check(place, confirmed)
    return tally


def test_killed_while_audits_go_their_way(place: Place, content: AuditContent) -> None:
    assert kill_while_audits_go_their_way(place, content, KILLS).confirmed


def kill_while_the_database_is_made(
    place: Place, content: AuditContent, n: int, seconds: float = 0.2
) -> Tally:
    """Every other database is a new one, every other one may be half made."""
    moments, tally = random.Random(1), Tally()
    act = audits_go_their_way(place, content)
    for at, said in enumerate(kills(act, n, seconds, moments, tally)):
        if at % 2:
            check(place, said)
            place.clear()
    return tally


def test_killed_while_the_database_is_made(place: Place, content: AuditContent) -> None:
    kill_while_the_database_is_made(place, content, KILLS // 4)


def kill_while_a_project_is_written_or_read(
    place: Place, content: AuditContent, folder: Path, n: int, seconds: float = 0.15
) -> Tally:
    moments, tally = random.Random(2), Tally()
    record = place.open()
    project = record.create("Credit risk", ME).id
    for at in range(10):
        record.draft(project, replace(content, title=f"Audit {at}"), ME)
    record.database.close()
    target, whole = folder / "record.zip", folder / "whole.zip"

    def write(child: Says) -> None:
        child.begins("export")
        export_project(place.open(), project, target)
        child.confirms()

    other = Place(folder / "elsewhere", None)

    def read_back(child: Says) -> None:
        child.begins("import")
        import_project(other.open(), whole)
        child.confirms()

    export_project(place.open(), project, whole)
    for _ in range(n):
        if killed(write, moments.uniform(0.0, seconds), tally):
            assert target.exists()
        if target.exists():
            assert target.read_bytes() == whole.read_bytes()
            target.unlink()
        done = killed(read_back, moments.uniform(0.0, seconds), tally)
        check(other, [f"{project}:11"] if done else [])
        if (record := other.open()).projects():  # in one transaction: all of it
            assert verify(record, project).n_entries == 11
            other.clear()
    return tally


def test_killed_while_a_project_is_written_or_read(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    kill_while_a_project_is_written_or_read(place, content, tmp_path, max(KILLS // 10, 3))


def kill_while_a_report_is_written(
    place: Place, content: AuditContent, folder: Path, n: int, seconds: float = 0.3
) -> Tally:
    """Of two audits in turn, so that one report replaces another."""
    moments, tally, target = random.Random(5), Tally(), folder / "report.html"
    record = place.open()
    project = record.create("Credit risk", ME).id
    for one in (content, replace(content, title="Another")):
        record.draft(project, one, ME)
    known = record.project(project)
    reports = [recorded_report(record, known, one) for one in known.audits.values()]
    record.database.close()

    def write(child: Says) -> None:
        def keep(made: bytes) -> None:
            child.begins("write the report")
            for _ in range(3):  # it takes less time than to make it
                write_file(target, made)
                child.confirms()

        for made in reports:  # to make one may outlast the moment
            keep(made)
        child.begins("open")
        record = place.open()
        for one in cycle(known.audits.values()):
            child.begins("make the report")
            keep(recorded_report(record, known, one))

    for _ in kills(write, n, seconds, moments, tally):
        assert target.exists() or not tally.confirmed
        assert not target.exists() or target.read_bytes() in reports
    check(place, [f"{project}:3"])
    return tally


def test_killed_while_a_report_is_written(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    assert kill_while_a_report_is_written(place, content, tmp_path, KILLS // 4).confirmed


def test_a_home_that_is_deleted_under_a_running_app(place: Place, content: AuditContent) -> None:
    import shutil

    record = place.open()
    project = record.create("Credit risk", ME).id
    record.draft(project, content, ME)
    shutil.rmtree(place.root)

    def read() -> None:
        record.content(next(iter(record.project(project).audits.values())))

    with pytest.raises(InputError) as error:  # SQLite's file is gone, or the files are
        read()
    assert error.value.fix
    gone = "The folder of audits is gone"
    for act in (
        lambda: record.write(project, RetentionSet(30), ME),
        lambda: record.create("Fraud", ME),
        *([] if place.url else [record.projects, record.unreadable]),
    ):
        with pytest.raises(InputError, match=gone) as error:
            act()
        assert error.value.fix == "Restore it from a backup and start kdcal again."
    assert not (place.root / "audit-key.pem").exists()
    again = place.open()  # a new home, and nothing that pretends to be the old one
    if place.url is None:
        assert again.projects() == ()
        with pytest.raises(InputError, match=gone):  # the old one is not the new one
            record.projects()
    else:
        assert not verify(again, project).holds


def test_many_writers_at_once(place: Place) -> None:
    first = place.open()
    project = first.create("Credit risk", ME).id
    failed: list[BaseException] = []

    def write(record: Record, name: str) -> None:
        try:
            record.create(name, ME)
        except InputError as error:
            failed.append(error)

    records = [place.open() for _ in range(4)]
    threads = [
        threading.Thread(target=write, args=(one, f"Project {at % 2}"))
        for at, one in enumerate(records)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    names = sorted(one.name for one in first.projects())
    assert names == ["Credit risk", "Project 0", "Project 1"]
    assert len(failed) == 2
    assert verify(first, project).holds
