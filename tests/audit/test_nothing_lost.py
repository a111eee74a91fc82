"""A process that is killed at any moment loses nothing it confirmed and leaves nothing half done.

A child does what a user does, and says what was confirmed; it is killed without a warning at a
random moment. Whoever opens the record then finds every confirmed entry, whole files for all that
the record names, and a record that holds.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from audit_people import ME
from audit_place import Place
from killing import KILLS, in_child, kill_after

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
from kdcal_core.audit.signing import digest
from kdcal_core.errors import InputError
from kdcal_core.store.disk import PART


def audits_go_their_way(place: Place, content: AuditContent) -> Callable[..., None]:
    def act(confirm: Callable[[str], None]) -> None:
        record = place.open()
        project = record.create(f"Project {os.getpid()}", ME).id
        confirm(f"{project}:1")
        for at in range(1000):
            audit = record.draft(project, replace(content, title=f"{content.title} {at}"), ME).id
            confirm(f"{project}:{record.project(project).number}")
            for event in (
                AuditSubmitted(audit),
                AuditApproved(audit),
                Commented(audit, "Done."),
            ):
                confirm(f"{project}:{record.write(project, event, ME)}")
            record.delete_files(project, (audit,), "not needed", ME)
            confirm(f"{project}:{record.project(project).number}")

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
    stored = [one for one in record.files.folder.glob("*/*") if not one.name.endswith(PART)]
    assert all(digest(one.read_bytes()) == one.name for one in stored)
    record.database.close()


def test_killed_while_audits_go_their_way(place: Place, content: AuditContent) -> None:
    moments = random.Random(0)
    place.open().database.close()
    confirmed: list[str] = []
    for at in range(KILLS):
        child, read = in_child(audits_go_their_way(place, content))
        confirmed += kill_after(child, read, moments.uniform(0.0, 0.3))
        if at % 10 == 9:
            check(place, confirmed)
    check(place, confirmed)
    assert confirmed


def test_killed_while_the_database_is_made(place: Place, content: AuditContent) -> None:
    moments = random.Random(1)
    act = audits_go_their_way(place, content)
    for _ in range(max(KILLS // 5, 4)):
        child, read = in_child(act)
        confirmed = kill_after(child, read, moments.uniform(0.0, 0.2))
        check(place, confirmed)


def test_killed_while_a_backup_is_written_or_read(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    moments = random.Random(2)
    record = place.open()
    project = record.create("Credit risk", ME).id
    for at in range(10):
        record.draft(project, replace(content, title=f"Audit {at}"), ME)
    record.database.close()
    target = tmp_path / "record.zip"

    def write(confirm: Callable[[str], None]) -> None:
        export_project(place.open(), project, target)
        confirm("written")

    other = Place(tmp_path / "elsewhere", None)

    def read_back(confirm: Callable[[str], None]) -> None:
        import_project(other.open(), tmp_path / "whole.zip")
        confirm("read")

    export_project(place.open(), project, tmp_path / "whole.zip")
    for _ in range(max(KILLS // 10, 3)):
        child, read = in_child(write)
        if kill_after(child, read, moments.uniform(0.0, 0.15)):
            assert target.exists()
        if target.exists():
            assert target.read_bytes() == (tmp_path / "whole.zip").read_bytes()
            target.unlink()
        child, read = in_child(read_back)
        done = kill_after(child, read, moments.uniform(0.0, 0.15))
        check(other, [f"{project}:11"] if done else [])
    import_project(other.open(), tmp_path / "whole.zip")
    assert verify(other.open(), project).n_entries == 11


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


def test_a_full_disk_keeps_what_was_there(
    place: Place, content: AuditContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = place.open()
    project = record.create("Credit risk", ME).id

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kdcal_core.store.disk.os.fsync", full)
    with pytest.raises(InputError, match="No space left"):
        record.draft(project, content, ME)
    monkeypatch.undo()
    assert record.project(project).audits == {}
    assert verify(record, project).holds
    assert not [one for one in record.files.folder.rglob("*") if one.is_file()]
    assert record.draft(project, content, ME).state == "draft"


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
