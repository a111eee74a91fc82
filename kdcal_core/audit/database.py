"""The database of audits: SQLite beside our files, or PostgreSQL.

It holds projects and the lines of their records, and nothing that could be altered without notice:
every line is signed and holds the digest of the one before.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from kdcal_core.audit.signing import ENTRY, Signed, digest
from kdcal_core.errors import InputError
from kdcal_core.store import new_file
from kdcal_core.store.disk import flush, locked, make_folder, private
from kdcal_core.text import printable

URL = "KDCAL_DATABASE_URL"
"""Names a PostgreSQL database, as postgresql://user:password@host/name."""
UPGRADE = "KDCAL_UPGRADE"
"""Set to 1, lets kdcal upgrade PostgreSQL's tables, which other machines may use too."""
SQLITE = "audits.sqlite"
"""SQLite's file, in the folder of audits."""
BACKUPS = "backups"
"""Copies of the tables, in the folder of audits, from before each upgrade of their schema."""
VERSIONS = "kdcal_schema"
"""The table that holds the revision of the schema."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_SECONDS = 30
_WRITES = "kdcal_writes"
_RESTORED = "restored at "
_ROWS_AT_ONCE = 1000
_SCHEMA_LOCK = 0x6B6463616C
"""PostgreSQL's lock on the schema: several machines may start at once."""

