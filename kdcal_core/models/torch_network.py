"""A PyTorch computation, recorded to find its layers, as a classifier or a regression model.

A recording shows the steps and the values at chosen places. Dropout is kept where there is any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.jobs import lack_of_memory
from kdcal_core.models.block_rows import timed_blocks
from kdcal_core.models.features import numeric_input
from kdcal_core.models.network_layers import (
    Step,
    find_head,
    hidden_layers,
    last_end,
    other_activations,
    relu_layers,
)
from kdcal_core.models.output_meaning import (
    OutputKind,
    Outputs,
    blocks,
    check_feature_names,
    check_outputs,
    class_names,
    layer_names,
    network_in_words,
    one_a_class,
    pick_layer,
    resolve_outputs,
    to_proba,
)
from kdcal_core.models.protocol import Features, Regressor, ShownModel
from kdcal_core.models.torch_operators import (
    KINDS,
    PASSING,
    activation_of,
    dense_input,
    end_input,
    ends_linear,
    is_relu,
    op_name,
    role_of,
)
from kdcal_core.partition import ActivationCodes, pack_bits
from kdcal_core.progress import Progress


@dataclass(frozen=True)
class Tap:
    """A place in a computation, found in every run, whatever the number of rows.

    Attributes
    ----------
    kind : {"relu", "dense", "end"}
        The output of a ReLU, the input of a dense layer, or the input of a softmax or sigmoid.
    place : int
        Its number among its kind, in the order of computation.
    """

    kind: Literal["relu", "dense", "end"]
    place: int


@dataclass(frozen=True)
class Recording:
    """What one run of a network showed.

    Attributes
    ----------
    output : torch.Tensor
    layers, last : tuple of Tap
        ReLU layers from which the output is computed, and those with no further ReLU before the
        output.
    widths : tuple of int
        Units of each layer in ``layers``.
    numbers_per_row : int
        Count of the numbers that the run produced for each row.
    kind : OutputKind or None
        What the output holds, where the last operation shows it.
    ends_linear : bool
        Whether the output comes straight from a linear layer.
    logits : Tap or None
        Input of the single softmax or sigmoid after the last weights.
    logits_seen : torch.Tensor or None
        Its value in this run.
    head_source : Tap or None
        Input of the dense ReLU head after an encoder.
    head_layers : tuple of Tap
        The head's ReLU layers.
    other_activations : tuple of str
        Hidden activations other than ReLU, in words.
    hidden, last_hidden : tuple of Tap
        Inputs of the dense layers that follow any activation, and the last ones of them.
    hidden_widths : tuple of int
        Units of each layer in ``hidden``.
    n_taps : int
        Number of places of all kinds that the run passed.
    """

    output: Any
    layers: tuple[Tap, ...]
    last: tuple[Tap, ...]
    widths: tuple[int, ...]
    numbers_per_row: int
    kind: OutputKind | None
    ends_linear: bool
    logits: Tap | None
    logits_seen: Any
    head_source: Tap | None
    head_layers: tuple[Tap, ...]
    other_activations: tuple[str, ...]
    hidden: tuple[Tap, ...]
    last_hidden: tuple[Tap, ...]
    hidden_widths: tuple[int, ...]
    n_taps: int


def record(network: Callable[[Any], Any], rows: Any) -> Recording:
    """Run a network once and record its layers and outputs.

    Operations are recorded as the backend runs them, whether called as layers, functions or
    methods.
    """
    steps: list[Step] = []
    ops: list[str] = []
    shapes: list[tuple[int, ...]] = []
    taps: dict[int, Tap] = {}
    ends: dict[int, Any] = {}
    taken: dict[int, int] = {}
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    alive: list[Any] = []  # an id identifies a tensor only while it exists

    def name_of(tensor: Any, *, fresh: bool) -> str:
        if fresh or id(tensor) not in names:
            alive.append(tensor)
            names[id(tensor)] = f"{len(alive)}"
        return names[id(tensor)]

    def see(func: Any, args: Any, kwargs: Any, result: Any) -> None:
        reads = tuple(name_of(t, fresh=False) for t in _tensors((args, kwargs)))
        written = _tensors(result)
        for tap, value in _taps(func, args, kwargs, result, len(rows), seen):
            taps[len(steps)] = tap
            if tap.kind == "end":
                ends[len(steps)] = value.clone()
            if tap.kind == "dense":
                taken[len(steps)] = int(value.shape[1])
        role = role_of(func, args, kwargs, len(rows))
        activation = "" if role == "relu" else activation_of(func)
        steps.append(Step(reads, tuple(name_of(t, fresh=True) for t in written), role, activation))
        ops.append(op_name(func))
        shapes.append(tuple(written[0].shape) if written else ())

    source = name_of(rows, fresh=True)
    output = _watched(network, rows, see)
    target = name_of(output, fresh=False)
    layers, last = relu_layers(steps, target, [source])
    layers = [i for i in layers if len(shapes[i]) > 1 and shapes[i][0] == len(rows)]
    source_step = _source_step(steps, ops, target)
    source_op = "" if source_step is None else ops[source_step]
    end = last_end(steps, target, [source])
    head = find_head(steps, target, [source])
    hidden, last_hidden = hidden_layers(steps, target, [source])
    hidden = [(i, name) for i, name in hidden if i in taken]
    fits = head is not None and head.start in taps and set(head.layers) <= set(layers)
    return Recording(
        output=output,
        layers=tuple(taps[i] for i in layers),
        last=tuple(taps[i] for i in last if i in layers),
        widths=tuple(prod(shapes[i][1:]) for i in layers),
        numbers_per_row=max(1, sum(tensor.numel() for tensor in alive) // len(rows)),
        kind=KINDS.get(source_op),
        ends_linear=ends_linear(source_op),
        logits=None if end is None else taps.get(end),
        logits_seen=None if end is None else ends.get(end),
        head_source=taps[head.start] if head is not None and fits else None,
        head_layers=tuple(taps[i] for i in head.layers) if head is not None and fits else (),
        other_activations=other_activations(steps, target, [source]),
        hidden=tuple(taps[i] for i, _ in hidden),
        last_hidden=tuple(taps[i] for i, name in hidden if name in last_hidden),
        hidden_widths=tuple(taken[i] for i, _ in hidden),
        n_taps=seen.total(),
    )


def run_with_taps(
    network: Callable[[Any], Any],
    rows: Any,
    recording: Recording,
    wanted: Collection[Tap],
    keep: Callable[[Any], Any],
) -> list[Any]:
    """Run a network and return ``keep(value)`` at the wanted places, in order.

    ``keep`` is called immediately, because a later operation may write into the same memory.

    Raises
    ------
    InputError
        If the run passes other places than the recorded run, so that none can be trusted.
    """
    kept: list[Any] = []
    seen: Counter[str] = Counter()

    def see(func: Any, args: Any, kwargs: Any, result: Any) -> None:
        for tap, value in _taps(func, args, kwargs, result, len(rows), seen):
            if tap in wanted:
                kept.append(keep(value))

    _watched(network, rows, see)
    if seen.total() != recording.n_taps:
        raise InputError(
            f"The model takes another course with {len(rows):,} rows than with others",
            fix="Pass another number of rows; one more is enough.",
        )
    return kept


def _taps(
    func: Any, args: Any, kwargs: Any, result: Any, n_rows: int, seen: Counter[str]
) -> Iterator[tuple[Tap, Any]]:
    """The place that an operation marks, if any, and its value; counts it in ``seen``.

    Counts only operations whose number does not depend on the number of rows: PyTorch may run a
    dense layer on other inputs than vectors in more than one way.
    """
    kind: Literal["relu", "dense", "end"]
    if is_relu(func, args, kwargs):
        kind, value = "relu", result
    elif (value := dense_input(func, args, n_rows)) is not None:
        kind = "dense"
    elif (value := end_input(func, args, n_rows)) is not None:
        kind = "end"
    else:
        return
    yield Tap(kind, seen[kind]), value
    seen[kind] += 1


def _watched(
    network: Callable[[Any], Any], rows: Any, see: Callable[[Any, Any, Any, Any], None]
) -> Any:
    """Run a network and show every operation to ``see(func, args, kwargs, result)``."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            see(func, args, kwargs or {}, result)
            return result

    with Watch():  # type: ignore[no-untyped-call]
        return network(rows)


