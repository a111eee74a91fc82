"""The shapes data takes on its way through kdcal: a table, its column roles, a scored set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.shown import Shown, names_text
from kdcal_core.statistics import Dependence, DesignedRows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Task = Literal["classification", "regression"]
OutputKind = Literal[
    "probability",
    "percent",
    "permille",
    "logit",
    "log_probability",
    "confidence",
    "percent_confidence",
    "right",
    "percent_right",
]
#: What numbers of these kinds are divided by
UNITS: dict[OutputKind, float] = {
    "percent": 100.0,
    "percent_confidence": 100.0,
    "percent_right": 100.0,
    "permille": 1000.0,
}
#: Kinds of output whose one column is about the predicted class of each row
CONFIDENCES: tuple[OutputKind, ...] = (
    *("confidence", "percent_confidence"),
    *("right", "percent_right"),
)
#: Those that are the probability that the predicted class, one of any number, is right
RIGHTS: tuple[OutputKind, ...] = ("right", "percent_right")
#: The classes of such a review
RIGHT_CLASSES = ("wrong", "right")
#: The classes of a target that holds shares, by whether at least half say so
MAJORITY_CLASSES = ("0", "1")
Family = Literal[
    "point",
    "log_point",
    "normal",
    "lognormal",
    "gamma",
    "student_t",
    "quantiles",
    "samples",
    "dropout",
]


@dataclass(frozen=True, eq=False, repr=False)
class Table(Shown):
    """A table as it was read, with its identity.

    Attributes
    ----------
    frame : pandas.DataFrame
        The rows, with a fresh RangeIndex; read-only by convention.
    digest : str
        SHA-256 of the file's bytes (or of the frame's Arrow form, where it came from memory):
        the identity of the table, and the key of every cache.
    name : str
        The file's name without its folder. Untrusted text.
    notes : tuple of str
        What was detected and decided while reading, in plain sentences.
    """

    frame: pd.DataFrame
    digest: str
    name: str
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield "Table", self.name
        yield "Rows", f"{self.n_rows:,}"
        yield "Columns", names_text(tuple(map(str, self.frame.columns)), "column")
        if self.notes:
            yield "Notes", " ".join(self.notes)


@dataclass(frozen=True)
class Roles:
    """What each column of a table is for.

    ``outputs`` pairs a class name with the column that holds the model's probability (or
    percentage, or logit) of that class, in the model's order of classes. Columns without a role
    are unused. ``cluster`` names the column whose equal values mark rows that depend on one another
    (a patient, a centre), ``time`` the one that orders the rows; at most one of both is used.
    ``class_by`` says how the class of a lone output column was found: by its "name" (or by a
    person), or else by the "rows" or the "order" of the classes, which is a guess to be confirmed.
    Where the lone output is of an output kind "right", the classes are `RIGHT_CLASSES`: whether the
    class in the column ``predicted`` is that of the target. With ``majority`` the target holds
    shares, as of annotators' votes, and a row is of class "1" where at least half say so, else of
    class "0".

    In a regression ``target`` is the outcome, ``family`` the kind of predictive distribution, and
    ``parameters`` pairs a parameter ("mean", "std", a quantile's level "0.05", a sample's number)
    with its column, where the table carries the model's predictions. ``true_mean`` is the column
    of a simulation's true conditional mean.
    """

    target: str | None = None
    features: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    output_kind: OutputKind = "probability"
    predicted: str | None = None
    split: str | None = None
    weight: str | None = None
    cluster: str | None = None
    time: str | None = None
    task: Task = "classification"
    family: Family | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    true_mean: str | None = None
    class_by: Literal["name", "rows", "order"] = "name"
    majority: bool = False

    @property
    def judges_right(self) -> bool:
        """Whether a row's class is whether its prediction is right."""
        return self.output_kind in RIGHTS and [one for one, _ in self.outputs] == ["right"]

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns that say a row's class; empty where no column is the target."""
        columns = (self.target, self.predicted if self.judges_right else None)
        return tuple(one for one in columns if one is not None)


@dataclass(frozen=True, eq=False)
class ScoredSet(DesignedRows):
    """Rows with the model's probabilities and the true class: all that diagnostics need.

    Attributes
    ----------
    proba : (n, K) float64
        Each row sums to one.
    y : (n,) int64
        Index of the true class, 0 to K - 1.
    classes : tuple of str
        The K class names in column order. Untrusted text.
    weight : (n,) float64 or None
        Positive row weights.
    digest : str
        SHA-256 of the arrays above: the key of every cached result.
    name : str
        "calibration" or "evaluation".
    dependence : Dependence or None
        How the rows depend on one another; None for independent rows.
    """

    proba: FloatArray
    y: IntArray
    classes: tuple[str, ...]
    digest: str
    name: str
    weight: FloatArray | None = None
    dependence: Dependence | None = None

    @property
    def n_rows(self) -> int:
        return int(self.proba.shape[0])

    def only(self, rows: IntArray | NDArray[np.bool_]) -> ScoredSet:
        """The set of these rows alone, by position (m,) or mask (n,).

        It has no digest, so that nothing of it is cached as a result of all rows.

        Examples
        --------
        >>> y, half = np.array([0, 1, 1]), np.full((3, 2), 0.5)
        >>> three = ScoredSet(half, y, ("no", "yes"), "digest", "calibration")
        >>> three.only(np.array([0, 2])).y.tolist(), three.only(y == 1).digest
        ([0, 1], '')
        """
        weight = None if self.weight is None else self.weight[rows]
        dependence = None if self.dependence is None else self.dependence.only(rows)
        return replace(
            self,
            proba=self.proba[rows],
            y=self.y[rows],
            digest="",
            weight=weight,
            dependence=dependence,
        )
