"""A model and its calibrator as one classifier of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from kdcal_core import CalibratedModel, HeterogeneousCalibrator, InputError, InputWarning
from kdcal_core.calibration import (
    CALIBRATORS,
    IsotonicConfidence,
    PlattScaling,
    calibrator_entry,
)

NAMES = np.array(["no", "perhaps", "yes"])
SHRUNK = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a calibrator moves from the model by the "
    "evidence of its rows, and a row that counts three times is evidence once"
    for kind in ("dense", "sparse")
}
"""Without shrinkage they hold."""


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    X["d"] = X["c"] + 0.1 * X["d"]  # naive Bayes counts them twice and is too sure
    y = NAMES[np.clip(np.round(X["c"] + rng.normal(size=600)) + 1, 0, 2).astype(int)]
    return X, y


@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
@pytest.mark.parametrize(
    ("calibrator", "failing"),
    [
        (PlattScaling(shrinkage=None), {}),
        (IsotonicConfidence(shrinkage=None), {}),
        ("heterogeneous_tree", SHRUNK),  # reads the columns, so it refuses sparse ones
    ],
)
def test_scikit_learns_own_checks_hold(calibrator, failing):
    model = LogisticRegression(tol=1e-12, max_iter=10_000)
    done = check_estimator(
        CalibratedModel(model, calibrator, cv=2), expected_failed_checks=failing, on_skip=None
    )
    assert len([one for one in done if one["status"] == "passed"]) > 55


@pytest.mark.parametrize("key", [*CALIBRATORS])
def test_whole_number_weights_are_repeated_rows_without_shrinkage(key):
    calibrator = calibrator_entry(key).factory()
    if "shrinkage" not in calibrator.get_params() or calibrator.needs_inputs:
        pytest.skip("has no such setting, or other inputs")
    if key in ("kde_loo", "spline"):
        pytest.skip("leaves rows out to choose its smoothness, and copies of them stay in")
    calibrator.set_params(shrinkage=None)
    rng = np.random.default_rng(0)
    p, times = rng.random(300), rng.integers(1, 4, 300)
    y = (rng.random(300) < p**1.5).astype(int)
    weighted = calibrator.fit(p, y, sample_weight=times).predict_proba(p)
    repeated = clone(calibrator).fit(np.repeat(p, times), np.repeat(y, times)).predict_proba(p)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, lambda X: X.to_numpy().tolist()])
def test_a_calibrator_of_the_columns_takes_lists(rows, form):
    X, y = rows
    model = CalibratedModel(GaussianNB(), "heterogeneous_tree", cv=2)
    found = model.fit(form(X), y).predict_proba(form(X))
    assert np.array_equal(found, clone(model).fit(X.to_numpy(), y).predict_proba(X.to_numpy()))
    with pytest.raises(InputError, match="Sparse data"):
        model.fit(csr_array(X.to_numpy()), y)


def test_cross_fitting_is_what_it_says(rows):
    X, y = rows
    folds = StratifiedKFold(4, shuffle=True, random_state=7)
    proba = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    alone = PlattScaling().fit(proba, np.searchsorted(NAMES, y))
    found = CalibratedModel(GaussianNB(), "platt", cv=4, seed=7).fit(X, y)
    whole = GaussianNB().fit(X, y)
    expected = alone.predict_proba(whole.predict_proba(X))
    assert np.array_equal(found.predict_proba(X), expected)
    assert found.classes_.tolist() == NAMES.tolist()
    assert found.feature_names_in_.tolist() == list(X.columns)
    assert set(found.predict(X)) <= set(NAMES)
    largest = found.predict_proba(X).max(axis=1)
    assert np.array_equal(found.predict_confidence(X), largest)
    splitter = CalibratedModel(GaussianNB(), "platt", cv=folds).fit(X, y)
    assert np.array_equal(splitter.predict_proba(X), expected)


def test_a_fitted_model_is_left_as_it_is(rows):
    X, y = rows
    model = GaussianNB().fit(X[:300], y[:300])
    found = CalibratedModel(model, "temperature", cv="prefit").fit(X[300:], y[300:])
    assert found.model_ is model
    assert np.array_equal(found.predict(X), model.predict(X))  # a temperature keeps the class
    stated, now = model.predict_proba(X).max(axis=1), found.predict_confidence(X)
    assert now.mean() < stated.mean() - 0.05
    with pytest.raises(InputError, match=r"Row 2 has the class 'maybe', which the model does not"):
        CalibratedModel(model, cv="prefit").fit(X[:3], ["no", "maybe", "yes"])


def test_it_works_within_pipelines_searches_and_folds(rows):
    X, y = rows
    inner = make_pipeline(StandardScaler(), GaussianNB())
    model = CalibratedModel(inner, "uncalibrated", cv=2)
    search = GridSearchCV(
        model,
        {
            "calibrator": ["uncalibrated", "temperature"],
            "model__gaussiannb__var_smoothing": [1e-9, 0.1],
        },
        scoring="neg_log_loss",
        cv=2,
    ).fit(X, y)
    assert search.best_params_["calibrator"] == "temperature"
    assert cross_val_predict(model, X, y, cv=2, method="predict_proba").shape == (600, 3)


@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
def test_calibrators_of_regions_get_the_features(rows):
    X, y = rows
    found = CalibratedModel(GaussianNB(), HeterogeneousCalibrator("tree", n_trees=1)).fit(X, y)
    assert found.predict_proba(X.iloc[:5]).shape == (5, 3)
    arrays = CalibratedModel(GaussianNB(), "heterogeneous_tree", cv=2).fit(X.to_numpy(), y)
    assert arrays.predict_proba(X.to_numpy()[:5]).shape == (5, 3)


def test_rows_that_cannot_be_divided_are_refused_in_a_sentence(rows):
    X, y = rows
    with pytest.raises(InputError, match="All rows are of one class, yes"):
        CalibratedModel(GaussianNB()).fit(X, ["yes"] * len(X))
    with pytest.raises(InputError, match="Class yes has 3 rows, too few for 5 folds"):
        CalibratedModel(GaussianNB()).fit(X, ["no"] * 597 + ["yes"] * 3)
    with pytest.warns(InputWarning, match="rows"):
        CalibratedModel(GaussianNB(), "dirichlet").fit(X[:40], y[:40])


@pytest.mark.parametrize(
    ("guess", "key"),
    [("kde", "kde_mon2"), ("temperature", "sts"), ("Matrix", "sms"), ("isotonic", "isotonic")],
)
def test_calibrators_are_found_by_the_names_that_people_try(guess, key):
    assert calibrator_entry(guess) is CALIBRATORS[key]


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"Did you mean temperature\?"):
        calibrator_entry("temprature")


def test_negative_weights_are_named(rows):
    X, y = rows
    weight = np.ones(len(y))
    weight[[4, 9]] = -1.0
    with pytest.raises(InputError, match=r"A weight is negative \(row 5\). At least 1 more row"):
        CalibratedModel(GaussianNB(), "platt").fit(X, y, sample_weight=weight)
