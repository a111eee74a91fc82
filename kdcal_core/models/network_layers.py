"""Finds a network's layers, and its head after an encoder, in the steps of its computation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

#: What a step does to the rows: a ReLU; a dense layer on one vector for each row; other weights
#: (convolution, recurrence, a dense layer on other inputs than vectors); an affine function of its
#: input; a product, which is affine if only one factor depends on the rows; anything else.
Role = Literal["relu", "dense", "weights", "affine", "product", "other"]

_ENDS = ("softmax", "log-softmax", "sigmoid")


@dataclass(frozen=True)
class Step:
    """One operation of a computation.

    Attributes
    ----------
    reads, writes : tuple of str
        Names of the values.
    role : Role
    activation : str
        Name of the activation on screens, where it is not ReLU.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    role: Role = "other"
    activation: str = ""


def ancestors(steps: Sequence[Step], target: str) -> list[int]:
    """Positions of the steps from which a value is computed, in order.

    Examples
    --------
    >>> steps = [Step(("x",), ("a",)), Step(("x",), ("b",))]
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
    """ReLU steps between the inputs and a value, and the last ones of them.

    Parameters
    ----------
    steps : sequence of Step
        In order of computation.
    target : str
        The value whose ReLU layers are to be found.
    inputs : iterable of str
        The rows' features. ReLUs that do not depend on them are left out.

    Returns
    -------
    layers, last : lists of int
        Positions of the steps. A layer is last where no other ReLU follows it on the way to the
        target. A plain network has one last layer, an ensemble one for each member.

    Examples
    --------
    >>> steps = [
    ...     Step(("x",), ("h1",), "relu"),
    ...     Step(("h1",), ("h2",), "relu"),
    ...     Step(("h2",), ("out",), "dense"),
    ... ]
    >>> relu_layers(steps, "out", ["x"])
    ([0, 1], [1])
    """
    path = of_rows(steps, target, inputs)
    layers = [i for i in path if steps[i].role == "relu"]
    before_relu = values_before(steps, path, layers)
    return layers, [i for i in layers if not _meet(steps[i].writes, before_relu)]


def hidden_layers(
    steps: Sequence[Step], target: str, inputs: Iterable[str]
) -> tuple[list[tuple[int, str]], list[str]]:
    """Hidden layers of vectors: the inputs of the dense layers that follow an activation.

    Parameters
    ----------
    steps, target, inputs
        As in :func:`relu_layers`.

    Returns
    -------
    layers : list of (int, str)
        In order, the position of the first dense step that takes the layer, and the layer's value.
    last : list of str
        The values from which no other hidden layer is computed.

    Examples
    --------
    >>> steps = [
    ...     Step(("x",), ("z",), "dense"),
    ...     Step(("z",), ("h",), activation="tanh"),
    ...     Step(("h",), ("mean",), "dense"),
    ...     Step(("h",), ("std",), "dense"),
    ...     Step(("mean", "std"), ("out",), "affine"),
    ... ]
    >>> hidden_layers(steps, "out", ["x"])
    ([(2, 'h')], ['h'])
    """
    path = of_rows(steps, target, inputs)
    depends = {*inputs, *(name for i in path for name in steps[i].writes)}
    bent: set[str] = set()
    found: dict[str, int] = {}
    for i in path:
        if steps[i].role == "relu" or steps[i].activation or _meet(steps[i].reads, bent):
            bent.update(steps[i].writes)
        if steps[i].role == "dense":
            for name in steps[i].reads:
                if name in depends and name in bent:
                    found.setdefault(name, i)
    writers = [i for i in path if _meet(steps[i].writes, found)]
    before = values_before(steps, path, writers)
    return [(i, name) for name, i in found.items()], [n for n in found if n not in before]


def other_activations(steps: Sequence[Step], target: str, inputs: Iterable[str]) -> tuple[str, ...]:
    """Hidden activations other than ReLU, each with its number among all activations.

    An activation after the last weights turns scores into probabilities and is not hidden.

    Examples
    --------
    >>> steps = [
    ...     Step(("x",), ("h1",), "relu"),
    ...     Step(("h1",), ("h2",), activation="tanh"),
    ...     Step(("h2",), ("z",), "dense"),
    ...     Step(("z",), ("out",), activation="softmax"),
    ... ]
    >>> other_activations(steps, "out", ["x"])
    ('layer 2: tanh',)
    """
    path = of_rows(steps, target, inputs)
    weighted = set(with_weights(steps, path))
    hidden = values_before(steps, path, weighted)
    names = [
        steps[i].activation
        for i in path
        if steps[i].role == "relu"
        or (steps[i].activation and (i in weighted or _meet(steps[i].writes, hidden)))
    ]
    return tuple(f"layer {place}: {name}" for place, name in enumerate(names, 1) if name)


def last_end(steps: Sequence[Step], target: str, inputs: Iterable[str]) -> int | None:
    """Position of the softmax or sigmoid after the last weights, where there is exactly one.

    Examples
    --------
    >>> steps = [
    ...     Step(("x",), ("z",), "dense"),
    ...     Step(("z",), ("p",), activation="sigmoid"),
    ...     Step(("p",), ("q",), "affine"),
    ...     Step(("q", "p"), ("out",), "affine"),
    ... ]
    >>> last_end(steps, "out", ["x"])
    1
    """
    path = of_rows(steps, target, inputs)
    weighted = with_weights(steps, path)
    hidden = values_before(steps, path, weighted)
    ends = [i for i in path if steps[i].activation in _ENDS and not _meet(steps[i].writes, hidden)]
    return ends[0] if len(ends) == 1 else None


def of_rows(steps: Sequence[Step], target: str, inputs: Iterable[str]) -> list[int]:
    """Positions of the steps that depend on the inputs and from which a value is computed."""
    depends = set(inputs)
    path = []
    for i in ancestors(steps, target):
        if _meet(steps[i].reads, depends):
            depends.update(steps[i].writes)
            path.append(i)
    return path


def with_weights(steps: Sequence[Step], path: Sequence[int]) -> list[int]:
    """The steps of a path that hold weights."""
    return [i for i in path if steps[i].role in ("dense", "weights")]


def values_before(steps: Sequence[Step], path: Sequence[int], marks: Collection[int]) -> set[str]:
    """Values on a path from which one of the marked steps is computed."""
    names: set[str] = set()
    marked = set(marks)
    for i in reversed(path):
        if i in marked or _meet(steps[i].writes, names):
            names.update(steps[i].reads)
    return names


def _meet(names: Iterable[str], others: Collection[str]) -> bool:
    return any(name in others for name in names)


@dataclass(frozen=True)
class Head:
    """The start of a head, and its ReLUs.

    Attributes
    ----------
    start : int
        Position of the first dense layer.
    source : str
        The encoder's value that this layer takes.
    layers : tuple of int
        Positions of the head's ReLU steps, in order.
    """

    start: int
    source: str
    layers: tuple[int, ...]


def find_head(steps: Sequence[Step], target: str, inputs: Iterable[str]) -> Head | None:
    """The dense ReLU head that gives a network's scores (Dey et al., section 3.2).

    The search walks back from the last dense layer. The encoder ends where two values that depend
    on the rows meet, or at an operation that is not dense, affine or ReLU.

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
        None where the whole network is dense with ReLUs, so that there is no encoder; where no ReLU
        follows a dense layer after the encoder; and for an ensemble.

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
    # After the last weights the scores become probabilities; the walk starts before that.
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
