"""Exported programs made to harm: nothing in them runs, and each is told apart from a good one."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import zipfile

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.models.torch_model import load

torch = pytest.importorskip("torch")
nn = torch.nn

MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
SAMPLES = "data/sample_inputs/model.pt"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
        self.scale = torch.linspace(0.5, 2, 4)

    def forward(self, x):
        return self.layers(x.reshape(x.size(0), 4) * self.scale)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The files of a good archive, without its folder."""
    path = tmp_path_factory.mktemp("pt2") / "good.pt2"
    program = torch.export.export(
        Net().eval(), (torch.randn(5, 4),), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    )
    torch.export.save(program, path)
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


class Payload:
    """What touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def trap(tmp_path):
    """A pickle, and the file that appears if anyone opens it."""
    touched = tmp_path / "touched"
    pickle.loads(pickle.dumps(Payload(touched))).close()
    assert touched.exists(), "the trap must work"
    touched.unlink()
    return pickle.dumps(Payload(touched)), touched


def write(tmp_path, members, *, folder="m", compression=zipfile.ZIP_STORED):
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{folder}/{name}", content)
    return path


def changed(members, name, change):
    """The members with one JSON file changed in place by ``change``."""
    value = json.loads(members[name])
    change(value)
    return {**members, name: json.dumps(value).encode()}


def refused(tmp_path, members, message=None, **options):
    with pytest.raises(InputError, match=message) as caught:
        load(write(tmp_path, members, **options), name="m.pt2")
    assert caught.value.file == "m.pt2"


def graph_of(program):
    return program["graph_module"]["graph"]


X = np.random.default_rng(0).normal(size=(20, 4))


def test_the_rewritten_good_archive_loads(tmp_path, members):
    model = load(write(tmp_path, members), name="m.pt2")
    with torch.no_grad():
        want = torch.softmax(Net()(torch.tensor(X, dtype=torch.float32)), 1).numpy()
    np.testing.assert_allclose(model.predict_proba(X), want, atol=1e-6)


# Pickles


def test_sample_inputs_are_never_opened(tmp_path, members, trap):
    poison, touched = trap
    good = load(write(tmp_path, members), name="m.pt2").predict_proba(X)
    model = load(write(tmp_path, {**members, SAMPLES: poison}), name="m.pt2")
    np.testing.assert_array_equal(model.predict_proba(X), good)
    model.codes(X)
    assert not touched.exists()


@pytest.mark.parametrize(
    ("config", "folder"), [(WEIGHTS, "data/weights/"), (CONSTANTS, "data/constants/")]
)
@pytest.mark.parametrize("meta", [True, False])
def test_pickled_tensors_are_refused_unopened(tmp_path, members, trap, config, folder, meta):
    poison, touched = trap

    def pickled(value):
        entry = next(iter(value["config"].values()))
        entry["use_pickle"] = True
        entry["path_name"] = "poison"
        if not meta:
            entry["tensor_meta"] = None

    refused(tmp_path, {**changed(members, config, pickled), folder + "poison": poison}, "pickle")
    assert not touched.exists()


def test_every_member_may_be_a_pickle_and_none_is_opened(tmp_path, members, trap):
    poison, touched = trap
    for name in members:
        path = write(tmp_path, {**members, name: poison})
        with contextlib.suppress(InputError):
            load(path, name="m.pt2").predict_proba(X)
        assert not touched.exists(), name


@pytest.mark.parametrize("name", ["custom_obj_0", "opaque_obj_0"])
def test_custom_objects_are_refused(tmp_path, members, trap, name):
    poison, touched = trap

    def custom(program):
        specs = program["graph_module"]["signature"]["input_specs"]
        specs.insert(0, {"custom_obj": {"arg": {"name": "o", "class_fqn": "os.system"},
                                        "custom_obj_name": name}})  # fmt: skip

    files = changed(members, MODEL, custom)
    refused(tmp_path, {**files, f"data/constants/{name}": poison}, "custom object")

    def constant(value):
        value["config"][name] = {"path_name": name, "is_param": False, "use_pickle": True,
                                 "tensor_meta": None}  # fmt: skip

    files = changed(members, CONSTANTS, constant)
    refused(tmp_path, {**files, f"data/constants/{name}": poison}, "pickle")
    assert not touched.exists()


# Code


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "builtins.eval",
        "torch.ops.aten.from_file.default",
        "torch.ops.aten.relu.out",
        "torch.ops.aten.as_strided.default",
        "torch.ops.aten.empty.memory_format",
        "torch.ops.aten.set_.default",
        "torch.ops.aten.rand.default",
        "torch.ops.aten.relu.__class__",
        "torch.ops.aten.__class__.default",
        "torch.ops.prims.relu.default",
        "torch.ops.higher_order.cond",
        "torch.ops.my.op.default",
        "torch.ops.aten.relu.default\n",
        "_operator.pow",
        "_operator.attrgetter",
        "torch.load",
        "",
    ],
)
def test_operators_outside_the_list_are_refused(tmp_path, members, target):
    def swap(program):
        graph_of(program)["nodes"][-2]["target"] = target

    refused(tmp_path, changed(members, MODEL, swap), "not among the operators")


@pytest.mark.parametrize("depth", ["sizes", "sym_ints", "constraints"])
def test_symbolic_text_is_never_evaluated(tmp_path, members, depth):
    touched = tmp_path / "touched"
    code = f"__import__('pathlib').Path({str(touched)!r}).touch()"

    def poison(program):
        graph = graph_of(program)
        expression = {"as_expr": {"expr_str": code, "hint": {"as_int": 5}}}
        if depth == "sizes":
            graph["tensor_values"]["x"]["sizes"][0] = expression
        elif depth == "sym_ints":
            graph["sym_int_values"] = dict.fromkeys(graph["sym_int_values"], expression)
        else:
            program["range_constraints"] = {code: {"min_val": 1, "max_val": None}}
            program["guards_code"] = [code]

    model = load(write(tmp_path, changed(members, MODEL, poison)), name="m.pt2")
    model.predict_proba(X)
    assert not touched.exists()


@pytest.mark.parametrize(
    "name", ["data/aotinductor/model/a.so", "data/weights/a.so", "extra/run.dll"]
)
def test_compiled_code_is_refused(tmp_path, members, name):
    refused(tmp_path, {**members, name: b"\x7fELF"}, "compiled code")


@pytest.mark.parametrize("name", ["setup.py", "data/other", "../../etc/passwd", "models/b.json"])
def test_unexpected_members_are_refused(tmp_path, members, name):
    refused(tmp_path, {**members, name: b""}, "which no exported program has")


def test_two_folders_are_refused(tmp_path, members):
    path = write(tmp_path, members)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other/version", b"1")
    with pytest.raises(InputError, match="of one model"):
        load(path, name="m.pt2")


def test_a_member_there_twice_is_refused(tmp_path, members):
    path = write(tmp_path, members)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(f"m/{MODEL}", members[MODEL])
    with pytest.raises(InputError, match="twice"):
        load(path, name="m.pt2")


# Sizes


def test_more_operations_than_the_limit_are_refused(tmp_path, members, monkeypatch):
    monkeypatch.setenv("KDCAL_MAX_GRAPH_NODES", "2")
    refused(tmp_path, members, r"The model has \d operations; the limit is 2 operations .* Whoever")


def test_a_bomb_is_refused_unopened(tmp_path, members):
    bomb = {**members, "data/weights/weight_99": bytes(50 << 20)}
    refused(tmp_path, bomb, "claims", compression=zipfile.ZIP_DEFLATED)


def test_a_member_longer_than_it_claims_is_refused(tmp_path, members):
    path = write(tmp_path, members, compression=zipfile.ZIP_DEFLATED)
    raw = bytearray(path.read_bytes())
    size = len(members[MODEL]).to_bytes(4, "little")
    start = raw.rindex(size)  # the central directory's claim
    raw[start : start + 4] = (100).to_bytes(4, "little")
    path.write_bytes(bytes(raw))
    with pytest.raises(InputError):
        load(path, name="m.pt2")


@pytest.mark.parametrize("field", ["sizes", "strides", "storage_offset"])
def test_a_tensor_beyond_its_bytes_is_refused(tmp_path, members, field):
    def stretch(value):
        meta = value["config"]["layers.0.weight"]["tensor_meta"]
        if field == "storage_offset":
            meta[field] = {"as_int": 1}
        else:
            meta[field][0] = {"as_int": 1000}

    refused(tmp_path, changed(members, WEIGHTS, stretch), "reaches to element")


@pytest.mark.parametrize("size", [-1, 2**62, 1.5, "6", None, True])
def test_nonsense_sizes_are_refused(tmp_path, members, size):
    def stretch(value):
        value["config"]["layers.0.weight"]["tensor_meta"]["sizes"][0] = {"as_int": size}

    refused(tmp_path, changed(members, WEIGHTS, stretch))


# Damage


def test_truncated_files_are_refused_wherever_they_end(tmp_path, members):
    path = write(tmp_path, members)
    whole = path.read_bytes()
    for end in range(0, len(whole), 997):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError) as caught:
            load(path, name="m.pt2")
        assert caught.value.file == "m.pt2"


@pytest.mark.parametrize("name", [MODEL, WEIGHTS, "archive_format", "data/weights/weight_0"])
def test_a_missing_member_is_reported(tmp_path, members, name):
    refused(tmp_path, {k: v for k, v in members.items() if k != name})


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b'{"a": 1}', b"[" * 100_000])
def test_broken_json_is_refused(tmp_path, members, content):
    refused(tmp_path, {**members, MODEL: content})


def test_another_schema_version_is_reported(tmp_path, members):
    def older(program):
        program["schema_version"]["major"] = 7

    refused(tmp_path, changed(members, MODEL, older), "schema version 7, expected 8")


def _leaves(value, path=()):
    """Paths of all inner values of a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from _leaves(item, (*path, key))


def test_damage_anywhere_in_the_graph_is_an_input_error_or_harmless(tmp_path, members):
    """Each fifth place of the graph's JSON is replaced in turn; no other error comes out."""
    program = json.loads(members[MODEL])
    rng = np.random.default_rng(0)
    for path in list(_leaves(program))[::5]:
        broken = copy.deepcopy(program)
        place = broken
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = [None, -1, "x", [], {}, 1e300][rng.integers(6)]
        file = write(tmp_path, {**members, MODEL: json.dumps(broken).encode()})
        with contextlib.suppress(InputError):
            load(file, name="m.pt2").predict_proba(X)


def test_training_mode_is_refused(tmp_path):
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))
    program = torch.export.export(model.train(), (torch.randn(5, 4),))
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(InputError, match=r"training mode.*model\.eval"):
        load(tmp_path / "m.pt2", name="m.pt2")


def test_two_inputs_are_refused(tmp_path):
    class Two(nn.Module):
        def forward(self, a, b):
            return a + b

    program = torch.export.export(Two(), (torch.randn(5, 4), torch.randn(5, 4)))
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(InputError, match="takes 2 tensors"):
        load(tmp_path / "m.pt2", name="m.pt2")
