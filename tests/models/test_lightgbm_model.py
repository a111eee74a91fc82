"""LightGBM models say what LightGBM says, and no crafted text reaches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from kdcal_core import InputError
from kdcal_core.models import HasCodes, load_model, wrap_model

lightgbm = pytest.importorskip("lightgbm")
X, Y = load_iris(return_X_y=True)


def mixed() -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=["a x", "b", "c", "d"])
    frame.loc[::7, "a x"] = np.nan
    frame["kind"] = np.random.default_rng(0).choice(["u", "v", "?", "é"], len(X))
    return frame


def train(objective: str = "multiclass", **parameters: Any) -> Any:
    frame = mixed().astype({"kind": "category"})
    target = Y if objective.startswith("multi") else (Y == 1) ^ (frame["kind"] == "?")
    model = lightgbm.LGBMClassifier(
        objective=objective,
        n_estimators=4,
        num_leaves=5,
        min_child_samples=5,
        min_data_per_group=5,
        cat_smooth=1,
        verbose=-1,
        n_jobs=1,
        **parameters,
    )
    return model.fit(frame, target)


@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
@pytest.mark.parametrize("objective", ["binary", "multiclass", "multiclassova"])
def test_probabilities_and_leaves_are_the_librarys_own(
    tmp_path: Path, objective: str, boosting: str
) -> None:
    model = train(objective, boosting_type=boosting, subsample=0.5, subsample_freq=1)
    model.booster_.save_model(tmp_path / "m.txt")
    wrapped = load_model(tmp_path / "m.txt")
    assert isinstance(wrapped, HasCodes)
    own = mixed().astype({"kind": "category"})
    expected = model.predict_proba(own)
    shuffled = mixed()[["kind", "d", "c", "b", "a x"]].assign(unused=1)
    proba = wrapped.predict_proba(shuffled)
    np.testing.assert_allclose(proba, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    leaves = model.predict(own, pred_leaf=True).reshape(len(X), -1)
    np.testing.assert_array_equal(wrapped.codes(shuffled).leaves, leaves)
    np.testing.assert_array_equal(wrap_model(model).predict_proba(shuffled), proba)
    assert wrapped.feature_names == ("a_x", "b", "c", "d", "kind")
    assert wrapped.named_classes is False
    assert wrap_model(model).classes == tuple(str(label) for label in model.classes_)


def test_windows_line_ends_are_the_same_model(tmp_path: Path) -> None:
    text = train().booster_.model_to_string()
    (tmp_path / "unix.txt").write_bytes(text.encode())
    (tmp_path / "dos.txt").write_bytes(text.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(
        load_model(tmp_path / "dos.txt").predict_proba(mixed()),
        load_model(tmp_path / "unix.txt").predict_proba(mixed()),
    )


def test_arrays_without_names(tmp_path: Path) -> None:
    model = lightgbm.LGBMClassifier(n_estimators=2, num_leaves=3, verbose=-1, n_jobs=1).fit(X, Y)
    model.booster_.save_model(tmp_path / "m.txt")
    wrapped = load_model(tmp_path / "m.txt")
    assert (wrapped.feature_names, wrapped.n_features) == (None, 4)
    np.testing.assert_allclose(wrapped.predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_unknown_categories_and_text_are_located() -> None:
    model = wrap_model(train())
    frame = mixed()
    frame.loc[[3, 9], "kind"] = "new"
    with pytest.raises(InputError, match="'new'") as caught:
        model.predict_proba(frame)
    assert (caught.value.column, caught.value.row) == ("kind", 4)
    with pytest.raises(InputError) as caught:
        model.codes(mixed().assign(b="x"))
    assert (caught.value.column, caught.value.row) == ("b", 1)


def line(key: str, old: str | None, new: str) -> Any:
    """Change the first line of a key, and the size of the tree that it may be in."""

    def change(text: str) -> str:
        begin = text.index(f"\n{key}=") + len(key) + 2
        end = text.index("\n", begin)
        value = new if old is None else text[begin:end].replace(old, new, 1)
        changed = text[:begin] + value + text[end:]
        return changed if begin < text.index("\nTree=0") else resize(changed)

    return change


def resize(text: str) -> str:
    """Write the sizes that the trees have, as an attacker would."""
    head, _, rest = text.partition("\nTree=")
    blocks, end, tail = rest.partition("\nend of trees")
    trees = [f"Tree={tree}" for tree in f"{blocks}\n".split("\nTree=")]
    trees = [f"{tree}\n" for tree in trees[:-1]] + trees[-1:]
    sizes = " ".join(str(len(tree.encode())) for tree in trees)
    head = "\n".join(
        f"tree_sizes={sizes}" if entry.startswith("tree_sizes=") else entry
        for entry in head.split("\n")
    )
    return f"{head}\nTree={blocks}{end}{tail}"


FAULTS = {
    "child out of range": line("left_child", None, "1 999 3 -1"),
    "leaf out of range": line("left_child", None, "1 2 3 -99"),
    "cycle": line("left_child", None, "0 2 3 -1"),
    "too few children": line("right_child", None, "-2 -3"),
    "feature out of range": line("split_feature", None, "2 5 1 1"),
    "negative feature": line("split_feature", None, "-1 0 1 1"),
    "more leaves": line("num_leaves", None, "4000"),
    "no leaves": line("num_leaves", None, "0"),
    "a number only for Python": line("num_leaves", None, "5_0"),
    "a number beyond 64 bits": line("num_leaves", None, "9" * 30),
    "values not numbers": line("leaf_value", None, "nan nan nan nan nan"),
    "values as text": line("leaf_value", None, "a b c d e"),
    "threshold not a number": line("threshold", None, "nan nan nan nan"),
    "linear leaves": line("is_linear", None, "1"),
    "decision type": line("decision_type", None, "99 2 2 2"),
    "category split without categories": line("decision_type", None, "1 1 1 1"),
    "more categories": line("num_cat", None, "9"),
    "wrong sizes": line("tree_sizes", None, "1 2 3"),
    "negative size": line("tree_sizes", "5", "-5"),
    "size beyond the text": line("tree_sizes", "5", "55555"),
    "more features": line("max_feature_idx", None, "9"),
    "features beyond all bounds": line("max_feature_idx", None, str(2**31)),
    "other classes": line("num_class", None, "2"),
    "trees of an iteration": line("num_tree_per_iteration", None, "4"),
    "too few names": line("feature_names", None, "a b"),
    "regression": line("objective", None, "regression"),
    "classes of the objective": line("objective", None, "multiclass num_class:99"),
    "classes of the objective twice": line("objective", "3", "3 num_class:99"),
    "two classes in three columns": line("objective", None, "binary sigmoid:1"),
    "no objective": line("objective", None, " "),
    "key twice": lambda text: text.replace("\nnum_class=3", "\nnum_class=3\nnum_class=3"),
    "unknown key in a tree": lambda t: resize(t.replace("\nshrinkage=1", "\nrun=1\nshrinkage=1")),
    "categories not lists": lambda t: t.replace(
        "pandas_categorical:[[", 'pandas_categorical:["a",['
    ),
    "categories not JSON": lambda t: t.replace("pandas_categorical:[", "pandas_categorical:{"),
    "category column out of range": lambda t: t.replace(
        "[categorical_feature: 4]", "[categorical_feature: 9]"
    ),
    "category column unknown": lambda t: t.replace("[categorical_feature: 4]", ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_crafted_text_is_refused(tmp_path: Path, fault: str) -> None:
    text = train().booster_.model_to_string()
    assert resize(text) == text
    crafted = FAULTS[fault](text)
    assert crafted != text
    path = tmp_path / "evil.txt"
    path.write_text(crafted)
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert caught.value.file == "evil.txt"


def test_every_cut_is_refused(tmp_path: Path) -> None:
    text = train().booster_.model_to_string()
    path = tmp_path / "cut.txt"
    end = text.index("end of trees")
    for length in np.linspace(6, end, 40).astype(int):
        path.write_text(text[:length])
        with pytest.raises(InputError):
            load_model(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes(b"tree\nversion=v4\n\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        load_model(path)
