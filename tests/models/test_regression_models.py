"""Regression models of scikit-learn, XGBoost and LightGBM, against the libraries themselves."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from kdcal_core.errors import InputError
from kdcal_core.models import (
    HasCodes,
    HasDropout,
    HasLayers,
    HasMembers,
    Regressor,
    fingerprint,
    load_model,
    model_info,
    wrap_model,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(150, 3))
Y = np.exp(X[:, 0] + 0.2 * RANDOM.normal(size=150))
NEW = RANDOM.normal(size=(40, 3))

POINTS: list[Any] = [
    LinearRegression(),
    Ridge(),
    Lasso(0.01),
    ElasticNet(0.01),
    HuberRegressor(),
    SGDRegressor(random_state=0),
    PoissonRegressor(),
    GammaRegressor(),
    TweedieRegressor(power=1.5),
    TweedieRegressor(power=0, link="identity"),
    DecisionTreeRegressor(max_depth=3),
    ExtraTreeRegressor(max_depth=3, random_state=0),
    RandomForestRegressor(6, random_state=0),
    ExtraTreesRegressor(6, random_state=0),
    GradientBoostingRegressor(n_estimators=5),
    GradientBoostingRegressor(n_estimators=5, loss="huber"),
    GradientBoostingRegressor(n_estimators=5, init="zero"),
    HistGradientBoostingRegressor(max_iter=5),
    HistGradientBoostingRegressor(max_iter=5, loss="gamma"),
    HistGradientBoostingRegressor(max_iter=5, loss="poisson"),
    HistGradientBoostingRegressor(max_iter=5, loss="absolute_error"),
    MLPRegressor(hidden_layer_sizes=(7, 4), max_iter=60, random_state=0),
    MLPRegressor(hidden_layer_sizes=(7,), activation="tanh", max_iter=60, random_state=0),
    make_pipeline(StandardScaler(), LinearRegression()),
    TransformedTargetRegressor(LinearRegression(), transformer=PowerTransformer()),
    TransformedTargetRegressor(
        make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=0)),
        transformer=StandardScaler(),
    ),
]
QUANTILES: list[tuple[Any, str]] = [
    (QuantileRegressor(quantile=0.3, alpha=0), "0.3"),
    (GradientBoostingRegressor(n_estimators=5, loss="quantile", alpha=0.8), "0.8"),
    (HistGradientBoostingRegressor(max_iter=5, loss="quantile", quantile=0.2), "0.2"),
]
NORMALS: list[Any] = [
    BayesianRidge(),
    ARDRegression(),
    GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), optimizer=None),
    GaussianProcessRegressor(Matern() + WhiteKernel(), optimizer=None, normalize_y=True),
    make_pipeline(StandardScaler(), BayesianRidge()),
]


def name_of(value: Any) -> str | None:
    return type(value).__name__ if hasattr(value, "fit") else None


def saved(model: Any, folder: Path) -> Regressor:
    skops.io.dump(model, folder / "m.skops")
    wrapped = load_model(folder / "m.skops")
    assert isinstance(wrapped, Regressor)
    return wrapped


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", POINTS, ids=name_of)
def test_a_point_is_what_scikit_learn_predicts(model: Any, tmp_path: Path) -> None:
    model.fit(X, Y)
    for wrapped in (wrap_model(model, task="regression"), saved(model, tmp_path)):
        assert (wrapped.outputs, wrapped.family, wrapped.n_features) == (("mean",), "point", 3)
        np.testing.assert_allclose(wrapped.predict(NEW)[:, 0], model.predict(NEW), rtol=1e-12)
        assert wrapped.predict(NEW[:0]).shape == (0, 1)


@pytest.mark.parametrize(("model", "level"), QUANTILES, ids=name_of)
def test_a_quantile_loss_gives_a_quantile(model: Any, level: str, tmp_path: Path) -> None:
    model.fit(X, Y)
    wrapped = saved(model, tmp_path)
    assert (wrapped.outputs, wrapped.family) == ((level,), "quantiles")
    np.testing.assert_allclose(wrapped.predict(NEW)[:, 0], model.predict(NEW))


@pytest.mark.parametrize("model", NORMALS, ids=name_of)
def test_a_model_that_knows_its_spread_is_normal(model: Any, tmp_path: Path) -> None:
    model.fit(X, Y)
    wrapped = saved(model, tmp_path)
    assert (wrapped.outputs, wrapped.family) == (("mean", "std"), "normal")
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(wrapped.predict(NEW), np.column_stack([mean, std]), rtol=1e-9)
    assert wrap_model(model, task="regression", family="point").outputs == ("mean",)


def test_trees_have_leaves_and_a_forest_members() -> None:
    forest = RandomForestRegressor(4, random_state=0).fit(X, Y)
    model = wrap_model(forest)
    assert isinstance(model, HasCodes)
    assert isinstance(model, HasMembers)
    assert np.array_equal(model.codes(NEW).leaves, forest.apply(NEW))
    members = model.members(NEW)
    assert members.shape == (40, 4)
    np.testing.assert_allclose(members.mean(axis=1), forest.predict(NEW))
    boosted = HistGradientBoostingRegressor(max_iter=3).fit(X, Y)
    leaves = wrap_model(boosted).codes(NEW).leaves
    trees = [stage[0].nodes["value"] for stage in boosted._predictors]
    total = sum(tree[leaves[:, j]] for j, tree in enumerate(trees))
    np.testing.assert_allclose(boosted._baseline_prediction.item() + total, boosted.predict(NEW))
    assert not isinstance(wrap_model(boosted), HasMembers)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_layers_of_an_mlp_have_names(activation: Any) -> None:
    model = MLPRegressor(hidden_layer_sizes=(7, 4), activation=activation, max_iter=5).fit(X, Y)
    wrapped = wrap_model(model)
    assert isinstance(wrapped, HasLayers)
    assert isinstance(wrapped, HasCodes) == (activation == "relu")
    assert wrapped.layers == ("hidden 1 (7)", "hidden 2 (4)")
    bend = np.tanh if activation == "tanh" else lambda z: np.maximum(z, 0)
    first = bend(NEW @ model.coefs_[0] + model.intercepts_[0])
    np.testing.assert_allclose(wrapped.embed(NEW, "hidden 1 (7)"), first)
    last = wrapped.embed(NEW)
    assert np.array_equal(last, wrapped.embed(NEW, "hidden 2 (4)"))
    np.testing.assert_allclose((last @ model.coefs_[2] + model.intercepts_[2])[:, 0],
                               model.predict(NEW))  # fmt: skip
    with pytest.raises(InputError, match="no hidden layer 'hidden 9'"):
        wrapped.embed(NEW, "hidden 9")


def test_columns_of_text_are_prepared_by_the_model(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": X[:, 0], "cut": np.where(X[:, 1] > 0, "Ideal", "Fair")})
    columns = ColumnTransformer([("cut", OneHotEncoder(), ["cut"])], remainder="passthrough")
    model = make_pipeline(columns, GammaRegressor()).fit(frame, Y)
    wrapped = saved(model, tmp_path)
    assert wrapped.feature_names == ("x", "cut")
    assert wrapped.kind == ("Gamma regression, with preprocessing")
    shuffled = frame[["cut", "x"]].iloc[:20]
    np.testing.assert_allclose(wrapped.predict(shuffled)[:, 0], model.predict(frame.iloc[:20]))


def test_the_task_asked_for_must_be_the_models(tmp_path: Path) -> None:
    skops.io.dump(LinearRegression().fit(X, Y), tmp_path / "line.skops")
    skops.io.dump(RandomForestClassifier(2).fit(X, Y > 1), tmp_path / "forest.skops")
    with pytest.raises(InputError, match="regression model, not a classification") as caught:
        load_model(tmp_path / "line.skops", task="classification")
    assert caught.value.file == "line.skops"
    with pytest.raises(InputError, match="classification model, not a regression"):
        load_model(tmp_path / "forest.skops", task="regression")


def test_output_that_is_not_finite_names_the_row() -> None:
    model = GammaRegressor().fit(X, Y)
    rows = NEW.copy()
    rows[7] = 1e6 * np.sign(model.coef_)
    with pytest.raises(InputError, match="not finite") as caught:
        wrap_model(model).predict(rows)
    assert caught.value.row == 8


def test_model_info_and_fingerprint(tmp_path: Path) -> None:
    model = MLPRegressor(hidden_layer_sizes=(5,), max_iter=400, random_state=0).fit(X, Y)
    wrapped = saved(model, tmp_path)
    info = model_info(wrapped, tmp_path / "m.skops", "m.skops")
    assert (info.task, info.outputs, info.family, info.classes) == (
        *("regression", ("mean",), "point", ()),
    )
    assert info.layers == ("hidden 1 (5)",)
    assert not info.has_dropout
    assert info.has_codes
    assert not isinstance(wrapped, HasDropout)
    other = MLPRegressor(hidden_layer_sizes=(5,), max_iter=400, random_state=1).fit(X, Y)
    assert fingerprint(wrapped, NEW) == fingerprint(wrap_model(model), NEW)
    assert fingerprint(wrapped, NEW) != fingerprint(wrap_model(other), NEW)


def test_an_ensemble_in_memory_gives_samples() -> None:
    models = [RandomForestRegressor(2, random_state=seed).fit(X, Y) for seed in range(3)]
    wrapped = wrap_model(models)
    assert isinstance(wrapped, Regressor)
    assert isinstance(wrapped, HasMembers)
    assert (wrapped.outputs, wrapped.family) == (("1", "2", "3"), "samples")
    expected = np.column_stack([model.predict(NEW) for model in models])
    np.testing.assert_allclose(wrapped.predict(NEW), expected)
    with pytest.raises(InputError, match="Member 2 of the ensemble gives 2 outputs"):
        wrap_model([models[0], BayesianRidge().fit(X, Y)])
    with pytest.raises(InputError, match="An ensemble needs two members, not 1"):
        wrap_model(models[:1])


def test_a_crafted_forest_is_refused(tmp_path: Path) -> None:
    model = RandomForestRegressor(2, random_state=0).fit(X, Y)
    skops.io.dump(model, tmp_path / "m.skops")
    with zipfile.ZipFile(tmp_path / "m.skops") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    schema["content"]["content"]["n_features_in_"]["content"] = "9"
    with zipfile.ZipFile(tmp_path / "evil.skops", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(schema) if name == "schema.json" else content)
    with pytest.raises(InputError, match="features of a tree of the forest disagrees"):
        load_model(tmp_path / "evil.skops")


XGBOOST = ["reg:squarederror", "reg:absoluteerror", "reg:gamma", "reg:tweedie", "count:poisson"]


@pytest.mark.parametrize("objective", XGBOOST)
@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_xgboost_points(objective: str, suffix: str, tmp_path: Path) -> None:
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, objective=objective).fit(X, Y)
    path = tmp_path / f"m{suffix}"
    model.save_model(path)
    for wrapped in (load_model(path), wrap_model(model)):
        assert isinstance(wrapped, Regressor)
        assert wrapped.family == "point"
        np.testing.assert_allclose(wrapped.predict(NEW)[:, 0], model.predict(NEW))
        assert np.array_equal(wrapped.codes(NEW).leaves, model.apply(NEW))
    with pytest.raises(InputError, match="This is a regression model"):
        load_model(path, task="classification")


@pytest.mark.parametrize("levels", [[0.1, 0.5, 0.9], [0.25]])
def test_xgboost_quantiles(levels: list[float], tmp_path: Path) -> None:
    model = xgboost.XGBRegressor(
        n_estimators=4, max_depth=3, objective="reg:quantileerror", quantile_alpha=levels
    ).fit(X, Y)
    model.save_model(tmp_path / "m.json")
    wrapped = load_model(tmp_path / "m.json", task="regression")
    assert wrapped.family == "quantiles"
    np.testing.assert_allclose([float(level) for level in wrapped.outputs], levels, rtol=1e-6)
    assert wrapped.outputs == tuple(str(level) for level in levels)
    expected = model.predict(NEW).reshape(len(NEW), -1)
    np.testing.assert_allclose(wrapped.predict(NEW), expected)
    document = json.loads((tmp_path / "m.json").read_text())
    stated = document["learner"]["objective"]["quantile_loss_param"]
    for crafted in ("[0.1,1.5,0.9]", "[0.1,0.2,0.3,0.4]"):
        stated["quantile_alpha"] = crafted
        (tmp_path / "evil.json").write_text(json.dumps(document))
        with pytest.raises(InputError):
            load_model(tmp_path / "evil.json")


LIGHTGBM = [
    *("regression", "regression_l1", "huber", "fair", "poisson", "mape", "gamma", "tweedie"),
    "quantile",
]


@pytest.mark.parametrize("objective", LIGHTGBM)
def test_lightgbm(objective: str, tmp_path: Path) -> None:
    model = lightgbm.LGBMRegressor(
        n_estimators=4, num_leaves=5, min_child_samples=5, objective=objective, alpha=0.3,
        verbose=-1,
    ).fit(X, Y)  # fmt: skip
    model.booster_.save_model(tmp_path / "m.txt")
    for wrapped in (load_model(tmp_path / "m.txt"), wrap_model(model)):
        assert isinstance(wrapped, Regressor)
        if objective == "quantile":
            assert (wrapped.outputs, wrapped.family) == (("0.3",), "quantiles")
        else:
            assert (wrapped.outputs, wrapped.family) == (("mean",), "point")
        np.testing.assert_allclose(
            wrapped.predict(NEW)[:, 0], model.booster_.predict(NEW), rtol=1e-12
        )
        assert wrapped.codes(NEW).leaves.shape == (40, 4)
    with pytest.raises(InputError, match="This is a regression model"):
        load_model(tmp_path / "m.txt", task="classification")


def test_the_square_root_of_lightgbm_is_undone(tmp_path: Path) -> None:
    booster = lightgbm.train(
        {"objective": "regression", "reg_sqrt": True, "verbose": -1}, lightgbm.Dataset(X, Y), 3
    )
    booster.save_model(tmp_path / "m.txt")
    np.testing.assert_allclose(
        load_model(tmp_path / "m.txt", task="regression").predict(NEW)[:, 0], booster.predict(NEW)
    )


def test_a_function_of_the_target_is_taken_from_memory_and_refused_from_files(
    tmp_path: Path,
) -> None:
    model = TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp)
    model.fit(X, Y)
    wrapped = wrap_model(model, task="regression")
    np.testing.assert_allclose(wrapped.predict(NEW)[:, 0], model.predict(NEW))
    skops.io.dump(model, tmp_path / "m.skops")
    with pytest.raises(InputError, match=r"FunctionNode numpy\.log"):
        load_model(tmp_path / "m.skops")
