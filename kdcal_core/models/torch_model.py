"""Adapter for PyTorch models: exported programs from a file, modules in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kdcal_core.data import Family, Task
from kdcal_core.errors import InputError, warn
from kdcal_core.models.formats import Content, Format, Library
from kdcal_core.models.output_meaning import (
    OutputKind,
    Outputs,
    are_logits,
    check_task,
    guess_kind,
    read_family,
    read_task,
    string_list,
)
from kdcal_core.models.protocol import Model, Regressor
from kdcal_core.models.torch_network import (
    TRIAL_ROWS,
    Network,
    TorchClassifier,
    TorchNetwork,
    as_columns,
    build_regressor,
    guarded,
    to_numpy,
)
from kdcal_core.models.torch_program import Program, build_program, read_archive
from kdcal_core.models.upload_checks import model_trial, most_cells

# Memory that a trial may take on one row and on more rows, in addition to copies of the file.
_FIRST_BYTES = 224 << 20
_TRIAL_BYTES = 2 << 30
_TRIAL_COPIES = 4


def load(path: Path, *, name: str, task: Task | None = None) -> Model | Regressor:
    """Load a PyTorch exported program (``.pt2``).

    kdcal reads the archive itself, without PyTorch's loader: weights are raw numbers, the graph is
    JSON, and its operators must be on a list. Pickled members are never read, and a program that
    needs one is refused. Class and feature names come from the extra files ``classes.json`` and
    ``feature_names.json``, each a JSON list, where the archive has them. A regression model may say
    so in ``task.json`` ("regression"), ``family.json`` and ``outputs.json`` (the names of its
    columns over all outputs in order). A program keeps its dropout, which the export switched off;
    ``sample`` switches it on.

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
        With ``codes`` and ``embed`` where the scores come from ReLU layers, with ``logits``
        where the network has them, and with a head behind an encoder.

    Raises
    ------
    InputError
        The file is broken, unsafe or of the other task.
    """
    try:
        return _load(path, task)
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
) -> Model:
    """Wrap a ``torch.nn.Module`` in memory as a classifier.

    The module is run in evaluation mode and without gradients; its own mode is restored
    afterwards.

    Parameters
    ----------
    module : torch.nn.Module
        Takes one tensor (n, n_features) or (n, *input_shape), returns (n, K), (n, 1) or (n,).
    classes : sequence, optional
        Names of the K classes; by default they are numbered.
    feature_names : sequence of str, optional
        Names of the columns in order.
    n_features : int, optional
        Number of columns; by default found from the names, ``input_shape`` or a first linear layer.
    input_shape : sequence of int, optional
        Shape of one row, for example (1, 28, 28) for images; columns are reshaped to it.
    output : {"auto", "logit", "probability", "log-probability"}, default="auto"
        What the module returns; "auto" decides by its last operation, then by its values.

    Returns
    -------
    Model
        With ``codes`` and ``embed`` where the scores come from ReLU layers, with ``logits``
        where the network has them, and with a head behind an encoder.

    Raises
    ------
    InputError
        The number of features cannot be found, the module does not run, or names do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    >>> model = wrap_module(net, classes=["a", "b", "c"])
    >>> model.kind, model.predict_proba(np.zeros((5, 2))).shape
    ('ReLU network (PyTorch), 1 hidden layer of 4', (5, 3))
    """
    if output not in ("auto", "logit", "probability", "log-probability"):
        raise InputError(f"The output kind {output!r} is unknown", fix="Leave it at 'auto'.")
    if input_shape is None:
        input_shape = (_width(module, feature_names, n_features),)
    dtype, device = _number_format(module)
    network = Network(
        run=partial(_run_module, module),
        row_shape=tuple(input_shape),
        batch=None,
        dtype=dtype,
        device=device,
    )
    return _model(
        network,
        classes=None if classes is None else tuple(str(name) for name in classes),
        feature_names=feature_names,
        kind=None if output == "auto" else output,
    )


def wrap(
    module: Any,
    *,
    classes: Sequence[object] | None,
    feature_names: Sequence[str] | None,
    task: Task | None,
    said: Outputs,
) -> Model | Regressor:
    """Wrap a ``torch.nn.Module`` in memory as a model of the task; by default a classifier."""
    if task == "regression":
        return wrap_regression_module(
            module, family=said.family, outputs=said.names, feature_names=feature_names
        )
    return wrap_module(module, classes=classes, feature_names=feature_names)


def wrap_regression_module(
    module: Any,
    *,
    family: Family | None = None,
    outputs: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    input_shape: Sequence[int] | None = None,
) -> Regressor:
    """Wrap a ``torch.nn.Module`` in memory as a regression model.

    The module is run in evaluation mode and without gradients; its own modes are restored
    afterwards. ``sample`` activates only its dropout layers (nn.Dropout, AlphaDropout and their
    variants for maps): batch norm stays frozen, and PyTorch's global random state does not change.
    Dropout that a module calls as a function, or that is part of attention and recurrent layers,
    cannot be recognised and stays off.

    Parameters
    ----------
    module : torch.nn.Module
        Takes one tensor (n, n_features) or (n, *input_shape). Returns (n,) or (n, q), or several of
        these in a tuple, or in a dict whose keys become the names of the outputs.
    family : Family, optional
        Kind of predictive distribution, where the names of the outputs do not show it.
    outputs : sequence of str, optional
        Names of the output columns.
    feature_names, n_features, input_shape
        As in :func:`wrap_module`.

    Returns
    -------
    Regressor
        It has ``layers`` and ``embed`` where there are hidden layers, and ``sample`` where there
        are one output and dropout.

    Raises
    ------
    InputError
        The number of features cannot be found, the module does not run, or names do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(4, 1)
    ... )
    >>> model = wrap_regression_module(net, family="dropout")
    >>> model.layers, model.sample(np.zeros((5, 2)), 10, seed=0).shape
    (('hidden 1 (4)',), (5, 10))
    """
    if input_shape is None:
        input_shape = (_width(module, feature_names, n_features),)
    dtype, device = _number_format(module)
    network = Network(
        run=lambda rows: as_columns(_run_module(module, rows)),
        row_shape=tuple(input_shape),
        batch=None,
        dtype=dtype,
        device=device,
    )
    names = _dict_names(network, module) if outputs is None else tuple(outputs)
    has_dropout = any(_drops(part) for part in module.modules())
    return build_regressor(
        network,
        said=Outputs(family, names),
        feature_names=feature_names,
        dropout=(lambda rows: as_columns(_run_module(module, rows, dropout=True)))
        if has_dropout
        else None,
    )


def _dict_names(network: Network, module: Any) -> tuple[str, ...] | None:
    """Output names of a module that returns a dict of single columns."""
    result = replace(network, run=partial(_run_module, module)).output(network.trial())
    if not isinstance(result, dict):
        return None
    single = all(value.numel() == len(value) for value in result.values())
    return tuple(str(key) for key in result) if single else None


def _drops(part: Any) -> bool:
    from torch.nn.modules.dropout import _DropoutNd

    return isinstance(part, _DropoutNd) and part.p > 0


def _load(path: Path, task: Task | None) -> Model | Regressor:
    archive = read_archive(path)
    program = build_program(archive)
    n_bytes = path.stat().st_size
    few = program.batch or 1
    first_bytes = _FIRST_BYTES * most_cells(few) // most_cells(1) + _TRIAL_COPIES * n_bytes
    with model_trial(few, n_bytes, first_bytes), guarded():
        program.check_size()
    if program.batch == 1:
        warn(
            "The program was exported for one row at a time, which is slow; export it with "
            "dynamic_shapes=({0: torch.export.Dim.AUTO},) to let it take many.",
            stacklevel=3,
        )
    network = Network(
        run=program,
        row_shape=program.row_shape,
        batch=program.batch,
        dtype=program.dtype,
        device="cpu",
    )
    said = _said_task(archive.extra)
    if said is not None:
        check_task(said, task)
    more_bytes = _TRIAL_BYTES + _TRIAL_COPIES * n_bytes
    with model_trial(network.batch or TRIAL_ROWS, n_bytes, more_bytes):
        if (said or task) == "regression":
            return _regressor(archive.extra, program, network)
        extra = {
            key: string_list(archive.extra[f"{key}.json"], key)
            if f"{key}.json" in archive.extra
            else None
            for key in ("classes", "feature_names")
        }
        return _model(network, **extra, kind=None)


def _said_task(extra: dict[str, str]) -> Task | None:
    if "task.json" in extra:
        return read_task(_text(extra["task.json"]))
    if "family.json" in extra or "outputs.json" in extra:
        return "regression"
    return "classification" if "classes.json" in extra else None


def _regressor(extra: dict[str, str], program: Program, network: Network) -> Regressor:
    dropping = program.with_dropout()
    outputs, feature_names = (
        string_list(extra[f"{key}.json"], key) if f"{key}.json" in extra else None
        for key in ("outputs", "feature_names")
    )
    family = read_family(_text(extra["family.json"])) if "family.json" in extra else None
    return build_regressor(
        replace(network, run=lambda rows: as_columns(program.outputs(rows))),
        said=Outputs(family, outputs),
        feature_names=feature_names,
        dropout=None if dropping is None else lambda rows: as_columns(dropping.outputs(rows)),
    )


def _text(content: str) -> str:
    """A word from an extra file, as JSON or plain."""
    return content.strip().strip('"')


def _model(
    network: Network,
    *,
    classes: tuple[str, ...] | None,
    feature_names: Sequence[str] | None,
    kind: OutputKind | None,
) -> Model:
    recording = network.record("A classifier")
    output = recording.output
    kind = kind or recording.kind
    if kind is None:
        single = output.numel() == len(output) and recording.ends_linear
        kind = "logit" if single else guess_kind(to_numpy(output))
    seen = recording.logits_seen
    if seen is not None and not are_logits(to_numpy(seen), to_numpy(output), kind):
        recording = replace(recording, logits=None)
    build = TorchNetwork if recording.last else TorchClassifier
    return build(network, recording, output_kind=kind, classes=classes, feature_names=feature_names)


def _run_module(module: Any, rows: Any, *, dropout: bool = False) -> Any:
    modes = {part: part.training for part in module.modules()}
    module.eval()
    for part in modes:
        part.training = dropout and _drops(part)
    try:
        return module(rows)
    finally:
        for part, training in modes.items():
            part.training = training


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
        "The number of features of the module cannot be found",
        fix="Pass n_features, or input_shape for images.",
    )


def _number_format(module: Any) -> tuple[Any, Any]:
    """Number format and device of the module's parameters."""
    import torch

    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype, tensor.device
    return torch.float32, torch.device("cpu")


def _save(module: Any, path: Path, n_features: int) -> str:
    import torch

    dtype = next((weights.dtype for weights in module.parameters()), torch.float32)
    # Two rows, because torch would treat one as a constant.
    example = torch.zeros(2, n_features, dtype=dtype)
    program = torch.export.export(
        module.eval(), (example,), dynamic_shapes=({0: torch.export.Dim("rows")},)
    )
    torch.export.save(program, path)
    return ""


def _is_pt2(content: Content) -> bool:
    return content.has_member("archive_format") and content.has_member("models/model.json")


Format(
    key="pt2",
    title="PyTorch exported program",
    suffixes=(".pt2",),
    is_content=_is_pt2,
    load=load,
    family="network",
    library=Library("torch", "PyTorch", "a PyTorch", wrap, _save),
).offer()
