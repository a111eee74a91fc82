"""Calibration watched while labels arrive: an e-process that may be looked at on any day.

A fixed-sample test that is repeated every day refuses a calibrated model sooner or later. The
wealth of a bet against the stated probabilities does not: if they are right it is a martingale
from 1, and the chance that it ever reaches 1 / alpha is at most alpha (Ville's inequality).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, uniform_edges
from kdcal_core.diagnostics.estimate import EVENT_GAP, Estimate
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.errors import InputError
from kdcal_core.statistics import CLIP

OFFSETS = np.array([-1.6, -0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8, 1.6])
"""Shifts of the log odds that are bet on."""

SLOPES = np.array([0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0])
"""Factors of the log odds that are bet on."""

SHIFTS = np.array([-1.0, -0.5, -0.25, -0.12, -0.06, 0.06, 0.12, 0.25, 0.5, 1.0])
"""Shifts of outcomes that are bet on, in standard deviations of a normal forecast."""

SPREADS = np.array([0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0])
"""Spreads of outcomes about their forecasts that are bet on; 1 is the stated one."""

BINS = 10

FAULTS = (
    "all log odds too high or too low",
    "log odds too extreme or too small",
    "a fault in one score bin",
    "different faults in all score bins",
)
"""What each quarter of the stake is bet on, in the order of ``log_wealth``."""

FORECAST_FAULTS = (
    "all outcomes higher or lower than forecast",
    "forecasts too narrow or too wide",
    "outcomes higher or lower than forecast in one bin of the forecasts",
    "outcomes higher or lower than forecast, by different amounts in all bins of the forecasts",
)
"""The same for forecasts of a regression."""

_ORDER = (
    "The order in which labels arrive does not depend on the outcome: if one outcome is known "
    "sooner than the other, wait until all rows of a period have their labels."
)
_OTHERS = (
    "Rows of one cluster may depend on one another, those of different clusters not, and a cluster "
    "counts in one table only."
)
ASSUMPTIONS = (
    "Given everything known before it, each event happens with its stated probability.",
    _ORDER,
)

OF_CLUSTERS = (
    "Given all clusters before it, each event of a cluster happens with its stated probability. "
    + _OTHERS,
    _ORDER,
)
"""The same where rows are counted by cluster."""

_FORECAST_ORDER = (
    "The order in which labels arrive does not depend on the outcome: if small outcomes are known "
    "sooner than large ones, wait until all rows of a period have their labels."
)
FORECAST_ASSUMPTIONS = (
    "Given everything known before it, each outcome follows its stated distribution.",
    _FORECAST_ORDER,
)
FORECASTS_OF_CLUSTERS = (
    "Given all clusters before it, each outcome of a cluster follows its stated distribution. "
    + _OTHERS,
    _FORECAST_ORDER,
)

_RATES = np.geomspace(0.9, 1e-4, 24)  # lambdas behind the confidence sequence
_BLOCK = 4_096  # rows at a time, to save memory


@dataclass(frozen=True, eq=False)
class CalibrationWatch:
    """All that must be kept to continue the test with the next batch of labels.

    Attributes
    ----------
    alpha : float
        Level: the chance of ever signalling for a calibrated model is at most this.
    edges : (B + 1,) array
        Score bins, fixed before the first label.
    n : int
        Rows so far.
    within : int
        Rows so far that were counted in one step with an earlier one of their cluster.
    offset, slope : (10,), (8,) array
        Log wealth of each bet on all rows.
    in_bin : (B, 10) array
        Log wealth of each bet on the rows of one bin.
    gap : (2,) array
        Sum of probability minus outcome, and of its squared distance from its prediction.
    largest : float
        Largest log e-value so far.
    crossed_at : int or None
        Row, counted from 1, at which the e-value first reached 1 / alpha.
    """

    alpha: float
    edges: FloatArray
    n: int
    offset: FloatArray
    slope: FloatArray
    in_bin: FloatArray
    gap: FloatArray
    largest: float
    crossed_at: int | None
    within: int = 0


@dataclass(frozen=True, eq=False)
class SequentialCalibration:
    """The test after a batch of labels.

    Attributes
    ----------
    e_value : float
        Wealth now: its mean is 1 for a calibrated model, whenever one looks. May be infinite.
    p_value : float
        1 / (largest e-value so far), at most 1: valid at any time.
    crossed_at : int or None
        Row, counted from 1 over all batches, at which the e-value first reached 1 / alpha.
    log_e_values : (m,) array
        Log e-value after each row of this batch.
    log_wealth : (4,) array
        Log wealth of the bets on each of :data:`FAULTS`: the largest says which fault it is.
    gap : Estimate
        Mean stated probability minus rate over all rows, of forecasts the mean PIT value minus one
        half, with clusters the mean over clusters of
        their means, with a confidence sequence at level 1 - alpha: all its intervals, one a row,
        contain the true mean gap up to then at once.
    gap_low, gap_high : (m,) array
        That sequence after each row of this batch.
    recalibrate : bool
        Whether the e-value ever reached 1 / alpha.
    assumptions : tuple of str
    state : CalibrationWatch
        For :func:`sequential_calibration` of the next batch.
    of : {"probabilities", "forecasts"}
        What was tested: stated probabilities of events, or distributions of outcomes.
    """

    e_value: float
    p_value: float
    crossed_at: int | None
    log_e_values: FloatArray
    log_wealth: FloatArray
    gap: Estimate
    gap_low: FloatArray
    gap_high: FloatArray
    recalibrate: bool
    assumptions: tuple[str, ...]
    state: CalibrationWatch
    of: Literal["probabilities", "forecasts"] = "probabilities"

    @property
    def fault(self) -> str:
        """What the richest bet was on: one of :data:`FAULTS` or :data:`FORECAST_FAULTS`."""
        faults = FAULTS if self.of == "probabilities" else FORECAST_FAULTS
        return faults[int(self.log_wealth.argmax())]


def start_watch(alpha: float = 0.05, edges: Any = None) -> CalibrationWatch:
    """The state before the first label.

    Parameters
    ----------
    alpha : float
        Level, between 0 and 1.
    edges : (B + 1,) array-like, optional
        Score bins from 0 to 1, increasing, such as those of
        :func:`kdcal_core.diagnostics.freeze_bins`; ten equal ones by default.

    Raises
    ------
    InputError
        For a level or edges not of this form.

    Examples
    --------
    >>> start_watch(0.01).n
    0
    """
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha!r}", fix="Choose a number between 0 and 1.")
    bins = uniform_edges(BINS) if edges is None else np.asarray(edges, dtype=np.float64)
    ordered = bins.ndim == 1 and len(bins) >= 2 and bool((np.diff(bins) > 0.0).all())
    if not ordered or bins[0] != 0.0 or bins[-1] != 1.0:
        raise InputError("The edges of the bins do not increase from 0 to 1", fix="Sort them.")
    return CalibrationWatch(
        alpha=alpha,
        edges=bins,
        n=0,
        offset=np.zeros(len(OFFSETS)),
        slope=np.zeros(len(SLOPES)),
        in_bin=np.zeros((len(bins) - 1, len(OFFSETS))),
        gap=np.zeros(2),
        largest=0.0,
        crossed_at=None,
    )


def sequential_calibration(
    score: Any,
    hit: Any,
    *,
    cluster: Any = None,
    state: CalibrationWatch | None = None,
    alpha: float = 0.05,
) -> SequentialCalibration:
    """Test by betting whether events happen with their stated probabilities, at any time.

    Parameters
    ----------
    score : (m,) array-like in [0, 1]
        Stated probabilities of a batch, in the order of its labels' arrival.
    hit : (m,) array-like of 0 and 1
        Whether the event happened.
    cluster : (m,) array-like, optional
        The cluster of each row, such as its patient, where rows of one may depend on one another.
        Leave out rows of clusters that were counted in an earlier batch.
    state : CalibrationWatch, optional
        That of the batches before. Any division into batches, with clusters any that cuts none,
        gives the same numbers, bit for bit.
    alpha : float
        Level, if there is no state.

    Returns
    -------
    SequentialCalibration

    Raises
    ------
    InputError
        As in :func:`kdcal_core.diagnostics.confidence_calibration_error`, and for ``alpha``.

    Notes
    -----
    A bet that the event's probability is q instead of the stated p multiplies its stake by q / p
    if the event happens and by (1 - q) / (1 - p) if not, a factor of mean 1 if p is right (Shafer
    2021). Bets here move the log odds by an offset, or multiply them by a slope, on all rows or in
    one score bin; the stake is divided in advance among directions and sizes (method of mixtures).
    A quarter each goes to offsets, to slopes, to one bin, and to the product over all bins.
    Mixtures and products of bets on different rows are martingales too, so the e-value is one. The
    tests of Arnold, Henzi and Ziegel (2023) and of Henzi and Ziegel (2022) follow the same
    principle. Bets do not learn from the rows, which makes the state small and the result exact.

    **Clusters.** Given the other rows of its cluster, a row's event may have another probability
    than the stated one even though the model is calibrated, so a product of bets on rows of one
    cluster is no martingale. Their mean has the mean 1 however they depend. So a cluster is one
    step, taken at its last row in the batch: each bet pays the mean of its factors over the
    cluster's rows, a bet on a bin the mean over those of its rows that lie in the bin that holds
    most of them. The price is power: ten rows that do not depend are worth little more than one.
    Rows that depend by their nearness in time have no such step, because nothing says how far that
    reaches: a model whose errors persist does not state the chance of an event given what is known
    before it, which is what the test asks for.

    Nobody is paid more than a bet allows: of an event that was called impossible, log odds are
    clipped at 1e-12.

    The confidence sequence is the empirical Bernstein one of Howard, Ramdas, McAuliffe and Sekhon
    (2021, Theorem 4): with outcomes minus probabilities x_i, predictions m_i from earlier rows and
    V = sum (x_i - m_i)^2, the sum's error stays below (log(2 k / alpha) + psi(l) V) / l for the
    best of k values l in (0, 1), where psi(l) = -log(1 - l) - l. No model of the outcomes is
    assumed, so it is wider than an interval for one day.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> right = sequential_calibration(p, rng.random(2000) < p)
    >>> wrong = sequential_calibration(p, rng.random(2000) < p**2)
    >>> right.recalibrate, wrong.recalibrate, wrong.crossed_at < 200
    (False, True, True)
    """
    state = start_watch(alpha) if state is None else state
    target = confidence_target(score, hit)
    bins = bin_index(target.score, state.edges)
    batch = _Batch(target.score, target.hit, bins)
    return _bet(batch, cluster, state)


def sequential_uniformity(
    pit: Any,
    place: Any,
    *,
    cluster: Any = None,
    state: CalibrationWatch | None = None,
    alpha: float = 0.05,
) -> SequentialCalibration:
    """Test by betting whether outcomes follow their stated distributions, at any time.

    Parameters
    ----------
    pit : (m,) array-like in [0, 1]
        PIT values of a batch, in the order in which its outcomes arrived. Where a distribution has
        jumps, or states quantiles alone, a draw of each row's own makes them uniform
        (`kdcal_core.distributions.PredictiveDistribution.pit`).
    place : (m,) array-like in [0, 1]
        Where each forecast lies among those before, known without its outcome: a fault may be in
        one bin alone.
    cluster, state, alpha
        As for :func:`sequential_calibration`, which this does not mix with.

    Raises
    ------
    InputError
        As for :func:`sequential_calibration`.

    Notes
    -----
    The mechanism is that of :func:`sequential_calibration`. If outcomes follow their stated
    distributions, PIT values are uniform given everything before them, and their normal scores z
    are standard normal. A bet that z is normal with another mean d, or another spread s, multiplies
    its stake by the ratio of the densities, exp(d z - d^2 / 2) or exp((1 - 1 / s^2) z^2 / 2) / s,
    of mean 1 (of a fixed sample: Berkowitz 2001). A quarter of the stake each goes to shifts, to
    spreads, to a shift in one bin of the forecasts, and to the product of such shifts over all
    bins. In 400 runs of 1,000 calibrated rows the e-value reached 20 in 2.5% (at most 5% may).

    PIT values are clipped at 1e-12, so an outcome that was called impossible pays no more.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pit, place = rng.random((2, 2000))
    >>> right, wrong = sequential_uniformity(pit, place), sequential_uniformity(pit**1.3, place)
    >>> right.recalibrate, wrong.recalibrate, wrong.crossed_at < 600
    (False, True, True)
    """
    state = start_watch(alpha) if state is None else state
    values, at = confidence_target(pit, np.zeros(len(pit))).score, np.asarray(place, dtype=float)
    if at.shape != values.shape or not ((at >= 0.0) & (at <= 1.0)).all():
        raise InputError(
            f"There are {at.size:,} places from 0 to 1 for {len(values):,} PIT values",
            fix="Give one for each row.",
        )
    half = np.full(len(values), 0.5)
    # the gap is that of a stated 0.5 and a seen 1 - PIT
    return _bet(_Batch(half, 1.0 - values, bin_index(at, state.edges), values), cluster, state)


def _bet(batch: _Batch, cluster: Any, state: CalibrationWatch) -> SequentialCalibration:
    """The test after a batch."""
    start = state
    paths = []
    for steps in _steps(batch, cluster, state):
        state, *path = _advanced(state, steps)
        paths.append(path)
    log_e, middle, half, _ = (np.concatenate(one) for one in zip(*paths, strict=True))
    if cluster is not None:
        log_e, middle, half = _at_rows(start, len(batch.score), paths, (log_e, middle, half))
    forecasts = batch.pit is not None
    most = 0.5 if forecasts else 1.0
    now = Estimate(
        name="Mean PIT value minus one half, all rows so far"
        if forecasts
        else "Mean stated probability minus rate, all rows so far",
        label="PIT minus one half" if forecasts else EVENT_GAP,
        value=float(middle[-1]),
        low=float(max(middle[-1] - half[-1], -most)),
        high=float(min(middle[-1] + half[-1], most)),
        n=state.n,
        level=1.0 - state.alpha,
        interval="confidence sequence, empirical Bernstein",
        percent=not forecasts,
        lower_is_better=None,
    )
    with np.errstate(over="ignore"):
        e_value = float(np.exp(log_e[-1]))
    alone, together = (
        (FORECAST_ASSUMPTIONS, FORECASTS_OF_CLUSTERS) if forecasts else (ASSUMPTIONS, OF_CLUSTERS)
    )
    return SequentialCalibration(
        e_value=e_value,
        p_value=float(np.exp(-state.largest)),
        crossed_at=state.crossed_at,
        log_e_values=log_e,
        log_wealth=_wealths(state.offset[None], state.slope[None], state.in_bin[None])[0],
        gap=now,
        gap_low=np.maximum(middle - half, -most),
        gap_high=np.minimum(middle + half, most),
        recalibrate=state.crossed_at is not None,
        assumptions=alone if cluster is None else together,
        state=state,
        of="forecasts" if forecasts else "probabilities",
    )


@dataclass(frozen=True, eq=False)
class _Batch:
    """Rows to bet on: stated ``score`` and seen ``hit`` (m,), ``bin`` of the score or the forecast.

    ``pit`` (m,) are the PIT values of forecasts, on which the bets are then; None of probabilities.
    """

    score: FloatArray
    hit: FloatArray
    bin: IntArray
    pit: FloatArray | None = None

    def payoffs(self, rows: slice | IntArray) -> tuple[FloatArray, FloatArray]:
        """Log factors of the bets on some rows: (k, 10) and (k, 8)."""
        if self.pit is not None:
            return _log_payoffs_of_pit(self.pit[rows])
        return _log_payoffs(self.score[rows], self.hit[rows])


@dataclass(frozen=True, eq=False)
class _Steps:
    """Rows, or clusters of rows, that are bet on one after the other.

    ``row`` is the number of the row at which a step is taken, counted from 1 over all batches, and
    ``score`` and ``hit`` are means over the step's rows; ``offset``, ``slope`` and ``own`` are log
    factors of bets, the last in ``bin``.
    """

    row: IntArray
    score: FloatArray
    hit: FloatArray
    bin: IntArray
    offset: FloatArray
    slope: FloatArray
    own: FloatArray


def _steps(batch: _Batch, cluster: Any, state: CalibrationWatch) -> Iterator[_Steps]:
    """The batch in blocks of steps, in their order."""
    n, first = len(batch.score), state.n + 1
    if cluster is None:
        for start in range(0, n, _BLOCK):
            part = slice(start, start + _BLOCK)
            rows = np.arange(first, first + n)[part]
            offset, slope = batch.payoffs(part)
            yield _Steps(
                rows, batch.score[part], batch.hit[part], batch.bin[part], offset, slope, offset
            )
        return
    _, code = np.unique(np.asarray(cluster), return_inverse=True)
    if code.shape != batch.score.shape:
        raise InputError(
            f"There are {len(code):,} clusters for {n:,} rows", fix="Give one for each row."
        )
    last = np.zeros(int(code.max()) + 1, dtype=np.int64)
    np.maximum.at(last, code, np.arange(n))
    order = np.argsort(last[code], kind="stable")  # cluster by cluster, by their last rows
    ends = np.flatnonzero(np.diff(code[order], append=-1)) + 1
    for start in range(0, len(ends), _BLOCK):
        until = ends[start : start + _BLOCK]
        begin = int(ends[start - 1]) if start else 0
        rows = order[begin : int(until[-1])]
        size = np.diff(until, prepend=begin)
        yield _of_clusters(batch, rows, size, first + last[code[order[until - 1]]], state)


def _of_clusters(
    batch: _Batch, rows: IntArray, size: IntArray, row: IntArray, state: CalibrationWatch
) -> _Steps:
    """One step for each cluster of so many successive ones of the rows."""
    starts = np.cumsum(size) - size
    number = np.repeat(np.arange(len(size)), size)
    offset, slope = batch.payoffs(rows)
    bins = batch.bin[rows]
    held = np.zeros((len(size), len(state.edges) - 1), dtype=np.int64)
    np.add.at(held, (number, bins), 1)
    fullest = held.argmax(axis=1)
    inside = (bins == fullest[number])[:, None]

    def mean(values: FloatArray, count: IntArray = size) -> FloatArray:
        total = np.add.reduceat(values, starts, axis=0)
        return np.asarray(total / count.reshape(-1, *(1,) * (values.ndim - 1)))

    own = mean(np.where(inside, np.exp(offset), 0.0), held.max(axis=1))
    return _Steps(
        row,
        mean(batch.score[rows]),
        mean(batch.hit[rows]),
        fullest,
        np.log(mean(np.exp(offset))),
        np.log(mean(np.exp(slope))),
        np.log(own),
    )


def _at_rows(
    start: CalibrationWatch, n: int, paths: list[Any], values: tuple[FloatArray, ...]
) -> tuple[FloatArray, ...]:
    """The values (s,) after each step as those after each row (m,): a cluster's at its last row."""
    rows = np.concatenate([path[-1] for path in paths]) - start.n
    taken = np.searchsorted(rows, np.arange(1, n + 1), side="right")
    log_e = _log_mean(_wealths(start.offset[None], start.slope[None], start.in_bin[None]))
    steps = start.n - start.within
    known = (
        (log_e[0], start.gap[0] / steps, _reach(start.gap[1:], start.alpha)[0] / steps)
        if steps
        else (log_e[0], 0.0, 1.0)
    )
    return tuple(
        np.concatenate([[before], after])[taken]
        for before, after in zip(known, values, strict=True)
    )


