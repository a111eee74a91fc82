"""Choice of space and number of neighbours: the grid against Torres et al.'s algorithm by loops."""

import numpy as np
import pytest

from kdcal_core.data.splits import random_folds
from kdcal_core.distributions import Empirical, Gamma, Normal, Weighted
from kdcal_core.errors import InputError
from kdcal_core.regression import select_neighbours


def line(n, seed=0):
    """A misspecified line with a constant spread, as in Torres et al., section 4.1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(2, 20, n)
    y = 10 + 5 * x**2 + rng.normal(0, 30 * x)
    return Normal(-460 + 110 * x, np.full(n, 384.4)), y, x


def slow_crps(model, y, space, k, fold, kernel):
    """Algorithm 1 row by row; CRPS by its double sum."""
    pit = model.cdf(y)
    scores = []
    for j in range(len(y)):
        kept = np.flatnonzero(fold != fold[j])
        z = (space - space[kept].mean(axis=0)) / space[kept].std(axis=0)
        distance = np.sqrt(((z[kept] - z[j]) ** 2).sum(axis=1))
        near = np.argsort(distance, kind="stable")[:k]
        weight = np.ones(k)
        if kernel == "epanechnikov":
            weight = 1 - (distance[near] / (distance[near].max() * (1 + 1e-3))) ** 2
        weight /= weight.sum()
        sample = model[j : j + 1].ppf(pit[kept][near][np.newaxis])[0]
        pairs = np.abs(sample[:, np.newaxis] - sample)
        scores.append((weight * np.abs(sample - y[j])).sum() - 0.5 * weight @ pairs @ weight)
    return np.mean(scores)


@pytest.mark.parametrize("kernel", ["epanechnikov", "uniform"])
def test_every_cell_is_the_algorithm_of_the_paper(kernel):
    model, y, x = line(90)
    rng = np.random.default_rng(1)
    spaces = {"input": x[:, np.newaxis], "noise": rng.normal(size=(90, 2))}
    found = select_neighbours(model, y, spaces, [3, 1, 40], kernel=kernel, folds=3, seed=5)
    fold = random_folds(90, 3, 5)
    slow = [
        [slow_crps(model, y, space, k, fold, kernel) for k in (1, 3, 40)]
        for space in spaces.values()
    ]
    np.testing.assert_allclose(found.crps, slow, rtol=1e-10)
    assert found.ks.tolist() == [1, 3, 40]
    np.testing.assert_allclose(found.model_crps, model.crps(y).mean())


def test_any_number_of_cores_gives_the_same_bytes(monkeypatch):
    model, y, x = line(400)
    spaces = {"input": x[:, np.newaxis], "noise": np.random.default_rng(1).normal(size=(400, 2))}

    def found(cores):
        monkeypatch.setattr("kdcal_core.blocks.cores", lambda: cores)
        chosen = select_neighbours(model, y, spaces, [10, 50], seed=5)
        return chosen.crps.tobytes(), chosen.standard_error.tobytes()

    assert found(1) == found(4)


def test_the_choice_holds_on_new_rows_and_the_right_space_wins():
    model, y, x = line(2000)
    noise = np.random.default_rng(2).normal(size=(2000, 3))
    found = select_neighbours(model, y, {"noise": noise, "input": x}, [10, 50, 200, 1600])
    assert found.best_space == "input"
    assert found.best_k in (50, 200)
    assert found.helps
    assert "200" in found.words() or "50" in found.words()
    assert found.standard_error[1].min() == 0
    assert found.n == 2000


def test_a_calibrated_model_is_not_worth_recalibrating(texts):
    rng = np.random.default_rng(3)
    x = rng.normal(size=1500)
    model = Normal(x, np.ones(1500))
    found = select_neighbours(model, rng.normal(x, 1), {"x": x}, [20, 100, 500])
    assert not found.helps
    texts(found.words())


def test_a_subset_of_rows_is_scored_against_all_neighbours():
    model, y, x = line(1200)
    few = select_neighbours(model, y, {"x": x}, [50, 100], max_rows=300)
    full = select_neighbours(model, y, {"x": x}, [50, 100])
    assert few.n == 300
    np.testing.assert_allclose(few.crps, full.crps, rtol=0.2)
    again = select_neighbours(model, y, {"x": x}, [50, 100], max_rows=300)
    assert np.array_equal(few.crps, again.crps)


def test_equal_rows_share_the_weight():
    model, y, _ = line(60)
    found = select_neighbours(model, y, {"point": np.zeros(60)}, [48], folds=5)
    uniform = select_neighbours(model, y, {"point": np.zeros(60)}, [48], folds=5, kernel="uniform")
    assert np.array_equal(found.crps, uniform.crps)


def test_samples_and_outcomes_outside_them_are_scored():
    rng = np.random.default_rng(4)
    y = rng.normal(size=80)
    y[0] = 50.0
    samples = Empirical(rng.normal(size=(80, 20)))
    assert np.isfinite(select_neighbours(samples, y, {"y": y}, [5, 20]).crps).all()
    gamma = Gamma(2.0, np.full(80, 1.0))
    assert np.isfinite(select_neighbours(gamma, y - 90, {"y": y}, [5]).crps).all()


def test_the_formula_is_the_weighted_sample_of_the_ground_floor():
    model, y, x = line(50)
    found = select_neighbours(model, y, {"x": x}, [40], folds=5, kernel="uniform", seed=1)
    fold = random_folds(50, 5, 1)
    pit = model.cdf(y)
    rows = [
        Weighted(model[[j]].ppf(pit[fold != fold[j]][np.newaxis]), np.ones(40)).crps(y[[j]])[0]
        for j in range(50)
    ]
    np.testing.assert_allclose(found.crps[0, 0], np.mean(rows))


def test_what_cannot_be_served_is_refused():
    model, y, x = line(50)
    with pytest.raises(InputError, match="None of the numbers"):
        select_neighbours(model, y, {"x": x}, [0, 41])
    assert select_neighbours(model, y, {"x": x}, [5, 41]).ks.tolist() == [5]
    with pytest.raises(InputError, match="no space"):
        select_neighbours(model, y, {}, [5])
    x[3] = np.nan
    with pytest.raises(InputError, match="row 4"):
        select_neighbours(model, y, {"x": x}, [5])
