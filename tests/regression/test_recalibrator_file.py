"""Recalibrator files: what is read predicts as what was fitted; damaged files are refused."""

from __future__ import annotations

import json
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from kdcal_core import load_recalibrator, save_recalibrator
from kdcal_core.distributions import Empirical, Normal
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import wrap_model
from kdcal_core.models.file_marks import ModelMark
from kdcal_core.regression import (
    DensityRecalibration,
    GlobalRecalibration,
    IsotonicRecalibration,
    LocalRecalibration,
    PooledRecalibration,
    RecommendedRecalibration,
    SpaceOfRows,
    WhereNeeded,
    recalibrator_card,
)
from kdcal_core.regression.recommended import ModelAsItIs
from kdcal_core.store.archive import archive_kind, read_archive, write_archive

KINDS = {
    "global": GlobalRecalibration,
    "isotonic": IsotonicRecalibration,
    "density": partial(DensityRecalibration, max_epochs=3),
    "local": partial(LocalRecalibration, k=20),
    "local_radius": partial(LocalRecalibration, radius=1.5, kernel="uniform"),
    "pooled": partial(PooledRecalibration, k=10),
    "where_needed": lambda: WhereNeeded(LocalRecalibration(k=20), centres=20, draws=99),
    "recommended": partial(RecommendedRecalibration, k=20, folds=2),
    "model": ModelAsItIs,
}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(-2, 2, n), "kind": rng.choice(["a", "b"], n)})
    y = frame["x"].to_numpy() + (1 + frame["x"].abs().to_numpy()) * rng.normal(size=n)
    return frame, Normal(frame["x"].to_numpy(), 0.5), y


FRAME, MODEL, Y = rows(150, 0)
NEW, FORECASTS, OUTCOMES = rows(40, 1)
SPACE = SpaceOfRows.of_inputs(FRAME, with_prediction=True)


def saved(kind, path, **about):
    with np.errstate(all="ignore"):
        fitted = KINDS[kind]().fit(MODEL, Y, SPACE.of(MODEL, FRAME))
    card = recalibrator_card(kind, fitted, family="normal", features=tuple(FRAME.columns), **about)
    save_recalibrator(fitted, path, card, SPACE)
    return fitted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
def test_what_is_read_predicts_as_what_was_fitted(kind, tmp_path):
    path = tmp_path / "one.kdcal"
    fitted = saved(kind, path)
    loaded = load_recalibrator(path)
    expected = fitted.predict(FORECASTS, SPACE.of(FORECASTS, NEW))
    found = loaded.predict(FORECASTS, NEW)
    np.testing.assert_array_equal(found.ppf([[0.05, 0.5, 0.95]]), expected.ppf([[0.05, 0.5, 0.95]]))
    np.testing.assert_array_equal(found.crps(OUTCOMES), expected.crps(OUTCOMES))
    assert (loaded.space is not None) == fitted.needs_space
    other = tmp_path / "other.kdcal"
    save_recalibrator(loaded.recalibrator, other, loaded.card, SPACE)
    assert other.read_bytes() == path.read_bytes()
    assert archive_kind(path) == "recalibrator"


def test_columns_may_come_in_any_order_and_must_all_be_there(tmp_path):
    saved("local", tmp_path / "one.kdcal")
    loaded = load_recalibrator(tmp_path / "one.kdcal")
    turned = NEW[["kind", "x"]].assign(more=1)
    np.testing.assert_array_equal(
        loaded.predict(FORECASTS, turned).mean(), loaded.predict(FORECASTS, NEW).mean()
    )
    with pytest.raises(InputError, match="lacks a column") as error:
        loaded.predict(FORECASTS, NEW[["x"]])
    assert error.value.column == "kind"
    with pytest.raises(InputError, match="inputs are missing"):
        loaded.predict(FORECASTS)


def test_a_model_scores_rows_with_the_spread_of_the_calibration_set(tmp_path):
    X = FRAME[["x"]]
    model = wrap_model(LinearRegression().fit(X, Y), task="regression")
    forecasts = Normal(model.predict(X)[:, 0], 1.7)
    fitted = GlobalRecalibration().fit(forecasts, Y)
    card = recalibrator_card("global", fitted, family="point", spread=1.7, features=("x",))
    save_recalibrator(fitted, tmp_path / "one.kdcal", card)
    loaded = load_recalibrator(tmp_path / "one.kdcal", model=model)
    expected = fitted.predict(Normal(model.predict(NEW[["x"]])[:, 0], 1.7))
    np.testing.assert_array_equal(loaded.score_rows(NEW).mean(), expected.mean())
    with pytest.raises(InputError, match="without its model"):
        load_recalibrator(tmp_path / "one.kdcal").score_rows(NEW)


