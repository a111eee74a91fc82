"""Binomial counts for the draws behind bands and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 30.0  # the mean count up to which NumPy inverts the distribution function
_AT_ONCE = 100_000  # counts, to need little memory beside them


def binomial_draws(rng: np.random.Generator, n: Any, p: Any, draws: int) -> Any:
    """The counts that ``rng.binomial(n, p, size=(draws, B))`` gives, in a fraction of its time.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : (B,) array-like of int
        Trials, 0 or more.
    p : (B,) array-like in [0, 1]
        Chance of each trial.
    draws : int

    Returns
    -------
    (draws, B) array of int64

    Raises
    ------
    ValueError
        For negative trials, or a chance outside [0, 1].

    Notes
    -----
    NumPy draws one uniform number u for a count of mean np or n(1 - p) up to 30, and subtracts the
    chances of 0, 1, 2 ... from u until it is below the next one (Kachitvichyanukul and Schmeiser
    1988). It works them out for every count anew, because the cells differ. Here they are worked
    out once for each cell, and all draws are compared with their sums. Where a mean is larger,
    NumPy itself draws.

    Examples
    --------
    >>> n, p = [1, 4, 0, 20], [0.5, 0.9, 0.3, 0.1]
    >>> ours = binomial_draws(np.random.default_rng(0), n, p, 500)
    >>> bool((ours == np.random.default_rng(0).binomial(n, p, (500, 4))).all())
    True
    """
    n, p = np.asarray(n, dtype=np.int64), np.asarray(p, dtype=np.float64)
    rare = np.where(p > 0.5, 1.0 - p, p)
    if not ((n >= 0) & (rare >= 0.0) & (n * rare <= _MOST)).all():
        return rng.binomial(n, p, size=(draws, len(n)))
    drawn = (n > 0) & (p > 0.0)  # a count that is certainly 0 takes no uniform number
    often = p > 0.5
    start, sign = np.where(often, n, 0), np.where(often, -1, 1)
    found = np.empty((draws, len(n)), dtype=np.int64)
    for rows in np.array_split(found, max(1, found.size // _AT_ONCE)):
        if drawn.all():
            counts = _inverted(rng, n, rare, len(rows))
        else:
            counts = np.zeros(rows.shape, dtype=np.int8)
            counts[:, drawn] = _inverted(rng, n[drawn], rare[drawn], len(rows))
        np.multiply(counts, sign, out=rows)
        rows += start
    return found


def _inverted(rng: np.random.Generator, n: Any, p: Any, draws: int) -> Any:
    """Counts of at least one trial, p at most 1/2."""
    level = rng.random((draws, len(n)))
    q, mean = 1.0 - p, n * p
    most = np.minimum(n, mean + 10.0 * np.sqrt(mean * q + 1.0)).astype(np.int64)
    chance = np.exp(n * np.log1p(-p))
    below = chance.copy()  # the chance of at most k
    counts = np.zeros(level.shape, dtype=np.int8)
    for k in range(1, int(most.max(initial=0)) + 1):
        above = level > np.where(k <= most, below, 1.0)
        if not above.any():
            break
        counts += above
        chance = (n - k + 1) * p * chance / (k * q)
        below += chance
    return counts
