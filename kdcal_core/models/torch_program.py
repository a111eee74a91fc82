"""A PyTorch exported program (``.pt2``), read without PyTorch's loader and run from its JSON.

The archive holds JSON and raw numbers, and no pickle is read. PyTorch's loader would unpickle
sample inputs and evaluate text as symbolic expressions. This one does neither and looks operators
up in a list (`kdcal_core.models.torch_operators`).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.models.torch_operators import is_in_place, op_name, resolve
from kdcal_core.models.upload_checks import LOAD_PREDICTIONS, check_model_size, most_cells
from kdcal_core.quotas import GRAPH_NODES
from kdcal_core.store.claims import read_json
from kdcal_core.text import counted

_EXTRA = frozenset(
    f"extra/{key}.json" for key in ("classes", "feature_names", "task", "family", "outputs")
)
_EXPORT = (
    "Export it with PyTorch 2.9 or later: torch.export.save(torch.export.export(model.eval(), "
    "(example,), dynamic_shapes=({0: torch.export.Dim.AUTO},)), path)."
)
_SCHEMA_MAJOR = 8
_MOST_JSON_BYTES = 64 << 20
_MOST_JSON_VALUES = 5_000_000  # a node of the graph has about 50
# Raw weights hardly compress; JSON shrinks about tenfold.
_MOST_RATIO = 200
_MOST_MEMBERS = 100_000
# Compiled code, which kdcal never runs.
_COMPILED = ("data/aotinductor/", "executorch/", "data/mtia/", "mtia/")
_EXPECTED = (
    "data/weights/",
    "data/constants/",
    "data/sample_inputs/",
    "models/model.json",
    "extra/",
    "archive_format",
    "archive_version",
    "byteorder",
    ".data/",
    "version",
)


@dataclass(frozen=True, eq=False)
class Payload:
    """A tensor as stored in the archive: bytes and how to read them."""

    data: bytes
    meta: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Archive:
    """The safe part of an exported program.

    Attributes
    ----------
    program : dict
        The graph's JSON.
    weights, constants : dict
        Tensor name to payload.
    extra : dict
        Text of the archive's extra files.
    """

    program: dict[str, Any]
    weights: dict[str, Payload]
    constants: dict[str, Payload]
    extra: dict[str, str]


def read_archive(path: Path) -> Archive:
    """Read a ``.pt2`` file.

    Sample inputs are stored as a pickle and are never read. A program that stores weights or
    constants as pickles, custom objects or compiled code is refused.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Archive

    Raises
    ------
    InputError
    """
    with _opened(path) as archive:
        members = _members(archive)
        version = _text(archive, members, "archive_format").strip()
        if version != "pt2" or "models/model.json" not in members:
            raise InputError("The archive holds no exported program of one model", fix=_EXPORT)
        if _text(archive, members, "byteorder", "little").strip() != "little":
            raise InputError("The archive was written on a big-endian machine", fix=_EXPORT)
        program = _json(archive, members, "models/model.json")
        schema = program.get("schema_version")
        major = schema.get("major") if isinstance(schema, dict) else None
        if major != _SCHEMA_MAJOR:
            raise InputError(
                f"The exported program has schema version {major}, expected {_SCHEMA_MAJOR}",
                fix=_EXPORT,
            )
        return Archive(
            program=program,
            weights=_payloads(archive, members, "data/weights/", "model_weights_config.json"),
            constants=_payloads(archive, members, "data/constants/", "model_constants_config.json"),
            extra={
                name.removeprefix("extra/"): _text(archive, members, name)
                for name in members
                if name in _EXTRA
            },
        )


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise InputError(
            "The file is not a complete exported program",
            fix="It may have been cut off on its way; copy or export it again.",
        ) from error


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The archive's files by their name in its one folder; an unexpected file is an error."""
    infos = [info for info in archive.infolist() if not info.is_dir()]
    unpacked = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    if len(infos) > _MOST_MEMBERS or unpacked > _MOST_RATIO * max(packed, 1):
        raise InputError(
            f"The archive of {packed:,} bytes claims {unpacked:,} bytes in {len(infos):,} files",
            fix="Such an archive is damaged or made to fill the memory.",
        )
    check_model_size(unpacked, "The model's archive")
    members: dict[str, zipfile.ZipInfo] = {}
    folders = set()
    for info in infos:
        folder, _, name = info.filename.partition("/")
        folders.add(folder)
        if name in members:
            raise InputError(f"The archive holds the file {name!r} twice", fix=_EXPORT)
        members[name] = info
    if len(folders) != 1:
        raise InputError("The archive holds no exported program of one model", fix=_EXPORT)
    for name in members:
        if name.startswith(_COMPILED) or name.endswith((".so", ".dll", ".dylib", ".cubin")):
            raise InputError(
                f"The archive carries compiled code ({name!r}), which kdcal never runs",
                fix=_EXPORT,
            )
        if not name.startswith(_EXPECTED):
            raise InputError(
                f"The archive holds the file {name!r}, which no exported program has",
                fix=_EXPORT,
            )
    return members


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # zipfile stops at the claimed size, which is limited above.
    return archive.read(info)


