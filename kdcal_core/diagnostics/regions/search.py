"""Where the model is wrong beyond chance: a tree grown on some rows and judged on the others.

With few rows the tree is grown and judged on the same rows, against redrawn outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray, two_parts
from kdcal_core.diagnostics.regions.boxes import MOST_COLUMNS, Box, BoxGrid
from kdcal_core.diagnostics.regions.judging import (
    AnyScored,
    Place,
    pit_described,
    region_by_evidence,
    stated_described,
    stated_target,
)
from kdcal_core.diagnostics.regions.region import PENALTY, Region, RegionSearch
from kdcal_core.diagnostics.regression.pit_curves import checked_pit
from kdcal_core.diagnostics.targets import Target, check_level, check_seed, overall_effect
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import (
    BinnedInputs,
    Criterion,
    Cut,
    PartitionTree,
    Residual,
    RowStats,
    bin_inputs,
    grow_tree,
    prune_tree,
)
from kdcal_core.progress import Progress
from kdcal_core.statistics import Dependence, dependence_of, design_effect

Grow = Callable[[Criterion], "_Tree"]

_AT_ONCE = ", for all regions that could be found at once"


def residuals(goal: Target, hit: FloatArray) -> Residual:
    """Outcome minus stated probability, with the variance that the stated one implies."""
    return Residual(hit - goal.score, goal.score * (1.0 - goal.score), goal.weight)


def largest_when_redrawn(
    goal: Target,
    binned: BinnedInputs,
    grow: Grow,
    redraws: int,
    seed: int,
    progress: Progress | None = None,
) -> FloatArray:
    """Largest evidence in trees grown on outcomes redrawn as stated, (redraws, 2).

    Evidence is a chi-square: the squared sum of a leaf's residuals over their variance. Above its
    price in the first column, as it is in the second.
    """
    # a separate stream, because a caller may have used the same seed to draw the rows
    rng = np.random.default_rng([seed, redraws])
    largest = np.empty((redraws, 2))
    for draw in range(redraws):
        if progress is not None:
            progress(draw / redraws, f"Outcomes drawn again, {draw + 1:,} of {redraws:,}")
        criterion = residuals(goal, _redraw(goal, rng))
        grown = grow(criterion)
        found = evidence(criterion, grown.tree.apply(binned))
        largest[draw] = (found - grown.price).max(), found.max()
    return largest


def _redraw(goal: Target, rng: np.random.Generator) -> FloatArray:
    """Outcomes under the hypothesis, (n,): drawn from the stated probabilities.

    Of dependent rows the observed residuals are kept, and every cluster, or stretch of times, gets
    one random sign (the wild bootstrap of clusters; Cameron, Gelbach and Miller 2008).
    """
    if goal.dependence is None:
        return (rng.random(len(goal.score)) < goal.score).astype(np.float64)
    stretch = goal.dependence.unit // (goal.dependence.lags + 1)
    sign = rng.integers(0, 2, size=int(stretch.max()) + 1) * 2.0 - 1.0
    return np.asarray(goal.score + sign[stretch] * (goal.hit - goal.score))


def evidence(criterion: Criterion, leaf: IntArray) -> FloatArray:
    """Chi-square of each leaf's residuals, equal where as many outcomes of the same rows happen."""
    residual, variance = (np.bincount(leaf, weights=v) for v in criterion.stats.values.T)
    return np.asarray((residual**2 / variance).round(9))  # sums in another order differ by less


def judged_by_redraws(
    goal: Target,
    places: Sequence[Place],
    leaf: IntArray,
    found: FloatArray,
    price: FloatArray,
    largest: FloatArray,
    level: float,
) -> tuple[Region, ...]:
    """Compare regions with the largest evidence that chance gives, above its price and as it is.

    A p value is that of :func:`reached`, corrected for the whole search. Regions of few conditions
    have a lower price, because chance finds fewer of them; the evidence as it is counts too, so
    that a clear fault of many conditions is not outweighed by their price. Intervals and the
    minimum detectable gap follow from the largest evidence that is not yet a fault, so that an
    interval excludes the stated rate exactly where there is a fault.
    """
    regions = []
    for place in places:
        rows, own = np.flatnonzero(leaf == place.leaf), float(price[place.leaf])
        steps = np.unique(np.concatenate([largest[:, 0] + own, largest[:, 1]]))
        p_of_steps = reached(np.column_stack([steps - own, steps]), largest)
        beyond = max(float(steps[p_of_steps >= 1.0 - level].max(initial=0.0)), 0.0)
        region = region_by_evidence(goal, place, rows, beyond, level)
        here = float(found[place.leaf])
        p = float(reached(np.array([[here - own, here]]), largest)[0])
        observed, gap = (
            replace(one, interval=one.interval + _AT_ONCE) for one in (region.observed, region.gap)
        )
        regions.append(
            replace(
                region,
                observed=observed,
                gap=gap,
                p_value=p,
                adjusted_p=p,
                fault=region.fault if p < 1.0 - level else "none",
            )
        )
    return tuple(regions)


