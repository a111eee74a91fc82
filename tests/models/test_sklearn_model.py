"""scikit-learn models say what scikit-learn says: probabilities, leaves and hidden layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from kdcal_core import InputError
from kdcal_core.models import HasCodes, HasEmbedding, Model, load_model, wrap_model
from kdcal_core.partition.codes import pack_bits

X, Y = load_iris(return_X_y=True)
NAMED = np.array(["setosa", "versicolor", "virginica"])[Y]
TREES = [
    DecisionTreeClassifier(max_depth=3, random_state=0),
    RandomForestClassifier(5, max_depth=3, random_state=0),
    ExtraTreesClassifier(5, max_leaf_nodes=7, random_state=0),
    GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0),
]
OTHERS = [
    HistGradientBoostingClassifier(max_iter=4, max_depth=3, random_state=0),
    LogisticRegression(max_iter=500),
    MLPClassifier((6, 4), max_iter=20, random_state=0),
    MLPClassifier((6,), max_iter=20, activation="tanh", random_state=0, solver="sgd"),
    make_pipeline(StandardScaler(), RobustScaler(), MinMaxScaler(), MaxAbsScaler(), TREES[1]),
    make_pipeline(PowerTransformer(), QuantileTransformer(n_quantiles=9), LogisticRegression()),
    make_pipeline(SimpleImputer(), "passthrough", TREES[1]),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def through_file(model: Any, folder: Path) -> Model:
    skops.io.dump(model, folder / "model.skops")
    return load_model(folder / "model.skops")


@pytest.mark.parametrize("model", TREES + OTHERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("labels", [Y, NAMED, Y > 0], ids=["numbers", "names", "two"])
def test_probabilities_are_the_librarys_own(tmp_path: Path, model: Any, labels: Any) -> None:
    model.fit(X, labels)
    wrapped = through_file(model, tmp_path)
    np.testing.assert_allclose(
        wrapped.predict_proba(X), model.predict_proba(X), atol=1e-12, rtol=1e-12
    )
    np.testing.assert_array_equal(
        wrap_model(model).predict_proba(X), through_file(model, tmp_path).predict_proba(X)
    )
    assert wrapped.classes == tuple(str(name) for name in model.classes_.tolist())
    assert (wrapped.named_classes, wrapped.n_features, wrapped.feature_names) == (True, 4, None)


@pytest.mark.parametrize("model", TREES, ids=lambda m: type(m).__name__)
def test_leaves_are_those_of_apply(tmp_path: Path, model: Any) -> None:
    wrapped = through_file(model.fit(X, Y), tmp_path)
    assert isinstance(wrapped, HasCodes)
    assert not isinstance(wrapped, HasEmbedding)
    leaves = wrapped.codes(X).leaves
    assert leaves.dtype == np.int32
    np.testing.assert_array_equal(leaves, model.apply(X).reshape(len(X), -1))


def test_leaves_behind_preprocessing_are_those_of_the_prepared_rows(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)).fit(X, Y)
    wrapped = through_file(model, tmp_path)
    np.testing.assert_array_equal(wrapped.codes(X).leaves, model[-1].apply(model[:-1].transform(X)))
    assert wrapped.kind == "Random forest, 3 trees, with preprocessing"


@pytest.mark.parametrize("missing", [False, True])
def test_leaves_of_histogram_boosting_add_up_to_its_scores(missing: bool) -> None:
    rows = X.copy()
    if missing:
        rows[::3, 2] = np.nan
    model = HistGradientBoostingClassifier(max_iter=5, max_depth=3).fit(rows, Y)
    leaves = wrap_model(model).codes(rows).leaves.reshape(len(rows), 5, 3)
    score = np.tile(model._baseline_prediction, (len(rows), 1))
    for stage in range(5):
        for k in range(3):
            score[:, k] += model._predictors[stage][k].nodes["value"][leaves[:, stage, k]]
    np.testing.assert_allclose(score, model.decision_function(rows), atol=1e-12)


def test_hidden_layers_are_the_networks_own(tmp_path: Path) -> None:
    model = MLPClassifier((6, 4), max_iter=50, random_state=1).fit(X, Y)
    wrapped = through_file(model, tmp_path)
    assert isinstance(wrapped, HasEmbedding)
    first = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    last = np.maximum(first @ model.coefs_[1] + model.intercepts_[1], 0)
    np.testing.assert_allclose(wrapped.embed(X), last, atol=1e-12)
    expected = pack_bits([first > 0, last > 0])
    np.testing.assert_array_equal(wrapped.codes(X).words, expected.words)
    assert wrapped.codes(X).layer_widths == (6, 4)
    scores = last @ model.coefs_[2] + model.intercepts_[2]
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(wrapped.predict_proba(X), odds / odds.sum(1, keepdims=True))


def mixed() -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"] = np.random.default_rng(0).choice(["u", "v", "?"], len(X))
    frame["size"] = np.random.default_rng(1).choice(["S", "L"], len(X))
    return frame


def mixed_model() -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include=np.number)),
            ("hot", OneHotEncoder(handle_unknown="ignore", drop="if_binary"), ["kind"]),
            ("ordinal", OrdinalEncoder(), ["size"]),
        ]
    )
    forest = RandomForestClassifier(3, max_depth=3, random_state=0)
    return make_pipeline(columns, forest).fit(mixed(), NAMED)


def test_text_columns_go_through_the_encoders(tmp_path: Path) -> None:
    model, frame = mixed_model(), mixed()
    wrapped = through_file(model, tmp_path)
    assert wrapped.feature_names == ("a", "b", "c", "d", "kind", "size")
    shuffled = frame[["size", "b", "a", "kind", "d", "c"]].assign(unused="x")
    np.testing.assert_array_equal(wrapped.predict_proba(shuffled), model.predict_proba(frame))
    np.testing.assert_array_equal(
        wrapped.codes(shuffled).leaves, model[-1].apply(model[:-1].transform(frame))
    )
    np.testing.assert_array_equal(
        wrapped.predict_proba(frame.to_numpy(dtype=object)), model.predict_proba(frame)
    )
    with pytest.raises(InputError, match=r"cannot work with this table.*unknown categor"):
        wrapped.predict_proba(frame.assign(size="XXL"))
    with pytest.raises(InputError) as caught:
        wrapped.predict_proba(frame.drop(columns="kind"))
    assert caught.value.column == "kind"


def test_columns_are_taken_by_name(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "<b>c</b>", "d"])
    model = RandomForestClassifier(3, random_state=0).fit(frame, Y)
    wrapped = through_file(model, tmp_path)
    assert wrapped.feature_names == tuple(frame.columns)
    np.testing.assert_array_equal(
        wrapped.predict_proba(frame[frame.columns[::-1]]), model.predict_proba(frame)
    )
    with pytest.raises(InputError) as caught:
        wrapped.predict_proba(frame.assign(b=["text"] + [1.0] * 149))
    assert (caught.value.column, caught.value.row) == ("b", 1)


def test_missing_values_pass_where_the_model_takes_them(tmp_path: Path) -> None:
    holes = X.copy()
    holes[5, 2] = np.nan
    for model in (
        make_pipeline(SimpleImputer(), LogisticRegression(max_iter=500)),
        HistGradientBoostingClassifier(max_iter=3),
        RandomForestClassifier(3),
    ):
        model.fit(holes, Y)
        np.testing.assert_allclose(
            through_file(model, tmp_path).predict_proba(holes), model.predict_proba(holes)
        )
    for strict in (
        LogisticRegression(max_iter=500),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(LogisticRegression()),
    ):
        with pytest.raises(InputError) as caught:
            wrap_model(strict.fit(X, Y)).predict_proba(holes)
        assert (caught.value.column, caught.value.row) == ("3", 6)


def test_whole_float_labels_are_named_like_integers() -> None:
    assert wrap_model(LogisticRegression(max_iter=500).fit(X, Y + 1.0)).classes == ("1", "2", "3")


def test_more_than_one_output_is_refused() -> None:
    with pytest.raises(InputError, match="more than one output"):
        wrap_model(RandomForestClassifier(2).fit(X, np.column_stack([Y, Y])))
