"""Watching a PyTorch computation: its steps, and the values that stand at chosen places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from kdcal_core.errors import InputError
from kdcal_core.models.network_layers import (
    Step,
    find_head,
    hidden_layers,
    last_end,
    other_activations,
    relu_layers,
)
from kdcal_core.models.outputs import OutputKind
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


@dataclass(frozen=True)
class Tap:
    """A place in a computation, found again in every run whatever the number of rows.

    Attributes
    ----------
    kind : {"relu", "dense", "end"}
        The output of a ReLU, the input of a dense layer, or the input of a softmax or sigmoid.
    place : int
        Which one of its kind, in the order of computation.
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
        ReLU layers that the output comes from, and those of them with no further ReLU before
        the output.
    widths : tuple of int
        Units of each layer in ``layers``.
    numbers_per_row : int
        How many numbers the run produced for each row.
    kind : OutputKind or None
        What the output holds, where the last operation says so.
    ends_linear : bool
        Whether the output comes straight from a linear layer.
    logits : Tap or None
        What the one softmax or sigmoid behind the last weights takes.
    logits_seen : torch.Tensor or None
        What it took in this run.
    head_source : Tap or None
        What the dense ReLU head behind an encoder takes.
    head_layers : tuple of Tap
        The head's ReLU layers.
    other_activations : tuple of str
        Hidden activations other than ReLU, for people.
    hidden, last_hidden : tuple of Tap
        What each dense layer behind an activation takes, whatever the activation, and those of
        them that come last.
    hidden_widths : tuple of int
        Units of each layer in ``hidden``.
    n_taps : int
        How many places of all kinds the run passed.
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
    """Run a network once and see what it is made of.

    Every operation is seen as the backend runs it, so layers, functions and methods count
    alike.
    """
    steps: list[Step] = []
    ops: list[str] = []
    shapes: list[tuple[int, ...]] = []
    taps: dict[int, Tap] = {}
    ends: dict[int, Any] = {}
    taken: dict[int, int] = {}
    seen: Counter[str] = Counter()
    names: dict[int, str] = {}
    alive: list[Any] = []  # an id is only a name while its tensor lives

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

    ``keep`` is called at once: a later operation may write into the same memory.

    Raises
    ------
    InputError
        The run passes other places than the recorded one, so that none can be trusted.
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
    """The place that an operation marks, if any, and the value there; counts it in ``seen``.

    Only operations whose number does not hang on the number of rows are counted: PyTorch may
    run a dense layer on anything but vectors in more than one way.
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
    """The step whose numbers a value carries, behind reshapes and casts."""
    writer = {name: i for i, step in enumerate(steps) for name in step.writes}
    i = writer.get(target)
    while i is not None and ops[i] in PASSING and steps[i].reads:
        i = writer.get(steps[i].reads[0])
    return i
