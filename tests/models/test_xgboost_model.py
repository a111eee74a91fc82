"""XGBoost models say what XGBoost says, and no crafted file reaches it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import load_iris

from kdcal_core import InputError
from kdcal_core.models import HasCodes, load_model, wrap_model
from kdcal_core.models.xgboost_model import check_model, read_document

xgboost = pytest.importorskip("xgboost")
X, Y = load_iris(return_X_y=True)


def mixed() -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=["a x", "b", "c", "d"])
    frame.loc[::7, "a x"] = np.nan
    frame["kind"] = np.random.default_rng(0).choice(["u", "v", "?"], len(X))
    return frame


def with_categories() -> pd.DataFrame:
    return mixed().astype({"kind": "category"})


def train(objective: str = "multi:softprob", **parameters: Any) -> Any:
    frame = with_categories()
    multi = objective.startswith("multi")
    target = Y if multi else (Y == 1) ^ (frame["kind"] == "?")
    parameters = {"max_depth": 3, "max_cat_to_onehot": 1, "nthread": 1} | parameters
    if multi:
        parameters["num_class"] = 3
    data = xgboost.DMatrix(frame, target, enable_categorical=True)
    return xgboost.train({"objective": objective, **parameters}, data, 4)


def own_margin(booster: Any) -> np.ndarray:
    data = xgboost.DMatrix(with_categories(), enable_categorical=True)
    return np.asarray(booster.predict(data, output_margin=True), dtype=float)


@pytest.mark.parametrize("booster_kind", ["gbtree", "dart"])
@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize(
    "objective", ["multi:softprob", "multi:softmax", "binary:logistic", "binary:logitraw"]
)
def test_probabilities_and_leaves_are_the_librarys_own(
    tmp_path: Path, objective: str, suffix: str, booster_kind: str
) -> None:
    booster = train(objective, booster=booster_kind)
    booster.save_model(tmp_path / f"m{suffix}")
    model = load_model(tmp_path / f"m{suffix}")
    assert isinstance(model, HasCodes)
    margin = own_margin(booster)
    expected = softmax(margin, axis=1) if margin.ndim == 2 else expit(margin)
    shuffled = mixed()[["kind", "d", "c", "b", "a x"]].assign(unused=1)
    proba = model.predict_proba(shuffled)
    np.testing.assert_allclose(proba if margin.ndim == 2 else proba[:, 1], expected, atol=1e-6)
    data = xgboost.DMatrix(with_categories(), enable_categorical=True)
    leaves = booster.predict(data, pred_leaf=True).reshape(len(X), -1)
    np.testing.assert_array_equal(model.codes(shuffled).leaves, leaves)
    np.testing.assert_array_equal(wrap_model(booster).predict_proba(shuffled), proba)
    assert model.feature_names == tuple(mixed().columns)
    n_classes = 3 if margin.ndim == 2 else 2
    assert model.classes == tuple(str(k) for k in range(n_classes))
    assert model.named_classes is False


def test_class_names_come_from_the_attribute(tmp_path: Path) -> None:
    booster = train("binary:logistic")
    booster.set_attr(kdcal_classes=json.dumps(["<=50K", ">50K"]))
    booster.save_model(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert (model.classes, model.named_classes) == (("<=50K", ">50K"), True)
    booster.set_attr(kdcal_classes=json.dumps(["one"]))
    booster.save_model(tmp_path / "m.json")
    with pytest.raises(InputError, match="names 1 classes"):
        load_model(tmp_path / "m.json")


def test_the_classifier_keeps_its_names_and_its_best_iteration() -> None:
    labels = np.array(["r", "s", "t"])[Y]
    model = xgboost.XGBClassifier(
        n_estimators=40, max_depth=3, learning_rate=2.0, early_stopping_rounds=2, n_jobs=1
    )
    model.fit(X[::2], Y[::2], eval_set=[(X[1::2], Y[1::2])], verbose=False)
    wrapped = wrap_model(model, classes=np.unique(labels))
    assert wrapped.classes == ("r", "s", "t")
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    np.testing.assert_allclose(wrapped.predict_proba(X), model.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(wrapped.codes(X).leaves, model.apply(X))


def test_unknown_categories_text_and_missing_columns_are_located(tmp_path: Path) -> None:
    model = wrap_model(train())
    frame = mixed()
    frame.loc[[3, 9], "kind"] = "<b>new</b>"
    with pytest.raises(InputError, match=r"'<b>new</b>'.*It knows '\?', 'u' and 'v'") as caught:
        model.predict_proba(frame)
    assert (caught.value.column, caught.value.row) == ("kind", 4)
    with pytest.raises(InputError) as caught:
        model.codes(mixed().assign(b="x"))
    assert (caught.value.column, caught.value.row) == ("b", 1)
    with pytest.raises(InputError) as caught:
        model.predict_proba(mixed().drop(columns="c"))
    assert caught.value.column == "c"
    with pytest.raises(InputError, match="5 features"):
        model.predict_proba(X)


def test_missing_categories_are_xgboosts_missing_values() -> None:
    booster = train()
    frame = mixed()
    frame.loc[::2, "kind"] = None
    own = with_categories()
    own.loc[::2, "kind"] = None
    expected = booster.predict(xgboost.DMatrix(own, enable_categorical=True))
    np.testing.assert_allclose(wrap_model(booster).predict_proba(frame), expected, atol=1e-6)


def first_tree(document: Any) -> Any:
    return document["learner"]["gradient_booster"]["model"]["trees"][0]


def put(field: str, index: int, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        first_tree(document)[field][index] = value

    return change


def put_in(path: str, value: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        *folders, last = path.split(".")
        for folder in folders:
            document = document[folder]
        document[last] = value

    return change


def split_on_category(document: Any) -> Any:
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    return next(tree for tree in trees if tree["categories_nodes"])


MODEL = "learner.gradient_booster.model"
FAULTS: dict[str, Callable[[Any], Any]] = {
    "child out of range": put("left_children", 0, 10**6),
    "child beyond 32 bits": put("right_children", 0, 2**40),
    "child is the root": put("left_children", 0, 0),
    "one child only": put("left_children", 0, -1),
    "negative child": put("right_children", 0, -7),
    "two parents": lambda d: put("left_children", 0, first_tree(d)["right_children"][0])(d),
    "child that knows another parent": put("parents", 1, 2),
    "feature out of range": put("split_indices", 0, 5),
    "negative feature": put("split_indices", 0, -1),
    "fractional child": put("left_children", 0, 1.5),
    "text for a child": put("left_children", 0, "1"),
    "threshold not a number": put("split_conditions", 0, float("nan")),
    "list too short": lambda d: first_tree(d)["split_indices"].pop(),
    "more nodes claimed": lambda d: first_tree(d)["tree_param"].update(num_nodes="4000000"),
    "leaf vectors": lambda d: first_tree(d)["tree_param"].update(size_leaf_vector="3"),
    "a missing list": lambda d: first_tree(d).pop("left_children"),
    "category start out of range": lambda d: split_on_category(d)["categories_segments"].append(9),
    "category size out of range": lambda d: split_on_category(d).update(
        categories_sizes=[10**9 for _ in split_on_category(d)["categories_sizes"]]
    ),
    "category too large": lambda d: split_on_category(d)["categories"].__setitem__(0, 2**40),
    "category split not listed": lambda d: split_on_category(d)["split_type"].__setitem__(0, 7),
    "two trees of one id": lambda d: first_tree(d).update(id=2),
    "tree id out of range": lambda d: first_tree(d).update(id=10**6),
    "class of a tree": put_in(f"{MODEL}.tree_info", [0, 1, 9] * 4),
    "too few tree classes": put_in(f"{MODEL}.tree_info", [0]),
    "iterations out of range": put_in(f"{MODEL}.iteration_indptr", [0, 3, 6, 9, 99]),
    "more trees claimed": put_in(f"{MODEL}.gbtree_model_param.num_trees", "13"),
    "category bounds": put_in(f"{MODEL}.cats.feature_segments", [0, 0, 0, 0, 0, 99]),
    "category order": put_in(f"{MODEL}.cats.sorted_idx", [7, 7, 7]),
    "fewer features": put_in("learner.learner_model_param.num_feature", "2"),
    "no features": put_in("learner.learner_model_param.num_feature", "0"),
    "more classes": put_in("learner.learner_model_param.num_class", "400"),
    "classes beyond all bounds": put_in("learner.learner_model_param.num_class", str(2**31)),
    "base score": put_in("learner.learner_model_param.base_score", "[1,2]"),
    "names": put_in("learner.feature_names", ["a"]),
    "types": put_in("learner.feature_types", [1, 2, 3, 4, 5]),
    "unknown type": put_in("learner.feature_types", ["float"] * 4 + ["text"]),
    "best iteration": put_in("learner.attributes", {"best_iteration": "99"}),
    "linear booster": put_in("learner.gradient_booster.name", "gblinear"),
    "regression": put_in("learner.objective", {"name": "reg:squarederror"}),
    "no learner": lambda d: d.pop("learner"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_crafted_model_is_refused(tmp_path: Path, fault: str) -> None:
    # only the two-class target depends on the category
    booster = train(
        "binary:logistic" if "category s" in fault or "too large" in fault else "multi:softprob"
    )
    document = json.loads(bytes(booster.save_raw("json")))
    check_model(document)
    FAULTS[fault](document)
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert caught.value.file == "evil.json"


def test_what_the_library_refuses_is_an_input_error(tmp_path: Path) -> None:
    document = json.loads(bytes(train("binary:logistic").save_raw("json")))
    document["learner"]["learner_model_param"]["base_score"] = "[2.5E0]"
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"XGBoost cannot load the model.*base_score"):
        load_model(tmp_path / "m.json")


def test_names_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    text = bytes(train().save_raw("json")).decode()
    path = tmp_path / "evil.json"
    path.write_text(text.replace('"left_children":', '"left_children":[],"left_children":', 1))
    with pytest.raises(InputError, match="twice"):
        load_model(path)


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_every_cut_is_refused(tmp_path: Path, suffix: str) -> None:
    content = bytes(train().save_raw(suffix[1:]))
    path = tmp_path / f"cut{suffix}"
    for length in (*range(1, 40), len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError):
            load_model(path)


def test_a_deep_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"a":' * 100_000)
    with pytest.raises(InputError, match="broken"):
        load_model(path)


def test_json_and_ubj_are_the_same_document() -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        if isinstance(value, list | np.ndarray):
            return [plain(entry) for entry in value]
        if isinstance(value, float | np.floating):
            return np.float32(value)
        return value

    booster = train()
    as_json, as_ubj = (read_document(bytes(booster.save_raw(kind))) for kind in ("json", "ubj"))
    for tree in as_ubj["learner"]["gradient_booster"]["model"]["trees"]:
        check_model(as_ubj)
        tree["default_left"] = tree["default_left"].astype(int)
    assert plain(as_json) == plain(as_ubj)
