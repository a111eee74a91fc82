"""ONNX models as parents: networks with their ReLU activations, tree ensembles with leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.parents.base import Parent
from kdcal_core.parents.onnx_check import nodes_of, read_model
from kdcal_core.parents.onnx_graph import Graph
from kdcal_core.parents.onnx_input import Inputs, read_inputs
from kdcal_core.parents.onnx_parents import Core, OnnxClassifier, OnnxNetwork, OnnxTrees
from kdcal_core.parents.onnx_session import open_session, run
from kdcal_core.parents.onnx_trees import TREE_OPS, TreeTable, read_trees
from kdcal_core.parents.outputs import (
    OutputKind,
    are_logits,
    class_names,
    guess_kind,
)

# A prime, so that it is not mistaken for a layer's width.
_TRIAL_ROWS = 61


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
    session = open_session(graph.with_outputs(exposed))
    n_rows = inputs.batch or _TRIAL_ROWS
    values = dict(zip(exposed, run(session, exposed, inputs.trial(n_rows)), strict=True))
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
    core = Core(
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
            session = open_session(graph.with_outputs([table.source]))
            (value,) = run(session, [table.source], inputs.trial(n_rows))
            widths[table.source] = value.size // n_rows
        table.check_features(widths[table.source])
        widths.setdefault(node.output[0], 0)
        tables.append(table)
    return tables


def _check_scores(raw: NDArray[Any], n_rows: int) -> None:
    flat = raw.ndim == 1 or (raw.ndim == 2 and raw.shape[1] > 0)
    if not flat or raw.shape[0] != n_rows or raw.dtype.kind != "f":
        raise InputError(
            f"The model's scores have the shape {raw.shape} for {n_rows} rows",
            fix="A classifier gives one row of numbers per example.",
        )
