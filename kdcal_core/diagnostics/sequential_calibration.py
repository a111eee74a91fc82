"""Calibration watched while labels arrive: an e-process that may be looked at on any day.

A fixed-sample test that is repeated every day refuses a calibrated model sooner or later. The
wealth of a bet against the stated probabilities does not: if they are right it is a martingale
from 1, and the chance that it ever reaches 1 / alpha is at most alpha (Ville's inequality).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_index, uniform_edges
from kdcal_core.diagnostics.estimate import EVENT_GAP, Estimate
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.errors import InputError
from kdcal_core.statistics import CLIP

OFFSETS = np.array([-1.6, -0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8, 1.6])
"""Shifts of the log odds that are bet on."""

SLOPES = np.array([0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0])
"""Factors of the log odds that are bet on."""

BINS = 10

FAULTS = (
    "all log odds too high or too low",
    "log odds too extreme or too small",
    "a fault in one score bin",
    "different faults in all score bins",
)
"""What each quarter of the stake is bet on, in the order of ``log_wealth``."""

ASSUMPTIONS = (
    "Given everything known before it, each event happens with its stated probability.",
    "The order in which labels arrive does not depend on the outcome: if one outcome is known "
    "sooner than the other, wait until all rows of a period have their labels.",
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
        Mean stated probability minus rate over all rows, with a confidence sequence at level
        1 - alpha: all its intervals, one a row, contain the true mean gap up to then at once.
    gap_low, gap_high : (m,) array
        That sequence after each row of this batch.
    recalibrate : bool
        Whether the e-value ever reached 1 / alpha.
    assumptions : tuple of str
    state : CalibrationWatch
        For :func:`sequential_calibration` of the next batch.
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

    @property
    def fault(self) -> str:
        """What the richest bet was on: one of :data:`FAULTS`."""
        return FAULTS[int(self.log_wealth.argmax())]


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
    score: Any, hit: Any, *, state: CalibrationWatch | None = None, alpha: float = 0.05
) -> SequentialCalibration:
    """Test by betting whether events happen with their stated probabilities, at any time.

    Parameters
    ----------
    score : (m,) array-like in [0, 1]
        Stated probabilities of a batch, in the order of its labels' arrival.
    hit : (m,) array-like of 0 and 1
        Whether the event happened.
    state : CalibrationWatch, optional
        That of the batches before. Any division into batches gives the same numbers, bit for bit.
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
    paths = []
    for first in range(0, len(target.score), _BLOCK):
        part = slice(first, first + _BLOCK)
        state, *path = _advanced(state, target.score[part], target.hit[part])
        paths.append(path)
    log_e, middle, half = (np.concatenate(one) for one in zip(*paths, strict=True))
    now = Estimate(
        name="Mean stated probability minus rate, all rows so far",
        label=EVENT_GAP,
        value=float(middle[-1]),
        low=float(max(middle[-1] - half[-1], -1.0)),
        high=float(min(middle[-1] + half[-1], 1.0)),
        n=state.n,
        level=1.0 - state.alpha,
        interval="confidence sequence, empirical Bernstein",
        percent=True,
        lower_is_better=None,
    )
    with np.errstate(over="ignore"):
        e_value = float(np.exp(log_e[-1]))
    return SequentialCalibration(
        e_value=e_value,
        p_value=float(np.exp(-state.largest)),
        crossed_at=state.crossed_at,
        log_e_values=log_e,
        log_wealth=_wealths(state.offset[None], state.slope[None], state.in_bin[None])[0],
        gap=now,
        gap_low=np.maximum(middle - half, -1.0),
        gap_high=np.minimum(middle + half, 1.0),
        recalibrate=state.crossed_at is not None,
        assumptions=ASSUMPTIONS,
        state=state,
    )


def _advanced(
    state: CalibrationWatch, score: FloatArray, hit: FloatArray
) -> tuple[CalibrationWatch, FloatArray, FloatArray, FloatArray]:
    """The state after a block of rows, and after each row log e, mean gap and half its width."""
    offset, slope, own = _log_payoffs(score, hit)
    bins = np.zeros((len(score), *state.in_bin.shape))
    bins[np.arange(len(score)), bin_index(score, state.edges)] = own
    offset, slope, bins = (
        _continued(old, new)
        for old, new in ((state.offset, offset), (state.slope, slope), (state.in_bin, bins))
    )
    log_e = _log_mean(_wealths(offset, slope, bins))
    over = np.flatnonzero(log_e >= -np.log(state.alpha))
    crossed = state.crossed_at
    if crossed is None and len(over):
        crossed = state.n + int(over[0]) + 1
    rows = state.n + np.arange(1, len(score) + 1)
    total = _continued(state.gap[0], score - hit)
    before = np.concatenate([state.gap[:1], total[:-1]]) / np.maximum(rows - 1, 1)
    guess = np.clip(before, score - 1.0, score)  # the range of probability minus outcome
    square = _continued(state.gap[1], np.square(score - hit - guess))
    after = replace(
        state,
        n=int(rows[-1]),
        offset=offset[-1],
        slope=slope[-1],
        in_bin=bins[-1],
        gap=np.array([total[-1], square[-1]]),
        largest=max(state.largest, float(log_e.max())),
        crossed_at=crossed,
    )
    return after, log_e, total / rows, _reach(square, state.alpha) / rows


def _log_payoffs(score: FloatArray, hit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log factors of one row's bets: offsets (m, 10), slopes (m, 8), and offsets in its bin."""
    p = np.clip(score, CLIP, 1.0 - CLIP)
    odds = (np.log(p) - np.log1p(-p))[:, None]
    happened = hit[:, None] > 0.0

    def payoff(moved: FloatArray) -> FloatArray:
        # log q / p or log (1 - q) / (1 - p), as softplus of log odds
        yes = np.logaddexp(0.0, -odds) - np.logaddexp(0.0, -moved)
        no = np.logaddexp(0.0, odds) - np.logaddexp(0.0, moved)
        return np.asarray(np.where(happened, yes, no))

    offset = payoff(odds + OFFSETS)
    return offset, payoff(odds * SLOPES), offset


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
