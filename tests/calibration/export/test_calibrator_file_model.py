"""A calibrator file in Python: it knows its model, and takes arrays in the order of its fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from kdcal_core import load_calibrator, load_model
from kdcal_core.calibration import fit_calibrator
from kdcal_core.calibration.export import make_card, save_calibrator
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import model_info, wrap_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two forests in files, rows, and the calibrators of the first: by regions and Platt's."""
    folder = tmp_path_factory.mktemp("made")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    for seed in (0, 1):
        forest = RandomForestClassifier(10, max_depth=4, random_state=seed).fit(X[::2], y[::2])
        skops.io.dump(forest, folder / f"forest{seed}.skops")
    model = load_model(folder / "forest0.skops", task="classification")
    info = model_info(model, folder / "forest0.skops", "forest0.skops")
    held = X[1::2].reset_index(drop=True)
    rows = ScoredSet(
        model.predict_proba(held), y[1::2].to_numpy(), model.classes, "", "calibration"
    )
    for key in ("platt", "heterogeneous_tree"):
        fitted = fit_calibrator(key, rows, held)
        card = make_card(
            key, fitted, classes=rows.classes, data={}, model=info, features=held.columns
        )
        save_calibrator(fitted, folder / f"{key}.kdcal", card)
    return folder, model, held


@pytest.mark.parametrize("key", ["platt", "heterogeneous_tree"])
def test_with_its_model_it_is_checked_and_asks_it_itself(made, key):
    folder, wrapped, X = made
    wanted = None
    for model in (folder / "forest0.skops", str(folder / "forest0.skops"), wrapped):
        loaded = load_calibrator(folder / f"{key}.kdcal", model=model)
        found = loaded.score_rows(X)
        by_hand = loaded.predict_proba(wrapped.predict_proba(X), X)
        np.testing.assert_array_equal(found.proba, by_hand)
        wanted = by_hand if wanted is None else wanted
        np.testing.assert_array_equal(found.proba, wanted)


@pytest.mark.parametrize("key", ["platt", "heterogeneous_tree"])
def test_another_model_is_refused_before_it_scores_a_row(made, key):
    folder, _, X = made
    file, other = folder / f"{key}.kdcal", folder / "forest1.skops"
    for model in (other, load_model(other)):
        with pytest.raises(InputError, match=r"belongs to the model 'forest0\.skops'") as error:
            load_calibrator(file, model=model)
        assert "any_model=True (--any-model on the command line)" in str(error.value)
    loaded = load_calibrator(file, model=other, any_model=True)
    assert loaded.score_rows(X).proba.shape == (len(X), 2)


def test_probabilities_of_nobody_knows_which_model_are_warned_of(made):
    folder, model, X = made
    proba = model.predict_proba(X)
    alone = load_calibrator(folder / "platt.kdcal")
    with pytest.warns(InputWarning, match=r"fitted for the model 'forest0.skops'.*model=\.\.\."):
        found = alone.predict_proba(proba)
    with pytest.raises(InputError, match="without its model"):
        alone.score_rows(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silent = load_calibrator(folder / "platt.kdcal", any_model=True).predict_proba(proba)
    np.testing.assert_array_equal(found, silent)


def test_a_model_from_memory_cannot_be_checked_and_that_is_said(made):
    folder, _, X = made
    forest = RandomForestClassifier(10, random_state=0).fit(X, np.resize([0, 1], len(X)))
    for model in (wrap_model(forest), forest):
        loaded = load_calibrator(folder / "platt.kdcal", model=model)
        with pytest.warns(InputWarning, match="not loaded from a file cannot be checked"):
            assert loaded.score_rows(X).proba.shape == (len(X), 2)


def test_what_is_no_model_is_refused_before_it_is_asked(made):
    folder, _, _ = made
    for wrong in (3, {"model": 1}):
        with pytest.raises(InputError):
            load_calibrator(folder / "platt.kdcal", model=wrong)


def test_an_array_has_the_columns_of_the_fit_in_their_order(made):
    folder, model, X = made
    loaded = load_calibrator(folder / "heterogeneous_tree.kdcal", model=model)
    wanted = loaded.score_rows(X).proba
    np.testing.assert_array_equal(loaded.score_rows(X.to_numpy()).proba, wanted)
    np.testing.assert_array_equal(loaded.score_rows(X[X.columns[::-1]]).proba, wanted)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(loaded.predict_proba(proba, X.to_numpy().tolist()), wanted)
    for wrong in (X.to_numpy()[:, :5], X.to_numpy()[:, 0]):
        with pytest.raises(InputError, match=r"was fitted with 6 columns.*in this order: mean rad"):
            loaded.predict_proba(proba, wrong)


def test_a_calibrator_in_memory_takes_arrays_too(made):
    _, model, X = made
    proba = model.predict_proba(X)
    y = np.resize([0, 1], len(X))
    fitted = HeterogeneousCalibrator("tree").fit(proba, y, X)
    np.testing.assert_array_equal(
        fitted.predict_proba(proba, X.to_numpy()), fitted.predict_proba(proba, X)
    )
    with pytest.raises(InputError, match="5 columns, and the calibrator was fitted with 6"):
        fitted.predict_proba(proba, X.to_numpy()[:, :5])
    by_array = HeterogeneousCalibrator("tree").fit(proba, y, X.to_numpy())
    frame = pd.DataFrame(X.to_numpy(), columns=[f"column {i + 1}" for i in range(6)])
    np.testing.assert_array_equal(
        by_array.predict_proba(proba, frame), by_array.predict_proba(proba, X.to_numpy())
    )