schema = sql.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)
PROJECT = sql.Table(
    "kdcal_project",
    schema,
    sql.Column("id", sql.String(32), primary_key=True),
)
ENTRIES = sql.Table(
    "kdcal_entry",
    schema,
    sql.Column("project", sql.ForeignKey("kdcal_project.id"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("payload", sql.Text, nullable=False),
    sql.Column("key", sql.String(64), nullable=False),
    sql.Column("signature", sql.String(128), nullable=False),
)
OUTBOX = sql.Table(
    "kdcal_outbox",
    schema,
    sql.Column("id", sql.String(40), primary_key=True),
    sql.Column("project", sql.String(32), nullable=False),
    sql.Column("number", sql.Integer, nullable=False),
    sql.Column("channel", sql.String(16), nullable=False),
    sql.Column("notice", sql.Text, nullable=False),
    sql.Column("state", sql.String(16), nullable=False),
    sql.Column("tries", sql.Integer, nullable=False),
    sql.Column("due", sql.BigInteger, nullable=False),  # seconds since 1970
    sql.Column("said", sql.Text, nullable=False),
    sql.ForeignKeyConstraint(["project", "number"], ["kdcal_entry.project", "kdcal_entry.number"]),
)
"""Messages that wait to be sent, and those that were given up; see `kdcal_core.audit.outbox`."""


class Database:
    """Reads and appends lines of projects' records.

    Parameters
    ----------
    root : Path
        Where SQLite's file and its backups lie.
    url : str, optional
        Of a PostgreSQL database; by default that of the variable `URL`, else SQLite. Empty for
        SQLite whatever the variable says.
    as_it_is : bool
        Leave tables that are there, or are missing, as they are. Only a record that will take
        their place needs that.

    Raises
    ------
    InputError
        If it cannot be reached, is not ours to write, or has the schema of a newer kdcal, or, of
        PostgreSQL, that of an older one and `UPGRADE` does not allow to change it.
    """

    def __init__(self, root: Path, url: str | None = None, *, as_it_is: bool = False) -> None:
        self.root = root
        given = os.environ.get(URL) if url is None else url
        self._path = None if given else root / SQLITE
        self._file: tuple[int, int] | None = None  # SQLite's file, when it was opened
        self._engine = _engine(given or sql.URL.create("sqlite", database=str(self._path)))
        with as_input(self.place):
            if self._path is not None:
                make_folder(root)
                _make_private_file(self._path)
                self._file = _file_of(self._path)
            if not as_it_is:
                self._bring_up_to_date()

    @property
    def place(self) -> str:
        """Where it is, without a password."""
        if self._path is not None:
            return str(self._path)
        # what follows a question mark may hold a password too
        return self._engine.url.set(query={}).render_as_string(hide_password=True)

    @property
    def is_file(self) -> bool:
        """Whether it is SQLite's file."""
        return self._path is not None

    def projects(self) -> tuple[str, ...]:
        """The ids of all projects, in their order of creation."""
        with self.reading() as connection:
            # also lines whose project was deleted
            both = sql.union(sql.select(PROJECT.c.id), sql.select(ENTRIES.c.project))
            return tuple(sorted(one for (one,) in connection.execute(both)))

    def has(self, project: str) -> bool:
        """Whether there is a project of this id, or a line of one."""
        with self.reading() as connection:
            return any(
                connection.execute(
                    sql.select(sql.literal(1)).where(column == project).limit(1)
                ).first()
                for column in (PROJECT.c.id, ENTRIES.c.project)
            )

    def begun_with(self, words: str) -> tuple[str, ...]:
        """The ids of the projects in whose first line these words stand, in small letters or not.

        No other line is read.
        """
        return self._with_line(ENTRIES.c.number == 1, _stands(words))

    def holding(self, *words: str) -> tuple[str, ...]:
        """The ids of the projects that have a line with all these words, in small letters or not.

        The database looks for them: no line leaves it.
        """
        return self._with_line(*map(_stands, words))

    def _with_line(self, *asked: sql.ColumnElement[bool]) -> tuple[str, ...]:
        found = sql.select(ENTRIES.c.project).where(*asked).distinct()
        with self.reading() as connection:
            return tuple(sorted(one for (one,) in connection.execute(found)))

    def heads(self) -> dict[str, tuple[int, str]]:
        """The number of each project's last line, and its SHA-256, by the project's id."""
        last = (
            sql.select(ENTRIES.c.project, sql.func.max(ENTRIES.c.number).label("number"))
            .group_by(ENTRIES.c.project)
            .subquery()
        )
        of_last = sql.and_(ENTRIES.c.project == last.c.project, ENTRIES.c.number == last.c.number)
        asked = sql.select(ENTRIES.c.project, ENTRIES.c.number, ENTRIES.c.payload).join(
            last, of_last
        )
        with self.reading() as connection:
            return {
                project: (number, digest(_bytes(payload)))
                for project, number, payload in connection.execute(asked)
            }

    def read(self, project: str, above: int | None = 0) -> tuple[tuple[int, Signed], ...]:
        """The lines of a project from number ``above`` + 1 on, in order; all for None."""
        with self.reading() as connection:
            return _lines(connection, project, above)

    @contextlib.contextmanager
    def writing(self, project: str) -> Iterator[Writing]:
        """A transaction in which nobody else appends to this project's record.

        Nothing is written unless the body ends without an error.
        """
        with self.changing() as connection:
            if not self.is_file:  # SQLite's transaction locks the whole file
                key = int(digest(project.encode())[:15], 16)
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(key)))
            yield Writing(connection, project)

    @contextlib.contextmanager
    def replacing(self, aside: str, moment: str) -> Iterator[Callable[[str], Writing]]:
        """A transaction that begins with empty tables, and makes the `Writing` of a project.

        Of PostgreSQL alone. Its tables, unless it `is_empty`, are moved to the schema ``aside``,
        and `restored_at` is ``moment`` afterwards, both without quotes. Nothing is changed unless
        the body ends without an error.
        """
        with self.changing() as connection:
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
            if not self._is_empty(connection):
                connection.exec_driver_sql(f"CREATE SCHEMA {aside}")
                for table in _our_tables(connection):
                    connection.exec_driver_sql(f"ALTER TABLE {table} SET SCHEMA {aside}")
            command.upgrade(_alembic(connection), "head")
            connection.exec_driver_sql(f"COMMENT ON TABLE {ENTRIES} IS '{_RESTORED}{moment}'")
            yield functools.partial(Writing, connection)

    @property
    def restored_at(self) -> str:
        """The moment of the last restore of PostgreSQL's tables; empty if there was none."""
        with self.reading() as connection:
            said = connection.execute(
                sql.text(f"SELECT obj_description(to_regclass('{ENTRIES}'), 'pg_class')")
            )
            return (said.scalar() or "").removeprefix(_RESTORED)

    @property
    def is_empty(self) -> bool:
        """Whether no project was ever written; False of another schema than ours."""
        with self.reading() as connection:
            return self._is_empty(connection)

    def _is_empty(self, connection: sql.Connection) -> bool:
        if not _our_tables(connection):
            return True
        return _revision(connection) == _known_schemas().get_current_head() and not any(
            connection.execute(sql.select(sql.literal(1)).select_from(table).limit(1)).first()
            for table in (PROJECT, ENTRIES)
        )

    @contextlib.contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """A connection that reads."""
        self.require_there()
        with as_input(self.place), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def changing(self) -> Iterator[sql.Connection]:
        """A transaction on tables that are no record, such as the outbox.

        Nothing is changed unless the body ends without an error.
        """
        self.require_there()
        with as_input(self.place), self._write() as connection:
            yield connection

    def require_writable(self) -> None:
        """Refuse at once a database that can only be read; nothing is written.

        Raises
        ------
        InputError
        """
        with contextlib.suppress(_UndoneError), self.changing() as connection:
            connection.execute(sql.insert(PROJECT).values(id=secrets.token_hex(16)))
            raise _UndoneError

    def require_there(self) -> None:
        """Refuse SQLite's file if it was deleted or replaced since it was opened.

        What is open of it can still be read, and is not what lies there.

        Raises
        ------
        InputError
        """
        if self._path is not None and _file_of(self._path) != self._file:
            raise folder_gone(self.place)

    def close(self) -> None:
        """Close its connections."""
        self._engine.dispose()

    def back_up(self, path: Path) -> None:
        """Write a copy of the tables to a file, while others may read and write.

        The file is an SQLite database of the schema that they have now, of either kind of database.

        Raises
        ------
        InputError
            If the file cannot be written; then there is none.
        """
        with self.reading() as connection:
            if not self.is_file:  # what was committed meanwhile must not be in one table alone
                connection.execute(sql.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            self._copy(connection, path)

    def _copy(self, connection: sql.Connection, path: Path) -> None:
        try:
            with new_file(path) as made:
                _make_private_file(made)
                if self._path is None:
                    _copy_rows(connection, made)
                else:
                    source, target = sqlite3.connect(self._path), sqlite3.connect(made)
                    with contextlib.closing(source), contextlib.closing(target):
                        source.backup(target)
                flush(made)
            flush(path.parent)
        except (OSError, sqlite3.Error, sql.exc.DBAPIError) as error:
            if not isinstance(getattr(error, "orig", error), (OSError, sqlite3.Error)):
                raise  # it could not be read
            raise InputError(
                f"The backup of the database of audits cannot be written ({_line(error)})",
                fix="Free space on its disk, or make its folder writable for this user.",
                file=str(path),
            ) from error

    def _write(self) -> contextlib.AbstractContextManager[sql.Connection]:
        return self._engine.execution_options(**{_WRITES: True}).begin()

    def _bring_up_to_date(self) -> None:
        known = _known_schemas()
        newest = known.get_current_head()
        with self._engine.connect() as connection:
            revision = _revision(connection)
        if revision == newest:
            return
        if revision is not None and revision not in {
            one.revision for one in known.walk_revisions()
        }:
            raise InputError(
                f"The database of audits has the schema {revision[:40]!r} of a newer kdcal",
                fix="Install that version of kdcal, or restore the backup of before its upgrade.",
                file=self.place,
            )
        if revision is not None and not self.is_file and os.environ.get(UPGRADE) != "1":
            raise InputError(
                f"The database of audits has the older schema {revision}",
                fix=f"Update kdcal on all its machines, then start it once with {UPGRADE}=1: it "
                "writes a copy of the tables to a file and upgrades them.",
                file=self.place,
            )
        with locked(self.root / ".schema.lock") if self.is_file else contextlib.nullcontext():
            self._upgrade()

    def _upgrade(self) -> None:
        """Copy the tables and change them, while nobody else writes."""
        with self._write() as connection:  # locks SQLite's whole file
            if not self.is_file:
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
                for table in _our_tables(connection):
                    connection.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            revision = _revision(connection)
            if revision == _known_schemas().get_current_head():
                return  # another process was faster
            if revision is not None:
                folder = self.root / BACKUPS
                make_folder(folder)
                now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
                self._copy(connection, folder / f"audits-{revision}-{now}.sqlite")
            command.upgrade(_alembic(connection), "head")


class _UndoneError(Exception):
    """Ends a transaction without keeping it."""


class Writing:
    """A transaction on the record of one project."""

    def __init__(self, connection: sql.Connection, project: str) -> None:
        self._connection, self.project = connection, project

    def lines(self, above: int = 0) -> tuple[tuple[int, Signed], ...]:
        """As `Database.read`, within the transaction."""
        return _lines(self._connection, self.project, above)

    def post(self, messages: Collection[Mapping[str, Any]]) -> None:
        """Store rows of the outbox, which are sent after the transaction."""
        for one in messages:
            self._connection.execute(sql.insert(OUTBOX).values(**one))

    def append(self, number: int, signed: Signed) -> None:
        """Add a line."""
        if number == 1:
            self._connection.execute(sql.insert(PROJECT).values(id=self.project))
        self._connection.execute(
            sql.insert(ENTRIES).values(
                project=self.project,
                number=number,
                payload=signed.payload.decode(),
                key=signed.key,
                signature=signed.signature,
            )
        )


def folder_gone(place: str) -> InputError:
    """The error of a record whose files were deleted or replaced while it was open."""
    return InputError(
        "The folder of audits is gone, or was replaced",
        fix="Restore it from a backup and start kdcal again.",
        file=place,
    )


def _file_of(path: Path) -> tuple[int, int] | None:
    """Which file lies at a path, whatever it holds."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_private_file(path: Path) -> None:
    """An empty file that only its owner can read, unless there is one: SQLite asks nobody.

    Its files beside a database have the database's permissions. A database that is there keeps its
    own, because a team may share it.
    """
    if not path.exists():
        open(path, "ab", opener=private).close()


def _lines(
    connection: sql.Connection, project: str, above: int | None
) -> tuple[tuple[int, Signed], ...]:
    asked = (
        sql.select(ENTRIES.c.number, ENTRIES.c.payload, ENTRIES.c.key, ENTRIES.c.signature)
        .where(ENTRIES.c.project == project)
        .order_by(ENTRIES.c.number)
    )
    if above is not None:
        asked = asked.where(ENTRIES.c.number > above)
    return tuple(
        (number, Signed(_bytes(payload), ENTRY, str(key), str(signature)))
        for number, payload, key, signature in connection.execute(asked)
    )


def _stands(words: str) -> sql.ColumnElement[bool]:
    return ENTRIES.c.payload.contains(words, autoescape=True)


def _bytes(stored: Any) -> bytes:
    """A payload; SQLite keeps whatever somebody writes into a column of text."""
    return stored if isinstance(stored, bytes) else str(stored).encode("utf-8", "surrogatepass")


def _engine(url: str | sql.URL) -> sql.Engine:
    try:
        asked = sql.make_url(url)
        if asked.drivername in ("postgresql", "postgres"):
            asked = asked.set(drivername="postgresql+psycopg")
        if asked.get_backend_name() not in ("sqlite", "postgresql"):
            raise sql.exc.ArgumentError(asked.drivername)
        if asked.get_backend_name() == "postgresql":
            return sql.create_engine(
                asked,
                pool_pre_ping=True,
                isolation_level="READ COMMITTED",  # what a lock waited for must be seen after it
                connect_args={"connect_timeout": 10},
            )
    except (sql.exc.ArgumentError, ModuleNotFoundError, ValueError):
        raise InputError(
            f"{URL} does not name a database that kdcal can use",
            fix="Write it as postgresql://user:password@host/name, or leave the variable out.",
        ) from None  # the error's words may hold a part of the password
    engine = sql.create_engine(asked, connect_args={"timeout": _BUSY_SECONDS})
    sql.event.listen(engine, "connect", _open_sqlite)
    sql.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _open_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: sql.Connection) -> None:
    """Take a writer's lock at once: two that read first and then write could not both go on."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _copy_rows(source: sql.Connection, made: Path) -> None:
    """Write what a database holds to an SQLite file of the same schema."""
    engine = _engine(sql.URL.create("sqlite", database=str(made)))
    try:
        with engine.begin() as target:
            command.upgrade(_alembic(target), str(_revision(source)))
            tables = sql.MetaData()
            tables.reflect(target)
            for table in tables.sorted_tables:
                if table.name == VERSIONS:
                    continue
                rows = source.execute(
                    sql.select(table), execution_options={"yield_per": _ROWS_AT_ONCE}
                )
                for some in rows.mappings().partitions():
                    target.execute(sql.insert(table), [dict(one) for one in some])
    finally:
        engine.dispose()


def _our_tables(connection: sql.Connection) -> list[str]:
    """The tables of any kdcal that are there, in the order in which writers come to them."""
    there = {one for one in sql.inspect(connection).get_table_names() if one.startswith("kdcal_")}
    ours = [one.name for one in schema.sorted_tables if one.name in there]
    return [*ours, *sorted(there - set(ours))]


def _known_schemas() -> ScriptDirectory:
    return ScriptDirectory(str(_MIGRATIONS))


def _revision(connection: sql.Connection) -> str | None:
    """Of the schema; None if there is none."""
    return _context(connection).get_current_revision()


def _context(connection: sql.Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"version_table": VERSIONS})


