"""Class shares without labels: against brute force, and the coverage of the intervals."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kdcal_core.diagnostics import adjusted_posteriors, label_shift
from kdcal_core.errors import InputError

module = import_module("kdcal_core.diagnostics.label_shift")  # the function has its name


def table(rng, share, source, n: int, separation: float = 1.5):
    """Calibrated posteriors under the source shares of rows with other shares, and classes."""
    k = len(share)
    y = rng.choice(k, size=n, p=share)
    x = rng.normal(size=(n, k))
    x[np.arange(n), y] += separation
    odds = separation * x + np.log(source)
    proba = np.exp(odds - odds.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True), y


def test_shares_are_the_fixed_point_of_the_plain_iteration() -> None:
    rng = np.random.default_rng(0)
    source = np.array([0.5, 0.3, 0.2])
    proba, y = table(rng, source, source, 500)
    new, _ = table(rng, [0.2, 0.2, 0.6], source, 400)
    found = label_shift(new, proba, y, n_draws=5)
    start = proba.mean(axis=0)
    at = start.copy()
    for _ in range(5000):
        posterior = new * at / start
        posterior /= posterior.sum(axis=1, keepdims=True)
        at = posterior.mean(axis=0)
    np.testing.assert_allclose(found.prior, at, atol=1e-6)
    np.testing.assert_allclose(found.adjusted, posterior, atol=1e-5)
    np.testing.assert_allclose(found.adjusted.mean(axis=0), found.prior, atol=1e-6)
    assert found.convergence.converged


def test_two_classes_maximize_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    source = np.array([0.7, 0.3])
    proba, y = table(rng, source, source, 300)
    new, _ = table(rng, [0.4, 0.6], source, 300)
    found = label_shift(new, proba, y, n_draws=5)
    ratio = new / proba.mean(axis=0)
    best = minimize_scalar(
        lambda s: -np.log(ratio @ [1 - s, s]).sum(),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert found.prior[1] == pytest.approx(best.x, abs=1e-6)


def test_without_a_shift_the_same_rows_give_the_same_shares() -> None:
    rng = np.random.default_rng(2)
    source = np.array([0.6, 0.4])
    proba, y = table(rng, source, source, 400)
    found = label_shift(proba, proba, y, n_draws=20)
    np.testing.assert_allclose(found.prior, proba.mean(axis=0), atol=1e-6)
    assert found.p_value == 1.0
    assert found.changes[1].low < 0.0 < found.changes[1].high


def test_intervals_contain_the_truth_and_the_test_keeps_its_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    monkeypatch.setattr(module, "target_test", lambda *_: 1.0)  # slow, and not needed here
    source, moved = np.array([0.7, 0.3]), np.array([0.45, 0.55])
    inside, refused, found_shift = 0, 0, 0
    for run in range(10):
        proba, y = table(rng, source, source, 300)
        found = label_shift(table(rng, moved, source, 200)[0], proba, y, n_draws=40, seed=run)
        inside += found.shares[1].low <= 0.55 <= found.shares[1].high
        found_shift += found.p_value <= 0.05
        same = label_shift(table(rng, source, source, 200)[0], proba, y, n_draws=1, seed=run)
        refused += same.p_value <= 0.05
    assert inside >= 8
    assert refused <= 3
    assert found_shift >= 8


def test_poor_posteriors_are_cautioned_against() -> None:
    rng = np.random.default_rng(4)
    source = np.array([0.5, 0.5])
    proba, y = table(rng, source, source, 800)
    sharper = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    found = label_shift(sharper, sharper, y, n_draws=5)
    assert found.miscalibrated
    assert "disagree" in found.cautions[0]
    assert not label_shift(proba, proba, y, n_draws=5).cautions


def test_adjusted_posteriors_and_errors() -> None:
    np.testing.assert_allclose(
        adjusted_posteriors([[0.0, 1.0], [0.5, 0.5]], [0.5, 0.5], [1.0, 0.0]), [[0, 1], [1, 0]]
    )
    good = np.full((40, 2), 0.5)
    with pytest.raises(InputError):
        label_shift(good[:5], good, np.zeros(40, int))
    with pytest.raises(InputError):
        label_shift(np.full((40, 3), 1 / 3), good, np.zeros(40, int))
    with pytest.raises(InputError):
        label_shift(good, np.tile([1.0, 0.0], (40, 1)), np.zeros(40, int))


def test_the_same_seed_gives_the_same_result() -> None:
    rng = np.random.default_rng(5)
    source = np.array([0.5, 0.5])
    proba, y = table(rng, source, source, 100)
    first, again = (label_shift(proba[:50], proba, y, n_draws=10, seed=3) for _ in range(2))
    assert first.shares == again.shares
