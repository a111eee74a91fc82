"""Estimators, measures and displays give the same numbers for frames of every library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kdcal_core import (
    CalibratedModel,
    HeterogeneousCalibrator,
    InputError,
    KernelDensityForest,
    MMCDisplay,
    PlattScaling,
    RegionsDisplay,
    ReliabilityDisplay,
    Roles,
    ScoredSet,
    TopLabelKDE,
    calibrated,
    calibration_error,
    compare,
    find_regions,
    fit_calibrator,
    load_calibrator,
    load_model,
    load_recalibrator,
    save_calibrator,
    save_recalibrator,
    wrap_model,
)
from kdcal_core.calibration.export import export_onnx, make_card
from kdcal_core.data import check_roles, feature_frame, guess_roles, read_columns, target_labels
from kdcal_core.diagnostics import crossed_groups, find_pit_regions, max_confidence_by_distance
from kdcal_core.regression import LocalRecalibration, Normal, SpaceOfRows, recalibrator_card
from kdcal_core.review import ReviewData

pytestmark = pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
OTHERS = {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
SAMPLES = Path(__file__).parents[1] / "sample_data"
N = 400


def as_own(given: Any) -> Any:
    return given


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Numbers with missing values, text, categories, truth values and dates, and the class."""
    rng = np.random.default_rng(0)
    age = rng.normal(50, 10, N).round(1)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.1, np.nan, age),
            "visits": rng.integers(0, 9, N),
            "ward": pd.Series(rng.choice(["A", "B", "C"], N)).where(rng.random(N) > 0.1),
            "stage": pd.Categorical(rng.choice(["II", "I", "III"], N)),
            "smokes": rng.random(N) < 0.3,
            "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 90, N), "D"),
        }
    )
    odds = (age - 50) / 5 + np.where(frame["ward"] == "B", -2.0, 0.0)
    return frame.assign(y=np.where(rng.random(N) < 1 / (1 + np.exp(-odds)), "sick", "healthy"))


@pytest.fixture(scope="module")
def proba(rows: pd.DataFrame) -> Any:
    second = 1 / (1 + np.exp(-(rows["age"].fillna(50) - 50) / 5))
    return np.column_stack([1 - second, second])


INPUTS = ["age", "visits", "ward", "stage", "smokes"]
CLASSES = ("healthy", "sick")


def numbers_of(rows: pd.DataFrame, proba: Any, given: Callable[[Any], Any]) -> dict[str, Any]:
    """What each door makes of the rows, which come as `given` makes them."""
    X = given(rows[INPUTS])
    stated = given(pd.DataFrame(proba, columns=list(CLASSES)))
    numeric = given(rows[["visits", "age"]].fillna(50.0).astype(float))
    index = given((rows[["y"]] == "sick").astype(int))["y"]
    weight = given(pd.DataFrame({"w": np.linspace(1, 2, N)}))["w"]
    found: dict[str, Any] = {}
    found["labels"] = target_labels(given(rows), Roles(target="y"), CLASSES)
    found["error"] = calibration_error(stated, index, sample_weight=weight).value
    top = TopLabelKDE().fit(stated, index, sample_weight=weight)
    found["top label"] = top.predict_confidence(stated)
    regions = HeterogeneousCalibrator("tree", min_rows=50, random_state=0)
    regions.fit(stated, index, X)
    found["regions"] = regions.predict_proba(stated, X)
    found["unseen"] = list(regions.unseen(X).values())
    scored = ScoredSet(proba, found["labels"], CLASSES, digest="", name="calibration")
    found["calibrated"] = calibrated(fit_calibrator(regions, scored, X), stated, X).proba
    review = ReviewData(scored, None, CLASSES, {"calibration": X})
    compared = compare([("regions", regions)], review, folds=2, n_boot=100)
    found["compared"] = [one.scores["log_loss"].value for one in compared.methods]
    found["search"] = find_regions(scored, X, target=1, max_depth=2).table().to_numpy(str)
    pit = np.linspace(0, 1, N)
    found["pit search"] = find_pit_regions(pit, X, max_depth=2).table().to_numpy(str)
    found["groups"] = crossed_groups(given(rows[["ward", "stage"]]))[0]
    local = LocalRecalibration(k=50).fit(Normal(np.zeros(N), np.ones(N)), weight, numeric)
    found["local"] = local.predict(Normal(np.zeros(N), np.ones(N)), numeric).mean()
    return found


