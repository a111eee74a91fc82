"""Formats are recognised by content, disguises are refused, and models in memory find their
adapter."""

from __future__ import annotations

import hashlib
import io
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from kdcal_core import InputError
from kdcal_core.models import (
    HasCodes,
    load_model,
    model_info,
    model_suffixes,
    refuse_pickle,
    wrap_model,
)

X, Y = load_iris(return_X_y=True)
MODEL_SUFFIXES = model_suffixes()


@pytest.fixture
def tree_file(tmp_path: Path) -> Path:
    path = tmp_path / "tree.skops"
    skops.io.dump(DecisionTreeClassifier(max_leaf_nodes=3).fit(X, Y), path)
    return path


class Bomb:
    """Leaves a trace if its pickle is ever opened."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


@pytest.mark.parametrize("suffix", [*MODEL_SUFFIXES, ".pkl", ".joblib", ".pickle", ".model"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_refused_under_every_name_and_never_opened(
    tmp_path: Path, suffix: str, protocol: int
) -> None:
    path, trace = tmp_path / f"model{suffix}", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace), protocol=protocol))
    with pytest.raises(InputError, match=r"runs whatever code.*kdcal convert model"):
        load_model(path)
    assert not trace.exists()


def test_the_refusal_names_the_exact_command() -> None:
    with pytest.raises(InputError, match=r"kdcal convert model\.pkl --out model\.skops\.$"):
        refuse_pickle("model.pkl", b"anything")
    with pytest.raises(
        InputError, match=r"kdcal convert net\.pt --example-width N --out net\.pt2\.$"
    ):
        refuse_pickle("net.pt", b"PK\x03\x04")
    with pytest.raises(InputError, match=r"'a; rm b\.pkl'"):
        refuse_pickle("a; rm b.pkl", b"")
    # the command may not overwrite its own source
    with pytest.raises(InputError, match=r"--out model_converted\.skops"):
        refuse_pickle("model.skops", b"\x80\x04")


@pytest.mark.parametrize("name", ["model.onnx", "model.skops", "model.json"])
def test_what_is_no_pickle_passes_the_refusal(name: str) -> None:
    refuse_pickle(name, b"\x08\x0a\x12\x07pytorch")


def test_a_torch_pickle_is_refused_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "net.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", b"\x80\x02}.")
        archive.writestr("net/version", b"3")
    with pytest.raises(InputError, match=r"--example-width N --out net\.pt2"):
        load_model(path)


def test_a_name_that_disagrees_with_the_content_is_refused(tree_file: Path) -> None:
    other = tree_file.rename(tree_file.with_suffix(".onnx"))
    with pytest.raises(InputError, match=r"name says ONNX model.*scikit-learn skops file"):
        load_model(other)
    with pytest.raises(InputError, match=r"'\.bin' names no model format.*skops"):
        load_model(other, name="tree.bin")


def test_the_name_given_counts_and_is_in_errors(tree_file: Path) -> None:
    stored = tree_file.rename(tree_file.with_name("upload-17"))
    assert load_model(stored, name="forest.skops").kind == "Decision tree, 3 leaves"
    with pytest.raises(InputError) as caught:
        load_model(stored, name="forest.json")
    assert caught.value.file == "forest.json"


@pytest.mark.parametrize("suffix", MODEL_SUFFIXES)
def test_empty_missing_and_senseless_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    with pytest.raises(InputError, match="cannot be opened"):
        load_model(path)
    path.touch()
    with pytest.raises(InputError, match="empty"):
        load_model(path)
    path.write_bytes(b"<html>404 not found</html>")
    with pytest.raises(InputError, match="something else"):
        load_model(path)


@given(content=st.binary(min_size=1, max_size=200), suffix=st.sampled_from(MODEL_SUFFIXES))
def test_random_bytes_are_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("random") / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load_model(path)


def test_info_shows_what_the_file_is(tree_file: Path) -> None:
    info = model_info(load_model(tree_file), tree_file, "tree.skops")
    assert info.digest == hashlib.sha256(tree_file.read_bytes()).hexdigest()
    assert (info.size_bytes, info.name) == (tree_file.stat().st_size, "tree.skops")
    assert (info.has_codes, info.has_embedding, info.n_features) == (True, False, 4)


def test_wrap_takes_models_as_they_are_and_refuses_the_rest() -> None:
    model = wrap_model(DecisionTreeClassifier().fit(X, Y), classes=["a", "b", "c"])
    assert wrap_model(model) is model
    assert model.classes == ("a", "b", "c")
    assert isinstance(model, HasCodes)
    with pytest.raises(InputError, match="An object of the type dict is not a model"):
        wrap_model({})
    with pytest.raises(InputError, match="regression model, not a classification model"):
        wrap_model(LinearRegression().fit(X, Y), task="classification")
    with pytest.raises(InputError, match="not fitted"):
        wrap_model(DecisionTreeClassifier())
    with pytest.raises(InputError, match=r"2 .*the model has 3"):
        wrap_model(DecisionTreeClassifier().fit(X, Y), classes=["a", "b"])


def test_wrap_finds_torch() -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    model = wrap_model(net, classes=["a", "b", "c"], feature_names=list("wxyz"))
    expected = torch.softmax(net(torch.tensor(X, dtype=torch.float32)), dim=1).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_the_registry_imports_no_model_library() -> None:
    code = (
        "import sys, kdcal_core.models.xgboost_model\n"
        "from kdcal_core.models import model_formats\nprint(*model_formats())\n"
        "print([m for m in ('torch', 'onnxruntime', 'xgboost', 'lightgbm', 'skops') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    order, loaded = out.stdout.splitlines()
    # whichever module was imported first
    assert order.split() == ["onnx", "skops", "lightgbm", "xgboost_json", "xgboost_ubj", "pt2"]
    assert loaded == "[]"


def test_a_broken_zip_is_reported(tmp_path: Path, tree_file: Path) -> None:
    content = tree_file.read_bytes()
    for length in (30, len(content) // 2, len(content) - 10):
        cut = tmp_path / "cut.skops"
        cut.write_bytes(content[:length])
        with pytest.raises(InputError, match="broken"):
            load_model(cut)


def test_an_archive_of_something_else_is_reported(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "hello")
    path = tmp_path / "model.skops"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="something else"):
        load_model(path)


@pytest.mark.parametrize("suffix", [".skops", ".pt2"])
def test_a_file_that_is_of_two_formats_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    with zipfile.ZipFile(path, "w") as archive:
        for member in ("schema.json", "archive_format", "models/model.json"):
            archive.writestr(member, "{}")
    with pytest.raises(InputError, match=r"kind: .*skops file and PyTorch exported program"):
        load_model(path)
