"""The one list of calibrators: each entry does what it says, and its state is all it needs."""

import subprocess
import sys
import warnings
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from kdcal_core.calibration import (
    CALIBRATORS,
    Calibrator,
    Family,
    TopLabelKDE,
    calibrated,
    calibrator_entry,
    fit_calibrator,
    methods_by_class,
    score_calibrator,
)
from kdcal_core.calibration.graph.estimator import KernelDensityEstimator
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError
from kdcal_core.models import wrap_model
from kdcal_core.offers import import_modules

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
KEYS = list(CALIBRATORS)
each = pytest.mark.parametrize("key", KEYS)
N = 500


def _made(n_classes, kind=RandomForestClassifier):
    rng = np.random.default_rng(n_classes)
    X = pd.DataFrame(rng.normal(size=(2 * N, 3)).round(3), columns=["a", "b", "c"])
    logit = np.outer(X["a"] + X["b"] * X["c"], np.linspace(-1, 1, n_classes))
    y = (logit + rng.gumbel(size=logit.shape)).argmax(axis=1)
    if kind is RandomForestClassifier:
        model = kind(20, max_depth=6, random_state=0)
    else:
        model = kind((8,), random_state=0, max_iter=150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X.iloc[:N], y[:N])
    wrapped = wrap_model(model)
    held = X.iloc[N:].reset_index(drop=True)
    rows = ScoredSet(wrapped.predict_proba(held), y[N:], wrapped.classes, "digest", "calibration")
    return rows, held, (X.iloc[:N], y[:N]), wrapped


@pytest.fixture(scope="module", params=[2, 3])
def made(request):
    return _made(request.param)


@pytest.fixture(scope="module")
def fitted():
    kept = {}

    def get(key, made):
        rows, X, training, model = made
        if (key, id(rows)) not in kept:
            kept[key, id(rows)] = fit_calibrator(key, rows, X, training=training, model=model)
        return kept[key, id(rows)]

    return get


@each
def test_every_entry_is_fitted_and_asked_in_one_way(key, made, fitted):
    rows, X, _, _ = made
    entry = CALIBRATORS[key]
    one = fitted(key, made)
    assert one.needs_inputs == ("inputs" in entry.needs)
    assert all(isinstance(note, str) for note in one.notes_)
    found = calibrated(one, rows.proba, X)
    assert found.proba.shape == rows.proba.shape
    assert (found.proba >= 0).all()
    np.testing.assert_allclose(found.proba.sum(axis=1), 1, atol=1e-9)
    of = rows.proba if one.keeps_prediction else found.proba
    np.testing.assert_array_equal(found.predicted, of.argmax(axis=1))
    np.testing.assert_array_equal(found.confidence, found.proba[np.arange(N), found.predicted])
    assert one.keeps_prediction == (entry.family in ("model", "top-label", "temperature"))


def _plain(value):
    """Whether a value is of the kinds that a calibrator file can hold."""
    if value is None or isinstance(value, bool | int | float | str):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    if isinstance(value, tuple):
        return all(_plain(one) for one in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(one) for k, one in value.items())
    if is_dataclass(value):
        assert type(value).__dataclass_params__.frozen
        return all(_plain(getattr(value, field.name)) for field in fields(value))
    return isinstance(value, Calibrator | KernelDensityEstimator)


def _state(calibrator):
    return {name: value for name, value in vars(calibrator).items() if name.endswith("_")}


def _with_state(calibrator, state):
    fresh = clone(calibrator)
    for name, value in state.items():
        setattr(fresh, name, value)
    return fresh


@each
def test_the_named_state_is_plain_and_all_that_an_answer_needs(key, made, fitted):
    rows, X, _, _ = made
    one = fitted(key, made)
    assert all(_plain(value) for value in _state(one).values())
    fresh = _with_state(one, _state(one))
    fresh.check_state()
    np.testing.assert_array_equal(
        calibrated(fresh, rows.proba, X).proba, calibrated(one, rows.proba, X).proba
    )


def _harmless(name):
    # what was seen on the way; no answer reads it
    return name in ("notes_", "strength_", "rule_bandwidths_")