def _text(
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    name: str,
    default: str | None = None,
) -> str:
    if name not in members:
        if default is not None:
            return default
        raise InputError(f"The archive lacks {name!r}", fix=_EXPORT)
    if members[name].file_size > _MOST_JSON_BYTES:
        raise InputError(f"The archive's {name!r} is too large", fix=_EXPORT)
    return _read(archive, members[name]).decode("utf-8")


def _json(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str
) -> dict[str, Any]:
    try:
        value = read_json(_text(archive, members, name).encode(), most_values=_MOST_JSON_VALUES)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"The archive's {name!r} is not JSON", fix=_EXPORT) from error
    if not isinstance(value, dict):
        raise InputError(f"The archive's {name!r} has the wrong content", fix=_EXPORT)
    return value


def _payloads(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], folder: str, config: str
) -> dict[str, Payload]:
    """Tensors of a folder; pickles are refused without reading them."""
    if folder + config not in members:
        return {}
    entries = _json(archive, members, folder + config).get("config")
    payloads: dict[str, Payload] = {}
    cache: dict[str, bytes] = {}
    for name, entry in (entries or {}).items():
        meta = entry.get("tensor_meta")
        if entry.get("use_pickle") is not False or not isinstance(meta, dict):
            raise InputError(
                f"The exported program needs {name!r}, which is stored as a pickle, and opening "
                "one runs whatever code its author put into it",
                fix="Export a model of plain tensors, without custom objects.",
            )
        file = folder + str(entry.get("path_name"))
        if file not in members:
            raise InputError(f"The archive lacks {file!r}", fix=_EXPORT)
        if file not in cache:
            cache[file] = _read(archive, members[file])
        payloads[name] = Payload(cache[file], meta)
    return payloads


# By the numbers of torch._export.serde.schema.ScalarType.
_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    13: "bfloat16",
}
_DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d"}
_KEYWORD = 2
_STRIDED = 7
_DENSE = "The exported program is not made of plain dense tensors"


@dataclass(frozen=True)
class Ref:
    """A value of the graph, by its name."""

    name: str


@dataclass(frozen=True, eq=False)
class Call:
    """One operation of the graph; ``writes`` holds names, lists of names, or None to drop."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    writes: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A checked graph with its weights.

    Attributes
    ----------
    calls : tuple of Call
    weights : dict
        Graph name to tensor or constant.
    input_name : str
    output_names : tuple of str
        The first holds a classifier's scores.
    row_shape : tuple of int
        Shape of one row of the input.
    batch : int or None
        The graph's fixed number of rows, if it has one.
    dtype : torch.dtype
        Number format of the input.
    writes_in_place : bool
    """

    calls: tuple[Call, ...]
    weights: dict[str, Any]
    input_name: str
    output_names: tuple[str, ...]
    row_shape: tuple[int, ...]
    batch: int | None
    dtype: Any
    writes_in_place: bool

    def __call__(self, rows: Any) -> Any:
        """The first output for a batch of rows, (n, *row_shape)."""
        return self.outputs(rows)[0]

    def outputs(self, rows: Any) -> list[Any]:
        """All outputs for a batch of rows, (n, *row_shape)."""
        values = self._values()
        self._run(rows, values, lambda result: None)
        return [values[name] for name in self.output_names]

    def _values(self) -> dict[str, Any]:
        """The values known before a run: the weights."""
        if not self.writes_in_place:
            return dict(self.weights)
        # An in-place operator may change a weight through a view, and the next batch needs it.
        return {k: v.clone() if hasattr(v, "clone") else v for k, v in self.weights.items()}

    def _run(self, rows: Any, values: dict[str, Any], see: Callable[[Any], None]) -> None:
        """Compute every value and pass it to ``see``."""
        values[self.input_name] = rows
        for call, over in zip(self.calls, self._over, strict=True):
            kwargs = {name: _resolved(arg, values) for name, arg in call.kwargs.items()}
            result = call.function(*(_resolved(arg, values) for arg in call.args), **kwargs)
            see(result)
            _store(call.writes, result, values)
            for name in over:
                values.pop(name, None)

    @cached_property
    def _over(self) -> list[list[str]]:
        """For each call, the values that no later call needs, so that their memory can be freed."""
        needed = set(self.output_names)
        over = []
        for call in reversed(self.calls):
            met = {*_names([*call.args, *call.kwargs.values()]), *_names(call.writes, str)}
            over.append(sorted(met - needed))
            needed |= met
        return over[::-1]

    def check_size(self) -> None:
        """Refuse a program that makes very large tensors of the fewest rows it takes.

        The program is run on these rows and stopped at the first tensor that is too large.

        Raises
        ------
        InputError
        """
        import torch

        n_rows = self.batch or 1

        def see(result: Any) -> None:
            made = result if isinstance(result, list | tuple) else (result,)
            cells = max((one.numel() for one in made if isinstance(one, torch.Tensor)), default=0)
            if cells > most_cells(n_rows):
                raise InputError(
                    f"The program makes a tensor of {cells:,} numbers of {counted(n_rows, 'row')}",
                    fix="The file may be malicious. If you trust it, write the model's "
                    "predictions into a table and load that instead.",
                )

        self._run(torch.zeros((n_rows, *self.row_shape), dtype=self.dtype), self._values(), see)

    def with_dropout(self) -> Program | None:
        """The same program with its dropout active; None where it has none."""
        calls = tuple(_dropping(call) for call in self.calls)
        return None if calls == self.calls else replace(self, calls=calls)


