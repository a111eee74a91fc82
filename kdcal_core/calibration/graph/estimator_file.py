"""A fitted kernel density estimator to and from one file, without its parent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.graph.base import KernelDensityEstimator
from kdcal_core.calibration.graph.coordinates import Coordinates
from kdcal_core.calibration.graph.graph_file import graph_from_parts, graph_parts
from kdcal_core.calibration.graph.placement import Placement
from kdcal_core.calibration.graph.row_json import rows_from_json, rows_to_json
from kdcal_core.calibration.graph.views import OutputLayer
from kdcal_core.errors import InputError
from kdcal_core.models import fingerprint, wrap_model
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes
from kdcal_core.store.archive import (
    read_archive,
    telling_contradictions,
    write_archive,
)

_Estimator = TypeVar("_Estimator", bound=KernelDensityEstimator)


def save_estimator(estimator: KernelDensityEstimator, path: str | Path) -> None:
    """Write a fitted estimator to a file."""
    about, arrays = estimator_parts(estimator)
    write_archive(path, type(estimator).__name__, about, arrays)


def load_estimator(cls: type[_Estimator], path: str | Path, parent: Any) -> _Estimator:
    """Read a fitted estimator from a file and put its parent to it."""
    about, arrays = read_archive(path, cls.__name__)
    with telling_contradictions(path):
        return estimator_from_parts(cls, about, arrays, parent)


def estimator_parts(
    estimator: KernelDensityEstimator,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What :func:`estimator_from_parts` makes the estimator of again."""
    graph, arrays = graph_parts(estimator.graph_)
    placement = estimator._placement
    coordinates, more = _coordinate_parts(placement.coordinates)
    about = {
        "graph": graph,
        "coordinates": coordinates,
        "parameters": _parameters(estimator),
        "labels": _label_parts(estimator.classes_),
        "probe": rows_to_json(estimator._probe),
        "fingerprint": fingerprint(placement.parent, estimator._probe),
        "output_layer": placement.output_layer,
        **_widths(placement.polytopes),
    }
    arrays |= more
    arrays["codes"] = _code_array(placement.polytopes)
    return about, arrays


def estimator_from_parts(
    cls: type[_Estimator], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], parent: Any
) -> _Estimator:
    """The fitted estimator that the parts describe, with its parent.

    Raises
    ------
    InputError
        It belongs to another parent.
    LookupError, TypeError, ValueError, AttributeError, OverflowError
        Parts are missing or contradict each other.
    """
    estimator = cls(parent, **about["parameters"])
    estimator._validate_params()
    estimator.graph_ = graph_from_parts(about["graph"], arrays)
    placement = Placement(
        wrap_model(parent, task="classification"),
        _output_layer(about["output_layer"]),
        _coordinates(about["coordinates"], arrays),
        _codes(about["layer_widths"], arrays["codes"]),
        estimator.distance,
    )
    estimator._placement = placement
    estimator.classes_ = _labels(about["labels"])
    estimator.n_features_in_ = placement.parent.n_features
    estimator._probe = rows_from_json(about["probe"])
    graph = estimator.graph_
    if (
        len(placement.polytopes) != graph.n_polytopes
        or placement.coordinates.n_dimensions != graph.centres.shape[1]
        or len(estimator.classes_) != len(graph.classes)
    ):
        raise ValueError("the parts do not fit each other")
    _check_parent(estimator, about["fingerprint"])
    return estimator


def _check_parent(estimator: KernelDensityEstimator, expected: str) -> None:
    parent = estimator._placement.parent
    try:
        same = fingerprint(parent, estimator._probe) == expected
        estimator.locate(estimator._probe)
    except InputError:  # a parent of other features or another partition cannot take the rows
        same = False
    if not same or parent.classes != estimator.graph_.classes:
        raise InputError(
            "The saved file belongs to another parent",
            fix="Load it with the model that it was fitted for, or fit again for this one.",
        )


def _parameters(estimator: KernelDensityEstimator) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    del parameters["parent"]
    return {
        name: np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in parameters.items()
    }


def _label_parts(classes: NDArray[Any]) -> dict[str, Any]:
    return {"values": classes.tolist(), "type": classes.dtype.str}


def _labels(parts: Mapping[str, Any]) -> NDArray[Any]:
    kind = np.dtype(str(parts["type"]))
    if kind.kind not in "biufUO":
        raise ValueError("labels of this type are never saved")
    labels = np.array(parts["values"], dtype=None if kind.kind == "U" else kind)
    if labels.ndim != 1 or len(set(labels.tolist())) != len(labels) or (labels != labels).any():
        raise ValueError("labels are not one of each class")
    return labels


def _output_layer(value: Any) -> OutputLayer | None:
    if value not in (None, "probability", "logit", "exclude"):
        raise ValueError("there is no such output layer")
    layer: OutputLayer | None = value
    return layer


def _widths(codes: Codes) -> dict[str, Any]:
    return {"layer_widths": None if isinstance(codes, LeafCodes) else list(codes.layer_widths)}


def _code_array(codes: Codes) -> NDArray[Any]:
    return codes.leaves if isinstance(codes, LeafCodes) else codes.words


def _codes(layer_widths: Any, array: NDArray[Any]) -> Codes:
    """Codes of an array; whether they are sound is checked by the partition's own functions."""
    if layer_widths is None:
        if array.dtype != np.int32 or array.ndim != 2:
            raise ValueError("leaf codes are of another kind")
        return LeafCodes(array)
    if array.dtype != np.uint64 or array.ndim != 2:
        raise ValueError("activation codes are of another kind")
    return ActivationCodes(array, tuple(int(width) for width in layer_widths))


def _coordinate_parts(
    coordinates: Coordinates,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    names = coordinates.feature_names
    about = {
        "feature_names": None if names is None else list(names),
        "n_features": coordinates.n_features,
        "categories": [[at, list(known)] for at, known in coordinates.categories.items()],
    }
    return about, {
        "centre": coordinates.centre,
        "unit": coordinates.unit,
        "fill": coordinates.fill,
        "numeric": coordinates.numeric,
        "indicators": coordinates.indicators,
    }


def _coordinates(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Coordinates:
    names = about["feature_names"]
    categories = {int(at): tuple(known) for at, known in about["categories"]}
    coordinates = Coordinates(
        feature_names=None if names is None else tuple(str(name) for name in names),
        n_features=int(about["n_features"]),
        numeric=_positions(arrays["numeric"], int(about["n_features"])),
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
        or (names is not None and len(names) != coordinates.n_features)
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
