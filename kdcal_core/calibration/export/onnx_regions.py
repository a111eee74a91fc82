"""Calibration region by region, written as nodes of an ONNX graph.

The model's inputs give the codes of a partition's columns, these give the region of each row, and
then all regions' maps are applied at once. All L partitions are computed together in tensors (n, L,
K), unless each reads the output of the one before it. Functions for maps take the maps of L
partitions, probabilities (n, K) and regions (n, L), which are numbered across all partitions, and
return probabilities (n, L, K).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.calibration.regions.boosted import Damped
from kdcal_core.calibration.regions.column_partition import ColumnPartition
from kdcal_core.calibration.regions.nonparametric_maps import HistogramMaps, IsotonicMaps
from kdcal_core.calibration.regions.parametric_maps import LinearMaps, TemperatureMaps
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.onnx_graph import Inputs, Slot
from kdcal_core.models.protocol import Features
from kdcal_core.statistics import CLIP
from kdcal_core.text import listed

if TYPE_CHECKING:
    from kdcal_core.partition.tree import InputColumn, PartitionTree


_USE_THE_FILE = "Use the calibrator file: it reads the table's columns as they are."


class Columns(Protocol):
    """The columns that partitions read, inside a graph."""

    def codes(self, nodes: Nodes, column: InputColumn) -> str:
        """The codes of a column as from ``bin_inputs``, (n, 1) int64."""


@dataclass(frozen=True)
class UnitColumns:
    """The units of a hidden layer as columns "unit 1", "unit 2", ...

    Attributes
    ----------
    tensor : str
        Tensor of the model's graph, (n, ...).
    width : int
        Number of units.
    """

    tensor: str
    width: int

    def codes(self, nodes: Nodes, column: InputColumn) -> str:
        """The codes without rounding, because thresholds were set on numbers of this tensor."""
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
        Real rows. If the graph does not name its columns, they are these, in order.
    """

    inputs: Inputs
    frame: pd.DataFrame

    @classmethod
    def of(cls, inputs: Inputs, rows: Features) -> ModelColumns:
        """Make it from rows as in :func:`export_onnx`; an array's columns are "column 1", ..."""
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
        """The codes of a column as from ``kdcal_core.partition.tree.bin_inputs``, (n, 1) int64.

        A graph rounds numbers to its own format, usually 32 bits. Rounding keeps the order, so with
        an equally rounded threshold every number stays on its side, except numbers above the
        threshold that round to it. If the numbers of all real rows already have the graph's format,
        thresholds are rounded down, and no number changes side.

        Raises
        ------
        InputError
            If the graph does not read the column or reads it as another type.
        """
        slot, raw = self._taken(nodes, column.name)
        if slot.dtype is None:
            return _text_codes(nodes, raw, column)
        from onnx import TensorProto

        values = nodes.node("Cast", raw, to=TensorProto.DOUBLE)
        if column.kind == "number":
            edges = _as_taken(column.edges, slot.dtype, self._numbers(column.name))
            # the last corner is never passed; it serves columns without edges
            above = nodes.count_above(values, np.append(edges, np.inf), inclusive=False)
            found = nodes.node("Reshape", above, np.array([-1, 1]))
        else:
            found = _number_codes(nodes, values, column, slot.dtype)
        if self.inputs.allow_missing and np.issubdtype(slot.dtype, np.floating):
            missing = nodes.node("IsNaN", values)
            return nodes.node("Where", missing, np.array([[column.missing_code]]), found)
        return found

    def _taken(self, nodes: Nodes, name: str) -> tuple[Slot, str]:
        """The input that takes a column, and the tensor of its values, (n, 1)."""
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
    """Why columns cannot be read in a graph that takes these; None if they can.

    Examples
    --------
    >>> not_taken(["age", "job"], ["age"])
    "The regions are defined by 'job', which is not among the model's inputs"
    """
    strange = [name for name in read if name not in set(taken)]
    if not strange:
        return None
    named, are = listed(map(repr, strange), 1), "are" if len(strange) > 1 else "is"
    return f"The regions are defined by {named}, which {are} not among the model's inputs"


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
    """Codes of categories that the graph takes as numbers: booleans and numeric names."""
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
    # any other value gets the next code
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


