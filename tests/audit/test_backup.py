"""A record in one file, on both databases: what it holds, and what a restore leaves alone."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import stat
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sql
from audit_people import ME
from audit_place import Place
from killing import ENDED, KILLS, Says, Tally, killed

from kdcal_core.audit import (
    AuditContent,
    AuditSubmitted,
    Commented,
    Record,
    archive,
    back_up,
    restore,
    verify,
)
from kdcal_core.audit.database import SQLITE
from kdcal_core.audit.signing import OWN_KEY, signer_of
from kdcal_core.errors import InputError, NewerVersionError
from kdcal_core.review import KnownResults


def filled(place: Place, content: AuditContent) -> Record:
    """A record of two projects, of which one has lost the files of an audit."""
    record = place.open()
    for name in ("Credit risk", "Fraud \U0001f98a"):
        project = record.create(name, ME).id
        first = record.draft(project, content, ME).id
        record.draft(project, replace(content, title=f"{name}, again"), ME)
        record.write(project, AuditSubmitted(first), ME)
    record.delete_files(project, (first,), "asked by the owner of the data", ME)
    return record


def everything(record: Record) -> dict[str, object]:
    """All lines and all files of a record that holds."""
    found: dict[str, object] = {}
    for one in record.database.projects():
        assert verify(record, one).holds
        found[one] = record.database.read(one)
    for path in record.files.folder.glob("*/*"):
        found[path.name] = path.read_bytes()
    return found


def there(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_record_is_restored_to_its_database_and_to_the_other_kind(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    record, path = filled(place, content), tmp_path / "backup.zip"
    assert back_up(record, path, with_key=True).words == "2 projects with 9 entries and 3 files"
    before, key = everything(record), (place.root / OWN_KEY).read_bytes()
    other = Place(tmp_path / "other", "")
    assert restore(path, other.root, "").key == "backup"
    elsewhere = other.open()
    assert everything(elsewhere) == before
    assert (other.root / OWN_KEY).read_bytes() == key
    (fraud,) = (one for one in elsewhere.projects() if one.name.startswith("Fraud"))
    elsewhere.write(fraud.id, Commented(next(iter(fraud.audits)), "Written after."), ME)
    back_up(elsewhere, tmp_path / "later.zip")
    later = everything(elsewhere)
    record.database.close()
    found = restore(tmp_path / "later.zip", place.root, place.url, replace=True)
    again = place.open()
    assert everything(again) == later
    assert found.key == "kept"
    again.create("A third one", ME)
    assert {"later.zip", "audits", found.aside.name} <= set(there(tmp_path))
    for one in (again, elsewhere):
        one.database.close()


def test_the_machine_goes_on_to_know_its_results(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    record, path = filled(place, content), tmp_path / "backup.zip"
    back_up(record, path)
    record.database.close()
    KnownResults(place.root).note(["a" * 64])
    known = KnownResults(place.root).read()
    restore(path, place.root, place.url, replace=True)
    assert KnownResults(place.root).read() == known is not None
    other = Place(tmp_path / "other", "")
    restore(path, other.root, "")
    assert KnownResults(other.root).read() is None  # another machine has its own


def test_what_was_there_is_refused_or_moved_aside_whole(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    record, path = filled(place, content), tmp_path / "backup.zip"
    back_up(record, path)
    after = record.create("Since the backup", ME).id
    later = everything(record)
    with pytest.raises(InputError, match=r"There is a record already.*--replace"):
        restore(path, place.root, place.url)
    assert everything(record) == later
    record.database.close()
    found = restore(path, place.root, place.url, replace=True)
    again = place.open()
    assert after not in again.database.projects()
    assert all(verify(again, one).holds for one in again.database.projects())
    again.database.close()
    assert found.aside is not None
    if place.url is None:
        assert everything(Record(found.aside, "")) == later
        return
    engine = place.engine()
    with engine.connect() as connection:
        count = sql.text(f"SELECT count(*) FROM {found.schema}.kdcal_entry")
        n = sum(len(lines) for lines in later.values() if isinstance(lines, tuple))
        assert connection.execute(count).scalar_one() == n
    engine.dispose()


def test_a_restore_that_fails_leaves_everything_where_it_was(
    place: Place, content: AuditContent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, path = filled(place, content), tmp_path / "backup.zip"
    back_up(record, path)
    before, names = everything(record), there(tmp_path)
    rename = Path.rename

    def no_room(self: Path, target: Path) -> Path:
        if self.name.endswith(".restoring"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", no_room)
        with pytest.raises(InputError, match=r"cannot be put in place \(No space left"):
            restore(path, place.root, place.url, replace=True)
    assert everything(record) == before
    if place.url is not None:

        def lost(*_: object) -> None:
            raise sql.exc.OperationalError("INSERT", {}, OSError("the connection is lost"))

        with monkeypatch.context() as patch:
            patch.setattr("kdcal_core.audit.database.command.upgrade", lost)
            with pytest.raises(InputError, match="cannot be used"):
                restore(path, place.root, place.url, replace=True)
        assert everything(record) == before
    assert set(there(tmp_path)) - set(names) == {".audits.restore.lock"}
    record.database.close()


def kill_while_a_backup_is_written_or_restored(
    place: Place, content: AuditContent, folder: Path, n: int, seconds: float = 0.3
) -> Tally:
    record, moments, tally = filled(place, content), random.Random(5), Tally()
    path, target = folder / "backup.zip", folder / "again.zip"
    back_up(record, path)
    before = everything(record)
    record.database.close()

    def write(child: Says) -> None:
        child.begins("back up")
        back_up(place.open(), target)
        child.confirms()

    def put_back(child: Says) -> None:
        child.begins("restore")
        restore(path, place.root, place.url, replace=True)
        child.confirms()

    for _ in range(n):
        if killed(write, moments.uniform(0.0, seconds / 3.0), tally) or target.exists():
            assert target.read_bytes() == path.read_bytes()
            target.unlink()
        killed(put_back, moments.uniform(0.0, seconds), tally)
        again = place.open()
        assert everything(again) == before
        again.database.close()
        restore(path, place.root, place.url, replace=True)
    again = place.open()
    assert everything(again) == before
    again.database.close()
    return tally


def test_killed_while_a_backup_is_written_or_restored(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    kill_while_a_backup_is_written_or_restored(place, content, tmp_path, max(KILLS // 10, 3))


def kill_at_step(at: int, folder: Path) -> None:
    """Kill this process before its step ``at`` in a folder, or PostgreSQL's commit, of all such."""
    steps = itertools.count(1)

    def step(*_: object) -> None:
        if next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def seen(event: str, given: tuple[object, ...]) -> None:
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
        if changes and Path(os.fsdecode(given[0])).parent == folder:  # type: ignore[arg-type]
            step()

    sys.addaudithook(seen)
    sql.event.listen(sql.Engine, "commit", lambda of: of.dialect.name == "postgresql" and step())


