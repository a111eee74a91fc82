"""What is known of an input column: its name, its kind, and what each of its codes stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store import storable

MAX_BINS = 254  # one more code says missing, and all of them fit into a byte
CODES = 256
OTHER = "other"


def _none() -> NDArray[np.float64]:
    return np.empty(0)


@storable
@dataclass(frozen=True, eq=False)
class InputColumn:
    """A column of the inputs as a tree sees it.

    Attributes
    ----------
    name : str
        As in the table, hence untrusted: escape it before it reaches a screen.
    kind : "number" or "category"
        Truth values are categories.
    edges : (bins - 1,) float64
        Of a number: a value x has code i where ``edges[i - 1] < x <= edges[i]``.
    categories : tuple of str
        Of a category: the name behind each code, the most frequent first.
    pooled : bool
        Whether the last category stands for all that have no code of their own.
    has_missing : bool
        Whether a value was missing where the column was read first.

    Examples
    --------
    >>> age = InputColumn("age", "number", edges=np.array([28.0, 41.0]))
    >>> age.bins, age.missing_code
    (3, 3)
    """

    name: str
    kind: Literal["number", "category"]
    edges: NDArray[np.float64] = field(default_factory=_none)
    categories: tuple[str, ...] = ()
    pooled: bool = False
    has_missing: bool = False

    @property
    def bins(self) -> int:
        """Number of codes that are not the missing one."""
        return len(self.edges) + 1 if self.kind == "number" else len(self.categories)

    @property
    def missing_code(self) -> int:
        """The code of a missing value, the last one."""
        return self.bins

    def same_as(self, other: InputColumn) -> bool:
        """Whether the codes of both mean the same."""
        return self is other or (
            (self.name, self.kind, self.categories, self.pooled)
            == (other.name, other.kind, other.categories, other.pooled)
            and np.array_equal(self.edges, other.edges)
        )

    def check(self) -> None:
        """Raise :class:`InputError` where the description contradicts itself."""
        if self.kind == "number":
            edges = self.edges
            sound = (
                isinstance(edges, np.ndarray)
                and edges.ndim == 1
                and edges.dtype == np.float64
                and len(edges) < MAX_BINS
                and bool(np.isfinite(edges).all())
                and bool((np.diff(edges) > 0).all())
                and not self.categories
            )
        else:
            names = self.categories
            sound = (
                self.kind == "category"
                and len(self.edges) == 0
                and len(names) <= MAX_BINS
                and all(isinstance(name, str) for name in names)
                # a pooled "other" may bear the name of a category
                and len(set(names[:-1])) == len(names[:-1])
                and (self.pooled or len(set(names)) == len(names))
                and not (self.pooled and not names)
            )
        flags = isinstance(self.pooled, bool) and isinstance(self.has_missing, bool)
        if not (sound and flags and isinstance(self.name, str)):
            raise InputError(
                "The description of an input column contradicts itself",
                fix="Fit again from the data.",
                column=str(self.name),
            )
