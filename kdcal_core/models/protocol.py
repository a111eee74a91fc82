"""The small protocol that the models of all formats follow.

Several regression models in memory form one model, with the members' predictions as samples. A
saved calibrator recognises its model by the model's answers for given rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import Family, FloatArray, Task
from kdcal_core.errors import InputError
from kdcal_core.partition import ActivationCodes, Codes, LeafCodes
from kdcal_core.progress import Progress
from kdcal_core.shown import Shown, names_text

Features = pd.DataFrame | NDArray[Any]


@runtime_checkable
class Model(Protocol):
    """A model under review.

    Attributes
    ----------
    kind : str
        What it is, in words: "Random forest, 500 trees", "ReLU network, 2 hidden layers".
    classes : tuple of str
        Class names in the order of the probability columns. Untrusted text.
    named_classes : bool
        False where the file has no class names and ``classes`` only numbers them "0", "1", ...
    n_features : int
        Number of input columns.
    feature_names : tuple of str or None
        Their names in order, where the file has them. Untrusted text.
    """

    kind: str
    classes: tuple[str, ...]
    named_classes: bool
    n_features: int
    feature_names: tuple[str, ...] | None

    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities, (n, K) float64, rows summing to one."""
        ...


@runtime_checkable
class Regressor(Protocol):
    """A regression model under review, which predicts parameters of a distribution for each row.

    Attributes
    ----------
    kind : str
        What it is, in words: "Random forest, 500 trees".
    n_features : int
        Number of input columns.
    feature_names : tuple of str or None
        Their names in order, where the file has them. Untrusted text.
    outputs : tuple of str
        Names of the columns of ``predict``: parameters of ``family`` ("mean", "std"; "0.05" for a
        quantile; "1", "2", ... for samples), else "output_1", "output_2", ... Untrusted text.
    family : Family or None
        The kind of predictive distribution, None where the file does not say. A "dropout" model
        predicts its mean here, and its distribution through :class:`HasDropout`.
    """

    kind: str
    n_features: int
    feature_names: tuple[str, ...] | None
    outputs: tuple[str, ...]
    family: Family | None

    def predict(self, X: Features) -> FloatArray:
        """Parameters of each row's distribution, (n, len(outputs)) float64, all finite."""
        ...


@runtime_checkable
class HasLayers(Protocol):
    """A network whose hidden layers have names (the layer l of Torres et al., Algorithm 1).

    Attributes
    ----------
    layers : tuple of str
        Hidden layers in the order of computation: "hidden 1 (100)", with the number of units.
    """

    layers: tuple[str, ...]

    def embed(self, X: Features, layer: str | None = None) -> FloatArray:
        """Activations of one hidden layer, (n, d) float64; by default of the last."""
        ...


@runtime_checkable
class HasDropout(Protocol):
    """A network with one output that can be run with its dropout (Torres et al., section 4.2)."""

    def sample(
        self, X: Features, m: int, seed: int, progress: Progress | None = None
    ) -> FloatArray:
        """Predictions of ``m`` random passes, (n, m) float64, the same for the same seed."""
        ...


@runtime_checkable
class HasMembers(Protocol):
    """A regression ensemble whose members' predictions can be read as samples."""

    def members(self, X: Features) -> FloatArray:
        """Prediction of each member, (n, n_members) float64."""
        ...


@runtime_checkable
class HasCodes(Protocol):
    """A model that can be read as a partition of its input space."""

    def codes(self, X: Features) -> Codes:
        """Partition codes of the rows."""
        ...


@runtime_checkable
class HasEmbedding(Protocol):
    """A model with a hidden representation."""

    def embed(self, X: Features) -> FloatArray:
        """Last hidden layer, (n, d) float64."""
        ...


@runtime_checkable
class HasLogits(Protocol):
    """A network whose scores are a softmax or a sigmoid of logits that it can return.

    An ensemble that averages its members' probabilities has no logits.
    """

    def logits(self, X: Features) -> FloatArray:
        """The argument of the softmax, (n, K) float64, unbounded.

        A network of two classes with a single output z gives (-z/2, z/2), which has the same
        softmax.
        """
        ...


@runtime_checkable
class HasHead(Protocol):
    """An encoder with a head of dense ReLU layers (Dey et al., section 3.2).

    The encoder is everything before the last unbroken run of dense layers with ReLUs: convolutions,
    attention, recurrent layers, activations other than ReLU. The head divides the encoder's output
    into polytopes. A network of dense ReLU layers alone has no encoder and no head: it divides the
    input itself.
    """

    def head_codes(self, X: Features) -> ActivationCodes:
        """Activation bits of the head's ReLU layers."""
        ...

    def head_input(self, X: Features) -> FloatArray:
        """The input of the head's first dense layer, (n, d) float64."""
        ...


@runtime_checkable
class NamesActivations(Protocol):
    """A network that names its hidden activations other than ReLU.

    Attributes
    ----------
    other_activations : tuple of str
        In words, in the order of computation, with every activation counted: "layer 2: sigmoid",
        "layer 3: GELU". Empty where all are ReLU. Dey et al. define paths only for ReLU (section
        2.4.2), so only ReLUs give bits. A LeakyReLU's sign would divide the space too, but its unit
        is active on both sides.
    """

    other_activations: tuple[str, ...]


