"""Rows that two sets of a review have in common: one rule for any two of them."""

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
        "copies" of more equal rows in two sets than chance gives; or the group of measures that
        alone it concerns.
    foreign : str
        Name of the table of foreign rows that it is about; empty where there is none. Untrusted.
    """

    sentence: str
    about: Literal["copies", "outside", "ranking"] | None = None
    foreign: str = ""


SetKind = Literal["training", "calibration", "evaluation", "foreign"]

_HARM: dict[SetKind, dict[SetKind, str]] = {
    "evaluation": {
        "calibration": "results on that set flatter every calibrator fitted on them",
        "training": "results on that set flatter the model, because it has learnt from them",
    },
    "calibration": {
        "training": "a calibrator that is fitted there trusts the model too much, because the "
        "model has learnt from them",
    },
}
_NOT_FOREIGN = "rows of the data are not foreign, and the model may well be sure of them"


@dataclass(frozen=True, eq=False)
class SetRows:
    """The rows of one set, as far as they are compared with those of others.

    Attributes
    ----------
    kind : {"training", "calibration", "evaluation", "foreign"}
    inputs : (n, d) data frame or None
        What describes the rows; None where nothing does.
    y : (n,) array or None
        Their classes as indices, or their outcomes; None for foreign rows.
    proba : (n, K) array or None
        The model's probabilities, which are compared where ``inputs`` cannot be.
    name : str
        Of a table of foreign rows. Untrusted text.
    """

    kind: SetKind
    inputs: pd.DataFrame | None
    y: NDArray[Any] | None
    proba: FloatArray | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """What the set is called in a sentence."""
        return f"table {self.name[:80]!r}" if self.kind == "foreign" else f"{self.kind} set"


def shared(rows: SetRows, other: SetRows) -> EqualRows | None:
    """Rows of a set that lie in the other too; None where nothing of them can be compared.

    Equal are rows with the same inputs and class or outcome, as :func:`kdcal_core.data.equal_rows
    .equal_rows` counts them; foreign rows, which have neither, by their inputs alone. Without
    inputs, the same probabilities and class. Where inputs number the rows, so that none match,
    probabilities may serve, and ``rows`` is 0 unless more of them match than by chance.

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
    """What is to be said of what :func:`shared` found; None where no rows are equal."""
    harm = _NOT_FOREIGN if rows.kind == "foreign" else _HARM[rows.kind][other.kind]
    sentence = found.words(rows.title, other.title, harm)
    if sentence is None:
        return None
    return Note(sentence, "copies" if found.beyond_chance else None, rows.name)


def overlap(review: ReviewData) -> EqualRows | None:
    """Rows of the evaluation set that lie in the calibration set; None without one.

    As :func:`shared` counts them.
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