def test_killed_at_each_step_of_a_restore(
    place: Place, content: AuditContent, tmp_path: Path
) -> None:
    folder, paths = tmp_path / "backups", []
    folder.mkdir()
    record, states = filled(place, content), []
    for name in ("first.zip", "second.zip"):
        back_up(record, folder / name)
        paths.append(folder / name)
        states.append(everything(record))
        record.create(f"Since {name}", ME)
    record.database.close()
    restore(paths[1], place.root, place.url, replace=True)
    outcomes: list[bool] = []
    for at in range(1, 100):
        path, old, new = paths[(at + 1) % 2], states[at % 2], states[(at + 1) % 2]

        def put_back(_: Says, at: int = at, path: Path = path) -> None:
            kill_at_step(at, tmp_path)
            restore(path, place.root, place.url, replace=True)

        tally = Tally()
        killed(put_back, None, tally)
        gone = not place.root.exists()
        if gone:
            signer_of(place.root)  # whoever looks at the key first makes the folder
        again = place.open()
        found = everything(again)
        again.database.close()
        assert found in (old, new)
        outcomes.append(found == new)
        left = [one for one in there(tmp_path) if one.startswith("audits-since-")]
        assert len(left) == gone
        shutil.rmtree(tmp_path / left[0]) if gone else None
        if found == new and place.url is None:
            asides = [one for one in there(tmp_path) if one.startswith("audits-before-")]
            aside = Record(tmp_path / asides[-1], "")
            assert everything(aside) == old
            aside.database.close()
        restore(path, place.root, place.url, replace=True)
        again = place.open()
        assert everything(again) == new
        again.database.close()
        if tally.during[ENDED]:
            break
    assert outcomes == sorted(outcomes)  # the old one, and from some step on the new one
    assert outcomes.count(False) >= 2 <= outcomes.count(True)
    assert not [one for one in there(tmp_path) if "restoring" in one]


