"""A kernel density graph or estimator to and from one file, every part checked.

An estimator is kept without its model: the file holds a few rows and a fingerprint of the model's
answers to them, and refuses any other model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.graph.base import KernelDensityEstimator
from kdcal_core.calibration.graph.blend import LARGEST_WEIGHT, Blend
from kdcal_core.calibration.graph.coordinates import Coordinates
from kdcal_core.calibration.graph.graph import KernelDensityGraph
from kdcal_core.calibration.graph.located import Located
from kdcal_core.calibration.graph.placement import Placement
from kdcal_core.calibration.graph.views import OutputLayer
from kdcal_core.errors import InputError
from kdcal_core.models import Features, fingerprint, wrap_model
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes
from kdcal_core.store import decode, errors_name_file, read_archive, write_archive

_Estimator = TypeVar("_Estimator", bound=KernelDensityEstimator)

_KIND = "kernel density graph"
# Kind and shape of each array of a graph; a letter is the same length everywhere.
_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "centres": ("f", ("p", "d")),
    "variances": ("f", ("p", "d")),
    "counts": ("i", ("p", "K")),
    "exponents": ("f", ("G",)),
    "class_masses": ("f", ("G", "p", "K")),
    "prior": ("f", ("K",)),
    "holdout_x": ("f", ("h", "d")),
    "holdout_index": ("i", ("h",)),
    "holdout_tied": ("b", ("h",)),
    "holdout_y": ("i", ("h",)),
    "holdout_proba": ("f", ("h", "K")),
    "variance_shape": ("f", ("d",)),
}
_HELD = {name for name in _ARRAYS if name.startswith("holdout")}
_MAY_LACK = {"variance_shape", "holdout_proba"}
_PROBA_SUM = 1e-3  # how far from one a model's single precision may lead
_DTYPES = {"f": np.float64, "i": np.int64, "b": np.bool_}


@dataclass(frozen=True)
class _Graph:
    """The description of a graph in a file, besides its arrays."""

    classes: tuple[str, ...]
    n: int
    gamma: float
    variance_floor: float
    log_floor: float
    floor_quantile: float | None = None
    blend: tuple[float, float] | None = None


@dataclass(frozen=True)
class _Columns:
    """The description of an estimator's coordinates in a file."""

    feature_names: tuple[str, ...] | None
    n_features: int
    categories: tuple[tuple[int, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class _Labels:
    """The classes as the model has them, and numpy's name of their type."""

    values: list[Any]
    type: str


@dataclass(frozen=True)
class _Description:
    """The description of an estimator in a file, besides its arrays."""

    graph: _Graph
    coordinates: _Columns
    parameters: dict[str, Any]
    labels: _Labels
    probe: dict[str, Any]
    fingerprint: str
    output_layer: OutputLayer | None
    layer_widths: tuple[int, ...] | None


def save_graph(graph: KernelDensityGraph, path: str | Path) -> None:
    """Write the graph to a file."""
    about, arrays = _graph_parts(graph)
    write_archive(path, _KIND, {"graph": asdict(about)}, arrays)


def load_graph(path: str | Path) -> KernelDensityGraph:
    """Read a graph from a file."""
    about, arrays = read_archive(path, _KIND)
    with errors_name_file(path):
        return _graph_from_parts(decode(_Graph, about["graph"]), arrays)


def save_estimator(estimator: KernelDensityEstimator, path: str | Path) -> None:
    """Write a fitted estimator to a file."""
    about, arrays = estimator_parts(estimator)
    write_archive(path, type(estimator).__name__, about, arrays)


def load_estimator(cls: type[_Estimator], path: str | Path, model: Any) -> _Estimator:
    """Read a fitted estimator from a file and attach its model."""
    about, arrays = read_archive(path, cls.__name__)
    with errors_name_file(path):
        return estimator_from_parts(cls, about, arrays, model)


def estimator_parts(
    estimator: KernelDensityEstimator,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """JSON values and arrays, from which :func:`estimator_from_parts` rebuilds the estimator."""
    graph, arrays = _graph_parts(estimator.graph_)
    placement = estimator._placement
    coordinates, codes = placement.coordinates, placement.polytopes
    labels = estimator.classes_
    about = _Description(
        graph=graph,
        coordinates=_Columns(
            coordinates.feature_names,
            coordinates.n_features,
            tuple((at, tuple(known)) for at, known in coordinates.categories.items()),
        ),
        parameters=_parameters(estimator),
        labels=_Labels(labels.tolist(), labels.dtype.str),
        probe=rows_to_json(estimator._probe),
        fingerprint=fingerprint(placement.model, estimator._probe),
        output_layer=placement.output_layer,
        layer_widths=None if isinstance(codes, LeafCodes) else tuple(codes.layer_widths),
    )
    names = ("centre", "unit", "fill", "numeric", "indicators")
    arrays |= {name: getattr(coordinates, name) for name in names}
    arrays["codes"] = codes.leaves if isinstance(codes, LeafCodes) else codes.words
    return asdict(about), arrays


def estimator_from_parts(
    cls: type[_Estimator], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], model: Any
) -> _Estimator:
    """The fitted estimator that the parts describe, with its model.

    Raises
    ------
    InputError
        It belongs to another model.
    LookupError, TypeError, ValueError, AttributeError, OverflowError
        Parts are missing or contradict each other.
    """
    description = decode(_Description, {one.name: about[one.name] for one in fields(_Description)})
    estimator = cls(model, **description.parameters)
    estimator._validate_params()
    estimator.graph_ = graph = _graph_from_parts(description.graph, arrays)
    placement = Placement(
        wrap_model(model, task="classification"),
        description.output_layer,
        _coordinates(description.coordinates, arrays),
        _codes(description.layer_widths, arrays["codes"]),
        estimator.distance,
    )
    estimator._placement = placement
    estimator.classes_ = _labels(description.labels)
    estimator.n_features_in_ = placement.model.n_features
    estimator._probe = rows_from_json(description.probe)
    if (
        len(placement.polytopes) != graph.n_polytopes
        or placement.coordinates.n_dimensions != graph.centres.shape[1]
        or len(estimator.classes_) != len(graph.classes)
    ):
        raise ValueError("the parts do not fit each other")
    _check_model(estimator, description.fingerprint)
    return estimator


def _graph_parts(graph: KernelDensityGraph) -> tuple[_Graph, dict[str, NDArray[Any]]]:
    """The parts from which :func:`_graph_from_parts` rebuilds the graph."""
    about = _Graph(
        graph.classes,
        graph.n,
        graph.gamma,
        graph.variance_floor,
        graph.log_floor,
        graph.floor_quantile,
        None if graph.blend is None else (graph.blend.model, graph.blend.graph),
    )
    found = {name: getattr(graph, name) for name in _ARRAYS if name not in _HELD}
    held = graph.holdout
    if held is not None and graph.holdout_y is not None:
        found |= {"holdout_x": held.x, "holdout_index": held.index, "holdout_tied": held.tied}
        found |= {"holdout_y": graph.holdout_y, "holdout_proba": held.proba}
    return about, {name: found[name] for name in _ARRAYS if found.get(name) is not None}


def _graph_from_parts(about: _Graph, arrays: Mapping[str, NDArray[Any]]) -> KernelDensityGraph:
    """The graph that the parts describe.

    Raises
    ------
    ValueError, TypeError, InputError
        Parts are missing or contradict each other.
    """
    found = {name: arrays[name] for name in _ARRAYS if name in arrays}
    lengths = _checked_shapes(found)
    _demand(len(about.classes) == lengths["K"] and about.n == found["counts"].sum())
    _demand(not np.isnan([about.gamma, about.variance_floor, about.log_floor]).any())
    _demand(about.floor_quantile is None or 0 < about.floor_quantile < 1)
    _checked_values(found, lengths)
    if about.blend is not None:
        _demand("holdout_proba" in found)
        _demand(all(0 <= one <= LARGEST_WEIGHT for one in about.blend))
    holdout = None
    if "holdout_index" in found:
        x, index, tied = (found[f"holdout_{name}"] for name in ("x", "index", "tied"))
        holdout = Located(x, index, tied, found.get("holdout_proba"))
    graph = KernelDensityGraph(
        **{name: found[name] for name in _ARRAYS if name not in _HELD | _MAY_LACK},
        classes=about.classes,
        n=about.n,
        gamma=about.gamma,
        variance_floor=about.variance_floor,
        log_floor=about.log_floor,
        floor_quantile=about.floor_quantile,
        holdout=holdout,
        holdout_y=found.get("holdout_y"),
        variance_shape=found.get("variance_shape"),
        blend=None if about.blend is None else Blend(*about.blend),
    )
    _demand(bool((graph.added_variance > 0).all()))  # two tiny numbers may make zero
    # A gamma that is not of the grid or a variance floor of zero is refused here.
    graph.with_settings(
        gamma=graph.gamma, variance_floor=graph.variance_floor, log_floor=graph.log_floor
    )
    return graph


def _checked_shapes(found: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """The length that each letter stands for."""
    held = _HELD - _MAY_LACK
    needed = set(_ARRAYS) - held - _MAY_LACK
    _demand(held <= set(found) or "holdout_proba" not in found)
    _demand(needed <= set(found) and (held <= set(found) or not held & set(found)))
    lengths: dict[str, int] = {}
    for name, array in found.items():
        kind, letters = _ARRAYS[name]
        _demand(array.dtype == _DTYPES[kind] and array.ndim == len(letters))
        for letter, length in zip(letters, array.shape, strict=True):
            _demand(lengths.setdefault(letter, length) == length)
    _demand(lengths["p"] > 0 and lengths["K"] > 1 and lengths["G"] > 0)
    return lengths


def _checked_values(found: Mapping[str, NDArray[Any]], lengths: Mapping[str, int]) -> None:
    for name, array in found.items():
        if _ARRAYS[name][0] == "f":
            _demand(bool(np.isfinite(array).all()))
    for name in ("variances", "counts", "class_masses", "prior"):
        _demand(bool((found[name] >= 0).all()))
    _demand(bool((found.get("variance_shape", np.ones(1)) > 0).all()))
    proba = found.get("holdout_proba", np.ones((1, 1)))
    _demand(bool((proba >= 0).all() and (np.abs(proba.sum(axis=1) - 1) <= _PROBA_SUM).all()))
    exponents = found["exponents"]
    _demand(bool((exponents > 0).all() and (np.diff(exponents) > 0).all()))
    _demand(abs(float(found["prior"].sum()) - 1.0) <= 1e-9)
    for name, letter in (("holdout_index", "p"), ("holdout_y", "K")):
        index = found.get(name, np.zeros(0, dtype=np.int64))
        _demand(bool(((index >= 0) & (index < lengths[letter])).all()))


def _demand(holds: bool) -> None:
    if not holds:
        raise ValueError("parts that contradict each other")


def _check_model(estimator: KernelDensityEstimator, expected: str) -> None:
    model = estimator._placement.model
    try:
        same = fingerprint(model, estimator._probe) == expected
        estimator.locate(estimator._probe)
    except InputError:  # a model of other features or another partition cannot take the rows
        same = False
    if not same or model.classes != estimator.graph_.classes:
        raise InputError(
            "The saved file belongs to another model",
            fix="Load it with the model that it was fitted for, or fit again for this one.",
        )


def _parameters(estimator: KernelDensityEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    del parameters["model"]
    return {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in parameters.items()
    }


def _labels(written: _Labels) -> NDArray[Any]:
    kind = np.dtype(written.type)
    if kind.kind not in "biufUO":
        raise ValueError("labels of this type are never saved")
    labels = np.array(written.values, dtype=None if kind.kind == "U" else kind)
    if labels.ndim != 1 or len(set(labels.tolist())) != len(labels) or (labels != labels).any():
        raise ValueError("labels are not one of each class")
    return labels


def _codes(layer_widths: tuple[int, ...] | None, array: NDArray[Any]) -> Codes:
    """Codes of an array; whether they are sound is checked by the partition's own functions."""
    if layer_widths is None:
        if array.dtype != np.int32 or array.ndim != 2:
            raise ValueError("leaf codes are of another kind")
        return LeafCodes(array)
    if array.dtype != np.uint64 or array.ndim != 2:
        raise ValueError("activation codes are of another kind")
    return ActivationCodes(array, layer_widths)


def _coordinates(columns: _Columns, arrays: Mapping[str, NDArray[Any]]) -> Coordinates:
    categories = dict(columns.categories)
    coordinates = Coordinates(
        feature_names=columns.feature_names,
        n_features=columns.n_features,
        numeric=_positions(arrays["numeric"], columns.n_features),
        fill=np.asarray(arrays["fill"], dtype=np.float64),
        indicators=_positions(arrays["indicators"], len(arrays["numeric"])),
        categories=categories,
        centre=np.asarray(arrays["centre"], dtype=np.float64),
        unit=np.asarray(arrays["unit"], dtype=np.float64),
    )
    width = (coordinates.n_dimensions,)
    covered = sorted([*coordinates.numeric.tolist(), *categories])
    if (
        len(covered) != coordinates.n_features  # first: the file may say any number
        or covered != list(range(coordinates.n_features))
        or (columns.feature_names is not None and len(columns.feature_names) != len(covered))
        or coordinates.fill.shape != coordinates.numeric.shape
        or not coordinates.centre.shape == coordinates.unit.shape == width
        or not all(
            np.isfinite(part).all()
            for part in (coordinates.fill, coordinates.centre, coordinates.unit)
        )
        or not (coordinates.unit > 0).all()
    ):
        raise ValueError("the coordinates contradict themselves")
    return coordinates


def _positions(array: NDArray[Any], length: int) -> NDArray[np.int64]:
    if array.dtype != np.int64 or array.ndim != 1 or not ((array >= 0) & (array < length)).all():
        raise ValueError("positions are out of range")
    return array


def rows_to_json(rows: Features) -> dict[str, Any]:
    """Rows as JSON: a frame by columns, an array by columns without names."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))
    columns = [[_plain(value) for value in column] for _, column in frame.items()]
    named = isinstance(rows, pd.DataFrame)
    return {"names": [str(name) for name in frame.columns] if named else None, "columns": columns}


def rows_from_json(record: Mapping[str, Any]) -> Features:
    """What :func:`rows_to_json` wrote; numbers are float64, a missing value is NaN or None.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> rows_from_json(rows_to_json(frame)).to_numpy(dtype=object).tolist()[0]
    [1.0, 'x']
    """
    columns = [_column(values) for values in record["columns"]]
    if record["names"] is not None:
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index([str(name) for name in record["names"]])
        return frame
    if all(column.dtype == np.float64 for column in columns):
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, bool | str) else _number_or_text(plain)


def _number_or_text(value: Any) -> float | str:
    return float(value) if isinstance(value, int | float) else str(value)


def _column(values: list[Any]) -> NDArray[Any]:
    if any(isinstance(value, str | bool) for value in values):
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
