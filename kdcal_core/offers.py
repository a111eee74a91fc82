"""Lists of methods and formats that offer themselves where they are written.

An entry stands at the end of the module that defines its method, and every module of a room is
imported with the room. So a new method is one new file.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
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


def written_keys(package: str, entry: str, *, without: Collection[str] = ()) -> tuple[str, ...]:
    """The keys of a room's methods as its modules state them, none of which is imported.

    Parameters
    ----------
    package : str
        The room, such as "kdcal_core.calibration".
    entry : str
        Name of the class of its entries, whose first argument is the key.
    without : collection of str
        Families that are left out.

    Examples
    --------
    >>> "platt" in written_keys("kdcal_core.calibration", "CalibratorEntry")
    True
    """
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations or []
    files = sorted(one for folder in folders for one in Path(folder).rglob("*.py"))
    return tuple(key for one in files for key in _keys_in(one.read_text("utf-8"), entry, without))


def _keys_in(source: str, entry: str, without: Collection[str]) -> Iterator[str]:
    for call in ast.walk(ast.parse(source)) if f"{entry}(" in source else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == entry:
            given = [*call.args, *(one.value for one in call.keywords)]
            key, *others = (one.value for one in given if isinstance(one, ast.Constant))
            if not any(one in without for one in others):
                yield str(key)
