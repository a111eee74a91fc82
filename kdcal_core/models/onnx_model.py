"""Adapter for ONNX models: plain ones, networks with activations, tree ensembles with leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import Family, FloatArray, Task
from kdcal_core.errors import InputError
from kdcal_core.models.block_rows import timed_blocks
from kdcal_core.models.formats import Content, Format
from kdcal_core.models.onnx_cost import check_cost, nodes_of, read_model
from kdcal_core.models.onnx_graph import Graph, Inputs, flat, open_session, padded, read_inputs, run
from kdcal_core.models.onnx_trees import TREE_OPS, TreeTable, read_trees
from kdcal_core.models.output_meaning import (
    OutputKind,
    Outputs,
    are_logits,
    blocks,
    check_outputs,
    check_task,
    class_names,
    guess_kind,
    layer_names,
    network_in_words,
    one_a_class,
    pick_layer,
    read_family,
    resolve_outputs,
    to_proba,
)
from kdcal_core.models.protocol import Features, Model, Regressor, ShownModel
from kdcal_core.models.upload_checks import check_tree_nodes, model_trial
from kdcal_core.partition import ActivationCodes, LeafCodes, pack_bits
from kdcal_core.text import counted

# Maximum number of elements in one tensor of a block: 256 MB as float32.
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
        """Stream rows through the graph; yields the first row's position and the named tensors.

        ``width`` is the count of numbers of one row in them, which sets the size of a block.
        """
        feed = self.inputs.feed(X)
        n_rows = len(next(iter(feed.values())))
        per_row = max(width, self.inputs.n_features, self.inputs.cost.row_cells)
        most = min(_MOST_BLOCK_ROWS, max(1, _BLOCK_CELLS // per_row))
        batch = self.inputs.batch
        for block in blocks(n_rows, batch) if batch else timed_blocks(n_rows, most, per_row):
            part = {key: values[block] for key, values in feed.items()}
            n_block = block.stop - block.start
            values = run(self.session, names, padded(part, n_block, self.inputs))
            yield block.start, [value[:n_block] for value in values]


@dataclass(frozen=True, eq=False)
class Scores:
    """The tensor of a classifier's scores, and what it holds."""

    name: str
    kind: OutputKind
    classes: tuple[str, ...]
    named_classes: bool
    logits: str | None


@dataclass(frozen=True, eq=False)
class Layers:
    """The layers of a network: tensors of the graph, with their numbers of units.

    ``hidden`` holds the layers that users can choose by name, with any activation.
    """

    relus: tuple[str, ...]
    widths: tuple[int, ...]
    last: tuple[str, ...]
    hidden: tuple[str, ...]
    hidden_widths: tuple[int, ...]
    head: tuple[str, list[str]] | None


class OnnxModel(ShownModel):
    """An ONNX graph without a partition that kdcal can read."""

    def __init__(self, core: Core, kind: str) -> None:
        self._core = core
        self.kind = kind
        self.n_features = core.inputs.n_features
        self.feature_names = core.inputs.feature_names
        self.other_activations = core.other_activations


class WithLayers(OnnxModel):
    """Hidden layers, with activation bits where they are ReLUs.

    ``codes`` exists where there are ReLUs, ``head_codes`` and ``head_input`` where the network
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
        """One hidden layer, (n, d) float64; by default the last (all last ones of an ensemble)."""
        if layer is None:
            return _values(self._core, list(self._layers.last), self._width, X)
        return _values(self._core, [self.layer_tensor(layer)], self._width, X)

    def layer_tensor(self, layer: str) -> str:
        """The tensor of the graph that holds a hidden layer, to append nodes to."""
        return self._layers.hidden[pick_layer(self.layers, layer)]


class WithTrees(OnnxModel):
    """The leaves of a tree ensemble, with any operators before the trees."""

    _tables: list[TreeTable]

    def _plant(self, tables: list[TreeTable]) -> None:
        n_trees = sum(table.n_trees for table in tables)
        self.kind = f"Tree ensemble (ONNX), {counted(n_trees, 'tree')}"
        self._tables = tables

    def codes(self, X: Features) -> LeafCodes:
        """Leaf of each row in each tree, in the order of the file."""
        sources = list(dict.fromkeys(table.source for table in self._tables))
        parts = []
        for _, values in self._core.run(X, sources):
            seen = dict(zip(sources, values, strict=True))
            leaves = [table.apply(flat(seen[table.source])) for table in self._tables]
            parts.append(np.concatenate(leaves, axis=1))
        return LeafCodes(np.concatenate(parts))


class OnnxClassifier(OnnxModel):
    """An ONNX classifier.

    ``logits`` exists where the graph has them (:class:`~kdcal_core.models.protocol.HasLogits`).
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
        """The tensor of the graph that becomes the probabilities, to append nodes to."""
        return self._scores

    def raw_scores(self, X: Features) -> NDArray[Any]:
        """Values of the ``scores`` tensor for rows, (n, K), or (n, 1) for two classes."""
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
    """An ONNX regression model, with the tensors of its outputs side by side."""

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
    """An ONNX regression model whose outputs come from trees."""


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


