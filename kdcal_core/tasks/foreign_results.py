"""Which foreign rows were asked about, and what the model said of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.tasks.graph_results import Rows

ForeignKind = Literal["uploaded", "sphere", "uniform", "shuffled", "shifted"]

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True)
class ForeignSettings:
    """What foreign rows are made.

    Attributes
    ----------
    radii : tuple of float
        Of the spheres; 1 is the distance of the data's farthest row. Empty for no spheres.
    n : int
        Rows on each sphere, and at most in each other set that is made.
    shifted_feature : str or None
        The numeric feature that is shifted far. Untrusted text.
    shifts : tuple of float
        By how many of its standard deviations.
    seed : int
    """

    radii: tuple[float, ...] = RADII
    n: int = 1000
    shifted_feature: str | None = None
    shifts: tuple[float, ...] = (2.0, 5.0, 10.0, 20.0)
    seed: int = 0


@dataclass(frozen=True)
class ForeignSet:
    """One set of foreign rows, a part of all rows of the run.

    Attributes
    ----------
    kind : str
        "uploaded", "sphere", "uniform", "shuffled" or "shifted".
    name : str
        For people. Untrusted text.
    value : float or None
        The sphere's radius, or the shift in standard deviations.
    start, stop : int
        Its rows among those of the run.
    """

    kind: ForeignKind
    name: str
    value: float | None
    start: int
    stop: int


@dataclass(frozen=True)
class ForeignRecord:
    """What was asked.

    Attributes
    ----------
    settings : ForeignSettings
    sets : tuple of ForeignSet
    classes : tuple of str
        Untrusted text.
    n_numeric, n_features : int
        How many features are numbers, which the spheres move in, of how many.
    notes : tuple of str
        Which sets could not be made, and why.
    n_bounded : int
        Numeric features that cannot be any number: whole numbers, or never below zero.
    impossible : dict
        By the name of a set: the column in which its rows leave most what the column can be, its
        least value there, and its least value in the data. Untrusted names.
    """

    settings: ForeignSettings
    sets: tuple[ForeignSet, ...]
    classes: tuple[str, ...]
    n_numeric: int
    n_features: int
    notes: tuple[str, ...]
    n_bounded: int = 0
    impossible: dict[str, tuple[str, float, float]] = field(default_factory=dict)

    def of_kind(self, *kinds: ForeignKind) -> tuple[ForeignSet, ...]:
        """The sets of these kinds; all where none is named."""
        return tuple(one for one in self.sets if not kinds or one.kind in kinds)

    @property
    def radii(self) -> FloatArray:
        """Radii of the spheres, (R,), in the order of the settings."""
        return np.array([one.value for one in self.of_kind("sphere")], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ForeignRun:
    """The model's answers for foreign rows, and their places in the graph's partition.

    Attributes
    ----------
    record : ForeignRecord
    rows : Rows
        Of all sets, one after the other.
    """

    record: ForeignRecord
    rows: Rows

    def sets(self, *kinds: ForeignKind) -> tuple[ForeignSet, ...]:
        """The sets of these kinds; all where none is named."""
        return self.record.of_kind(*kinds)

    def rows_of(self, one: ForeignSet) -> Rows:
        """The rows of a set, as views."""
        return self.rows.part(one.start, one.stop)

    @property
    def radii(self) -> FloatArray:
        """Radii of the spheres, (R,), in the order of the settings."""
        return self.record.radii

    def by_radius(self, proba: FloatArray) -> FloatArray:
        """Probabilities of all the run's rows as those on each sphere, (R, n, K)."""
        spheres = self.sets("sphere")
        if not spheres:
            return np.zeros((0, 0, proba.shape[1]))
        on_them = proba[spheres[0].start : spheres[-1].stop]
        return on_them.reshape(len(spheres), -1, proba.shape[1])
