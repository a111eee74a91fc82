"""The database over its life: upgrades, two that open it at once, and what goes wrong."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import random
import secrets
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from audit_people import ME
from audit_place import Place
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from killing import KILLS, Says, Tally, killed
from postgres import ASKED

import kdcal_core
from kdcal_core.audit import (
    AuditContent,
    AuditSubmitted,
    Commented,
    Database,
    Outbox,
    Record,
    RetentionSet,
    back_up,
    database,
    deliver_due,
    export_project,
    import_project,
    restore,
    verify,
)
from kdcal_core.audit.database import OUTBOX, VERSIONS, schema
from kdcal_core.audit.files import Files
from kdcal_core.cli import main
from kdcal_core.errors import InputError

MIGRATIONS = Path(database.__file__).parent / "migrations"
CHAIN = [one.revision for one in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]
EARLIER, NEWEST = CHAIN[:-1], CHAIN[-1]
on_postgresql = pytest.mark.parametrize("place", ["postgresql"], indirect=True)


def test_the_revisions_are_one_chain() -> None:
    known = ScriptDirectory(str(MIGRATIONS))
    assert [known.get_current_head()] == known.get_heads()
    assert known.get_bases() == [CHAIN[0]]
    assert [f"{at:04}" for at in range(1, len(CHAIN) + 1)] == CHAIN
    downs = [known.get_revision(one).down_revision for one in CHAIN]
    assert downs == [None, *CHAIN[:-1]]


def test_tables_are_those_that_the_migrations_make(place: Place) -> None:
    place.open().database.close()
    engine = place.engine()
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS})
        assert compare_metadata(context, schema) == []
    engine.dispose()


def test_every_constraint_has_a_name(place: Place) -> None:
    place.open().database.close()
    engine = place.engine()
    found = sql.inspect(engine)
    for table in schema.tables.values():
        names = [found.get_pk_constraint(table.name)["name"]]
        for several in (
            found.get_foreign_keys(table.name),
            found.get_unique_constraints(table.name),
            found.get_check_constraints(table.name),
            found.get_indexes(table.name),
        ):
            names += [one["name"] for one in several]
        assert sorted(names) == sorted(
            str(one.name) for one in (*table.constraints, *table.indexes)
        )
        assert all(one[:3] in ("pk_", "fk_", "uq_", "ck_", "ix_") for one in names)
    engine.dispose()


# Upgrades


FROZEN = {one: Path(__file__).parent / f"database_{one}" for one in EARLIER}
"""What the kdcal of each earlier revision wrote: its database, and the content of its audit.

The key that signed it has the bytes 0 to 31. A new revision needs a folder of the one before.
"""
FROZEN_PROJECT = "cd9d62a312a6b41b"
FROZEN_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def old_place(place: Place, revision: str) -> str:
    """A record of 23 entries as an earlier kdcal left it; the project's id."""
    Files(place.root / "files").put((FROZEN[revision] / "content.json").read_bytes())
    pem = FROZEN_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (place.root / "audit-key.pem").write_bytes(pem)
    fill(place, revision)
    return FROZEN_PROJECT


def fill(place: Place, revision: str) -> None:
    """Load the frozen database into an empty one."""
    engine = place.engine()
    with engine.begin() as connection:
        for line in (FROZEN[revision] / "audits.sql").read_text().splitlines():
            if not line.startswith("--"):
                # psycopg reads a percent sign as the place of a parameter
                connection.exec_driver_sql(line if place.url is None else line.replace("%", "%%"))
    engine.dispose()


@pytest.mark.parametrize("revision", EARLIER)
def test_a_frozen_database_has_the_schema_of_its_revision(place: Place, revision: str) -> None:
    def schema_there() -> dict[str, Any]:
        engine = place.engine()
        found = sql.inspect(engine)
        tables = {
            one: (
                [(column["name"], str(column["type"]), column["nullable"])
                 for column in found.get_columns(one)],
                found.get_pk_constraint(one),
                found.get_foreign_keys(one),
            )
            for one in found.get_table_names()
        }  # fmt: skip
        engine.dispose()
        return tables

    place.root.mkdir(parents=True)
    fill(place, revision)
    frozen = schema_there()
    place.clear_database()
    engine = place.engine()
    with engine.begin() as connection:
        command.upgrade(database._alembic(connection), revision)
    engine.dispose()
    assert frozen == schema_there()