def _alembic(connection: sql.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


_FIXES = (
    (
        ("readonly", "read-only", "Permission denied", "permission denied"),
        "Make it writable for this user.",
    ),
    (("disk is full", "No space left"), "Free space on its disk. Nothing of this was written."),
    (("no such table",), "Restore it from a backup."),
)
_TRY_AGAIN = (
    "Check that it is running and that this user may use it, and try again. What was confirmed "
    "before is kept."
)
_RESTORE = "Restore it from a backup, or check that no other program changed its tables."
_OUT_OF_ORDER = (sql.exc.OperationalError, sql.exc.InterfaceError, sql.exc.TimeoutError)


@contextlib.contextmanager
def as_input(place: str) -> Iterator[None]:
    """Say of what the database refuses what is wrong and how to mend it."""
    try:
        yield
    except (sql.exc.DBAPIError, sql.exc.TimeoutError) as error:
        said, out_of_order = _line(error), isinstance(error, _OUT_OF_ORDER)
        what = "cannot be used" if out_of_order else "refuses"
        raise InputError(
            f"The database of audits {'is read-only' if _is_read_only(said) else what} ({said})",
            fix=_fix(said, _TRY_AGAIN if out_of_order else _RESTORE),
            file=place,
        ) from error
    except OSError as error:
        said = _line(error)
        raise InputError(
            f"The folder of audits cannot be used ({said})",
            fix=_fix(said, "Make it writable for this user."),
            file=place,
        ) from error


def _is_read_only(said: str) -> bool:
    return "readonly" in said or "read-only" in said


def _fix(said: str, otherwise: str) -> str:
    return next((fix for words, fix in _FIXES if any(one in said for one in words)), otherwise)


def _line(error: BaseException) -> str:
    """What a driver or the system says, in one line."""
    at_fault = getattr(error, "orig", None) or error
    said = at_fault.strerror if isinstance(at_fault, OSError) else str(at_fault)
    return printable(said or type(at_fault).__name__, 200)
