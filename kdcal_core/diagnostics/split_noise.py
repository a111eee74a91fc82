"""What noise adds to miscalibration and discrimination in the CORP split, and their intervals.

The isotonic curve is fitted on the rows that it is judged on: it fits their noise too, and both
parts come out too large, by the same excess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.calibration_curves import FineCells, isotonic_values
from kdcal_core.diagnostics.error_interval import inverted_test, likely_gaps, tried_errors
from kdcal_core.diagnostics.targets import BinTable, Target, bin_chance, with_doubt
from kdcal_core.statistics import binomial_draws, normal_quantile, small_sample_factor

NULL_DRAWS = 50
_DRAWS, _ALL_DRAWS = (50, 200), 2_000  # fewest and most of each target, and of all together
_VALUES = 1_000
_NO_FAULT = 1e-9
_MOST_UNITS = 2000


def interval_draws(n_targets: int) -> int:
    """Draws of outcomes behind the intervals of so many targets together.

    Examples
    --------
    >>> [interval_draws(k) for k in (1, 10, 20, 1000)]
    [200, 200, 100, 50]
    """
    return int(np.clip(_ALL_DRAWS // n_targets, *_DRAWS))


def excesses(
    cells: FineCells,
    chance: FloatArray,
    draws: int,
    rng: np.random.Generator,
    effect: float = 1.0,
    away: FloatArray | None = None,
) -> FloatArray:
    """By how much an isotonic curve scores better on its own rows than the truth, (draws,).

    Parameters
    ----------
    cells : FineCells
        C cells of rows.
    chance : (C,) array
        The truth, from which outcomes are drawn; the mean of a cell's rows.
    effect : float
        By how much dependence of the rows multiplies their noise, where only cells are known.
    away : (draws, C) array, optional
        Noise of the cells' frequencies, in place of that of independent rows; see
        :func:`noise_of_units`.

    Examples
    --------
    >>> one = FineCells(np.array([0.5]), np.array([100.0]), np.array([100.0]), np.array([50.0]))
    >>> bool(abs(excesses(one, one.score, 4000, np.random.default_rng(0)).mean() - 0.0025) < 1e-4)
    True
    """
    n = np.maximum(np.rint(cells.weight**2 / cells.weight_sq / effect), 1.0)
    found = np.empty(draws)
    rates: Iterable[FloatArray]
    if away is None:
        rates = (hits / n for hits in binomial_draws(rng, n, chance, draws))
    else:
        rates = chance + away
    for at, rate in enumerate(rates):
        drawn = FineCells(cells.score, cells.weight, cells.weight_sq, rate * cells.weight)
        excess = np.square(chance - rate) - np.square(isotonic_values(drawn) - rate)
        found[at] = float(cells.weight @ excess / cells.weight.sum())
    return found


def noise_of_units(
    target: Target, cells: FineCells, likely: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray | None:
    """Noise of the cells' frequencies of dependent rows, (draws, C); None of independent ones.

    The rows' residuals about ``likely`` (C,) are multiplied by random normal numbers, which rows of
    one cluster share and those of near times nearly do (the wild bootstrap; Shao 2010). A larger
    variance of independent outcomes would not do: an isotonic curve fits more of noise that every
    row has for itself than of as much noise that clusters share.
    """
    if target.dependence is None:
        return None
    few = target.dependence.coarser(_MOST_UNITS)
    index = np.searchsorted((cells.score[1:] + cells.score[:-1]) / 2, target.score)
    values = target.weight * (target.hit - likely[index])
    shape = (few.n_units, len(cells.score))
    sums = coo_array((values, (few.unit, index)), shape=shape).tocsr()
    each = replace(few, unit=np.arange(few.n_units)).alike(rng, draws)
    factor = small_sample_factor(few.n_units, few.lags) ** 0.5
    return np.asarray(factor * (sums.T @ each).T / cells.weight)


def expected_miscalibration(cells: FineCells, rng: np.random.Generator) -> float:
    """Mean MCB if every score is the true probability; isotonic regression fits noise too."""
    chance = np.clip(cells.score, 0.0, 1.0)
    return float(sum(excesses(cells, chance, NULL_DRAWS, rng)) / NULL_DRAWS)


@dataclass(frozen=True, eq=False)
class LikelyTruth:
    """A truth that the rows of one target support, and what noise then adds.

    Attributes
    ----------
    cells : FineCells
        C cells of rows.
    likely : (C,) array
        Chance of a hit in each cell, increasing: the scores moved by the gaps of ten bins of equal
        mass, shrunk by their noise (:func:`kdcal_core.diagnostics.error_interval.likely_gaps`).
    rows : float
        Effective number of rows.
    noise : two (draws,) arrays
        :func:`excesses` if the scores are true, and if ``likely`` is.
    """

    cells: FineCells
    likely: FloatArray
    rows: float
    noise: tuple[FloatArray, FloatArray]

    @classmethod
    def of(
        cls,
        cells: FineCells,
        table: BinTable,
        draws: int,
        rng: np.random.Generator,
        effect: float = 1.0,
        noise: Callable[[FloatArray, int, np.random.Generator], FloatArray | None] | None = None,
    ) -> LikelyTruth:
        """From cells of rows and the ten bins; ``effect`` as for :func:`excesses`.

        With ``noise``, from the likely truth, the draws and their generator, as
        :func:`noise_of_units`: then the dependence of the rows is known better.
        """
        some = table.count > 0
        score, chance, rows = table.score[some], bin_chance(table)[some], table.effective[some]
        variance = chance * (1.0 - chance) / np.maximum(rows, 1.0)
        gap = likely_gaps(score, (table.rate - table.score)[some], variance)
        stated = np.clip(cells.score, 0.0, 1.0)
        moved = np.clip(stated + np.interp(stated, score, gap), 0.0, 1.0)
        curve = FineCells(cells.score, cells.weight, cells.weight_sq, cells.weight * moved)
        likely = isotonic_values(curve)
        away = None if noise is None else noise(likely, draws, rng)
        first, second = (excesses(cells, one, draws, rng, effect, away) for one in (stated, likely))
        kish = float(cells.weight.sum() ** 2 / cells.weight_sq.sum())
        return cls(cells, likely, kish / effect, (first, second))

    def at(self, score: FloatArray) -> FloatArray:
        """The likely chance of a hit at these scores, (n,)."""
        return np.asarray(np.interp(score, self.cells.score, self.likely))

    @property
    def share(self) -> FloatArray:
        """Each cell's share of the rows, (C,)."""
        return np.asarray(self.cells.weight / self.cells.weight.sum())

    @property
    def steps(self) -> tuple[FloatArray, FloatArray]:
        """What separates the likely truth from the scores, and from its mean: two (C,) arrays."""
        return self.likely - self.cells.score, self.likely - float(self.share @ self.likely)

    @property
    def values(self) -> FloatArray:
        """Miscalibration and discrimination of the cells, (2,)."""
        rate = self.cells.hits / self.cells.weight
        best = np.square(isotonic_values(self.cells) - rate)
        others = self.cells.score, np.full_like(rate, float(self.share @ rate))
        return np.array([self.share @ (np.square(one - rate) - best) for one in others])