# Memory that a trial may take: this much, plus so many copies of the largest tensor and of the
# file. A tree's small numbers take one byte in the file and eight in each list of the runtime.
_TRIAL_BYTES = 256 << 20
_TRIAL_COPIES = 4
_FILE_COPIES = 32
_BYTES_A_CELL = 4


def load(path: Path, *, name: str, task: Task | None = None) -> Model | Regressor:
    """Load an ONNX model.

    A regression model may have one output of several columns or several outputs by name. Its
    metadata may say ``task``, ``family`` and, as a JSON list, ``outputs``. A file exported for use
    contains no dropout, so an ONNX model cannot be sampled by dropout.

    The file is checked before the runtime opens it: it may have no external data, no operators
    outside the standard, no index out of range in a tree ensemble, no loop without a fixed number
    of rounds, and no tensor that one row makes larger than memory. In a worker the runtime then
    tries it on a few rows under separate limits.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Its name, for messages.
    task : {"classification", "regression"}, optional
        What the model must be; also how a file that does not state its task is read.

    Returns
    -------
    Model or Regressor
        It has ``codes`` (leaves) where the scores come from trees, ``codes`` (activations) and
        ``embed`` where they come from ReLU layers, ``logits`` where the graph has them, and a head
        where there is one after an encoder.

    Raises
    ------
    InputError
        The file is broken, unsafe or of the other task.
    """
    try:
        return _load(read_model(path, name=name), task)
    except InputError as error:
        raise error.at(file=name) from error
    except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
        raise InputError(
            "The ONNX file contradicts itself",
            fix="It may be damaged; copy or export it again.",
            file=name,
        ) from error


def _load(model: Any, task: Task | None) -> Model | Regressor:
    with model_trial(1, model.ByteSize(), _TRIAL_BYTES + model.ByteSize()):
        cost = check_cost(model)
    graph = Graph(model)
    inputs = read_inputs(graph, cost)
    said = graph.said_task()
    if said is not None:
        check_task(said, task)
    n_rows, n_bytes = inputs.trial_rows, model.ByteSize()
    tried_bytes = n_rows * cost.row_cells * _BYTES_A_CELL
    more_bytes = _TRIAL_BYTES + _TRIAL_COPIES * tried_bytes + _FILE_COPIES * n_bytes
    with model_trial(n_rows, n_bytes, more_bytes):
        if (said or task) == "regression":
            return _regressor(graph, inputs)
        return _classifier(graph, inputs)