def test_a_restore_to_another_database_that_was_cut_off_is_named(
    tmp_path: Path, content: AuditContent
) -> None:
    record = filled(Place(tmp_path / "audits", ""), content)
    record.database.close()
    swap = {"aside": "", "moment": "20261127", "place": "postgresql://me:***@there/audits"}
    (tmp_path / ".audits.restoring.json").write_text(json.dumps(swap))
    with pytest.raises(InputError, match=r"restore to the database postgresql://me:\*\*\*@there"):
        Record(tmp_path / "audits", "")


@pytest.fixture
def record(tmp_path: Path, content: AuditContent) -> Record:
    return filled(Place(tmp_path / "audits", ""), content)


@pytest.fixture
def backup(record: Record, tmp_path: Path) -> Path:
    path = tmp_path / "backup.zip"
    back_up(record, path, with_key=True)
    return path


def test_the_same_record_gives_the_same_bytes_for_its_owner_alone(
    record: Record, backup: Path
) -> None:
    again = backup.with_name("again.zip")
    again.write_bytes(b"a file that all may read")
    again.chmod(0o644)
    back_up(record, again, with_key=True)
    assert again.read_bytes() == backup.read_bytes()
    assert stat.S_IMODE(again.stat().st_mode) == stat.S_IMODE(backup.stat().st_mode) == 0o600
    back_up(record, again)
    with zipfile.ZipFile(again) as held:
        assert OWN_KEY not in held.namelist()
    assert b"PRIVATE" not in again.read_bytes()


def test_a_record_that_does_not_hold_replaces_no_backup(record: Record, backup: Path) -> None:
    good = backup.read_bytes()
    broken = next(record.files.folder.glob("*/*"))
    kept = broken.read_bytes()
    broken.write_bytes(b"{}")
    with pytest.raises(InputError, match=r"was altered: The audit .* altered after it was written"):
        back_up(record, backup)
    broken.write_bytes(kept)
    project = record.database.projects()[0]
    with record.database.changing() as connection:
        connection.exec_driver_sql("DELETE FROM kdcal_entry WHERE number >= 4")
    with pytest.raises(InputError, match="The record was shortened"):
        back_up(record, backup)
    assert backup.read_bytes() == good
    found = restore(backup, record.root, "", replace=True)
    assert found.aside is not None
    assert verify(Record(record.root, ""), project).holds


def test_a_database_that_cannot_be_read_is_moved_aside(record: Record, backup: Path) -> None:
    before = everything(record)
    record.database.close()
    shutil.rmtree(record.files.folder)
    (record.root / SQLITE).write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match="There is a record already"):
        restore(backup, record.root, "")
    restore(backup, record.root, "", replace=True)
    assert everything(Record(record.root, "")) == before


def test_an_empty_record_is_no_backup_and_is_replaced_unasked(
    record: Record, backup: Path, tmp_path: Path
) -> None:
    empty = Record(tmp_path / "empty", "")
    with pytest.raises(InputError, match="nothing to back up"):
        back_up(empty, tmp_path / "empty.zip")
    assert not (tmp_path / "empty.zip").exists()
    empty.database.close()
    restore(backup, empty.root, "")
    assert everything(Record(empty.root, "")) == everything(record)


