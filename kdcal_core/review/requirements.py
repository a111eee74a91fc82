"""What each step needs from a review: complete roles, and tables with their columns.

Also the defaults for what the review does not specify.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from kdcal_core.data.column_doubts import Doubt
from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.schema import MAJORITY_CLASSES, RIGHT_CLASSES, Roles
from kdcal_core.errors import InputError
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.review.review import LOOKED_AT, WHICH, Review, TableInfo
from kdcal_core.review.sealed_files import gone
from kdcal_core.text import listed

_PLACED = {
    "training": " was taken for the training set: ",
    "foreign": " was taken for foreign rows: ",
}


def check_which(which: str) -> None:
    """Refuse a name that is not that of a set."""
    if which not in WHICH:
        raise ValueError(f"which must be one of {WHICH}, not {which!r}")


def check_classes(model: ModelInfo | None, roles: Roles, classes: tuple[str, ...] | None) -> None:
    """Refuse class names that do not match the number of outputs, and a name given twice."""
    if classes is None or (roles.task == "regression" and not classes):
        return
    if roles.task == "regression":
        raise InputError(
            "A regression has no classes", fix="Leave the class names out, or change the task."
        )
    expected = len(model.classes) if model else max(2, len(roles.outputs))
    if len(classes) != expected:
        raise InputError(
            f"There are {len(classes)} class names, but {expected} outputs",
            fix="Give one name for each output, in the order of the outputs.",
        )
    if len(set(classes)) != len(classes):
        raise InputError("A class name occurs twice", fix="Give each class a different name.")


def no_target_words(review: Review) -> str:
    """Why no column can be the target, without a full stop. Holds untrusted names.

    Examples
    --------
    >>> no_target_words(Review("some-id"))
    'No column is known to hold the true class'
    """
    regression = review.task == "regression"
    words = f"No column is known to hold the {'outcome' if regression else 'true class'}"
    table = review.tables.get("calibration")
    columns = table.columns if table else ()
    lone = [repr(c.name[:40]) for c in columns if c.n_distinct == 1 and not c.pair]
    if not lone:
        return words
    hold = "holds one value" if len(lone) == 1 else "hold one value each"
    varies = "It varies" if regression else "It has at least two classes"
    return f"{words}. {varies}, and {listed(lone, 3)} {hold}"


def constant_target(review: Review) -> InputError | None:
    """That the target has one value, by which no column is recognised as its prediction.

    None where predictions are known, whose own check then says so, and where there are more rows
    than `LOOKED_AT`.
    """
    table, roles = review.tables.get("calibration"), review.roles
    if table is None or roles is None or review.model or roles.outputs or roles.parameters:
        return None
    column = next((one for one in table.columns if one.name == roles.target), None)
    if column is None or column.n_distinct > 1 or table.n_rows > LOOKED_AT:
        return None
    held = f"only the value {column.examples[0]!r}" if column.examples else "no value at all"
    return InputError(
        f"The target holds {held}, so no prediction can be judged by it",
        fix="Use rows whose outcomes vary as the model will meet them, or choose another target.",
        file=table.name,
        column=column.name,
    )


def check_complete(review: Review) -> Roles:
    """The roles of a review, after a check that it has everything scoring needs."""
    if "calibration" not in review.tables or review.roles is None:
        raise InputError("There is no calibration table yet", fix="Add it on the Load page.")
    name = review.tables["calibration"].name
    answers = review.roles.outputs or review.roles.parameters
    if (constant := constant_target(review)) is not None:
        raise constant
    unread = next(
        (
            one
            for one in review.doubts
            if one.about in ("labels", "scale", "level", "order", "outputs")
        ),
        None,
    )
    if unread is not None and review.model is None and not answers:
        fix = "Answer on the Load page, or give each column its role." if unread.choices else ""
        raise InputError(unread.sentence.removesuffix("."), fix=fix, file=name)
    regression = review.task == "regression"
    if review.roles.target is None:
        raise InputError(
            no_target_words(review),
            fix="Give one column the role of the target.",
            file=name,
        )
    if regression and review.model is None and not review.roles.parameters:
        raise InputError(
            "There is neither a model nor a column with its predictions",
            fix="Add the model, or give the columns of its predictions the role 'Model output'.",
            file=name,
        )
    if not regression and review.model is None and not review.roles.outputs:
        raise InputError(
            "There is neither a model nor a probability column for each class",
            fix="Add the model, or give its probability columns the role 'Model output'. Where "
            "the target is a quantity, choose the task regression.",
            file=name,
        )
    return review.roles


def check_unchanged(before: Review, now: Review) -> None:
    """Refuse the result of a step if the review was changed meanwhile."""
    parts = ("model_file", "tables", "roles", "classes")
    if any(getattr(before, part) != getattr(now, part) for part in parts):
        raise InputError(
            "The review was changed meanwhile, so the result was discarded",
            fix="Start the step again.",
        )


def check_kept(review: Review, folder: Path) -> None:
    """Refuse a review whose tables are missing on disk."""
    for table in review.tables.values():
        if not (folder / table.file).is_file():
            raise gone(table.name)


def default_classes(
    model: ModelInfo | None, roles: Roles | None, table: TableInfo | None
) -> tuple[str, ...]:
    """The class names, from the model or otherwise from the outputs."""
    if roles is not None and roles.task == "regression":
        return ()
    if model is not None:
        return model.classes
    if roles is not None and roles.judges_right:
        return RIGHT_CLASSES
    if roles is not None and roles.majority:
        return MAJORITY_CLASSES
    names = tuple(name for name, _ in roles.outputs) if roles else ()
    if len(names) != 1 or roles is None or table is None:
        return names
    # one output is the probability of one of two classes; the target names the other
    pair = next((c.pair for c in table.columns if c.name == roles.target), ())
    if names[0] not in pair:
        return pair or names  # scoring reports the class that is not among them
    return (*(label for label in pair if label != names[0]), *names)


def check_columns(table: TableInfo, roles: Roles) -> None:
    """Refuse a set's table that lacks a column with a role, and a column with two roles."""
    used = used_columns(roles)
    refuse_partial(table, used)
    missing = _first_missing(table, used)
    if missing is not None:
        fix = "Both tables need the same columns; check the roles on the Load page."
        if missing == roles.target:
            truth = "the outcome" if roles.task == "regression" else "the true class"
            fix = f"It holds {truth}. If it has another name in the file, rename it there."
        raise InputError(
            "The table lacks a column that has a role",
            fix=fix,
            file=table.name,
            column=missing,
        )
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            "A column has two roles", fix="Give it one.", file=table.name, column=twice
        )