@pytest.mark.parametrize("revision", EARLIER)
def test_every_earlier_database_is_upgraded(
    place: Place,
    revision: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = old_place(place, revision)
    if place.url is not None:
        for value in (None, "", "0", "no"):
            if value is not None:
                monkeypatch.setenv("KDCAL_UPGRADE", value)
            with pytest.raises(InputError, match=f"older schema {revision}.*KDCAL_UPGRADE=1"):
                place.open()
            assert revision_of(place) == revision
            assert not (place.root / "backups").exists()
        monkeypatch.setenv("KDCAL_UPGRADE", "1")
    record = place.open()
    assert revision_of(place) == NEWEST
    holds(record, project)
    # its id is by chance; a gate looks for the name
    found = record.named("Credit risk")
    assert found == record.project(project)
    with pytest.raises(InputError, match="There is a project named 'Credit risk' already"):
        record.create("Credit risk", ME)
    assert record.projects() == (found,)
    (audit,) = found.audits.values()
    record.write(project, AuditSubmitted(audit.id), ME)
    record.database.close()
    monkeypatch.delenv("KDCAL_UPGRADE", raising=False)
    place.open().database.close()  # nothing is asked a second time
    the_backup_holds(place, revision, tmp_path / "restored", project)


def holds(record: Record, project: str) -> None:
    found = verify(record, project)
    assert (found.altered, found.n_entries, found.n_files) == ((), 23, 1)
    (audit,) = record.project(project).audits.values()
    assert record.content(audit).title == audit.facts.title
    assert len(audit.history) == 22


def the_backup_holds(place: Place, revision: str, restored: Path, project: str) -> None:
    """The backup has the earlier schema, and restored beside the files it opens and verifies."""
    (backup,) = (place.root / "backups").iterdir()
    assert backup.name.startswith(f"audits-{revision}-")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    rows_are_those_that_were_frozen(backup, revision)
    restored.mkdir()
    shutil.copy(backup, restored / "audits.sqlite")
    shutil.copytree(place.root / "files", restored / "files")
    record = Record(restored)
    holds(record, project)
    record.database.close()


def rows_are_those_that_were_frozen(backup: Path, revision: str) -> None:
    """Each table of a backup holds what the earlier kdcal wrote, byte for byte."""
    with (
        contextlib.closing(sqlite3.connect(":memory:")) as frozen,
        contextlib.closing(sqlite3.connect(backup)) as copied,
    ):
        frozen.executescript((FROZEN[revision] / "audits.sql").read_text())
        assert copied.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert copied.execute("PRAGMA foreign_key_check").fetchall() == []
        names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        tables = frozen.execute(names).fetchall()
        assert copied.execute(names).fetchall() == tables
        for (table,) in tables:
            asked = f"SELECT * FROM {table}"
            assert sorted(copied.execute(asked)) == sorted(frozen.execute(asked))


def revision_of(place: Place) -> str | None:
    engine = place.engine()
    with engine.connect() as connection:
        found = MigrationContext.configure(connection, opts={"version_table": VERSIONS})
        revision = found.get_current_revision()
    engine.dispose()
    return revision


def kill_while_it_is_upgraded(
    place: Place, revision: str, n: int, seconds: float = 0.25, step: str | None = None
) -> Tally:
    """On PostgreSQL with KDCAL_UPGRADE=1."""
    project = old_place(place, revision)
    moments, tally, left = random.Random(6), Tally(step), []

    def upgrade(child: Says) -> None:
        child.begins("upgrade")
        place.open()
        child.confirms()

    for _ in range(n):
        place.clear_database()
        fill(place, revision)
        said = killed(upgrade, moments.uniform(0.0, seconds), tally)
        left.append(revision_of(place))
        assert left[-1] in (revision, NEWEST)
        assert left[-1] == NEWEST or not said
        record = place.open()  # which finishes what was begun
        assert revision_of(place) == NEWEST
        holds(record, project)
        record.database.close()
        for backup in (place.root / "backups").glob("audits-*.sqlite"):
            rows_are_those_that_were_frozen(backup, revision)
            backup.unlink()
    print(f"killed at {revision}: {left.count(revision)}, at {NEWEST}: {left.count(NEWEST)}")
    return tally


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("revision", EARLIER)
def test_killed_while_it_is_upgraded(
    place: Place,
    revision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    kill_while_it_is_upgraded(place, revision, KILLS // 4)


@pytest.mark.parametrize("revision", EARLIER)
def test_an_upgrade_that_fails_changes_nothing(
    place: Place,
    revision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = old_place(place, revision)
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    real = command.upgrade

    def half(config: Any, to: str) -> None:
        real(config, to)
        if to == "head":  # not that of the backup's file
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", half)
        with pytest.raises(InputError, match=r"No space left on device.*Free space"):
            place.open()
    assert revision_of(place) == revision
    engine = place.engine()
    assert OUTBOX.name not in sql.inspect(engine).get_table_names()
    engine.dispose()
    record = place.open()
    holds(record, project)
    record.database.close()


@on_postgresql
@pytest.mark.parametrize("revision", EARLIER)
def test_nobody_writes_between_the_backup_and_the_upgrade(
    place: Place, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a writer of the earlier kdcal adds meanwhile waits, and is refused or kept, not lost."""
    old_place(place, revision)
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    real, said = command.upgrade, []

    def write_meanwhile(config: Any, to: str) -> None:
        engine = place.engine()
        with engine.begin() as other:
            other.execute(sql.text("SET LOCAL lock_timeout = '200ms'"))
            try:
                other.execute(sql.text("INSERT INTO kdcal_project VALUES ('meanwhile')"))
            except sql.exc.OperationalError as error:
                said.append(str(error.orig))
                other.rollback()
        engine.dispose()
        real(config, to)

    monkeypatch.setattr(command, "upgrade", write_meanwhile)
    record = place.open()
    assert len(said) == 2  # while the backup was written, and while the tables were changed
    assert all("lock timeout" in one for one in said)
    assert "meanwhile" not in record.database.projects()
    record.database.close()


def test_without_room_for_the_backup_nothing_is_upgraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "audits", None)
    old_place(place, EARLIER[-1])

    class Full:
        def __init__(self, path: Any) -> None:
            self._path = Path(path)
            self._path.write_bytes(b"half")

        def backup(self, target: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        def close(self) -> None:
            pass

    with monkeypatch.context() as patch:
        patch.setattr(database.sqlite3, "connect", lambda path: Full(tmp_path / "any"))
        with pytest.raises(InputError, match=r"backup .* cannot be written .*disk is full"):
            place.open()
    assert revision_of(place) == EARLIER[-1]
    assert list((place.root / "backups").iterdir()) == []


@pytest.mark.parametrize("revision", EARLIER)
def test_the_copy_from_before_an_upgrade_is_restored_to_either_database(
    place: Place, revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = old_place(place, revision)
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    record = place.open()
    monkeypatch.delenv("KDCAL_UPGRADE")
    later = record.create("Since the upgrade", ME).id
    (copy,) = (place.root / "backups").iterdir()
    record.database.close()
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))  # the folder of audits is in it
    made = tmp_path / "kdcal" / "audits"
    made.parent.mkdir()
    place.root.rename(made)
    copy = made / "backups" / copy.name
    if place.url is not None:
        monkeypatch.setenv("KDCAL_DATABASE_URL", place.url)
    assert main(["audit", "restore", str(copy)]) == 2  # there is a record
    assert main(["audit", "restore", str(copy), "--replace"]) == 0
    record = Record()
    holds(record, project)
    assert record.database.projects() == (project,)
    record.write(project, Commented(next(iter(record.project(project).audits)), "Goes on."), ME)
    record.database.close()
    (aside,) = made.parent.glob("audits-before-*")
    assert not [one for one in made.parent.iterdir() if ".copy" in one.name]
    if place.url is None:
        before = Record(aside, "")
        assert set(before.database.projects()) == {project, later}
        before.database.close()


@pytest.mark.parametrize("revision", EARLIER)
def test_an_earlier_record_is_exported_and_backed_up(
    place: Place, revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its projects' ids do not follow from their names, as ids do today."""
    project = old_place(place, revision)
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    record = place.open()
    back_up(record, tmp_path / "backup.zip")
    export_project(record, project, tmp_path / "project.zip")
    record.database.close()
    restore(tmp_path / "backup.zip", place.root, place.url, replace=True)
    record = place.open()
    holds(record, project)
    record.database.close()
    other = Record(tmp_path / "other", "")
    assert import_project(other, tmp_path / "project.zip") == project
    assert import_project(other, tmp_path / "project.zip") == project  # nothing more
    holds(other, project)
    other.database.close()
    third = Record(tmp_path / "third", "")
    third.create("Credit risk", ME)
    with pytest.raises(InputError, match="There is a project named 'Credit risk' already"):
        import_project(third, tmp_path / "project.zip")
    third.database.close()


@on_postgresql
def test_a_backup_takes_the_place_of_a_newer_schema(
    place: Place, tmp_path: Path, content: AuditContent
) -> None:
    """The way back after an upgrade: the earlier kdcal restores, and the newer tables are kept."""
    record = place.open()
    project = record.create("Credit risk", ME).id
    record.draft(project, content, ME)
    back_up(record, tmp_path / "backup.zip")
    record.database.close()
    engine = place.engine()
    with engine.begin() as connection:
        connection.execute(sql.text(f"UPDATE {VERSIONS} SET version_num = '9999'"))
        connection.execute(sql.text("CREATE TABLE kdcal_newer (id integer)"))
    with pytest.raises(InputError, match="There is a record already"):
        restore(tmp_path / "backup.zip", place.root, place.url)
    found = restore(tmp_path / "backup.zip", place.root, place.url, replace=True)
    assert revision_of(place) == NEWEST
    record = place.open()
    assert record.database.projects() == (project,)
    assert verify(record, project).holds
    record.database.close()
    aside = sql.inspect(engine).get_table_names(schema=found.schema)
    assert sorted(aside) == sorted([*schema.tables, VERSIONS, "kdcal_newer"])
    engine.dispose()


def test_a_copy_is_of_one_moment(place: Place, tmp_path: Path) -> None:
    """An entry that is written while the tables are copied is wholly in the copy or not at all."""
    record = place.open()
    record.create("Credit risk", ME)
    real = database._copy_rows if place.url else None

    def write_between(source: sql.Connection, made: Path) -> None:
        source.execute(sql.text("SELECT count(*) FROM kdcal_project"))  # its moment is fixed
        record.create("Meanwhile", ME)
        assert real is not None
        real(source, made)

    with pytest.MonkeyPatch.context() as patch:
        if place.url:
            patch.setattr(database, "_copy_rows", write_between)
        record.database.back_up(tmp_path / "copy.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copied:
        for table in ("kdcal_project", "kdcal_entry"):
            assert copied.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,)
    record.database.close()


def test_a_newer_schema_is_refused(place: Place) -> None:
    place.open().database.close()
    engine = place.engine()
    with engine.begin() as connection:
        connection.execute(sql.text(f"UPDATE {VERSIONS} SET version_num = '9999'"))
    with pytest.raises(InputError, match=r"schema '9999' of a newer kdcal.*Install that version"):
        place.open()
    engine.dispose()
    assert revision_of(place) == "9999"


# Two that open it at once


def _open(place: Place, barrier: Any) -> None:
    barrier.wait(60)
    Database(place.root, place.url).close()


def open_at_once(place: Place) -> list[int | None]:
    """The exit codes of four processes that open the database."""
    start = multiprocessing.get_context("fork")
    barrier = start.Barrier(4)
    processes = [start.Process(target=_open, args=(place, barrier)) for _ in range(4)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(120)
    return [one.exitcode for one in processes]


copied = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that begin as copies")


@copied
def test_several_processes_open_a_new_database_at_once(place: Place) -> None:
    assert open_at_once(place) == [0] * 4
    assert revision_of(place) == NEWEST
    record = place.open()
    assert record.create("Credit risk", ME).number == 1
    assert not (place.root / "backups").exists()
    record.database.close()


@copied
@pytest.mark.parametrize("revision", EARLIER)
def test_several_processes_upgrade_a_database_at_once(
    place: Place,
    revision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = old_place(place, revision)
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    assert open_at_once(place) == [0] * 4
    assert revision_of(place) == NEWEST
    assert len(list((place.root / "backups").iterdir())) == 1
    record = place.open()
    holds(record, project)
    record.database.close()


# Its place


@pytest.mark.parametrize("name", ["what? #1", "100%25 sure", "a#b?mode=ro", "ü 🦊"])
def test_a_folder_of_any_name(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / name))
    record = Record()
    project = record.create("Credit risk", ME)
    record.database.back_up(tmp_path / "copy.sqlite")
    record.database.close()
    assert [one.name for one in tmp_path.iterdir() if one.is_dir()] == [name]
    assert (tmp_path / name / "kdcal" / "audits" / "audits.sqlite").stat().st_size > 0
    assert Record().projects() == (project,)


@pytest.mark.skipif(os.name == "nt", reason="of systems with such permissions")
def test_only_its_owner_may_read_it(tmp_path: Path, content: AuditContent) -> None:
    place = Place(tmp_path / "new" / "audits", None)
    before = os.umask(0)
    try:
        old_place(Place(tmp_path / "old", None), EARLIER[-1])
        (tmp_path / "old" / "audits.sqlite").chmod(0o664)
        record = Record(tmp_path / "old")
        record.database.close()
        record = place.open()
        record.draft(record.create("Credit risk", ME).id, content, ME)
        record.database.close()
    finally:
        os.umask(before)
    (backup,) = (tmp_path / "old" / "backups").iterdir()
    made = [tmp_path / "new", *(tmp_path / "new").rglob("*"), backup, backup.parent]
    modes = {one: one.stat().st_mode & 0o777 for one in made}
    assert {one: mode for one, mode in modes.items() if mode & 0o077} == {}
    # what is there keeps its own: a team may share it
    assert (tmp_path / "old" / "audits.sqlite").stat().st_mode & 0o777 == 0o664


# What goes wrong


def refused(root: Path, url: str | None = None, *, secret: str = "hidden") -> str:
    """What is said of a database that cannot be used, without a password."""
    with pytest.raises(InputError) as caught:
        Database(root, url)
    said = str(caught.value)
    assert secret not in said
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hidden@127.0.0.1:1/audits",
        "postgresql://ann@127.0.0.1:1/audits?password=hidden",
        "postgres://ann:hidden@127.0.0.1:1/audits",
        "postgresql://ann:hidden@no-such-host.invalid/audits",
    ],
)
def test_a_server_that_cannot_be_reached(url: str, tmp_path: Path) -> None:
    said = refused(tmp_path / "audits", url)
    assert "The database of audits cannot be used" in said
    assert "Check that it is running" in said
    assert not (tmp_path / "audits").exists()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ann:hidden@127.0.0.1/audits",
        "postgresql://ann:hidden@127.0.0.1:port/audits",
        "hidden",
        "postgresql+nothing://ann:hidden@127.0.0.1/audits",
    ],
)
def test_an_address_of_no_database(url: str, tmp_path: Path) -> None:
    assert "KDCAL_DATABASE_URL does not name a database" in refused(tmp_path / "audits", url)


@on_postgresql
def test_a_wrong_password(place: Place, tmp_path: Path) -> None:
    assert place.url is not None
    wrong = place.url.replace("kdcal@", f"{ASKED}:hidden@")
    assert "password authentication failed" in refused(tmp_path / "audits", wrong)


@on_postgresql
def test_a_database_that_does_not_exist(place: Place, tmp_path: Path) -> None:
    assert place.url is not None
    wrong = place.url.replace("kdcal@", "kdcal:hidden@") + "x"
    assert "does not exist" in refused(tmp_path / "audits", wrong)


@on_postgresql
def test_a_database_that_may_only_be_read(place: Place) -> None:
    record = place.open()
    project = record.create("Credit risk", ME)
    engine = place.engine()
    assert engine.url.database is not None
    with engine.begin() as connection:
        connection.execute(
            sql.text(f"ALTER DATABASE {engine.url.database} SET default_transaction_read_only = on")
        )
    engine.dispose()
    record.database.close()
    again = place.open()
    assert again.project(project.id) == project
    with pytest.raises(InputError, match="is read-only"):
        again.create("Fraud", ME)
    again.database.close()


@on_postgresql
def test_a_role_that_may_only_select(place: Place) -> None:
    record = place.open()
    project = record.create("Credit risk", ME)
    record.require_writable()
    assert record.projects() == (project,)
    engine, role = place.engine(), f"reader_{secrets.token_hex(4)}"
    with engine.begin() as connection:
        for words in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA public TO {role}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
        ):
            connection.execute(sql.text(words))
    record.database.close()
    assert place.url is not None
    reader = Record(place.root, place.url.replace("kdcal@", f"{role}@"))
    assert reader.projects() == (project,)
    assert verify(reader, project.id).holds
    for act in (
        lambda: reader.create("Fraud", ME),
        lambda: reader.write(project.id, RetentionSet(30), ME),
        lambda: reader.require_draft(project, ME),
    ):
        with pytest.raises(InputError, match=r"permission denied.*Make it writable"):
            act()
    reader.database.close()
    with engine.begin() as connection:
        connection.execute(sql.text(f"DROP OWNED BY {role}"))
        connection.execute(sql.text(f"DROP ROLE {role}"))
    engine.dispose()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "audits.sqlite").write_bytes(b"hidden " * 1000)
    assert "refuses (file is not a database)" in refused(tmp_path)
    assert (tmp_path / "audits.sqlite").read_bytes() == b"hidden " * 1000


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "audits").write_bytes(b"hidden")
    assert "The folder of audits cannot be used" in refused(tmp_path / "audits" / "more")


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "audits.sqlite").mkdir()
    assert "unable to open database file" in refused(tmp_path)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that this process may not write. Root may write any, and becomes another user."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, as those of pytest cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="kdcal-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def closed_to_others() -> bool:
    """If another user could not read the code, and so could not run this test."""
    folders = Path(kdcal_core.__file__).resolve().parents
    return not all(folder.stat().st_mode & 0o001 for folder in folders)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="of systems with such permissions")
@pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0 and closed_to_others(),
    reason="of a checkout that every user may read",
)
def test_a_folder_that_may_only_be_read(open_folder: Path) -> None:
    record = Record(open_folder / "audits")
    project = record.create("Credit risk", ME)
    record.database.close()
    with read_only(open_folder):
        opened = Record(open_folder / "audits")
        assert opened.projects() == (project,)
        with pytest.raises(InputError, match=r"is read-only.*Make it writable"):
            opened.create("Fraud", ME)
        with pytest.raises(InputError, match=r"is read-only.*Make it writable"):
            opened.require_draft(project, ME)  # before anything is computed
        with (
            pytest.raises(InputError, match=r"folder of audits cannot be used.*Make it writable"),
            opened.files_alone(),
        ):
            pass
        opened.database.close()
        assert "Make it writable" in refused(open_folder / "new")
    empty = open_folder / "empty"
    empty.mkdir()
    with read_only(open_folder):
        assert "cannot be used" in refused(empty)
    assert list(empty.iterdir()) == []


def fill_up(record: Record, pages: int) -> None:
    """Let the database have no room for more, as on a full disk."""

    def limit(connection: Any, _: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")

    record.database.close()
    sql.event.listen(record.database._engine, "connect", limit)


def create_many(record: Record) -> None:
    for at in range(1000):
        record.create(f"Project {at} " + "x" * 150, ME)


def test_a_full_disk_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    record = Record(tmp_path / "audits")
    project = record.create("Credit risk", ME)
    fill_up(record, 1)  # not more than it has
    with pytest.raises(InputError, match=r"disk is full.*Free space"):
        create_many(record)
    confirmed = record.projects()
    record.database.close()
    again = Record(tmp_path / "audits")
    assert again.projects() == confirmed
    assert len(confirmed) > 1
    assert verify(again, project.id).holds
    again.create("There is room", ME)
    again.database.close()


def test_a_full_disk_keeps_no_half_of_a_file_or_a_key(
    tmp_path: Path, content: AuditContent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    record = Record(tmp_path / "audits")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"signing key cannot be written.*Free space"):
            record.create("Credit risk", ME)
    assert record.projects() == ()
    project = record.create("Credit risk", ME)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"files of audits cannot be written.*Free space"):
            record.draft(project.id, content, ME)
    assert record.project(project.id) == project
    assert [one for one in (tmp_path / "audits" / "files").rglob("*") if one.is_file()] == []
    assert record.draft(project.id, content, ME).state == "draft"
    record.database.close()


