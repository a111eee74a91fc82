"""Which interval of a difference of paired shares holds the truth where one count is 0?

    python -m tests.benchmarks.studies.paired_shares [RUNS]

prints the table of RESULTS_coverage.md, "Shares of which there are none, of the same rows".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import brentq

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.between_sets import difference_of_no_share
from kdcal_core.diagnostics.estimate import share_estimate
from kdcal_core.statistics import normal_quantile

SIZES = 200, 1_000
MEANS = (0, 0), (1, 0), (1, 1), (2, 1), (3, 1), (5, 0), (5, 1), (5, 2), (10, 0), (10, 1), (50, 1)
"""Rows on average that count after alone, and before alone; none counts in both."""
MOST = 120


def newcombe(hits: int, n: int) -> tuple[float, float]:
    """Of so many rows that count after and none before."""
    then, now = (share_estimate("", "", one / n, n, n) for one in (0, hits))
    found = difference_of_no_share(now, then)
    assert found is not None
    return found.low, found.high


def tango(hits: int, n: int) -> tuple[float, float]:
    """Tango's score interval (1998) of the same."""
    share, reach = hits / n, normal_quantile(0.95)

    def score(delta: float) -> float:
        alone = max(hits - (2 * n - hits) * delta, 0.0) / (2 * n)  # before, most likely if delta
        variance = n * (2.0 * alone + delta * (1.0 - delta))
        return float((hits - n * delta) / max(variance, 1e-300) ** 0.5)

    ends = (share - 1e-12, -reach, -1.0 + 1e-9), (share + 1e-12, reach, 1.0 - 1e-9)
    low, high = (
        brentq(lambda delta, away=away: score(delta) + away, near, far) for near, away, far in ends
    )
    return low, high


def table(method: Callable[[int, int], tuple[float, float]], n: int) -> FloatArray:
    """Ends for 0 to ``MOST`` rows."""
    return np.array([method(hits, n) for hits in range(MOST)])


def cells(runs: int) -> Iterator[str]:
    """A row of the table for each size and pair of means."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        tables = [table(one, n) for one in (newcombe, tango)]
        for after, before in MEANS:
            shares = np.array([after, before, n - after - before]) / n
            now, then, _ = rng.multinomial(n, shares, size=runs).T
            none = (now == 0) | (then == 0)
            truth = (after - before) / n
            said = [f"{n:,}", f"{after}, {before}", f"{100 * none.mean():.0f}"]
            for ends in tables:
                low, high = ends[np.minimum(np.maximum(now, then)[none], MOST - 1)].T
                sign = np.where(now[none] >= then[none], 1.0, -1.0)
                held = (low <= sign * truth) & (sign * truth <= high)
                said.append(f"{100 * held.mean():.1f}; {n * (high - low).mean():.1f}")
            yield f"| {' | '.join(said)} |"


if __name__ == "__main__":
    for row in cells(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000):
        print(row)
