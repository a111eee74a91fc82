"""PyTorch models as parents: exported programs from a file, modules in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.parents.base import Features, Parent
from kdcal_core.parents.features import numeric_input
from kdcal_core.parents.outputs import (
    OutputKind,
    are_logits,
    blocks,
    check_feature_names,
    class_names,
    guess_kind,
    network_in_words,
    one_a_class,
    string_list,
    to_proba,
)
from kdcal_core.parents.torch_archive import read_archive
from kdcal_core.parents.torch_program import build_program
from kdcal_core.parents.torch_record import Recording, Tap, record, run_with_taps
from kdcal_core.partition import ActivationCodes, pack_bits

# A prime, so that it is not mistaken for a layer's width.
_TRIAL_ROWS = 61
# Numbers that one block of rows may produce on its way: 256 MB as float32.
_BLOCK_CELLS = 1 << 26
_MOST_BLOCK_ROWS = 8192


def load(path: Path, *, name: str) -> Parent:
    """Load a PyTorch exported program (``.pt2``).

    The archive is opened by hand: weights are raw numbers, the graph is JSON, and its operators
    must be on a list. Pickled members are never read; a program that needs one is refused.
    Class and feature names come from the extra files ``classes.json`` and
    ``feature_names.json``, each a JSON list, where the archive has them.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Its name, for messages.

    Returns
    -------
    Parent
        With ``codes`` and ``embed`` where the scores come from ReLU layers, with ``logits``
        where the network has them, and with a head behind an encoder.

    Raises
    ------
    InputError
        The file is broken, unsafe or no classifier.
    """
    try:
        return _load(path)
    except InputError as error:
        raise error.at(file=name) from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(
            "The exported program contradicts itself",
            fix="It may be damaged; copy or export it again.",
            file=name,
        ) from error


def wrap_module(
    module: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    input_shape: Sequence[int] | None = None,
    output: Literal["auto", "logit", "probability", "log-probability"] = "auto",
) -> Parent:
    """Take a ``torch.nn.Module`` in memory as a parent.

    The module is run in evaluation mode and without gradients; its own mode is restored
    afterwards.

    Parameters
    ----------
    module : torch.nn.Module
        Takes one tensor (n, n_features) or (n, *input_shape), returns (n, K), (n, 1) or (n,).
    classes : sequence, optional
        Names of the K classes; counted where left out.
    feature_names : sequence of str, optional
        Names of the columns in order.
    n_features : int, optional
        Number of columns; found from the names, ``input_shape`` or a first linear layer.
    input_shape : sequence of int, optional
        Shape of one row, for example (1, 28, 28) for images; columns are reshaped to it.
    output : {"auto", "logit", "probability", "log-probability"}, default="auto"
        What the module returns; "auto" looks at its last operation, then at its values.

    Returns
    -------
    Parent
        With ``codes`` and ``embed`` where the scores come from ReLU layers, with ``logits``
        where the network has them, and with a head behind an encoder.

    Raises
    ------
    InputError
        The number of features cannot be told, the module does not run, or names do not fit.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    >>> parent = wrap_module(net, classes=["a", "b", "c"])
    >>> parent.kind, parent.predict_proba(np.zeros((5, 2))).shape
    ('ReLU network (PyTorch), 1 hidden layer of 4', (5, 3))
    """
    if output not in ("auto", "logit", "probability", "log-probability"):
        raise InputError(f"The output kind {output!r} is unknown", fix="Leave it at 'auto'.")
    if input_shape is None:
        input_shape = (_width(module, feature_names, n_features),)
    dtype, device = _number_format(module)
    network = _Network(
        run=partial(_run_module, module),
        row_shape=tuple(input_shape),
        batch=None,
        dtype=dtype,
        device=device,
    )
    return _parent(
        network,
        classes=None if classes is None else tuple(str(name) for name in classes),
        feature_names=feature_names,
        kind=None if output == "auto" else output,
    )


class TorchClassifier:
    """A PyTorch classifier without ReLU layers.

    ``logits`` is there where the network has them (:class:`~kdcal_core.parents.base.HasLogits`).
    """

    logits: Callable[[Features], FloatArray]

    def __init__(
        self,
        network: _Network,
        recording: Recording,
        *,
        output_kind: OutputKind,
        classes: tuple[str, ...] | None,
        feature_names: Sequence[str] | None,
    ) -> None:
        n_classes = max(2, recording.output.numel() // len(recording.output))
        self.classes, self.named_classes = class_names(classes, n_classes)
        self.n_features = prod(network.row_shape)
        self.feature_names = check_feature_names(feature_names, self.n_features)
        self.kind = "PyTorch classifier"
        self.other_activations = recording.other_activations
        self._network, self._recording, self._output_kind = network, recording, output_kind
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

    def _outputs(self, X: Features) -> Iterator[NDArray[Any]]:
        for rows, n_block in self._blocks(X):
            yield _to_numpy(self._network.output(rows))[:n_block]

    def _values(self, taps: tuple[Tap, ...], X: Features) -> FloatArray:
        """Values on the way to the scores side by side, (n, d) float64."""
        parts = []
        for rows, n_block in self._blocks(X):
            values = self._network.taps(rows, self._recording, taps, _as_float64)
            parts.append(np.concatenate([value[:n_block] for value in values], axis=1))
        return np.concatenate(parts)

    def _blocks(self, X: Features) -> Iterator[tuple[Any, int]]:
        matrix = numeric_input(X, n_features=self.n_features, feature_names=self.feature_names)
        block_rows = self._network.batch or min(
            _MOST_BLOCK_ROWS, max(1, _BLOCK_CELLS // self._recording.numbers_per_row)
        )
        for block in blocks(len(matrix), block_rows):
            yield self._network.tensor(matrix[block]), block.stop - block.start


class TorchNetwork(TorchClassifier):
    """A PyTorch classifier with ReLU layers.

    ``head_codes`` and ``head_input`` are there where it is an encoder with a dense ReLU head
    (:class:`~kdcal_core.parents.base.HasHead`).
    """

    head_codes: Callable[[Features], ActivationCodes]
    head_input: Callable[[Features], FloatArray]

    def __init__(self, network: _Network, recording: Recording, **names: Any) -> None:
        super().__init__(network, recording, **names)
        self.kind = network_in_words(recording.widths, len(recording.last), "PyTorch")
        if recording.head_source is not None:
            self.head_codes = partial(self._bits, recording.head_layers)
            self.head_input = partial(self._values, (recording.head_source,))

    def codes(self, X: Features) -> ActivationCodes:
        """Activation bits of every ReLU layer, in the order of computation."""
        return self._bits(self._recording.layers, X)

    def embed(self, X: Features) -> FloatArray:
        """Last hidden layer, (n, d) float64; an ensemble's members side by side."""
        return self._values(self._recording.last, X)

    def _bits(self, taps: tuple[Tap, ...], X: Features) -> ActivationCodes:
        packed = []
        for rows, n_block in self._blocks(X):
            layers = self._network.taps(rows, self._recording, taps, _positive)
            packed.append(pack_bits([layer[:n_block] for layer in layers]))
        words = np.concatenate([block.words for block in packed])
        return ActivationCodes(words, packed[0].layer_widths)


