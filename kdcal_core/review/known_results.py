"""Since when this machine has known results of a model on its rows.

Whether limits were chosen before results is what an audit must say. One small file beside the
audits keeps when kdcal first computed results of scored rows, whatever asked for them: a page, a
gate or another command. Rows are named by the digest of what was judged (predictions, outcomes,
weights), so that another review of the same files has the same one, and by that of predictions and
outcomes alone, which stays when a column becomes a weight or a cluster. It holds no rows and no
names of files, and knows nothing of other machines and of other programs.

Every result has a number. What came first is said by numbers, not by a clock that may be set back.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from kdcal_core.review.review import Review
from kdcal_core.store import decode, encode
from kdcal_core.store.disk import KnownFiles, identity_of, locked, make_folder, write_json

FILE = "first_results.json"
MOST = 5_000
"""Rows of which the list knows; with more, it forgets those that came first."""
_SECONDS = 10.0
_LONGEST_HOST = 64


@dataclass(frozen=True)
class FirstResults:
    """When results of some rows were first computed.

    Attributes
    ----------
    number : int
        Its place in the list; 0 for results of before the list.
    at : str
        UTC, as "2026-11-25T16:20:00.123456Z".
    host : str
        The machine.
    """

    number: int
    at: str
    host: str


@dataclass(frozen=True)
class PlaceInList:
    """How far a list went at a moment: results with a higher number came later.

    Attributes
    ----------
    list : str
        Identifier of the list.
    number : int
        Of its last result.
    """

    list: str
    number: int


@dataclass(frozen=True)
class Known:
    """The list as it is.

    Attributes
    ----------
    id : str
        A list that begins anew has another one.
    since : str
        When it began, in UTC.
    last : int
        Number of the last result.
    forgotten : int
        How many results it knows no more.
    rows : dict of digest to FirstResults
    """

    id: str
    since: str
    last: int = 0
    forgotten: int = 0
    rows: dict[str, FirstResults] = field(default_factory=dict)

    @property
    def place(self) -> PlaceInList:
        """How far it goes."""
        return PlaceInList(self.id, self.last)

    def with_results(self, rows: Iterable[str], at: str = "") -> Known:
        """The list with results that are computed now, or were ``at`` a time before it began."""
        new = [one for one in dict.fromkeys(rows) if one not in self.rows]
        if not new:
            return self
        last = self.last if at else self.last + 1
        first = FirstResults(0 if at else last, at or utc_now(), this_host())
        every = sorted({**self.rows, **dict.fromkeys(new, first)}.items(), key=_number)
        kept = dict(every[max(len(every) - MOST, 0) :])
        gone = self.forgotten + len(every) - len(kept)
        return replace(self, last=last, forgotten=gone, rows=kept)


def _number(item: tuple[str, FirstResults]) -> int:
    return item[1].number


class KnownResults:
    """The list of this machine.

    Parameters
    ----------
    root : Path, optional
        The folder in which it lies; by default `root_of_audits`.

    Examples
    --------
    >>> import tempfile
    >>> known = KnownResults(Path(tempfile.mkdtemp()))
    >>> before = known.note(["a" * 64])
    >>> before.rows.get("a" * 64) is None, known.read().rows["a" * 64].number
    (True, 1)
    >>> known.note(["a" * 64]) == known.read()
    True
    """

    def __init__(self, root: Path | None = None) -> None:
        self._path = (root or root_of_audits()) / FILE

    def read(self) -> Known | None:
        """The list; None where there is none, or it cannot be read."""
        try:
            state = identity_of(self._path)
            found = _lists.find(self._path, state)
            if found is None:
                found = decode(Known, json.loads(self._path.read_bytes()))
                _lists.keep(self._path, state, found)
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
        return found

    def note(self, rows: Iterable[str] = (), *, at: str = "") -> Known:
        """Keep that results of these rows are computed now, and return the list as it was before.

        A list that is not there, or cannot be read, begins anew.

        Parameters
        ----------
        rows : iterable of SHA-256
        at : str, optional
            When they were computed, if that was before the list began.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        asked, known = tuple(rows), self.read()
        if known is not None and all(one in known.rows for one in asked):
            return known
        make_folder(self._path.parent)
        with locked(self._path.with_name(f".{FILE}.lock"), seconds=_SECONDS):
            before = self.read() or Known(secrets.token_hex(8), utc_now())
            write_json(self._path, encode(before.with_results(asked, at)))
        return before


_lists: KnownFiles[Known] = KnownFiles(8)  # a page asks in every run


def note_results(review: Review) -> Known | None:
    """Keep that results of a review's rows are computed now; what was known before.

    On a disk that takes nothing, nothing is kept, and what was asked for is computed all the same.
    """
    rows, known = [name for one in review.sets.values() for name in one.known_as], KnownResults()
    with suppress(OSError):
        if review.first_results:
            known.note(rows, at=review.first_results)
        return known.note(rows)
    return known.read()


def root_of_audits() -> Path:
    """The folder of audits: in ``$KDCAL_HOME``, else in the user's folder for data.

    Reviews lie in a cache, which may be emptied; records must not.

    Examples
    --------
    >>> root_of_audits().is_absolute(), root_of_audits().name
    (True, 'audits')
    """
    if home := os.environ.get("KDCAL_HOME"):
        return Path(home).absolute() / "kdcal" / "audits"
    data = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA")
    base = Path(data) if data else Path.home() / ".local" / "share"
    return base.absolute() / "kdcal" / "audits"


def this_host() -> str:
    """The name of this machine."""
    return socket.gethostname()[:_LONGEST_HOST]


def utc_now() -> str:
    """The time of this machine's clock, as "2026-11-25T16:20:00.123456Z"."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
