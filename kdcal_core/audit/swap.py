"""One folder of audits in the place of another, wholly or not at all, whenever the process ends.

Two renames and PostgreSQL's transaction cannot be one step. A note beside the folder says that they
are under way; whoever opens the record next completes them, or takes them back where the database
took nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from kdcal_core.audit.database import URL, Database, as_input
from kdcal_core.audit.signing import canonical
from kdcal_core.errors import InputError
from kdcal_core.store.disk import locked, make_folder, read_json, write_bytes


@dataclass(frozen=True)
class Swap:
    """Which folder comes in the place of which.

    Attributes
    ----------
    moment : str
        Of the restore; the database repeats it if it took the restored lines.
    aside : str
        The name of the folder of before afterwards; empty if there was none.
    place : str
        Of the database, if it is not in the folder.
    """

    moment: str
    aside: str
    place: str


def made_beside(home: Path) -> Path:
    """Where the folder is built that comes in the place of ``home``."""
    return home.with_name(f".{home.name}.restoring")


@contextmanager
def swaps_alone(home: Path, url: str | None) -> Iterator[Database | None]:
    """Keep others from exchanging the folder; an exchange that was cut off is settled first.

    Gives the database, if it is not in the folder.

    Raises
    ------
    InputError
        If the exchange was with another database than this one.
    """
    given = os.environ.get(URL) if url is None else url
    with ExitStack() as held:
        database = None
        if given:  # whose tables may be those of another kdcal, which the exchange moves aside
            database = held.enter_context(closing(Database(home, given, as_it_is=True)))
        make_folder(home.parent)
        held.enter_context(locked(home.with_name(f".{home.name}.restore.lock")))
        _settle(home, database)
        yield database


def settle_swap(root: Path, url: str | None = None) -> None:
    """Complete an exchange of the folder of audits that was cut off, or take it back.

    Parameters
    ----------
    root, url
        As of `Record`.

    Raises
    ------
    InputError
        If it was with another database than this one, or the folders cannot be renamed.
    """
    home = Path(os.path.realpath(root))
    if _note(home).exists():
        with ExitStack() as held, as_input(str(home)):
            held.enter_context(swaps_alone(home, url))


@contextmanager
def swapped(home: Path, swap: Swap, database: Database | None) -> Iterator[Callable[[], None]]:
    """A function that puts what is `made_beside` in the place of ``home``, to call within the body.

    The caller holds `swaps_alone`. The exchange is taken back if the body ends with an error,
    unless the database took the lines of ``swap`` nevertheless.
    """
    done = False

    def put() -> None:
        nonlocal done
        write_bytes(_note(home), canonical(asdict(swap)), durable=True)
        _complete(home, swap)
        done = True

    with ExitStack() as held:
        if swap.aside:
            held.enter_context(locked(home / ".files.lock"))  # a draft under way ends first
        try:
            yield put
        except BaseException:
            # a database out of reach may have taken them: whoever opens the record next asks it
            with suppress(InputError):
                if not (done and database is not None and database.restored_at == swap.moment):
                    _take_back(home, swap)
                _note(home).unlink(missing_ok=True)
            raise
        _note(home).unlink()


def _note(home: Path) -> Path:
    return home.with_name(f".{home.name}.restoring.json")


def _settle(home: Path, database: Database | None) -> None:
    said = read_json(_note(home))
    if said is None:
        return
    swap = Swap(**said)
    if not swap.place:
        _complete(home, swap)
    elif database is None or database.place != swap.place:
        raise InputError(
            f"A restore to the database {swap.place} was cut off",
            fix=f"Set {URL} to that database, and start kdcal again.",
            file=str(home),
        )
    elif database.restored_at == swap.moment:
        _complete(home, swap)
    else:
        _take_back(home, swap)
        shutil.rmtree(made_beside(home), ignore_errors=True)
    _note(home).unlink()


def _complete(home: Path, swap: Swap) -> None:
    made = made_beside(home)
    if not made.exists():
        return  # it is in place
    if swap.aside and not (home.parent / swap.aside).exists():
        home.rename(home.parent / swap.aside)
    _move_away(home, swap)
    made.rename(home)


def _take_back(home: Path, swap: Swap) -> None:
    made, aside = made_beside(home), home.parent / swap.aside
    if not made.exists():
        home.rename(made)
    if swap.aside and aside.exists():
        _move_away(home, swap)
        aside.rename(home)


def _move_away(home: Path, swap: Swap) -> None:
    """Move a folder that appeared while there was none, such as that of a key just made."""
    if home.exists():
        names = (f"{home.name}-since-{swap.moment}-{at}" for at in count(1))
        home.rename(next(one for name in names if not (one := home.parent / name).exists()))
