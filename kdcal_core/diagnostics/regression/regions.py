"""The PIT of each region of a partition, or of each stretch of a column, corrected for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index
from kdcal_core.diagnostics.regression.checks import checked_pit
from kdcal_core.diagnostics.regression.coverage import CoverageRow, coverage
from kdcal_core.diagnostics.regression.ecdf import EcdfDifference, ecdf_difference
from kdcal_core.diagnostics.regression.fault import Fault, FaultParts, fault_parts, named_fault
from kdcal_core.diagnostics.regression.histogram import PitHistogram, pit_histogram
from kdcal_core.diagnostics.regression.uniformity import UniformityTest, kolmogorov_smirnov
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError
from kdcal_core.statistics import holm

OTHERS = "all others"
MISSING = "missing"
LEAST_ROWS = 5


@dataclass(frozen=True, eq=False)
class RegionPit:
    """The PIT values of one region among several.

    Attributes
    ----------
    name : str
        The region. Comes from the user's table: untrusted text.
    n, share : int, float
        Its rows, and their share of all (by weight).
    pit, ecdf : PitHistogram, EcdfDifference
    tests : tuple of UniformityTest
        Kolmogorov-Smirnov.
    fault : Fault
        Judged by ``adjusted_p``: "none" where it does not reject.
    p_value, adjusted_p : float
        Of the fault's test, alone and after Holm's correction for all regions tested.
    coverage : CoverageRow or None
        Central 95% intervals; None where the distributions were not given.
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
    """PIT, tests, fault and coverage of each region, p values corrected for all of them (Holm).

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    labels : (n,) array of int
        The region of each row, an index into ``names``; a negative one leaves the row out.
        Regions without rows are left out.
    names : sequence of str, optional
        Names of the regions; their numbers where not given.
    distribution, y : PredictiveDistribution and (n,) array, optional
        For the coverage of the central 95% intervals.
    scale : float, optional
        Mean absolute outcome of the calibration set, for sMIS.
    bins : int
        Of the histograms.
    level : float
        Of bands and intervals; a fault is named where its corrected p value is below 1 - level.
    sample_weight : (n,) array, optional
        Positive row weights.

    Returns
    -------
    tuple of RegionPit
        In the order of the labels.

    Raises
    ------
    InputError
        For values outside [0, 1], labels that do not fit, or no row in any region.

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
        raise InputError("No row lies in any region", fix="Give at least one row a label.")
    if names is not None and used[-1] >= len(names):
        raise InputError(
            f"A region is numbered {used[-1]}, but there are {len(names)} names",
            fix="Number the regions from 0, one for each name.",
        )
    rows = [np.flatnonzero(regions == label) for label in used]
    parts = [fault_parts(values[r], level, weight[r]) for r in rows]
    adjusted = holm(np.array([part.p_value for part in parts]))
    outcomes = None if y is None else np.asarray(y, dtype=np.float64)
    found = []
    for label, r, part, p in zip(used, rows, parts, adjusted, strict=True):
        row = None
        if distribution is not None and outcomes is not None:
            central = coverage(
                distribution[r], outcomes[r], (0.95,), scale=scale, weight=weight[r], level=level
            )
            row = central.rows[0]
        name = str(names[label]) if names is not None else str(label)
        plain = sample_weight is None
        found.append(_region(name, part, float(p), float(weight[r].sum()), row, bins, plain))
    return tuple(found)


def pit_by_column(
    pit: Any, values: Any, bins: int = 5, *, levels: int = 12, **settings: Any
) -> tuple[RegionPit, ...]:
    """:func:`pit_by_region` over one column of the table.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    values : (n,) column
        Numbers are cut at their quantiles into at most ``bins`` stretches, where ties may merge
        some; a column of at most ``bins`` different numbers keeps them separate. Text and truth
        values form one region each; values beyond the ``levels`` most frequent, or with fewer than
        5 rows, are pooled. Rows without a value form a separate region.
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


def column_regions(values: Any, bins: int = 5, levels: int = 12) -> tuple[IntArray, list[str]]:
    """Region of each row (n,) by one column, and the regions' names; as in :func:`pit_by_column`.

    Raises
    ------
    InputError
        Where the column has no rows, or fewer than one bin is asked for.

    Examples
    --------
    >>> labels, names = column_regions([1.0, 2.0, np.nan, 4.0], bins=2)
    >>> labels.tolist(), names
    ([0, 0, 2, 1], ['1 to 2', '4', 'missing'])
    """
    column = pd.Series(values).reset_index(drop=True)
    if len(column) == 0 or bins < 1 or levels < 1:
        raise InputError(
            "The column has no rows, or no regions were asked for",
            fix="Give rows, and ask for at least one region.",
        )
    missing = column.isna().to_numpy()
    labels = np.full(len(column), -1, dtype=np.int64)
    names: list[str] = []
    some = column[~missing]
    numeric = pd.api.types.is_numeric_dtype(some) and not pd.api.types.is_bool_dtype(some)
    if numeric and len(some):
        labels[~missing], names = _stretches(some.to_numpy(dtype=np.float64), bins)
    elif len(some):
        labels[~missing], names = _words_of(some.astype(str), levels)
    if missing.any():
        labels[missing] = len(names)
        names = [*names, MISSING]
    return labels, names


def _region(
    name: str,
    part: FaultParts,
    adjusted_p: float,
    share: float,
    row: Any,
    bins: int,
    plain: bool,
) -> RegionPit:
    weight = None if plain else part.weight
    return RegionPit(
        name=name,
        n=len(part.pit),
        share=share,
        pit=pit_histogram(part.pit, bins, part.level, sample_weight=weight),
        ecdf=ecdf_difference(part.pit, level=part.level, sample_weight=weight),
        tests=(kolmogorov_smirnov(part.pit, sample_weight=weight),),
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
            fix="Give one whole number a row.",
        )
    return values.astype(np.int64)


def _stretches(x: FloatArray, bins: int) -> tuple[IntArray, list[str]]:
    different = np.unique(x)
    if len(different) <= bins:
        place: IntArray = np.searchsorted(different, x).astype(np.int64)
        return place, [f"{v:.4g}" for v in different]
    inner = np.unique(np.quantile(x, np.arange(1, bins) / bins, method="inverted_cdf"))
    edges = np.concatenate([different[:1], inner[inner < different[-1]], different[-1:]])
    index = bin_index(x, edges)
    used, inverse = np.unique(index, return_inverse=True)
    labels: IntArray = inverse.astype(np.int64)
    ends = [(x[labels == b].min(), x[labels == b].max()) for b in range(len(used))]
    return labels, [f"{a:.4g}" if a == b else f"{a:.4g} to {b:.4g}" for a, b in ends]


def _words_of(text: pd.Series, levels: int) -> tuple[IntArray, list[str]]:
    counts = text.value_counts()
    frequent = counts.index[:levels][counts.to_numpy()[:levels] >= LEAST_ROWS]
    kept = [str(name) for name in counts.index if name in set(frequent)]
    if len(kept) < len(counts):
        text = text.where(text.isin(kept), OTHERS)
        kept = [*(name for name in kept if name != OTHERS), OTHERS]
    place = {name: i for i, name in enumerate(kept)}
    labels: IntArray = np.asarray(text.map(place), dtype=np.int64)
    return labels, kept
