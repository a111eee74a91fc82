"""Declared groups judged one by one: stated against observed, calibration error and AUC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import IntArray, ScoredSet, as_pandas
from kdcal_core.diagnostics.all_estimates import event_calibration_error
from kdcal_core.diagnostics.calibration_error import confidence_calibration_error
from kdcal_core.diagnostics.estimate import Estimate, estimate_text, value_text
from kdcal_core.diagnostics.regions import (
    Region,
    RegionSearch,
    describe_pit_regions,
    describe_regions,
    join_searches,
    region_finding,
)
from kdcal_core.diagnostics.regression.local_faults import crossed_groups
from kdcal_core.diagnostics.scores import auroc
from kdcal_core.diagnostics.targets import check_level, targets
from kdcal_core.statistics import effective_size, jeffreys_test
from kdcal_core.text import number_text


@dataclass(frozen=True)
class GroupMeasures:
    """What is measured of one group.

    Attributes
    ----------
    region : Region
        Stated against observed, with the p value corrected for all groups and the smallest gap
        that these rows could have found. Its words are the group's name: untrusted.
    gap, rate, error, area : Estimate
        Observed minus stated; how often it happens; expected calibration error; AUC. The
        intervals hold for all groups together.
    jeffreys : float or None
        One-sided p value of Jeffreys's test that the event happens at most as often as stated, not
        corrected for the number of groups; None without an event.
    """

    region: Region
    gap: Estimate
    rate: Estimate
    error: Estimate
    area: Estimate
    jeffreys: float | None = None

    @property
    def name(self) -> str:
        """The group's name; untrusted text."""
        return self.region.words


@dataclass(frozen=True)
class GroupTable:
    """Every group, and all rows together.

    Attributes
    ----------
    groups : tuple of GroupMeasures
    overall : GroupMeasures
        Of all rows, with intervals at ``level``.
    level : float
        At which all intervals of one measure hold together.
    target : str
        What is stated: "the stated confidence", "the probability of class X". Untrusted text.
    """

    groups: tuple[GroupMeasures, ...]
    overall: GroupMeasures
    level: float
    target: str


Division = tuple[IntArray, Sequence[str]]
"""Group of each row (n,), from 0, and the groups' names."""


def declared_divisions(frame: pd.DataFrame, counts: IntArray | None = None) -> list[Division]:
    """The rows divided by each declared column alone, then by all of them together.

    Crossed groups alone dilute a fault that lies in every part of one column's value.

    Parameters
    ----------
    frame : DataFrame of n rows
        The declared columns, at least one; divided as by :func:`crossed_groups`.
    counts : (n,) array of int, optional
        For how many rows each stands.

    Examples
    --------
    >>> table = pd.DataFrame({"ward": ["A", "B"] * 60, "sex": ["f"] * 60 + ["m"] * 60})
    >>> [list(names) for _, names in declared_divisions(table)]
    [['ward: A', 'ward: B'], ['sex: f', 'sex: m'], ['A, f', 'A, m', 'B, f', 'B, m']]
    """
    frame = as_pandas(frame)
    crossed = crossed_groups(frame, counts=counts)
    if frame.shape[1] == 1:
        return [crossed]
    found: list[Division] = []
    for column in frame.columns:
        labels, names = crossed_groups(frame[[column]], counts=counts)
        found.append((labels, [f"{column}: {one}" for one in names]))
    return [*found, crossed]


def declared_pit_regions(
    pit: Any, frame: pd.DataFrame, *, level: float = 0.95, sample_weight: Any = None
) -> RegionSearch:
    """Place and spread of the PIT values (n,) in the groups of :func:`declared_divisions`.

    The p values are corrected for all groups together.

    Examples
    --------
    >>> u = (np.arange(200) + 0.5) / 200
    >>> found = declared_pit_regions(u, pd.DataFrame({"half": np.repeat(["low", "high"], 100)}))
    >>> [(one.words, one.fault) for one in found.regions]
    [('high', 'too low'), ('low', 'too high')]
    """
    divisions = declared_divisions(frame)
    looks = sum(len(names) for _, names in divisions)
    return join_searches(
        [
            describe_pit_regions(
                pit, labels, names, level=level, sample_weight=sample_weight, looks=looks
            )
            for labels, names in divisions
        ]
    )


