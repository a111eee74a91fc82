"""The maps of all regions at once, written as nodes of an ONNX graph.

Each function takes the maps of L partitions, probabilities (n, K) and regions (n, L) that are
counted on from one partition to the next, and gives probabilities (n, L, K).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.calibration.regions._histogram import HistogramMaps
from kdcal_core.calibration.regions._isotonic import IsotonicMaps
from kdcal_core.calibration.regions._linear import LinearMaps
from kdcal_core.calibration.regions._temperature import TemperatureMaps
from kdcal_core.data import FloatArray
from kdcal_core.statistics import CLIP

# Of a probability, by which two runtimes may differ.
_DIGITS = 8.0


def mapped_nodes(nodes: Nodes, maps: Sequence[Any], proba: str, region: str, n_classes: int) -> str:
    """Calibrated probabilities in each partition, (n, L, K)."""
    if isinstance(maps[0], TemperatureMaps):
        return _temperature(nodes, maps, proba, region)
    # C of them have a map: the second of two classes, or all
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
    """Edges that a logit still does not pass if its probability is off by a few last digits.

    A bin ends exactly at the score of a calibration row, where rounding in another runtime's
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
    # curves are ordered class by class in a layer, and region by region in a look-up
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
    """The last of the ascending corners low to high, at most ``most``, that x reaches, halving."""
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


#: How to write maps of one class against the rest, by their type: from the scores (n, 1, C).
ONE_VS_REST: dict[type, Callable[[Nodes, Sequence[Any], str, str, int], str]] = {
    LinearMaps: _linear,
    HistogramMaps: _histogram,
    IsotonicMaps: _isotonic,
}

#: Maps that can be written.
WRITTEN = (TemperatureMaps, *ONE_VS_REST)
