"""Named columns, names of classes and one column of P(event), at every door alike."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kdcal_core import (
    HeterogeneousCalibrator,
    ReliabilityDisplay,
    TemperatureScaling,
    calibration_error,
    reliability,
)
from kdcal_core.calibration import (
    RecommendedCalibrator,
    TopLabelKDE,
    calibrated,
)
from kdcal_core.calibration.export import load_calibrator, make_card, save_calibrator
from kdcal_core.data import check_rows
from kdcal_core.diagnostics import brier, log_loss, mean_max_confidence
from kdcal_core.diagnostics.summaries import summarise
from kdcal_core.errors import InputError

RNG = np.random.default_rng(0)
P = RNG.uniform(0.02, 0.98, 400)
Y = (RNG.uniform(size=400) < P**2).astype(int)
NAMES = np.array(["no", "yes"])[Y]
BOTH = np.column_stack([1 - P, P])
MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
MEASURES = [
    brier,
    log_loss,
    mean_max_confidence,
    calibration_error,
    lambda proba, y: reliability(proba, y, kind="class", label=1).curves[0].accuracy[-1],
    lambda proba, y: summarise(proba, y, ("no", "yes")).moments("Brier")[0],
]


@pytest.fixture(params=list(MAKERS))
def frame(request):
    """A frame of a library, with the columns in the other order."""
    return MAKERS[request.param]({"yes": P, "no": 1 - P})


@pytest.mark.parametrize("measure", MEASURES)
def test_measures_take_names_frames_and_one_column(measure, frame):
    known = float(measure(BOTH, Y))
    assert float(measure(BOTH, NAMES)) == known
    assert float(measure(frame, NAMES)) == known
    for column in (
        P,
        P.tolist(),
        P[:, None],
        pd.DataFrame(P),
        pd.Series(P, name="score"),
        pd.Series(P, name="yes"),
    ):
        assert float(measure(column, Y)) == known
        assert float(measure(column, NAMES)) == known


def test_a_display_puts_named_columns_in_order(frame):
    by_name = ReliabilityDisplay.from_predictions(NAMES, frame)
    assert by_name.frame().equals(ReliabilityDisplay.from_predictions(NAMES, BOTH).frame())
    other = ReliabilityDisplay.from_predictions(NAMES, frame, classes=["yes", "no"], event="yes")
    assert other.frame().equals(by_name.frame())


@pytest.mark.parametrize("make", [TemperatureScaling, TopLabelKDE, RecommendedCalibrator])
def test_calibrators_take_names_frames_and_one_column(make, frame):
    known = make().fit(BOTH, Y)
    expected = known.predict_proba(BOTH)
    assert known.classes_.tolist() == [0, 1]
    for proba, y in ((BOTH, NAMES), (frame, NAMES), (P, NAMES), (P, Y)):
        fitted = make().fit(proba, y)
        assert fitted.classes_.tolist() == (["no", "yes"] if y is NAMES else [0, 1])
        for new in (BOTH, P, P.tolist()) if y is Y else (BOTH, P, frame):
            np.testing.assert_array_equal(fitted.predict_proba(new), expected)
            np.testing.assert_array_equal(calibrated(fitted, new).proba, expected)


def test_regions_take_names_and_frames(frame, tmp_path):
    X = pd.DataFrame({"x": P})
    known = HeterogeneousCalibrator().fit(BOTH, Y, X).predict_proba(BOTH, X)
    fitted = HeterogeneousCalibrator().fit(frame, NAMES, X)
    np.testing.assert_array_equal(fitted.predict_proba(frame, X), known)
    save_calibrator(fitted, tmp_path / "regions.kdcal")
    loaded = load_calibrator(tmp_path / "regions.kdcal")
    assert loaded.card.features == ("x",)
    np.testing.assert_array_equal(loaded.predict_proba(frame, X), known)


def test_the_names_of_the_fit_decide_the_order_of_later_frames():
    fit = pd.DataFrame({"p0": 1 - P, "p1": P})
    fitted = TemperatureScaling().fit(fit, Y)
    np.testing.assert_array_equal(
        fitted.predict_proba(fit[["p1", "p0"]]), fitted.predict_proba(BOTH)
    )
    unnamed = fit.set_axis(["a", "b"], axis=1)
    np.testing.assert_array_equal(fitted.predict_proba(unnamed), fitted.predict_proba(BOTH))
    with pytest.raises(InputError, match="first column of probabilities is named 'p1'"):
        fitted.predict_proba(fit.set_axis(["p1", "p2"], axis=1))
    fitted.fit(BOTH, Y)
    assert not hasattr(fitted, "column_names_")


def test_files_keep_names(tmp_path, frame):
    fitted = TemperatureScaling().fit(frame, NAMES)
    card = make_card("sts", fitted, classes=("no", "yes"), data={})
    save_calibrator(fitted, tmp_path / "one.kdcal", card)
    loaded = load_calibrator(tmp_path / "one.kdcal")
    assert loaded.calibrator.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(loaded.predict_proba(frame), fitted.predict_proba(BOTH))
    save_calibrator(fitted, tmp_path / "own.kdcal")
    own = load_calibrator(tmp_path / "own.kdcal").card
    assert (own.key, own.classes, own.title) == ("sts", ("no", "yes"), card.title)
    fitted.labels_ = ("no", "no")
    with pytest.raises(InputError, match="labels_"):
        save_calibrator(fitted, tmp_path / "two.kdcal", card)


def test_columns_include_classes_without_rows():
    proba = pd.DataFrame({"cow": [0.1, 0.2], "ant": [0.5, 0.2], "bee": [0.4, 0.6]})
    stated, y, classes = check_rows(proba, ["cow", "bee"])
    assert classes == ("ant", "bee", "cow")
    assert y.tolist() == [2, 1]
    assert stated[:, 2].tolist() == [0.1, 0.2]
    with pytest.raises(InputError, match=r"3 columns of probabilities for 2 classes \(bee and cow"):
        check_rows(proba.to_numpy(), ["cow", "bee"])


def test_text_is_sorted_as_numpy_sorts_it():
    assert check_rows([0.5, 0.5], ["c9", "c10"])[2] == ("c10", "c9")
    assert check_rows([0.5, 0.5], ["9", "10"])[2] == ("10", "9")


def test_numbers_in_the_names_of_columns():
    by_number = pd.DataFrame({1: P, 0: 1 - P})
    np.testing.assert_array_equal(check_rows(by_number, Y)[0], check_rows(BOTH, Y)[0])
    counted_from_one = pd.DataFrame({"1": 1 - P, "2": P})
    np.testing.assert_array_equal(check_rows(counted_from_one, Y)[0], check_rows(BOTH, Y)[0])


@pytest.mark.parametrize(
    ("proba", "y", "words"),
    [
        (pd.DataFrame({"yes": P, "rest": 1 - P}), NAMES, "first column.*'yes'.*'no'"),
        (pd.Series(P, name="no"), NAMES, "The column .*'no'.*'yes'"),
        ([0.1, 1.2], ["a", "b"], "below 0 or above 1"),
        ([0.1, None], ["a", "b"], "missing"),
        ([0.1, 0.2, 0.3], ["a", "b", "c"], "single column"),
        ([0.1, 0.2], ["a", None], "A label is missing"),
        ([0.1, 0.2], ["a", "a"], "All rows are of one class, 'a'"),
        ([[0.1, 0.9]], ["a", "b"], "2 labels, but 1 row"),
    ],
)
def test_what_contradicts_is_refused(proba, y, words):
    with pytest.raises(InputError, match=words):
        check_rows(proba, y)
