"""Differences between estimates of different rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.estimate import CLOPPER_PEARSON, Estimate
from kdcal_core.diagnostics.scores import auroc, target_gap
from kdcal_core.diagnostics.targets import targets
from kdcal_core.statistics import GroupSums, correlation, holm, normal_quantile, t_quantile


def unpaired_difference(estimate: Estimate, other: Estimate) -> Estimate:
    """An estimate minus one of other rows, with the interval of Zou and Donner (2008).

    The two intervals, each with its own shape, give that of the difference; both are taken as
    independent. Of the same rows it is therefore too wide, where the two rise and fall together:
    see `difference_on_same_rows`.

    Examples
    --------
    >>> now = Estimate("ECE", "ECE", 0.05, 0.03, 0.08, 900)
    >>> then = Estimate("ECE", "ECE", 0.02, 0.01, 0.04, 900)
    >>> found = unpaired_difference(now, then)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.03, 0.002, 0.062)
    """
    return _difference(
        estimate,
        other,
        _Reach(),
        f"{estimate.name}, minus that of other rows",
        f"{estimate.interval}; of the difference by Zou and Donner",
    )


def difference_on_same_rows(
    estimate: Estimate, other: Estimate, sums: GroupSums | None, other_sums: GroupSums | None
) -> Estimate | None:
    """An estimate minus one of the same rows, with a paired interval; None where it has none.

    None where either has no sums of groups, or those of other rows: then it is unpaired.

    Parameters
    ----------
    sums, other_sums : GroupSums or None
        Of either estimate.

    Notes
    -----
    Zou and Donner's form for dependent estimates: with the distances a and b of the two ends that
    face each other, the difference reaches (a^2 + b^2 - 2 r a b)^(1/2), where r is the correlation
    of the groups' sums. It keeps the shape of both intervals, at any level. Where r is near 1, what
    remains is the difference of two widths, and intervals with rows added or with a floor hide that
    difference. So the interval reaches at least as far as that of the groups' own differences, by
    Student's t (a jackknife over groups, to first order). Both use the t quantile of the groups.

    Shares of two models that differ in few rows would seem too certain. Half a row at each end is
    added, as by Agresti and Min (2005) for matched pairs.

    In simulations of five pairs of models with 1,000 rows, 150 to 200 runs each, 95% intervals of
    log loss, Brier score, AUROC, calibration in the large, intercept, slope and the other means
    contained the truth in 93% to 100%, and were 0.02 to 0.9 times as wide as those of independent
    rows. Errors of two models that are both clearly not calibrated: 92% to 100%, 0.3 to 1.1 times
    as wide. Beside a calibrated model errors are hardly ever paired, and the intervals, mostly
    those of independent rows, contained it in 85% (smooth ECE) to 94%. Forecasts of 600 rows, 200
    runs: coverage, bias, CRPS and their kin 95% to 99%, Wasserstein's distance 100%. With 20 to
    100 clusters, or times that depend on one another: 94% to 98%.

    Examples
    --------
    >>> from kdcal_core.statistics import RowGroups
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> groups = RowGroups.of(x, np.ones(1000))
    >>> then = Estimate("Mean", "Mean", x.mean(), x.mean() - 0.062, x.mean() + 0.062, 1000)
    >>> now = replace(then, value=then.value + 0.1, low=then.low + 0.1, high=then.high + 0.1)
    >>> sums = groups.sums(x + 0.1 * rng.normal(size=1000)), groups.sums(x)
    >>> found = difference_on_same_rows(now, then, *sums)
    >>> found.interval.endswith("paired by groups of rows")
    True
    >>> bool(0.004 < found.high - found.value < 0.01)  # independent rows give 0.088
    True
    """
    correlated = correlation(sums, other_sums)
    if correlated is None or sums is None or other_sums is None:
        return None
    level, groups = estimate.level, len(sums.sums)
    quantile = t_quantile(level, groups - 1.0)
    same = correlated == 1.0 and sums.error == other_sums.error
    if same and _ends(estimate) == _ends(other):
        reach = _Reach(1.0, 0.0, 0.0)
    else:
        one, two = sums.error, other_sums.error
        square = max(one**2 + two**2 - 2.0 * correlated * one * two, 0.0)
        if estimate.percent:  # a share: half a row more at each end
            square += 1.0 / max(estimate.n, 1) ** 2
        least = quantile * square**0.5
        reach = _Reach(correlated, quantile / normal_quantile(level), least)
    return _difference(
        estimate,
        other,
        reach,
        f"{estimate.name}, minus that of the other model on the same rows",
        f"{estimate.interval}; of the difference by Zou and Donner, paired by groups of rows",
    )


def difference(
    estimate: Estimate,
    other: Estimate,
    sums: GroupSums | None = None,
    other_sums: GroupSums | None = None,
    *,
    same_rows: bool = False,
) -> Estimate:
    """An estimate minus another: paired where both have sums of the same rows, else unpaired.

    Parameters
    ----------
    same_rows : bool
        Whether both are of the same rows; then `difference_of_no_share`, too, is paired.

    Examples
    --------
    >>> now = Estimate("ECE", "ECE", 0.05, 0.03, 0.08, 900)
    >>> then = Estimate("ECE", "ECE", 0.02, 0.01, 0.04, 900)
    >>> difference(now, then) == unpaired_difference(now, then)
    True
    """
    paired = difference_on_same_rows(estimate, other, sums, other_sums)
    if paired is None and same_rows:
        paired = difference_of_no_share(estimate, other)
    return unpaired_difference(estimate, other) if paired is None else paired


def difference_of_no_share(estimate: Estimate, other: Estimate) -> Estimate | None:
    """A share of rows minus one of the same rows, where either is none or all; None of others.

    Then the shares themselves say which rows differ: where none counts before, every row that
    counts after is a change. Newcombe's interval for paired shares (1998, method 10) is that of Zou
    and Donner with the correlation of the two counts, which is 0 where either is none or all. So it
    has the ends of `unpaired_difference`; from Clopper and Pearson's, and not Wilson's.

    Notes
    -----
    Simulated with 200 and 1,000 rows and 0 to 50 changes on average, in the runs with a count of 0,
    intervals of 95% contained the truth in 93% to 100%. Tango's score interval (1998) is up to 13%
    narrower, and contained it in 73% to 100%. Nothing that is exact is narrower where both are 0:
    no difference of more than 1 - 0.025^(1/n) is then likely. See ``RESULTS_coverage.md``.

    Examples
    --------
    >>> from kdcal_core.diagnostics.estimate import share_estimate
    >>> now, then = (share_estimate("Wrong", "Wrong", hits / 500, 500, 500) for hits in (6, 0))
    >>> found = difference_of_no_share(now, then)
    >>> round(found.low, 4), found.value, round(found.high, 4)
    (0.0014, 0.012, 0.0259)
    >>> difference_of_no_share(now, now) is None
    True
    """
    both = estimate, other
    if any(one.interval != CLOPPER_PEARSON for one in both):
        return None
    if all(one.low < one.value < one.high for one in both):
        return None
    name = f"{estimate.name}, minus that of the other model on the same rows"
    how = f"{CLOPPER_PEARSON}; of the difference by Newcombe, paired by the counts themselves"
    return _difference(estimate, other, _Reach(), name, how)


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


@dataclass(frozen=True)
class _Reach:
    """How two distances give that of a difference: correlated, wider by a factor, and at least."""

    correlated: float = 0.0
    wider: float = 1.0
    least: float = 0.0

    def of(self, one: float, facing: float) -> float:
        if not (math.isfinite(one) and math.isfinite(facing)):
            return math.hypot(one, facing)
        square = one**2 + facing**2 - 2.0 * self.correlated * one * facing
        return max(self.wider * math.sqrt(max(square, 0.0)), self.least)


def _difference(
    estimate: Estimate, other: Estimate, reach: _Reach, name: str, interval: str
) -> Estimate:
    value = estimate.value - other.value
    low = reach.of(estimate.value - estimate.low, other.high - other.value)
    high = reach.of(estimate.high - estimate.value, other.value - other.low)
    return replace(
        estimate,
        name=name,
        value=value,
        low=value - low,
        high=value + high,
        n=min(estimate.n, other.n),
        interval=interval,
        expected=None,
        target=None,
    )


Direction = Literal["better", "worse", "other", "not told apart"]


@dataclass(frozen=True)
class ChangedEstimate:
    """An estimate of two versions of a model.

    Attributes
    ----------
    name : str
        What it measures; with the class, group or region. Untrusted text.
    label : str
        The same in a few words. Untrusted text.
    before, after : Estimate
    difference : Estimate
        After minus before, with its interval.
    direction : str
        "better" or "worse" where the difference's interval excludes 0, "other" where it does and
        neither is better; less often after `corrected_changes`. Of an estimate with a target as
        `direction_of` says.
    mirrored : Estimate or None
        Of an estimate with a target: after minus the mirror image of before, on the target's other
        side.
    paired : bool
        Whether the difference is paired.
    """

    name: str
    label: str
    before: Estimate
    after: Estimate
    difference: Estimate
    direction: Direction
    mirrored: Estimate | None = None
    paired: bool = False

    @property
    def reach(self) -> float:
        """The longer half of the difference's interval; 0 for numbers that were counted."""
        one, exact = self.difference, 1e-6 * max(self.before.largest, self.after.largest)
        found = max(one.value - one.low, one.high - one.value)
        return 0.0 if found <= exact else found