def _advanced(
    state: CalibrationWatch, steps: _Steps
) -> tuple[CalibrationWatch, FloatArray, FloatArray, FloatArray, IntArray]:
    """The state after a block, and after each step log e, mean gap, half its width and the row."""
    score, hit = steps.score, steps.hit
    bins = np.zeros((len(score), *state.in_bin.shape))
    bins[np.arange(len(score)), steps.bin] = steps.own
    offset, slope, bins = (
        _continued(old, new)
        for old, new in (
            (state.offset, steps.offset),
            (state.slope, steps.slope),
            (state.in_bin, bins),
        )
    )
    log_e = _log_mean(_wealths(offset, slope, bins))
    over = np.flatnonzero(log_e >= -np.log(state.alpha))
    crossed = state.crossed_at
    if crossed is None and len(over):
        crossed = int(steps.row[over[0]])
    count = state.n - state.within + np.arange(1, len(score) + 1)
    total = _continued(state.gap[0], score - hit)
    before = np.concatenate([state.gap[:1], total[:-1]]) / np.maximum(count - 1, 1)
    guess = np.clip(before, score - 1.0, score)  # the range of probability minus outcome
    square = _continued(state.gap[1], np.square(score - hit - guess))
    after = replace(
        state,
        n=int(steps.row[-1]),
        within=int(steps.row[-1] - count[-1]),
        offset=offset[-1],
        slope=slope[-1],
        in_bin=bins[-1],
        gap=np.array([total[-1], square[-1]]),
        largest=max(state.largest, float(log_e.max())),
        crossed_at=crossed,
    )
    return after, log_e, total / count, _reach(square, state.alpha) / count, steps.row