def build_program(archive: Archive) -> Program:
    """Check an archive's graph and load its weights.

    Raises
    ------
    InputError
        More than one input, operators outside the list, training mode, or tensors that reach beyond
        their bytes.
    """
    module = archive.program["graph_module"]
    graph, signature = module["graph"], module["signature"]
    GRAPH_NODES.refuse_beyond(len(graph["nodes"]), "The model", fix=LOAD_PREDICTIONS)
    calls = tuple(_calls(graph["nodes"]))
    weights, users = _inputs(archive, signature["input_specs"])
    outputs = signature["output_specs"]
    if any("user_output" not in spec for spec in outputs):
        raise InputError(
            "The program changes its own weights: it was exported in training mode",
            fix="Call model.eval() before torch.export.export.",
        )
    if len(users) != 1:
        raise InputError(
            f"The program takes {len(users)} tensors, expected one",
            fix="Export a model that takes one tensor of features.",
        )
    meta = graph["tensor_values"][users[0]]
    first, *rest = meta["sizes"]
    return Program(
        calls=calls,
        weights=weights,
        input_name=users[0],
        output_names=tuple(
            spec["user_output"]["arg"]["as_tensor"]["name"]
            for spec in outputs
            if spec is outputs[0] or "as_tensor" in spec["user_output"]["arg"]
        ),
        row_shape=tuple(_sizes(rest)),
        batch=_whole(first["as_int"]) if "as_int" in first else None,
        dtype=_dtype(meta["dtype"]),
        writes_in_place=any(is_in_place(node["target"]) for node in graph["nodes"]),
    )


def _calls(nodes: list[dict[str, Any]]) -> Iterator[Call]:
    for node in nodes:
        function = resolve(node["target"])
        if function is None:
            continue
        args, kwargs = [], {}
        for entry in node["inputs"]:
            value = _argument(entry["arg"])
            if entry["name"] in ("train", "training") and value is not False:
                raise InputError(
                    "The program was exported in training mode",
                    fix="Call model.eval() before torch.export.export.",
                )
            if entry.get("kind") == _KEYWORD:
                kwargs[entry["name"]] = value
            else:
                args.append(value)
        writes = tuple(_written(output) for output in node["outputs"])
        yield Call(function, tuple(args), kwargs, writes)


def _dropping(call: Call) -> Call:
    """A call with dropout switched on: ``dropout(input, p, train)``; other calls unchanged.

    A program exported in evaluation mode keeps its dropout in the graph, switched off.
    """
    name = op_name(call.function).removesuffix("_")
    if name not in _DROPOUTS or len(call.args) != 3 or call.args[1] == 0:
        return call
    return replace(call, args=(*call.args[:2], True))


def _argument(arg: dict[str, Any]) -> Any:
    """An operator's argument; values of the graph become :class:`Ref`."""
    import torch

    ((kind, value),) = arg.items()
    match kind:
        case "as_none":
            return None
        case "as_tensor" | "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return _reference(value)
        case "as_tensors" | "as_sym_ints" | "as_sym_floats" | "as_optional_tensors":
            return [_reference(item) for item in value]
        case "as_optional_tensor":
            return _reference(value)
        case "as_int" | "as_ints" | "as_float" | "as_floats" | "as_bool" | "as_bools" | "as_string":
            return _plain(value)
        case "as_scalar_type":
            return _dtype(value)
        case "as_memory_format":
            return getattr(torch, _MEMORY_FORMATS.get(value, "preserve_format"))
        case "as_layout" if value == _STRIDED:
            return torch.strided
        case "as_device":
            return torch.device("cpu")
    raise InputError(
        f"The exported program passes an argument of the kind {str(kind)[:40]!r}",
        fix="Export a plain classifier without branches, loops or custom objects.",
    )


