"""The quantile network: its curves, what it learns, and that it leaves a good model alone."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from kdcal_core.distributions import Gamma, Normal, Weighted
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.regression import DensityRecalibration
from kdcal_core.regression.density import CORNERS, QuantileCurves, segments


def growing_spread(n, seed):
    """The model says 5 everywhere; the truth widens with the mean."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1, 10, n)
    return Normal(mean, np.full(n, 5.0)), rng.normal(mean, mean)


@pytest.fixture(scope="module")
def fitted():
    return DensityRecalibration(max_epochs=60).fit(*growing_spread(3000, 0))


def test_it_learns_a_spread_that_depends_on_the_forecast(fitted):
    model, y = growing_spread(3000, 1)
    recalibrated = fitted.predict(model)
    truth = Normal(model.mean(), model.mean())
    gap = model.crps(y).mean() - truth.crps(y).mean()
    assert recalibrated.crps(y).mean() - truth.crps(y).mean() < 0.15 * gap
    np.testing.assert_allclose(recalibrated.std(), model.mean(), rtol=0.35)
    for half in (model.mean() < 5, model.mean() >= 5):
        low, high = recalibrated[half].interval(0.9)
        assert abs(((y[half] >= low) & (y[half] <= high)).mean() - 0.9) < 0.03


def test_same_seed_same_bytes_whatever_the_threads_and_the_global_state():
    import torch

    model, y = growing_spread(300, 2)
    threads = torch.get_num_threads()
    answers = []
    for count in (1, 2):
        torch.set_num_threads(count)
        torch.manual_seed(count)
        answers.append(DensityRecalibration(max_epochs=5).fit(model, y).predict(model).values)
        assert torch.get_num_threads() == count
    torch.set_num_threads(threads)
    assert np.array_equal(*answers)
    other = DensityRecalibration(max_epochs=5, seed=1).fit(model, y).predict(model).values
    assert not np.array_equal(answers[0], other)


def test_a_calibrated_model_is_hardly_moved():
    rng = np.random.default_rng(3)
    mean = rng.normal(0, 3, 1500)
    model, y = Normal(mean, np.ones(1500)), rng.normal(mean, 1)
    new = Normal(rng.normal(0, 3, 1000), np.ones(1000))
    new_y = rng.normal(new.mean(), 1)
    recalibrated = DensityRecalibration().fit(model, y).predict(new)
    assert recalibrated.crps(new_y).mean() < 1.02 * new.crps(new_y).mean()


def test_no_prediction_leaves_the_support_of_the_model():
    rng = np.random.default_rng(4)
    mean = rng.gamma(2, 2, 400) + 0.1
    model = Gamma(2.0, mean)
    recalibrated = (
        DensityRecalibration(max_epochs=10).fit(model, rng.gamma(0.5, mean / 0.5)).predict(model)
    )
    assert recalibrated.values.min() > 0


def test_twenty_rows_work_and_fewer_are_refused():
    model, y = growing_spread(20, 5)
    assert np.isfinite(DensityRecalibration().fit(model, y).predict(model).std()).all()
    with pytest.raises(InputError, match="at least 20"):
        DensityRecalibration().fit(model[:19], y[:19])


def test_outcomes_outside_every_sample_are_counted():
    rng = np.random.default_rng(6)
    model, y = Weighted(rng.normal(size=(50, 30)), np.ones(30)), rng.normal(size=50)
    y[:3] = 1e3, -1e3, 1e9
    with pytest.warns(InputWarning, match="calibration outcomes lie outside"):
        fitted = DensityRecalibration(max_epochs=3).fit(model, y)
    assert fitted.n_outside_ >= 3
    assert np.isfinite(fitted.predict(model).values).all()


def test_the_untrained_curve_is_the_identity_and_every_curve_rises():
    rng = np.random.default_rng(7)
    score = ndtri(np.linspace(0.001, 0.999, 99))
    untrained = QuantileCurves(((np.zeros((len(CORNERS) + 2, 3)), np.zeros(len(CORNERS) + 2)),))
    np.testing.assert_allclose(untrained(rng.normal(size=(4, 3)), score), np.tile(score, (4, 1)))
    wild = QuantileCurves(((rng.normal(0, 9, (len(CORNERS) + 2, 3)), rng.normal(size=11)),))
    assert np.all(np.diff(wild(rng.normal(size=(40, 3)), score), axis=1) >= 0)


def test_pieces_add_up_to_the_score():
    score = np.linspace(-5, 5, 101)
    pieces = segments(score)
    np.testing.assert_allclose(pieces.sum(axis=1), score)
    assert np.all(pieces * np.sign(score)[:, np.newaxis] >= 0)
    assert np.abs(pieces[:, 1:-1]).max() <= np.diff(CORNERS).max() + 1e-12


def test_loading_the_room_leaves_torch_and_numba_alone():
    code = "import kdcal_core.regression, sys; print(*({'torch', 'numba'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == []


def test_progress_is_reported_and_may_cancel():
    heard = []

    def listen(share, note):
        heard.append(share)
        if len(heard) > 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        DensityRecalibration().fit(*growing_spread(100, 8), progress=listen)
    assert heard == sorted(heard)


def test_ranks_are_those_of_the_calibration_rows(fitted):
    model, _ = growing_spread(3000, 0)
    far = fitted._features(np.array([[1e9, 1.0, 0.0], [-1e9, 1e9, 0.0]]))
    assert far[0, 0] == 1
    assert far[1, 0] == -1
    assert (
        stats.spearmanr(
            fitted._features(np.column_stack([model.mean()] * 3))[:, 0], model.mean()
        ).statistic
        > 0.999
    )


@pytest.mark.parametrize("unit", [1e12, 1e-12])
def test_density_knows_one_width_in_any_unit(unit):
    rng = np.random.default_rng(3)
    mean = rng.normal(size=400)
    y = mean + rng.normal(size=400)
    recalibrated = [
        DensityRecalibration(max_epochs=3)
        .fit(Normal(mean * by, by), y * by)
        .predict(Normal([0.0, by], by))
        for by in (1.0, unit)
    ]
    np.testing.assert_allclose(recalibrated[1].mean() / unit, recalibrated[0].mean(), atol=1e-9)
    np.testing.assert_allclose(recalibrated[1].std() / unit, recalibrated[0].std(), rtol=1e-9)
