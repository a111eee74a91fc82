"""PyTorch models once their network is known: plain ones and those with hidden layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.models.base import Features
from kdcal_core.models.features import numeric_input
from kdcal_core.models.outputs import (
    OutputKind,
    blocks,
    check_feature_names,
    class_names,
    network_in_words,
    one_a_class,
    to_proba,
)
from kdcal_core.models.regression_outputs import layer_names, pick_layer
from kdcal_core.models.torch_network import Network, to_numpy
from kdcal_core.models.torch_record import Recording, Tap
from kdcal_core.partition import ActivationCodes, pack_bits

# Numbers that one block of rows may produce on its way: 256 MB as float32.
_BLOCK_CELLS = 1 << 26
_MOST_BLOCK_ROWS = 8192


class TorchModel:
    """A network and its columns."""

    kind: str

    def __init__(
        self, network: Network, recording: Recording, feature_names: Sequence[str] | None
    ) -> None:
        self.n_features = prod(network.row_shape)
        self.feature_names = check_feature_names(feature_names, self.n_features)
        self.other_activations = recording.other_activations
        self._network, self._recording = network, recording

    def _outputs(self, X: Features) -> Iterator[NDArray[Any]]:
        for rows, n_block in self._blocks(X):
            yield to_numpy(self._network.output(rows))[:n_block]

    def _values(self, taps: tuple[Tap, ...], X: Features) -> FloatArray:
        """Values on the way to the scores side by side, (n, d) float64."""
        parts = []
        for rows, n_block in self._blocks(X):
            values = self._network.taps(rows, self._recording, taps, _as_float64)
            parts.append(np.concatenate([value[:n_block] for value in values], axis=1))
        return np.concatenate(parts)

    def _bits(self, taps: tuple[Tap, ...], X: Features) -> ActivationCodes:
        packed = []
        for rows, n_block in self._blocks(X):
            layers = self._network.taps(rows, self._recording, taps, _positive)
            packed.append(pack_bits([layer[:n_block] for layer in layers]))
        words = np.concatenate([block.words for block in packed])
        return ActivationCodes(words, packed[0].layer_widths)

    def _blocks(self, X: Features) -> Iterator[tuple[Any, int]]:
        matrix = numeric_input(X, n_features=self.n_features, feature_names=self.feature_names)
        block_rows = self._network.batch or min(
            _MOST_BLOCK_ROWS, max(1, _BLOCK_CELLS // self._recording.numbers_per_row)
        )
        for block in blocks(len(matrix), block_rows):
            yield self._network.tensor(matrix[block]), block.stop - block.start


class WithLayers(TorchModel):
    """Hidden layers by name, and activation bits where there are ReLUs.

    ``codes`` is there where there are ReLUs, ``head_codes`` and ``head_input`` where the network
    is an encoder with a dense ReLU head (:class:`~kdcal_core.models.base.HasHead`).
    """

    codes: Callable[[Features], ActivationCodes]
    head_codes: Callable[[Features], ActivationCodes]
    head_input: Callable[[Features], FloatArray]

    def _take(self, last: tuple[Tap, ...]) -> None:
        recording, self._last = self._recording, last
        self.layers = layer_names(recording.hidden_widths)
        if recording.layers:
            self.kind = network_in_words(recording.widths, len(last), "PyTorch")
            self.codes = partial(self._bits, recording.layers)
        if recording.head_source is not None:
            self.head_codes = partial(self._bits, recording.head_layers)
            self.head_input = partial(self._values, (recording.head_source,))

    def embed(self, X: Features, layer: str | None = None) -> FloatArray:
        """One hidden layer, (n, d) float64; by default the last, an ensemble's side by side."""
        if layer is None:
            return self._values(self._last, X)
        return self._values((self._recording.hidden[pick_layer(self.layers, layer)],), X)


class TorchClassifier(TorchModel):
    """A PyTorch classifier without ReLU layers.

    ``logits`` is there where the network has them (:class:`~kdcal_core.models.base.HasLogits`).
    """

    logits: Callable[[Features], FloatArray]

    def __init__(
        self,
        network: Network,
        recording: Recording,
        *,
        output_kind: OutputKind,
        classes: tuple[str, ...] | None,
        feature_names: Sequence[str] | None,
    ) -> None:
        n_classes = max(2, recording.output.numel() // len(recording.output))
        self.classes, self.named_classes = class_names(classes, n_classes)
        super().__init__(network, recording, feature_names)
        self.kind = "PyTorch classifier"
        self._output_kind = output_kind
        if output_kind == "logit":
            self.logits = self._own_logits
        elif recording.logits is not None:
            self.logits = partial(self._logits_at, recording.logits)

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one."""
        parts = []
        first_row = 0
        for raw in self._outputs(X):
            parts.append(to_proba(raw, self._output_kind, first_row=first_row))
            first_row += len(raw)
        return np.concatenate(parts)

    def _own_logits(self, X: Features) -> FloatArray:
        parts = [raw.reshape(len(raw), prod(raw.shape[1:])) for raw in self._outputs(X)]
        return one_a_class(np.concatenate(parts))

    def _logits_at(self, tap: Tap, X: Features) -> FloatArray:
        return one_a_class(self._values((tap,), X))


class TorchNetwork(TorchClassifier, WithLayers):
    """A PyTorch classifier with ReLU layers."""

    def __init__(self, network: Network, recording: Recording, **names: Any) -> None:
        super().__init__(network, recording, **names)
        self._take(recording.last)


def _positive(layer: Any) -> NDArray[Any]:
    return np.asarray((layer > 0).flatten(1).cpu().numpy())


def _as_float64(layer: Any) -> NDArray[Any]:
    return np.asarray(to_numpy(layer.reshape(len(layer), prod(layer.shape[1:]))))
