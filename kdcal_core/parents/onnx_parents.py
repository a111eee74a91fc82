"""ONNX classifiers once their graph is read: plain ones, ReLU networks and tree ensembles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.parents.base import Features
from kdcal_core.parents.onnx_input import Inputs
from kdcal_core.parents.onnx_session import flat, padded, run
from kdcal_core.parents.onnx_trees import TreeTable
from kdcal_core.parents.outputs import (
    OutputKind,
    blocks,
    network_in_words,
    one_a_class,
    to_proba,
)
from kdcal_core.partition import ActivationCodes, LeafCodes, pack_bits

# Numbers that one block of hidden layers may take: 256 MB as float32.
_BLOCK_CELLS = 1 << 26
_MOST_BLOCK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Core:
    """A checked graph in the runtime."""

    session: Any
    inputs: Inputs
    score: str
    output_kind: OutputKind
    classes: tuple[str, ...]
    named_classes: bool
    logits: str | None
    head: tuple[str, list[str]] | None
    other_activations: tuple[str, ...]

    def run(
        self, X: Features, names: list[str], *, width: int = 1
    ) -> Iterator[tuple[int, list[NDArray[Any]]]]:
        """Stream rows through the graph: the first row's position and the tensors named.

        ``width`` is how many numbers a row takes in them; it sets the size of a block.
        """
        feed = self.inputs.feed(X)
        n_rows = len(next(iter(feed.values())))
        per_row = max(width, self.inputs.n_features)
        block_rows = self.inputs.batch or min(_MOST_BLOCK_ROWS, max(1, _BLOCK_CELLS // per_row))
        for block in blocks(n_rows, block_rows):
            part = {key: values[block] for key, values in feed.items()}
            n_block = block.stop - block.start
            values = run(self.session, names, padded(part, n_block, self.inputs))
            yield block.start, [value[:n_block] for value in values]


class OnnxClassifier:
    """An ONNX classifier without a partition that kdcal can read.

    ``logits`` is there where the graph has them (:class:`~kdcal_core.parents.base.HasLogits`).
    """

    logits: Callable[[Features], FloatArray]

    def __init__(self, core: Core, kind: str = "ONNX classifier") -> None:
        self._core = core
        self.kind = kind
        self.classes, self.named_classes = core.classes, core.named_classes
        self.n_features = core.inputs.n_features
        self.feature_names = core.inputs.feature_names
        self.other_activations = core.other_activations
        if core.logits is not None:
            self.logits = partial(_logits, core, core.logits)

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one."""
        core = self._core
        proba = [
            to_proba(raw, core.output_kind, first_row=start)
            for start, (raw,) in core.run(X, [core.score])
        ]
        return np.concatenate(proba)


class OnnxNetwork(OnnxClassifier):
    """An ONNX classifier with ReLU layers.

    ``head_codes`` and ``head_input`` are there where it is an encoder with a dense ReLU head
    (:class:`~kdcal_core.parents.base.HasHead`).
    """

    head_codes: Callable[[Features], ActivationCodes]
    head_input: Callable[[Features], FloatArray]

    def __init__(self, core: Core, layers: list[str], last: list[str], widths: list[int]) -> None:
        super().__init__(core, network_in_words(widths, len(last), "ONNX"))
        self._layers, self._last = layers, last
        self._width = sum(widths)
        if core.head is not None:
            source, head_layers = core.head
            self.head_codes = partial(_bits, core, head_layers, self._width)
            self.head_input = partial(_values, core, [source], self._width)

    def codes(self, X: Features) -> ActivationCodes:
        """Activation bits of every ReLU layer, in the order of computation."""
        return _bits(self._core, self._layers, self._width, X)

    def embed(self, X: Features) -> FloatArray:
        """Last hidden layer, (n, d) float64; an ensemble's members side by side."""
        return _values(self._core, self._last, self._width, X)


class OnnxTrees(OnnxClassifier):
    """An ONNX tree ensemble, whatever stands before the trees."""

    def __init__(self, core: Core, tables: list[TreeTable]) -> None:
        n_trees = sum(table.n_trees for table in tables)
        plural = "" if n_trees == 1 else "s"
        super().__init__(core, f"Tree ensemble (ONNX), {n_trees:,} tree{plural}")
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


def _logits(core: Core, name: str, X: Features) -> FloatArray:
    return one_a_class(_values(core, [name], len(core.classes), X))