def test_a_key_that_lies_elsewhere_is_not_written(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_SIGNING_KEY", str(record.root / OWN_KEY))
    with pytest.raises(InputError, match="KDCAL_SIGNING_KEY names"):
        back_up(record, tmp_path / "no.zip", with_key=True)
    assert not (tmp_path / "no.zip").exists()


def changed(path: Path, **members: bytes | None) -> Path:
    """A copy of a backup with members replaced, added, or left out."""
    made = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        given = {one: old.read(one) for one in old.namelist()} | members
        for name, held in given.items():
            if held is not None:
                new.writestr(name, held)
    return made


OTHERS: dict[str, tuple[Callable[[dict[str, bytes]], dict[str, bytes | None]], str]] = {
    "a name that leaves the folder": (lambda _: {"../evil": b""}, "This is not a backup"),
    "a further file": (lambda _: {f"files/{'0' * 64}": b""}, "This is not a backup"),
    "no list": (lambda _: {"backup.json": None}, "This is not a backup"),
    "a newer version": (
        lambda of: {"backup.json": of["backup.json"].replace(b"1,", b"2,")},
        "newer version of kdcal",
    ),
    "a project left out": (
        lambda of: {"backup.json": b'{"kind": "kdcal backup", "version": 1, "projects": []}'},
        "This is not a backup",
    ),
    "a file left out": (
        lambda of: {next(one for one in of if one.startswith("files/")): None},
        "lacks files that its record names",
    ),
    "a file changed": (
        lambda of: {next(one for one in of if one.startswith("files/")): b"{}"},
        "was altered",
    ),
    "a key that is none": (lambda _: {OWN_KEY: b"none"}, "not a private Ed25519 key"),
    "a long key": (lambda _: {OWN_KEY: b"x" * 20_000}, "This is not a backup"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_content_is_refused_and_nothing_is_written(
    backup: Path, tmp_path: Path, name: str
) -> None:
    with zipfile.ZipFile(backup) as held:
        whole = {one: held.read(one) for one in held.namelist()}
    change, said = OTHERS[name]
    home = tmp_path / "new" / "audits"
    with pytest.raises(InputError, match=said) as caught:
        restore(changed(backup, **change(whole)), home, "")
    assert isinstance(caught.value, NewerVersionError) == ("newer" in name)
    assert there(home.parent) == [".audits.restore.lock"]
    assert not (tmp_path / "evil").exists()


def refusal(path: Path, home: Path) -> str | None:
    """What is said against a backup; None if it was restored."""
    try:
        restore(path, home, "")
    except InputError as error:
        return str(error)
    return None


def test_a_damaged_backup_is_refused_in_one_line(backup: Path, tmp_path: Path) -> None:
    choose, whole, home = random.Random(7), backup.read_bytes(), tmp_path / "new"
    damaged, taken = tmp_path / "damaged.zip", 0
    for _ in range(int(os.environ.get("KDCAL_MUTATIONS", "20"))):
        cut, end = sorted(choose.randrange(len(whole)) for _ in range(2))
        damaged.write_bytes(
            choose.choice((whole[:cut], whole[:cut] + choose.randbytes(9) + whole[end:]))
        )
        error = refusal(damaged, home)
        if error is None:
            taken += 1
            shutil.rmtree(home)
        else:
            assert "\n" not in error
            assert not home.exists()
    assert taken < 3
    with pytest.raises(InputError, match="There is no such file"):
        restore(tmp_path / "none.zip", home, "")


def test_a_backup_beyond_a_bound_is_neither_written_nor_read(
    record: Record, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 10_000)
    with pytest.raises(InputError, match="one file may hold 10,000"):
        back_up(record, tmp_path / "large.zip")
    with pytest.raises(InputError, match="one file may hold 10,000"):
        restore(backup, tmp_path / "new", "")
    assert not (tmp_path / "large.zip").exists()
    assert not (tmp_path / "new").exists()
