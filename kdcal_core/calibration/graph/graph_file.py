"""A kernel density graph to and from its parts in a file, every part checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.graph.blend import LARGEST_WEIGHT, Blend
from kdcal_core.calibration.graph.graph import KernelDensityGraph
from kdcal_core.calibration.graph.located import Located
from kdcal_core.store.archive import (
    read_archive,
    telling_contradictions,
    write_archive,
)

_KIND = "kernel density graph"
# Kind and shape of each array; a letter is the same length wherever it stands.
_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "centres": ("f", ("p", "d")),
    "variances": ("f", ("p", "d")),
    "counts": ("i", ("p", "K")),
    "exponents": ("f", ("G",)),
    "class_masses": ("f", ("G", "p", "K")),
    "prior": ("f", ("K",)),
    "variance_shape": ("f", ("d",)),
    "holdout_x": ("f", ("h", "d")),
    "holdout_index": ("i", ("h",)),
    "holdout_tied": ("b", ("h",)),
    "holdout_y": ("i", ("h",)),
    "holdout_proba": ("f", ("h", "K")),
}
_MAY_LACK = {"variance_shape", "holdout_proba"}
_PROBA_SUM = 1e-3  # how far from one a parent's single precision may lead
_DTYPES = {"f": np.float64, "i": np.int64, "b": np.bool_}


def graph_parts(graph: KernelDensityGraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What :func:`graph_from_parts` makes the graph of again."""
    about = {
        "classes": list(graph.classes),
        "n": graph.n,
        "gamma": graph.gamma,
        "variance_floor": graph.variance_floor,
        "log_floor": graph.log_floor,
        "floor_quantile": graph.floor_quantile,
        "blend": None if graph.blend is None else [graph.blend.parent, graph.blend.graph],
    }
    arrays: dict[str, NDArray[Any]] = {
        name: getattr(graph, name)
        for name in ("centres", "variances", "counts", "exponents", "class_masses", "prior")
    }
    if graph.holdout is not None and graph.holdout_y is not None:
        arrays["holdout_x"] = graph.holdout.x
        arrays["holdout_index"] = graph.holdout.index
        arrays["holdout_tied"] = graph.holdout.tied
        arrays["holdout_y"] = graph.holdout_y
        if graph.holdout.proba is not None:
            arrays["holdout_proba"] = graph.holdout.proba
    if graph.variance_shape is not None:
        arrays["variance_shape"] = graph.variance_shape
    return about, arrays


def graph_from_parts(
    about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> KernelDensityGraph:
    """The graph that the parts describe.

    Raises
    ------
    ValueError, TypeError, InputError
        Parts are missing or contradict each other.
    """
    found = {name: arrays[name] for name in _ARRAYS if name in arrays}
    lengths = _checked_shapes(found)
    classes = tuple(about.get("classes") or ())
    n, quantile = about.get("n"), about.get("floor_quantile")
    settings: list[Any] = [about.get(name) for name in ("gamma", "variance_floor", "log_floor")]
    _demand(all(isinstance(name, str) for name in classes) and len(classes) == lengths["K"])
    _demand(isinstance(n, int) and n == found["counts"].sum())
    _demand(all(isinstance(value, float) and not np.isnan(value) for value in settings))
    _demand(quantile is None or (isinstance(quantile, float) and 0 < quantile < 1))
    _checked_values(found, lengths)
    held = "holdout_index" in found
    graph = KernelDensityGraph(
        classes=classes,
        n=int(n or 0),
        centres=found["centres"],
        variances=found["variances"],
        counts=found["counts"],
        exponents=found["exponents"],
        class_masses=found["class_masses"],
        prior=found["prior"],
        gamma=settings[0],
        variance_floor=settings[1],
        log_floor=settings[2],
        floor_quantile=quantile,
        holdout=Located(
            found["holdout_x"],
            found["holdout_index"],
            found["holdout_tied"],
            found.get("holdout_proba"),
        )
        if held
        else None,
        holdout_y=found["holdout_y"] if held else None,
        variance_shape=found.get("variance_shape"),
        blend=_blend(about["blend"], found),
    )
    _demand(bool((graph.added_variance > 0).all()))  # two tiny numbers may make zero
    # A gamma that is not of the grid or a variance floor of zero is refused here.
    graph.with_settings(
        gamma=graph.gamma, variance_floor=graph.variance_floor, log_floor=graph.log_floor
    )
    return graph


def save_graph(graph: KernelDensityGraph, path: str | Path) -> None:
    """Write the graph to a file."""
    about, arrays = graph_parts(graph)
    write_archive(path, _KIND, {"graph": about}, arrays)


def load_graph(path: str | Path) -> KernelDensityGraph:
    """Read a graph from a file."""
    about, arrays = read_archive(path, _KIND)
    with telling_contradictions(path):
        return graph_from_parts(about["graph"], arrays)


def _checked_shapes(found: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """The length that each letter stands for."""
    held = {name for name in _ARRAYS if name.startswith("holdout")} - _MAY_LACK
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


def _blend(weights: Any, found: Mapping[str, NDArray[Any]]) -> Blend | None:
    if weights is None:
        return None
    parent, graph = weights
    _demand("holdout_proba" in found)
    _demand(all(isinstance(one, float) and 0 <= one <= LARGEST_WEIGHT for one in weights))
    return Blend(parent, graph)


def _demand(holds: bool) -> None:
    if not holds:
        raise ValueError("parts that contradict each other")
