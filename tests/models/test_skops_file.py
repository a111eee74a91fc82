"""A .skops file is refused, never crashing, for every fault and every trick tried here."""

from __future__ import annotations

import io
import json
import operator
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from kdcal_core import InputError
from kdcal_core.models import load_model

X, Y = load_iris(return_X_y=True)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y)


def write(path: Path, model: Any, edit: Callable[[dict[str, bytes]], None]) -> Path:
    """Dump a model and let ``edit`` change the members of its archive."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    edit(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def walk(node: Any) -> Any:
    """All entries of a schema, depth first."""
    if isinstance(node, dict):
        if "__loader__" in node:
            yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def change_schema(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, bytes]], None]:
    def edit(members: dict[str, bytes]) -> None:
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema).encode()

    return edit


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def change_array(field: str, change: Callable[[Any], Any]) -> Callable[[dict[str, bytes]], None]:
    """Change the stored array ``field`` of the first tree."""

    def edit(members: dict[str, bytes]) -> None:
        schema = json.loads(members["schema.json"])
        tree = next(n for n in walk(schema) if n["__loader__"] == "TreeNode")
        name = tree["content"]["content"][field]["file"]
        array = np.load(io.BytesIO(members[name]), allow_pickle=False).copy()
        changed = change(array)
        members[name] = npy(array if changed is None else changed)

    return edit


def put(field: str, index: int, value: Any) -> Callable[[Any], None]:
    def change(nodes: Any) -> None:
        nodes[field][index] = value

    return change


def cycle(nodes: Any) -> None:
    inner = np.flatnonzero(nodes["left_child"] != -1)
    nodes["left_child"][inner[-1]] = inner[0] + 1


HOSTILE_NODES = {
    "left child far out of range": ("nodes", put("left_child", 0, 2**40), "child index"),
    "right child one too large": ("nodes", lambda n: put("right_child", 0, len(n))(n), "child"),
    "child before the array": ("nodes", put("left_child", 0, -2), "child index"),
    "child is the root": ("nodes", put("left_child", 0, 0), "child index"),
    "one child only": ("nodes", put("left_child", 0, -1), "one child only"),
    "two parents": ("nodes", lambda n: put("left_child", 0, n["right_child"][0])(n), "two parents"),
    "a cycle": ("nodes", cycle, "two parents"),
    "feature out of range": ("nodes", put("feature", 0, 4), "feature index"),
    "feature far out of range": ("nodes", put("feature", 0, 2**40), "feature index"),
    "negative feature": ("nodes", put("feature", 0, -2), "feature index"),
    "threshold not a number": ("nodes", put("threshold", 0, np.nan), "not finite"),
    "too few nodes": ("nodes", lambda n: n[:-1], "nodes"),
    "nodes as a matrix": ("nodes", lambda n: n.reshape(1, -1), "nodes"),
    "nodes of another type": ("nodes", lambda n: np.zeros(len(n)), "nodes"),
    "values not a number": ("values", lambda v: v * np.nan, "not finite"),
    "too few values": ("values", lambda v: v[:-1], "values"),
    "values of fewer classes": ("values", lambda v: v[:, :, :2].copy(), "values"),
    "values in single precision": ("values", lambda v: v.astype(np.float32), "values"),
}


@pytest.mark.parametrize("fault", HOSTILE_NODES)
def test_a_crafted_tree_is_refused_before_it_is_built(tmp_path: Path, fault: str) -> None:
    field, change, words = HOSTILE_NODES[fault]
    path = write(tmp_path / "evil.skops", forest(), change_array(field, change))
    with pytest.raises(InputError, match=words) as caught:
        load_model(path)
    assert caught.value.file == "evil.skops"


def test_the_same_tree_crashes_the_process_without_the_check(tmp_path: Path) -> None:
    """The tests above are worth something: skops alone walks out of the array."""
    change = change_array("nodes", put("left_child", 0, 2**40))
    path = write(tmp_path / "evil.skops", forest(), change)
    code = (
        "import numpy as np\n"
        "from kdcal_core.skops_library import skops\n"
        f"m = skops.io.load({str(path)!r}, trusted=['sklearn.tree._tree.Tree'])\n"
        "m.predict_proba(np.zeros((5, 4)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode < 0


def set_tree_number(field: str, value: int) -> Callable[[dict[str, Any]], None]:
    def change(schema: dict[str, Any]) -> None:
        tree = next(n for n in walk(schema) if n["__loader__"] == "TreeNode")
        tree["content"]["content"][field]["content"] = json.dumps(value)

    return change


def set_tree_argument(position: int, value: int) -> Callable[[dict[str, Any]], None]:
    def change(schema: dict[str, Any]) -> None:
        tree = next(n for n in walk(schema) if n["__loader__"] == "TreeNode")
        tree["__reduce__"]["args"]["content"][position]["content"] = json.dumps(value)

    return change


def set_attribute(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(schema: dict[str, Any]) -> None:
        schema["content"]["content"][name]["content"] = json.dumps(value)

    return change


def drop_tree(schema: dict[str, Any]) -> None:
    schema["content"]["content"]["estimators_"]["content"].pop()


@pytest.mark.parametrize(
    "change",
    [
        set_tree_number("node_count", 10_000_000),
        set_tree_number("node_count", 2**70),
        set_tree_number("max_depth", -1),
        set_tree_argument(0, 3),
        set_tree_argument(0, 40),
        set_tree_argument(2, 7),
        set_attribute("n_features_in_", 400),
        set_attribute("n_classes_", 2),
        set_attribute("n_estimators", 3),
        drop_tree,
    ],
)
def test_sizes_that_disagree_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    with pytest.raises(InputError):
        load_model(write(tmp_path / "evil.skops", forest(), change_schema(change)))


def replace_first(new: dict[str, Any], name: str = "max_depth") -> Callable[[dict[str, Any]], None]:
    def change(schema: dict[str, Any]) -> None:
        schema["content"]["content"][name] = new

    return change


EMPTY_TUPLE = {
    "__class__": "tuple",
    "__module__": "builtins",
    "__loader__": "TupleNode",
    "content": [],
}
CALLABLES = [
    {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
    {"__class__": "system", "__module__": "os", "__loader__": "TypeNode"},
    {"__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode"},
    {
        "__class__": "methodcaller",
        "__module__": "operator",
        "__loader__": "OperatorFuncNode",
        "attrs": EMPTY_TUPLE,
    },
    {
        "__class__": "Path",
        "__module__": "pathlib",
        "__loader__": "ConstructorFromReduceNode",
        "content": EMPTY_TUPLE,
    },
    # harmless for skops, but nothing callable has a place in a model
    {"__class__": "exp", "__module__": "numpy", "__loader__": "FunctionNode"},
    # a kind of entry that may build other types than this one
    {"__class__": "list", "__module__": "builtins", "__loader__": "TypeNode"},
    {"__class__": "Tree", "__module__": "sklearn.tree._tree", "__loader__": "ObjectNode"},
]


@pytest.mark.parametrize("entry", CALLABLES)
def test_what_could_be_called_is_refused_and_named(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = write(tmp_path / "evil.skops", forest(), change_schema(replace_first(entry)))
    with pytest.raises(InputError, match="types that kdcal does not open") as caught:
        load_model(path)
    assert f"{entry['__module__']}.{entry['__class__']}" in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [
        SVC().fit(X, Y),
        KMeans(2, n_init=1).fit(X),
        make_pipeline(FunctionTransformer(np.log1p), DecisionTreeClassifier()).fit(X, Y),
        make_pipeline(FunctionTransformer(operator.itemgetter(slice(2))), DecisionTreeClassifier()),
    ],
)
def test_other_models_are_refused_by_name(tmp_path: Path, model: Any) -> None:
    with pytest.raises(InputError):
        load_model(write(tmp_path / "model.skops", model, lambda _: None))


def test_ids_cannot_make_one_entry_stand_in_for_another(tmp_path: Path) -> None:
    def change(schema: dict[str, Any]) -> None:
        fields = schema["content"]["content"]
        # skops would put the list of trees where the number of features is
        fields["n_features_in_"]["__id__"] = fields["estimators_"]["__id__"]

    path = write(tmp_path / "model.skops", forest(), change_schema(change))
    np.testing.assert_array_equal(load_model(path).predict_proba(X), forest().predict_proba(X))

    def cached(schema: dict[str, Any]) -> None:
        schema["content"]["content"]["n_features_in_"]["__loader__"] = "CachedNode"

    with pytest.raises(InputError, match="CachedNode"):
        load_model(write(tmp_path / "evil.skops", forest(), change_schema(cached)))


@pytest.mark.parametrize("protocol", [0, 1, 3, True, "2", None])
def test_other_protocols_are_refused(tmp_path: Path, protocol: Any) -> None:
    change = change_schema(lambda schema: schema.update(protocol=protocol))
    with pytest.raises(InputError, match="version"):
        load_model(write(tmp_path / "old.skops", forest(), change))


def first_array(members: dict[str, bytes]) -> str:
    return next(name for name in members if name.endswith(".npy"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy(np.array([{"a": 1}], dtype=object)), "Python objects"),
        (npy(np.zeros(4))[:-1], "not have the size"),
        (npy(np.zeros(4)) + b"x", "not have the size"),
        (npy(np.zeros(4)).replace(b"(4,)", b"(9,)"), "not have the size"),
        (b"\x80\x04N.", "cannot be read"),
        (b"PK\x03\x04", "cannot be read"),
        (b"\x93NUMPY\x01\x00\x46\x00{'descr': ", "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_broken_arrays_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    def edit(members: dict[str, bytes]) -> None:
        members[first_array(members)] = content

    with pytest.raises(InputError, match=words):
        load_model(write(tmp_path / "evil.skops", forest(), edit))


def test_a_missing_array_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.skops", forest(), lambda m: m.pop(first_array(m)) and None)
    with pytest.raises(InputError, match="missing"):
        load_model(path)


def test_a_zip_bomb_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "bomb.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", "{}")
        with archive.open("zeros.npy", "w", force_zip64=True) as member:
            for _ in range(40):
                member.write(bytes(2**20))
    with pytest.raises(InputError, match=r"claims 2 members of 41,943,042 bytes"):
        load_model(path)


def test_a_claim_of_two_gigabytes_in_a_tiny_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "claim.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24  # uncompressed size in the directory
    content[at : at + 4] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"2,147,483,648 bytes"):
        load_model(path)


def test_deep_and_senseless_schemas_are_refused(tmp_path: Path) -> None:
    nest: dict[str, Any] = dict(EMPTY_TUPLE)
    for _ in range(100):
        nest = {**EMPTY_TUPLE, "content": [nest]}
    for schema in (
        b"[]",
        b"{}",
        b"{",
        b"[" * 100_000,
        json.dumps({**nest, "protocol": 2}).encode(),
        json.dumps({"protocol": 2, "__class__": [], "__module__": 1, "__loader__": {}}).encode(),
    ):
        path = write(
            tmp_path / "m.skops", forest(), lambda m, s=schema: m.update({"schema.json": s})
        )
        with pytest.raises(InputError):
            load_model(path)


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.skops", forest(), lambda _: None)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(InputError, match="two members"):
        load_model(path)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("left", 2**31, "child index"),
        ("right", 0, "child index"),
        ("feature_idx", 4, "feature index"),
        ("feature_idx", -1, "feature index"),
        ("value", np.inf, "not finite"),
        ("is_categorical", 1, "categories"),
    ],
)
def test_a_crafted_histogram_tree_is_refused(
    tmp_path: Path, field: str, value: Any, words: str
) -> None:
    model = HistGradientBoostingClassifier(max_iter=2, max_depth=2).fit(X, Y)
    model._predictors[1][0].nodes[field][0] = value
    with pytest.raises(InputError, match=words):
        load_model(write(tmp_path / "evil.skops", model, lambda _: None))


def test_histogram_boosting_with_categories_is_refused(tmp_path: Path) -> None:
    rows = np.column_stack([X, Y])
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features=[4]).fit(rows, Y)
    with pytest.raises(InputError):
        load_model(write(tmp_path / "m.skops", model, lambda _: None))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "estimators_", m.estimators_[:, :2]),
        lambda m: setattr(m, "n_estimators_", 5),
        lambda m: setattr(m, "n_features_in_", 9),
        lambda m: setattr(m._loss, "n_classes", 9),
        lambda m: setattr(m, "init_", forest()),
    ],
)
def test_boosting_whose_parts_disagree_is_refused(
    tmp_path: Path, change: Callable[[Any], None]
) -> None:
    model = GradientBoostingClassifier(n_estimators=2, max_depth=1).fit(X, Y)
    change(model)
    with pytest.raises(InputError):
        load_model(write(tmp_path / "evil.skops", model, lambda _: None))


def test_an_encoder_that_claims_a_narrower_matrix_is_refused(tmp_path: Path) -> None:
    rows = np.array([["a"], ["b"], ["c"]] * 4, dtype=object)
    encoder = OneHotEncoder(sparse_output=False)
    columns = ColumnTransformer([("code", encoder, [0])])
    model = make_pipeline(columns, DecisionTreeClassifier()).fit(rows, [0, 1, 0] * 4)
    fine = write(tmp_path / "fine.skops", model, lambda _: None)
    np.testing.assert_array_equal(load_model(fine).predict_proba(rows), model.predict_proba(rows))
    columns.named_transformers_["code"]._n_features_outs = [1]
    with pytest.raises(InputError, match="OneHotEncoder"):
        load_model(write(tmp_path / "evil.skops", model, lambda _: None))


def test_an_unfitted_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not fitted"):
        load_model(write(tmp_path / "m.skops", RandomForestClassifier(2), lambda _: None))


def test_the_file_decides_nothing_about_threads(tmp_path: Path) -> None:
    model = ExtraTreesClassifier(2, max_depth=1, n_jobs=-1, verbose=3)
    path = tmp_path / "m.skops"
    skops.io.dump(model.fit(X, Y), path)
    loaded = load_model(path)._model  # type: ignore[attr-defined]
    assert (loaded.n_jobs, loaded.verbose) == (None, 0)


def test_a_model_of_two_targets_is_refused_in_plain_words(tmp_path: Path) -> None:
    rows = np.arange(20.0).reshape(10, 2)
    path = tmp_path / "two.skops"
    skops.io.dump(DecisionTreeRegressor(max_depth=2).fit(rows, rows), path)
    with pytest.raises(InputError, match="predicts 2 targets at once"):
        load_model(path, name="two.skops")


def test_the_steps_of_opening_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "forest.skops"
    skops.io.dump(RandomForestClassifier(25, random_state=0).fit(X, Y), path)
    steps: list[tuple[float, str]] = []
    load_model(path, progress=lambda share, note: steps.append((share, note)))
    shares = [share for share, _ in steps]
    assert shares == sorted(shares)
    assert [note.partition(":")[0] for _, note in steps] == [
        "Reading the file",
        "Checking the file's parts",
        *["Checking the trees"] * 3,
        "Building the model",
    ]


def test_an_opened_forest_is_the_saved_one(tmp_path: Path) -> None:
    path = tmp_path / "forest.skops"
    saved = RandomForestClassifier(5, random_state=0).fit(X, Y)
    skops.io.dump(saved, path)
    opened = load_model(path)
    np.testing.assert_array_equal(opened.predict_proba(X), saved.predict_proba(X))
    # its arrays are its own, and may be written to
    assert opened._model.classes_.flags.writeable  # type: ignore[union-attr]
