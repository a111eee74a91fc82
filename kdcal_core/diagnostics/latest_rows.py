"""Whether the latest rows show what those before them do: a mean in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.times import FEWEST_TIMES
from kdcal_core.diagnostics.group_measures import Division
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, t_quantile

SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16)
_FEWEST_ROWS = 30.0  # as of declared groups
_MOST_STRETCHES = 512  # more times are taken together
_LEAST_OWN = 0.01  # of the mean variance: times whose rows state 0 or 1 are not certain
# where else the mean may change, so that a change beside a share is not taken for noise
_OTHER_CUTS = (2.0, 1.5, 0.5)
_MANY_WAVES = 12  # that are enough for it
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class TimeSums:
    """What is known of the rows of each of T times, in their order; each (T,).

    Attributes
    ----------
    rows, weight, squares
        Number of the rows, and sums of their weights and of the squares of these.
    stated, seen
        Weighted sums.
    own, root
        Sums of the variances by the model times squared weights, and of their roots times weights.
    gap, spread
        Sums of seen minus stated and of its square, both times squared weights.
    """

    rows: FloatArray
    weight: FloatArray
    squares: FloatArray
    stated: FloatArray
    seen: FloatArray
    own: FloatArray
    root: FloatArray
    gap: FloatArray
    spread: FloatArray

    @classmethod
    def of(
        cls,
        seen: FloatArray,
        stated: FloatArray,
        own: FloatArray,
        weight: FloatArray,
        unit: IntArray,
    ) -> TimeSums:
        """Of rows as of `latest_rows`; ``unit`` (n,) is the time of each, from 0 without gaps."""
        gap, squares = seen - stated, np.square(weight)
        each = (
            *(np.ones(len(unit)), weight, squares, weight * stated, weight * seen),
            *(squares * own, weight * own**0.5, squares * gap, squares * gap**2),
        )
        return cls(*(np.asarray(np.bincount(unit, one), np.float64) for one in each))

    def at(self, starts: IntArray) -> TimeSums:
        """Those of stretches of times, which begin at these times and end before the next."""
        each = (getattr(self, one.name) for one in fields(self))
        return TimeSums(*(np.add.reduceat(one, starts) for one in each))


@dataclass(frozen=True, eq=False)
class LatestRows:
    """The rows from some time on, beside those before.

    Attributes
    ----------
    share : float
        One of `SHARES`, at most which the latest rows are of all, unless one time has more.
    start : int
        The first of their times, counted from 0 over those that have rows.
    n : int
        How many rows they are.
    stated, seen : tuple of two float
        Weighted means of the latest rows, and of those before.
    error : float
        Standard error of ``change``.
    freedom : int
        Degrees of freedom of ``error``.
    """

    share: float
    start: int
    n: int
    stated: tuple[float, float]
    seen: tuple[float, float]
    error: float
    freedom: int

    @property
    def change(self) -> float:
        """Seen minus stated of the latest rows, minus the same of those before."""
        late, before = (one - other for one, other in zip(self.seen, self.stated, strict=True))
        return late - before

    def interval(self, level: float) -> tuple[float, float]:
        """The ends of the interval of ``change``."""
        half = t_quantile(level, self.freedom) * self.error
        return self.change - half, self.change + half


@dataclass(frozen=True, eq=False)
class LatestOfGroup:
    """The latest rows of one group, beside those before them in it.

    Attributes
    ----------
    name : str
        The group's. Untrusted text.
    division, group : int
        The number of the division, and of the group in it.
    start : int
        The first of its latest times, counted from 0 over all times.
    latest : LatestRows
        Of the group's rows alone.
    elsewhere : float
        The change of all rows at the same time.
    looks : float
        For how many changes its interval is corrected (Bonferroni).
    """

    name: str
    division: int
    group: int
    start: int
    latest: LatestRows
    elsewhere: float
    looks: float = 1

    def interval(self, level: float) -> tuple[float, float]:
        """The ends of the interval of the change, corrected for the looks."""
        return self.latest.interval(1.0 - (1.0 - level) / self.looks)

    def beyond(self, level: float) -> float:
        """By how many half intervals the change differs from 0 and from that of all rows."""
        low, high = self.interval(level)
        change = self.latest.change
        return 2.0 * min(abs(change), abs(change - self.elsewhere)) / (high - low)


def latest_rows(
    seen: FloatArray, stated: FloatArray, own: FloatArray, weight: FloatArray, times: Dependence
) -> list[LatestRows]:
    """The change of seen minus stated in the last half, quarter, eighth and sixteenth of the rows.

    All rows of one time lie on the same side. Fewer than 30 rows are no latest rows.

    Parameters
    ----------
    seen : (n,) in [0, 1]
        What was observed of each row: whether an event happened, or a PIT value.
    stated : (n,) in [0, 1]
        Its mean by the model: the probability of the event, or one half.
    own : (n,)
        Its variance by the model.
    weight : (n,) positive
    times : Dependence
        Of the rows, of the kind "time".

    Raises
    ------
    InputError
        If the rows are of fewer than 8 times.

    Notes
    -----
    The sum of seen minus stated over the rows of a time has, by the model, the variance of its
    rows; rows of one time may share a correlation, which is estimated from all times. Divided by
    its standard deviation it is a series of one variance, whatever the model states when.

    Times may depend on one another. The variance of their means therefore comes from the squared
    projections of the series on the slowest cosines (Müller 2004): 0.4 T^(2/3) of them, as Lazarus,
    Lewis, Stock and Watson (2018, "HAR inference") advise, or one for each stretch as long as the
    latest rows but two, if these are more. The waves are made orthogonal to the change itself and,
    of 12 or more, to changes at half, 1.5 times and twice the share, which would else count as
    noise. The variance is at least the model's own. Two events and two others are added on either
    side (Agresti and Coull 1998). The interval is Student's with as many degrees of freedom as
    waves. The shares are fixed beforehand, so nothing is searched.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> day, stated = np.repeat(np.arange(120), 20), np.full(2400, 0.2)
    >>> seen = rng.random(2400) < np.where(day < 105, 0.2, 0.35)
    >>> days = Dependence.of("time", day)
    >>> eighth = latest_rows(seen * 1.0, stated, stated * 0.8, np.ones(2400), days)[2]
    >>> round(eighth.change, 2), [round(one, 2) for one in eighth.interval(0.95)]
    (0.1, [0.04, 0.16])
    """
    return latest_of_times(TimeSums.of(seen, stated, own, weight, times.present))


def latest_of_times(times: TimeSums) -> list[LatestRows]:
    """As `latest_rows`, from sums over the rows of each time."""
    n_times = len(times.rows)
    if n_times < FEWEST_TIMES:
        raise InputError(
            f"These rows are of {n_times} different times",
            fix=f"Give rows of at least {FEWEST_TIMES}, so that the latest can be compared.",
        )
    starts = np.arange(n_times)
    if n_times > _MOST_STRETCHES:
        starts = np.flatnonzero(np.diff(starts * _MOST_STRETCHES // n_times, prepend=-1))
        times = times.at(starts)
    least = max(_LEAST_OWN * float(times.own.sum() / times.squares.sum()), _CLOSE)
    own = np.maximum(times.own, least * times.squares)
    times = replace(times, own=own, root=np.maximum(times.root, least**0.5 * times.weight))
    later = np.cumsum(times.weight[::-1])[::-1] / times.weight.sum()
    found, known = [], set[int]()
    for share in SHARES:
        start = _start(later, share)
        if start in known:
            continue
        sides = times.at(np.array([0, start]))
        if (_kish(sides) >= _FEWEST_ROWS).all():
            known.add(start)
            most = len(starts) - 2
            waves = min(int(max(0.4 * len(starts) ** (2 / 3), 1.0 / later[start] - 2.0)), most)
            others = [_start(later, share * one) for one in _OTHER_CUTS if waves >= _MANY_WAVES]
            cuts = np.unique([start, *(one for one in others if one > 0)])
            one = _beside(times, sides, share, start, cuts, waves)
            found.append(replace(one, start=int(starts[start])))
    return found


def changed_groups(
    seen: FloatArray,
    stated: FloatArray,
    own: FloatArray,
    weight: FloatArray,
    times: Dependence,
    divisions: Sequence[Division],
) -> list[LatestOfGroup]:
    """The changes of `latest_rows` in every group, whose rows alone are compared.

    Groups of fewer than 8 times, or with fewer than 30 rows in their latest half, are left out.

    Parameters
    ----------
    seen, stated, own, weight, times
        As of `latest_rows`.
    divisions : sequence of (array of int, names)
        Group of each row (n,), and the groups' names. Groups of several divisions may overlap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> day, stated = np.repeat(np.arange(120), 40), np.full(4800, 0.2)
    >>> phone = np.tile([0, 1], 2400)
    >>> seen = rng.random(4800) < np.where((day >= 105) & (phone == 1), 0.4, 0.2)
    >>> rows = (seen * 1.0, stated, stated * 0.8, np.ones(4800), Dependence.of("time", day))
    >>> found = changed_groups(*rows, [(phone, ["branch", "phone"])])
    >>> clear = [one for one in found if one.beyond(0.95) > 1.0]
    >>> [(one.name, one.latest.share, round(one.latest.change, 2)) for one in clear]
    [('phone', 0.125, 0.21), ('phone', 0.0625, 0.25)]
    """
    unit = times.present

    def of(rows: Any) -> TimeSums:
        place = np.unique(unit[rows], return_inverse=True)[1]
        return TimeSums.of(seen[rows], stated[rows], own[rows], weight[rows], place)

    def groups() -> Iterator[GroupOfTimes]:
        for division, (labels, names) in enumerate(divisions):
            for group, name in enumerate(names):
                mine = np.flatnonzero(labels == group)
                yield name, division, group, np.unique(unit[mine]), of(mine)

    return changes_of_groups(of(slice(None)), groups())


GroupOfTimes = tuple[str, int, int, IntArray, TimeSums]
"""Name, division and number of a group, places of its times among all, and its sums there."""


def changes_of_groups(times: TimeSums, groups: Iterable[GroupOfTimes]) -> list[LatestOfGroup]:
    """As `changed_groups`, from sums over the rows of each time, of all rows and of each group."""
    mass, gap = np.cumsum(times.weight), np.cumsum(times.seen - times.stated)
    found: list[LatestOfGroup] = []
    for name, division, group, places, sums in groups:
        if len(places) < FEWEST_TIMES:
            continue
        for one in latest_of_times(sums):
            start = int(places[one.start])
            before, low = float(mass[start - 1]), float(gap[start - 1])
            elsewhere = (gap[-1] - low) / (mass[-1] - before) - low / before
            found.append(LatestOfGroup(name, division, group, start, one, float(elsewhere)))
    return [replace(one, looks=len(found)) for one in found]


def _start(later: FloatArray, share: float) -> int:
    """The first of the latest times that together have at most a share of the rows."""
    return min(int((later > share + _CLOSE).sum()), len(later) - 1)


def _kish(times: TimeSums) -> FloatArray:
    """Effective number of rows of each, as of :func:`kdcal_core.statistics.kish`."""
    return np.asarray(times.weight**2 / times.squares)


def _beside(
    times: TimeSums, sides: TimeSums, share: float, start: int, cuts: IntArray, waves: int
) -> LatestRows:
    """The latest rows beside the others; ``sides`` are the sums before, and of the latest."""
    stated, seen = sides.stated / sides.weight, sides.seen / sides.weight
    # two events and two others
    added = float((2.0 * (stated**2 + (1.0 - stated) ** 2) / _kish(sides) ** 2).sum())
    mass, total = times.weight, times.seen - times.stated
    edges = np.concatenate([[0], cuts])
    part = np.searchsorted(cuts, np.arange(len(mass)), side="right")
    means = (np.add.reduceat(total, edges) / np.add.reduceat(mass, edges))[part]
    variance = _of_times(times, means)
    slow = _slow(mass / variance**0.5, part, waves)
    spread = max(float(np.square(total / variance**0.5 @ slow).mean()), 1.0)
    contrast = np.where(np.arange(len(mass)) >= start, *(1.0 / sides.weight[::-1]))
    error = (spread * float(np.square(contrast) @ variance) + added) ** 0.5
    says, sees = ((float(one[1]), float(one[0])) for one in (stated, seen))
    return LatestRows(share, start, int(sides.rows[1]), says, sees, error, slow.shape[1])


def _of_times(times: TimeSums, means: FloatArray) -> FloatArray:
    """The variance of the sum over each time, (T,), in units of the model's own.

    Rows of a time are taken to be alike by one correlation, that of all times. ``means`` (T,) are
    those about which they vary.
    """
    alone, alike = times.own, np.square(times.root)
    away = times.seen - times.stated - means * times.weight
    squares = float((times.spread - means * (2.0 * times.gap - means * times.squares)).sum())
    more = float((alike - alone).sum())
    if more <= _CLOSE * float(alike.sum()) or squares <= _CLOSE * float(times.spread.sum()):
        return alone
    pairs = float(np.square(away).sum()) - squares
    shared = min(max(pairs / (more * squares / float(alone.sum())), 0.0), 1.0)
    return np.asarray(alone + shared * (alike - alone))


def _slow(mass: FloatArray, part: IntArray, waves: int) -> FloatArray:
    """The slowest waves (T, m), orthonormal, to which the means of the parts make no difference.

    There are ``waves`` of them for two parts, and one fewer for each further part.
    """
    n_times, n_parts = len(mass), int(part[-1]) + 1
    steps = np.where(part[:, None] == np.arange(n_parts), mass[:, None], 0.0)
    steps /= np.linalg.norm(steps, axis=0)
    place = np.outer(np.arange(n_times) + 0.5, np.arange(1, waves + 2)) * np.pi / n_times
    cosines = np.cos(place)
    apart = cosines - steps @ (steps.T @ cosines)
    # of the few columns' products: quicker than of the columns, for each of many groups
    size, turn = np.linalg.eigh(apart.T @ apart)
    kept = slice(n_parts - 1, None)
    return np.asarray(apart @ (turn[:, kept] / size[kept] ** 0.5))