@dataclass(frozen=True)
class ModelInfo:
    """What the app knows about a model without loading it in its own process.

    Attributes
    ----------
    kind, classes, named_classes, n_features, feature_names
        As in :class:`Model`.
    has_codes, has_embedding, has_logits, has_head : bool
        Which optional protocols it follows.
    other_activations : tuple of str
        As in :class:`NamesActivations`; empty unless it is a network.
    task : Task
        "regression" for a :class:`Regressor`, whose ``classes`` are empty.
    outputs, family
        As in :class:`Regressor`; empty and None for a classifier.
    layers : tuple of str
        As in :class:`HasLayers`; empty where there are none.
    has_dropout, has_members : bool
        Whether it follows :class:`HasDropout` and :class:`HasMembers`.
    digest : str
        SHA-256 of the file, hexadecimal.
    name : str
        Name of the file. Untrusted text.
    size_bytes : int
    """

    kind: str
    classes: tuple[str, ...]
    named_classes: bool
    n_features: int
    feature_names: tuple[str, ...] | None
    has_codes: bool
    has_embedding: bool
    digest: str
    name: str
    size_bytes: int
    has_logits: bool = False
    has_head: bool = False
    other_activations: tuple[str, ...] = ()
    task: Task = "classification"
    outputs: tuple[str, ...] = ()
    family: Family | None = None
    layers: tuple[str, ...] = ()
    has_dropout: bool = False
    has_members: bool = False


class ShownModel(Shown):
    """A model that says in a few lines what it is."""

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield "Model", getattr(self, "kind", "")
        classes = getattr(self, "classes", None)
        if classes is not None:
            yield "Classes", names_text(classes, "class", "classes")
        else:
            yield "Outputs", names_text(getattr(self, "outputs", ()), "output")
        names = getattr(self, "feature_names", None)
        known = names_text(names, "feature") if names else f"{getattr(self, 'n_features', 0):,}"
        yield "Features", known


class Ensemble(ShownModel):
    """An ensemble of point predictions (deep ensembles, models of several seeds).

    Parameters
    ----------
    members : sequence of Regressor
        Two or more, each with one output, on the same features.

    Raises
    ------
    InputError
        Fewer than two members, a member with several outputs, or members with different features.
    """

    def __init__(self, members: Sequence[Regressor]) -> None:
        if len(members) < 2:
            raise InputError(
                f"An ensemble needs two members, not {len(members)}", fix="Pass them in a list."
            )
        first = members[0]
        for place, member in enumerate(members, 1):
            if len(member.outputs) != 1:
                raise InputError(
                    f"Member {place} of the ensemble gives {len(member.outputs)} outputs",
                    fix="Pass members that predict the mean alone.",
                )
            if (member.n_features, member.feature_names) != (first.n_features, first.feature_names):
                raise InputError(
                    f"Member {place} of the ensemble takes different features than the first",
                    fix="Pass members that were trained on the same columns.",
                )
        self.kind = f"Ensemble of {len(members):,} regression models ({first.kind})"
        self.n_features, self.feature_names = first.n_features, first.feature_names
        self.outputs = tuple(str(k) for k in range(1, len(members) + 1))
        self.family: Family | None = "samples"
        self._members = tuple(members)

    def predict(self, X: Features) -> FloatArray:
        """Prediction of each member, (n, n_members) float64."""
        return np.concatenate([member.predict(X) for member in self._members], axis=1)

    def members(self, X: Features) -> FloatArray:
        """Prediction of each member, (n, n_members) float64."""
        return self.predict(X)


# SHA-256 of the file that a model was loaded from, kept as long as the model exists
_FILES: WeakKeyDictionary[object, str] = WeakKeyDictionary()
_N_PROJECTIONS = 16
# Steps of the rounding: about a thousand times the change that another runtime's float32 arithmetic
# makes to a projection of probabilities, and ten thousand times that to hidden units.
_PROBA_STEP, _HIDDEN_STEP = 1e-3, 1e-2


def remember_file(model: Model | Regressor, path: str | Path) -> None:
    """Store the digest of the file that a model was loaded from."""
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
    except TypeError:  # the object cannot be a weak key
        return None


def fingerprint(model: Model | Regressor, X: Features) -> str:
    """Digest of a model's output for given rows: its answers, leaves and last hidden layer.

    It is the same for a model from a file and from memory, and on another machine whose sums differ
    in the last digits. Rounding each number is not enough: of thousands, some lie between two
    rounded values, and a unit at zero may fall on either side. So probabilities (or each column of
    a regression's outputs) and hidden units enter as sixteen random projections of the whole table,
    rounded far above the last digits. In float32 a false difference has a probability of about 1 in
    500 where the runtimes differ, and 0 where they do not. Leaves enter unchanged.

    Parameters
    ----------
    model : Model or Regressor
    X : (n, n_features)
        At least one row; a few hundred distinguish models best.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    InputError
        If there are no rows, or the model cannot take them.

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
        raise InputError("There are no rows for a fingerprint", fix="Pass at least one row.")
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
    """Projections of each column alone, so that a shape of 0.1 counts as much as a mean of 1e6."""
    return b"".join(_projections(column[:, None], _PROBA_STEP) for column in answers.T)


def _projections(values: FloatArray, step: float) -> bytes:
    """Rounded random projections of a table scaled to unit length, and its number of columns."""
    n_rows, n_columns = values.shape
    # RandomState's stream is frozen, so a saved fingerprint does not depend on numpy's version.
    random = np.random.RandomState(0)
    rows = random.standard_normal((_N_PROJECTIONS, n_rows))
    columns = random.standard_normal((_N_PROJECTIONS, n_columns))
    length = np.linalg.norm(values) or 1.0
    projected = np.einsum("pk,pk->p", rows @ values, columns) / length
    whole: bytes = np.rint(projected / step).astype("<i8").tobytes()
    return f"{n_columns} columns".encode() + whole
