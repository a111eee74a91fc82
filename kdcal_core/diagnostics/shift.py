"""Whether a new table's scores are distributed like a reference one's: PSI, KS, Wasserstein-1.

No labels are needed. Each distance stands beside the value that chance alone reaches with this
many rows, because a distance between two samples is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chndtr, chndtrinc, expit

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.pooled_cells import PooledCells
from kdcal_core.diagnostics.score_histograms import EDGES
from kdcal_core.diagnostics.targets import check_level, check_seed
from kdcal_core.diagnostics.unit_changes import UnitChanges
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, effective_size

DRAWS = 999
BINS = 10
CELLS = 2_048
"""Most distinct scores behind the draws; with more, neighbouring scores are merged."""

_UNIT_CELLS = 400  # the same as `CELLS` for dependent rows, each of whose units has a row of cells
_PICTURE_BINS = 40
_SAME = 1e-12  # distances this close are equal up to rounding
_BY_CHANCE = "or less by chance, {share:.0f} times of 100"


@dataclass(frozen=True, eq=False)
class FrozenBins:
    """Bins of reference scores, kept so that every later table is counted in the same bins.

    Attributes
    ----------
    edges : (B + 1,) array
        Increasing, from 0 to 1, of numbers of any size from minus to plus infinity; bins are
        (a, b], the first closed at its left end.
    count : (B,) array
        Reference rows in each bin; none only beside a value that many rows share.
    """

    edges: FloatArray
    count: FloatArray

    @property
    def n(self) -> int:
        """Reference rows."""
        return int(self.count.sum())

    def counts(self, score: Any) -> FloatArray:
        """Rows of a table of scores (m,) in each bin, (B,)."""
        checked = checked_numbers if np.isinf(self.edges[0]) else checked_scores
        return bin_sums(bin_index(checked(score, "new"), self.edges), len(self.count))

    def places(self, score: Any) -> FloatArray:
        """The middle of each number's bin (m,), if bins are of equal width from 0 to 1.

        Examples
        --------
        >>> freeze_bins_of_numbers([3.0, 5.0, 40.0, 70.0], 2).places([-9.0, 41.0]).tolist()
        [0.25, 0.75]
        """
        return np.asarray((bin_index(np.asarray(score), self.edges) + 0.5) / len(self.count))


@dataclass(frozen=True)
class ShiftTest:
    """One distance between the distributions of reference and new scores, and its test.

    Attributes
    ----------
    key : str
        "psi", "kolmogorov_smirnov" or "wasserstein".
    estimate : Estimate
        The distance of the samples, an interval of the distance of their populations, and as
        ``expected`` the value that chance alone does not exceed at the estimate's level, for two
        tables of these sizes from one population. ``n`` counts the new rows.
    p_value : float
        Of the hypothesis that nothing changed; above 0, at most 1.
    n_reference, n_new : int
    draws, seed : int
        Monte Carlo draws behind both, and their seed.
    """

    key: str
    estimate: Estimate
    p_value: float
    n_reference: int
    n_new: int
    draws: int
    seed: int


@dataclass(frozen=True, eq=False)
class ScoreShift:
    """All distances between reference and new scores, and the counts in the frozen bins.

    ``new_rows`` (B,) is the number of independent rows that would say as much about each bin's
    share of the new rows; None if rows are independent.
    """

    psi: ShiftTest
    kolmogorov_smirnov: ShiftTest
    wasserstein: ShiftTest
    bins: FrozenBins
    new_count: FloatArray
    noun: str = "scores"
    new_rows: FloatArray | None = None

    @property
    def tests(self) -> tuple[ShiftTest, ShiftTest, ShiftTest]:
        """The three tests."""
        return self.psi, self.kolmogorov_smirnov, self.wasserstein


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Rows by their score, for a picture.

    Attributes
    ----------
    edges : (B + 1,) array
        Equal steps of log odds, as probabilities; the outermost bins reach to 0 and 1. Of numbers
        of any size, equal steps of these.
    reference, new : (B,) array
        Rows of both tables in each bin.
    of_numbers : bool
        Whether the scores are numbers of any size.
    """

    edges: FloatArray
    reference: FloatArray
    new: FloatArray
    of_numbers: bool = False


