"""Kullback-Leibler divergence from true to estimated distributions, for simulations."""

from __future__ import annotations

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.coverage import mean_estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError

NODES = 64


def kl_divergence(
    true: PredictiveDistribution,
    estimate: PredictiveDistribution,
    *,
    cells: int | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean over the rows of KL(true || estimate), in nats, from 0 on (decision D73).

    Parameters
    ----------
    true, estimate : PredictiveDistribution
        n rows each.
    cells : int, optional
        None: the integral of log(true density / estimated density) over the true distribution,
        by Gauss-Legendre quadrature in its quantile levels with 64 nodes. A number: the
        divergence of the probabilities of as many cells, equally likely under the truth. That
        needs no density, and is never larger than the divergence of the densities; distributions
        without one (samples) are measured so with 20 cells. Compare like with like.
    level : float
        Level of the interval.

    Raises
    ------
    InputError
        For different numbers of rows, or fewer than two cells.

    Notes
    -----
    The true density is taken as zero beyond the outermost nodes, 0.0003 and 0.9997 in level.
    An estimate that gives a cell or a node no probability has an infinite divergence; the mean
    is then infinite and ``interval`` counts such rows.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> truth, guess = Normal(np.zeros(3), 1.0), Normal(np.ones(3), 1.0)
    >>> round(kl_divergence(truth, guess).value, 3)
    0.5
    >>> kl_divergence(truth, guess, cells=20).value < 0.5
    True
    """
    check_level(level)
    if len(true) != len(estimate):
        raise InputError(
            f"There are {len(true):,} true and {len(estimate):,} estimated distributions",
            fix="Give both for the same rows.",
        )
    if cells is not None and cells < 2:
        raise InputError(f"{cells} cells cannot show a divergence", fix="Ask for at least 2.")
    if cells is None and not estimate.has_density:
        cells = 20
    if cells is None:
        rows, how = _of_densities(true, estimate), f"quadrature in {NODES} quantile levels"
    else:
        rows, how = _of_cells(true, estimate, cells), f"{cells} cells of equal true probability"
    return _mean(rows, f"KL divergence from the truth, {how}", level)


def _of_densities(true: PredictiveDistribution, estimate: PredictiveDistribution) -> FloatArray:
    node, mass = np.polynomial.legendre.leggauss(NODES)
    y = true.ppf(((node + 1.0) / 2.0)[np.newaxis])
    return np.asarray((true.log_density(y) - estimate.log_density(y)) @ (mass / 2.0))


def _of_cells(
    true: PredictiveDistribution, estimate: PredictiveDistribution, cells: int
) -> FloatArray:
    inner = np.arange(1, cells) / cells
    below = estimate.cdf(true.ppf(inner[np.newaxis]))
    share = np.diff(below, axis=1, prepend=0.0, append=1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(np.maximum(share, 0.0) * cells).mean(axis=1))


def _mean(rows: FloatArray, title: str, level: float) -> Estimate:
    finite = np.isfinite(rows)
    if finite.all():
        return mean_estimate(rows, np.ones(len(rows)), level, title, "KL")
    count = int(np.count_nonzero(~finite))
    return Estimate(
        name=title,
        label="KL",
        value=np.inf,
        low=np.inf,
        high=np.inf,
        n=len(rows),
        level=level,
        interval=f"infinite: in {count:,} of {len(rows):,} rows the estimate rules out true values",
    )
