"""Row weights in the fits of recalibrators: whole numbers count as repeated rows."""

import numpy as np
import pytest

from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation.judged_recalibrators import Space, judge_recalibrators
from kdcal_core.regression import (
    RECALIBRATORS,
    LocalRecalibration,
    NeighbourRegression,
    PooledRecalibration,
    cross_fitted,
    load_recalibrator,
    recalibrator_card,
    save_recalibrator,
    select_neighbours,
)
from kdcal_core.regression.neighbour_recalibration import first_close
from kdcal_core.regression.recalibrators import fit_together
from kdcal_core.regression.spaces import PREDICTION, SpaceOfRows
from kdcal_core.statistics import Dependence, RowDesign

LEVELS = np.linspace(0.02, 0.98, 25)[np.newaxis]
N = 400
_SLOW_OR_OTHER = ("recommended", "boosting")


@pytest.fixture(scope="module")
def rows():
    """Forecasts, outcomes that are wider and higher on the right, a space, and weights 1 to 4."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, N)
    y = np.where(x > 0.0, 1.0, 0.0) + 1.5 * rng.normal(size=N)
    return Normal(np.zeros(N), 1.0), y, x, rng.integers(1, 5, N)


def quantiles(fitted, x=(-0.5, 0.0, 0.5)):
    return fitted.predict(Normal(np.zeros(len(x)), 1.0), np.array(x)).ppf(LEVELS)


def both(make, rows):
    """Fits with the weights, with repeated rows, and without weights."""
    said, y, x, weight = rows
    many = np.repeat(np.arange(N), weight)
    weighted = make().fit(said, y, x, sample_weight=weight)
    return [
        quantiles(one)
        for one in (weighted, make().fit(said[many], y[many], x[many]), make().fit(said, y, x))
    ]


@pytest.mark.parametrize(
    "make",
    [
        RECALIBRATORS["global"].make,
        RECALIBRATORS["isotonic"].make,
        lambda: RECALIBRATORS["isotonic"].make(ends="printed", smoothing="none"),
        lambda: LocalRecalibration(radius=0.5, smoothing="none", standardise=False),
        lambda: LocalRecalibration(
            radius=0.5, kernel="uniform", smoothing="none", standardise=False
        ),
    ],
)
def test_whole_weights_are_repeated_rows(make, rows):
    weighted, repeated, without = both(make, rows)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9, atol=1e-9)
    assert np.abs(weighted - without).max() > 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: LocalRecalibration(k=100),
        lambda: PooledRecalibration(k=100),
        lambda: NeighbourRegression(k=100),
        RECALIBRATORS["density"].make,
        RECALIBRATORS["boosting"].make,
        RECALIBRATORS["where_needed"].make,
    ],
)
def test_rows_of_great_weight_decide(make, rows):
    """Rows from a higher population, of all weight but a thousandth."""
    said, y, x, _ = rows
    high = np.arange(N) % 2 == 0
    shifted = y + np.where(high, 2.0, 0.0)
    weight = np.where(high, 1.0, 1e-3)
    alone = make().fit(said[high], shifted[high], x[high])
    weighted = make().fit(said, shifted, x, sample_weight=weight)
    without = make().fit(said, shifted, x)
    x = np.linspace(-0.9, 0.9, 41)
    median = [quantiles(one, x)[:, 12].mean() for one in (alone, weighted, without)]
    assert abs(median[1] - median[0]) < 0.35
    assert median[2] < median[0] - 0.6


# scikit-learn's trees take the quantile of weighted rows in another way than that of rows
@pytest.mark.parametrize("key", [one for one in RECALIBRATORS if one not in _SLOW_OR_OTHER])
def test_equal_weights_change_nothing(key, rows):
    said, y, x, _ = rows
    one = RECALIBRATORS[key].make().fit(said, y, x)
    design = RowDesign(None, Dependence.of("cluster", np.arange(N)))
    for weight in (np.ones(N), design):
        other = RECALIBRATORS[key].make().fit(said, y, x, sample_weight=weight)
        np.testing.assert_allclose(quantiles(other), quantiles(one), rtol=1e-9, atol=1e-9)


def test_the_recommended_one_is_judged_by_the_weights(rows):
    said, y, x, _ = rows
    high = np.arange(N) % 2 == 0
    shifted = np.where(high, y + 2.0, said.mean() + np.random.default_rng(1).normal(size=N))
    make = RECALIBRATORS["recommended"].make
    weighted = make(k=50).fit(said, shifted, x, sample_weight=np.where(high, 1e-3, 1.0))
    assert weighted.chosen_ == "model"  # right for the rows that count
    assert make(k=50).fit(said, shifted, x).chosen_ != "model"


def test_the_choice_of_neighbours_and_cross_fits_use_weights(rows):
    said, y, x, weight = rows
    spaces, ks = {"x": x}, [10, 50, 200]
    alone = select_neighbours(said, y, spaces, ks)
    ones = select_neighbours(said, y, spaces, ks, sample_weight=np.ones(N))
    np.testing.assert_allclose(ones.crps, alone.crps)
    np.testing.assert_allclose(ones.standard_error, alone.standard_error)
    found = select_neighbours(said, y, spaces, ks, sample_weight=weight)
    assert found.model_crps == pytest.approx(np.average(said.crps(y), weights=weight))
    assert np.abs(found.crps - alone.crps).max() > 1e-3
    crossed = [
        cross_fitted(RECALIBRATORS["global"].make, said, y, sample_weight=one).ppf(0.9)
        for one in (None, weight)
    ]
    assert np.abs(crossed[0] - crossed[1]).max() > 1e-3


def test_the_first_close_candidate_by_weights():
    crps = np.array([[1.0, 1.0, 1.0, 9.0], [2.0, 2.0, 2.0, 1.0]])
    assert first_close(crps, np.array([1.0, 1.0, 1.0, 1e-3])) == 0
    assert first_close(crps, np.array([1e-3, 1e-3, 1e-3, 1.0])) == 1
    many = np.repeat(crps, [4, 4, 4, 4], axis=1)
    assert first_close(many, np.full(16, 3.0)) == first_close(many)


def test_a_file_keeps_the_weights(rows, tmp_path):
    said, y, x, weight = rows
    for key in ("global", "isotonic", "local", "pooled", "where_needed"):
        fitted = RECALIBRATORS[key].make().fit(said, y, x, sample_weight=weight)
        card = recalibrator_card(key, fitted, family="normal")
        space = SpaceOfRows(PREDICTION) if fitted.needs_space else None
        save_recalibrator(fitted, tmp_path / f"{key}.kdcal", card, space)
        again = load_recalibrator(tmp_path / f"{key}.kdcal").recalibrator
        np.testing.assert_array_equal(quantiles(again), quantiles(fitted))
    broken = RECALIBRATORS["global"].make().fit(said, y, sample_weight=weight)
    broken.weight_ = -broken.weight_
    with pytest.raises(InputError):
        broken.check_state()


def test_judged_recalibrators_are_fitted_with_the_weights(rows):
    said, y, x, _ = rows
    weight = np.where(x > 0.0, 1.0, 1e-3)
    found = {}
    for one in (None, weight):
        judged = RegressionSet(said, y, "digest", "calibration", weight=one)
        space = Space("x", x[:, np.newaxis], None)
        answers = judge_recalibrators(["global"], judged, None, space).answers["global"]
        found[one is None] = np.asarray(answers.pit)
    right = x > 0.0
    assert abs(found[False][right].mean() - 0.5) < 0.02  # the rows that count are right
    assert found[True][right].mean() > 0.55


def test_wrong_weights_name_the_row(rows):
    said, y, x, _ = rows
    weight = np.ones(N)
    weight[2] = -1.0
    for key in RECALIBRATORS:
        with pytest.raises(InputError, match="row 3"):
            RECALIBRATORS[key].make().fit(said, y, x, sample_weight=weight)


def test_a_recalibrator_of_ones_own_without_weights_is_still_fitted(rows):
    class Mine:
        def fit(self, distribution, y, space=None):
            self.fitted = True
            return self

        def predict(self, distribution, space=None):
            return distribution

    said, y, x, weight = rows
    assert fit_together(Mine(), said, y, x, weight=weight).fitted
