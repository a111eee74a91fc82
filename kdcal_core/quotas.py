"""What one user may take of a server: limits of size, number, time and memory.

Each limit has a variable of the environment of the process, which whoever runs kdcal sets. A value
that is no number in range is an error, and every command and the app ask for it when they start
(`check_quotas`). ``kdcal limits`` lists all of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

from kdcal_core.errors import InputError
from kdcal_core.text import bytes_text, counted

_IN_A_UNIT = {"MiB": 2**20, "GiB": 2**30, "minutes": 60}


@dataclass(frozen=True)
class Quota:
    """One limit.

    Attributes
    ----------
    variable : str
        Of the environment.
    what : str
        What it limits, in words.
    unit : str
        "MiB", "GiB" or "minutes"; or what is counted, in the singular.
    default : float or None
        In this unit; None if the machine decides.
    default_words : str
        The default in words, if there is no number.
    least, most : float
        The range of values.
    plural : str, optional
        Of what is counted, if it is irregular.

    Examples
    --------
    >>> quota = Quota("KDCAL_MAX_X", "letters of a name", "letter", 20)
    >>> quota.amount
    20
    >>> quota.refuse_beyond(21, "The name", fix="Shorten it.")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The name has 21 letters; the limit is 20 letters. Shorten it. ...
    """

    variable: str
    what: str
    unit: str
    default: float | None
    default_words: str = ""
    least: float = 1
    most: float = 1_000_000
    plural: str | None = None

    @property
    def is_counted(self) -> bool:
        """Whether it limits a number of things."""
        return self.unit not in _IN_A_UNIT

    @property
    def is_whole(self) -> bool:
        """Whether its value is a whole number."""
        return self.unit not in ("GiB", "minutes")

    @property
    def is_set(self) -> bool:
        """Whether its variable has a value."""
        return bool(os.environ.get(self.variable, "").strip())

    @property
    def value(self) -> float | None:
        """The value in its unit, as the environment says or by default.

        Raises
        ------
        InputError
            If the variable has a value that is no number in range.
        """
        return _number(self, os.environ[self.variable]) if self.is_set else self.default

    @property
    def amount(self) -> int:
        """The limit in bytes, seconds or things.

        Raises
        ------
        InputError
            As for `value`.
        """
        assert self.value is not None
        return round(self.value * _IN_A_UNIT.get(self.unit, 1))

    @property
    def raised(self) -> str:
        """Who can raise it, and how: a sentence for errors."""
        return f"Whoever runs kdcal can raise the limit with {self.variable}."

    def refuse_beyond(
        self,
        amount: int,
        what: str,
        *,
        verb: str = "has",
        where: str = "",
        fix: str,
        file: str | None = None,
        column: str | None = None,
    ) -> None:
        """Refuse what is larger than the limit.

        Parameters
        ----------
        amount : int
            How large it is, in bytes or things.
        what, verb, where : str
            The words around the amount: ``"The table"``, ``"would take"``, ``" in memory"``.
        fix : str
            What the user can do without a higher limit.

        Raises
        ------
        InputError
            If it is: what is too large, how large, the limit, and who can raise it.
        """
        limit = self.amount
        if amount <= limit:
            return
        if self.is_counted:
            found, most = (counted(n, self.unit, self.plural) for n in (amount, limit))
        else:
            found, most = bytes_text(amount), bytes_text(limit)
            if found == most:
                found, most = f"{amount:,} bytes", f"{limit:,} bytes"
        raise InputError(
            f"{what} {verb} {found}{where}; the limit is {most}",
            fix=f"{fix} {self.raised}",
            file=file,
            column=column,
        )


@lru_cache(maxsize=64)
def _number(quota: Quota, text: str) -> float:
    kind = "whole number" if quota.is_whole else "number"
    try:
        value = int(text) if quota.is_whole else float(text)
        if quota.least <= value <= quota.most:
            return value
    except ValueError:
        pass
    of = "" if quota.is_counted else f" of {quota.unit}"
    raise InputError(
        f"{quota.variable} is {text[:40]!r}",
        fix=f"Set it to a {kind}{of} from {quota.least:,} to {quota.most:,}, or leave it "
        f"out: it limits {quota.what}.",
    )


UPLOAD = Quota("KDCAL_MAX_UPLOAD_MIB", "the size of a file that is uploaded", "MiB", 1024)
TABLE = Quota(
    "KDCAL_MAX_TABLE_GIB", "the size of a table, as a file and in memory", "GiB", 4, least=0.001
)
ROWS = Quota("KDCAL_MAX_ROWS", "rows of a table that is read as a whole", "row", 10**8, most=10**12)
COLUMNS = Quota("KDCAL_MAX_COLUMNS", "columns of a table", "column", 20_000)
CLASSES = Quota(
    "KDCAL_MAX_CLASSES", "classes of a model or a target", "class", 100_000, plural="classes"
)
MODEL = Quota(
    "KDCAL_MAX_MODEL_GIB", "the size of a model, packed and unpacked", "GiB", 1, least=0.001
)
TREE_NODES = Quota(
    "KDCAL_MAX_TREE_NODES", "nodes of all trees of a model", "node", 2 * 10**7, most=10**12
)
GRAPH_NODES = Quota("KDCAL_MAX_GRAPH_NODES", "operations of a network", "operation", 20_000)
READ_TIME = Quota("KDCAL_MAX_READ_MINUTES", "the time to read one file", "minutes", 5, least=0.01)
JOB_TIME = Quota("KDCAL_MAX_JOB_MINUTES", "the time of one job", "minutes", 30, least=0.01)
WORKER = Quota(
    "KDCAL_WORKER_GIB",
    "the memory of each worker",
    "GiB",
    None,
    "an equal share of three quarters of the memory",
)
JOBS = Quota("KDCAL_JOBS", "long jobs at once", "job", 2, most=1024)
JOBS_OF_USER = Quota(
    "KDCAL_MAX_JOBS_PER_USER", "jobs of one user that wait or run", "job", 50, most=10_000
)
GRACE = Quota(
    "KDCAL_GRACE_MINUTES",
    "the time that a job goes on while nobody has its review open, 0 for no end",
    "minutes",
    15,
    least=0,
)
QUOTAS = (
    *(UPLOAD, TABLE, ROWS, COLUMNS, CLASSES, MODEL, TREE_NODES, GRAPH_NODES),
    *(READ_TIME, JOB_TIME, WORKER, JOBS, JOBS_OF_USER, GRACE),
)


def check_quotas() -> None:
    """Refuse variables of limits that hold no number in range, all in one error.

    Raises
    ------
    InputError
    """
    wrong = []
    for quota in QUOTAS:
        try:
            _ = quota.value
        except InputError as error:
            wrong.append(error)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        first, *rest = wrong
        raise InputError(first.what, fix=" ".join([first.fix, *map(str, rest)]))