def split_intervals(
    truths: Sequence[LikelyTruth],
    halves: tuple[float, float],
    level: float,
    rng: np.random.Generator,
) -> list[tuple[float, float]]:
    """Intervals of miscalibration and discrimination, summed over the targets.

    Parameters
    ----------
    truths : sequence of LikelyTruth
    halves : tuple of float
        Half the widths, at ``level``, of the intervals of both parts if the likely truth were the
        curve: they count what targets and rows share. Infinite of a single row.

    Notes
    -----
    As of a calibration error (:func:`kdcal_core.diagnostics.error_interval.inverted_test`), on the
    scale of roots: an interval holds the true parts t for which the observed one is no outlier
    among ``t + excess + noise``. The noise grows as the root of t, from what it is at the likely
    truth. Both excesses count, and the interval contains those of either.

    A row's outcomes of several classes go together. The spread of their excesses is therefore that
    of independent ones times the root of 2: exactly so for two classes, and else at most.
    """
    values = np.sum([one.values for one in truths], axis=0)
    noise = [np.sum([one.noise[at] for one in truths], axis=0) for at in (0, 1)]
    if len(truths) > 1:
        noise = [one.mean() + 2.0**0.5 * (one - one.mean()) for one in noise]
    normal = rng.normal(size=_VALUES)
    found = []
    for part, half in enumerate(halves):
        if not np.isfinite(half):
            found.append((0.0, 2.0))
            continue
        value = float(max(values[part], 0.0)) ** 0.5
        steepness = _steepness(truths, part, half / normal_quantile(level))
        ends = []
        for one in noise:
            drawn = _Drawn(np.resize(one, _VALUES), steepness * normal)
            truth = tried_errors(value, drawn.at(0.0), level)
            ends.append(inverted_test(value, truth, map(drawn.at, truth), level))
        low, high = zip(*ends, strict=True)
        found.append((min(low) ** 2, max(high) ** 2))
    return found


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Draws of the root of a part: what the curve fits of noise, and noise of a fault of size 1."""

    excess: FloatArray
    noise: FloatArray

    def at(self, root: float) -> FloatArray:
        """If the root of the true part is this, (draws,)."""
        return np.sqrt(np.maximum(root * root + root * self.noise + self.excess, 0.0))


def _steepness(truths: Sequence[LikelyTruth], part: int, error: float) -> float:
    """Standard error of a part over its root.

    A few rows with no or few errors show too little: at least that of outcomes drawn from the
    likely truth. Without a fault to speak of, that of an equal one at all scores.
    """
    size = square = plain = 0.0
    for one in truths:
        step, chance = one.steps[part], with_doubt(one.likely, np.array(one.rows), 1.0)
        variance = chance * (1.0 - chance) / one.rows
        size += float(one.share @ np.square(step))
        square += 4.0 * float(one.share @ (np.square(step) * variance))
        plain += 4.0 * float(one.share @ variance)
    if size < _NO_FAULT:
        return float(plain**0.5)
    return float((max(error**2, square) / size) ** 0.5)