def changed_estimate(
    before: Estimate,
    after: Estimate,
    sums: tuple[GroupSums | None, GroupSums | None] = (None, None),
    *,
    same_rows: bool = False,
    name: str = "",
    label: str = "",
) -> ChangedEstimate:
    """What became of an estimate, taken on other rows or as if it were.

    Parameters
    ----------
    sums : pair of GroupSums or None
        Of before and after: with both, and of the same rows, the difference is paired.
    same_rows : bool
        As of `difference`.
    name, label : str, optional
        Those of the estimate by default.

    Examples
    --------
    >>> then = Estimate("ECE", "ECE", 0.05, 0.03, 0.08, 900)
    >>> now = Estimate("ECE", "ECE", 0.02, 0.01, 0.03, 900)
    >>> changed_estimate(then, now).direction, changed_estimate(now, then).direction
    ('better', 'worse')
    >>> changed_estimate(now, now).direction
    'not told apart'
    >>> gaps = [
    ...     Estimate("Gap", "Gap", x, x - 0.02, x + 0.02, 900, target=0.0)
    ...     for x in (0.1, -0.01, -0.1)
    ... ]
    >>> [changed_estimate(gaps[0], one).direction for one in gaps[1:]]
    ['better', 'other']
    """
    found, mirrored = difference(after, before, *sums[::-1], same_rows=same_rows), None
    if (target := after.target) is not None:
        own, image = sums[1], None if sums[0] is None else replace(sums[0], sums=-sums[0].sums)
        mirrored = difference(after, _mirrored(before, target), own, image)
    direction = direction_of(
        found, after.lower_is_better, beyond_chance=_beyond_chance(found), mirrored=mirrored
    )
    named = name or after.name, label or after.label
    paired = found.name != unpaired_difference(after, before).name
    return ChangedEstimate(*named, before, after, found, direction, mirrored, paired)