# Column -> its codes, (n, 1) int64.
Codes = Callable[["InputColumn"], str]


def columns_read(partitions: Sequence[Any]) -> tuple[InputColumn, ...]:
    """The columns that partitions read: those on which trees split, in their order."""
    first = partitions[0]
    if isinstance(first, ColumnPartition):
        return first.columns
    return tuple(first.columns[feature] for feature in _split(partitions))


def regions(nodes: Nodes, partitions: Sequence[Any], codes: Codes, start: str) -> str:
    """The region of each row in each of L partitions, (n, L) int64.

    Regions are numbered across all partitions.

    Parameters
    ----------
    partitions : sequence of PartitionTree, or of one ColumnPartition
    codes : callable
    start : str
        Zeros, (n, 1) int64.
    """
    if isinstance(partitions[0], ColumnPartition):
        return _of_columns(nodes, partitions[0], codes, start)
    return _of_trees(nodes, partitions, codes, start)


def _of_trees(nodes: Nodes, trees: Sequence[PartitionTree], codes: Codes, start: str) -> str:
    """The leaves of all trees, computed level by level; a leaf is its own child."""
    first_node = np.cumsum([0, *(tree.n_nodes for tree in trees)])
    first_leaf = np.cumsum([0, *(tree.n_leaves for tree in trees)])
    inside = np.concatenate([tree.feature >= 0 for tree in trees])

    def joined(name: str, first: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = zip(trees, first.tolist(), strict=False)
        return np.concatenate([getattr(tree, name).astype(np.int64) + at for tree, at in parts])

    def child(side: str) -> str:
        own = np.arange(len(inside))
        return nodes.constant(np.where(inside, joined(side, first_node), own))

    node = nodes.add(start, first_node[None, :-1])
    split = _split(trees)
    if split:
        read = columns_read(trees)
        table = nodes.columns([codes(column) for column in read])
        place = np.searchsorted(split, np.concatenate([tree.feature for tree in trees]))
        column_of, left, right = nodes.constant(place), child("left"), child("right")
        width = 1 + max(column.missing_code for column in read)
        sides = np.concatenate([tree.goes_left[:, :width] for tree in trees])
        goes_left = nodes.constant(sides.ravel())
        for _ in range(max(int(tree.depth.max()) for tree in trees)):
            code = nodes.node("GatherElements", table, nodes.look_up(column_of, node), axis=1)
            goes = nodes.look_up(goes_left, nodes.add(nodes.mul(node, np.array(width)), code))
            node = nodes.node("Where", goes, nodes.look_up(left, node), nodes.look_up(right, node))
    return nodes.look_up(nodes.constant(joined("leaf_of_node", first_leaf)), node)


def _split(trees: Sequence[PartitionTree]) -> list[int]:
    return sorted({int(feature) for tree in trees for feature in tree.feature if feature >= 0})


def _of_columns(nodes: Nodes, partition: ColumnPartition, codes: Codes, start: str) -> str:
    """The region by columns: column by column, which known start of a combination a row has."""
    so_far, known, n_known = start, np.zeros(len(partition.codes), dtype=np.int64), 1
    for at, column in enumerate(partition.columns):
        width = column.missing_code + 1
        beginnings, ends = np.unique(known * width + partition.codes[:, at], return_inverse=True)
        # the last row is for unknown combinations, which stay unknown
        table = np.full((n_known + 1) * width, len(beginnings))
        table[beginnings] = np.arange(len(beginnings))
        so_far = nodes.look_up(
            nodes.constant(table),
            nodes.add(nodes.mul(so_far, np.array(width)), codes(column)),
        )
        known, n_known = ends, len(beginnings)
    region = np.full(n_known + 1, partition.n_leaves - 1)
    region[known] = np.arange(len(known))
    return nodes.look_up(nodes.constant(region), so_far)


# Difference of a probability between two runtimes.
_DIGITS = 8.0


def mapped_nodes(nodes: Nodes, maps: Sequence[Any], proba: str, region: str, n_classes: int) -> str:
    """Calibrated probabilities in each partition, (n, L, K)."""
    if isinstance(maps[0], TemperatureMaps):
        return _temperature(nodes, maps, proba, region)
    # C classes have a map: the second of two, or all
    n_maps = 1 if n_classes == 2 else n_classes
    score = nodes.column(proba, 1) if n_maps == 1 else proba
    score = nodes.node("Unsqueeze", score, np.array([1]))
    mapped = ONE_VS_REST[type(maps[0])](nodes, maps, score, region, n_maps)
    if n_maps == 1:
        return nodes.columns([nodes.less(1.0, mapped), mapped])
    return nodes.shares(mapped, n_maps)


def _temperature(nodes: Nodes, maps: Sequence[Any], proba: str, region: str) -> str:
    temperatures = np.concatenate([one.temperatures for one in maps])[:, None]
    logs = nodes.node("Unsqueeze", nodes.log(proba, CLIP), np.array([1]))
    warmth = nodes.look_up(nodes.constant(temperatures), region)
    return nodes.node("Softmax", nodes.node("Div", logs, warmth), axis=-1)


def _linear(nodes: Nodes, maps: Sequence[Any], score: str, region: str, n_maps: int) -> str:
    """Platt's slope and offset, or the beta map's three parameters."""
    parameters = np.concatenate([one.parameters for one in maps], axis=1).T
    logit = _logit(nodes, score)
    features = [logit]
    if len(parameters) == 3:
        log_p = nodes.node("Neg", nodes.softplus(nodes.node("Neg", logit)))
        features = [log_p, nodes.softplus(logit)]
    *factors, total = (nodes.look_up(nodes.constant(one), region) for one in parameters)
    for feature, factor in zip(features, factors, strict=True):
        total = nodes.add(total, nodes.mul(feature, factor))
    return nodes.node("Sigmoid", total)


def _histogram(nodes: Nodes, maps: Sequence[Any], score: str, region: str, n_maps: int) -> str:
    from onnx import TensorProto

    edges = np.concatenate([np.stack([one.edges] * one.rates.shape[1]) for one in maps])
    rates = np.concatenate([one.rates for one in maps], axis=1).swapaxes(0, 1)
    logit = nodes.node("Unsqueeze", _logit(nodes, score), np.array([3]))
    above = nodes.node("Greater", logit, nodes.look_up(nodes.constant(_passed(edges)), region))
    bins = nodes.node("Squeeze", nodes.row_sum(nodes.double(above)), np.array([3]))
    # a table of one dimension: region by region, class by class, bin by bin
    first = nodes.node("Unsqueeze", nodes.mul(region, np.array(n_maps)), np.array([2]))
    curve = nodes.add(first, np.arange(n_maps)[None, None, :])
    at = nodes.add(
        nodes.mul(curve, np.array(rates.shape[2])), nodes.node("Cast", bins, to=TensorProto.INT64)
    )
    return nodes.look_up(nodes.constant(rates.ravel()), at)


def _passed(edges: FloatArray) -> FloatArray:
    """Edges moved so that a logit does not pass them by rounding in the last digits.

    A bin ends exactly at the score of a calibration row, where the rounding of another runtime's
    logarithm would decide the side.
    """
    with np.errstate(over="ignore"):
        slack: FloatArray = _DIGITS * np.finfo(float).eps * (1.0 + np.abs(edges) + np.exp(edges))
    return edges + slack


def _isotonic(nodes: Nodes, maps: Sequence[Any], score: str, region: str, n_maps: int) -> str:
    """The last corner at or below the score, and the line from there to the next."""
    corners, values = (
        np.concatenate([getattr(one, name) for one in maps]) for name in ("corners", "values")
    )
    # curves are ordered by class in a layer, and by region in a look-up
    sizes = [np.diff(one.ends, prepend=0).reshape(n_maps, -1).T for one in maps]
    before = np.cumsum([0, *(len(one.corners) for one in maps)])
    ends = [one.ends.reshape(n_maps, -1).T + at for one, at in zip(maps, before, strict=False)]
    last, size = np.concatenate(ends) - 1, np.concatenate(sizes)
    run = np.diff(corners, append=corners[-1])
    run[last] = 0.0
    rise = np.diff(values, append=values[-1])
    slope = np.divide(rise, run, out=np.zeros_like(run), where=run > 0)
    low, high = (nodes.look_up(nodes.constant(ends), region) for ends in (last - size + 1, last))
    corner_at = nodes.constant(corners)
    lowest, highest = nodes.look_up(corner_at, low), nodes.look_up(corner_at, high)
    inside = nodes.node("Min", nodes.node("Max", score, lowest), highest)
    low = _last_reached(nodes, corner_at, inside, low, high, int(size.max()))
    beyond = nodes.node("Sub", inside, nodes.look_up(corner_at, low))
    above = nodes.mul(beyond, nodes.look_up(nodes.constant(slope), low))
    return nodes.add(nodes.look_up(nodes.constant(values), low), above)


def _last_reached(nodes: Nodes, corners: str, x: str, low: str, high: str, most: int) -> str:
    """By bisection, the last of the ascending corners low to high (at most ``most``) up to x."""
    for _ in range((most - 1).bit_length()):
        both = nodes.add(nodes.add(low, high), np.array(1))
        middle = nodes.node("Div", both, np.array(2))
        reached = nodes.node("LessOrEqual", nodes.look_up(corners, middle), x)
        below = nodes.node("Sub", middle, np.array(1))
        low = nodes.node("Where", reached, middle, low)
        high = nodes.node("Where", reached, high, below)
    return low


def _logit(nodes: Nodes, proba: str) -> str:
    kept = nodes.node("Min", nodes.node("Max", proba, CLIP), 1.0 - CLIP)
    return nodes.node("Sub", nodes.node("Log", kept), nodes.node("Log", nodes.less(1.0, kept)))


#: Functions that write maps of one class against the rest, from scores (n, 1, C), by type.
ONE_VS_REST: dict[type, Callable[[Nodes, Sequence[Any], str, str, int], str]] = {
    LinearMaps: _linear,
    HistogramMaps: _histogram,
    IsotonicMaps: _isotonic,
}

#: Maps that can be written.
WRITTEN = (TemperatureMaps, *ONE_VS_REST)


def names_read(calibrator: Any) -> tuple[str, ...]:
    """Columns that a calibrator's partitions read; empty before it is fitted."""
    layers = getattr(calibrator, "layers_", ())
    if not layers:
        return ()
    return tuple(one.name for one in columns_read([layer.partition for layer in layers]))


def regional_nodes(nodes: Nodes, calibrator: Any, proba: str, columns: Columns) -> str:
    """Append a heterogeneous calibrator to its model's probabilities, both (n, K) double.

    Parameters
    ----------
    nodes : Nodes
    calibrator : HeterogeneousCalibrator
        Fitted, with ``why_no_onnx`` None.
    proba : str
        The tensor of the model's probabilities.
    columns : Columns

    Raises
    ------
    InputError
        If the graph does not read a column that the partitions read.
    """
    layers = calibrator.layers_
    partitions = [layer.partition for layer in layers]
    maps = [layer.maps for layer in layers]
    nested = all(isinstance(one, Damped) for one in maps)
    inside = [one.maps for one in maps] if nested else maps
    kinds = {*map(type, inside)}
    if len({*map(type, partitions)}) > 1 or len(kinds) > 1 or not kinds <= {*WRITTEN}:
        raise InputError(
            "The calibrator's partitions are of different kinds", fix="Use the calibrator file."
        )
    zero = nodes.mul(nodes.node("ArgMax", proba, axis=1, keepdims=1), np.array(0))
    region = regions(nodes, partitions, lambda one: columns.codes(nodes, one), zero)
    if not nested:
        found = mapped_nodes(nodes, inside, proba, region, calibrator.n_classes_)
        return nodes.mul(nodes.over_layers(found), 1.0 / len(layers))
    first = 0
    for at, one in enumerate(maps):
        own = nodes.node("Sub", nodes.column(region, at), np.array(first))
        found = mapped_nodes(nodes, [one.maps], proba, own, calibrator.n_classes_)
        proba = _part_of_the_way(nodes, one.rate, proba, found)
        first += partitions[at].n_leaves
    return proba


def _part_of_the_way(nodes: Nodes, rate: float, proba: str, found: str) -> str:
    """A step from the probabilities towards those of a map, (n, 1, K), in logarithms."""
    here = nodes.log(proba, CLIP)
    there = nodes.log(nodes.over_layers(found), CLIP)
    step = nodes.mul(nodes.node("Sub", there, here), rate)
    return nodes.node("Softmax", nodes.add(here, step), axis=1)
