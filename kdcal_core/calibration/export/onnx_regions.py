"""Calibration region by region, written as nodes of an ONNX graph.

All partitions are computed together, in tensors (n, L, K) for L partitions, unless each reads the
output of the one before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.calibration.export.onnx_columns import Columns
from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.calibration.export.onnx_partitions import columns_read, regions
from kdcal_core.calibration.export.onnx_region_maps import WRITTEN, mapped_nodes
from kdcal_core.calibration.regions.boosted import Damped
from kdcal_core.errors import InputError
from kdcal_core.statistics import CLIP


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
        The graph does not read a column that the partitions read.
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
    """From the probabilities towards those of a map, (n, 1, K), on their logarithms."""
    here = nodes.log(proba, CLIP)
    there = nodes.log(nodes.over_layers(found), CLIP)
    step = nodes.mul(nodes.node("Sub", there, here), rate)
    return nodes.node("Softmax", nodes.add(here, step), axis=1)
