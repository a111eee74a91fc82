"""How a saved calibrator knows its model again: by what the model says of given rows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.protocol import Features, HasCodes, HasEmbedding, Model, Regressor
from kdcal_core.partition import LeafCodes

# SHA-256 of the file that a model was loaded from, as long as the model lives
_FILES: WeakKeyDictionary[object, str] = WeakKeyDictionary()
_N_PROJECTIONS = 16
# Steps of the rounding: about a thousand times what another runtime's arithmetic in float32
# does to a projection of probabilities, and ten thousand times what it does to hidden units.
_PROBA_STEP, _HIDDEN_STEP = 1e-3, 1e-2


def remember_file(model: Model | Regressor, path: str | Path) -> None:
    """Keep the digest of the file that a model was loaded from."""
    with Path(path).open("rb") as file:
        _FILES[model] = hashlib.file_digest(file, "sha256").hexdigest()


def file_digest(model: object) -> str | None:
    """SHA-256 of the file that a model was loaded from; None for a model from memory.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from kdcal_core.models import wrap_model
    >>> file_digest(wrap_model(DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]))) is None
    True
    """
    try:
        return _FILES.get(model)
    except TypeError:  # an object of a kind that cannot be remembered
        return None


def fingerprint(model: Model | Regressor, X: Features) -> str:
    """Digest of what a model makes of given rows: its answers, leaves, last hidden layer.

    The same for a model from a file and from memory, and on another machine whose sums end in
    other last digits. Rounding each number would not do: of thousands, some lie on the edge
    between two roundings, and a unit at zero may fall on either side. So probabilities (or a
    regression's outputs, each by itself) and hidden units enter as sixteen random projections
    of the whole table, rounded far above the last digits: in float32 a false difference has
    about one chance in 500 where the runtimes differ, and none where they do not. Leaves enter
    as they are.

    Parameters
    ----------
    model : Model or Regressor
    X : (n, n_features)
        At least one row; some hundreds tell models apart best.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    InputError
        No rows, or rows that the model cannot take.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from kdcal_core.models import wrap_model
    >>> X, y = load_iris(return_X_y=True)
    >>> def grow(seed):
    ...     return wrap_model(RandomForestClassifier(5, random_state=seed).fit(X, y))
    >>> fingerprint(grow(0), X) == fingerprint(grow(0), X)
    True
    >>> fingerprint(grow(0), X) == fingerprint(grow(1), X)
    False
    """
    if len(X) == 0:
        raise InputError("There are no rows to know the model by", fix="Pass at least one row.")
    digest = hashlib.sha256(f"{model.n_features} features, {len(X)} rows".encode())
    if isinstance(model, Regressor):
        digest.update(_columns(model.predict(X)))
    else:
        digest.update(_projections(model.predict_proba(X), _PROBA_STEP))
    if isinstance(model, HasEmbedding):
        digest.update(_projections(model.embed(X), _HIDDEN_STEP))
    elif isinstance(model, HasCodes):
        codes = model.codes(X)
        if isinstance(codes, LeafCodes):
            digest.update(np.ascontiguousarray(codes.leaves, dtype="<i4").tobytes())
    return digest.hexdigest()


def _columns(answers: FloatArray) -> bytes:
    """Projections of each column by itself: a shape of 0.1 counts beside a mean of a million."""
    return b"".join(_projections(column[:, None], _PROBA_STEP) for column in answers.T)


def _projections(values: FloatArray, step: float) -> bytes:
    """Random projections of a table of unit length, rounded, with the number of its columns."""
    n_rows, n_columns = values.shape
    # RandomState's stream is frozen, so that a saved fingerprint outlives numpy's version.
    random = np.random.RandomState(0)
    rows = random.standard_normal((_N_PROJECTIONS, n_rows))
    columns = random.standard_normal((_N_PROJECTIONS, n_columns))
    length = np.linalg.norm(values) or 1.0
    projected = np.einsum("pk,pk->p", rows @ values, columns) / length
    whole: bytes = np.rint(projected / step).astype("<i8").tobytes()
    return f"{n_columns} columns".encode() + whole
