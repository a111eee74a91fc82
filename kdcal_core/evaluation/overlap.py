"""Rows that two sets of a review have in common, with one rule for any two sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.equal_rows import EqualRows, are_fine, equal_rows, row_keys
from kdcal_core.data.schema import FloatArray
from kdcal_core.review import ReviewData


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
    count. Without inputs, rows are equal if they have the same probabilities and class. Where
    inputs number the rows, so that none match, probabilities are compared, and ``rows`` is 0 unless
    more of them match than by chance.

    Examples
    --------
    >>> held = SetRows("calibration", pd.DataFrame({"a": [0.1234567, 2.3456781]}), [0, 1])
    >>> far = SetRows("foreign", pd.DataFrame({"a": [2.3456781, 9.8765432]}), None, name="far.csv")
    >>> shared_note(shared(far, held), far, held).sentence.split(":")[0]
    "1 row of the table 'far.csv' is in the calibration set too (1 pair, chance gives 0)"
    """
    found = None
    known = rows.y is not None and other.y is not None
    if rows.inputs is not None and other.inputs is not None and rows.inputs.shape[1] > 0:
        first, second = other.inputs, rows.inputs
        labels = (other.y, rows.y) if known else (None, None)
        keys = row_keys(first, labels[0]), row_keys(second, labels[1])
        found = equal_rows(*keys, fine=are_fine(first, second))
    if (found is not None and found.rows) or rows.proba is None or other.proba is None:
        return found
    keys = row_keys(pd.DataFrame(other.proba), other.y), row_keys(pd.DataFrame(rows.proba), rows.y)
    alike = replace(equal_rows(*keys, unseen=1.0), by="probabilities")
    return replace(alike, rows=0) if found is not None and not alike.beyond_chance else alike


def shared_note(found: EqualRows, rows: SetRows, other: SetRows) -> Note | None:
    """A note on what :func:`shared` found; None where no rows are equal."""
    harm = _NOT_FOREIGN if rows.kind == "foreign" else _HARM[rows.kind][other.kind]
    sentence = found.words(rows.title, other.title, harm)
    if sentence is None:
        return None
    return Note(sentence, "copies" if found.beyond_chance else None, rows.name)


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