def freeze_bins(score: Any, n_bins: int = BINS) -> FrozenBins:
    """Bins of equal mass of the reference scores, for :func:`population_stability`.

    Parameters
    ----------
    score : (n,) array-like in [0, 1]
        Reference scores: probabilities of the event, or confidences.
    n_bins : int
        Bins asked for. Equal scores are never parted, so ties may give fewer; no bin is empty.

    Raises
    ------
    InputError
        For a score that is missing or outside [0, 1] (the row is named), no rows, or a number of
        bins below 1.

    Examples
    --------
    >>> freeze_bins([0.1, 0.2, 0.3, 0.9], 2).count.tolist()
    [2.0, 2.0]
    """
    values = checked_scores(score, "reference")
    edges = quantile_edges(values, n_bins)
    return FrozenBins(edges, bin_sums(bin_index(values, edges), len(edges) - 1))


def freeze_bins_of_numbers(values: Any, n_bins: int = BINS) -> FrozenBins:
    """:func:`freeze_bins` of finite numbers (n,) of any size.

    A value that fills a bin has one of its own, so that a move to either side shows. Beside the
    least or the largest number a bin may then be empty.

    Examples
    --------
    >>> freeze_bins_of_numbers(np.arange(40.0), 2).edges.tolist()
    [-inf, 19.0, inf]
    >>> freeze_bins_of_numbers(np.full(40, 7.0)).count.tolist()
    [0.0, 40.0, 0.0]
    """
    numbers = checked_numbers(values, "reference")
    # of ranks, because these bins are of probabilities
    distinct, rank = np.unique(numbers, return_inverse=True)
    share = np.asarray((rank + 1.0) / (len(distinct) + 1.0), dtype=np.float64)
    inner = quantile_edges(share, n_bins)[1:-1]
    at = np.rint(inner * (len(distinct) + 1.0)).astype(np.int64) - 1
    count = np.bincount(rank, minlength=len(distinct))
    tied = distinct[count * n_bins >= len(numbers)]  # a bin of its own, with both sides apart
    inner = np.unique(np.concatenate([distinct[at], tied, np.nextafter(tied, -np.inf)]))
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return FrozenBins(edges, bin_sums(bin_index(numbers, edges), len(edges) - 1))