def refuse_partial(table: TableInfo, columns: Sequence[str]) -> None:
    """Refuse columns that only some files have of the folder from which a table was gathered.

    Raises
    ------
    InputError
        With the first such column, and the first file that lacks it.
    """
    for one in table.partial:
        if one.name in columns:
            raise one.error()


def lacking(table: TableInfo, roles: Roles) -> str | None:
    """The first column with a role that a set's table does not have."""
    return _first_missing(table, used_columns(roles))


def undoubted(roles: Roles, doubts: Sequence[Doubt]) -> Roles:
    """The roles without a target that is still asked about: a table may lack it until then."""
    asked = any(doubt.about == "target" and doubt.choices for doubt in doubts)
    return replace(roles, target=None) if asked else roles


def shared_features(
    review: Review, roles: Roles, other: TableInfo
) -> tuple[Roles, tuple[str, ...]]:
    """The roles without the features that another table lacks, and a note on these.

    Features of a model are kept, because the model needs them. Without a model they only describe
    the rows.
    """
    lost = [name for name in roles.features if name not in set(other.column_names)]
    if review.model is not None or not lost:
        return roles, ()
    kept = tuple(name for name in roles.features if name not in lost)
    note = f"Not every table has the column {listed(map(repr, lost), 1)}: not used."
    return replace(roles, features=kept), (note,)


