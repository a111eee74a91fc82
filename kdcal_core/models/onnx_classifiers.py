"""ONNX models once their graph is read: plain ones, ReLU networks and tree ensembles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import Family, FloatArray
from kdcal_core.models.onnx_input import Inputs, flat, padded, run
from kdcal_core.models.onnx_trees import TreeTable
from kdcal_core.models.outputs import (
    OutputKind,
    blocks,
    network_in_words,
    one_a_class,
    to_proba,
)
from kdcal_core.models.protocol import Features
from kdcal_core.models.regression_outputs import check_outputs, layer_names, pick_layer
from kdcal_core.partition import ActivationCodes, LeafCodes, pack_bits
from kdcal_core.text import counted

# Numbers that one tensor of a block may take: 256 MB as float32.
_BLOCK_CELLS = 1 << 26
_MOST_BLOCK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Core:
    """A checked graph in the runtime."""

    session: Any
    inputs: Inputs
    other_activations: tuple[str, ...]

    def run(
        self, X: Features, names: list[str], *, width: int = 1
    ) -> Iterator[tuple[int, list[NDArray[Any]]]]:
        """Stream rows through the graph: the first row's position and the tensors named.

        ``width`` is how many numbers a row takes in them; it sets the size of a block.
        """
        feed = self.inputs.feed(X)
        n_rows = len(next(iter(feed.values())))
        per_row = max(width, self.inputs.n_features, self.inputs.cost.row_cells)
        block_rows = self.inputs.batch or min(_MOST_BLOCK_ROWS, max(1, _BLOCK_CELLS // per_row))
        for block in blocks(n_rows, block_rows):
            part = {key: values[block] for key, values in feed.items()}
            n_block = block.stop - block.start
            values = run(self.session, names, padded(part, n_block, self.inputs))
            yield block.start, [value[:n_block] for value in values]


@dataclass(frozen=True, eq=False)
class Scores:
    """Where a classifier's scores stand, and what they are."""

    name: str
    kind: OutputKind
    classes: tuple[str, ...]
    named_classes: bool
    logits: str | None


@dataclass(frozen=True, eq=False)
class Layers:
    """The layers of a network: tensors of the graph, with the units of each row.

    ``hidden`` holds the layers that have names for people, whatever their activation.
    """

    relus: tuple[str, ...]
    widths: tuple[int, ...]
    last: tuple[str, ...]
    hidden: tuple[str, ...]
    hidden_widths: tuple[int, ...]
    head: tuple[str, list[str]] | None


class OnnxModel:
    """An ONNX graph without a partition that kdcal can read."""

    def __init__(self, core: Core, kind: str) -> None:
        self._core = core
        self.kind = kind
        self.n_features = core.inputs.n_features
        self.feature_names = core.inputs.feature_names
        self.other_activations = core.other_activations


class WithLayers(OnnxModel):
    """Hidden layers, and activation bits where they are ReLUs.

    ``codes`` is there where there are ReLUs, ``head_codes`` and ``head_input`` where the network
    is an encoder with a dense ReLU head (:class:`~kdcal_core.models.protocol.HasHead`).
    """

    codes: Callable[[Features], ActivationCodes]
    head_codes: Callable[[Features], ActivationCodes]
    head_input: Callable[[Features], FloatArray]

    def _take(self, layers: Layers) -> None:
        core, self._layers, self._width = (
            self._core,
            layers,
            max(sum(layers.widths), sum(layers.hidden_widths)),
        )
        self.layers = layer_names(layers.hidden_widths)
        if layers.relus:
            self.kind = network_in_words(layers.widths, len(layers.last), "ONNX")
            self.codes = partial(_bits, core, list(layers.relus), self._width)
        if layers.head is not None:
            source, head_layers = layers.head
            self.head_codes = partial(_bits, core, head_layers, self._width)
            self.head_input = partial(_values, core, [source], self._width)

    def embed(self, X: Features, layer: str | None = None) -> FloatArray:
        """One hidden layer, (n, d) float64; by default the last, an ensemble's side by side."""
        if layer is None:
            return _values(self._core, list(self._layers.last), self._width, X)
        return _values(self._core, [self.layer_tensor(layer)], self._width, X)

    def layer_tensor(self, layer: str) -> str:
        """The tensor of the graph that holds a hidden layer, for what is appended to it."""
        return self._layers.hidden[pick_layer(self.layers, layer)]


