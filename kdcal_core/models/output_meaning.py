"""What a model's outputs mean: probabilities, or the parameters of a family of distributions.

Also a network's probabilities from its raw output and its size in words, and a regression model's
columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from kdcal_core.data import Family, FloatArray, Task
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.text import formatted, listed

OutputKind = Literal["probability", "log-probability", "logit"]

# float32 probabilities of a thousand classes sum to one within about 1e-5, float16 ones within
# about 1e-3.
_SUM_TOLERANCE = 2e-3
_LOGIT_TOLERANCE = 1e-3
_LONGEST_LIST = 100_000


def guess_kind(raw: NDArray[Any]) -> OutputKind:
    """Guess the kind of a model's output from its values on a trial batch.

    Examples
    --------
    >>> import numpy as np
    >>> guess_kind(np.array([[0.2, 0.8], [0.5, 0.5]])), guess_kind(np.array([[1.2, -3.0]]))
    ('probability', 'logit')
    """
    values = _columns(raw)
    in_unit = bool(((values >= 0) & (values <= 1)).all())
    if values.shape[1] == 1:
        return "probability" if in_unit else "logit"
    if in_unit and _sums_to_one(values).all():
        return "probability"
    if (values <= 0).all() and _sums_to_one(np.exp(values)).all():
        return "log-probability"
    return "logit"


def to_proba(raw: NDArray[Any], kind: OutputKind, *, first_row: int = 0) -> FloatArray:
    """Probabilities from raw output.

    Parameters
    ----------
    raw : (n, K), (n, 1) or (n,)
        A single column holds the scores of the second of two classes.
    kind : {"probability", "log-probability", "logit"}
        Kind of ``raw``.
    first_row : int
        Number of rows before these, for messages.

    Returns
    -------
    (n, max(K, 2)) float64, rows summing to one

    Raises
    ------
    InputError
        NaN or infinite output, or declared probabilities that are not probabilities; the row is
        named.

    Examples
    --------
    >>> import numpy as np
    >>> to_proba(np.array([0.0]), "logit").tolist()
    [[0.5, 0.5]]
    """
    values = _columns(raw)
    if kind == "log-probability":
        values = np.exp(values)
    _check_finite(values, first_row)
    if kind == "logit":
        if values.shape[1] == 1:
            return np.concatenate([expit(-values), expit(values)], axis=1)
        return np.asarray(softmax(values, axis=1))
    if values.shape[1] == 1:
        values = np.concatenate([1 - values, values], axis=1)
    bad = (values < 0).any(axis=1) | ~_sums_to_one(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"The model's output is not a distribution over the classes: it sums to "
            f"{formatted(values[row].sum(), '.4g')}",
            fix="Use a model that gives one probability per class (softmax), or logits. "
            "Independent yes/no outputs (one sigmoid per class) cannot be reviewed as classes.",
            row=first_row + row + 1,
        )
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def one_a_class(logits: FloatArray) -> FloatArray:
    """Logits with one column for each class: a single column z becomes (-z/2, z/2).

    Examples
    --------
    >>> import numpy as np
    >>> one_a_class(np.array([[3.0]])).tolist()
    [[-1.5, 1.5]]
    """
    return np.concatenate([-logits, logits], axis=1) / 2 if logits.shape[1] == 1 else logits


def are_logits(values: NDArray[Any], raw: NDArray[Any], kind: OutputKind) -> bool:
    """Whether a softmax of these values gives the probabilities of a model's output.

    Examples
    --------
    >>> import numpy as np
    >>> are_logits(np.array([[0.0], [2.0]]), np.array([[0.5, 0.5], [0.12, 0.88]]), "probability")
    True
    """
    try:
        proba = to_proba(raw, kind)
    except InputError:
        return False
    if values.shape[:1] != proba.shape[:1] or not values.size:
        return False
    logits = one_a_class(np.asarray(values, dtype=np.float64).reshape(len(proba), -1))
    return logits.shape == proba.shape and np.allclose(
        softmax(logits, axis=1), proba, rtol=0, atol=_LOGIT_TOLERANCE
    )


def blocks(n_rows: int, block_rows: int) -> Iterator[slice]:
    """Consecutive blocks of rows; one empty block where there are no rows."""
    for start in range(0, max(n_rows, 1), block_rows):
        yield slice(start, min(start + block_rows, n_rows))


def string_list(text: str, what: str) -> tuple[str, ...]:
    """A list of names from the JSON text in a model file.

    Raises
    ------
    InputError
        Not a JSON list of distinct strings or numbers.

    Examples
    --------
    >>> string_list('["cat", 7]', "classes")
    ('cat', '7')
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    valid = isinstance(values, list) and 0 < len(values) <= _LONGEST_LIST
    if not valid or not all(isinstance(v, str | int | float) for v in values):
        raise InputError(
            f"The model file's {what!r} entry is not a JSON list of names",
            fix=f'Write it as a list, for example ["a", "b"], or leave {what!r} out.',
        )
    names = tuple(str(value) for value in values)
    if len(set(names)) < len(names):
        raise InputError(f"The model file's {what!r} entry names something twice")
    return names


