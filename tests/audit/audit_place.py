"""Where a record of a test lies."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sql

from kdcal_core.audit import Record


@dataclass(frozen=True)
class Place:
    """Where a record lies: its folder, and its database's address for PostgreSQL."""

    root: Path
    url: str | None

    def open(self) -> Record:
        return Record(self.root, self.url)

    def engine(self) -> sql.Engine:
        """Straight to the database, as somebody who alters it would go."""
        url = self.url or f"sqlite:///{self.root / 'audits.sqlite'}"
        return sql.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))

    def clear(self) -> None:
        """Leave nothing of the record."""
        self.clear_database()
        shutil.rmtree(self.root, ignore_errors=True)

    def clear_database(self) -> None:
        """Leave nothing in the database."""
        if self.url is None:
            for one in self.root.glob("audits.sqlite*"):
                one.unlink()
            return
        engine = self.engine()
        with engine.begin() as connection:
            connection.execute(sql.text("DROP SCHEMA public CASCADE"))
            connection.execute(sql.text("CREATE SCHEMA public"))
        engine.dispose()


@contextmanager
def new_place(root: Path, server: str | None) -> Iterator[Place]:
    """An empty place: in a file, or in a new database of a PostgreSQL server."""
    if server is None:
        yield Place(root, None)
        return
    name = f"test_{secrets.token_hex(8)}"
    engine = sql.create_engine(
        server.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE DATABASE {name}"))
    yield Place(root, server.rpartition("/")[0] + f"/{name}")
    with engine.connect() as connection:
        connection.execute(sql.text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()