class WithTrees(OnnxModel):
    """The leaves of a tree ensemble, whatever stands before the trees."""

    _tables: list[TreeTable]

    def _plant(self, tables: list[TreeTable]) -> None:
        n_trees = sum(table.n_trees for table in tables)
        self.kind = f"Tree ensemble (ONNX), {counted(n_trees, 'tree')}"
        self._tables = tables

    def codes(self, X: Features) -> LeafCodes:
        """Leaf per tree, in the order of the file."""
        sources = list(dict.fromkeys(table.source for table in self._tables))
        parts = []
        for _, values in self._core.run(X, sources):
            seen = dict(zip(sources, values, strict=True))
            leaves = [table.apply(flat(seen[table.source])) for table in self._tables]
            parts.append(np.concatenate(leaves, axis=1))
        return LeafCodes(np.concatenate(parts))


class OnnxClassifier(OnnxModel):
    """An ONNX classifier.

    ``logits`` is there where the graph has them (:class:`~kdcal_core.models.protocol.HasLogits`).
    """

    logits: Callable[[Features], FloatArray]

    def __init__(self, core: Core, scores: Scores) -> None:
        super().__init__(core, "ONNX classifier")
        self.classes, self.named_classes = scores.classes, scores.named_classes
        self._scores = scores
        if scores.logits is not None:
            self.logits = partial(_logits, core, scores.logits, len(scores.classes))

    @property
    def scores(self) -> Scores:
        """The tensor of the graph that becomes the probabilities, for what is appended to it."""
        return self._scores

    def raw_scores(self, X: Features) -> NDArray[Any]:
        """That tensor for rows, (n, K), or (n, 1) for two classes."""
        parts = [flat(raw) for _, (raw,) in self._core.run(X, [self._scores.name])]
        return np.concatenate(parts)

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one."""
        scores = self._scores
        proba = [
            to_proba(raw, scores.kind, first_row=start)
            for start, (raw,) in self._core.run(X, [scores.name])
        ]
        return np.concatenate(proba)


class OnnxNetwork(OnnxClassifier, WithLayers):
    """An ONNX classifier with ReLU layers."""

    def __init__(self, core: Core, scores: Scores, layers: Layers) -> None:
        super().__init__(core, scores)
        self._take(layers)


class OnnxTrees(OnnxClassifier, WithTrees):
    """An ONNX classifier whose scores come from trees."""

    def __init__(self, core: Core, scores: Scores, tables: list[TreeTable]) -> None:
        super().__init__(core, scores)
        self._plant(tables)


class OnnxRegressor(OnnxModel):
    """An ONNX regression model: the tensors of its outputs side by side."""

    def __init__(
        self, core: Core, tensors: list[str], outputs: tuple[str, ...], family: Family | None
    ) -> None:
        super().__init__(core, "ONNX regression model")
        self.outputs, self.family = outputs, family
        self._tensors = tensors

    def predict(self, X: Features) -> FloatArray:
        """Parameters of each row's distribution, (n, len(outputs)) float64."""
        n_outputs = len(self.outputs)
        parts = []
        for start, values in self._core.run(X, self._tensors, width=n_outputs):
            raw = np.concatenate([flat(value) for value in values], axis=1)
            parts.append(check_outputs(raw, len(raw), n_outputs, first_row=start))
        return np.concatenate(parts)


class OnnxNetworkRegressor(OnnxRegressor, WithLayers):
    """An ONNX regression model with hidden layers."""


class OnnxTreesRegressor(OnnxRegressor, WithTrees):
    """An ONNX regression model whose numbers come from trees."""


def _bits(core: Core, layers: list[str], width: int, X: Features) -> ActivationCodes:
    packed = [
        pack_bits([flat(layer) > 0 for layer in values])
        for _, values in core.run(X, layers, width=width)
    ]
    words = np.concatenate([block.words for block in packed])
    return ActivationCodes(words, packed[0].layer_widths)


def _values(core: Core, names: list[str], width: int, X: Features) -> FloatArray:
    """Tensors of the graph side by side, (n, d) float64."""
    parts = [
        np.concatenate([flat(value).astype(np.float64) for value in values], axis=1)
        for _, values in core.run(X, names, width=width)
    ]
    return np.concatenate(parts)


def _logits(core: Core, name: str, width: int, X: Features) -> FloatArray:
    return one_a_class(_values(core, [name], width, X))
