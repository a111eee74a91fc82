"""What Load and Out of distribution say of rows that lie in two tables of a review."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.data import outcome_column, target_labels
from kdcal_core.evaluation.overlap import SetRows, shared, shared_words
from kdcal_core.review.review import WHICH, input_columns
from kdcal_core.tasks.sets import BOTH_SETS, Sets
from kdcal_core.tasks.task import review_task


@dataclass(frozen=True)
class EqualNote:
    """What is to be said of rows that lie in two tables.

    Attributes
    ----------
    sentence : str
        Untrusted text.
    copies : bool
        Whether there are more than chance gives.
    foreign : str
        Name of the table of foreign rows that it is about; empty where there is none.
    """

    sentence: str
    copies: bool
    foreign: str = ""


@dataclass(frozen=True)
class EqualSets:
    """A note for each two tables with equal rows: training, calibration, evaluation, foreign."""

    notes: tuple[EqualNote, ...]


@review_task("Load: comparing rows of the tables", reads=(*BOTH_SETS, "training", "foreign"))
def equal_sets(sets: Sets) -> EqualSets:
    """Rows that lie in two tables of the review, for any two but those of foreign rows.

    Of the evaluation and the calibration set this is what Compare and Regions say.

    Raises
    ------
    InputError
        Where a file is gone, or the training rows have another class than the model.
    """
    tables = _tables(sets)
    notes = []
    for at, rows in enumerate(tables):
        sets.progress(at / len(tables), "Comparing rows")
        for other in tables[:at]:
            found = None if other.kind == "foreign" else shared(rows, other)
            sentence = None if found is None else shared_words(found, rows, other)
            if found is not None and sentence is not None:
                notes.append(EqualNote(sentence, found.beyond_chance, rows.name))
    return EqualSets(tuple(notes))


def _tables(sets: Sets) -> list[SetRows]:
    reader = sets.reader
    review, roles = reader.review, reader.roles
    columns = input_columns(review)
    tables = []
    if reader.has("training") and roles.target is not None and columns:
        frame = reader.frame("training", [*columns, roles.target])
        name = reader.name("training")
        y = (
            outcome_column(frame, roles, file=name)
            if review.task == "regression"
            else target_labels(frame, roles, review.classes, file=name)
        )
        tables.append(SetRows("training", frame[columns], y))
    for which in WHICH:
        if which not in review.sets:
            continue
        inputs = reader.frame(which, columns) if columns else None
        if review.task == "regression":
            tables.append(SetRows(which, inputs, sets.distributions(which).y))
        else:
            scored = sets.read(which)
            tables.append(SetRows(which, inputs, scored.y, scored.proba))
    for name in review.foreign if roles.features else ():
        rows = reader.foreign(name).reset_index(drop=True)
        tables.append(SetRows("foreign", rows, None, name=name))
    return tables