@pytest.fixture(scope="module")
def expected(rows: pd.DataFrame, proba: Any) -> dict[str, Any]:
    return numbers_of(rows, proba, as_own)


@pytest.mark.parametrize("library", OTHERS)
def test_the_numbers_are_the_same(
    library: str, rows: pd.DataFrame, proba: Any, expected: dict[str, Any]
) -> None:
    found = numbers_of(rows, proba, OTHERS[library])
    for name, value in expected.items():
        assert_array_equal(found[name], value, err_msg=name)


@pytest.fixture(scope="module")
def pipeline(rows: pd.DataFrame) -> Any:
    coded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["ward", "stage"]), remainder="drop"
    )
    return make_pipeline(coded, LogisticRegression()).fit(rows[INPUTS], rows["y"])


@pytest.mark.parametrize("library", OTHERS)
def test_a_calibrated_model_takes_them(library: str, rows: pd.DataFrame, pipeline: Any) -> None:
    regions = HeterogeneousCalibrator("tree", min_rows=50, random_state=0)
    own = CalibratedModel(pipeline, regions, cv=2).fit(rows[INPUTS], rows["y"])
    given = OTHERS[library](rows)
    X = OTHERS[library](rows[INPUTS])
    other = CalibratedModel(pipeline, regions, cv=2).fit(X, given["y"])
    assert_array_equal(other.predict_proba(X), own.predict_proba(rows[INPUTS]))
    assert_array_equal(other.predict(X), own.predict(rows[INPUTS]))


@pytest.mark.parametrize("library", OTHERS)
def test_models_graphs_and_displays_take_them(library: str, rows: pd.DataFrame) -> None:
    numbers = rows[["visits", "smokes"]].astype(float)
    X, y = OTHERS[library](numbers), OTHERS[library](rows)["y"]
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(numbers, rows["y"])
    answers = wrap_model(forest).predict_proba
    swapped = OTHERS[library](numbers[["smokes", "visits"]])
    assert_array_equal(answers(swapped), answers(numbers))
    own = KernelDensityForest(forest, random_state=0).fit(numbers, rows["y"])
    other = KernelDensityForest(forest, random_state=0).fit(X, y)
    assert_array_equal(other.predict_proba(X), own.predict_proba(numbers))
    assert_array_equal(other.is_unknown(X), own.is_unknown(numbers))
    curves = [max_confidence_by_distance(answers, one, [0, 2], n=20) for one in (numbers, X)]
    assert_array_equal(curves[1].mean, curves[0].mean)
    displays: list[tuple[Any, dict[str, int]]]
    displays = [(ReliabilityDisplay, {}), (RegionsDisplay, {}), (MMCDisplay, {"n": 5})]
    for display, settings in displays:
        first = display.from_estimator(forest, numbers, rows["y"], **settings)
        assert repr(display.from_estimator(forest, X, y, **settings)) == repr(first)


@pytest.mark.parametrize("library", OTHERS)
@pytest.mark.parametrize(
    "file", ["adult/model.json", "adult_network/model.onnx", "breast_cancer/model.skops"]
)
def test_model_files_take_them(library: str, file: str) -> None:
    model = load_model(SAMPLES / file)
    X = pd.read_parquet((SAMPLES / file).with_name("evaluation.parquet")).head(50)
    assert_array_equal(model.predict_proba(OTHERS[library](X)), model.predict_proba(X))


@pytest.mark.parametrize("library", OTHERS)
def test_a_lightgbm_model_takes_categories_of_them(library: str, rows: pd.DataFrame) -> None:
    X = rows[["age", "stage"]].rename(columns={"age": "age at first visit"})
    trained = LGBMClassifier(n_estimators=5, verbose=-1).fit(X, rows["y"])
    model = wrap_model(trained)
    assert_array_equal(model.predict_proba(OTHERS[library](X)), model.predict_proba(X))


