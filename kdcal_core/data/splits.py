"""Rows divided into folds, halves and sets, with seeded draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from kdcal_core.data.frames import as_pandas
from kdcal_core.data.schema import IntArray
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence
from kdcal_core.text import counted

_SET_NAMES = {
    "calibration": (
        *("calibration", "calibrate", "calib", "cal"),
        *("validation", "valid", "val", "dev"),
    ),
    "evaluation": ("evaluation", "evaluate", "eval", "test", "testing", "holdout", "heldout"),
    "train": ("train", "training", "fit"),
}
_SET_OF_NAME = {name: which for which, names in _SET_NAMES.items() for name in names}


def random_folds(
    n_rows: int,
    n_folds: int,
    seed: int = 0,
    dependence: Dependence | None = None,
    *,
    fewer: bool = False,
) -> IntArray:
    """Fold of each row, 0 to ``n_folds`` - 1, (n,), whatever its class: sizes as equal as can be.

    For losses of rows held out from a fit. Folds with equal shares of each class would tell the fit
    the shares of the held-out rows: with K classes an offset for each then seems to gain about
    (K - 1) / n nats a row on a model that is right.

    Dependent rows stay together. Clusters are dealt like rows, large ones first. In time every fold
    is a stretch of neighbouring times.

    Parameters
    ----------
    fewer : bool
        Whether there are fewer folds where there are fewer rows, clusters or times.

    Raises
    ------
    InputError
        Where there are fewer rows, clusters or times than folds, or fewer than two folds.

    Examples
    --------
    >>> import numpy as np
    >>> np.bincount(random_folds(12, 4, seed=1)).tolist()
    [3, 3, 3, 3]
    >>> pairs = Dependence.of("cluster", np.repeat(np.arange(6), 2))
    >>> folds = random_folds(12, 3, seed=1, dependence=pairs)
    >>> bool((folds[::2] == folds[1::2]).all()), np.bincount(folds).tolist()
    (True, [4, 4, 4])
    """
    alike = np.zeros(n_rows, dtype=np.int64)
    return stratified_folds(alike, n_folds, seed, dependence, fewer=fewer)


def stratified_folds(
    y: IntArray,
    n_folds: int,
    seed: int = 0,
    dependence: Dependence | None = None,
    *,
    fewer: bool = False,
) -> IntArray:
    """As `random_folds`, and with class shares as equal as can be: for parts that are compared.

    Rows are shuffled inside their class, the classes follow one another, and folds are dealt in
    turn; so fold sizes differ by at most one, and so do the rows of any class. A cluster has the
    class of most of its rows.

    Examples
    --------
    >>> folds = stratified_folds(np.repeat([0, 1], [8, 4]), 4, seed=1)
    >>> np.bincount(folds).tolist(), np.bincount(folds[8:]).tolist()
    ([3, 3, 3, 3], [1, 1, 1, 1])
    """
    unit = np.arange(len(y)) if dependence is None else dependence.present
    n = int(unit.max(initial=-1)) + 1
    n_folds = min(n_folds, n) if fewer else n_folds
    if not 2 <= n_folds <= n:
        noun = "row" if dependence is None else dependence.kind
        raise InputError(
            f"{counted(n, noun)} cannot be divided into {n_folds} folds",
            fix=f"Give at least {max(n_folds, 2)} {noun}s, or use fewer folds, at least two.",
        )
    if dependence is not None and dependence.kind == "time":
        return np.asarray(unit * n_folds // n)
    size, kind = np.bincount(unit), y
    if dependence is not None:
        _, label = np.unique(y, return_inverse=True)
        rows = np.bincount(unit * (label.max() + 1) + label, minlength=n * (label.max() + 1))
        kind = rows.reshape(n, -1).argmax(axis=1)
    order = np.lexsort((np.random.default_rng(seed).random(n), -size, kind))
    folds = np.empty(n, dtype=np.int64)
    folds[order] = np.arange(n) % n_folds
    return folds[unit]


def at_most(n: int, most: int, seed: int | Sequence[int] = 0) -> IntArray:
    """Positions of at most ``most`` of ``n`` rows, ascending: all, or a uniform sample of them.

    Examples
    --------
    >>> at_most(3, 5).tolist(), at_most(1000, 4, seed=1).tolist()
    ([0, 1, 2], [471, 510, 754, 950])
    """
    if n <= most:
        return np.arange(n, dtype=np.int64)
    drawn = np.random.default_rng(seed).choice(n, most, replace=False)
    return np.sort(drawn).astype(np.int64)


def two_parts(
    n_rows: int, n_first: int, seed: int = 0, dependence: Dependence | None = None
) -> tuple[IntArray, IntArray]:
    """Positions of about ``n_first`` rows drawn at random, and of the others, both ascending.

    Dependent rows stay together: clusters are drawn, until no further one fits; in time the first
    part is the earlier stretch. There is at least one of them in it, if there are several.

    Examples
    --------
    >>> first, second = two_parts(10, 4)
    >>> len(first), len(second)
    (4, 6)
    >>> pairs = Dependence.of("cluster", np.repeat(np.arange(5), 2))
    >>> first, second = two_parts(10, 5, 0, pairs)
    >>> (first[::2] + 1 == first[1::2]).tolist(), len(second)
    ([True, True], 6)
    """
    if dependence is None:
        drawn = np.random.default_rng(seed).permutation(n_rows)
        return np.sort(drawn[:n_first]), np.sort(drawn[n_first:])
    unit = dependence.present
    size = np.bincount(unit)
    order = np.arange(len(size))
    if dependence.kind == "cluster":
        order = np.random.default_rng(seed).permutation(len(size))
        # one that fills the part alone would keep out all after it
        order = order[np.argsort(size[order] > n_first, kind="stable")]
    taken = order[np.cumsum(size[order]) <= n_first]
    if not len(taken) and n_first > 0 and len(order) > 1:
        taken = order[:1]
    first = np.isin(unit, taken)
    return np.flatnonzero(first), np.flatnonzero(~first)


def fit_and_held(fold: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Of each fold, the rows that a fit takes and the held-out rows that it answers for.

    Examples
    --------
    >>> import numpy as np
    >>> [(fit.tolist(), held.tolist()) for fit, held in fit_and_held(np.array([0, 1, 0]))]
    [([1], [0, 2]), ([0, 2], [1])]
    """
    for one in range(int(fold.max()) + 1):
        yield np.flatnonzero(fold != one), np.flatnonzero(fold == one)


