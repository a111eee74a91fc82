"""PyTorch models as parents: exported programs from a file, modules in memory."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kdcal_core.data.types import Task
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.parents.base import Parent
from kdcal_core.parents.outputs import OutputKind, are_logits, guess_kind, string_list
from kdcal_core.parents.torch_archive import read_archive
from kdcal_core.parents.torch_network import TRIAL_ROWS, Network, to_numpy
from kdcal_core.parents.torch_parents import TorchClassifier, TorchNetwork
from kdcal_core.parents.torch_program import build_program


def load(path: Path, *, name: str, task: Task | None = None) -> Parent:
    """Load a PyTorch exported program (``.pt2``).

    The archive is opened by hand: weights are raw numbers, the graph is JSON, and its operators
    must be on a list. Pickled members are never read; a program that needs one is refused.
    Class and feature names come from the extra files ``classes.json`` and
    ``feature_names.json``, each a JSON list, where the archive has them.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Its name, for messages.

    Returns
    -------
    Parent
        With ``codes`` and ``embed`` where the scores come from ReLU layers, with ``logits``
        where the network has them, and with a head behind an encoder.

    Raises
    ------
    InputError
        The file is broken, unsafe or no classifier.
    """
    try:
        return _load(path)
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
) -> Parent:
    """Take a ``torch.nn.Module`` in memory as a parent.

    The module is run in evaluation mode and without gradients; its own mode is restored
    afterwards.

    Parameters
    ----------
    module : torch.nn.Module
        Takes one tensor (n, n_features) or (n, *input_shape), returns (n, K), (n, 1) or (n,).
    classes : sequence, optional
        Names of the K classes; counted where left out.
    feature_names : sequence of str, optional
        Names of the columns in order.
    n_features : int, optional
        Number of columns; found from the names, ``input_shape`` or a first linear layer.
    input_shape : sequence of int, optional
        Shape of one row, for example (1, 28, 28) for images; columns are reshaped to it.
    output : {"auto", "logit", "probability", "log-probability"}, default="auto"
        What the module returns; "auto" looks at its last operation, then at its values.

    Returns
    -------
    Parent
        With ``codes`` and ``embed`` where the scores come from ReLU layers, with ``logits``
        where the network has them, and with a head behind an encoder.

    Raises
    ------
    InputError
        The number of features cannot be told, the module does not run, or names do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    >>> parent = wrap_module(net, classes=["a", "b", "c"])
    >>> parent.kind, parent.predict_proba(np.zeros((5, 2))).shape
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
    return _parent(
        network,
        classes=None if classes is None else tuple(str(name) for name in classes),
        feature_names=feature_names,
        kind=None if output == "auto" else output,
    )


def wrap(module: Any, *, classes: Any, feature_names: Any, task: Any, said: Any) -> Parent:
    return wrap_module(module, classes=classes, feature_names=feature_names)


def _load(path: Path) -> Parent:
    archive = read_archive(path)
    program = build_program(archive)
    if program.batch == 1:
        warnings.warn(
            "The program was exported for one row at a time, which is slow; export it with "
            "dynamic_shapes=({0: torch.export.Dim.AUTO},) to let it take many.",
            InputWarning,
            stacklevel=3,
        )
    network = Network(
        run=program,
        row_shape=program.row_shape,
        batch=program.batch,
        dtype=program.dtype,
        device="cpu",
    )
    extra = {
        key: string_list(archive.extra[f"{key}.json"], key) if f"{key}.json" in archive.extra
        else None
        for key in ("classes", "feature_names")
    }  # fmt: skip
    return _parent(network, **extra, kind=None)


def _parent(
    network: Network,
    *,
    classes: tuple[str, ...] | None,
    feature_names: Sequence[str] | None,
    kind: OutputKind | None,
) -> Parent:
    recording = network.record()
    output = recording.output
    n_rows = network.batch or TRIAL_ROWS
    if output.ndim not in (1, 2) or len(output) != n_rows or not output.numel():
        raise InputError(
            f"The model's output has the shape {tuple(output.shape)} for {n_rows} rows",
            fix="A classifier gives one row of numbers per example.",
        )
    kind = kind or recording.kind
    if kind is None:
        single = output.numel() == n_rows and recording.ends_linear
        kind = "logit" if single else guess_kind(to_numpy(output))
    seen = recording.logits_seen
    if seen is not None and not are_logits(to_numpy(seen), to_numpy(output), kind):
        recording = replace(recording, logits=None)
    build = TorchNetwork if recording.last else TorchClassifier
    return build(network, recording, output_kind=kind, classes=classes, feature_names=feature_names)


def _run_module(module: Any, rows: Any) -> Any:
    modes = {part: part.training for part in module.modules()}
    module.eval()
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
        "The number of features of the module cannot be told",
        fix="Pass n_features, or input_shape for images.",
    )


def _number_format(module: Any) -> tuple[Any, Any]:
    """Number format and device of the module's parameters."""
    import torch

    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype, tensor.device
    return torch.float32, torch.device("cpu")
