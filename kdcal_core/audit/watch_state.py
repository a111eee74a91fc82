"""What `kdcal watch` keeps from table to table: frozen bins, and the state of the sequential test.

The file holds no rows, only the edges of bins, counts, sums over rows, and a number of 8 bytes for
each labelled row, by which a copy of it is recognized, and for each cluster of such rows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.audit.signing import canonical, digest
from kdcal_core.data.equal_rows import equal_rows
from kdcal_core.diagnostics import CalibrationWatch, FrozenBins, start_watch
from kdcal_core.errors import InputError
from kdcal_core.store import decode, encode

STATE_FORMAT = 4
MOST_KEYS = 1_000_000
"""Labelled rows whose copies are recognized, the last ones: at most 11 MB of the file."""
MOST_CLUSTERS = 300_000
"""Clusters whose further rows are recognized, the last ones: at most 4 MB more."""
Keys = NDArray[np.uint64]
_KIND = "kdcal watch"
_MOST_BYTES = 16 << 20
_ANEW = "Give the state that belongs to it, or begin anew without one."


@dataclass(frozen=True)
class Watched:
    """What is watched.

    Attributes
    ----------
    model, calibrator, reference : str
        Digests of files; empty where there is none.
    classes : tuple of str
        Untrusted text.
    event : str
        The class whose probability is watched; empty for the confidence.
    """

    model: str
    calibrator: str
    reference: str = field(metadata={"formerly": "audited"})
    classes: tuple[str, ...]
    event: str


@dataclass(frozen=True)
class WatchedTable:
    """A table that was watched: its file's name (untrusted), digest, rows, and rows with a label.

    The sequential test uses those with a label that did not count in a table before.
    """

    name: str
    sha256: str
    rows: int
    labelled: int


@dataclass(frozen=True, eq=False)
class WatchState:
    """All that is kept for the next table.

    Attributes
    ----------
    of : Watched
    bins : FrozenBins
    test : CalibrationWatch
    tables : tuple of WatchedTable
    counted : (m,) uint64 array
        Keys of the last `MOST_KEYS` rows that the test counted, as of
        `kdcal_core.data.equal_rows.row_keys`.
    fine : bool
        Whether these rows are hardly ever equal by chance.
    further_bins : tuple of FrozenBins
        Of a regression those of the interval widths, beside those of the predicted medians.
    in_runs : bool
        Whether the outcomes of some table stood in long runs (`in_long_runs`).
    clusters : (c,) uint64 array
        Keys of the last `MOST_CLUSTERS` clusters of rows that the test counted.
    """

    of: Watched
    bins: FrozenBins
    test: CalibrationWatch
    tables: tuple[WatchedTable, ...] = ()
    counted: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    fine: bool = True
    in_runs: bool = False
    further_bins: tuple[FrozenBins, ...] = ()
    clusters: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    @property
    def all_bins(self) -> tuple[FrozenBins, ...]:
        """The bins of everything whose distribution is watched."""
        return (self.bins, *self.further_bins)


def in_long_runs(outcomes: NDArray[np.int64]) -> bool:
    """Whether outcomes (m,), 0 or 1, change far more rarely than in a random order.

    That is less than half as often, and by more than four standard errors (Wald and Wolfowitz), as
    in a table that is sorted by them.

    Examples
    --------
    >>> in_long_runs(np.repeat([0, 1], 50)), in_long_runs(np.tile([0, 1], 50))
    (True, False)
    """
    n, ones = len(outcomes), int(outcomes.sum())
    if n < 2:
        return False
    changes = int(np.count_nonzero(outcomes[1:] != outcomes[:-1]))
    mean = 2.0 * ones * (n - ones) / n
    error = math.sqrt(max(mean * (mean - 1.0), 0.0) / (n - 1))
    return changes < 0.5 * mean and changes < mean - 4.0 * error


def counted_before(state: WatchState, keys: Keys, fine: bool) -> NDArray[np.bool_]:
    """Which labelled rows, by their keys, the test has counted already.

    None are, unless more rows are equal than chance gives (`kdcal_core.data.equal_rows`), or the
    table begins with the rows that were counted last, in their order, as a file does that grows. If
    two rows of a table are equal and one of them was counted, the first is left out. Labels are
    not compared, because a choice of rows by their labels would spoil the test.
    """
    left_out = np.zeros(len(keys), dtype=bool)
    if not len(keys) or not len(state.counted):
        return left_out
    if not equal_rows(state.counted, keys, fine=fine and state.fine).beyond_chance:
        left_out[: _begun_again(state.counted, keys)] = True
        return left_out
    before = Counter(state.counted.tolist())
    for at, key in enumerate(keys.tolist()):
        if before[key]:
            before[key] -= 1
            left_out[at] = True
    return left_out


_BY_CHANCE = 1e-6  # that so many rows in a row are equal


def _begun_again(counted: Keys, keys: Keys) -> int:
    """How many keys at the start are the last of those that were counted, in the same order."""
    _, share = np.unique(counted, return_counts=True)
    alike = float((share.astype(np.float64) ** 2).sum()) / len(counted) ** 2
    for start in np.flatnonzero(counted == keys[0]):
        n = len(counted) - int(start)
        few = min(n, 16)  # most starts end here
        if n > len(keys) or not np.array_equal(counted[start : start + few], keys[:few]):
            continue
        if np.array_equal(counted[start:], keys[:n]):
            return n if len(counted) * alike**n < _BY_CHANCE else 0
    return 0


def with_counted(
    state: WatchState, keys: Keys, fine: bool, clusters: Keys | None = None
) -> WatchState:
    """The state with the keys of further rows that the test counted, and of their clusters (c,)."""
    if not len(keys):
        return state
    counted = np.concatenate([state.counted, keys])[-MOST_KEYS:]
    known = state.clusters
    if clusters is not None:
        known = np.concatenate([known, np.unique(clusters)])[-MOST_CLUSTERS:]
    return replace(state, counted=counted, fine=fine and state.fine, clusters=known)


def state_bytes(state: WatchState) -> bytes:
    """The state as a file."""
    kept = encode(state)
    about = {
        "kind": _KIND,
        "format": STATE_FORMAT,
        "sha256": digest(canonical(kept)),
        "state": kept,
    }
    return (json.dumps(about, indent=2, allow_nan=False) + "\n").encode()


def read_state(path: Path) -> WatchState:
    """Read a file of `state_bytes`.

    Raises
    ------
    InputError
        If it is damaged, no such file, or of a newer kdcal.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("too long")
        about = json.loads(path.read_bytes())
        if about["kind"] != _KIND:
            raise ValueError("of another kind")
        if type(about["format"]) is int and about["format"] > STATE_FORMAT:
            raise InputError(
                "The state was written by a newer kdcal", fix="Install that one.", file=path.name
            )
        if about["sha256"] != digest(canonical(about["state"])):
            raise ValueError("altered")
        return _checked(decode(WatchState, about["state"]))
    except OSError as error:
        raise InputError(
            f"The state cannot be read ({error.strerror or error})",
            fix="Name the file watch.json of an earlier table.",
            file=str(path),
        ) from error
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            "The file is damaged, or is not a state of kdcal watch",
            fix="Give the file watch.json as it was written, or begin anew without a state.",
            file=path.name,
        ) from error


