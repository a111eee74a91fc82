"""Messages that wait in the database until somebody has them.

A message is stored in the transaction of the entry that it is about, so that none is lost. Who
sends it takes it for some minutes; if that process dies, the message is due again afterwards. So
every message arrives at least once, and its identifier shows a receiver what it has already.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sql

from kdcal_core.audit.database import OUTBOX, Database

Channel = Literal["webhook", "mail"]
LEASE_SECONDS = 600
"""For how long a message is somebody's who sends it; longer than any try."""
_WAITING, _GIVEN_UP = "waiting", "given up"
_MOST_LISTED = 200


@dataclass(frozen=True)
class Message:
    """A message as it is stored.

    Attributes
    ----------
    id : str
        The same at every try.
    project : str
        Identifier of the project.
    number : int
        Of the entry in the project's record.
    channel : {"webhook", "mail"}
    notice : str
        As `notice_text` wrote it.
    tries : int
        That began.
    due : int
        When the next may begin, in seconds since 1970.
    said : str
        Why the last try failed; empty before the first, and during a try.
    given_up : bool
        Whether there will be no further try.
    """

    id: str
    project: str
    number: int
    channel: Channel
    notice: str
    tries: int = 0
    due: int = 0
    said: str = ""
    given_up: bool = False


def new_message_id() -> str:
    """An identifier of a message, which nobody has used."""
    return f"msg_{secrets.token_hex(16)}"


def row_of(message: Message) -> dict[str, Any]:
    """The message as `Writing.post` stores it."""
    row = asdict(message)
    state = _GIVEN_UP if row.pop("given_up") else _WAITING
    return {**row, "state": state}


class Outbox:
    """The messages of a database.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, channels: Collection[Channel], now: float) -> Message | None:
        """The message that has been due longest, which is then ours for `LEASE_SECONDS`."""
        asked = (
            sql.select(OUTBOX)
            .where(_waiting(channels), OUTBOX.c.due <= int(now))
            .order_by(OUTBOX.c.due, OUTBOX.c.number, OUTBOX.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)  # SQLite's transaction locks the whole file
        )
        with self._database.changing() as connection:
            row = connection.execute(asked).one_or_none()
            if row is None:
                return None
            connection.execute(
                sql.update(OUTBOX)
                .where(OUTBOX.c.id == row.id)
                .values(tries=row.tries + 1, due=int(now) + LEASE_SECONDS, said="")
            )
        return _message(row, tries=row.tries + 1)

    def sent(self, message: Message) -> None:
        """Forget a message that arrived."""
        with self._database.changing() as connection:
            connection.execute(sql.delete(OUTBOX).where(OUTBOX.c.id == message.id))

    def try_later(self, message: Message, due: float, said: str) -> None:
        """Keep a message for a further try, unless somebody else has begun one."""
        self._change(message, state=_WAITING, due=int(due), said=said)

    def give_up(self, message: Message, said: str) -> None:
        """Keep a message and try no more, unless somebody else has begun a try."""
        self._change(message, state=_GIVEN_UP, said=said)

    def _change(self, message: Message, **values: str | int) -> None:
        with self._database.changing() as connection:
            connection.execute(
                sql.update(OUTBOX)
                .where(OUTBOX.c.id == message.id, OUTBOX.c.tries == message.tries)
                .values(**values)
            )

    def begin_again(self, channels: Collection[Channel], now: float) -> int:
        """Make due what waits or was given up; how many messages. Those being sent stay."""
        begun = (OUTBOX.c.state == _WAITING) & (OUTBOX.c.said == "") & (OUTBOX.c.tries > 0)
        with self._database.changing() as connection:
            done = connection.execute(
                sql.update(OUTBOX)
                .where(OUTBOX.c.channel.in_(channels), sql.not_(begun))
                .values(state=_WAITING, tries=0, due=int(now))
            )
            return int(done.rowcount)

    def next_due(self, channels: Collection[Channel]) -> int | None:
        """When the next message is due; None if none waits."""
        with self._database.reading() as connection:
            asked = sql.select(sql.func.min(OUTBOX.c.due)).where(_waiting(channels))
            found: int | None = connection.execute(asked).scalar_one()
            return found

    def messages(self) -> tuple[Message, ...]:
        """The first messages that have not arrived, those given up before the others."""
        asked = (
            sql.select(OUTBOX)
            .order_by(OUTBOX.c.state, OUTBOX.c.due, OUTBOX.c.number, OUTBOX.c.id)
            .limit(_MOST_LISTED)
        )
        with self._database.reading() as connection:
            return tuple(_message(row) for row in connection.execute(asked))


def _waiting(channels: Collection[Channel]) -> sql.ColumnElement[bool]:
    return (OUTBOX.c.state == _WAITING) & OUTBOX.c.channel.in_(channels)


def _message(row: sql.Row[tuple[object, ...]], **other: int) -> Message:
    found = dict(row._mapping)
    given_up = found.pop("state") == _GIVEN_UP
    return Message(**{**found, "given_up": given_up, **other})
