"""Lists of methods and formats that offer themselves where they are written.

An entry stands at the end of the module that defines its method, and every module of a room is
imported with the room. So a new method is one new file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeVar


class Entry(Protocol):
    """A method's entry in its list."""

    @property
    def key(self) -> str: ...

    @property
    def family(self) -> str: ...


E = TypeVar("E", bound=Entry)


def offer(entry: E, entries: dict[str, E], families: Sequence[str]) -> None:
    """Put an entry into a list that is ordered by family, then as offered.

    Raises
    ------
    ValueError
        Another entry has its key.
    """
    if entry.key in entries:
        raise ValueError(f"Two entries of the list have the key {entry.key!r}")
    every = sorted((*entries.values(), entry), key=lambda one: families.index(one.family))
    entries.clear()
    entries.update({one.key: one for one in every})


def import_modules(folder: list[str], package: str, *, without: Collection[str] = ()) -> None:
    """Import each module of the folder, so that its methods offer themselves.

    Modules with a leading underscore offer none.
    """
    for found in iter_modules(folder):
        if not found.name.startswith("_") and found.name not in without:
            import_module(f"{package}.{found.name}")
