"""Watching a PyTorch computation: its steps, and the outputs of its ReLU layers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

from kdcal_core.parents.outputs import OutputKind
from kdcal_core.parents.relu_layers import Step, relu_layers

# What hands its first argument on without changing the numbers.
_PASSING = frozenset(
    [
        "view",
        "_unsafe_view",
        "reshape",
        "_reshape_alias",
        "squeeze",
        "unsqueeze",
        "flatten",
        "clone",
        "detach",
        "alias",
        "contiguous",
        "_to_copy",
        "to",
        "t",
        "transpose",
        "permute",
    ]
)
_KINDS: dict[str, OutputKind] = {
    "_softmax": "probability",
    "softmax": "probability",
    "sigmoid": "probability",
    "sigmoid_": "probability",
    "_log_softmax": "log-probability",
    "log_softmax": "log-probability",
}
_LINEAR = frozenset(["linear", "addmm", "mm", "matmul"])


@dataclass(frozen=True)
class Recording:
    """What one run of a network showed.

    Attributes
    ----------
    output : torch.Tensor
    layers, last : tuple of int
        ReLU layers that the output comes from, by their place among all ReLU calls, and those
        of them with no further ReLU before the output.
    widths : tuple of int
        Units of each layer in ``layers``.
    numbers_per_row : int
        How many numbers the run produced for each row.
    kind : OutputKind or None
        What the output holds, where the last operation says so.
    ends_linear : bool
        Whether the output comes straight from a linear layer.
    """

    output: Any
    layers: tuple[int, ...]
    last: tuple[int, ...]
    widths: tuple[int, ...]
    numbers_per_row: int
    kind: OutputKind | None
    ends_linear: bool


def record(network: Callable[[Any], Any], rows: Any) -> Recording:
    """Run a network once and see what it is made of.

    Every operation is seen as the backend runs it, so layers, functions and methods count
    alike.
    """
    steps: list[Step] = []
    ops: list[str] = []
    relus: dict[int, tuple[int, ...]] = {}
    names: dict[int, str] = {}
    alive: list[Any] = []  # an id is only a name while its tensor lives

    def name_of(tensor: Any, *, fresh: bool) -> str:
        if fresh or id(tensor) not in names:
            alive.append(tensor)
            names[id(tensor)] = f"{len(alive)}"
        return names[id(tensor)]

    def see(func: Any, args: Any, kwargs: Any, result: Any) -> None:
        reads = tuple(name_of(t, fresh=False) for t in _tensors((args, kwargs)))
        writes = tuple(name_of(t, fresh=True) for t in _tensors(result))
        if is_relu(func, args, kwargs):
            relus[len(steps)] = tuple(result.shape)
        steps.append(Step(reads, writes, len(steps) in relus))
        ops.append(_op_name(func))

    source = name_of(rows, fresh=True)
    output = _watched(network, rows, see)
    target = name_of(output, fresh=False)
    layers, last = relu_layers(steps, target, [source])
    layers = [i for i in layers if len(relus[i]) > 1 and relus[i][0] == len(rows)]
    place = {step: k for k, step in enumerate(relus)}
    source_op = _source_op(steps, ops, target)
    return Recording(
        output=output,
        layers=tuple(place[i] for i in layers),
        last=tuple(place[i] for i in last if i in layers),
        widths=tuple(prod(relus[i][1:]) for i in layers),
        numbers_per_row=max(1, sum(tensor.numel() for tensor in alive) // len(rows)),
        kind=_KINDS.get(source_op),
        ends_linear=source_op in _LINEAR,
    )


def run_with_relus(
    network: Callable[[Any], Any], rows: Any, wanted: Collection[int], keep: Callable[[Any], Any]
) -> list[Any]:
    """Run a network and return ``keep(output)`` of the wanted ReLU calls, in order.

    ``keep`` is called at once: a later operation may write into the same memory.
    """
    kept: list[Any] = []
    calls = count()

    def see(func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if is_relu(func, args, kwargs) and next(calls) in wanted:
            kept.append(keep(result))

    _watched(network, rows, see)
    return kept


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


def is_relu(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation is a ReLU under one of its names."""
    name = _op_name(func).removesuffix("_")
    if name == "relu":
        return True
    if name in ("clamp", "clamp_min"):
        given = dict(zip(("min", "max"), args[1:], strict=False)) | dict(kwargs or {})
        return _is_zero(given.get("min")) and given.get("max") is None
    return name == "threshold" and all(_is_zero(value) for value in args[1:3])


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0


def _op_name(func: Any) -> str:
    return str(func.overloadpacket.__name__) if hasattr(func, "overloadpacket") else ""


def _tensors(tree: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _source_op(steps: list[Step], ops: list[str], target: str) -> str:
    """The operation whose numbers a value carries, behind reshapes and casts."""
    writer = {name: i for i, step in enumerate(steps) for name in step.writes}
    i = writer.get(target)
    while i is not None and ops[i] in _PASSING and steps[i].reads:
        i = writer.get(steps[i].reads[0])
    return "" if i is None else ops[i]