def check_continues(state: WatchState, of: Watched, alpha: float, table: WatchedTable) -> None:
    """Refuse a state of something else, and labels that were counted already.

    Raises
    ------
    InputError
    """
    named = {
        "model": "another model",
        "calibrator": "another calibrator",
        "reference": "other reference rows",
        "classes": "other classes",
        "event": "another event",
    }
    for key, words in named.items():
        if getattr(state.of, key) != getattr(of, key):
            raise InputError(f"The state is of {words} than is watched now", fix=_ANEW)
    if state.test.alpha != alpha:
        raise InputError(
            f"The sequential test began with alpha {state.test.alpha:g}, and alpha is now "
            f"{alpha:g}",
            fix="A test keeps its level: give the first one, or begin anew without a state.",
        )
    if any(one.sha256 == table.sha256 and one.labelled for one in state.tables):
        raise InputError(
            "The labels of this table are in the state already, and would count twice",
            fix="Give the next table, or the state from before it.",
            file=table.name,
        )


def _are_bins(bins: FrozenBins, low: float) -> bool:
    edges, count = bins.edges, bins.count
    return (
        edges.shape == (len(count) + 1,)
        and bool((np.diff(edges) > 0.0).all())
        and edges[0] == low
        and edges[-1] == (1.0 if low == 0.0 else -low)
        and bool((count >= (1.0 if low == 0.0 else 0.0)).all())
        and bool(count.sum() >= 1.0)
    )


def _checked(state: WatchState) -> WatchState:
    """The state, after a look whether its arrays belong together."""
    bins, test = state.bins, state.test
    try:
        like = start_watch(test.alpha, test.edges)
    except InputError as error:
        raise ValueError(str(error)) from error
    of_numbers = bool(state.further_bins)  # then the test has bins of its own, as many
    pairs: list[tuple[Any, Any]] = [(bins.count, test.edges[1:])]
    pairs += [(getattr(test, one), getattr(like, one)) for one in ("offset", "slope", "in_bin")]
    pairs.append((test.gap, like.gap))
    fits = all(a.shape == b.shape and np.isfinite(a).all() for a, b in pairs)
    if not fits or not (of_numbers or np.array_equal(bins.edges, test.edges)):
        raise ValueError("arrays that do not belong together")
    if not all(_are_bins(one, -np.inf if of_numbers else 0.0) for one in state.all_bins):
        raise ValueError("arrays that do not belong together")
    crossed = test.crossed_at
    if test.n < 0 or not (crossed is None or 1 <= crossed <= test.n):
        raise ValueError("a row that is not there")
    if not 0 <= test.within <= max(test.n - 1, 0):
        raise ValueError("more rows of clusters than rows")
    if not test.largest >= 0.0:
        raise ValueError("no e-value")
    if state.counted.dtype != np.uint64 or state.counted.ndim != 1:
        raise ValueError("no keys of rows")
    if len(state.counted) > min(test.n, MOST_KEYS):
        raise ValueError("more keys than rows")
    clusters = state.clusters
    if clusters.dtype != np.uint64 or clusters.ndim != 1:
        raise ValueError("no keys of clusters")
    if len(clusters) > min(test.n, MOST_CLUSTERS):
        raise ValueError("more clusters than rows")
    return state