@pytest.mark.parametrize("key", [key for key in KEYS if not CALIBRATORS[key].needs])
def test_damaged_state_is_refused(key, made, fitted):
    one = fitted(key, made)
    state = _state(one)
    for name, value in state.items():
        if _harmless(name):
            continue
        bad = [None]
        if isinstance(value, np.ndarray):
            bad += (
                [value[:-1], np.full_like(value, -7)]
                if value.dtype.kind == "i"
                else [value[:-1], np.full_like(value, np.inf), value.astype(np.float32)]
            )
        if isinstance(value, tuple):
            bad += [value[:-1], list(value)]
            if isinstance(value[0], np.ndarray):
                bad += [(value[0][:0], *value[1:]), (value[0][::-1] * 3 - 1, *value[1:])]
        for wrong in bad:
            with pytest.raises(InputError, match="contradicts itself"):
                _with_state(one, {**state, name: wrong}).check_state()
    with pytest.raises(InputError):
        clone(one).check_state()


def test_a_curve_from_a_file_answers_but_knows_no_densities(made, fitted):
    one = fitted("kde_mon2", made)
    fresh = _with_state(one, _state(one))
    for ask in (lambda: fresh.curve(0), lambda: fresh.with_rule("mon")):
        with pytest.raises(InputError, match="from a file"):
            ask()
    assert isinstance(one.with_rule("mon"), TopLabelKDE)


def test_what_is_missing_is_said(made):
    rows, X, _, model = made
    with pytest.raises(InputError, match="no method 'isotone'"):
        fit_calibrator("isotone", rows)
    with pytest.raises(InputError, match="reads the features"):
        fit_calibrator("heterogeneous_tree", rows)
    with pytest.raises(InputError, match="499 rows for the probabilities of 500"):
        fit_calibrator("heterogeneous_tree", rows, X.iloc[1:])
    with pytest.raises(InputError, match="needs the model itself"):
        fit_calibrator("kernel_density", rows, X)
    with pytest.raises(InputError, match="reads more than probabilities"):
        score_calibrator("heterogeneous_tree")
    one = fit_calibrator("kernel_density", rows, X, model=model)
    with pytest.raises(InputError, match="reads the features"):
        calibrated(one, rows.proba)


def test_a_kernel_density_graph_takes_weights_and_refuses_strangers(made):
    rows, X, training, model = made
    one = CALIBRATORS["kernel_density"].factory()
    plain = one.fit(rows.proba, rows.y, X, model=model).predict_proba(rows.proba, X)
    one.fit(rows.proba, rows.y, X, np.linspace(1, 2, N), model=model)
    assert np.abs(one.predict_proba(rows.proba, X) - plain).max() > 1e-3
    one.fit(rows.proba, rows.y, X, np.full(N, 3.0), model=model)
    np.testing.assert_array_equal(one.predict_proba(rows.proba, X), plain)
    with pytest.raises(InputError, match="Training rows need labels"):
        one.fit(rows.proba, rows.y, X, X_partition=training[0], model=model)
    more = np.column_stack([rows.proba, np.zeros(N)])
    with pytest.raises(InputError, match="the probabilities have"):
        one.fit(more, rows.y, X, model=model)

    class Bare:
        kind, classes, named_classes = "Bare model", model.classes, True
        n_features, feature_names = 3, None
        predict_proba = staticmethod(model.predict_proba)

    with pytest.raises(InputError, match="not read as a partition"):
        one.fit(rows.proba, rows.y, X, model=Bare())