def measure_groups(
    scored: ScoredSet,
    divisions: Sequence[Division],
    *,
    event: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> GroupTable:
    """Measure every group of rows, with intervals that hold for all groups together (Bonferroni).

    Parameters
    ----------
    scored : ScoredSet of n rows
    divisions : sequence of (array of int, names)
        One or several divisions of the rows into groups. Groups of several overlap, and intervals
        and p values hold for all of them together.
    event : int, optional
        The class whose probability is judged; the confidence in the predicted class by default.

    Raises
    ------
    InputError
        For group numbers that do not fit the names, or no row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.2, 0.8, 2_000)
    >>> y = (rng.random(2_000) < np.where(np.arange(2_000) < 1_000, p, p**3)).astype(int)
    >>> rows = ScoredSet(np.stack([1 - p, p], axis=1), y, ("no", "yes"), "digest", "evaluation")
    >>> found = measure_groups(rows, [(np.repeat([0, 1], 1_000), ["north", "south"])], event=1)
    >>> [(one.name, one.region.fault) for one in found.groups]
    [('north', 'none'), ('south', 'over-confident')]
    """
    check_level(level)
    target = "confidence" if event is None else event
    looks = max(sum(len(names) for _, names in divisions), 1)
    each = 1.0 - (1.0 - level) / looks
    found = [
        describe_regions(scored, *one, target=target, level=level, looks=looks) for one in divisions
    ]
    wide = [describe_regions(scored, *one, target=target, level=each) for one in divisions]
    rows = [
        label == one.leaf
        for (label, _), search in zip(divisions, found, strict=True)
        for one in search.regions
    ]
    judged = join_searches(found)
    groups = tuple(
        _measured(scored.only(mine), one, at, event, each, seed)
        for mine, one, at in zip(
            rows, judged.regions, (one for search in wide for one in search.regions), strict=True
        )
        if one.n
    )
    everyone = np.zeros(len(scored.y), dtype=np.int64)
    (whole,) = describe_regions(scored, everyone, ["all rows"], target=target, level=level).regions
    overall = _measured(scored, whole, whole, event, level, seed)
    return GroupTable(groups, overall, level, judged.target)


def groups_finding(found: GroupTable, noun: str = "group") -> str:
    """Which groups are wrong, the clearest with its numbers, or what could have been found.

    ``noun`` names one of them, such as "period".
    """
    wrong = [one for one in found.groups if one.region.fault != "none"]
    if wrong:
        worst = clearest(wrong)
        region = worst.region
        count = _off(len(wrong), len(found.groups), noun)
        lead = f"{count}, most clearly" if len(wrong) > 1 else f"{count}:"
        share = value_text(worst.rate, region.stated)
        return (
            f"{lead} {worst.name}: says {share}, sees "
            f"{estimate_text(worst.rate, chance=False)}, {region.n:,} rows, {region.fault}."
        )
    gaps = sorted(min(one.region.minimum_detectable, 1.0) for one in found.groups)
    if not gaps:
        return f"No {noun} has rows."
    smallest, largest = number_text(gaps[0], 0.01), number_text(gaps[-1], 0.01)
    only = (
        f"is {smallest}"
        if smallest == largest
        else (f"lies between {smallest} and {largest}, by the {noun}'s rows")
    )
    return (
        f"{_off(0, len(found.groups), noun)} on the mean{_uneven(found)}. The smallest gap that "
        f"would have been found four times out of five {only}."
    )


def _uneven(found: GroupTable) -> str:
    """Groups whose calibration error, not their mean, is beyond chance; empty without any."""
    beyond = {
        one.name: (one.error.low - one.error.expected, one.error)
        for one in found.groups
        if one.error.expected is not None and one.error.low > one.error.expected
    }
    if not beyond:
        return ""
    name = max(beyond, key=lambda one: beyond[one][0])
    error, n = beyond[name][1], len(beyond)
    where = "all of them" if n == len(found.groups) > 1 else f"{n:,} of them" if n > 1 else name
    most = f", most clearly in {name}" if n > 1 else ""
    return (
        f", but in {where} the calibration error is beyond chance{most}: "
        f"{error.label} {estimate_text(error)}"
    )


def clearest(groups: Sequence[GroupMeasures]) -> GroupMeasures:
    """The group whose fault chance explains least; of equal ones, the one with the largest gap.

    Groups overlap where several columns are declared: a small part of a faulty group may have a
    larger gap by chance.
    """
    return min(groups, key=lambda one: (one.region.p_value, -abs(one.gap.value)))


def _off(wrong: int, groups: int, noun: str = "group") -> str:
    """How many groups are off by more than chance, without a full stop.

    Examples
    --------
    >>> _off(2, 3), _off(0, 3)
    ('2 of 3 groups are off by more than chance', 'None of 3 groups is off by more than chance')
    >>> _off(1, 1), _off(0, 1)
    ('The only group is off by more than chance', 'The only group is not off by more than chance')
    """
    if groups == 1:
        return f"The only {noun} is {'' if wrong else 'not '}off by more than chance"
    verb = "are" if wrong > 1 else "is"
    return f"{wrong or 'None'} of {groups} {noun}s {verb} off by more than chance"


def pit_groups_finding(found: RegionSearch, noun: str = "group") -> str:
    """Which groups' distributions are wrong, the clearest with its numbers.

    Parameters
    ----------
    found : RegionSearch
        The groups of a regression, by :func:`kdcal_core.diagnostics.describe_pit_regions`.
    noun : str, default="group"
        What one of them is called.

    Examples
    --------
    >>> from kdcal_core.diagnostics.regions import describe_pit_regions
    >>> u = (np.arange(200) + 0.5) / 200
    >>> found = describe_pit_regions(np.r_[u / 2 + 0.5, u], np.repeat([0, 1], 200), ("n", "s"))
    >>> pit_groups_finding(found).partition(":")[0]
    '1 of 2 groups is off by more than chance. Where n'
    """
    judged = [one for one in found.regions if one.n]
    if not judged:
        return f"No {noun} has rows."
    count = f"{_off(len(found.faulty), len(judged), noun)}."
    if found.faulty:
        return f"{count} {region_finding(found.faulty[0], regression=True)}"
    return count


def _measured(
    rows: ScoredSet, judged: Region, wide: Region, event: int | None, level: float, seed: int
) -> GroupMeasures:
    kind = "confidence" if event is None else "class"
    (target,) = targets(rows.proba, rows.y, rows.design, kind, event)  # type: ignore[arg-type]
    if event is None:
        right, weight = target.hit.astype(np.int64), target.design
        error = confidence_calibration_error(
            target.score, right, level=level, seed=seed, sample_weight=weight
        )
    else:
        error = event_calibration_error(target, level, seed)
    area = auroc(rows.proba, rows.y, level=level, sample_weight=rows.design, classes=rows.classes)
    jeffreys = None
    if event is not None:
        share = target.weight / target.weight.sum()
        n = effective_size(target.hit - target.score, target.weight, target.dependence)
        jeffreys = jeffreys_test(float(share @ target.hit) * n, n, float(share @ target.score))
    return measures_of_group(judged, wide, event, error, area, jeffreys)


def measures_of_group(
    judged: Region,
    wide: Region,
    event: int | None,
    error: Estimate,
    area: Estimate,
    jeffreys: float | None,
) -> GroupMeasures:
    """The measures of a group, with the gap and the rate that hold for all groups together."""
    what = "Accuracy" if event is None else "Event rate"
    return GroupMeasures(
        region=judged,
        gap=replace(wide.gap, label="Observed minus stated"),
        rate=replace(wide.observed, name=what, label=what),
        error=error,
        area=area,
        jeffreys=jeffreys,
    )