def reached(found: FloatArray, largest: FloatArray) -> FloatArray:
    """Share of searches, this one included, whose largest evidence stands out as much, (m,).

    A search stands out by the better of its two ranks among all: by evidence above its price and
    by evidence as it is (Westfall and Young 1993, the smallest p value).

    Parameters
    ----------
    found : (m, 2) array
        Evidence above its price and as it is, of m regions.
    largest : (redraws, 2) array

    Examples
    --------
    >>> largest = np.column_stack([np.arange(9.0), np.arange(9.0)])
    >>> reached(np.array([[9.0, 9.0], [4.5, 9.0], [4.5, 4.5]]), largest)
    array([0.1, 0.2, 0.5])
    """
    above = largest[None] >= found[:, None]
    own = 1 + above.sum(axis=1).min(axis=1)
    among = (largest[None] >= largest[:, None]).sum(axis=1)
    theirs = (among[None] + (found[:, None] >= largest[None])).min(axis=2)
    return np.asarray((1 + (theirs <= own[:, None]).sum(axis=1)) / (len(largest) + 1.0))


_WIDTH = 2  # numbers in the sum of a residual


class PitResidual:
    """Evidence of a wrong location plus evidence of a wrong spread: one tree for both faults.

    The residuals are PIT - 1/2, of variance 1/12, and (PIT - 1/2)^2 - 1/12, of variance 1/180,
    which are uncorrelated for uniform PIT values. A split's gain is the sum of the gains of
    :class:`kdcal_core.partition.tree.Residual`. Categories are ordered by the residual with more
    evidence at the node.

    Parameters
    ----------
    pit : (n,) in [0, 1]
    weight : (n,) positive
    """

    def __init__(self, pit: FloatArray, weight: FloatArray) -> None:
        centred = pit - 0.5
        n = len(pit)
        self._place = Residual(centred, np.full(n, 1.0 / 12.0), weight)
        self._spread = Residual(np.square(centred) - 1.0 / 12.0, np.full(n, 1.0 / 180.0), weight)
        values = [part.stats.values for part in (self._place, self._spread)]
        self._stats = RowStats(self._place.stats.cells, 1, np.concatenate(values, axis=1))

    @property
    def stats(self) -> RowStats:
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        place = self._place.gain(left[..., :_WIDTH], right[..., :_WIDTH])
        spread = self._spread.gain(left[..., _WIDTH:], right[..., _WIDTH:])
        return np.asarray(place + spread)

    def order(self, sums: FloatArray) -> FloatArray:
        halves = [sums[..., :_WIDTH], sums[..., _WIDTH:]]
        place, spread = (
            (h[..., 0] ** 2 / np.maximum(h[..., 1], 1e-300)).sum(axis=(-2, -1)) for h in halves
        )
        return np.where(
            (spread > place)[..., None],
            self._spread.order(halves[1]),
            self._place.order(halves[0]),
        )


FAST = 50_000_000  # redraws times rows times columns, a pair as an eighth: two seconds


def redraws_by_default(n: int, d: int, level: float = 0.95) -> int:
    """Number of redraws of outcomes in a search of n rows and d columns; 0 to divide the rows.

    It depends on these numbers alone, so that the same rows are always searched in the same way.

    Examples
    --------
    >>> redraws_by_default(5_000, 20), redraws_by_default(100_000, 20)
    (200, 0)
    """
    redraws, paired = _enough_redraws(level), min(d, MOST_COLUMNS)
    work = redraws * n * (d + paired * (paired - 1) / 16)
    return redraws if work <= FAST else 0


def _enough_redraws(level: float) -> int:
    return int(np.ceil(round(10.0 / (1.0 - level), 6)))


