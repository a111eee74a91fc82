"""The test of label shift: its distance against brute force, its level, and what it refuses."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import f as f_distribution

from kdcal_core.diagnostics import label_shift
from kdcal_core.diagnostics.label_shift_fit import label_shift_fit
from kdcal_core.statistics import Dependence


def table(rng, n: int, share: float, slope: float = 1.0, of: int = 1):
    """Posteriors of two classes, their classes, and clusters of ``of`` rows."""
    unit = np.arange(n) // of
    y = (rng.random(n) < share).astype(int)
    alike = rng.normal(size=unit[-1] + 1)[unit]
    x = alike if of == 1 else 0.7 * alike + 0.7 * rng.normal(size=n)
    p = 1.0 / (1.0 + np.exp(-slope * (x + 2.0 * y - 1.0)))
    return np.column_stack([1.0 - p, p]), y, unit


def test_the_distance_is_the_least_of_all_shares() -> None:
    rng = np.random.default_rng(1)
    proba, y, _ = table(rng, 240, 0.4)
    new, _, _ = table(rng, 200, 0.6, 0.8)
    fewest = min(np.bincount(y).min(), 200)
    cells = min(max(fewest // 20, 3), 10)
    both = np.concatenate([proba, new])[:, 1]
    ends = np.quantile(both, np.linspace(0, 1, cells + 1)[1:-1])
    g = np.stack(
        [np.digitize(both, ends, right=True) == c for c in range(cells - 1)], axis=1
    ).astype(float)
    old, seen = g[:240], g[240:]

    def distance(weighed: float, share: float) -> float:
        s = np.array([1.0 - share, share])
        w = np.array([1.0 - weighed, weighed])
        gap = seen.mean(axis=0) - s @ [old[y == k].mean(axis=0) for k in (0, 1)]
        variance = np.cov(seen.T, bias=True) / len(seen) + sum(
            w[k] ** 2 * np.cov(old[y == k].T, bias=True) / (y == k).sum() for k in (0, 1)
        )
        return float(gap @ np.linalg.solve(variance, gap))

    share = 0.5
    for _ in range(3):
        before = share
        share = float(
            minimize_scalar(
                partial(distance, before), bounds=(0, 1), method="bounded", options={"xatol": 1e-12}
            ).x
        )
    q = cells - 1
    scaled = distance(before, share) * (fewest - q) / ((fewest - 1) * (q - 1))
    expected = f_distribution.sf(scaled, q - 1, fewest - q)
    assert label_shift_fit(new, proba, y) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("share", "of"), [(0.3, 1), (1.0, 1), (0.6, 10)])
def test_a_change_of_shares_is_refused_no_more_often_than_said(share: float, of: int) -> None:
    rng, refused = np.random.default_rng(2), 0
    for _ in range(200):
        (proba, y, unit), (new, _, other) = (
            table(rng, 800, 0.3, of=of),
            table(rng, 300, share, of=of),
        )
        together = Dependence.of("cluster", np.concatenate([unit, 800 + other]))
        refused += label_shift_fit(new, proba, y, dependence=together) <= 0.05
    assert refused <= 20  # 10 are expected; more than 20 have a chance of 0.1%


def test_rows_in_clusters_of_one_are_rows() -> None:
    rng = np.random.default_rng(3)
    (proba, y, _), (new, _, _) = table(rng, 400, 0.3), table(rng, 300, 0.5, 0.9)
    alone = Dependence.of("cluster", np.arange(700))
    assert label_shift_fit(new, proba, y, dependence=alone) == label_shift_fit(new, proba, y)


def test_scores_that_no_shares_explain_are_said_to_be_so() -> None:
    rng = np.random.default_rng(4)
    proba, y, _ = table(rng, 2000, 0.1)
    odds = np.log(proba[:600, 1] / proba[:600, 0]) + 3.0
    new = np.column_stack([1.0 / (1.0 + np.exp(odds)), 1.0 / (1.0 + np.exp(-odds))])
    found = label_shift(new, proba, y, n_draws=20)
    assert found.fit_p_value < 1e-6
    assert found.misfit.startswith("No shares of the classes explain the new probabilities")
    assert found.misfit in found.cautions[0]
    same = label_shift(table(rng, 600, 0.8)[0], proba, y, n_draws=20)
    assert same.misfit == ""
    assert same.p_value < 0.001


def test_too_few_rows_of_a_class_decide_nothing() -> None:
    rng = np.random.default_rng(5)
    proba, y, _ = table(rng, 100, 0.5)
    y = np.where(np.arange(100) < 2, 1, 0)
    assert np.isnan(label_shift_fit(proba[:60], proba, y))
    assert np.isnan(label_shift_fit(proba[:60], proba, np.zeros(100, dtype=int)))