def _mirrored(estimate: Estimate, at: float) -> Estimate:
    """An estimate on the other side of a value, at the same distance."""
    value, low, high = (2.0 * at - end for end in (estimate.value, estimate.high, estimate.low))
    return replace(estimate, value=value, low=low, high=high)


def _beyond_chance(difference: Estimate) -> bool:
    return difference.low > 0.0 or difference.high < 0.0


def direction_of(
    difference: Estimate,
    lower_is_better: bool | None,
    *,
    beyond_chance: bool,
    mirrored: Estimate | None = None,
) -> Direction:
    """What a difference, after minus before, says of an estimate.

    Parameters
    ----------
    difference : Estimate
    lower_is_better : bool or None
    beyond_chance : bool
        Whether the difference is.
    mirrored : Estimate, optional
        Of an estimate with a target, after minus the mirror image of before on the target's other
        side; `lower_is_better` does not count then.

    Notes
    -----
    An estimate with a target is better the nearer it is. After is nearer than before exactly where
    it lies between before and the mirror image of before, and farther away where it lies outside of
    both. So it is better where it differs beyond chance from both, in opposite directions, worse
    where it does so in the same direction, and "other" where it differs from before alone: it may
    lie at the same distance on the other side. Of two values at one distance (not both on the
    target) one of the two differences is 0 in truth. A wrong "better" or "worse" therefore needs an
    interval that excludes a true 0, which happens in at most 5% of cases at 95%. This is an
    intersection-union test (Berger 1982). An interval of the distances themselves does not keep
    that level, because near the target |value - target| is too large by chance.

    Examples
    --------
    >>> fell = Estimate("ECE", "ECE", -0.03, -0.05, -0.01, 900)
    >>> direction_of(fell, True, beyond_chance=True)
    'better'
    >>> rose = Estimate("Gap", "Gap", 0.08, 0.06, 0.1, 900)
    >>> direction_of(fell, None, beyond_chance=True, mirrored=rose)
    'better'
    >>> direction_of(fell, None, beyond_chance=True, mirrored=fell)
    'worse'
    """
    if not beyond_chance:
        return "not told apart"
    fell = difference.value < 0.0
    if mirrored is not None:
        if not _beyond_chance(mirrored):
            return "other"
        return "better" if fell != (mirrored.value < 0.0) else "worse"
    if lower_is_better is None:
        return "other"
    return "better" if fell == lower_is_better else "worse"


def changed_estimates(
    before: Sequence[Estimate], after: Sequence[Estimate]
) -> tuple[ChangedEstimate, ...]:
    """What became of every estimate that both have, by its name, in the order of ``after``.

    Examples
    --------
    >>> ece = Estimate("ECE", "ECE", 0.05, 0.03, 0.08, 900)
    >>> loss = Estimate("Log loss", "Log loss", 0.4, 0.3, 0.5, 900)
    >>> [one.name for one in changed_estimates([ece, loss], [loss])]
    ['Log loss']
    """
    known = {one.name: one for one in before}
    labels = distinct_labels(after)
    return tuple(
        changed_estimate(known[one.name], one, label=labels[one.name])
        for one in after
        if one.name in known
    )


