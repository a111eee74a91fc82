"""The codes of a partition's columns, computed inside an ONNX graph from the model's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd

from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.onnx_graph import Inputs, Slot
from kdcal_core.models.protocol import Features
from kdcal_core.text import listed

if TYPE_CHECKING:
    from kdcal_core.partition.tree import InputColumn

_USE_THE_FILE = "Use the calibrator file: it reads the table's columns as they are."


class Columns(Protocol):
    """What partitions read, inside a graph."""

    def codes(self, nodes: Nodes, column: InputColumn) -> str:
        """What ``bin_inputs`` makes of a column, (n, 1) int64."""


@dataclass(frozen=True)
class UnitColumns:
    """The units of a hidden layer as columns "unit 1", "unit 2", ...

    Attributes
    ----------
    tensor : str
        Of the model's graph, (n, ...).
    width : int
        Units.
    """

    tensor: str
    width: int

    def codes(self, nodes: Nodes, column: InputColumn) -> str:
        """Thresholds were set on numbers of this tensor, so nothing is rounded."""
        from onnx import TensorProto

        values = nodes.node("Cast", self.tensor, to=TensorProto.DOUBLE)
        table = nodes.node("Reshape", values, np.array([-1, self.width]))
        unit = nodes.column(table, int(column.name.removeprefix("unit ")) - 1)
        above = nodes.count_above(unit, np.append(column.edges, np.inf), inclusive=False)
        return nodes.node("Reshape", above, np.array([-1, 1]))


@dataclass(frozen=True, eq=False)
class ModelColumns:
    """The columns that a model's graph takes, by name, with real rows of them.

    Attributes
    ----------
    inputs : Inputs
    frame : DataFrame
        Real rows. Its columns are the graph's in order where the graph names none.
    """

    inputs: Inputs
    frame: pd.DataFrame

    @classmethod
    def of(cls, inputs: Inputs, rows: Features) -> ModelColumns:
        """With rows as :func:`export_onnx` takes them; an array's columns are "column 1", ..."""
        if not isinstance(rows, pd.DataFrame):
            values = np.asarray(rows)
            names = [f"column {i + 1}" for i in range(values.shape[1])]
            rows = pd.DataFrame(values, columns=names)
        return cls(inputs, rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The graph's columns in its order."""
        return self.inputs.feature_names or tuple(str(name) for name in self.frame.columns)

    def codes(self, nodes: Nodes, column: InputColumn) -> str:
        """What :func:`~kdcal_core.partition.tree.bin_inputs` makes of a column, (n, 1) int64.

        A graph rounds a number to its own format, usually 32 bits. Rounding keeps the order, so
        with an equally rounded threshold every number stays on its side, except one above the
        threshold that rounds to it. If all real rows hold numbers of the graph's format already,
        thresholds are rounded down, and no number changes side.

        Raises
        ------
        InputError
            The graph does not read the column, or reads it as another type.
        """
        slot, raw = self._taken(nodes, column.name)
        if slot.dtype is None:
            return _text_codes(nodes, raw, column)
        from onnx import TensorProto

        values = nodes.node("Cast", raw, to=TensorProto.DOUBLE)
        if column.kind == "number":
            edges = _as_taken(column.edges, slot.dtype, self._numbers(column.name))
            # the last corner is never passed: it is for a column without edges
            above = nodes.count_above(values, np.append(edges, np.inf), inclusive=False)
            found = nodes.node("Reshape", above, np.array([-1, 1]))
        else:
            found = _number_codes(nodes, values, column, slot.dtype)
        if self.inputs.allow_missing and np.issubdtype(slot.dtype, np.floating):
            missing = nodes.node("IsNaN", values)
            return nodes.node("Where", missing, np.array([[column.missing_code]]), found)
        return found

    def _taken(self, nodes: Nodes, name: str) -> tuple[Slot, str]:
        """The input that takes a column, and its values there, (n, 1)."""
        why = not_taken([name], self.names)
        if why is not None:
            raise InputError(why, fix=_USE_THE_FILE, column=name)
        at = self.names.index(name)
        for slot in self.inputs.slots:
            if at < slot.width:
                table = nodes.node("Reshape", slot.name, np.array([-1, slot.width]))
                return slot, nodes.column(table, at)
            at -= slot.width
        raise InputError(
            f"The model takes {self.inputs.n_features:,} columns, and the rows have more",
            fix="Give rows of the model's columns.",
            column=name,
        )

    def _numbers(self, name: str) -> FloatArray:
        at = [str(one) for one in self.frame.columns].index(name)
        values = pd.to_numeric(self.frame.iloc[:, at].astype(object), errors="coerce")
        numbers: FloatArray = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers


def not_taken(read: Sequence[str], taken: Sequence[str]) -> str | None:
    """Why columns cannot be read in a graph that takes these; None where they can.

    Examples
    --------
    >>> not_taken(["age", "job"], ["age"])
    "The regions are cut by 'job', which is not among the model's inputs"
    """
    strange = [name for name in read if name not in set(taken)]
    if not strange:
        return None
    named, are = listed(map(repr, strange), 1), "are" if len(strange) > 1 else "is"
    return f"The regions are cut by {named}, which {are} not among the model's inputs"


def _as_taken(edges: FloatArray, dtype: type[np.generic], real: FloatArray) -> FloatArray:
    """Thresholds for numbers that were rounded to the graph's format."""
    if not np.issubdtype(dtype, np.floating):
        return edges
    with np.errstate(over="ignore"):
        rounded = edges.astype(dtype)
        exact = (real.astype(dtype) == real)[~np.isnan(real)].all()
    if exact:
        below = np.nextafter(rounded, np.array(-np.inf, dtype=dtype))
        rounded = np.where(rounded > edges, below, rounded)
    taken: FloatArray = rounded.astype(np.float64)
    return taken


def _text_codes(nodes: Nodes, raw: str, column: InputColumn) -> str:
    if column.kind == "number":
        raise InputError(
            "The model takes a column as text that the regions read as numbers",
            fix=_USE_THE_FILE,
            column=column.name,
        )
    own = _own(column)
    return nodes.node(
        "CategoryMapper",
        raw,
        domain="ai.onnx.ml",
        cats_strings=own or ("",),  # a list is never empty
        cats_int64s=range(len(own) or 1),
        default_int64=len(own),
    )


def _number_codes(nodes: Nodes, values: str, column: InputColumn, dtype: type[np.generic]) -> str:
    """Codes of categories that the graph takes as numbers: truth values, and numbers as names."""
    from onnx import TensorProto

    own = _own(column)
    numbers = [number for number in map(_number, own) if number is not None]
    if len(set(numbers)) < len(own):
        raise InputError(
            "The model takes a column as numbers that the regions read as text",
            fix=_USE_THE_FILE,
            column=column.name,
        )
    known = np.array(numbers or [0.0])
    if np.issubdtype(dtype, np.floating):
        known = known.astype(dtype).astype(np.float64)
    same = nodes.double(nodes.node("Equal", values, known[None, :]))
    # any other value gets the code after theirs
    codes = np.arange(float(len(known))) - len(own)
    found = nodes.add(nodes.row_sum(nodes.mul(same, codes[None, :])), float(len(own)))
    return nodes.node("Cast", found, to=TensorProto.INT64)


def _own(column: InputColumn) -> tuple[str, ...]:
    """The categories that have their own code."""
    return column.categories[:-1] if column.pooled else column.categories


def _number(name: str) -> float | None:
    if name in ("True", "False"):
        return float(name == "True")
    try:
        value = float(name)
    except ValueError:
        return None
    return value if isfinite(value) else None