def _classifier(graph: Graph, inputs: Inputs) -> Model:
    score = graph.score()
    tables = _checked_trees(graph, inputs, score.name)
    before, head = (None, None) if tables else (graph.logits(score.name), graph.head(score.name))
    found = _Found.of(graph, tables, score.name)
    others = [name for name in (before, head and head[0]) if name]
    session, values = _tried(graph, inputs, [score.name, *found.tensors, *others])
    n_rows = inputs.trial_rows
    raw = values[score.name]
    _check_scores(raw, n_rows)
    kind = score.kind
    if kind is None:
        single = raw.size == n_rows and graph.ends_linear(score.name)
        kind = "logit" if single else guess_kind(raw)
    classes, named = class_names(score.classes, max(2, raw.size // n_rows))
    logits = _where_logits(score.name, before, kind, values)
    scores = Scores(score.name, kind, classes, named, logits)
    core = Core(session, inputs, () if tables else graph.other_activations(score.name))
    if tables:
        return OnnxTrees(core, scores, tables)
    layers = found.layers(values, n_rows, head)
    last = [name for name in found.last_relus if name in layers.relus]
    if last:
        return OnnxNetwork(core, scores, replace(layers, last=tuple(last)))
    return OnnxClassifier(core, scores)


def _regressor(graph: Graph, inputs: Inputs) -> Regressor:
    tensors = graph.float_outputs()
    if not tensors:
        raise InputError(
            "The model has no output of numbers",
            fix="Export the regression model with its predictions.",
        )
    tables = _checked_trees(graph, inputs, *tensors)
    found = _Found.of(graph, tables, *tensors)
    session, values = _tried(graph, inputs, [*tensors, *found.tensors])
    n_rows = inputs.trial_rows
    for name in tensors:
        _check_scores(values[name], n_rows)
    widths = [values[name].size // n_rows for name in tensors]
    names = graph.names("outputs")
    if names is None and set(widths) == {1} and len(tensors) > 1:
        names = tuple(tensors)
    family = read_family(graph.metadata["family"]) if "family" in graph.metadata else None
    outputs, family = resolve_outputs(sum(widths), Outputs(family, names))
    core = Core(session, inputs, () if tables else graph.other_activations(*tensors))
    if tables:
        trees = OnnxTreesRegressor(core, tensors, outputs, family)
        trees._plant(tables)
        return trees
    layers = found.layers(values, n_rows, None)
    if layers.last:
        network = OnnxNetworkRegressor(core, tensors, outputs, family)
        network._take(layers)
        return network
    return OnnxRegressor(core, tensors, outputs, family)


@dataclass(frozen=True)
class _Found:
    """Tensors of a graph that may be layers, while their shapes are unknown."""

    relus: list[str]
    last_relus: list[str]
    hidden: list[str]
    last_hidden: list[str]
    sources: list[str]

    @classmethod
    def of(cls, graph: Graph, tables: list[TreeTable], *targets: str) -> _Found:
        if tables:
            return cls([], [], [], [], [table.source for table in tables])
        return cls(*graph.relus(*targets), *graph.hidden(*targets), [])

    @property
    def tensors(self) -> list[str]:
        return [*self.sources, *self.relus, *self.hidden]

    def layers(
        self,
        values: dict[str, NDArray[Any]],
        n_rows: int,
        head: tuple[str, list[str]] | None,
    ) -> Layers:
        """The tensors that depend on each row."""
        relus, hidden = (
            tuple(name for name in names if values[name].shape[:1] == (n_rows,))
            for names in (self.relus, self.hidden)
        )
        fits = head is not None and _fits(head, list(relus), values[head[0]], n_rows)
        return Layers(
            relus=relus,
            widths=tuple(values[name].size // n_rows for name in relus),
            last=tuple(name for name in self.last_hidden if name in hidden),
            hidden=hidden,
            hidden_widths=tuple(values[name].size // n_rows for name in hidden),
            head=head if fits else None,
        )


def _tried(graph: Graph, inputs: Inputs, wanted: list[str]) -> tuple[Any, dict[str, NDArray[Any]]]:
    """A session that returns these tensors, and their values for some rows of noise."""
    exposed = list(dict.fromkeys(wanted))
    session = open_session(graph.with_outputs(exposed))
    values = run(session, exposed, inputs.trial(inputs.trial_rows))
    return session, dict(zip(exposed, values, strict=True))


def _where_logits(
    score: str, before: str | None, kind: OutputKind, values: dict[str, NDArray[Any]]
) -> str | None:
    """The tensor with the logits: the scores themselves, or the input of their softmax."""
    if kind == "logit":
        return score
    fits = before is not None and are_logits(values[before], values[score], kind)
    return before if fits else None


def _fits(
    head: tuple[str, list[str]], layers: list[str], source: NDArray[Any], n_rows: int
) -> bool:
    """Whether a head, as found in the graph, takes one vector for each row."""
    return source.ndim == 2 and len(source) == n_rows and set(head[1]) <= set(layers)


def _checked_trees(graph: Graph, inputs: Inputs, *targets: str) -> list[TreeTable]:
    """The tables of all trees that lead to the outputs, checked before a session loads them.

    The number of features that trees after other operators take is found by running the graph up to
    them. That part holds only trees that have been checked.
    """
    everywhere = sum(node.op_type in TREE_OPS for node in nodes_of(graph.model.graph))
    if everywhere > sum(node.op_type in TREE_OPS for node in graph.nodes):
        raise InputError(
            "The model holds trees inside a branch or loop",
            fix="Export it as a plain pipeline.",
        )
    n_rows = inputs.trial_rows
    widths = {slot.name: slot.width for slot in inputs.slots}
    tables: list[TreeTable] = []
    behind = {id(node) for name in targets for node in graph.ancestors(name)}
    for node in (n for n in graph.nodes if id(n) in behind and n.op_type in TREE_OPS):
        table = read_trees(node)
        if table.source not in widths:
            before = graph.ancestors(table.source)
            unchecked = [n for n in before if n.op_type in TREE_OPS and n.output[0] not in widths]
            if unchecked:
                raise InputError("The model's trees are not in the order of computation")
            session = open_session(graph.with_outputs([table.source]))
            (value,) = run(session, [table.source], inputs.trial(n_rows))
            widths[table.source] = value.size // n_rows
        table.check_features(widths[table.source])
        widths.setdefault(node.output[0], 0)
        tables.append(table)
        check_tree_nodes(sum(one.mode.size for one in tables))
    return tables


def _check_scores(raw: NDArray[Any], n_rows: int) -> None:
    flat = raw.ndim == 1 or (raw.ndim == 2 and raw.shape[1] > 0)
    if not flat or raw.shape[0] != n_rows or raw.dtype.kind != "f":
        raise InputError(
            f"The model's scores have the shape {raw.shape} for {n_rows} rows",
            fix="A model gives one row of numbers per example.",
        )


_SMALL_NUMBERS = tuple(bytes([number]) for number in range(1, 32))


def _is_onnx(content: Content) -> bool:
    # A serialised ModelProto begins with its field 1, the IR version: a small number.
    return content.head[:1] == b"\x08" and content.head[1:2] in _SMALL_NUMBERS


Format("onnx", "ONNX model", (".onnx",), _is_onnx, load, "any library").offer()