def corrected_changes(
    versions: Sequence[Sequence[ChangedEstimate]], *, error: float = 0.05
) -> tuple[tuple[ChangedEstimate, ...], ...]:
    """The changes of one version or several, with directions that allow for all of them (Holm).

    The chance that any two estimates which differ by chance alone are said to differ is at most
    ``error``. The p value of a difference is that of a normal one whose interval has the same half
    towards 0; where an estimate with a target is better or worse, it is the larger one of the two
    differences that say so. Intervals stay those of each difference alone, and what was not told
    apart before stays so.

    Parameters
    ----------
    versions : sequence of sequences of ChangedEstimate
        Those of every version, each against the same baseline.
    error : float
        Of all directions together.

    Examples
    --------
    >>> then = Estimate("ECE", "ECE", 0.05, 0.04, 0.06, 900)
    >>> changes = [
    ...     changed_estimate(then, replace(then, value=x, low=x - 0.01, high=x + 0.01))
    ...     for x in (0.01, 0.035)
    ... ]
    >>> [one.direction for one in changes]
    ['better', 'better']
    >>> [[one.direction for one in each] for each in corrected_changes([changes, changes])]
    [['better', 'not told apart'], ['better', 'not told apart']]
    """
    p_values = np.array([_p_value(one) for changes in versions for one in changes])
    adjusted = iter(holm(p_values))
    return tuple(
        tuple(
            one if next(adjusted) < error else replace(one, direction="not told apart")
            for one in changes
        )
        for changes in versions
    )


def _p_value(one: ChangedEstimate) -> float:
    """Of what its direction denies, from the differences' intervals; 1 without one."""
    level = min(one.difference.level, one.before.level, one.after.level)
    p = _p_of(one.difference, level)
    if one.mirrored is None or one.direction not in ("better", "worse"):
        return p
    return max(p, _p_of(one.mirrored, level))


def _p_of(found: Estimate, level: float) -> float:
    half = found.value - found.low if found.value > 0.0 else found.high - found.value
    if not math.isfinite(found.value) or not math.isfinite(half):
        return 1.0
    if half <= 0.0:
        return float(found.value == 0.0)  # numbers that were counted
    return float(2.0 * ndtr(-abs(found.value) / half * normal_quantile(level)))


def distinct_labels(estimates: Sequence[Estimate]) -> dict[str, str]:
    """Each one's label by its name, or more of its name where others have the same label.

    Examples
    --------
    >>> both = [Estimate(f"Loss of {one}: mean", "Loss", 0.1, 0.0, 0.2, 90) for one in "ab"]
    >>> list(distinct_labels(both).values())
    ['Loss of a', 'Loss of b']
    """
    forms: tuple[Callable[[Estimate], str], ...] = (
        lambda one: one.label,
        lambda one: one.name.partition(":")[0],
    )
    labels: dict[str, str] = {}
    for form in forms:
        said = Counter(map(form, estimates))
        left = [one for one in estimates if one.name not in labels]
        labels |= {one.name: form(one) for one in left if said[form(one)] == 1}
    return {one.name: one.name for one in estimates} | labels


def differences_between_sets(
    rows: ScoredSet, other: ScoredSet, event: int | None = None, *, level: float = 0.95
) -> tuple[Estimate, Estimate]:
    """Mean stated probability minus rate, and AUROC: those of one set minus those of another.

    Parameters
    ----------
    rows, other : ScoredSet
        Sets without common rows.
    event : int, optional
        The class whose probability is stated; without it the confidence in the predicted class.
    level : float

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> rows, other = (
    ...     ScoredSet(proba, np.tile(y, 50), ("a", "b"), "", name)
    ...     for y, name in (([0, 1], "evaluation"), ([1, 1], "calibration"))
    ... )
    >>> round(differences_between_sets(rows, other)[0].value, 2)
    -0.5
    """
    gaps, areas = [], []
    for one in (rows, other):
        kind = "confidence" if event is None else "class"
        (target,) = targets(one.proba, one.y, one.design, kind, event)  # type: ignore[arg-type]
        gaps.append(target_gap(target, level))
        areas.append(
            auroc(one.proba, one.y, level=level, sample_weight=one.design, classes=one.classes)
        )
    gap, area = unpaired_difference(*gaps), unpaired_difference(*areas)
    gap, area = (
        replace(one, label="Difference between the sets", lower_is_better=None, target=0.0)
        for one in (gap, area)
    )
    return gap, area