def _reference(value: dict[str, Any]) -> Any:
    if "name" in value:
        return Ref(str(value["name"]))
    ((kind, item),) = value.items()
    if kind == "as_name":
        return Ref(str(item))
    if kind == "as_tensor":
        return Ref(str(item["name"]))
    return None if kind == "as_none" else _plain(item)


def _plain(value: Any) -> Any:
    # PyTorch writes floats that JSON cannot express as text.
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    if isinstance(value, bool | int | float | str):
        return value
    raise InputError("The exported program passes an argument that is not a number")


def _written(output: dict[str, Any]) -> Any:
    ((kind, value),) = output.items()
    if kind == "as_tensors":
        return [str(item["name"]) for item in value]
    if isinstance(value, dict):
        name = value.get("name", value.get("as_name"))
        return None if name is None else str(name)
    return None


def _names(arg: Any, kind: type = Ref) -> Iterator[str]:
    """Values of the graph that an argument names, at any depth; written ones are plain text."""
    if isinstance(arg, kind):
        yield arg.name if isinstance(arg, Ref) else str(arg)
    elif isinstance(arg, list | tuple):
        for one in arg:
            yield from _names(one, kind)


def _resolved(arg: Any, values: dict[str, Any]) -> Any:
    if isinstance(arg, Ref):
        return values[arg.name]
    if isinstance(arg, list):
        return [_resolved(item, values) for item in arg]
    return arg


def _store(writes: tuple[Any, ...], result: Any, values: dict[str, Any]) -> None:
    results = result if isinstance(result, tuple) and len(writes) > 1 else (result,)
    for name, value in zip(writes, results, strict=True):
        if isinstance(name, list):
            values.update(zip(name, value, strict=True))
        elif name is not None:
            values[name] = value


def _inputs(archive: Archive, specs: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Values of the graph's inputs that are in the file, and names of those that are not."""
    weights: dict[str, Any] = {}
    users: list[str] = []
    for spec in specs:
        ((kind, entry),) = spec.items()
        if kind == "user_input":
            users.append(str(entry["arg"]["as_tensor"]["name"]))
        elif kind == "constant_input":
            ((_, value),) = entry["value"].items()
            weights[str(entry["name"])] = None if "as_none" in entry["value"] else _plain(value)
        elif kind in ("parameter", "buffer", "tensor_constant"):
            name = str(entry[f"{kind}_name"])
            payload = archive.weights.get(name) or archive.constants.get(name)
            if payload is None:
                raise InputError(f"The exported program lacks its tensor {name[:80]!r}")
            weights[str(entry["arg"]["name"])] = _tensor(payload)
        else:
            raise InputError(
                "The exported program needs a custom object, which would have to be unpickled",
                fix="Export a model of plain tensors, without custom objects.",
            )
    return weights, users


def _tensor(payload: Payload) -> Any:
    """A weight from its raw bytes, after a check that it stays inside them."""
    import torch

    meta = payload.meta
    dtype, sizes, strides = _dtype(meta["dtype"]), _sizes(meta["sizes"]), _sizes(meta["strides"])
    (offset,) = _sizes([meta["storage_offset"]])
    if meta["layout"] != _STRIDED or len(sizes) != len(strides):
        raise InputError(_DENSE)
    n_stored = len(payload.data) // dtype.itemsize
    if prod(sizes) == 0:
        return torch.empty(sizes, dtype=dtype)
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if last >= n_stored:
        raise InputError(
            f"A tensor of the exported program reaches to element {last + 1:,} of {n_stored:,}",
            fix="The file is damaged; export it again.",
        )
    stored = torch.frombuffer(bytearray(payload.data), dtype=dtype, count=n_stored)
    return stored.as_strided(sizes, strides, offset)


def _sizes(entries: list[dict[str, Any]]) -> list[int]:
    if any("as_int" not in entry for entry in entries):
        raise InputError(
            "The exported program leaves a size open other than the number of rows",
            fix="Make only the first dimension dynamic when exporting.",
        )
    return [_whole(entry["as_int"]) for entry in entries]


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 40:
        raise InputError(_DENSE)
    return value


def _dtype(number: Any) -> Any:
    import torch

    if number not in _DTYPES:
        raise InputError(f"The exported program uses the number format {str(number)[:20]}, "
                         "which kdcal does not read")  # fmt: skip
    return getattr(torch, _DTYPES[number])
