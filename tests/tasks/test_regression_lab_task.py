"""The simulation lab for regressions: what a run says of the truth, and what repetitions add."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_reviews import quiet

from kdcal_core.errors import InputError
from kdcal_core.simulation import REGRESSION_SIMULATIONS, rosenbrock_gamma, true_distribution
from kdcal_core.store import load
from kdcal_core.tasks import (
    RegressionLabRun,
    RegressionLabSettings,
    SizesRun,
    SizesSettings,
    repeat,
    simulate_regression,
)
from kdcal_core.tasks.decorators import carry_out


def run(task, settings, folder, kind):
    request = task.request(settings)
    carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, kind)


def simulated(settings, folder):
    return run(simulate_regression, settings, folder, RegressionLabRun)


@pytest.fixture(scope="module")
def parabola(tmp_path_factory):
    settings = RegressionLabSettings(n=10_000)
    return simulated(settings, tmp_path_factory.mktemp("parabola"))


def test_local_recalibration_finds_the_truth_that_coverage_hides(parabola):
    """Torres et al., Table 1 and Fig. 2, at a tenth of the rows."""
    scores = {key: found.scores.rows for key, found in parabola.methods.items()}
    for key in ("model", "global"):
        assert scores[key]["mse_truth"].value == pytest.approx(14_500, rel=0.1)
        assert 0.92 < scores[key]["coverage95"].value < 0.97
    assert scores["local"]["mse_truth"].value < 0.3 * scores["model"]["mse_truth"].value
    assert scores["local"]["kl"].high < 0.3 * scores["model"]["kl"].low
    for measure in ("mse_truth", "kl"):
        assert scores["truth"][measure].value == pytest.approx(0, abs=1e-12)
    # spreads: one for all rows, or growing as the true one does
    true, model, local = (parabola.methods[key].std for key in ("truth", "model", "local"))
    assert np.ptp(model) == pytest.approx(0)
    assert np.corrcoef(true, local)[0, 1] > 0.9


def test_rows_are_divided_as_in_the_paper(parabola):
    assert (parabola.n_train, parabola.n_calibration, len(parabola.y)) == (8000, 1000, 1000)
    assert parabola.k == 63  # 2 sqrt(1,000)
    drawn = REGRESSION_SIMULATIONS["heteroscedastic"].function(10_000, seed=0)
    np.testing.assert_array_equal(parabola.X, drawn.X[9000:])
    assert parabola.axes is None
    truth = true_distribution("heteroscedastic", parabola.X)
    np.testing.assert_allclose(parabola.methods["truth"].high, truth.interval(0.95)[1])


def test_two_inputs_have_a_surface_and_positive_outcomes_a_logarithm(tmp_path):
    settings = RegressionLabSettings("rosenbrock_gamma", n=1000, model="forest", k=20)
    found = simulated(settings, tmp_path)
    assert found.k == 20
    assert min(one.low.min() for one in found.methods.values()) > 0
    truth = found.methods["truth"].surface
    for at in ((0, 0), (40, 3), (17, 29)):
        point = [[found.axes[0, at[1]], found.axes[1, at[0]]]]
        mean = true_distribution("rosenbrock_gamma", point).mean()
        assert truth[at] == pytest.approx(mean[0])
    X = rosenbrock_gamma(1000, seed=0).X[900:]
    np.testing.assert_allclose(found.axes[:, [0, -1]], np.array([X.min(axis=0), X.max(axis=0)]).T)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"simulation": "spiral"}, "no simulation 'spiral'"),
        ({"model": "oracle"}, "no model 'oracle'"),
        ({"n": 99}, "'n' is 99"),
        ({"k": 0}, "'k' is 0"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        simulate_regression.request(RegressionLabSettings(**wrong))


def test_sizes_repeat_the_lab_with_each_number_of_neighbours(tmp_path):
    settings = SizesSettings(RegressionLabSettings(), sizes=(1000, 5000), repetitions=2)
    found = run(repeat, settings, tmp_path, SizesRun)
    assert found.settings.repeated.methods == {
        "model": "Model",
        "local_100": "Local, k = 100",
        "local_500": "Local, k = 500",
        "local_1000": "Local, k = 1,000",
    }
    # 100 calibration rows allow 100 neighbours, 500 allow 500
    mse, coverage = found.of("mse_truth"), found.of("coverage95")
    assert np.isfinite(mse).sum(axis=2).tolist() == [[2, 2], [3, 3]]
    assert len(found.table()) == 10
    # all calibration rows as neighbours are little better than the model, fewer much better
    assert (mse[1, :, 1] < 0.5 * mse[1, :, 0]).all()
    assert ((coverage > 0.8) | np.isnan(coverage)).all()


def test_what_sizes_do_not_use_does_not_count():
    lab = RegressionLabSettings(n=2000, k=50)
    one = repeat.request(SizesSettings(lab))
    assert one.key == repeat.request(SizesSettings(RegressionLabSettings())).key
    with pytest.raises(InputError, match="ascending"):
        repeat.request(SizesSettings(lab, sizes=(2000, 1000)))
