"""Up to which interval a prediction speaks for itself, in words."""

from __future__ import annotations

import math

from kdcal_core.distributions.base import PredictiveDistribution
from kdcal_core.distributions.empirical import Empirical
from kdcal_core.distributions.quantiles import Quantiles


def resolution_note(distribution: PredictiveDistribution, level: float = 0.95) -> str:
    """Why central intervals of probability ``level`` are not the prediction's own, or nothing.

    Examples
    --------
    >>> resolution_note(Empirical([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]]))
    '10 samples a row resolve central intervals up to 82%; 39 would resolve 95%. Wider ones than \
82% end in tails that kdcal fits beyond the samples.'
    >>> resolution_note(Quantiles([0.1, 0.9], [[1.0, 2.0]]))
    'Quantiles from 10% to 90% state central intervals up to 80%; 2.5% and 97.5% would state 95%. \
Wider ones than 80% end in normal tails that kdcal puts beyond the quantiles.'
    """
    own = distribution.resolved
    if own >= level - 1e-9:
        return ""
    up_to, wanted = f"{100 * own:.0f}%", f"{100 * level:g}%"
    if isinstance(distribution, Empirical):
        m = distribution.samples.shape[1]
        enough = math.ceil(2 / (1 - level) - 1 - 1e-6)
        return (
            f"{m} samples a row resolve central intervals up to {up_to}; {enough} would resolve "
            f"{wanted}. Wider ones than {up_to} end in tails that kdcal fits beyond the samples."
        )
    if isinstance(distribution, Quantiles):
        first, last = (f"{100 * at:g}%" for at in distribution.levels[[0, -1]])
        ends = f"{50 * (1 - level):g}% and {50 * (1 + level):g}%"
        return (
            f"Quantiles from {first} to {last} state central intervals up to {up_to}; {ends} would "
            f"state {wanted}. Wider ones than {up_to} end in normal tails that kdcal puts beyond "
            "the quantiles."
        )
    return ""
