"""Methods over several data sets: mean ranks, critical differences, relative improvement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import holm, one_sided_wilcoxon


@dataclass(frozen=True, eq=False)
class CriticalDifference:
    """k methods ranked on N data sets (Demšar 2006).

    Attributes
    ----------
    methods : tuple of k str
    mean_rank : (k,)
        1 is best on every data set; equal scores share their ranks.
    friedman_p : float
        p value against "all methods are alike", by Iman and Davenport's F form of Friedman's test.
    critical_difference : float
        Critical difference of mean ranks, by Nemenyi's test for all pairs at once.
    groups : tuple of tuple of int
        Largest runs of methods, by mean rank, within the critical difference: they cannot be told
        apart. One group of all methods where Friedman's test does not reject that all are alike.
    pair_p : (k, k)
        Wilcoxon's signed-rank test of each pair, two-sided, with Holm's correction over the
        pairs. Unlike mean ranks it does not depend on which other methods take part (Benavoli,
        Corani and Mangili 2016).
    n_datasets : int
    level : float
    """

    methods: tuple[str, ...]
    mean_rank: FloatArray
    friedman_p: float
    critical_difference: float
    groups: tuple[tuple[int, ...], ...]
    pair_p: FloatArray
    n_datasets: int
    level: float = 0.95


def critical_difference(
    scores: Any,
    methods: tuple[str, ...] | None = None,
    *,
    lower_is_better: bool = True,
    level: float = 0.95,
) -> CriticalDifference:
    """Mean ranks of methods over data sets, with the difference that chance alone explains.

    Parameters
    ----------
    scores : (N, k) array-like
        One row for each data set, one column for each method. Data sets must be independent of each
        other.
    methods : tuple of k str, optional
        Names; "1", "2", ... by default.
    lower_is_better : bool
    level : float

    Raises
    ------
    InputError
        For a missing score (its row is named), fewer than two data sets or methods, or a wrong
        number of names.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(20, 3)) + [0.0, 0.1, 3.0]
    >>> found = critical_difference(scores, ("a", "b", "c"))
    >>> [[found.methods[i] for i in group] for group in found.groups]
    [['a', 'b'], ['c']]
    """
    check_level(level)
    values, names = _checked(scores, methods)
    n, k = values.shape
    from scipy.stats import f, rankdata, studentized_range  # slow to import

    ranks = np.asarray(rankdata(values if lower_is_better else -values, axis=1))
    mean = ranks.mean(axis=0)
    friedman_p = _friedman(ranks, f)
    q = float(studentized_range.ppf(level, k, np.inf)) / 2**0.5
    critical = q * (k * (k + 1) / (6.0 * n)) ** 0.5
    width = np.inf if friedman_p >= 1.0 - level else critical
    return CriticalDifference(
        names, mean, friedman_p, critical, _groups(mean, width), _pair_p(values), n, level
    )


def _friedman(ranks: FloatArray, f: Any) -> float:
    """p value of Iman and Davenport's F, ties corrected; 1 where every rank is tied."""
    n, k = ranks.shape
    spread = float(np.square(ranks - (k + 1) / 2.0).sum())
    if spread == 0.0:
        return 1.0
    chi = (k - 1) * n * n * float(np.square(ranks.mean(axis=0) - (k + 1) / 2.0).sum()) / spread
    rest = n * (k - 1) - chi
    if rest <= 1e-9:
        return 0.0
    return float(f.sf((n - 1) * chi / rest, k - 1, (k - 1) * (n - 1)))


def _groups(mean: FloatArray, width: float) -> tuple[tuple[int, ...], ...]:
    """Largest runs of methods whose mean ranks lie within ``width``, best first."""
    order = np.argsort(mean, kind="stable")
    runs: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        stop = int((mean[order] <= mean[order[start]] + width).sum())
        if stop > reached:
            runs.append(tuple(int(i) for i in order[start:stop]))
            reached = stop
    return tuple(runs)


def _pair_p(values: FloatArray) -> FloatArray:
    """Holm's adjusted p values of all pairs, (k, k), 1 on the diagonal."""
    k = values.shape[1]
    first, second = np.triu_indices(k, 1)
    p = np.array(
        [
            2.0
            * min(
                one_sided_wilcoxon(values[:, i], values[:, j], paired=True),
                one_sided_wilcoxon(values[:, j], values[:, i], paired=True),
            )
            for i, j in zip(first, second, strict=True)
        ]
    )
    table = np.ones((k, k))
    table[first, second] = table[second, first] = holm(np.minimum(p, 1.0))
    return table


def _checked(scores: Any, methods: tuple[str, ...] | None) -> tuple[FloatArray, tuple[str, ...]]:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        raise InputError(
            f"The scores have shape {values.shape}",
            fix="Give one row for each of at least two data sets and one column for each of at "
            "least two methods.",
        )
    missing = np.isnan(values).any(axis=1)
    if missing.any():
        raise InputError(
            "A score is missing",
            fix="Leave out this data set, or the method that has no score on it.",
            row=int(np.argmax(missing)) + 1,
        )
    names = methods or tuple(str(i + 1) for i in range(values.shape[1]))
    if len(names) != values.shape[1]:
        raise InputError(
            f"There are {len(names)} names for {values.shape[1]} methods",
            fix="Give one name for each method.",
        )
    return values, tuple(names)


def relative_improvement(model: Any, method: Any) -> FloatArray:
    """(E_p - E_M) / E_p, Dey et al., Eq. 21: 1 means no error left, 0 no change, below 0 worse.

    Parameters
    ----------
    model, method : float or array-like
        Errors (error rate, ECE, OCE), at least 0; their shapes must broadcast.

    Returns
    -------
    numpy.ndarray
        If the model makes no error: 0 for a method without errors, and minus infinity for one
        with errors, so that medians and ranks stay right.

    Raises
    ------
    InputError
        For an error that is missing, infinite or negative; for lists the row is named.

    Examples
    --------
    >>> relative_improvement([0.2, 0.1, 0.0, 0.0], [0.1, 0.2, 0.0, 0.1]).tolist()
    [0.5, -1.0, 0.0, -inf]
    """
    model, method = _errors(model, "model"), _errors(method, "method")
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (model - method) / model
    return np.asarray(np.where((model == 0.0) & (method == 0.0), 0.0, change))


def _errors(values: Any, noun: str) -> FloatArray:
    errors = np.asarray(values, dtype=np.float64)
    faulty = ~((errors >= 0.0) & (errors < np.inf))
    if faulty.any():
        raise InputError(
            f"An error of the {noun} is missing, infinite or negative",
            fix="Errors are finite numbers from 0 on.",
            row=int(np.argmax(faulty)) + 1 if errors.ndim == 1 else None,
        )
    return errors
