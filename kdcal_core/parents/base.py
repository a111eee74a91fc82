"""What every parent can do: the small protocol behind which all model formats stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.partition import Codes

Features = pd.DataFrame | NDArray[Any]


@runtime_checkable
class Parent(Protocol):
    """A model under review.

    Attributes
    ----------
    kind : str
        What it is, for people: "Random forest, 500 trees", "ReLU network, 2 hidden layers".
    classes : tuple of str
        Class names in the order of the probability columns. Untrusted text.
    named_classes : bool
        False where the file names no classes and ``classes`` merely counts "0", "1", ...
    n_features : int
        Number of input columns.
    feature_names : tuple of str or None
        Their names in order, where the file gives them. Untrusted text.
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
class HasCodes(Protocol):
    """A parent that is read as a partition of its input space."""

    def codes(self, X: Features) -> Codes:
        """Partition codes of the rows."""
        ...


@runtime_checkable
class HasEmbedding(Protocol):
    """A parent with a hidden representation."""

    def embed(self, X: Features) -> FloatArray:
        """Last hidden layer, (n, d) float64."""
        ...


@dataclass(frozen=True)
class ParentInfo:
    """What the rest of the app may know of a parent without holding it in its own process."""

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
