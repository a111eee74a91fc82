"""Where a record of a test lies."""

from __future__ import annotations

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