def _tensors(tree: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _source_step(steps: list[Step], ops: list[str], target: str) -> int | None:
    """The step whose numbers a value carries, before reshapes and casts."""
    writer = {name: i for i, step in enumerate(steps) for name in step.writes}
    i = writer.get(target)
    while i is not None and ops[i] in PASSING and steps[i].reads:
        i = writer.get(steps[i].reads[0])
    return i


#: Rows of the run that records a network. A prime, so that it is not mistaken for a width.
TRIAL_ROWS = 61


@dataclass(frozen=True, eq=False)
class Network:
    """A function from a batch of rows to scores, with the rows that it takes."""

    run: Callable[[Any], Any]
    row_shape: tuple[int, ...]
    batch: int | None
    dtype: Any
    device: Any

    def tensor(self, matrix: FloatArray) -> Any:
        """Rows as a new tensor, filled up to the network's fixed batch, if it has one."""
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
            (self.batch or TRIAL_ROWS, prod(self.row_shape))
        )
        return self.tensor(noise if self.dtype.is_floating_point else (noise > 0).astype(float))

    def output(self, rows: Any) -> Any:
        with guarded():
            return self.run(rows)

    def record(self, what: str) -> Recording:
        """What the network does with a few rows; ``what`` it is, for the error.

        Raises
        ------
        InputError
            If the output is not one row of numbers for each of them.
        """
        with guarded():
            rows = self.trial()
            found = record(self.run, rows)
        output = found.output
        if output.ndim not in (1, 2) or len(output) != len(rows) or not output.numel():
            raise InputError(
                f"The model's output has the shape {tuple(output.shape)} for {len(rows)} rows",
                fix=f"{what} gives one row of numbers per example.",
            )
        return found

    def taps(
        self,
        rows: Any,
        recording: Recording,
        wanted: Collection[Tap],
        keep: Callable[[Any], NDArray[Any]],
    ) -> list[NDArray[Any]]:
        with guarded():
            return run_with_taps(self.run, rows, recording, wanted, keep)


