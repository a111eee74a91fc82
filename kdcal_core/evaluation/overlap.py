"""Rows that two sets of a review have in common, with one rule for any two sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.equal_rows import (
    EqualRows,
    are_fine,
    equal_rows,
    row_keys,
    without_identifiers,
)
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.review import ReviewData
from kdcal_core.statistics import is_telling
from kdcal_core.text import counted


@dataclass(frozen=True)
class Note:
    """What the reader of a result must know.

    Attributes
    ----------
    sentence : str
        Untrusted text where a table or a column is named.
    about : str or None
        "copies" where two sets have more equal rows than by chance; otherwise the only group of
        measures that it concerns.
    foreign : str
        Name of the table of foreign rows that it is about, or empty. Untrusted text.
    """

    sentence: str
    about: Literal["copies", "outside", "ranking"] | None = None
    foreign: str = ""


SetKind = Literal["training", "calibration", "evaluation", "foreign"]

_HARM: dict[SetKind, dict[SetKind, str]] = {
    "evaluation": {
        "calibration": "results on that set flatter every calibrator fitted on them",
        "training": "results on that set flatter the model, because it was trained on them",
    },
    "calibration": {
        "training": "a calibrator that is fitted there trusts the model too much, because the "
        "model was trained on them",
    },
}
_NOT_FOREIGN = "rows of the data are not foreign, and the model may well be sure of them"


@dataclass(frozen=True, eq=False)
class SetRows:
    """The rows of one set, with what is compared with other sets.

    Attributes
    ----------
    kind : {"training", "calibration", "evaluation", "foreign"}
    inputs : (n, d) data frame or None
        The columns that describe the rows; None where there are none.
    y : (n,) array or None
        Their classes as indices, or their outcomes; None for foreign rows.
    proba : (n, K) array or None
        The model's probabilities, which are compared where ``inputs`` cannot be.
    name : str
        Name of a table of foreign rows. Untrusted text.
    """

    kind: SetKind
    inputs: pd.DataFrame | None
    y: NDArray[Any] | None
    proba: FloatArray | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """The name of the set in a sentence."""
        return f"table {self.name[:80]!r}" if self.kind == "foreign" else f"{self.kind} set"


def shared(rows: SetRows, other: SetRows) -> EqualRows | None:
    """Rows of a set that are also in the other; None where they have nothing to compare.

    Rows are equal if they have the same inputs and the same class or outcome, as counted by
    :func:`kdcal_core.data.equal_rows.equal_rows`. Foreign rows have no class, so only their inputs
    count. Where no more match than by chance, inputs that number or name the rows do not count: a
    copy may have another number. Without inputs, rows are equal if they have the same probabilities
    and class. Where no row matches by its inputs, probabilities are compared, and count if more of
    them match than by chance.

    Examples
    --------
    >>> held = SetRows("calibration", pd.DataFrame({"a": [0.1234567, 2.3456781]}), [0, 1])
    >>> far = SetRows("foreign", pd.DataFrame({"a": [2.3456781, 9.8765432]}), None, name="far.csv")
    >>> shared_note(shared(far, held), far, held).sentence.split(":")[0]
    "1 row of the table 'far.csv' is in the calibration set too (1 pair, chance gives 0)"
    """
    found = None
    for keys in _keys_of_inputs(rows, other):
        alike = keys.counted
        if alike.beyond_chance:
            return alike
        found = found or alike
    if (found is not None and found.rows) or rows.proba is None or other.proba is None:
        return found
    mine, theirs = (row_keys(pd.DataFrame(one.proba), one.y) for one in (rows, other))
    alike = replace(equal_rows(theirs, mine, unseen=1.0), by="probabilities")
    return alike if found is None or alike.beyond_chance else found


@dataclass(frozen=True, eq=False)
class _Keys:
    """A key of every row of two sets, and whether rows are hardly ever equal by chance."""

    rows: NDArray[np.uint64]
    other: NDArray[np.uint64]
    fine: bool

    @property
    def counted(self) -> EqualRows:
        return equal_rows(self.other, self.rows, fine=self.fine)


def _keys_of_inputs(rows: SetRows, other: SetRows) -> Iterator[_Keys]:
    """By inputs and class, then without the inputs that number or name rows; none without inputs.

    Whoever compares rows takes the first that shows more equal ones than chance gives.
    """
    if rows.inputs is None or other.inputs is None or not rows.inputs.shape[1]:
        return
    known = rows.y is not None and other.y is not None
    y, other_y = (rows.y, other.y) if known else (None, None)
    tables: tuple[pd.DataFrame, ...] | None = rows.inputs, other.inputs
    while tables is not None:
        one, two = tables
        yield _Keys(row_keys(one, y), row_keys(two, other_y), are_fine(two, one))
        tables = without_identifiers(one, two)  # None once there are none


_FIRST = 10_000
SameBy = Literal["file", "columns", "outcomes", "some", "none", "unknown"]


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """Which rows of two sets are the same.

    Attributes
    ----------
    by : str
        What shows it. All rows are the same, in the same order, by the digest of their "file", by
        their inputs and class ("columns"), or by their "outcomes" alone, where no inputs can be
        compared. "some" rows are matched, "none", or it is "unknown" whether any are.
    rows, other : (m,) int64
        Positions of the matched rows in the two sets.
    found : EqualRows or None
        How many rows of the one set are in the other, where rows were counted: not where all are
        the same in one order.
    """

    by: SameBy
    rows: IntArray
    other: IntArray
    found: EqualRows | None = None

    @property
    def whole(self) -> bool:
        """Whether all rows are the same, in the same order."""
        return self.by in ("file", "columns", "outcomes")


def matched(rows: SetRows, other: SetRows, *, same_file: bool = False) -> MatchedRows:
    """The rows of two labelled sets that are the same, row by row.

    Rows are equal as in :func:`shared`. One is matched if no other row of either set equals it.
    Where no more rows are equal than chance gives, none is.

    Parameters
    ----------
    same_file : bool
        Whether both were read from one file, by its digest.

    Examples
    --------
    >>> one = SetRows("evaluation", pd.DataFrame({"a": [0.1234567, 2.3456781]}), np.array([0, 1]))
    >>> two = SetRows("evaluation", one.inputs[::-1], one.y[::-1])
    >>> found = matched(one, two)
    >>> found.by, found.rows.tolist(), found.other.tolist()
    ('some', [0, 1], [1, 0])
    """
    none = np.empty(0, dtype=np.int64)
    assert rows.y is not None
    assert other.y is not None
    alike = np.array_equal(rows.y, other.y)
    everything = np.arange(len(rows.y))
    if same_file and alike:
        return MatchedRows("file", everything, everything)
    if alike and _are_equal_and_telling(rows, other):
        return MatchedRows("columns", everything, everything)
    first = None
    for keys in _keys_of_inputs(rows, other):
        if alike and np.array_equal(keys.rows, keys.other) and is_telling(keys.rows):
            return MatchedRows("columns", everything, everything)
        found = keys.counted
        first = first or found
        if found.beyond_chance:
            return _matched(keys, found)
    if first is None:
        if alike and is_telling(rows.y):
            return MatchedRows("outcomes", everything, everything)
        return MatchedRows("unknown", none, none)
    return MatchedRows("none", none, none, first)


def _are_equal_and_telling(rows: SetRows, other: SetRows) -> bool:
    """Whether the tables of two sets with the same classes are equal, and their first rows say so.

    That is faster than a key of every row.
    """
    one, two = rows.inputs, other.inputs
    if one is None or two is None or rows.y is None or not one.shape[1] or not one.equals(two):
        return False
    return is_telling(row_keys(one.iloc[:_FIRST], rows.y[:_FIRST]))


def _matched(keys: _Keys, found: EqualRows) -> MatchedRows:
    (here, at), (there, other_at) = _lone(keys.rows), _lone(keys.other)
    _, first, second = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    order = np.argsort(at[first])
    return MatchedRows("some", at[first][order], other_at[second][order], found)


def _lone(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], IntArray]:
    """The keys that one row alone has, and the position of that row."""
    values, at, count = np.unique(keys, return_index=True, return_counts=True)
    return values[count == 1], at[count == 1]


def shared_note(found: EqualRows, rows: SetRows, other: SetRows) -> Note | None:
    """A note on what :func:`shared` found; None where no rows are equal."""
    harm = _NOT_FOREIGN if rows.kind == "foreign" else _HARM[rows.kind][other.kind]
    sentence = found.words(rows.title, other.title, harm)
    if sentence is None:
        return None
    return Note(sentence, "copies" if found.beyond_chance else None, rows.name)


def cluster_note(
    column: str, evaluation: pd.Series[Any], calibration: pd.Series[Any]
) -> Note | None:
    """A note on clusters that both sets have rows of; None without any.

    Examples
    --------
    >>> found = cluster_note("ward", pd.Series(["a", "b", "b"]), pd.Series(["b", "c"]))
    >>> found.sentence.partition(":")[0]
    "1 of 2 clusters of the evaluation set (column 'ward') is in the calibration set too"
    """
    mine = evaluation.astype("string").unique()
    both = int(pd.Series(mine).isin(calibration.astype("string").unique()).sum())
    if not both:
        return None
    of = f"{both:,} of {counted(len(mine), 'cluster')} of the evaluation set"
    return Note(
        f"{of} (column {column[:80]!r}) {'is' if both == 1 else 'are'} in the calibration set too: "
        f"the sets depend on one another, so {_HARM['evaluation']['calibration']}.",
        "copies",
    )


def overlap(review: ReviewData) -> EqualRows | None:
    """Rows of the evaluation set that are also in the calibration set; None without one.

    They are counted as in :func:`shared`.
    """
    evaluation, calibration = review.evaluation, review.calibration
    if evaluation is None:
        return None
    inputs = review.inputs
    return shared(
        SetRows("evaluation", inputs.get("evaluation"), evaluation.y, evaluation.proba),
        SetRows("calibration", inputs.get("calibration"), calibration.y, calibration.proba),
    )


def overlap_note(found: EqualRows) -> Note | None:
    """A note on what :func:`overlap` found; None where no rows are equal."""
    return shared_note(found, SetRows("evaluation", None, None), SetRows("calibration", None, None))
