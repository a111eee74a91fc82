"""The recommended recalibrator: its rule, its reason, and that it answers as the one it names."""

import numpy as np
import pytest

from kdcal_core.distributions import Normal
from kdcal_core.one_standard_error import SimplestChoice
from kdcal_core.regression import (
    LocalRecalibration,
    RecommendedRecalibration,
    cross_fitted,
    simplest_repair,
)
from kdcal_core.regression.recommended import CANDIDATES


def bent(n, seed=0):
    """A model that is wrong by a wave of x, and the rows' x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, n)
    return Normal(np.zeros(n), 1.5), 2 * np.sin(2 * x) + rng.normal(0, 0.5, n), x


@pytest.fixture(scope="module")
def fitted():
    return RecommendedRecalibration(k=25, folds=3, seed=1).fit(*bent(300))


def test_every_candidate_is_judged_on_rows_that_it_was_not_fitted_on(fitted):
    model, y, x = bent(300)
    assert fitted.candidates_ == CANDIDATES
    assert fitted.n_judged_ == 300
    crossed = cross_fitted(
        lambda: LocalRecalibration(k=25, seed=1), model, y, x[:, np.newaxis], folds=3, seed=1
    )
    crps = crossed.crps(y)
    assert fitted.losses_[CANDIDATES.index("local")] == pytest.approx(crps.mean())
    assert fitted.losses_[0] == pytest.approx(model.crps(y).mean())
    best = int(fitted.losses_.argmin())
    if CANDIDATES[best] == "local":
        away = model.crps(y) - crps
        assert fitted.errors_[0] == pytest.approx(away.std() / np.sqrt(300))


def test_a_local_fault_is_repaired_locally_and_the_reason_names_the_losses(fitted):
    assert fitted.chosen_ in ("local", "pooled")
    assert f"{fitted.losses_[0]:.4g}" in fitted.reason_
    assert "cross-fitted on 300 rows" in fitted.reason_
    assert "are simpler, but lose more than counts as equal" in fitted.reason_


def test_it_answers_as_the_one_that_it_names(fitted):
    new, _, at = bent(50, seed=2)
    own = fitted._make(fitted.chosen_).fit(*bent(300)).predict(new, at)
    np.testing.assert_array_equal(fitted.predict(new, at).mean(), own.mean())
    assert type(fitted.recalibrator_) is type(fitted._make(fitted.chosen_))


def test_few_rows_keep_the_model():
    model, y, x = bent(40)
    found = RecommendedRecalibration().fit(model, y, x)
    assert (found.chosen_, found.candidates_, found.n_judged_) == ("model", (), 0)
    assert found.predict(model, x) is model
    assert "40 rows are too few" in found.reason_


ROWS = np.random.default_rng(0).normal(10, 1, 400)
NOISE = np.random.default_rng(1).normal(0, 1, 400)


@pytest.mark.parametrize(
    ("shift", "noise", "tolerance", "chosen"),
    [
        (-1.0, 0.1, 1.0, "isotonic"),  # clearly better
        (-0.03, 1.0, 1.0, "model"),  # within a standard error, 0.05
        (-0.03, 1.0, 0.0, "isotonic"),  # the smallest loss
        (-0.005, 0.0, 1.0, "model"),  # without noise, but less than a thousandth of the CRPS
        (0.5, 0.1, 100.0, "model"),  # a worse one is never chosen
    ],
)
def test_the_simplest_within_one_standard_error(shift, noise, tolerance, chosen):
    other = ROWS + shift + noise * (NOISE - NOISE.mean())
    crps = {"model": ROWS, "isotonic": other}
    found = simplest_repair(crps, np.ones(400), tolerance)
    assert list(crps)[found.at] == chosen


def test_weights_count_as_repeated_rows_in_means_and_shares():
    losses = np.array([[1.0, 0.5], [2.0, 2.5], [3.0, 1.0]])
    heavy = SimplestChoice.of(losses, np.array([1.0, 2.0, 1.0]))
    again = SimplestChoice.of(losses[[0, 1, 1, 2]], np.ones(4))
    np.testing.assert_allclose(heavy.losses, again.losses)
    assert heavy.at == again.at
    assert heavy.rows == pytest.approx(16 / 6)
