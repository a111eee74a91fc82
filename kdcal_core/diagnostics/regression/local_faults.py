"""Faults by region and by range of a column, corrected for all of them, and what all faults say.

Opposite local faults cancel over all rows but show here. The findings are plain sentences with
numbers. Names of regions are not escaped; callers do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray, as_pandas
from kdcal_core.data.binning import bin_index
from kdcal_core.data.column_kinds import is_number, simple
from kdcal_core.data.times import dates_of, looks_like_dates, periods
from kdcal_core.diagnostics.regression.coverage import (
    Coverage,
    CoverageRow,
    coverage,
    coverage_finding,
)
from kdcal_core.diagnostics.regression.fault import (
    Fault,
    FaultKind,
    FaultParts,
    fault_parts,
    named_fault,
)
from kdcal_core.diagnostics.regression.local_pit import LocalPit
from kdcal_core.diagnostics.regression.pit_curves import (
    EcdfDifference,
    PitHistogram,
    checked_pit,
    ecdf_difference,
    pit_histogram,
)
from kdcal_core.diagnostics.regression.uniformity import UniformityTest, kolmogorov_smirnov
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError
from kdcal_core.statistics import RowDesign, dependence_of, holm
from kdcal_core.text import formatted, in_sentence, listed

OTHERS = "all others"
MISSING = "missing"
LEAST_ROWS = 5


@dataclass(frozen=True, eq=False)
class RegionPit:
    """The PIT values of one region among several.

    Attributes
    ----------
    name : str
        The region's name, from the user's table: untrusted text.
    n, share : int, float
        Its number of rows, and their share of the total weight.
    pit, ecdf : PitHistogram, EcdfDifference
    tests : tuple of UniformityTest
        Kolmogorov-Smirnov.
    fault : Fault
        Judged by ``adjusted_p``: "none" if it does not reject.
    p_value, adjusted_p : float
        Of the fault's test, alone and after Holm's correction for all regions tested.
    coverage : CoverageRow or None
        Coverage of central 95% intervals; None if no distributions were given.
    """

    name: str
    n: int
    share: float
    pit: PitHistogram
    ecdf: EcdfDifference
    tests: tuple[UniformityTest, ...]
    fault: Fault
    p_value: float
    adjusted_p: float
    coverage: CoverageRow | None


def pit_by_region(
    pit: Any,
    labels: Any,
    names: Sequence[str] | None = None,
    *,
    distribution: PredictiveDistribution | None = None,
    y: Any = None,
    scale: float | None = None,
    bins: int = 10,
    level: float = 0.95,
    sample_weight: Any = None,
) -> tuple[RegionPit, ...]:
    """PIT, tests, fault and coverage of each region, p values corrected for all regions (Holm).

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    labels : (n,) array of int
        The region of each row, an index into ``names``; a negative number leaves the row out.
        Regions without rows are left out.
    names : sequence of str, optional
        Names of the regions; by default their numbers.
    distribution, y : PredictiveDistribution and (n,) array, optional
        For the coverage of the central 95% intervals, or of those that the prediction states
        nearest to them.
    scale : float, optional
        Mean absolute outcome of the calibration set, for sMIS.
    bins : int
        Number of bins of the histograms.
    level : float
        Level of bands and intervals; a fault is named if its corrected p value is below 1 - level.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights, with or without the dependence of the rows.

    Returns
    -------
    tuple of RegionPit
        In the order of the labels.

    Raises
    ------
    InputError
        For values outside [0, 1], labels that do not match, or if no row lies in any region.

    Examples
    --------
    >>> u = (np.arange(200) + 0.5) / 200
    >>> low, fair = pit_by_region(np.r_[u / 2 + 0.5, u], np.repeat([0, 1], 200), ("low", "fair"))
    >>> low.fault.kind, fair.fault.kind
    ('too low', 'none')
    """
    values, weight = checked_pit(pit, sample_weight)
    regions = _checked_labels(labels, len(values))
    used = np.unique(regions[regions >= 0])
    if len(used) == 0:
        raise InputError("No row lies in any region", fix="Put at least one row in a region.")
    if names is not None and used[-1] >= len(names):
        raise InputError(
            f"A region is numbered {used[-1]}, but there are {len(names)} names",
            fix="Number the regions from 0, one for each name.",
        )
    rows = [np.flatnonzero(regions == label) for label in used]
    designs = [_design(weight, sample_weight, r) for r in rows]
    stated = None if distribution is None else distribution.stated_levels
    parts = [
        fault_parts(values[r], level, design, stated)
        for r, design in zip(rows, designs, strict=True)
    ]
    adjusted = holm(np.array([part.p_value for part in parts]))
    outcomes = None if y is None else np.asarray(y, dtype=np.float64)
    found = []
    for label, r, design, part, p in zip(used, rows, designs, parts, adjusted, strict=True):
        row = None
        if distribution is not None and outcomes is not None:
            wide = distribution.stated_intervals((0.95,))
            central = coverage(
                distribution[r], outcomes[r], wide, scale=scale, weight=design, level=level
            )
            row = central.rows[0]
        name = str(names[label]) if names is not None else str(label)
        given = None if sample_weight is None else design
        found.append(_region(name, part, float(p), float(weight[r].sum()), row, bins, given))
    return tuple(found)


def _design(weight: FloatArray, sample_weight: Any, rows: IntArray) -> FloatArray | RowDesign:
    """Weights of some rows, with their dependence if they have one."""
    if (together := dependence_of(sample_weight)) is None:
        return weight[rows]
    return RowDesign(weight[rows], together.only(rows))


def pit_by_column(
    pit: Any, values: Any, bins: int = 5, *, levels: int = 12, **settings: Any
) -> tuple[RegionPit, ...]:
    """:func:`pit_by_region` over one column of the table.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    values : (n,) column
        Numbers are cut at their quantiles into at most ``bins`` ranges; ties may merge some. A
        column with at most ``bins`` different numbers has one region for each. Each text or truth
        value is a region; values beyond the ``levels`` most frequent, or with fewer than 5 rows,
        are pooled. Rows without a value form a separate region.
    bins, levels : int
    **settings
        As in :func:`pit_by_region`.

    Examples
    --------
    >>> u = (np.arange(100) + 0.5) / 100
    >>> [(r.name, r.n) for r in pit_by_column(u, np.arange(100), bins=2)]
    [('0 to 49', 50), ('50 to 99', 50)]
    >>> [(r.name, r.n) for r in pit_by_column(u, ["a"] * 60 + ["b"] * 40)]
    [('a', 60), ('b', 40)]
    """
    labels, names = column_regions(values, bins, levels)
    return pit_by_region(pit, labels, names, **settings)


def crossed_groups(
    frame: pd.DataFrame, fewest: int = 30, counts: IntArray | None = None
) -> tuple[IntArray, list[str]]:
    """Group of each row (n,) by all columns together, and the groups' names.

    Each column is divided as in :func:`column_regions`, and the groups are all combinations that
    occur: numbers, dates and ordered categories from low to high, other words in alphabetical
    order. Groups with fewer than ``fewest`` rows are merged into "all others". With ``counts`` (n,)
    each row stands for so many.

    Raises
    ------
    InputError
        As :func:`column_regions`.

    Examples
    --------
    >>> table = pd.DataFrame({"sex": ["f", "m"] * 60, "old": [True] * 40 + [False] * 80})
    >>> labels, names = crossed_groups(table)
    >>> names, np.bincount(labels).tolist()
    (['f, False', 'm, False', 'all others'], [40, 40, 40])
    """
    frame = as_pandas(frame)
    words, label = [""], np.zeros(len(frame), dtype=np.int64)
    for at, name in enumerate(frame.columns):
        labels, said = column_regions(frame[name], counts=counts)
        if not (is_number(frame[name]) or _dates_in(frame[name]) is not None):
            order = _order_of(said, frame[name])
            labels, said = np.argsort(order)[labels], [said[one] for one in order]
        used, label = np.unique(label * len(said) + labels, return_inverse=True)
        pairs = [divmod(int(one), len(said)) for one in used]
        words = [words[before] + ", " * bool(at) + said[one] for before, one in pairs]
    count = np.bincount(label, counts, len(words))
    kept = np.flatnonzero(count >= fewest)
    place = np.full(len(words), len(kept), dtype=np.int64)
    place[kept] = np.arange(len(kept))
    names = [words[one] for one in kept]
    return place[label], names + [OTHERS] * bool(len(kept) < len(words))


def _order_of(names: list[str], column: pd.Series[Any]) -> IntArray:
    """Places of the names in the order in which groups stand."""
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        known = [str(one) for one in column.cat.categories]
        last = len(known)  # pooled or missing values
        place = [known.index(one) if one in known else last for one in names]
        return np.argsort(place, kind="stable")
    return np.argsort(names)


def column_regions(
    values: Any, bins: int = 5, levels: int = 12, counts: IntArray | None = None
) -> tuple[IntArray, list[str]]:
    """Region of each row (n,) by one column, and the regions' names; as in :func:`pit_by_column`.

    Dates are divided into :func:`kdcal_core.data.times.periods`, in their order.

    With ``counts`` (n,) each row stands for so many; of texts that are equally frequent the first
    in order is then kept, not the first to occur.

    Raises
    ------
    InputError
        If the column has no rows, or ``bins`` or ``levels`` is below 1.

    Examples
    --------
    >>> labels, names = column_regions([1.0, 2.0, np.nan, 4.0], bins=2)
    >>> labels.tolist(), names
    ([0, 0, 2, 1], ['1 to 2', '4', 'missing'])
    """
    column = pd.Series(as_pandas(values)).reset_index(drop=True)
    if len(column) == 0 or bins < 1 or levels < 1:
        raise InputError(
            "The column has no rows, or fewer than one region is allowed",
            fix="Give at least one row, and allow at least one region.",
        )
    missing = column.isna().to_numpy()
    labels = np.full(len(column), -1, dtype=np.int64)
    names: list[str] = []
    some, times = column[~missing], None if counts is None else counts[~missing]
    dates = _dates_in(some)
    if dates is not None:
        labels[~missing], names = periods(dates, times)
    elif is_number(some) and len(some):
        labels[~missing], names = _stretches(some.to_numpy(dtype=np.float64), bins, times)
    elif len(some):
        labels[~missing], names = _words_of(some.astype(str), levels, times)
    if missing.any():
        labels[missing] = len(names)
        names = [*names, MISSING]
    return labels, names


def _dates_in(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """The dates of a column, missing where it has no value; None where it does not hold dates."""
    if not looks_like_dates(simple(column.name), column):
        return None
    found = dates_of(column)
    return found if found.notna().sum() == column.notna().sum() else None


def _region(
    name: str,
    part: FaultParts,
    adjusted_p: float,
    share: float,
    row: Any,
    bins: int,
    weight: FloatArray | RowDesign | None,
) -> RegionPit:
    return RegionPit(
        name=name,
        n=part.sample.n,
        share=share,
        pit=pit_histogram(part.sample.pit, bins, part.level, sample_weight=weight),
        ecdf=ecdf_difference(part.sample.pit, level=part.level, sample_weight=weight),
        tests=(kolmogorov_smirnov(part.sample.pit, sample_weight=weight),),
        fault=named_fault(part, adjusted_p=adjusted_p, place="here"),
        p_value=part.p_value,
        adjusted_p=adjusted_p,
        coverage=row,
    )


def _checked_labels(labels: Any, n_rows: int) -> IntArray:
    values = np.asarray(labels)
    if values.shape != (n_rows,) or values.dtype.kind not in "iu":
        raise InputError(
            f"The regions of {n_rows:,} rows have shape {values.shape} and are not whole numbers",
            fix="Give one whole number for each row.",
        )
    return values.astype(np.int64)


def _stretches(x: FloatArray, bins: int, times: IntArray | None) -> tuple[IntArray, list[str]]:
    different = np.unique(x)
    if len(different) <= bins:
        place: IntArray = np.searchsorted(different, x).astype(np.int64)
        return place, [formatted(v, ".4g") for v in different]
    share = np.arange(1, bins) / bins
    if times is None:
        inner = np.unique(np.quantile(x, share, method="inverted_cdf"))
    else:
        order = np.argsort(x)
        reached = np.cumsum(times[order])
        place = np.maximum(np.ceil(reached[-1] * share - 1.0), 0.0)
        inner = np.unique(x[order][np.searchsorted(reached, place, side="right")])
    edges = np.concatenate([different[:1], inner[inner < different[-1]], different[-1:]])
    index = bin_index(x, edges)
    used, inverse = np.unique(index, return_inverse=True)
    labels: IntArray = inverse.astype(np.int64)
    ends = [np.unique([x[labels == b].min(), x[labels == b].max()]) for b in range(len(used))]
    return labels, [" to ".join(formatted(end, ".4g") for end in both) for both in ends]


def _words_of(text: pd.Series, levels: int, times: IntArray | None) -> tuple[IntArray, list[str]]:
    if times is None:
        counts = text.value_counts()
    else:
        sums = pd.Series(times, index=text.to_numpy()).groupby(level=0).sum()
        counts = sums.sort_values(ascending=False, kind="stable")
    named = counts.drop(OTHERS, errors="ignore")  # rows may have been pooled before
    frequent = named.index[:levels][named.to_numpy()[:levels] >= LEAST_ROWS]
    kept = [str(name) for name in named.index if name in set(frequent)]
    if len(kept) < len(counts):
        text = text.where(text.isin(kept), OTHERS)
        kept = [*kept, OTHERS]
    place = {name: i for i, name in enumerate(kept)}
    labels: IntArray = np.asarray(text.map(place), dtype=np.int64)
    return labels, kept


_ADVERBS: dict[FaultKind, str] = {
    "too low": "predictions are too low",
    "too high": "predictions are too high",
    "too narrow": "stated spreads are too narrow",
    "too wide": "stated spreads are too wide",
    "other": "stated distributions have the wrong shape",
}
OPPOSITE_FAULTS: tuple[tuple[FaultKind, FaultKind], ...] = (
    ("too low", "too high"),
    ("too narrow", "too wide"),
)
"""Faults that cancel over all rows if they are in different places."""


def regression_findings(
    coverage: Coverage,
    fault: Fault,
    *,
    regions: Sequence[RegionPit] = (),
    local: LocalPit | None = None,
    fitted_spread: bool = False,
) -> tuple[str, ...]:
    """The main findings: over all rows, then where they differ.

    Parameters
    ----------
    coverage : Coverage
        Of all rows; the sentence is about 95% intervals, or those nearest to them.
    fault : Fault
        Of all rows.
    regions : sequence of RegionPit, optional
        A partition or the ranges of a column.
    local : LocalPit, optional
        Neighbourhoods on the map.
    fitted_spread : bool
        Whether the model gives single numbers, with one spread fitted to residuals.

    Returns
    -------
    tuple of str
        One to four sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.diagnostics.regression import coverage as covered, fault as found_fault
    >>> from kdcal_core.distributions import Normal
    >>> y = np.linspace(-1.9, 1.9, 200)
    >>> states = Normal(np.zeros(200), 1.0)
    >>> found = regression_findings(covered(states, y), found_fault(states.cdf(y)))
    >>> found[0]
    'Stated 95% intervals hold 100.0% (98.2% to 100.0%, 200 rows): more than they say.'
    """
    found = [coverage_finding(coverage.main, fitted_spread=fitted_spread)]
    if fault.kind != "none":
        found.append(fault.words)
    if regions:
        found.append(regions_finding(regions))
    if local is not None:
        found.append(local_finding(local))
    return tuple(found)


def regions_finding(regions: Sequence[RegionPit]) -> str:
    """How many regions are faulty, the worst one, and whether opposite faults cancel."""
    faulty = [region for region in regions if region.fault.kind != "none"]
    if not faulty:
        return f"None of {len(regions):,} regions departs from calibration beyond chance."
    worst = max(faulty, key=_evidence)
    verb = "departs" if len(faulty) == 1 else "depart"
    lead = f"{len(faulty):,} of {len(regions):,} regions {verb} from calibration"
    held = [region.coverage for region in regions if region.coverage is not None]
    if held:
        low, high = (100 * edge(row.coverage.value for row in held) for edge in (min, max))
        lead += f"; their {100 * held[0].level:g}% intervals hold from {low:.0f}% to {high:.0f}%"
    lead += _cancel({region.fault.kind for region in faulty})
    words = worst.fault.words.replace(" here", "", 1)
    return f"{lead}. Furthest off is {worst.name}, where {in_sentence(words)}"


def local_finding(local: LocalPit) -> str:
    """Where on the map predictions are faulty, and whether opposite faults cancel."""
    count = len(local.kind)
    looked = f"{count:,} neighbourhoods of {local.k:,} rows each"
    kinds: list[FaultKind] = [kind for kind in _ADVERBS if local.share(kind) > 0]
    if not kinds:
        return f"None of {looked} departs from calibration beyond chance."
    shares = [
        f"{_ADVERBS[kind]} in {round(local.share(kind) * count):,}"
        for kind in sorted(kinds, key=lambda kind: -local.share(kind))
    ]
    low, high = 100 * local.coverage.min(), 100 * local.coverage.max()
    return (
        f"Of {looked}, {listed(shares)}{_cancel(set(kinds))}; {100 * local.interval:g}% "
        f"intervals hold from "
        f"{low:.0f}% to {high:.0f}% of a neighbourhood."
    )


def _cancel(kinds: set[FaultKind]) -> str:
    if any(a in kinds and b in kinds for a, b in OPPOSITE_FAULTS):
        return ", opposite faults that partly cancel over all rows"
    return ""


def _evidence(region: RegionPit) -> float:
    """Squared departure times rows, which also orders faults whose p values are 0."""
    return float(region.ecdf.effective * (region.ecdf.difference @ region.ecdf.difference))
