"""How far two sets share rows, told from a small sketch of each that holds no row."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.equal_rows import row_keys
from kdcal_core.statistics import clopper_pearson

KEPT = 1024
"""Rows of a sketch, at most."""
LEAST_SEEN = 20
"""Rows of the later set that a statement takes, at least."""
_FEWEST_COMMON = 20  # rows in both sets; what is known of fewer would be known of persons
_MOST_EQUAL = 0.05  # share of a set's rows that may equal others of it


@dataclass(frozen=True, eq=False)
class RowSketch:
    """The 1,024 smallest keyed hashes of a set's distinct rows (Broder 1997, bottom-k).

    Whoever has not the key cannot try whether a row is in it.

    Attributes
    ----------
    key : str
        What identifies the key, and does not say it.
    columns : str
        Keyed digest of the names of the columns that describe the rows.
    n, distinct : int
        Rows, and distinct ones.
    least : (k,) uint64 array
        Rising.
    """

    key: str
    columns: str
    n: int
    distinct: int
    least: NDArray[np.uint64] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no sketch: it may have been read from a file.

        Raises
        ------
        ValueError
        """
        size = min(self.distinct, KEPT)
        rising = self.least.ndim == 1 and bool((self.least[1:] > self.least[:-1]).all())
        if not (rising and self.least.dtype == np.uint64 and len(self.least) == size):
            raise ValueError("no sketch of rows")
        if not 0 < self.distinct <= self.n:
            raise ValueError("no sketch of rows")

    @property
    def whole(self) -> bool:
        """Whether it holds every distinct row."""
        return self.distinct <= KEPT

    @property
    def repeated(self) -> float:
        """Share of the rows that equal another one of the set."""
        return 1.0 - self.distinct / self.n


@dataclass(frozen=True)
class RowOverlap:
    """The share of a later set's distinct rows that an earlier set holds too.

    Attributes
    ----------
    share, low, high : float
        With Clopper and Pearson's 95% interval, 0 to 1; exact where both sets are small.
    seen : int
        Rows of the later set that were looked at.
    chance : float
        The share that chance gives, by how often rows within the sets are equal.
    why_not : str
        Why it is not known; then the numbers are NaN. Empty where it is.
    """

    share: float = np.nan
    low: float = np.nan
    high: float = np.nan
    seen: int = 0
    chance: float = 0.0
    why_not: str = ""


def row_sketch(table: pd.DataFrame, outcome: NDArray[Any], key: bytes) -> RowSketch | None:
    """The sketch of a set's rows; None without columns or rows.

    Parameters
    ----------
    table : data frame
        What describes the rows. The order of columns does not count.
    outcome : (n,) array
        Their classes' names, or their outcomes, which have to be equal too.
    key : 16, 24 or 32 secret bytes

    Notes
    -----
    A row's 64-bit key is encrypted as one block of AES, which is a pseudo-random function of it.

    Examples
    --------
    >>> table = pd.DataFrame({"age": np.arange(3000.0)})
    >>> y = np.where(np.arange(3000) % 2, "yes", "no")
    >>> one = row_sketch(table[:2000], y[:2000], b"k" * 16)
    >>> two = row_sketch(table[1500:], y[1500:], b"k" * 16)
    >>> found = row_overlap(one, two)  # 500 of the 1,500 later rows
    >>> found.low < 1 / 3 < found.high, found.seen
    (True, 793)
    """
    if not table.shape[1] or not len(table):
        return None
    names = sorted(map(str, table.columns))
    ordered = table[sorted(table.columns, key=str)]
    hashed = np.unique(_keyed(row_keys(ordered, outcome), key))
    told = blake2b("\0".join(names).encode(), key=key, digest_size=8, person=b"columns")
    return RowSketch(
        blake2b(b"rows of audits", key=key, digest_size=8, person=b"key").hexdigest(),
        told.hexdigest(),
        len(table),
        len(hashed),
        hashed[:KEPT],
    )


def _keyed(values: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    """A pseudo-random number of each value, (n,)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    blocks = np.zeros((len(values), 2), dtype="<u8")
    blocks[:, 0] = values
    # every block is one value, so that equal ones are to give equal numbers
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    made = encryptor.update(blocks.tobytes()) + encryptor.finalize()
    return np.frombuffer(made, dtype="<u8").reshape(-1, 2)[:, 0].astype(np.uint64)


def row_overlap(before: RowSketch | None, after: RowSketch | None) -> RowOverlap:
    """How many of the later set's distinct rows the earlier one holds.

    Below the smaller of both sketches' largest hashes, where each holds every row of its set, the
    later set's rows are a random sample of its rows, and each is in the earlier sketch or is not.

    Examples
    --------
    >>> row_overlap(None, None).why_not
    'an audit has no sketch of its rows'
    """
    if before is None or after is None:
        return RowOverlap(why_not="an audit has no sketch of its rows")
    if before.key != after.key:
        return RowOverlap(why_not="the sketches of rows were made with two keys")
    if before.columns != after.columns:
        return RowOverlap(why_not="other columns describe the rows")
    if max(before.repeated, after.repeated) > _MOST_EQUAL:
        return RowOverlap(why_not="many rows of one set are equal by chance")
    ends = [one.least[-1] for one in (before, after) if not one.whole]
    mine = after.least if not ends else after.least[after.least <= min(ends)]
    exact, seen = not ends, len(mine)
    if not exact and seen < LEAST_SEEN:
        return RowOverlap(why_not="the sets differ too much in size")
    common = int(np.isin(mine, before.least).sum())
    share = common / seen if common >= _FEWEST_COMMON else 0.0
    if 0 < common < _FEWEST_COMMON or (exact and not common):  # a guess at one row stays one
        low, high = 0.0, min(_FEWEST_COMMON / seen, 1.0)
    else:
        low, high = (share, share) if exact else map(float, clopper_pearson(share, seen, 0.95))
    pairs = sum(one.n - one.distinct for one in (before, after))
    among = 0.5 * (float(before.n) ** 2 + float(after.n) ** 2)
    return RowOverlap(share, low, high, seen, pairs / among * before.n)
