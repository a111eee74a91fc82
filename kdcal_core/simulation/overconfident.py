"""Durfee et al.'s toy network that trusts its own score too much and a simple feature too little.

The text of section 3 has lost its distributions; they are rebuilt from what is left.
Classes are equally frequent, and a score s lies around +1 for class 1 and -1 for class 0, with a
standard deviation of 2 on held-out rows, where log odds are s / 2 ("divide by a factor of about
2"). On its training rows the network parts the classes better. A binary feature b, independent of
s given the class, is 1 for three in four of class 1 and one in four of class 0. The network says
s + w (b - 1/2), with the w that suits its training rows, not the larger one that held-out rows ask
for. The weight there is 0.4 of the best: the AUROC is then 0.829 in place of 0.853, the paper's
"about 0.83" and "about 0.85"; without b it is 0.760. That fixes the variance of the training
scores, 0.4 * 4 = 1.6. The reconstruction is not unique, and it does not meet the remark that
training scores could be scaled up by about 2 (here by 1.25): with b as strong as that, no w would
then lead to 0.83.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, Literal

import numpy as np
from scipy.special import expit, ndtr

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.simulation.classification import check_count

Rows = Literal["training", "held out"]

VARIANCES: dict[Rows, float] = {"training": 1.6, "held out": 4.0}
"""Variance of the score s within a class."""
FEATURE_SHARE = 0.75
"""Share of class 1 with b = 1, and of class 0 with b = 0."""
_LOG_ODDS = log(FEATURE_SHARE / (1.0 - FEATURE_SHARE))
BEST_WEIGHTS: dict[Rows, float] = {rows: v * _LOG_ODDS for rows, v in VARIANCES.items()}
"""The weight w whose order of rows is that of the likelihood ratio: 1.758 and 4.394."""


@dataclass(frozen=True, eq=False)
class OverconfidentScores:
    """Scores of the toy network with what only a simulation knows: the likelihood ratio.

    Attributes
    ----------
    score : (n,) float64
        The network's logit of class 1, s + w (b - 1/2).
    feature : (n,) int64
        The binary feature b.
    y : (n,) int64
        0 or 1: equal numbers of each, class 0 one more where n is odd; in random order.
    log_ratio : (n,) float64
        Log of p(score, b | 1) / p(score, b | 0); with equal priors the true log odds.
    """

    score: FloatArray
    feature: IntArray
    y: IntArray
    log_ratio: FloatArray

    @property
    def proba(self) -> FloatArray:
        """What the network states, (n, 2)."""
        return _both(self.score)

    @property
    def posterior(self) -> FloatArray:
        """What is true, (n, 2)."""
        return _both(self.log_ratio)


def overconfident_scores(
    n: int,
    *,
    seed: int,
    rows: Rows = "held out",
    weight: float = BEST_WEIGHTS["training"],
) -> OverconfidentScores:
    """Scores and labels of Durfee et al., sections 3.1 and 3.2, rebuilt from what is left of the
    text.

    Parameters
    ----------
    n : int
        Number of rows, from 1 on.
    seed : int
        Equal seeds give equal rows.
    rows : {"held out", "training"}
        On which rows the network is asked.
    weight : float
        Weight w of the binary feature in the score; by default the one that is best on the
        training rows. :data:`BEST_WEIGHTS` holds the best of both.

    Raises
    ------
    InputError
        For an ``n`` below 1, an unknown ``rows``, or a weight that is no finite number.

    Examples
    --------
    >>> drawn = overconfident_scores(4, seed=0)
    >>> drawn.y.tolist(), drawn.score.shape, drawn.proba.shape
    ([0, 0, 1, 1], (4,), (4, 2))

    The score of the network that knew the best weight is twice the true log odds:

    >>> best = overconfident_scores(4, seed=0, weight=BEST_WEIGHTS["held out"])
    >>> bool(np.allclose(best.score, 2 * best.log_ratio))
    True
    """
    n, variance = check_count("n", n), _variance(rows)
    weight = float(_weights(weight))
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n, dtype=np.int64) % 2)
    alone = rng.normal(2.0 * y - 1.0, np.sqrt(variance))
    feature = ((rng.random(n) < FEATURE_SHARE) == (y == 1)).astype(np.int64)
    return OverconfidentScores(
        score=np.asarray(alone + weight * (feature - 0.5)),
        feature=feature,
        y=y,
        log_ratio=np.asarray(2.0 * alone / variance + _LOG_ODDS * (2.0 * feature - 1.0)),
    )


def auc_of_weight(weight: Any, *, rows: Rows = "held out") -> FloatArray:
    """The toy network's exact AUROC as a function of the feature's weight (Durfee et al., Fig. 2).

    The scores of a row of either class differ by N(2, 2 v), shifted by w where only the row of
    class 1 has the feature (chance 9/16) and by -w where only the other has it (1/16).

    Parameters
    ----------
    weight : array-like
        Weights w of the binary feature.
    rows : {"held out", "training"}
        On which rows.

    Returns
    -------
    Array of float64 in the shape of ``weight``, from 0 to 1

    Raises
    ------
    InputError
        For an unknown ``rows``, or weights that are no finite numbers.

    Examples
    --------
    >>> auc_of_weight([0.0, *BEST_WEIGHTS.values()]).round(3).tolist()
    [0.76, 0.829, 0.853]
    """
    w, spread = _weights(weight), np.sqrt(2.0 * _variance(rows))
    only, never = FEATURE_SHARE**2, (1.0 - FEATURE_SHARE) ** 2
    shares = (only, 1.0 - only - never, never)
    return np.asarray(
        sum(
            share * ndtr((2.0 + sign * w) / spread)
            for share, sign in zip(shares, (1.0, 0.0, -1.0), strict=True)
        )
    )


def _variance(rows: Rows) -> float:
    if rows not in VARIANCES:
        raise InputError(f"There are no rows {rows!r}", fix=f"Choose one of {list(VARIANCES)}.")
    return VARIANCES[rows]


def _weights(weight: Any) -> FloatArray:
    try:
        weights = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.array(np.nan)
    if not np.isfinite(weights).all():
        raise InputError(f"weight is {weight!r}", fix="Choose finite numbers.")
    return weights


def _both(logit: FloatArray) -> FloatArray:
    """Probabilities of both classes, each exact where it is small."""
    return np.column_stack([expit(-logit), expit(logit)])