def check_training(table: TableInfo, roles: Roles) -> None:
    """Refuse training rows without the features or the target."""
    what = "The training table lacks a column that the review reads"
    fix = "It needs the features and the target, named as in the calibration set."
    _require(table, _training_columns(roles), what, fix)


def check_foreign(table: TableInfo, roles: Roles) -> None:
    """Refuse foreign rows without the features; they need no true class."""
    fix = "It needs the model's features, named as in the calibration set."
    _require(table, roles.features, "The table lacks a feature", fix)


def check_watched(table: TableInfo, review: Review) -> None:
    """Refuse a new table to watch that cannot be scored; its labels may be missing."""
    what = "of the predictions" if review.model is None else "that the model needs"
    fix = "Give it under the name that it has in the reference table."
    _require(table, _scored_columns(review), f"The table lacks a column {what}", fix)


def _require(table: TableInfo, columns: Sequence[str], what: str, fix: str) -> None:
    """Refuse a table of which a file, or all, lacks one of these columns."""
    refuse_partial(table, columns)
    missing = _first_missing(table, columns)
    if missing is not None:
        raise InputError(what, fix=fix, file=table.name, column=missing)


def _scored_columns(review: Review) -> tuple[str, ...]:
    """The features of the model or, without one, the columns of its predictions."""
    roles = review.roles or Roles()
    if review.model is not None:
        return roles.features
    columns = tuple(column for _, column in (*roles.outputs, *roles.parameters))
    return (*columns, roles.predicted) if roles.predicted else columns


def keep_fitting(review: Review) -> Review:
    """The review without the tables aside that lack a column of its roles.

    The notes name each dropped table.
    """
    roles = review.roles
    if roles is None:
        return review
    training = review.training
    if training and _first_missing(training, _training_columns(roles)):
        training = None
    foreign = {
        name: table
        for name, table in review.foreign.items()
        if _first_missing(table, roles.features) is None
    }
    unplaced = {
        name: table for name, table in review.unplaced.items() if _still_asked(table, roles)
    }
    columns = _scored_columns(review)
    watched = {
        name: table
        for name, table in review.watched.items()
        if _first_missing(table, columns) is None
    }
    kept = replace(review, training=training, foreign=foreign, unplaced=unplaced, watched=watched)
    before, after = ((*one.all_tables, *one.watched.values()) for one in (review, kept))
    notes = tuple(
        f"{table.name} was dropped: it lacks columns that are now used."
        for table in before
        if table not in after
    )
    return replace(kept, notes=(*review.notes, *notes))


def _still_asked(table: TableInfo, roles: Roles) -> bool:
    """Whether a table without a place may still get one: by its features, or under other names."""
    if table.other_names:
        return {old for _, old in table.other_names} <= {*used_columns(roles)}
    return _first_missing(table, roles.features) is None


def place_note(name: str, place: Literal["training", "foreign"], why: str) -> str:
    """The note on a table whose place was guessed. The name is untrusted text."""
    return f"{name}{_PLACED[place]}{why}."


def without_place_note(review: Review, name: str) -> Review:
    """The review without the note on how a table of this name was placed."""
    begins = tuple(f"{name}{words}" for words in _PLACED.values())
    return replace(review, notes=tuple(one for one in review.notes if not one.startswith(begins)))


def with_true_places(review: Review) -> Review:
    """The review without notes on guessed places that hold another table now, or none."""
    held = [f"{table.name}{_PLACED['foreign']}" for table in review.foreign.values()]
    held += [f"{review.training.name}{_PLACED['training']}"] if review.training else []
    notes = tuple(
        note
        for note in review.notes
        if not any(words in note for words in _PLACED.values()) or note.startswith(tuple(held))
    )
    return review if notes == review.notes else replace(review, notes=notes)


def _training_columns(roles: Roles) -> tuple[str, ...]:
    return (*roles.label_columns, *roles.features)


def _first_missing(table: TableInfo, columns: Sequence[str]) -> str | None:
    present = set(table.column_names)
    return next((name for name in columns if name not in present), None)