def test_labels_are_classes_by_position_however_they_are_named():
    """Classes that are called "1" and "0" in this order must not be swapped."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    y = (X["a"] > 0).to_numpy().astype(int)
    forest = RandomForestClassifier(10, random_state=0).fit(X[:300], y[:300])
    model = wrap_model(forest, classes=("1", "0"))
    rows = ScoredSet(model.predict_proba(X[300:]), y[300:], ("1", "0"), "d", "calibration")
    one = fit_calibrator("kernel_density", rows, X[300:], model=model)
    said = calibrated(one, rows.proba, X[300:]).predicted
    assert (said == rows.y).mean() > 0.95


def test_a_network_gets_a_kernel_density_network():
    rows, X, _, model = _made(2, MLPClassifier)
    one = fit_calibrator("kernel_density", rows, X, model=model)
    assert type(one.estimator_).__name__ == "KernelDensityNetwork"
    direct = one.estimator_.predict_proba(X)
    np.testing.assert_allclose(calibrated(one, rows.proba, X).proba, direct, atol=1e-12)


def test_training_rows_make_the_partition_and_progress_is_reported(made):
    rows, X, training, model = made
    text = []
    fit_calibrator(
        "kernel_density",
        rows,
        X,
        training=training,
        model=model,
        progress=lambda share, note: text.append(share),
    )
    assert text
    assert all(0 <= share <= 1 for share in text)
    alone = fit_calibrator("heterogeneous_tree", rows, X)
    given = fit_calibrator("heterogeneous_tree", rows, X, training=training)
    assert not np.array_equal(
        calibrated(alone, rows.proba, X).proba, calibrated(given, rows.proba, X).proba
    )


def test_what_a_review_lacks():
    full = {"n_classes": 2, "n_inputs": 3, "has_codes": True}
    assert all(entry.lacks(**full) is None for entry in CALIBRATORS.values())
    bare = {"n_classes": 2, "n_inputs": 0, "has_codes": False}
    for entry in CALIBRATORS.values():
        assert (entry.lacks(**bare) is None) == (not entry.needs)


def test_the_registry_holds_every_family_and_the_page_by_class_its_own():
    assert {entry.family for entry in CALIBRATORS.values()} == {
        "model",
        "recommended",
        "top-label",
        "temperature",
        "standard",
        "partition",
        "kernel density",
    }
    assert {"isotonic", "sigmoid"} <= set(methods_by_class())
    families = [entry.family for entry in CALIBRATORS.values()]
    assert families == sorted(families, key=get_args(Family).index)
    assert len(methods_by_class()) >= 16  # those of the paper's Fig. 17 and two baselines
    assert all(isinstance(score_calibrator(key), Calibrator) for key in methods_by_class())
    assert calibrator_entry("uncalibrated").family == "model"
    assert all(key in methods_by_class() for key, entry in CALIBRATORS.items() if entry.compared)


def test_the_list_is_read_without_heavy_libraries():
    code = (
        "import kdcal_core.calibration as c, sys\n"
        "[entry.factory() for entry in c.CALIBRATORS.values()]\n"
        "heavy = {'numba', 'torch', 'onnxruntime', 'xgboost', 'lightgbm'}\n"
        "print(' '.join(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_calibrator_is_one_new_file(tmp_path, monkeypatch):
    """A file put beside the others is listed, fitted and says that it cannot be written in ONNX."""
    (tmp_path / "even.py").write_text(
        "import numpy as np\n"
        "from kdcal_core.calibration.calibrator_base import TopLabelCalibrator\n"
        "from kdcal_core.calibration.calibrators import CalibratorEntry\n"
        "class Even(TopLabelCalibrator):\n"
        "    def _fit(self, proba, y, weight): pass\n"
        "    def _confidence(self, proba): return np.full(len(proba), 0.5)\n"
        "CalibratorEntry('even', 'Even', 'Even', Even, 'none', 'A half.', 'standard').offer()\n"
    )
    (tmp_path / "_hidden.py").write_text("raise RuntimeError")
    package = ModuleType("more_calibrators")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, "more_calibrators", package)
    before = dict(CALIBRATORS)
    try:
        import_modules([str(tmp_path)], "more_calibrators")
        places = list(CALIBRATORS)
        assert places.index("venn_abers") < places.index("even") < places.index("kernel_density")
        fitted = calibrator_entry("even").factory().fit([[0.9, 0.1], [0.2, 0.8]], [0, 1])
        assert fitted.predict_confidence([[0.7, 0.3]]).tolist() == [0.5]
        assert fitted.why_no_onnx() == "kdcal does not know how to write it"
        with pytest.raises(ValueError, match="Two entries of the list have the key 'even'"):
            calibrator_entry("even").offer()
    finally:
        CALIBRATORS.clear()
        CALIBRATORS.update(before)
        sys.modules.pop("more_calibrators.even", None)
