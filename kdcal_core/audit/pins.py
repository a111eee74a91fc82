"""What this machine last knew of each project: the key that began its record, and its last entry.

A record that was replaced by a whole other one, signed with another key, holds in itself, and so
does one that was shortened. Both contradict the pin, which lies in the folder of audits and not in
the database. Others may have written since: a pin that is behind the record contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kdcal_core.audit.signing import canonical, digest
from kdcal_core.store.disk import make_folder, read_json, write_bytes
from kdcal_core.text import counted

FOLDER = "pins"
"""Within the folder of audits."""


@dataclass(frozen=True)
class Pin:
    """How far this machine knew a record.

    Attributes
    ----------
    key : str
        Digest of the key that began it.
    number : int
        Of the last entry.
    head : str
        SHA-256 of the last entry; empty if the pin cannot be read.
    """

    key: str
    number: int
    head: str

    def contradiction(self, key: str, heads: Mapping[int, str]) -> str | None:
        """What a record is otherwise than this machine knew it, in a sentence.

        Parameters
        ----------
        key : str
            Digest of the key that began the record.
        heads : dict of number to SHA-256
            Of its entries, from the pin's number on or from an earlier one.

        Examples
        --------
        >>> pin = Pin("a" * 64, 2, "f" * 64)
        >>> pin.contradiction("a" * 64, {2: "f" * 64, 3: "e" * 64})
        >>> pin.contradiction("a" * 64, {1: "e" * 64})
        'The record was shortened: this machine knows 1 entry more.'
        """
        last = max(heads, default=0)
        if not self.head:
            return "What this machine knows of the record (its pin) cannot be read."
        if key != self.key:
            return (
                f"The record was replaced: it begins with the key {key[:12] or 'of nobody'}, and "
                f"this machine knows it with the key {self.key[:12]}."
            )
        if self.number > last:
            more = counted(self.number - last, "entry", "entries")
            return f"The record was shortened: this machine knows {more} more."
        if heads.get(self.number) != self.head:
            return (
                f"The record was replaced: its entry {self.number} is not the one that this "
                "machine knows."
            )
        return None


class Pins:
    """The pins of one database.

    Parameters
    ----------
    root : Path
        The folder of audits.
    place : str, optional
        Of a database that is not in this folder: each has pins of its own.

    Examples
    --------
    >>> import tempfile
    >>> pins = Pins(Path(tempfile.mkdtemp()))
    >>> pins.put("0123456789abcdef", Pin("a" * 64, 2, "f" * 64))
    >>> pins.projects(), pins.of("0123456789abcdef").number, pins.of("other")
    (('0123456789abcdef',), 2, None)
    """

    def __init__(self, root: Path, place: str = "") -> None:
        name = digest(place.encode())[:16] if place else "sqlite"
        self.folder = root / FOLDER / name

    def projects(self) -> tuple[str, ...]:
        """The ids of the projects that have a pin."""
        return tuple(sorted(one.stem for one in self.folder.glob("*.json")))

    def of(self, project: str) -> Pin | None:
        """The pin of a project, if it has one."""
        path = self._path(project)
        if not path.exists():
            return None
        match read_json(path):
            case {"key": str(key), "number": int(number), "head": str(head)}:
                return Pin(key, number, head)
        return Pin("", 0, "")

    def put(self, project: str, pin: Pin) -> None:
        """Keep a pin; on a disk that takes none, the one before stays, which is only behind."""
        with suppress(OSError):
            make_folder(self.folder)
            write_bytes(self._path(project), canonical(vars(pin)), durable=True)

    def _path(self, project: str) -> Path:
        return self.folder / f"{project}.json"
