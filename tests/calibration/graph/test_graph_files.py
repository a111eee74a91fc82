"""Saved graphs and estimators: the same bytes back, and no harm from hostile files."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityGraph,
    KernelDensityNetwork,
)
from kdcal_core.calibration.graph.placement import rows_from_json, rows_to_json
from kdcal_core.errors import InputError
from kdcal_core.models import load_model


def rows(n=120, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(0, 5, n),
            "colour": rng.choice(["red", "blue", "green"], n),
            "known": rng.choice([True, False], n),
            "key": np.arange(n),
        }
    )
    frame.loc[frame.index[::7], "size"] = np.nan
    return frame, ((frame["size"] > 2) ^ (frame["colour"] == "red")).astype(int)


def pipeline():
    X, y = table()
    encode = make_column_transformer(
        (SimpleImputer(), ["size"]), (OneHotEncoder(), ["colour"]), ("passthrough", ["known"])
    )
    columns = ["size", "colour", "known"]
    return make_pipeline(encode, RandomForestClassifier(10, random_state=0)).fit(X[columns], y)


def forest(seed=0):
    return RandomForestClassifier(12, random_state=seed).fit(*rows())


CASES = {
    "forest": lambda: (KernelDensityForest(forest()), rows),
    "euclidean": lambda: (
        KernelDensityForest(
            forest(), distance="euclidean", gamma=np.array([1.0, 2.0]), prior=[0.4, 0.6]
        ),
        rows,
    ),
    "no floor": lambda: (KernelDensityForest(forest(), log_floor=-np.inf), rows),
    "ratio": lambda: (KernelDensityForest(forest(), inside="ratio"), rows),
    "standard": lambda: (KernelDensityForest(forest(), scale="standard"), rows),
    "network": lambda: (
        KernelDensityNetwork(
            MLPClassifier((9, 70), random_state=0, max_iter=900).fit(*rows()),
            output_layer="exclude",
        ),
        rows,
    ),
    "table": lambda: (KernelDensityForest(pipeline()), table),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_saved_comes_back_to_the_last_bit(case, tmp_path):
    model, draw = CASES[case]()
    model.fit(*draw(seed=1))
    model.save(tmp_path / "model.kd")
    loaded = type(model).load(tmp_path / "model.kd", model.model)
    new = draw(seed=2)[0]
    for answer in ("predict_proba", "predict", "log_density", "is_unknown", "nearest_polytope"):
        np.testing.assert_array_equal(getattr(loaded, answer)(new), getattr(model, answer)(new))
    assert loaded.predict(new).dtype == model.predict(new).dtype
    ours, theirs = loaded.get_params(deep=False), model.get_params(deep=False)
    np.testing.assert_equal({**ours, "model": 0}, {**theirs, "model": 0})
    loaded.save(tmp_path / "again.kd")
    assert (tmp_path / "again.kd").read_bytes() == (tmp_path / "model.kd").read_bytes()


def test_a_graph_comes_back_by_itself(tmp_path):
    graph = KernelDensityForest(forest()).fit(*rows(seed=1)).graph_
    for one in (graph, graph.with_settings(log_floor=-np.inf), replace(graph, blend=None)):
        one.save(tmp_path / "graph.kd")
        loaded = KernelDensityGraph.load(tmp_path / "graph.kd")
        np.testing.assert_array_equal(loaded.posterior(graph.holdout), one.posterior(graph.holdout))
        assert loaded.blend == one.blend
        assert loaded.log_floor == one.log_floor
        assert loaded.floor_quantile == one.floor_quantile


def test_only_the_models_columns_are_kept(tmp_path):
    model = KernelDensityForest(pipeline()).fit(*table(seed=1))
    model.save(tmp_path / "model.kd")
    with zipfile.ZipFile(tmp_path / "model.kd") as archive:
        probe = json.loads(archive.read("about.json"))["probe"]
    assert probe["names"] == ["size", "colour", "known"]


def test_the_same_model_passes_from_a_file_and_another_does_not(tmp_path):
    model = forest()
    KernelDensityForest(model).fit(*rows(seed=1)).save(tmp_path / "model.kd")
    skops.io.dump(model, tmp_path / "forest.skops")
    loaded = KernelDensityForest.load(tmp_path / "model.kd", load_model(tmp_path / "forest.skops"))
    assert loaded.graph_.n_polytopes > 10
    narrow = RandomForestClassifier(12, random_state=0).fit(rows()[0][:, :1], rows()[1])
    net = MLPClassifier((40,), random_state=0, max_iter=3000, tol=1e-2).fit(*rows())
    for other in (forest(seed=1), narrow, net):
        with pytest.raises(InputError, match="another model") as error:
            KernelDensityForest.load(tmp_path / "model.kd", other)
        assert error.value.file == "model.kd"


def test_a_file_of_another_kind_is_refused(tmp_path):
    model = KernelDensityForest(forest()).fit(*rows(seed=1))
    model.save(tmp_path / "model.kd")
    with pytest.raises(InputError, match="contains a KernelDensityForest"):
        KernelDensityNetwork.load(tmp_path / "model.kd", model.model)
    with pytest.raises(InputError, match="contains a KernelDensityForest"):
        KernelDensityGraph.load(tmp_path / "model.kd")
    with pytest.raises(InputError, match="cannot be opened"):
        KernelDensityGraph.load(tmp_path / "none.kd")


@pytest.mark.parametrize("value", [5, None, [], ["a", 1]])
def test_a_graph_with_a_faulty_description_is_refused(tmp_path, value):
    KernelDensityForest(forest()).fit(*rows(seed=1)).graph_.save(tmp_path / "graph.kd")
    changed = rewritten(tmp_path / "graph.kd", about={("graph", "classes"): value})
    with pytest.raises(InputError, match="contradicts itself") as error:
        KernelDensityGraph.load(changed)
    assert error.value.file == "rewritten.kd"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.kd"
    model = KernelDensityForest(forest()).fit(*rows(seed=1))
    model.save(path)
    return path, model.model


HUGE = 10**400
HOSTILE = [
    (("coordinates", "n_features"), HUGE),
    (("coordinates", "n_features"), float("inf")),
    (("coordinates", "n_features"), 10**10),
    (("coordinates", "feature_names"), ["one"]),
    (("coordinates", "categories"), [[float("inf"), ["a"]]]),
    (("labels",), {"values": [HUGE, 1], "type": "<i8"}),
    (("labels",), {"values": [-1, 300], "type": "|u1"}),
    (("labels",), {"values": [0, 0], "type": "<i8"}),
    (("labels",), {"values": [float("nan"), 1.0], "type": "<f8"}),
    (("labels",), {"values": [[0, 1], [1, 2]], "type": "<i8"}),
    (("labels",), {"values": [{}, {}], "type": "|O"}),
    (("probe", "columns"), [[HUGE], [1.0]]),
    (("layer_widths",), [float("inf")]),
]


@pytest.mark.parametrize(("place", "value"), HOSTILE)
def test_numbers_beyond_all_bounds_are_refused(saved, place, value):
    path, model = saved
    with pytest.raises(InputError) as error:
        KernelDensityForest.load(rewritten(path, about={place: value}), model)
    assert error.value.file == "rewritten.kd"


def test_variances_that_vanish_are_refused(saved):
    path, model = saved
    changed = rewritten(path, arrays={"variance_shape": lambda old: np.full_like(old, 5e-324)})
    with pytest.raises(InputError, match="contradicts itself"):
        KernelDensityForest.load(changed, model)


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1))
def test_a_truncated_file_is_refused(saved, share):
    path, model = saved
    whole = path.read_bytes()
    cut = path.with_name("cut.kd")
    cut.write_bytes(whole[: int(share * (len(whole) - 1))])
    with pytest.raises(InputError):
        KernelDensityForest.load(cut, model)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_harmless(saved, place, flip):
    path, model = saved
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= flip
    changed = path.with_name("changed.kd")
    changed.write_bytes(content)
    try:
        loaded = KernelDensityForest.load(changed, model)
    except InputError:
        return
    assert np.isfinite(loaded.predict_proba(rows()[0])).all()


def rewritten(path, *, about=None, arrays=None):
    """The file with other content: changes of the description, and arrays by name."""
    out = path.with_name("rewritten.kd")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            if name == "about.json":
                record = json.loads(source.read(name))
                for keys, value in (about or {}).items():
                    inner = record
                    for key in keys[:-1]:
                        inner = inner[key]
                    inner[keys[-1]] = value
                target.writestr(name, json.dumps(record))
            elif name.removesuffix(".npy") not in (arrays or {}):
                target.writestr(name, source.read(name))
        for name, change in (arrays or {}).items():
            if change is not None:
                with source.open(f"{name}.npy") as file:
                    array = np.lib.format.read_array(file)
                with target.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, change(array), allow_pickle=True)
    return out


def test_a_file_written_again_with_the_same_content_is_read(saved):
    path, model = saved
    same = rewritten(path, about={("version",): 1}, arrays={"prior": lambda a: a})
    assert KernelDensityForest.load(same, model).graph_.n_holdout == 36


@pytest.mark.parametrize(
    "about",
    [
        {("version",): 2},
        {("graph", "n"): 5},
        {("graph", "classes"): ["0"]},
        {("graph", "classes"): [1, 2]},
        {("graph", "gamma"): 0.017},
        {("graph", "gamma"): None},
        {("graph", "variance_floor"): 0.0},
        {("graph", "log_floor"): float("nan")},
        {("graph", "floor_quantile"): 2.0},
        {("graph",): []},
        {("graph", "blend"): [1.0]},
        {("graph", "blend"): [-1.0, 1.0]},
        {("graph", "blend"): [1.0, 21.0]},
        {("graph", "blend"): [float("nan"), 1.0]},
        {("graph", "blend"): ["1", 1.0]},
        {("graph", "blend"): 1.0},
        {("coordinates", "n_features"): 3},
        {("coordinates", "categories"): [[0, ["a"]]]},
        {("parameters", "distance"): "none"},
        {("parameters", "model"): 1},
        {("parameters", "surprise"): 1},
        {("labels", "type"): "|V8"},
        {("labels", "values"): [1, 2, 3]},
        {("layer_widths",): [4]},
        {("layer_widths",): "no"},
        {("probe", "columns"): []},
        {("probe",): None},
        {("output_layer",): "all"},
        {("output_layer",): "exclude"},
        {("fingerprint",): "0"},
    ],
)
def test_a_description_that_contradicts_the_arrays_is_refused(saved, about):
    path, model = saved
    with pytest.raises(InputError):
        KernelDensityForest.load(rewritten(path, about=about), model)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("centres", lambda a: a[:, :1]),
        ("centres", lambda a: a.astype(np.float32)),
        ("centres", lambda a: np.where(a == a, np.nan, a)),
        ("centres", None),
        ("centres", lambda a: a.astype(object)),
        ("variances", lambda a: a - 1.0),
        ("counts", lambda a: -a),
        ("counts", lambda a: a.astype(float)),
        ("exponents", lambda a: a[::-1]),
        ("class_masses", lambda a: a[:, :, :1]),
        ("class_masses", lambda a: np.full_like(a, np.inf)),
        ("prior", lambda a: a * 2),
        ("holdout_index", lambda a: a + 10**6),
        ("holdout_index", lambda a: a - 10**6),
        ("holdout_y", lambda a: a + 2),
        ("holdout_x", None),
        ("holdout_proba", None),
        ("holdout_proba", lambda a: a * 2),
        ("holdout_proba", lambda a: 2 * a - 0.5),
        ("holdout_proba", lambda a: a * np.nan),
        ("holdout_proba", lambda a: a[:-1]),
        ("holdout_tied", lambda a: a.astype(np.int64)),
        ("far_x", None),
        ("far_x", lambda a: a[:-1]),
        ("far_x", lambda a: a * np.nan),
        ("far_index", None),
        ("far_index", lambda a: a + 10**6),
        ("codes", lambda a: a[:-1]),
        ("codes", lambda a: a[:, :3]),
        ("codes", lambda a: a.astype(np.float64)),
        ("fill", lambda a: a[:1]),
        ("fill", lambda a: a * np.nan),
        ("unit", lambda a: a * 0.0),
        ("unit", lambda a: a * np.inf),
        ("unit", lambda a: a[:1]),
        ("unit", None),
        ("centre", lambda a: a * np.nan),
        ("centre", lambda a: a[:1]),
        ("numeric", lambda a: a + 5),
        ("indicators", lambda a: np.array([7])),
    ],
)
def test_an_array_that_does_not_fit_is_refused(saved, name, change):
    path, model = saved
    with pytest.raises(InputError):
        KernelDensityForest.load(rewritten(path, arrays={name: change}), model)


def test_an_array_that_says_it_is_longer_than_its_bytes_is_refused(saved):
    path, model = saved
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    out = path.with_name("long.kd")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "prior.npy":
                content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
            target.writestr(name, content)
    with pytest.raises(InputError, match="its stated length"):
        KernelDensityForest.load(out, model)


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=5), st.integers(-5, 5), st.booleans()), min_size=1
    )
)
def test_probe_rows_come_back(values):
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": np.arange(len(values)) / 3})
    again = rows_from_json(json.loads(json.dumps(rows_to_json(frame))))
    np.testing.assert_array_equal(again["b"], frame["b"])
    for old, new in zip(values, again["a"], strict=True):
        assert (pd.isna(new) and old is None) or new == old
    numbers = np.arange(6.0).reshape(3, 2) / 7
    np.testing.assert_array_equal(rows_from_json(rows_to_json(numbers)), numbers)