def _log_payoffs(score: FloatArray, hit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log factors of one row's bets: offsets (m, 10) and slopes (m, 8)."""
    p = np.clip(score, CLIP, 1.0 - CLIP)
    odds = (np.log(p) - np.log1p(-p))[:, None]
    happened = hit[:, None] > 0.0

    def payoff(moved: FloatArray) -> FloatArray:
        # log q / p or log (1 - q) / (1 - p), as softplus of log odds
        yes = np.logaddexp(0.0, -odds) - np.logaddexp(0.0, -moved)
        no = np.logaddexp(0.0, odds) - np.logaddexp(0.0, moved)
        return np.asarray(np.where(happened, yes, no))

    return payoff(odds + OFFSETS), payoff(odds * SLOPES)


def _log_payoffs_of_pit(pit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log factors of one row's bets on its PIT value: shifts (m, 10) and spreads (m, 8)."""
    z = ndtri(np.clip(pit, CLIP, 1.0 - CLIP))[:, None]
    shift = SHIFTS * z - SHIFTS**2 / 2.0
    spread = (1.0 - SPREADS**-2.0) * z**2 / 2.0 - np.log(SPREADS)
    return np.asarray(shift), np.asarray(spread)


def _continued(old: Any, new: FloatArray) -> FloatArray:
    """Running sums of ``new`` along rows from ``old``, added in the same order for all batches."""
    first = np.asarray(old, dtype=np.float64)[None]
    return np.asarray(np.cumsum(np.concatenate([first, new]), axis=0)[1:])


def _wealths(offset: FloatArray, slope: FloatArray, bins: FloatArray) -> FloatArray:
    """Log wealth of the four mixtures after each row, (m, 4)."""
    each = _log_mean(bins)  # (m, B)
    return np.column_stack([_log_mean(offset), _log_mean(slope), _log_mean(each), each.sum(axis=1)])


def _log_mean(logs: FloatArray) -> FloatArray:
    most = logs.max(axis=-1)
    return np.asarray(most + np.log(np.exp(logs - most[..., None]).mean(axis=-1)))


def _reach(square: FloatArray, alpha: float) -> FloatArray:
    """How far a sum of gaps may lie from that of its means, at all times at once, (m,)."""
    stake = np.log(2.0 * len(_RATES) / alpha)
    psi = -np.log1p(-_RATES) - _RATES
    return np.asarray(((stake + psi * square[:, None]) / _RATES).min(axis=1))