@pytest.mark.parametrize("library", OTHERS)
def test_roles_are_read_from_them(library: str, rows: pd.DataFrame) -> None:
    given = OTHERS[library](rows)
    assert guess_roles(given) == guess_roles(rows)
    assert read_columns(given) == read_columns(rows)
    roles = Roles(target="y", features=("ward", "age"))
    check_roles(given, roles, needs_outputs=False)
    assert list(feature_frame(given, roles)) == ["ward", "age"]


@pytest.mark.parametrize("library", OTHERS)
def test_a_calibrator_from_a_file_takes_them(
    library: str, rows: pd.DataFrame, proba: Any, tmp_path: Path
) -> None:
    y = (rows["y"] == "sick").astype(int)
    fitted = HeterogeneousCalibrator("tree", min_rows=50).fit(proba, y, rows[INPUTS])
    card = make_card("heterogeneous_tree", fitted, classes=CLASSES, features=INPUTS, data={})
    save_calibrator(fitted, tmp_path / "mine.kdcal", card)
    loaded = load_calibrator(tmp_path / "mine.kdcal")
    given = OTHERS[library](rows)
    assert_array_equal(loaded.predict_proba(proba, given), loaded.predict_proba(proba, rows))


def test_an_onnx_model_with_a_calibrator_is_written_from_them(tmp_path: Path) -> None:
    folder = SAMPLES / "adult_network"
    X = pd.read_parquet(folder / "evaluation.parquet").head(200)
    model = load_model(folder / "model.onnx")
    proba = model.predict_proba(X)
    platt = PlattScaling().fit(proba, proba.argmax(axis=1))
    card = make_card("platt", platt, classes=model.classes, data={})
    written = []
    for name, rows in {"pandas": X, **{name: made(X) for name, made in OTHERS.items()}}.items():
        export_onnx(platt, folder / "model.onnx", tmp_path / name, card, rows)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1] == written[2]


@pytest.mark.parametrize("library", OTHERS)
def test_a_recalibrator_from_a_file_takes_them(
    library: str, rows: pd.DataFrame, tmp_path: Path
) -> None:
    stated, X = Normal(rows["visits"].to_numpy(), 1.0), rows[["visits", "stage"]]
    given = OTHERS[library](X)
    spaces = [SpaceOfRows.of_inputs(one, with_prediction=True) for one in (X, given)]
    own, other = (space.of(stated, one) for space, one in zip(spaces, (X, given), strict=True))
    assert_array_equal(own, other)
    fitted = LocalRecalibration(k=20).fit(stated, rows["visits"], own)
    card = recalibrator_card("local", fitted, family="normal", features=tuple(X))
    save_recalibrator(fitted, tmp_path / "mine.kdcal", card, spaces[0])
    loaded = load_recalibrator(tmp_path / "mine.kdcal")
    means = [loaded.predict(stated, one).mean() for one in (X, given)]
    assert_array_equal(means[1], means[0])


@pytest.mark.parametrize("library", OTHERS)
def test_dates_are_refused_alike(library: str, rows: pd.DataFrame) -> None:
    model = wrap_model(LogisticRegression().fit(rows[["visits"]], rows["y"]))
    errors = []
    for X in (rows[["seen"]], OTHERS[library](rows[["seen"]])):
        with pytest.raises(InputError) as caught:
            model.predict_proba(X)
        errors.append(str(caught.value))
    assert errors[1] == errors[0]


TWICE = pa.table([[1.0, 2.0], [1.0, 2.0]], names=["a", "a"])
NESTED = pl.DataFrame({"a": [[1.0], [2.0]], "b": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("hostile", "said"), [(TWICE, "appear more than once"), (NESTED, "not one value a row")]
)
@pytest.mark.parametrize(
    "door",
    [
        lambda X: HeterogeneousCalibrator().fit([[0.5, 0.5]] * 2, [0, 1], X),
        lambda X: CalibratedModel(LogisticRegression()).fit(X, [0, 1]),
        lambda X: LocalRecalibration().fit(Normal([0, 0], [1, 1]), [0, 1], X),
        lambda X: RegionsDisplay.from_predictions([0, 1], [[0.5, 0.5]] * 2, X),
        lambda X: wrap_model(LogisticRegression().fit([[0], [1]], [0, 1])).predict_proba(X),
        lambda X: guess_roles(X),
    ],
)
def test_a_hostile_frame_is_one_error_at_every_door(
    door: Callable[[Any], Any], hostile: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        door(hostile)