def _check_share(grow_share: float) -> None:
    if not 0.0 < grow_share < 1.0:
        raise InputError(
            f"The share of rows to grow on is {grow_share!r}",
            fix="Choose a number between 0 and 1.",
        )


GROW_SHARE = 0.5
LEAST_ROWS = 25  # of a region, among the rows on which the tree is grown
ROWS_PER_ROOT = 2.0  # and at least this times the square root of the number of those rows


def find_regions(
    scored: AnyScored,
    X: pd.DataFrame | BinnedInputs,
    *,
    target: str | int = "confidence",
    max_depth: int = 3,
    min_rows: int | None = None,
    grow_share: float = GROW_SHARE,
    redraws: int | None = None,
    seed: int = 0,
    swap: bool = False,
    level: float = 0.95,
    progress: Progress | None = None,
) -> RegionSearch:
    """Regions of the inputs where stated and observed rates differ beyond chance.

    A tree is grown on the residuals: outcome minus stated probability in units of p (1 - p). It
    takes the best split of one column after the other, or begins with the best box of two columns
    at once (:mod:`kdcal_core.diagnostics.regions.boxes`), whichever gains more. A model that is
    right everywhere is called faulty somewhere in at most 1 - level of all searches, in one of two
    ways:

    * with redraws, one tree is grown on all rows, and its regions are compared with those of trees
      grown on outcomes that are drawn again from the stated probabilities;
    * with halves, the tree is grown on one random part of the rows, and its leaves are judged on
      the other rows, which did not influence them, with p values Holm-corrected for the number of
      leaves.

    Parameters
    ----------
    scored : ScoredSet, or a Target of n rows
        A target (:func:`kdcal_core.diagnostics.targets.confidence_target`) where calibrated
        confidences are tested.
    X : (n, d) DataFrame or BinnedInputs
        Numbers and categories, which may be missing.
    target : "confidence" or a class index
        Test the top label's probability against whether it was right, or p_k against whether the
        class is k.
    max_depth : int
        Largest number of conditions in a rule.
    min_rows : int, optional
        Fewest rows of a region, among the rows on which the tree is grown; by default twice the
        square root of their number, at least 25.
    grow_share : float in (0, 1)
        Share of the rows on which the tree is grown where they are divided.
    redraws : int, optional
        Number of redraws, or 0 to divide the rows. By default ten over 1 - level, 200 at a level
        of 95%, where :func:`redraws_by_default` expects them to take less than two seconds, and
        otherwise 0. Redraws find more, but the smallest p value is 1 / (redraws + 1), which must
        be below 1 - level; twice that for a region that stands out by one of its two ranks only.
    seed : int
        Seed of the division of the rows, or of the redraws.
    swap : bool
        Whether the rows that judge and those on which the tree is grown are exchanged, where the
        rows are divided: half of few rows can miss a region that the other half shows.
    level : float
        Level of the intervals; a fault is named if its corrected p value is below 1 - level.
    progress : callable, optional
        Called before every redraw; may raise to cancel.

    Returns
    -------
    RegionSearch
        A split that adds less evidence than a chi-square of 12 is removed, because each region has
        more power if there are fewer. A single region of all rows means that no split was kept.

    Notes
    -----
    `tests/benchmarks/RESULTS_heterogeneous.md` compares redraws, halves and the slices of a grid
    on 5,000 rows and 20 columns. With halves, and a fault that one column defines, growing on 30
    or 70% of the rows found no more than growing on half of them.

    Raises
    ------
    InputError
        If the numbers of rows differ, or there are too few rows to grow and to judge.

    Examples
    --------
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(18, 80, 4000)})
    >>> right = rng.random(4000) < np.where(X["age"] < 25, 0.6, 0.8)
    >>> found = find_regions(confidence_target(np.full(4000, 0.8), right), X)
    >>> [(r.words, r.fault) for r in found.faulty]
    [('age is up to 24', 'over-confident')]
    """
    check_level(level)
    _check_share(grow_share)
    goal, what = stated_target(scored, target)
    criterion = residuals(goal, goal.hit)
    binned = X if isinstance(X, BinnedInputs) else bin_inputs(X)
    if redraws is None:
        redraws = redraws_by_default(len(binned), len(binned.columns), level)
    if redraws:
        return _redrawn(
            goal, what, binned, criterion, max_depth, min_rows, redraws, seed, level, progress
        )
    grown = _grow(binned, criterion, max_depth, min_rows, grow_share, seed, swap, goal.dependence)
    found = stated_described(
        goal, what, grown.leaf, grown.places, grown.judged, level, grown.tree, seed
    )
    return replace(found, least=grown.least, effect=overall_effect(goal))