@dataclass(frozen=True, eq=False)
class _Network:
    """Something that turns a batch of rows into scores, and what it wants the rows to be."""

    run: Callable[[Any], Any]
    row_shape: tuple[int, ...]
    batch: int | None
    dtype: Any
    device: Any

    def tensor(self, matrix: FloatArray) -> Any:
        """Rows as a fresh tensor, filled up to the batch that the network insists on."""
        import torch

        lacking = (self.batch or len(matrix)) - len(matrix)
        if lacking:
            matrix = np.concatenate([matrix, np.zeros((lacking, matrix.shape[1]))])
        rows = torch.tensor(matrix, device=self.device).to(self.dtype)
        if not self.dtype.is_floating_point and not bool((rows == torch.tensor(matrix)).all()):
            raise InputError(
                "The features hold numbers that are not whole, and the model takes whole ones",
                fix="Prepare the columns as it was done before training.",
            )
        return rows.reshape(len(matrix), *self.row_shape)

    def trial(self) -> Any:
        noise = np.random.default_rng(0).standard_normal(
            (self.batch or _TRIAL_ROWS, prod(self.row_shape))
        )
        return self.tensor(noise if self.dtype.is_floating_point else (noise > 0).astype(float))

    def output(self, rows: Any) -> Any:
        with _guarded():
            return self.run(rows)

    def record(self) -> Recording:
        with _guarded():
            return record(self.run, self.trial())

    def taps(
        self,
        rows: Any,
        recording: Recording,
        wanted: Collection[Tap],
        keep: Callable[[Any], NDArray[Any]],
    ) -> list[NDArray[Any]]:
        with _guarded():
            return run_with_taps(self.run, rows, recording, wanted, keep)