def split_by_column(
    frame: pd.DataFrame, column: str, *, file: str | None = None
) -> dict[str, IntArray]:
    """Row positions of each set named in a split column.

    Keys are "calibration", "evaluation" and "train", those that occur.

    Raises
    ------
    InputError
        Where a value names no set, or no row is held out.

    Examples
    --------
    >>> import pandas as pd
    >>> sets = split_by_column(pd.DataFrame({"part": ["cal", "test", "cal"]}), "part")
    >>> {which: rows.tolist() for which, rows in sets.items()}
    {'calibration': [0, 2], 'evaluation': [1]}
    """
    codes, names = pd.factorize(as_pandas(frame)[column].astype("string").str.strip().str.lower())
    sets = [_SET_OF_NAME.get(re.sub("[_ -]", "", str(name))) for name in names]
    fix = "Use the words train, calibration and evaluation, or take the role away from this column."
    if (codes < 0).any():
        row = int(np.argmax(codes < 0)) + 1
        raise InputError("The split is missing", fix=fix, file=file, column=column, row=row)
    for index, which in enumerate(sets):
        if which is None:
            row = int(np.argmax(codes == index)) + 1
            raise InputError(
                f"{str(names[index])[:40]!r} names no set",
                fix=fix,
                file=file,
                column=column,
                row=row,
            )
    found: dict[str, IntArray] = {}
    for which in _SET_NAMES:
        members = [index for index, name in enumerate(sets) if name == which]
        if members:
            found[which] = np.flatnonzero(np.isin(codes, members)).astype(np.int64)
    if set(found) == {"train"}:
        raise InputError("Every row is a training row", fix=fix, file=file, column=column)
    return found