def population_stability(
    bins: FrozenBins,
    score: Any,
    *,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> ShiftTest:
    """Population stability index of new scores in frozen bins: sum (q_b - p_b) log(q_b / p_b).

    Parameters
    ----------
    bins : FrozenBins
        Those of the reference scores, from :func:`freeze_bins`.
    score : (m,) array-like in [0, 1]
        New scores.
    level : float
        Level of the interval, and of the value that chance alone does not exceed.
    n_draws, seed : int
        Draws under no change, and their seed.

    Returns
    -------
    ShiftTest

    Raises
    ------
    InputError
        As for :func:`freeze_bins`, and for a level outside (0, 1) or no draws.

    Notes
    -----
    Half a row is added to each bin of both tables, so that an empty bin has a finite logarithm.

    The familiar limits .1 and .25 ignore the number of rows. With 100 rows in both tables and ten
    bins, chance alone exceeds .25 in about one of seven cases (the mean grows with 1 / n + 1 / m:
    Yurdakul and Naranjo 2020). Here the null distribution is drawn. The edges are order statistics
    of the reference scores, so the true masses between them follow a Dirichlet distribution
    whatever the scores' distribution, and the new counts are multinomial given the masses.
    Shuffling rows between the tables while the edges stay would be wrong: with 30 reference and 200
    new rows its 5% test refused 10%.

    The interval is that of the noncentrality of a chi-square variable: for small changes PSI over
    (1 / n + 1 / m) has that distribution (Yurdakul and Naranjo 2020). For large changes it is
    widened by the ratio of the delta method's variance to that of the approximation.

    Examples
    --------
    >>> reference = np.linspace(0.0, 1.0, 1000)
    >>> same, moved = (population_stability(freeze_bins(reference), reference**p) for p in (1, 2))
    >>> same.p_value > 0.9, moved.p_value < 0.01
    (True, True)
    """
    return stability_of_counts(bins, bins.counts(score), level, n_draws, seed)


def stability_of_counts(
    bins: FrozenBins,
    new: FloatArray,
    level: float,
    n_draws: int,
    seed: int,
    together: UnitChanges | None = None,
    noun: str = "scores",
) -> ShiftTest:
    """:func:`population_stability` of new scores that are counted already, (B,).

    ``together`` is what units of dependent rows contribute to the shares of these bins.
    """
    _check_settings(level, n_draws, seed)
    n, m = bins.n, int(new.sum())
    value = float(_psi(bins.count, new))
    rng = np.random.default_rng(seed)
    if together is None:
        # the last mass runs to the end of the scores, so it counts one spacing more
        shape = np.maximum(bins.count, 1e-9) + np.eye(len(new))[-1]
        masses = rng.dirichlet(shape, size=n_draws)
        drawn = rng.multinomial(m, masses).astype(np.float64)
    else:
        drawn = m * np.maximum(bins.count / n + together.drawn(n_draws, rng), 0.0)
    null = _psi(bins.count, drawn)
    interval = _psi_interval(bins.count, new, value, level, together)
    estimate = Estimate(
        name=f"Population stability index of the {noun}, {len(new)} frozen bins of equal mass",
        label="PSI",
        value=value,
        low=min(interval[0], value),
        high=max(interval[1], value),
        n=m,
        level=level,
        interval="noncentral chi-square, variance by the delta method",
        expected=_quantile(null, level),
        expected_words=_BY_CHANCE.format(share=100 * level),
    )
    return ShiftTest("psi", estimate, p_value_of_draws(null, value), n, m, n_draws, seed)


def score_shift(
    reference: Any,
    new: Any,
    *,
    bins: FrozenBins | None = None,
    dependence: Dependence | None = None,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> ScoreShift:
    """PSI, Kolmogorov-Smirnov and Wasserstein-1 distances between reference and new scores.

    Parameters
    ----------
    reference : (n,) array-like in [0, 1]
    new : (m,) array-like in [0, 1]
    bins : FrozenBins, optional
        Kept from an earlier table; by default :data:`BINS` bins of ``reference``.
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first, so that a cluster may have rows in both tables.
    level, n_draws, seed
        As for :func:`population_stability`.

    Raises
    ------
    InputError
        As for :func:`population_stability`, and if all rows of a table are of one cluster or time.

    Notes
    -----
    The Kolmogorov-Smirnov distance is the largest difference of the two distribution functions,
    Wasserstein-1 the area between them, in units of the score. Their p values come from rows
    shuffled between the tables, which gives the exact level for any number of ties; scipy's exact
    Kolmogorov-Smirnov test assumes that there are none, and with ties refuses too rarely. With more
    than 2,048 distinct scores, neighbours are merged for the draws and for the value they are
    compared with.

    The interval is the distance plus and minus the ``level`` quantile of the distance between the
    samples' differences and those of bootstrap samples. By the triangle inequality it is
    conservative.

    Of dependent rows, what each cluster or time contributes to the difference of the two
    distribution functions, about its table's mean, is multiplied by a random normal number, which
    near times nearly share (the wild bootstrap; Shao 2010). These draws stand in place of both the
    shuffled tables and the bootstrap samples, in at most 400 cells and 2,000 groups of units. They
    are scaled for few units. With 40 clusters of 10 rows in each table and a correlation of .2 the
    tests at 5% refused equal populations in 2%, 4% and 6% of 200 runs, and those of independent
    rows in 12%, 16% and 24%.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = score_shift(rng.beta(2, 2, 500), rng.beta(2, 3, 400))
    >>> [test.p_value < 0.01 for test in found.tests]
    [True, True, True]
    """
    reference, new = checked_scores(reference, "reference"), checked_scores(new, "new")
    bins = freeze_bins(reference) if bins is None else bins
    return _shift(reference, new, bins, dependence, level, n_draws, seed, "scores")


def number_shift(
    reference: Any,
    new: Any,
    *,
    noun: str,
    bins: FrozenBins | None = None,
    dependence: Dependence | None = None,
    level: float = 0.95,
    n_draws: int = DRAWS,
    seed: int = 0,
) -> ScoreShift:
    """:func:`score_shift` of finite numbers of any size, such as predicted medians.

    The Wasserstein-1 distance is in the units of the numbers.

    Parameters
    ----------
    noun : str
        What they are, in the plural.
    bins : FrozenBins, optional
        By default :func:`freeze_bins_of_numbers` of ``reference``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = number_shift(rng.normal(0, 9, 500), rng.normal(4, 9, 400), noun="medians")
    >>> [test.p_value < 0.01 for test in found.tests], 3.0 < found.wasserstein.estimate.value < 5.0
    ([True, True, True], True)
    """
    reference, new = checked_numbers(reference, "reference"), checked_numbers(new, "new")
    bins = freeze_bins_of_numbers(reference) if bins is None else bins
    return _shift(reference, new, bins, dependence, level, n_draws, seed, noun)


def _shift(
    reference: FloatArray,
    new: FloatArray,
    bins: FrozenBins,
    dependence: Dependence | None,
    level: float,
    n_draws: int,
    seed: int,
    noun: str,
) -> ScoreShift:
    _check_settings(level, n_draws, seed)
    exact, counts = PooledCells.of(reference, new, None), bins.counts(new)
    if dependence is None or dependence.alone:
        cells = PooledCells.of(reference, new, CELLS)
        return shift_of_cells(exact, cells, bins, counts, level, n_draws, seed, noun=noun)
    cells = PooledCells.of(reference, new, _UNIT_CELLS)
    place = PooledCells.places(reference, new, _UNIT_CELLS)
    in_bins = bin_index(np.concatenate([reference, new]), bins.edges)
    n = len(reference)
    together = (
        UnitChanges.of(place, len(cells.new), n, dependence),
        UnitChanges.of(in_bins, len(counts), n, dependence),
    )
    found = shift_of_cells(
        exact, cells, bins, counts, level, n_draws, seed, together=together, noun=noun
    )
    own, m = dependence.only(slice(n, None)), len(new)
    inside = (in_bins[n:, None] == np.arange(len(counts))).astype(np.float64)
    rows = [effective_size(one - one.mean(), np.ones(m), own) for one in inside.T]
    return replace(found, new_rows=np.minimum(rows, m))


def shift_of_cells(
    exact: PooledCells,
    cells: PooledCells,
    bins: FrozenBins,
    counts: FloatArray,
    level: float,
    n_draws: int,
    seed: int,
    hidden: tuple[float, float] = (0.0, 0.0),
    together: tuple[UnitChanges, UnitChanges] | None = None,
    noun: str = "scores",
) -> ScoreShift:
    """:func:`score_shift` of scores that are counted already.

    Parameters
    ----------
    exact, cells : PooledCells
        Behind the distances shown, and behind the draws.
    counts : (B,) array
        New rows in the frozen bins.
    hidden : (float, float)
        By how much both distances may differ from those of the rows; it widens their intervals.
    together : (UnitChanges, UnitChanges), optional
        What units of dependent rows contribute to the shares of ``cells`` and of the frozen bins.
    noun : str
        What is counted, in the plural; only of scores Wasserstein-1 is at most 1.
    """
    _check_settings(level, n_draws, seed)
    n, m = exact.sizes
    rng = np.random.default_rng(seed)
    if together is None:
        null = cells.distances(cells.shuffled(n_draws, rng))
        noise, how = cells.deviations(n_draws, rng), "bootstrap band"
    else:
        null = noise = cells.of_changes(together[0].drawn(n_draws, rng))
        how = f"wild bootstrap band by {together[0].words}"
    titles = (
        ("kolmogorov_smirnov", f"Kolmogorov-Smirnov distance of the {noun}", "KS"),
        ("wasserstein", f"Wasserstein-1 distance of the {noun}", "Wasserstein-1"),
    )
    tops = 1.0, 1.0 if noun == "scores" else np.inf
    tests = []
    for (key, name, label), top, shown, merged, chance, reach, unseen in zip(
        titles, tops, exact.observed, cells.observed, null, noise, hidden, strict=True
    ):
        value, half = shown, float(np.quantile(reach, level)) + unseen
        estimate = Estimate(
            name=name,
            label=label,
            value=value,
            low=max(value - half, 0.0),
            high=min(value + half, top),
            n=m,
            level=level,
            interval=f"{how}, {n_draws:,} draws",
            expected=_quantile(chance, level),
            expected_words=_BY_CHANCE.format(share=100 * level),
        )
        p_value = p_value_of_draws(chance, merged)
        tests.append(ShiftTest(key, estimate, p_value, n, m, n_draws, seed))
    of_bins = None if together is None else together[1]
    psi = stability_of_counts(bins, counts, level, n_draws, seed, of_bins, noun)
    return ScoreShift(psi, tests[0], tests[1], bins, counts, noun)


def score_counts(reference: Any, new: Any) -> ScoreCounts:
    """Reference and new scores counted in bins of equal width on the scale of log odds.

    Raises
    ------
    InputError
        As for :func:`freeze_bins`.

    Examples
    --------
    >>> found = score_counts([0.1, 0.2, 0.9], [0.0, 1.0])
    >>> found.reference.sum(), found.new[[0, -1]].tolist()
    (np.float64(3.0), [1.0, 1.0])
    """
    edges = expit(EDGES)
    edges[[0, -1]] = 0.0, 1.0
    old, fresh = (
        bin_sums(bin_index(checked_scores(one, noun), edges), len(edges) - 1)
        for one, noun in ((reference, "reference"), (new, "new"))
    )
    return ScoreCounts(edges, old, fresh)


def number_counts(reference: Any, new: Any) -> ScoreCounts:
    """The same of finite numbers of any size, in 40 bins of equal width.

    They span all but the outermost 0.5% of both tables' numbers; the end bins hold those too.

    Examples
    --------
    >>> found = number_counts([0.0, 10.0, 400.0], [20.0])
    >>> len(found.reference), found.reference.sum(), found.new.sum()
    (40, np.float64(3.0), np.float64(1.0))
    """
    old, fresh = checked_numbers(reference, "reference"), checked_numbers(new, "new")
    low, high = np.quantile(np.concatenate([old, fresh]), [0.005, 0.995])
    if high <= low:
        low, high = low - 0.5, low + 0.5
    edges = np.linspace(low, high, _PICTURE_BINS + 1)
    counts = [bin_sums(bin_index(one, edges), _PICTURE_BINS) for one in (old, fresh)]
    return ScoreCounts(edges, counts[0], counts[1], of_numbers=True)


def _psi(reference: FloatArray, new: FloatArray) -> FloatArray:
    """PSI of counts (..., B), with half a row more in each bin."""
    p, q = _shares(reference), _shares(new)
    return np.asarray(((q - p) * np.log(q / p)).sum(axis=-1))


def _shares(count: FloatArray) -> FloatArray:
    added = count + 0.5
    return np.asarray(added / added.sum(axis=-1, keepdims=True))


def _psi_interval(
    reference: FloatArray,
    new: FloatArray,
    value: float,
    level: float,
    together: UnitChanges | None,
) -> tuple[float, float]:
    n, m, free = reference.sum(), new.sum(), len(new) - 1
    if free == 0:
        return 0.0, 0.0
    p, q = _shares(reference), _shares(new)
    ratio = q / p
    by_p, by_q = -np.log(ratio) - ratio, np.log(ratio) - 1.0 / ratio
    if together is None:
        delta = (p @ by_p**2 - (p @ by_p) ** 2) / n + (q @ by_q**2 - (q @ by_q) ** 2) / m
        scale = 1.0 / n + 1.0 / m
    else:
        delta = float(together.variance(-by_p[:, None], by_q[:, None])[0])
        whole = np.eye(len(p))
        scale = float((together.variance(whole, whole) / p).sum()) / free
    if value > 0.0:
        scale *= max(1.0, delta / (4.0 * value * scale))
    half = 0.5 * (1.0 - level)
    ends = [
        chndtrinc(value / scale, free, tail) * scale
        if chndtr(value / scale, free, 0.0) > tail
        else 0.0
        for tail in (1.0 - half, half)
    ]
    return float(ends[0]), float(ends[1])


def p_value_of_draws(null: FloatArray, value: float) -> float:
    """Share of draws under the hypothesis that reach a value, with the value itself as one."""
    reached = int((null >= value - _SAME * max(1.0, value)).sum())
    return (1 + reached) / (1 + len(null))


def _quantile(null: FloatArray, level: float) -> float:
    return float(np.quantile(null, level, method="higher"))


def checked_scores(score: Any, noun: str) -> FloatArray:
    """Scores (n,) in [0, 1], or an error that names the first faulty row of the ``noun`` table."""
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"The {noun} scores must be one column with rows, but have shape {values.shape}",
            fix="Give one score for each row.",
        )
    bad: NDArray[np.bool_] = ~((values >= 0.0) & (values <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"A score of the {noun} rows is {values[row]:.6g}",
            fix="Scores lie between 0 and 1.",
            row=row + 1,
        )
    return values


def checked_numbers(values: Any, noun: str) -> FloatArray:
    """Finite numbers (n,), or an error that names the first faulty row of the ``noun`` table."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise InputError(
            f"The {noun} numbers must be one column with rows, but have shape {numbers.shape}",
            fix="Give one number for each row.",
        )
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"A number of the {noun} rows is {numbers[row]}", fix="Give finite ones.", row=row + 1
        )
    return numbers


def _check_settings(level: float, n_draws: int, seed: int) -> None:
    check_level(level)
    check_seed(seed)
    check_draws(n_draws)


def check_draws(n_draws: int) -> None:
    """Refuse fewer than one draw."""
    if n_draws < 1:
        raise InputError(f"n_draws is {n_draws}", fix="Choose at least one draw.")