def _load(path: Path) -> Parent:
    archive = read_archive(path)
    program = build_program(archive)
    if program.batch == 1:
        warnings.warn(
            "The program was exported for one row at a time, which is slow; export it with "
            "dynamic_shapes=({0: torch.export.Dim.AUTO},) to let it take many.",
            InputWarning,
            stacklevel=3,
        )
    network = _Network(
        run=program,
        row_shape=program.row_shape,
        batch=program.batch,
        dtype=program.dtype,
        device="cpu",
    )
    extra = {
        key: string_list(archive.extra[f"{key}.json"], key) if f"{key}.json" in archive.extra
        else None
        for key in ("classes", "feature_names")
    }  # fmt: skip
    return _parent(network, **extra, kind=None)


def _parent(
    network: _Network,
    *,
    classes: tuple[str, ...] | None,
    feature_names: Sequence[str] | None,
    kind: OutputKind | None,
) -> Parent:
    recording = network.record()
    output = recording.output
    n_rows = network.batch or _TRIAL_ROWS
    if output.ndim not in (1, 2) or len(output) != n_rows or not output.numel():
        raise InputError(
            f"The model's output has the shape {tuple(output.shape)} for {n_rows} rows",
            fix="A classifier gives one row of numbers per example.",
        )
    kind = kind or recording.kind
    if kind is None:
        single = output.numel() == n_rows and recording.ends_linear
        kind = "logit" if single else guess_kind(_to_numpy(output))
    seen = recording.logits_seen
    if seen is not None and not are_logits(_to_numpy(seen), _to_numpy(output), kind):
        recording = replace(recording, logits=None)
    build = TorchNetwork if recording.last else TorchClassifier
    return build(network, recording, output_kind=kind, classes=classes, feature_names=feature_names)


def _run_module(module: Any, rows: Any) -> Any:
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        return module(rows)
    finally:
        for part, training in modes.items():
            part.training = training


@contextmanager
def _guarded() -> Iterator[None]:
    """Without gradients, and with errors of the backend told as errors of the input."""
    import torch

    try:
        with torch.no_grad():
            yield
    except InputError:
        raise
    except Exception as error:  # a module may raise anything, the backend's share no base
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"PyTorch cannot run the model: {lines[0][:300]}",
            fix="Check the number and the shape of the features it takes.",
        ) from error


def _width(module: Any, feature_names: Sequence[str] | None, n_features: int | None) -> int:
    if n_features is not None:
        return n_features
    if feature_names is not None:
        return len(feature_names)
    for part in module.modules():
        if isinstance(getattr(part, "in_features", None), int):
            return int(part.in_features)
        if next(part.children(), None) is None and next(part.parameters(), None) is not None:
            break
    raise InputError(
        "The number of features of the module cannot be told",
        fix="Pass n_features, or input_shape for images.",
    )


def _number_format(module: Any) -> tuple[Any, Any]:
    """Number format and device of the module's parameters."""
    import torch

    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype, tensor.device
    return torch.float32, torch.device("cpu")


def _positive(layer: Any) -> NDArray[Any]:
    return np.asarray((layer > 0).flatten(1).cpu().numpy())


def _as_float64(layer: Any) -> NDArray[Any]:
    return np.asarray(_to_numpy(layer.reshape(len(layer), prod(layer.shape[1:]))))


def _to_numpy(tensor: Any) -> NDArray[Any]:
    import torch

    # A copy, for a later operation may write into the layer's own memory.
    return np.asarray(tensor.detach().to("cpu", torch.float64, copy=True).numpy())