def find_pit_regions(
    pit: Any,
    X: pd.DataFrame | BinnedInputs,
    *,
    max_depth: int = 3,
    min_rows: int | None = None,
    grow_share: float = GROW_SHARE,
    seed: int = 0,
    swap: bool = False,
    level: float = 0.95,
    sample_weight: Any = None,
) -> RegionSearch:
    """Regions of the inputs where PIT values are not uniform, beyond chance.

    One tree is grown on the location and the spread of the PIT values together. Its leaves are
    judged on the other rows by the tests of :func:`kdcal_core.diagnostics.fault`, Holm-corrected.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
        Randomised for discrete outcomes.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights, with or without the dependence of the rows.

    Other parameters, result and errors as in :func:`find_regions`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(18, 80, 4000)})
    >>> u = rng.random(4000)
    >>> found = find_pit_regions(np.where(X["age"] < 25, u / 2 + 0.25, u), X)
    >>> [(r.words, r.fault) for r in found.faulty]
    [('age is up to 24', 'too wide')]
    """
    check_level(level)
    _check_share(grow_share)
    values, weight = checked_pit(pit, sample_weight)
    criterion, together = PitResidual(values, weight), dependence_of(sample_weight)
    grown = _grow(X, criterion, max_depth, min_rows, grow_share, seed, swap, together)
    found = pit_described(
        values, weight, grown.leaf, grown.places, grown.judged, level, grown.tree, seed, together
    )
    effect = 1.0 if together is None else design_effect(values - values.mean(), weight, together)
    return replace(found, least=grown.least, effect=effect)


def _redrawn(
    goal: Target,
    what: str,
    binned: BinnedInputs,
    criterion: Criterion,
    max_depth: int,
    min_rows: int | None,
    redraws: int,
    seed: int,
    level: float,
    progress: Progress | None,
) -> RegionSearch:
    """The search of :func:`find_regions` without a division of the rows."""
    check_seed(seed)
    if redraws < round(1.0 / (1.0 - level), 6):
        enough = _enough_redraws(level)
        raise InputError(
            f"The smallest p value of {redraws:,} redraws is {1.0 / (redraws + 1.0):.2g}, so they "
            f"cannot reject at the level {level:g}",
            fix=f"Choose {enough:,} redraws, or 0 to divide the rows instead.",
        )
    n = len(goal.score)
    least = _least(n) if min_rows is None else min_rows
    if n < 2 * least:
        raise InputError(
            f"{n:,} rows are too few to search for regions of {least:,} rows or more",
            fix=f"Give at least {2 * least:,} rows, or allow smaller regions.",
        )
    every = np.arange(n)
    grow = grower(binned, max_depth, least)
    found = grow(criterion)
    grown = _Grown(found.tree, found.tree.apply(binned), every, least)
    described = stated_described(
        goal, what, grown.leaf, grown.places, every, level, found.tree, seed
    )
    largest = largest_when_redrawn(goal, binned, grow, redraws, seed, progress)
    seen = evidence(criterion, grown.leaf)
    regions = judged_by_redraws(goal, grown.places, grown.leaf, seen, found.price, largest, level)
    return replace(described, regions=regions, n_grow=n, redraws=redraws, least=least)


@dataclass(frozen=True, eq=False)
class _Grown:
    tree: PartitionTree
    leaf: IntArray
    judged: IntArray
    least: int

    @property
    def places(self) -> list[Place]:
        return [
            Place(leaf, self.tree.words(leaf), self.tree.rule(leaf))
            for leaf in range(self.tree.n_leaves)
        ]


def _grow(
    X: pd.DataFrame | BinnedInputs,
    criterion: Criterion,
    max_depth: int,
    min_rows: int | None,
    grow_share: float,
    seed: int,
    swap: bool,
    dependence: Dependence | None = None,
) -> _Grown:
    """A tree grown on a random part of the rows and pruned, and the rows left to judge it."""
    check_seed(seed)
    binned = X if isinstance(X, BinnedInputs) else bin_inputs(X)
    n = len(criterion.stats)
    n_grow = round(grow_share * n)
    least = _least(n_grow) if min_rows is None else min_rows
    enough = int(np.ceil(2 * least / min(grow_share, 1.0 - grow_share)))
    if n < enough:
        raise InputError(
            f"{n:,} rows are too few to search for regions of {least:,} rows or more",
            fix=f"Give at least {enough:,} rows, or allow smaller regions.",
        )
    # not stratified by outcome, which would make the two parts dependent
    rows, rest = two_parts(n, n - n_grow if swap else n_grow, seed, dependence)
    if swap:
        rows, rest = rest, rows
    tree = _Grower(binned, max_depth, least, rows)(criterion).tree
    return _Grown(tree, tree.apply(binned), rest, least)


