"""What an ONNX graph takes, a table turned into it, and the session that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.models.features import (
    TOO_LARGE,
    bad_value,
    column_names,
    numeric_input,
    select_columns,
)
from kdcal_core.models.onnx_cost import Cost
from kdcal_core.models.onnx_graph import Graph
from kdcal_core.models.outputs import check_feature_names
from kdcal_core.models.protocol import Features

Feed = dict[str, NDArray[Any]]

_STRING = 8
_DTYPES: dict[int, type[np.generic]] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
}  # by number of onnx.TensorProto.DataType
_MOST_FEATURES = 1 << 24


@dataclass(frozen=True)
class Slot:
    """One input of the graph: its name, the shape of one row, its type; dtype None is text."""

    name: str
    row_shape: tuple[int, ...]
    dtype: type[np.generic] | None

    @property
    def width(self) -> int:
        return prod(self.row_shape)


@dataclass(frozen=True)
class Inputs:
    """All inputs of a graph.

    Attributes
    ----------
    slots : tuple of Slot
        They take the features' columns one after the other.
    batch : int or None
        Number of rows the graph insists on.
    feature_names : tuple of str or None
    allow_missing : bool
        Whether the graph has a place for NaN.
    cost : Cost
        What one row takes in the graph.
    """

    slots: tuple[Slot, ...]
    batch: int | None
    feature_names: tuple[str, ...] | None
    allow_missing: bool
    cost: Cost = field(default_factory=Cost)

    @property
    def trial_rows(self) -> int:
        """How many rows of noise to try the graph on."""
        return self.batch or self.cost.trial_rows

    @property
    def n_features(self) -> int:
        return sum(slot.width for slot in self.slots)

    def feed(self, X: Features) -> Feed:
        """The rows as the graph's inputs.

        Raises
        ------
        InputError
            Columns missing or not of the type that the graph takes.
        """
        if all(slot.dtype is not None for slot in self.slots):
            matrix = numeric_input(
                X,
                n_features=self.n_features,
                feature_names=self.feature_names,
                allow_missing=self.allow_missing,
            )
            return self._split(matrix, self._names(X))
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X, dtype=object))
        names = self.feature_names if isinstance(X, pd.DataFrame) else None
        frame = select_columns(frame, n_features=self.n_features, feature_names=names)
        return self._split_frame(frame, self._names(frame))

    def trial(self, n_rows: int) -> Feed:
        """Rows of ordinary noise (text: empty) to try the graph on."""
        rng = np.random.default_rng(0)
        feed: Feed = {}
        for slot in self.slots:
            shape = (n_rows, *slot.row_shape)
            noise = rng.standard_normal(shape)
            if slot.dtype is None:
                feed[slot.name] = np.full(shape, "", dtype=object)
            elif np.issubdtype(slot.dtype, np.floating):
                feed[slot.name] = noise.astype(slot.dtype)
            else:
                feed[slot.name] = (noise > 0).astype(slot.dtype)
        return feed

    def _names(self, X: Features) -> tuple[str, ...]:
        return column_names(X, n_features=self.n_features, feature_names=self.feature_names)

    def _split(self, matrix: NDArray[np.float64], names: Sequence[str]) -> Feed:
        feed: Feed = {}
        start = 0
        for slot in self.slots:
            part = matrix[:, start : start + slot.width]
            feed[slot.name] = _cast(part, slot, names[start:]).reshape(-1, *slot.row_shape)
            start += slot.width
        return feed

    def _split_frame(self, frame: pd.DataFrame, names: Sequence[str]) -> Feed:
        feed: Feed = {}
        start = 0
        for slot in self.slots:
            part = frame.iloc[:, start : start + slot.width]
            if slot.dtype is None:
                values = _texts(part)
            else:
                numbers = numeric_input(
                    part, n_features=slot.width, allow_missing=self.allow_missing
                )
                values = _cast(numbers, slot, names[start:])
            feed[slot.name] = values.reshape(-1, *slot.row_shape)
            start += slot.width
        return feed


def _cast(part: NDArray[np.float64], slot: Slot, names: Sequence[str]) -> NDArray[Any]:
    assert slot.dtype is not None
    with np.errstate(over="ignore", invalid="ignore"):
        cast = part.astype(slot.dtype)
    if np.issubdtype(slot.dtype, np.floating):
        bad, what = np.isinf(cast), TOO_LARGE
    else:
        bad = cast.astype(np.float64) != part
        what = f"is not a number of the kind the model takes ({np.dtype(slot.dtype).name})"
    if bad.any():
        raise bad_value(part, bad, names, what)
    return cast


def read_inputs(graph: Graph, cost: Cost | None = None) -> Inputs:
    """What a graph takes; ``cost`` is what a row takes in it, where it is to be run.

    Raises
    ------
    InputError
        Inputs that are no tensors of numbers or text, or whose width the file leaves open.
    """
    names = graph.names("feature_names")
    open_slot_width = len(names) if names is not None and len(graph.inputs) == 1 else None
    slots, batches = [], set()
    for value in graph.inputs:
        slot, batch = _read_slot(value, open_slot_width)
        slots.append(slot)
        batches.add(batch)
    n_features = sum(slot.width for slot in slots)
    if not 0 < n_features <= _MOST_FEATURES or len(batches - {None}) > 1:
        raise InputError(
            "The model's inputs do not fit together",
            fix="A classifier takes one row per example in each of its inputs.",
        )
    if names is None and len(slots) > 1 and all(slot.width == 1 for slot in slots):
        names = tuple(slot.name for slot in slots)
    return Inputs(
        slots=tuple(slots),
        batch=next(iter(batches - {None}), None),
        feature_names=check_feature_names(names, n_features),
        allow_missing=_takes_missing(graph),
        cost=cost or Cost(),
    )


def _read_slot(value: Any, open_width: int | None) -> tuple[Slot, int | None]:
    kind = value.type.tensor_type
    dtype = _DTYPES.get(kind.elem_type)
    if dtype is None and kind.elem_type != _STRING:
        raise InputError(
            f"The model's input {value.name!r} is no tensor of numbers or text",
            fix="Export the classifier with a table as its input.",
        )
    dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    if not dims:
        raise InputError(f"The model's input {value.name!r} has no rows")
    batch = dims[0] if dims[0] and dims[0] > 0 else None
    rest = [open_width if d is None and len(dims) == 2 else d for d in dims[1:]]
    row_shape = tuple(d for d in rest if d is not None and d > 0)
    if len(row_shape) < len(rest):
        raise InputError(
            f"The file does not say how many features its input {value.name!r} takes",
            fix="Export the model with a fixed number of features, or list them in the metadata "
            "entry 'feature_names'.",
        )
    return Slot(value.name, row_shape, dtype), batch


def _takes_missing(graph: Graph) -> bool:
    for node in graph.nodes:
        if node.op_type in ("Imputer", "IsNaN"):
            return True
        for attribute in node.attribute:
            if attribute.name == "nodes_missing_value_tracks_true" and any(attribute.ints):
                return True
    return False


def _texts(part: pd.DataFrame) -> NDArray[np.object_]:
    values = np.empty(part.shape, dtype=object)
    for j, name in enumerate(part.columns):
        column = part.iloc[:, j].astype(object)
        missing = column.isna().to_numpy(dtype=bool)
        if missing.any():
            raise InputError(
                "The model cannot take the missing value",
                fix="Fill it with the text that was used in training.",
                column=str(name),
                row=int(np.argmax(missing)) + 1,
            )
        values[:, j] = [str(v) for v in column]
    return values


_MOST_THREADS = 2
_SEVERITY_ERROR = 3


def open_session(model: Any) -> Any:
    """A session that runs on the processor with few threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _MOST_THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = _SEVERITY_ERROR
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the runtime's C++ errors share no narrower base
        _raise_for_memory(error)
        raise InputError(
            f"ONNX Runtime refuses the model: {_first_line(error)}",
            fix="Export it again for a version that the installed runtime knows.",
        ) from error


def run(session: Any, names: list[str], feed: Feed) -> list[NDArray[Any]]:
    """The named tensors for a batch of rows."""
    taken = {value.name for value in session.get_inputs()}
    try:
        values = session.run(names, {key: v for key, v in feed.items() if key in taken})
    except Exception as error:  # as above
        _raise_for_memory(error)
        raise InputError(
            f"ONNX Runtime cannot run the model: {_first_line(error)}",
            fix="Check that the table's columns are those that the model takes.",
        ) from error
    return [np.asarray(value) for value in values]


def padded(part: Feed, n_rows: int, inputs: Inputs) -> Feed:
    """A last block filled up with empty rows, where the graph insists on a number of rows."""
    lacking = (inputs.batch or n_rows) - n_rows
    if not lacking:
        return part
    filler = inputs.trial(lacking)
    return {key: np.concatenate([values, filler[key]]) for key, values in part.items()}


def flat(values: NDArray[Any]) -> NDArray[Any]:
    """One row of numbers an example."""
    return values.reshape(len(values), prod(values.shape[1:]))


def _raise_for_memory(error: Exception) -> None:
    if "allocate memory" in str(error) or "bad_alloc" in str(error):
        raise MemoryError("ONNX Runtime ran out of memory") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
