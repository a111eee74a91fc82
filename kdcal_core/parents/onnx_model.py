"""ONNX models as parents: networks with their ReLU activations, tree ensembles with leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.parents.base import Features, Parent
from kdcal_core.parents.onnx_check import nodes_of, read_model
from kdcal_core.parents.onnx_graph import Graph
from kdcal_core.parents.onnx_input import Feed, Inputs, read_inputs
from kdcal_core.parents.onnx_trees import TREE_OPS, TreeTable, read_trees
from kdcal_core.parents.outputs import (
    OutputKind,
    are_logits,
    blocks,
    class_names,
    guess_kind,
    network_in_words,
    one_a_class,
    to_proba,
)
from kdcal_core.partition import ActivationCodes, LeafCodes, pack_bits

# A prime, so that it is not mistaken for a layer's width.
_TRIAL_ROWS = 61
# Numbers that one block of hidden layers may take: 256 MB as float32.
_BLOCK_CELLS = 1 << 26
_MOST_BLOCK_ROWS = 8192
_MOST_THREADS = 2
_SEVERITY_ERROR = 3


def load(path: Path, *, name: str) -> Parent:
    """Load an ONNX classifier.

    The file is checked before the runtime opens it: no external data, no operators outside the
    standard, and tree ensembles whose every index is in range.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Its name, for messages.

    Returns
    -------
    Parent
        With ``codes`` (leaves) where the classifier's scores come from trees, with ``codes``
        (activations) and ``embed`` where they come from ReLU layers; with ``logits`` where the
        graph has them, and a head behind an encoder.

    Raises
    ------
    InputError
        The file is broken, unsafe or no classifier.
    """
    try:
        return _load(read_model(path, name=name))
    except InputError as error:
        raise error.at(file=name) from error
    except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
        raise InputError(
            "The ONNX file contradicts itself",
            fix="It may be damaged; copy or export it again.",
            file=name,
        ) from error


class OnnxClassifier:
    """An ONNX classifier without a partition that kdcal can read.

    ``logits`` is there where the graph has them (:class:`~kdcal_core.parents.base.HasLogits`).
    """

    logits: Callable[[Features], FloatArray]

    def __init__(self, core: _Core, kind: str = "ONNX classifier") -> None:
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

    def __init__(self, core: _Core, layers: list[str], last: list[str], widths: list[int]) -> None:
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

    def __init__(self, core: _Core, tables: list[TreeTable]) -> None:
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
            leaves = [table.apply(_flat(seen[table.source])) for table in self._tables]
            parts.append(np.concatenate(leaves, axis=1))
        return LeafCodes(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class _Core:
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
            values = _run(self.session, names, _padded(part, n_block, self.inputs))
            yield block.start, [value[:n_block] for value in values]


def _load(model: Any) -> Parent:
    graph = Graph(model)
    inputs = read_inputs(graph)
    score = graph.score()
    tables = _checked_trees(graph, inputs, score.name)
    relus, last = ([], []) if tables else graph.relus(score.name)
    before, head = (None, None) if tables else (graph.logits(score.name), graph.head(score.name))
    wanted = [score.name, *(table.source for table in tables), *relus]
    wanted += [name for name in (before, head and head[0]) if name]
    exposed = list(dict.fromkeys(wanted))
    session = _session(graph.with_outputs(exposed))
    n_rows = inputs.batch or _TRIAL_ROWS
    values = dict(zip(exposed, _run(session, exposed, inputs.trial(n_rows)), strict=True))
    raw = values[score.name]
    _check_scores(raw, n_rows)
    kind = score.kind
    if kind is None:
        single = raw.size == n_rows and graph.ends_linear(score.name)
        kind = "logit" if single else guess_kind(raw)
    n_classes = max(2, raw.size // n_rows)
    classes, named = class_names(score.classes, n_classes)
    layers = [name for name in relus if values[name].shape[:1] == (n_rows,)]
    last = [name for name in last if name in layers]
    core = _Core(
        session,
        inputs,
        score.name,
        kind,
        classes,
        named,
        logits=_where_logits(score.name, before, kind, values),
        head=head if head and _fits(head, layers, values[head[0]], n_rows) else None,
        other_activations=() if tables else graph.other_activations(score.name),
    )
    if tables:
        return OnnxTrees(core, tables)
    if last:
        return OnnxNetwork(core, layers, last, [values[name].size // n_rows for name in layers])
    return OnnxClassifier(core)


def _where_logits(
    score: str, before: str | None, kind: OutputKind, values: dict[str, NDArray[Any]]
) -> str | None:
    """The tensor with the logits: the scores themselves, or what their softmax takes."""
    if kind == "logit":
        return score
    fits = before is not None and are_logits(values[before], values[score], kind)
    return before if fits else None


def _fits(
    head: tuple[str, list[str]], layers: list[str], source: NDArray[Any], n_rows: int
) -> bool:
    """Whether a head, as found in the graph, takes one vector a row."""
    return source.ndim == 2 and len(source) == n_rows and set(head[1]) <= set(layers)


def _bits(core: _Core, layers: list[str], width: int, X: Features) -> ActivationCodes:
    packed = [
        pack_bits([_flat(layer) > 0 for layer in values])
        for _, values in core.run(X, layers, width=width)
    ]
    words = np.concatenate([block.words for block in packed])
    return ActivationCodes(words, packed[0].layer_widths)


def _values(core: _Core, names: list[str], width: int, X: Features) -> FloatArray:
    """Tensors of the graph side by side, (n, d) float64."""
    parts = [
        np.concatenate([_flat(value).astype(np.float64) for value in values], axis=1)
        for _, values in core.run(X, names, width=width)
    ]
    return np.concatenate(parts)


def _logits(core: _Core, name: str, X: Features) -> FloatArray:
    return one_a_class(_values(core, [name], len(core.classes), X))


def _checked_trees(graph: Graph, inputs: Inputs, score: str) -> list[TreeTable]:
    """The tables of all trees behind the scores, checked before a session holds their node.

    The number of features that trees behind other operators see is found by running what
    stands before them: that part holds only trees already checked.
    """
    everywhere = sum(node.op_type in TREE_OPS for node in nodes_of(graph.model.graph))
    if everywhere > sum(node.op_type in TREE_OPS for node in graph.nodes):
        raise InputError(
            "The model holds trees inside a branch or loop",
            fix="Export it as a plain pipeline.",
        )
    n_rows = inputs.batch or _TRIAL_ROWS
    widths = {slot.name: slot.width for slot in inputs.slots}
    tables: list[TreeTable] = []
    for node in (n for n in graph.ancestors(score) if n.op_type in TREE_OPS):
        table = read_trees(node)
        if table.source not in widths:
            before = graph.ancestors(table.source)
            unchecked = [n for n in before if n.op_type in TREE_OPS and n.output[0] not in widths]
            if unchecked:
                raise InputError("The model's trees are not in the order of computation")
            session = _session(graph.with_outputs([table.source]))
            (value,) = _run(session, [table.source], inputs.trial(n_rows))
            widths[table.source] = value.size // n_rows
        table.check_features(widths[table.source])
        widths.setdefault(node.output[0], 0)
        tables.append(table)
    return tables


def _session(model: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _MOST_THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = _SEVERITY_ERROR
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the runtime's C++ errors share no narrower base
        raise InputError(
            f"ONNX Runtime refuses the model: {_first_line(error)}",
            fix="Export it again for a version that the installed runtime knows.",
        ) from error


def _run(session: Any, names: list[str], feed: Feed) -> list[NDArray[Any]]:
    taken = {value.name for value in session.get_inputs()}
    try:
        values = session.run(names, {key: v for key, v in feed.items() if key in taken})
    except Exception as error:  # as above
        if "allocate memory" in str(error) or "bad_alloc" in str(error):
            raise MemoryError("ONNX Runtime ran out of memory") from error
        raise InputError(
            f"ONNX Runtime cannot run the model: {_first_line(error)}",
            fix="Check that the table's columns are those that the model takes.",
        ) from error
    return [np.asarray(value) for value in values]


def _check_scores(raw: NDArray[Any], n_rows: int) -> None:
    flat = raw.ndim == 1 or (raw.ndim == 2 and raw.shape[1] > 0)
    if not flat or raw.shape[0] != n_rows or raw.dtype.kind != "f":
        raise InputError(
            f"The model's scores have the shape {raw.shape} for {n_rows} rows",
            fix="A classifier gives one row of numbers per example.",
        )


def _padded(part: Feed, n_rows: int, inputs: Inputs) -> Feed:
    """A last block filled up with empty rows, where the graph insists on a number of rows."""
    lacking = (inputs.batch or n_rows) - n_rows
    if not lacking:
        return part
    filler = inputs.trial(lacking)
    return {key: np.concatenate([values, filler[key]]) for key, values in part.items()}


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(len(values), prod(values.shape[1:]))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
