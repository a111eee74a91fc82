"""Whether more rows of a new table are called unknown than of a reference one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kdcal_core.diagnostics.between_sets import unpaired_difference
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.foreign_scores import unknown_share
from kdcal_core.diagnostics.shift import DRAWS, p_value_of_draws
from kdcal_core.diagnostics.unit_changes import UnitChanges
from kdcal_core.statistics import Dependence, design_of, only


@dataclass(frozen=True)
class UnknownChange:
    """Share of rows called unknown: in the new table, in the reference table, and the change.

    ``p_value`` is Fisher's exact one, two-sided, of the hypothesis that both shares are equal; for
    dependent rows that of the wild bootstrap. ``test`` is the test's name.
    """

    new: Estimate
    reference: Estimate
    change: Estimate
    p_value: float
    test: str = "Fisher"


def unknown_change(
    unknown: Any,
    reference_unknown: Any,
    *,
    level: float = 0.95,
    dependence: Dependence | None = None,
    seed: int = 0,
) -> UnknownChange:
    """Share of new rows that are called unknown, and its change against the reference share.

    Parameters
    ----------
    unknown : (m,) array-like of bool
        Whether each new row is foreign to the model.
    reference_unknown : (n,) array-like of bool
        The same of each reference row, by the same rule.
    level : float
        Both shares have Clopper-Pearson's interval, and their difference that of Zou and Donner.
    dependence : Dependence, optional
        Of the n + m rows, the reference rows first, so that a cluster may have rows in both tables.
        The shares' intervals then have as many rows as say as much, and the test that of
        :func:`score_shift`.
    seed : int
        Of the test's draws.

    Raises
    ------
    InputError
        If either table has no rows, or all its rows are of one cluster or time.

    Examples
    --------
    >>> found = unknown_change([True] * 30 + [False] * 70, [True] * 5 + [False] * 95)
    >>> round(found.change.value, 2), found.change.low > 0, found.p_value < 0.001
    (0.25, True, True)
    """
    from scipy.stats import fisher_exact  # slow to import

    flags = [np.asarray(one, dtype=bool) for one in (unknown, reference_unknown)]
    together = None if dependence is None or dependence.alone else dependence
    n = len(flags[1])
    of_tables = only(together, slice(n, None)), only(together, slice(n))
    new, reference = (
        replace(
            unknown_share(one, level=level, sample_weight=design_of(None, own)),
            name=f"Share of {noun} rows called unknown",
        )
        for one, own, noun in zip(flags, of_tables, ("new", "reference"), strict=True)
    )
    change = replace(
        unpaired_difference(new, reference),
        name="Share of rows called unknown: new minus reference",
        label="Change of unknown rows",
    )
    if together is not None:
        below = np.concatenate(flags[::-1]).astype(np.float64)[:, None]
        units = UnitChanges.of_means(below, n, together)
        null = np.abs(units.drawn(DRAWS, np.random.default_rng(seed))[:, 0])
        p_value = p_value_of_draws(null, abs(new.value - reference.value))
        test = f"wild bootstrap by {units.words}"
        return UnknownChange(new, reference, change, p_value, test)
    table = np.array([[one.sum(), (~one).sum()] for one in flags])
    return UnknownChange(new, reference, change, float(fisher_exact(table).pvalue))
