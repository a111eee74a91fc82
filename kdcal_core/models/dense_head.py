"""The head of a network: the last unbroken run of dense layers with ReLUs, behind an encoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kdcal_core.models.relu_layers import (
    Step,
    of_rows,
    relu_layers,
    values_before,
    with_weights,
)


@dataclass(frozen=True)
class Head:
    """Where a head begins, and its ReLUs.

    Attributes
    ----------
    start : int
        Position of the first dense layer.
    source : str
        The value that this layer takes of the encoder.
    layers : tuple of int
        Positions of the head's ReLU steps, in order.
    """

    start: int
    source: str
    layers: tuple[int, ...]


def find_head(steps: Sequence[Step], target: str, inputs: Iterable[str]) -> Head | None:
    """The dense ReLU head that a network's scores come from (paper 000 section 3.2).

    Walks back from the last dense layer, in single file: where two values that depend on the
    rows meet, or something stands that is neither dense, affine nor ReLU, the encoder ends.

    Parameters
    ----------
    steps : sequence of Step
        In order of computation.
    target : str
        The scores.
    inputs : iterable of str
        The rows' features.

    Returns
    -------
    Head or None
        None where the whole network is dense with ReLUs, so that it needs no encoder; where no
        ReLU follows on a dense layer behind the encoder; and for an ensemble.

    Examples
    --------
    >>> steps = [
    ...     Step(("image",), ("maps",), "weights"),
    ...     Step(("maps",), ("seen",), "relu"),
    ...     Step(("seen",), ("a",), "dense"),
    ...     Step(("a",), ("h",), "relu"),
    ...     Step(("h",), ("out",), "dense"),
    ... ]
    >>> find_head(steps, "out", ["image"])
    Head(start=2, source='seen', layers=(3,))
    >>> find_head(steps[2:], "out", ["seen"]) is None
    True
    """
    inputs = tuple(inputs)
    path = of_rows(steps, target, inputs)
    depends = {*inputs, *(name for i in path for name in steps[i].writes)}
    if _is_plain(steps, path, relu_layers(steps, target, inputs)[1], depends):
        return None
    # Behind the last weights the scores become probabilities; the walk begins before that.
    weighted = with_weights(steps, path)
    hidden = values_before(steps, path, weighted)
    ends = [i for i in weighted if hidden.isdisjoint(steps[i].writes)]
    if len(ends) != 1:
        return None
    writer = {name: i for i in path for name in steps[i].writes}
    value = steps[ends[0]].writes[0]
    relus: list[int] = []
    head = None
    while value in writer:
        i = writer[value]
        read = [name for name in steps[i].reads if name in depends]
        if len(read) != 1 or steps[i].role in ("weights", "other"):
            break
        value = read[0]
        if steps[i].role == "relu":
            relus.insert(0, i)
        elif steps[i].role == "dense":
            head = Head(i, value, tuple(relus))
    return head if head is not None and head.layers else None


def _is_plain(
    steps: Sequence[Step], path: Sequence[int], last: Sequence[int], depends: set[str]
) -> bool:
    """Whether only dense layers, ReLUs and affine steps lead to the last ReLUs."""
    wanted = {name for i in last for name in steps[i].writes}
    for i in reversed(path):
        if wanted.isdisjoint(steps[i].writes):
            continue
        wanted.update(steps[i].reads)
        step = steps[i]
        factors = sum(name in depends for name in step.reads)
        if step.role in ("weights", "other") or (step.role in ("dense", "product") and factors > 1):
            return False
    return True
