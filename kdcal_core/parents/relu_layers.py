"""Which ReLU layers of a computation a network's scores come from, and which come last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One operation: the names of what it reads and writes, and whether it is a ReLU."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_relu: bool


def ancestors(steps: Sequence[Step], target: str) -> list[int]:
    """Positions of the steps that a value is computed from, in order.

    Examples
    --------
    >>> steps = [Step(("x",), ("a",), True), Step(("x",), ("b",), False)]
    >>> ancestors(steps, "b")
    [1]
    """
    writer = {name: i for i, step in enumerate(steps) for name in step.writes}
    found: set[int] = set()
    stack = [target]
    while stack:
        i = writer.get(stack.pop())
        if i is not None and i not in found:
            found.add(i)
            stack.extend(steps[i].reads)
    return sorted(found)


def relu_layers(
    steps: Sequence[Step], target: str, inputs: Iterable[str]
) -> tuple[list[int], list[int]]:
    """ReLU steps between the inputs and a value, and those of them that come last.

    Parameters
    ----------
    steps : sequence of Step
        In order of computation.
    target : str
        The value whose ReLU layers are sought.
    inputs : iterable of str
        The rows' features; ReLUs that do not depend on them are left out.

    Returns
    -------
    layers, last : lists of int
        Positions of the steps. A layer is last where no other ReLU stands between it and the
        target: one for a plain network, one a member for an ensemble.

    Examples
    --------
    >>> steps = [
    ...     Step(("x",), ("h1",), True),
    ...     Step(("h1",), ("h2",), True),
    ...     Step(("h2",), ("out",), False),
    ... ]
    >>> relu_layers(steps, "out", ["x"])
    ([0, 1], [1])
    """
    path = ancestors(steps, target)
    depends = set(inputs)
    for i in path:
        if _meet(steps[i].reads, depends):
            depends.update(steps[i].writes)
    layers = [i for i in path if steps[i].is_relu and _meet(steps[i].writes, depends)]
    before_relu: set[str] = set()
    for i in reversed(path):
        if i in layers or _meet(steps[i].writes, before_relu):
            before_relu.update(steps[i].reads)
    return layers, [i for i in layers if not _meet(steps[i].writes, before_relu)]


def _meet(names: Iterable[str], others: Collection[str]) -> bool:
    return any(name in others for name in names)