@contextmanager
def guarded() -> Iterator[None]:
    """Run without gradients, and report errors of the backend as errors of the input."""
    import torch

    try:
        with torch.no_grad():
            yield
    except InputError:
        raise
    except Exception as error:  # the errors of modules and backend have no common base
        if lack_of_memory(str(error)):
            raise MemoryError("PyTorch ran out of memory") from error
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"PyTorch cannot run the model: {lines[0][:300]}",
            fix="Check the number and the shape of the features it takes.",
        ) from error


def to_numpy(tensor: Any) -> NDArray[Any]:
    """A tensor as float64."""
    import torch

    # A copy, because a later operation may write into the layer's memory.
    return np.asarray(tensor.detach().to("cpu", torch.float64, copy=True).numpy())


# Maximum number of elements that one block of rows may produce: 256 MB as float32.
_BLOCK_CELLS = 1 << 26
_MOST_BLOCK_ROWS = 8192


class TorchModel(ShownModel):
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
        """Values at several places side by side, (n, d) float64."""
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

    def _blocks(self, X: Features, *, timed: bool = True) -> Iterator[tuple[Any, int]]:
        """Blocks of rows with their size; not ``timed`` where the result depends on the blocks."""
        matrix = numeric_input(X, n_features=self.n_features, feature_names=self.feature_names)
        cells, batch = self._recording.numbers_per_row, self._network.batch
        most = batch or min(_MOST_BLOCK_ROWS, max(1, _BLOCK_CELLS // cells))
        free = timed and not batch
        for block in timed_blocks(len(matrix), most, cells) if free else blocks(len(matrix), most):
            yield self._network.tensor(matrix[block]), block.stop - block.start


class WithLayers(TorchModel):
    """Hidden layers by name, and activation bits where there are ReLUs.

    ``codes`` exists where there are ReLUs, ``head_codes`` and ``head_input`` where the network
    is an encoder with a dense ReLU head (:class:`~kdcal_core.models.protocol.HasHead`).
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
        """One hidden layer, (n, d) float64; by default the last (all last ones of an ensemble)."""
        if layer is None:
            return self._values(self._last, X)
        return self._values((self._recording.hidden[pick_layer(self.layers, layer)],), X)


class TorchClassifier(TorchModel):
    """A PyTorch classifier without ReLU layers.

    ``logits`` exists where the network has them (:class:`~kdcal_core.models.protocol.HasLogits`).
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


Run = Callable[[Any], Any]


def build_regressor(
    network: Network,
    *,
    said: Outputs,
    feature_names: Sequence[str] | None,
    dropout: Run | None,
) -> Regressor:
    """A regression model from a network that returns one row of numbers for each example.

    Parameters
    ----------
    network : Network
    said : Outputs
        What the file or the caller states about the columns.
    feature_names : sequence of str or None
    dropout : callable or None
        The network with its dropout active.

    Raises
    ------
    InputError
        If the output is not a table or does not fit its description.
    """
    recording = network.record("A regression model")
    if said.family == "dropout" and dropout is None:
        raise InputError(
            "The model has no dropout to sample with",
            fix="Use a model with nn.Dropout layers, or another family.",
        )
    build = TorchNetworkRegressor if recording.last_hidden else TorchRegressor
    return build(network, recording, feature_names, said, dropout)


def as_columns(result: Any) -> Any:
    """The outputs of a network, one tensor or several, as one row of numbers for each example."""
    import torch

    if isinstance(result, torch.Tensor):
        return result
    parts = list(result.values()) if isinstance(result, dict) else list(result)
    return torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)


class TorchRegressor(TorchModel):
    """A PyTorch regression model.

    ``sample`` exists where it has one output and dropout
    (:class:`~kdcal_core.models.protocol.HasDropout`).
    """

    sample: Callable[..., FloatArray]

    def __init__(
        self,
        network: Network,
        recording: Recording,
        feature_names: Sequence[str] | None,
        said: Outputs,
        dropout: Run | None,
    ) -> None:
        super().__init__(network, recording, feature_names)
        n_outputs = recording.output.numel() // len(recording.output)
        self.outputs, self.family = resolve_outputs(n_outputs, said)
        self.kind = "PyTorch regression model"
        if dropout is not None and n_outputs == 1:
            self.sample = partial(self._sample, replace(network, run=dropout))

    def predict(self, X: Features) -> FloatArray:
        """Parameters of each row's distribution, (n, len(outputs)) float64."""
        parts: list[FloatArray] = []
        first_row = 0
        for raw in self._outputs(X):
            parts.append(check_outputs(raw, len(raw), len(self.outputs), first_row=first_row))
            first_row += len(raw)
        return np.concatenate(parts)

    def _sample(
        self, network: Network, X: Features, m: int, seed: int, progress: Progress | None = None
    ) -> FloatArray:
        """Predictions of ``m`` random passes, (n, m) float64 (Torres et al., section 4.2).

        Each block of rows has its own random stream, so the first passes of a longer run equal
        those of a shorter one.
        """
        if m < 1:
            raise InputError(f"The number of passes is {m}", fix="Choose 1 or more.")
        found = np.empty((len(X), m))
        start = 0
        for number, (rows, n_block) in enumerate(self._blocks(X, timed=False)):
            with _own_random_numbers(network.device, (seed, number)):
                for j in range(m):
                    raw: NDArray[Any] = to_numpy(network.output(rows))[:n_block]
                    found[start : start + n_block, j] = check_outputs(
                        raw, n_block, 1, first_row=start
                    )[:, 0]
                    if progress is not None:
                        share = (start + n_block * (j + 1) / m) / max(1, len(X))
                        progress(share, f"Pass {j + 1:,} of {m:,} with dropout")
            start += n_block
        return found


class TorchNetworkRegressor(TorchRegressor, WithLayers):
    """A PyTorch regression model with hidden layers."""

    def __init__(self, network: Network, recording: Recording, *rest: Any) -> None:
        super().__init__(network, recording, *rest)
        self._take(recording.last_hidden)


@contextmanager
def _own_random_numbers(device: Any, seed: tuple[int, ...]) -> Iterator[None]:
    """Seed the random numbers, and restore the caller's random state afterwards."""
    import torch

    device = torch.device(device)
    graphics = [device] if device.type == "cuda" else []
    (number,) = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    with torch.random.fork_rng(devices=graphics):
        torch.default_generator.manual_seed(int(number) >> 1)
        for one in graphics:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(int(number) >> 1)
        yield
