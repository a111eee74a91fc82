"""Too few rows are reported with the number that is enough, whichever calibrator it is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.calibration import (
    CALIBRATORS,
    PlattScaling,
    TemperatureScaling,
    TopLabelHistogram,
    TopLabelKDE,
    fit_calibrator,
)
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputWarning
from kdcal_core.models import wrap_model

FITTED = [key for key in CALIBRATORS if key != "uncalibrated"]


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(800, 3)), columns=["a", "b", "c"])
    y = (rng.random(800) < expit(2 * X["a"])).to_numpy().astype(int)
    model = wrap_model(
        RandomForestClassifier(10, max_depth=4, random_state=0).fit(X[:200], y[:200])
    )
    X, y = X[200:].reset_index(drop=True), y[200:]
    return X, y, model.predict_proba(X), model


def said(key, made, n):
    """What is warned of, what is noted, and what the calibrator wants."""
    X, y, proba, model = made
    rows = ScoredSet(proba[:n], y[:n], model.classes, "digest", "calibration")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputWarning)
        fitted = fit_calibrator(key, rows, X[:n], model=model)
    return [str(one.message) for one in caught], fitted.notes_, fitted.rows_needed(2)


@pytest.mark.parametrize("key", FITTED)
@pytest.mark.parametrize("n", [1, 2, 8])
def test_few_rows_are_warned_of_with_the_number_that_would_do(key, n, made):
    warned, noted, needed = said(key, made, n)
    text = f"few for this calibrator; at least about {needed:,} would do."
    assert needed >= 10
    assert sum(one.endswith(text) for one in warned) == 1
    assert sum(one.endswith(text) for one in noted) == 1


@pytest.mark.parametrize("key", FITTED)
def test_that_number_does(key, made):
    needed = CALIBRATORS[key].factory().rows_needed(2)
    assert any("few for this calibrator" in one for one in said(key, made, needed - 1)[1])
    warned, noted, _ = said(key, made, needed)
    assert not any("few for this calibrator" in one for one in (*warned, *noted))


def test_the_model_as_it_is_needs_no_rows(made):
    assert said("uncalibrated", made, 1) == ([], (), 0)


def test_what_is_needed_grows_with_what_is_fitted():
    assert TemperatureScaling().rows_needed(10) == 10
    assert TemperatureScaling("class", awards=True).rows_needed(10) == 200
    assert TopLabelHistogram(n_bins=20).rows_needed(2) == 2 * TopLabelHistogram().rows_needed(2)
    assert TopLabelHistogram().rows_needed(3) == 10 * 7 * 3  # bins above a third
    assert PlattScaling().rows_needed(3) == 3 * PlattScaling().rows_needed(2)


@pytest.mark.parametrize("key", ["isotonic", "venn_abers", "sigmoid", "cum_median", "cwoc"])
def test_curves_without_parameters_are_then_as_exact_as_platts_on_twenty_rows(key):
    """Over-confident scores, whose true probability is known."""

    def error(calibrator, n, seed):
        rng = np.random.default_rng(seed)
        logit = rng.normal(0, 1.5, n)
        y = (rng.random(n) < expit(logit)).astype(int)
        found = calibrator.fit(*_scores(logit, y))
        new = np.random.default_rng(1).normal(0, 1.5, 400)
        proba, _ = _scores(new, None)
        true = np.where(proba[:, 1] > 0.5, expit(new), expit(-new))
        return np.square(found.predict_confidence(proba) - true).mean()

    def mean(calibrator, n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            return np.mean([error(calibrator, n, seed) for seed in range(100)])

    ours = CALIBRATORS[key].factory().set_params(shrinkage=None)
    bar = mean(PlattScaling(shrinkage=None), 20)
    needed = ours.rows_needed(2)
    assert mean(ours, needed) < 1.25 * bar
    assert mean(ours, needed // 2) > bar


def _scores(logit, y):
    p = expit(1.5 * logit)
    return np.column_stack([1 - p, p]), y


@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
def test_densities_say_how_many_predictions_would_hold_twenty(texts):
    score = np.linspace(0.55, 0.95, 50)
    wrong = np.arange(50) < 4
    proba = np.column_stack([1 - score, score])
    some = TopLabelKDE().fit(proba, np.where(wrong, 0, 1))
    texts(some.notes_)
    assert any("about 250" in note for note in some.notes_)
    none = TopLabelKDE().fit(proba, np.ones(50, dtype=int))
    text = "50 true and 0 false positives (about 1,020 predictions of it would hold 20 of each)"
    assert any(text in note for note in none.notes_)