def _least(n_grow: int) -> int:
    """Fewest rows of a region, among those on which the tree is grown."""
    return max(LEAST_ROWS, round(ROWS_PER_ROOT * float(np.sqrt(n_grow))))


@dataclass(frozen=True, eq=False)
class _Tree:
    """A tree, and what evidence each of its leaves gains by chance: its price, (n_leaves,).

    ``worth`` is what the best leaf gains beyond its price.
    """

    tree: PartitionTree
    price: FloatArray
    worth: float


@dataclass(frozen=True, eq=False)
class _Grower:
    """Grows trees on some rows: split by split, or first around the best box of two columns.

    Of the two, the tree is taken whose best leaf, or box, gains more beyond its price. The price
    of a leaf is `PENALTY` for each of its conditions.
    """

    binned: BinnedInputs
    max_depth: int
    least: int
    rows: IntArray

    @cached_property
    def _grid(self) -> BoxGrid:
        return BoxGrid(self.binned, self.rows)

    def __call__(self, criterion: Criterion) -> _Tree:
        plain = self._cut_back(criterion)
        if len(self.binned.columns) < 2:
            return plain
        values = criterion.stats.values[self.rows]
        box = self._grid.best(values, self.least, self.max_depth)
        if box is None or box.worth <= plain.worth or box.worth + box.price <= PENALTY:
            return plain
        return self._cut_back(criterion, box)

    def _cut_back(self, criterion: Criterion, box: Box | None = None) -> _Tree:
        """A tree without the splits that add little evidence."""
        cuts = () if box is None else box.cuts
        tree = grow_tree(
            self.binned,
            criterion,
            max_depth=self.max_depth,
            min_rows=self.least,
            rows=self.rows,
            first=cuts,
        )
        loss = -_chi_square(self._sums(tree, criterion))
        loss[_way(tree, cuts)[:-1]] = _NEVER_A_LEAF
        tree = prune_tree(tree, loss, penalty=PENALTY)
        leaves = tree.nodes_of_leaves
        price = np.array(
            [PENALTY * len(set(tree.feature[tree.way_to(node)[:-1]])) for node in leaves]
        )
        if box is not None:
            price[leaves == _way(tree, cuts)[-1]] = box.price
        sums = self._sums(tree, criterion)
        found = _chi_square(sums)
        gain = found[leaves] - found[0]
        if len(leaves) > 1:
            gain += _chi_square(sums[0] - sums[leaves])
        return _Tree(tree, price, float((gain - price).max()))

    def _sums(self, tree: PartitionTree, criterion: Criterion) -> FloatArray:
        """Sums of the criterion's values over the rows of each node, (m, v)."""
        leaf = tree.apply(self.binned)[self.rows]
        values = criterion.stats.values[self.rows]
        sums = np.stack(
            [np.bincount(leaf, weights=v, minlength=tree.n_leaves) for v in values.T], axis=1
        )
        return np.asarray(tree.paths.T @ sums)


def grower(binned: BinnedInputs, max_depth: int, least: int | None = None) -> Grow:
    """What grows the tree of a search of all rows, for any criterion of the same rows."""
    n = len(binned)
    return _Grower(binned, max_depth, _least(n) if least is None else least, np.arange(n))


def _way(tree: PartitionTree, cuts: Sequence[Cut]) -> list[int]:
    """The nodes from the root to the one that the cuts lead to."""
    way = [0]
    for cut in cuts:
        way.append(int((tree.left if cut.then_left else tree.right)[way[-1]]))
    return way


_NEVER_A_LEAF = 1e300  # as a loss


def _chi_square(sums: FloatArray) -> FloatArray:
    """Sum of r^2 / v over the kinds of residual, for each row of sums."""
    return np.asarray((sums[:, 0::2] ** 2 / sums[:, 1::2]).sum(axis=1))
