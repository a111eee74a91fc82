"""Pickles become files that kdcal opens, with the same probabilities, or nothing is written."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from kdcal_core import InputError
from kdcal_core.models import load_model
from kdcal_core.models.convert import convert

X, Y = load_iris(return_X_y=True)


def mixed() -> pd.DataFrame:
    kind = np.random.default_rng(0).choice(["u", "v"], len(X))
    return pd.DataFrame(X, columns=list("abcd")).assign(kind=kind)


def test_scikit_learn_from_pickle_and_joblib(tmp_path: Path) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, np.array(["a", "b", "c"])[Y])
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    joblib.dump(model, tmp_path / "m.joblib", compress=3)
    for source in ("m.pkl", "m.joblib"):
        out = tmp_path / "out" / "m.skops"
        out.parent.mkdir(exist_ok=True)
        said = convert(tmp_path / source, out)
        assert said.startswith("Wrote m.skops: Random forest, 3 trees.")
        assert "same probabilities" in said
        np.testing.assert_array_equal(load_model(out).predict_proba(X), model.predict_proba(X))
        assert [path.name for path in out.parent.iterdir()] == ["m.skops"]
        out.unlink()


def test_a_pipeline_over_text_says_what_was_not_compared(tmp_path: Path) -> None:
    columns = ColumnTransformer([("hot", OneHotEncoder(), ["kind"])], remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=2)).fit(mixed(), Y)
    joblib.dump(model, tmp_path / "m.joblib")
    assert "rows of your own" in convert(tmp_path / "m.joblib", tmp_path / "m.skops")
    wrapped = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(wrapped.predict_proba(mixed()), model.predict_proba(mixed()))


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_xgboost_keeps_its_class_names(tmp_path: Path, suffix: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=2, enable_categorical=True, n_jobs=1)
    frame = mixed().astype({"kind": "category"})
    model.fit(frame, Y)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    assert "same probabilities" in convert(tmp_path / "m.pkl", tmp_path / f"m{suffix}")
    wrapped = load_model(tmp_path / f"m{suffix}")
    assert (wrapped.classes, wrapped.named_classes) == (("0", "1", "2"), True)
    np.testing.assert_allclose(
        wrapped.predict_proba(mixed()), model.predict_proba(frame), atol=1e-6
    )


def test_lightgbm_reports_its_class_names(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    labels = np.array(["x", "y", "z"])[Y]
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1, n_jobs=1)
    model.fit(mixed().astype({"kind": "category"}), labels)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    said = convert(tmp_path / "m.pkl", tmp_path / "m.txt")
    assert "0 = x, 1 = y, 2 = z" in said
    assert "same probabilities" in said


def test_torch_needs_the_width(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    torch.save(net, tmp_path / "net.pt")
    with pytest.raises(InputError, match="--example-width"):
        convert(tmp_path / "net.pt", tmp_path / "net.pt2")
    said = convert(tmp_path / "net.pt", tmp_path / "net.pt2", example_width=4)
    assert "same probabilities" in said
    torch.save(net.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(InputError, match="weights only"):
        convert(tmp_path / "weights.pt", tmp_path / "net.pt2", example_width=4)


@pytest.mark.parametrize(
    ("model", "options", "out", "words"),
    [
        (DecisionTreeClassifier().fit(X, Y), {}, "m.onnx", r"\.skops"),
        (DecisionTreeClassifier().fit(X, Y), {"kind": "xgboost"}, "m.json", "not an XGBoost one"),
        (SVC().fit(X, Y), {}, "m.skops", "no probabilities"),
        ({"a": 1}, {}, "m.skops", "holds an object of the type dict"),
    ],
)
def test_what_cannot_be_converted_leaves_nothing(
    tmp_path: Path, model: Any, options: dict[str, Any], out: str, words: str
) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    with pytest.raises(InputError, match=words):
        convert(tmp_path / "m.pkl", tmp_path / out, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["m.pkl"]


def test_a_model_that_reads_otherwise_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    joblib.dump(clone(tree).fit(X, Y), tmp_path / "m.joblib")
    names = np.unique(Y)
    swapped = names[(np.searchsorted(names, Y) + 1) % len(names)]
    other = clone(tree).fit(X, swapped)  # the same splits with other classes: differs everywhere
    import skops.io

    dump = skops.io.dump
    monkeypatch.setattr(skops.io, "dump", lambda model, path: dump(other, path))
    with pytest.raises(InputError, match="other probabilities"):
        convert(tmp_path / "m.joblib", tmp_path / "m.skops")
    assert [path.name for path in tmp_path.iterdir()] == ["m.joblib"]


def test_a_file_that_is_no_pickle(tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_text("hello")
    with pytest.raises(InputError, match="cannot be opened as a pickle"):
        convert(tmp_path / "m.pkl", tmp_path / "m.skops")