def class_names(known: Sequence[str] | None, n_classes: int) -> tuple[tuple[str, ...], bool]:
    """Names of the classes, and whether they are names or only numbers.

    Raises
    ------
    InputError
        The number of names differs from the number of classes.

    Examples
    --------
    >>> class_names(None, 3)
    (('0', '1', '2'), False)
    """
    if known is None:
        return tuple(str(k) for k in range(n_classes)), False
    if len(known) != n_classes:
        raise InputError(
            f"The model names {len(known):,} classes but gives {n_classes:,} outputs",
            fix="Correct the list of classes in the model file.",
        )
    return tuple(known), True


def check_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Names of the features, one for each that the model takes.

    Raises
    ------
    InputError
        The number of names differs from the number of features.
    """
    if names is not None and len(names) != n_features:
        raise InputError(
            f"The model names {len(names):,} features but takes {n_features:,}",
            fix="Correct the list of feature names in the model file.",
        )
    return None if names is None else tuple(names)


def network_in_words(widths: Sequence[int], n_members: int, format_name: str) -> str:
    """A ReLU network's size in words.

    Parameters
    ----------
    widths : sequence of int
        Units of each ReLU layer, member by member.
    n_members : int
        Number of last hidden layers; more than one makes an ensemble.

    Examples
    --------
    >>> network_in_words((32, 32), 1, "ONNX")
    'ReLU network (ONNX), 2 hidden layers of 32'
    >>> network_in_words((16,) * 10, 10, "ONNX")
    'Ensemble of 10 ReLU networks (ONNX), 1 hidden layer of 16 each'
    """
    alike = n_members > 1 and len(widths) % n_members == 0 and len(set(widths)) == 1
    layers = list(widths[: len(widths) // n_members]) if alike else list(widths)
    plural = "" if len(layers) == 1 else "s"
    if len(set(layers)) == 1:
        size = f"{len(layers):,} hidden layer{plural} of {layers[0]:,}"
    elif len(layers) <= 4:
        size = f"hidden layers of {', '.join(f'{w:,}' for w in layers[:-1])} and {layers[-1]:,}"
    else:
        size = f"{len(layers):,} hidden layers, {sum(layers):,} units"
    if alike:
        return f"Ensemble of {n_members:,} ReLU networks ({format_name}), {size} each"
    return f"ReLU network ({format_name}), {size}"


def _columns(raw: NDArray[Any]) -> FloatArray:
    values = np.asarray(raw, dtype=np.float64)
    return values.reshape(-1, 1) if values.ndim == 1 else values


def _sums_to_one(values: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.abs(values.sum(axis=1) - 1) <= _SUM_TOLERANCE)


_SPELLINGS = {"mu": "mean", "loc": "mean", "sigma": "std", "sd": "std", "variable": "mean"}
_QUANTILE = re.compile(r"(?:q|p|quantile|percentile)?_?(0?\.[0-9]{1,12})", re.ASCII)
_PERCENT = re.compile(r"(?:q|p|quantile|percentile)_?([0-9]{2})", re.ASCII)
#: Families recognised by the names of their parameters; a single column is a point prediction.
_NAMED: tuple[Family, ...] = ("normal", "gamma", "student_t", "lognormal", "log_point")


@dataclass(frozen=True)
class Outputs:
    """What a regression model's file states about its outputs.

    Attributes
    ----------
    family : Family or None
    names : tuple of str or None
        Names of the columns, where the file has them. Untrusted text.
    """

    family: Family | None = None
    names: tuple[str, ...] | None = None


def read_family(text: str) -> Family:
    """A family as named in a model file.

    Raises
    ------
    InputError
        If the family is unknown.

    Examples
    --------
    >>> read_family("gamma")
    'gamma'
    """
    for family in get_args(Family):
        if text == family:
            known: Family = family
            return known
    raise InputError(
        f"The model names the family {text[:40]!r}, which kdcal does not know",
        fix=f"It knows {', '.join(get_args(Family))}.",
    )


def read_task(text: str) -> Task:
    """A task as named in a model file.

    Raises
    ------
    InputError
        If the task is neither of the two.
    """
    for task in get_args(Task):
        if text == task:
            known: Task = task
            return known
    raise InputError(
        f"The model names the task {text[:40]!r}",
        fix="Write 'classification' or 'regression'.",
    )


def check_task(found: Task, asked: Task | None) -> None:
    """Refuse a model whose task is not the requested one.

    Examples
    --------
    >>> check_task("regression", None)
    >>> try:
    ...     check_task("regression", "classification")
    ... except ValueError as error:
    ...     print(str(error)[:40])
    This is a regression model, not a classi
    """
    if asked is not None and asked != found:
        raise InputError(
            f"This is a {found} model, not a {asked} model",
            fix=f"Set the review's task to {found}, or choose another model.",
        )


def resolve_outputs(n_outputs: int, said: Outputs) -> tuple[tuple[str, ...], Family | None]:
    """Names and family of a model's columns.

    Parameters
    ----------
    n_outputs : int
        Number of columns that the model gives.
    said : Outputs
        What its file states about them. The rest follows from the names, and a single column is a
        point prediction.

    Returns
    -------
    outputs : tuple of str, family : Family or None
        As in :class:`~kdcal_core.models.protocol.Regressor`.

    Raises
    ------
    InputError
        If the number of names or the family's parameters do not fit the columns.

    Examples
    --------
    >>> resolve_outputs(2, Outputs(names=("mu", "sigma")))
    (('mean', 'std'), 'normal')
    >>> resolve_outputs(2, Outputs(family="gamma"))
    (('mean', 'shape'), 'gamma')
    >>> resolve_outputs(3, Outputs())
    (('output_1', 'output_2', 'output_3'), None)
    """
    names = said.names
    if names is not None and len(names) != n_outputs:
        raise InputError(
            f"The model names {len(names):,} outputs but gives {n_outputs:,}",
            fix="Correct the list of outputs in the model file.",
        )
    if said.family is not None:
        return _of_family(n_outputs, said.family, names), said.family
    if names is not None and (found := family_of_names(names)) is not None:
        return _of_family(n_outputs, found, names), found
    if n_outputs == 1:
        return ("mean",), "point"
    return names or tuple(f"output_{k}" for k in range(1, n_outputs + 1)), None


def family_of_names(names: Sequence[str]) -> Family | None:
    """The family whose parameters have these names; None where there is none.

    Examples
    --------
    >>> family_of_names(("mean", "std")), family_of_names(("q05", "q95")), family_of_names(("a",))
    ('normal', 'quantiles', None)
    """
    if names and all(_level(name) is not None for name in names):
        return "quantiles"
    found = {_parameter(name) for name in names}
    for family in _NAMED:
        if found == set(FAMILIES[family].parameters) and len(found) == len(names):
            return family
    return None


def check_outputs(
    raw: NDArray[Any], n_rows: int, n_outputs: int, *, first_row: int = 0
) -> FloatArray:
    """A model's answer as (n, n_outputs) float64, all finite.

    Parameters
    ----------
    raw : (n,) or (n, n_outputs)
    n_rows, n_outputs : int
        The shape it must have.
    first_row : int
        Number of rows before these, for messages.

    Raises
    ------
    InputError
        Another shape, or NaN or infinite output; the row is named.

    Examples
    --------
    >>> check_outputs(np.array([1.0, 2.0]), 2, 1).tolist()
    [[1.0], [2.0]]
    """
    values = np.asarray(raw, dtype=np.float64)
    if values.ndim not in (1, 2) or len(values) != n_rows or values.size != n_rows * n_outputs:
        raise InputError(
            f"The model's output has the shape {values.shape} for {n_rows:,} rows",
            fix=f"A regression model gives one row of {n_outputs:,} numbers per example.",
        )
    values = values.reshape(n_rows, n_outputs)
    _check_finite(values, first_row)
    return values


def _check_finite(values: FloatArray, first_row: int) -> None:
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            "The model's output is not finite",
            fix="Check the features of this row: they may lie far outside the training range.",
            row=first_row + int(np.argmax(bad)) + 1,
        )


def pick_layer(layers: Collection[str], layer: str) -> int:
    """Position of a hidden layer by its name.

    Raises
    ------
    InputError
        If the model has no hidden layer of that name.

    Examples
    --------
    >>> pick_layer(("hidden 1 (8)", "hidden 2 (4)"), "hidden 2 (4)")
    1
    """
    names = list(layers)
    if layer not in names:
        raise InputError(
            f"The model has no hidden layer {layer[:60]!r}",
            fix=f"It has {listed((repr(name[:60]) for name in names), 10)}.",
        )
    return names.index(layer)


def layer_names(widths: Sequence[int], places: Sequence[str] | None = None) -> tuple[str, ...]:
    """Names of the hidden layers, from their numbers of units and, where known, their modules.

    Examples
    --------
    >>> layer_names([100, 5])
    ('hidden 1 (100)', 'hidden 2 (5)')
    >>> layer_names([8, 8, 4], ["body.act", "body.act", "head.1"])
    ('hidden 1 (8)', 'hidden 2 (8)', 'head.1 (4)')
    """
    own = [""] * len(widths) if places is None else list(places)
    return tuple(
        f"{place} ({width:,})"
        if place and own.count(place) == 1
        else f"hidden {number} ({width:,})"
        for number, (place, width) in enumerate(zip(own, widths, strict=True), 1)
    )


def _of_family(n_outputs: int, family: Family, names: tuple[str, ...] | None) -> tuple[str, ...]:
    if family == "dropout":
        expected: tuple[str, ...] = ("mean",)
    elif family == "samples":
        expected = tuple(str(k) for k in range(1, n_outputs + 1))
    elif family == "quantiles":
        return _levels(n_outputs, names)
    else:
        expected = FAMILIES[family].parameters
    if len(expected) != n_outputs:
        raise InputError(
            f"The model says that its family is {family!r}, which takes {len(expected)} "
            f"output{'s'[: len(expected) != 1]} ({', '.join(expected)}), but gives {n_outputs:,}",
            fix="Correct the family in the model file, or export all of its outputs.",
        )
    if names is None or n_outputs == 1 or family == "samples":
        return expected
    own = tuple(_parameter(name) for name in names)
    if set(own) != set(expected):
        raise InputError(
            f"The model's outputs {', '.join(repr(name[:40]) for name in names)} are not the "
            f"parameters of its family {family!r}",
            fix=f"Name them {', '.join(expected)}.",
        )
    return own


def _levels(n_outputs: int, names: tuple[str, ...] | None) -> tuple[str, ...]:
    levels = [_level(name) for name in names or ()]
    if len(levels) != n_outputs or any(level is None for level in levels):
        raise InputError(
            "The model says that its outputs are quantiles, but not of which levels",
            fix='Name the outputs by their levels, for example ["0.05", "0.5", "0.95"].',
        )
    found = tuple(str(level) for level in levels)
    if len(set(found)) < len(found):
        raise InputError("The model gives a quantile of one level twice")
    return found


def _level(name: str) -> float | None:
    """The level in a name, "0.05", "q0.05", "quantile_0.05", "p05", or None."""
    text = name.strip().lower()
    if match := _QUANTILE.fullmatch(text):
        level = float(match[1])
    elif match := _PERCENT.fullmatch(text):
        level = int(match[1]) / 100
    else:
        return None
    return level if 0 < level < 1 else None


def _parameter(name: str) -> str:
    text = name.strip().lower().removeprefix("pred_").removeprefix("predicted_")
    return _SPELLINGS.get(text, text)