def test_another_model_is_refused_and_an_unknown_one_warned_of(tmp_path):
    saved("isotonic", tmp_path / "one.kdcal", model=ModelMark("m.onnx", "a forest", "0" * 64))
    with pytest.warns(InputWarning, match=r"m\.onnx"):
        load_recalibrator(tmp_path / "one.kdcal").predict(FORECASTS)
    load_recalibrator(tmp_path / "one.kdcal", any_model=True).predict(FORECASTS)


def altered(path, change):
    """The file with another description or arrays, sealed again as an attacker would."""
    about, arrays = read_archive(path, "recalibrator")
    change(about, arrays)
    kind, version = about.pop("kind"), about.pop("version")
    write_archive(path, kind, about, arrays, version=version)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("isotonic", lambda about, arrays: arrays.update(a0=arrays["a0"][::-1])),
        ("isotonic", lambda about, arrays: about["recalibrator"]["state"].pop("knots_")),
        ("global", lambda about, arrays: arrays.update(a0=arrays["a0"] * np.nan)),
        ("local", lambda about, arrays: about["recalibrator"]["state"].update(k_=10**6)),
        ("local", lambda about, arrays: about["recalibrator"].update({"class": "Popen"})),
        ("local", lambda about, arrays: about["recalibrator"]["state"].update(fit_=1, predict=2)),
        ("local", lambda about, arrays: about["recalibrator"].update(state={})),
        ("local", lambda about, arrays: about.update(space=None)),
        ("local", lambda about, arrays: about["space"].update(name="prediction")),
        ("local", lambda about, arrays: arrays.pop("space_centre")),
        ("pooled", lambda about, arrays: about["recalibrator"]["state"].update(similar_=2.0)),
        ("where_needed", lambda about, arrays: about["recalibrator"]["state"].pop("test_")),
        ("density", lambda about, arrays: about["recalibrator"]["state"].update(curves_=None)),
        ("recommended", lambda about, arrays: about["recalibrator"]["state"].update(chosen_="x")),
        ("isotonic", lambda about, arrays: about["card"].update(family="beta")),
        ("isotonic", lambda about, arrays: about["card"].update(more=1)),
    ],
)
@pytest.mark.filterwarnings("ignore::kdcal_core.errors.InputWarning")
def test_a_file_that_contradicts_itself_is_refused(kind, change, tmp_path):
    path = tmp_path / "one.kdcal"
    saved(kind, path)
    altered(path, change)
    with pytest.raises(InputError) as error:
        load_recalibrator(path).predict(FORECASTS, NEW)
    assert error.value.file == "one.kdcal"


def test_truncated_newer_and_other_files_are_refused(tmp_path):
    path = tmp_path / "one.kdcal"
    saved("isotonic", path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-70] + whole[-64:])
    with pytest.raises(InputError):
        load_recalibrator(path)
    write_archive(path, "recalibrator", {}, {}, version=2)
    with pytest.raises(InputError, match="version 2"):
        load_recalibrator(path)
    write_archive(path, "calibrator", {}, {}, version=1)
    with pytest.raises(InputError, match="contains a calibrator, not a recalibrator"):
        load_recalibrator(path)
    path.write_bytes(b"no zip")
    assert archive_kind(path) == ""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about.json", json.dumps([1]))
    assert archive_kind(path) == ""


def test_a_space_is_demanded_where_neighbours_are_searched(tmp_path):
    fitted = LocalRecalibration(k=5).fit(MODEL, Y, FRAME[["x"]].to_numpy())
    card = recalibrator_card("local", fitted, family="normal")
    with pytest.raises(InputError, match="their space is missing"):
        save_recalibrator(fitted, tmp_path / "one.kdcal", card)


def test_samples_are_recalibrated_too(tmp_path):
    drawn = Empirical(np.random.default_rng(0).normal(size=(150, 5)))
    fitted = IsotonicRecalibration().fit(drawn, Y)
    save_recalibrator(
        fitted, tmp_path / "s.kdcal", recalibrator_card("isotonic", fitted, family="samples")
    )
    found = load_recalibrator(tmp_path / "s.kdcal").predict(drawn)
    np.testing.assert_array_equal(found.mean(), fitted.predict(drawn).mean())


OLD = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize(
    ("name", "quantiles"),
    [
        ("isotonic_v1", [2.81549309, 4.57006138, 1.34484504]),
        ("local_v1", [2.04074472, 6.40185161, 1.63382004]),
    ],
)
def test_files_of_every_version_stay_readable(name, quantiles):
    found = load_recalibrator(OLD / f"{name}.kdcal").predict(FORECASTS[:3], NEW[:3])
    np.testing.assert_allclose(found.ppf(0.9), quantiles, rtol=1e-6)
