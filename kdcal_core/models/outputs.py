"""From a network's raw output to probabilities, and a network's size in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError

OutputKind = Literal["probability", "log-probability", "logit"]

# float32 probabilities of a thousand classes sum to one within about 1e-5; a coarser file
# (float16) within about 1e-3.
_SUM_TOLERANCE = 2e-3
_LOGIT_TOLERANCE = 1e-3
_LONGEST_LIST = 100_000


def guess_kind(raw: NDArray[Any]) -> OutputKind:
    """What a model's output looks like, judged by its values on a trial batch.

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
        One column stands for two classes: it is the score of the second.
    kind : {"probability", "log-probability", "logit"}
        What ``raw`` holds.
    first_row : int
        Number of rows before these, for messages.

    Returns
    -------
    (n, max(K, 2)) float64, rows summing to one

    Raises
    ------
    InputError
        NaN or infinite output, or declared probabilities that are not; names the row.

    Examples
    --------
    >>> import numpy as np
    >>> to_proba(np.array([0.0]), "logit").tolist()
    [[0.5, 0.5]]
    """
    values = _columns(raw)
    if kind == "log-probability":
        values = np.exp(values)
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            "The model's output is not finite",
            fix="Check the features of this row: they may lie far outside the training range.",
            row=first_row + int(np.argmax(bad)) + 1,
        )
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
            f"The model's output is no distribution over the classes: it sums to "
            f"{values[row].sum():.4g}",
            fix="Use a model that gives one probability per class (softmax), or logits. "
            "Independent yes/no outputs (one sigmoid per class) cannot be reviewed as classes.",
            row=first_row + row + 1,
        )
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def one_a_class(logits: FloatArray) -> FloatArray:
    """Logits with one column a class: a single column z becomes (-z/2, z/2).

    Examples
    --------
    >>> import numpy as np
    >>> one_a_class(np.array([[3.0]])).tolist()
    [[-1.5, 1.5]]
    """
    return np.concatenate([-logits, logits], axis=1) / 2 if logits.shape[1] == 1 else logits


def are_logits(values: NDArray[Any], raw: NDArray[Any], kind: OutputKind) -> bool:
    """Whether a softmax of these values gives the probabilities in a model's output.

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
    """Consecutive row blocks; one empty block where there are no rows."""
    for start in range(0, max(n_rows, 1), block_rows):
        yield slice(start, min(start + block_rows, n_rows))


def string_list(text: str, what: str) -> tuple[str, ...]:
    """A JSON list of names, as read from a model file.

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
    """Names of the classes, and whether they are real names or merely counted.

    Raises
    ------
    InputError
        Another number of names than the model has classes.

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
    """Names of the features, as many as the model takes.

    Raises
    ------
    InputError
        Another number of names than features.
    """
    if names is not None and len(names) != n_features:
        raise InputError(
            f"The model names {len(names):,} features but takes {n_features:,}",
            fix="Correct the list of feature names in the model file.",
        )
    return None if names is None else tuple(names)


def network_in_words(widths: Sequence[int], n_members: int, format_name: str) -> str:
    """A ReLU network's size for people.

    Parameters
    ----------
    widths : sequence of int
        Units of each ReLU layer, all members' layers one after the other.
    n_members : int
        Number of last hidden layers: more than one makes an ensemble.

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
