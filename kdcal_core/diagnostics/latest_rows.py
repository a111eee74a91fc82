"""Whether the latest rows show what those before them do: a mean in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.times import FEWEST_TIMES
from kdcal_core.diagnostics.group_measures import Division
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, kish, t_quantile

SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16)
_FEWEST_ROWS = 30.0  # as of declared groups
_MOST_STRETCHES = 512  # more times are taken together
_LEAST_OWN = 0.01  # of the mean variance: rows that state 0 or 1 are not certain
# where else the mean may change, so that a change beside a share is not taken for noise
_OTHER_CUTS = (2.0, 1.5, 0.5)
_MANY_WAVES = 12  # that are enough for it
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class LatestRows:
    """The rows from some time on, beside those before.

    Attributes
    ----------
    share : float
        One of `SHARES`, at most which the latest rows are of all, unless one time has more.
    late : (n,) bool
        Which rows they are.
    stated, seen : tuple of two float
        Weighted means of the latest rows, and of those before.
    error : float
        Standard error of ``change``.
    freedom : int
        Degrees of freedom of ``error``.
    """

    share: float
    late: NDArray[np.bool_]
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
    rows : (n,) bool
        Which rows the group has.
    latest : LatestRows
        Of the group's rows alone.
    elsewhere : float
        The change of all rows at the same time.
    looks : float
        For how many changes its interval is corrected (Bonferroni).
    """

    name: str
    rows: NDArray[np.bool_]
    latest: LatestRows
    elsewhere: float
    looks: float = 1

    @property
    def late(self) -> NDArray[np.bool_]:
        """Which of all rows (n,) are the latest of the group."""
        late = np.zeros(len(self.rows), dtype=bool)
        late[self.rows] = self.latest.late
        return late

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
    unit = times.present
    n_times = int(unit.max(initial=-1)) + 1
    if n_times < FEWEST_TIMES:
        raise InputError(
            f"These rows are of {n_times} different times",
            fix=f"Give rows of at least {FEWEST_TIMES}, so that the latest can be compared.",
        )
    if n_times > _MOST_STRETCHES:
        unit, n_times = unit * _MOST_STRETCHES // n_times, _MOST_STRETCHES
    own = np.maximum(own, max(_LEAST_OWN * float(np.average(own, weights=weight)), _CLOSE))
    later = np.cumsum(np.bincount(unit, weight)[::-1])[::-1] / weight.sum()
    found, known = [], set[int]()
    for share in SHARES:
        start = _start(later, share)
        late = unit >= start
        enough = all(kish(weight[one]) >= _FEWEST_ROWS for one in (late, ~late))
        if enough and start not in known:
            known.add(start)
            waves = min(int(max(0.4 * n_times ** (2 / 3), 1.0 / later[start] - 2.0)), n_times - 2)
            others = [_start(later, share * one) for one in _OTHER_CUTS if waves >= _MANY_WAVES]
            cuts = np.unique([start, *(one for one in others if one > 0)])
            found.append(_beside(seen, stated, own, weight, unit, late, share, cuts, waves))
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
    since = [np.cumsum(np.bincount(unit, one)) for one in (weight, weight * (seen - stated))]
    found: list[LatestOfGroup] = []
    for labels, names in divisions:
        for at, name in enumerate(names):
            rows = labels == at
            mine = np.flatnonzero(rows)
            only = times.only(mine)
            if len(np.unique(only.unit)) < FEWEST_TIMES:
                continue
            for one in latest_rows(seen[mine], stated[mine], own[mine], weight[mine], only):
                last = int(unit[mine[one.late]].min()) - 1  # time before the latest
                (before, all_rows), (low, whole) = ((each[last], each[-1]) for each in since)
                elsewhere = (whole - low) / (all_rows - before) - low / before
                found.append(LatestOfGroup(name, rows, one, float(elsewhere)))
    return [replace(one, looks=len(found)) for one in found]


def _mean(values: FloatArray, weight: FloatArray, some: NDArray[np.bool_]) -> float:
    return float(np.average(values[some], weights=weight[some]))


def _start(later: FloatArray, share: float) -> int:
    """The first of the latest times that together have at most a share of the rows."""
    return min(int((later > share + _CLOSE).sum()), len(later) - 1)


def _beside(
    seen: FloatArray,
    stated: FloatArray,
    own: FloatArray,
    weight: FloatArray,
    unit: IntArray,
    late: NDArray[np.bool_],
    share: float,
    cuts: IntArray,
    waves: int,
) -> LatestRows:
    """The latest rows beside the others."""
    sides, added = (late, ~late), 0.0
    says, sees = ([_mean(values, weight, one) for one in sides] for values in (stated, seen))
    for one, mean in zip(sides, says, strict=True):  # two events and two others
        added += 2.0 * (mean**2 + (1.0 - mean) ** 2) / kish(weight[one]) ** 2
    gap = seen - stated
    mass, total = (np.bincount(unit, values) for values in (weight, weight * gap))
    part = np.searchsorted(cuts, np.arange(len(mass)), side="right")
    means = np.bincount(part, total) / np.bincount(part, mass)
    variance = _of_times(weight * (gap - means[part][unit]), weight**2 * own, unit)
    slow = _slow(mass / variance**0.5, part, waves)
    spread = max(float(np.square(total / variance**0.5 @ slow).mean()), 1.0)
    after = np.arange(len(mass)) >= unit[late].min()
    contrast = np.where(after, 1.0 / mass[after].sum(), 1.0 / mass[~after].sum())
    error = (spread * float(np.square(contrast) @ variance) + added) ** 0.5
    return LatestRows(share, late, (says[0], says[1]), (sees[0], sees[1]), error, slow.shape[1])


def _of_times(away: FloatArray, own: FloatArray, unit: IntArray) -> FloatArray:
    """The variance of the sum over each time, (T,), in units of the model's own.

    Rows of a time are taken to be alike by one correlation, that of all times.
    """
    alone = np.bincount(unit, own)
    alike = np.square(np.bincount(unit, own**0.5))
    more, scale = float((alike - alone).sum()), float(np.square(away).sum() / alone.sum())
    if more <= _CLOSE * float(alike.sum()) or scale == 0.0:
        return np.asarray(alone)
    pairs = float(np.square(np.bincount(unit, away)).sum() - np.square(away).sum())
    shared = min(max(pairs / (more * scale), 0.0), 1.0)
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