def test_a_database_that_another_program_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.1)
    record = Record(tmp_path / "audits")
    with contextlib.closing(sqlite3.connect(tmp_path / "audits" / "audits.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="database is locked"):
            record.create("Credit risk", ME)
        other.rollback()
    assert record.projects() == ()
    record.create("Credit risk", ME)
    record.database.close()


def _end_connections(place: Place) -> None:
    """Let the server end every connection, as a restart does."""
    engine = place.engine()
    with engine.connect() as connection:
        connection.execute(
            sql.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    engine.dispose()


@on_postgresql
def test_a_connection_that_was_lost_between_two_calls(place: Place) -> None:
    record = place.open()
    project = record.create("Credit risk", ME)
    for _ in range(2):
        _end_connections(place)
        assert record.project(project.id).name == "Credit risk"
        _end_connections(place)
        record.create(f"Fraud {_}", ME)
    assert len(record.projects()) == 3
    record.database.close()


@on_postgresql
def test_a_connection_that_is_lost_within_a_transaction(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = place.open()
    project = record.create("Credit risk", ME)
    real = database.Writing.append

    def lose(self: Any, *given: Any) -> None:
        real(self, *given)
        _end_connections(place)

    with monkeypatch.context() as patch:
        patch.setattr(database.Writing, "append", lose)
        with pytest.raises(InputError, match=r"cannot be used .*What was confirmed before is kept"):
            record.create("Fraud", ME)
    assert [one.id for one in record.projects()] == [project.id]
    record.create("Fraud", ME)
    assert len(record.projects()) == 2
    record.database.close()


@on_postgresql
@pytest.mark.parametrize("while_", ["it is backed up", "tables are changed"])
@pytest.mark.parametrize("revision", EARLIER)
def test_a_connection_that_is_lost_within_an_upgrade(
    place: Place, revision: str, while_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = old_place(place, revision)
    monkeypatch.setenv("KDCAL_UPGRADE", "1")
    real, moment = command.upgrade, revision if while_ == "it is backed up" else "head"

    def lose(config: Any, to: str) -> None:
        real(config, to)
        if to == moment:
            _end_connections(place)

    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", lose)
        with pytest.raises(InputError, match="cannot be used"):
            place.open()
    assert revision_of(place) == revision
    record = place.open()
    assert revision_of(place) == NEWEST
    holds(record, project)
    record.database.close()


@on_postgresql
def test_a_lost_connection_is_no_end_of_messages(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_WEBHOOK_URL", "https://127.0.0.1/in")
    record = place.open()
    _end_connections(place)
    assert deliver_due(record).sent == 0
    assert Outbox(record.database).messages() == ()
    record.database.close()
