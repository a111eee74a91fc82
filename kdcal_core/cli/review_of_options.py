"""Make a scored review from the options of a command: its files, roles and doubts.

``kdcal diagnose`` and ``kdcal calibrate`` take the same files and columns. What the user does not
give is guessed as in the app.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kdcal_core.data import OutputKind, Roles, classes_of, family_of
from kdcal_core.data.role_guesses import output_kind_named
from kdcal_core.errors import InputError
from kdcal_core.models import ModelInfo
from kdcal_core.review import (
    Review,
    ReviewReader,
    TableInfo,
    Which,
    Workspace,
    add_model,
    add_table,
    create_review,
    may_be_swapped,
    open_doubts,
    score,
    set_roles,
    set_task,
)
from kdcal_core.text import listed, printable

_SHOWN = 3


def check_files(options: argparse.Namespace) -> None:
    """Refuse files that do not fit together or do not exist, before reading any."""
    if options.data and not options.model:
        raise InputError("--data needs --model", fix="Or give --predictions alone.")
    if options.predictions and options.model:
        raise InputError("--predictions takes no --model", fix="Give --data with --model.")
    check_outputs(options)
    for path in (options.model, options.data, options.predictions, options.evaluation):
        if path and not Path(path).is_file():
            raise InputError("There is no such file", fix="Check its path.", file=path)


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse options on columns of predictions when a model makes the predictions."""
    for word, value in (("--outputs", options.outputs), ("--output-kind", options.output_kind)):
        if value and not options.predictions:
            raise InputError(f"{word} needs --predictions", fix="A model gives its outputs itself.")


def scored_review(workspace: Workspace, options: argparse.Namespace) -> Review:
    """A scored review of the files that the user named."""
    review = create_review(workspace)
    if options.task or options.outputs:
        set_task(workspace, review.id, options.task or "classification")
    if options.model:
        model = Path(options.model)
        review = add_model(workspace, review.id, model, model.name)
    table = Path(options.data or options.predictions)
    target = options.target
    review = add_table(workspace, review.id, "calibration", table, table.name, target=target)
    _refuse_unread(review, options)
    if review.task == "regression":
        roles = _regression_roles(review, options)
    else:
        _refuse_regression_options(options)
        wanted = _Wanted(
            *(options.target, options.weight, options.classes, options.outputs, options.output_kind)
        )
        roles = wanted.roles(review.tables["calibration"], review.model, review.roles or Roles())
    set_roles(workspace, review.id, roles, options.classes)
    if options.evaluation:
        further = Path(options.evaluation)
        add_table(workspace, review.id, "evaluation", further, further.name)
    return score(workspace, review.id)


@dataclass(frozen=True)
class _Wanted:
    """The roles that the user gave the columns; the others are guessed as in the app."""

    target: str
    weight: str | None
    classes: tuple[str, ...] | None
    outputs: Sequence[tuple[str, str]] | None
    output_kind: OutputKind | None

    def roles(self, table: TableInfo, model: ModelInfo | None, guessed: Roles) -> Roles:
        """The role of each column.

        A weight or split column is used only if the user names it.
        """
        for column in filter(None, (self.target, self.weight)):
            need(table, column, "The table has no such column")
        plain = Roles(target=self.target, weight=self.weight)
        if model is None and self.outputs:
            outputs = self._said(table)
            kind = self.output_kind or output_kind_named([column for _, column in outputs])
            return replace(plain, outputs=outputs, output_kind=kind)
        if model is None:
            outputs = self._named(guessed.outputs)
            if not outputs:
                raise InputError(
                    "No column holds, by its name and values, the model's "
                    "probabilities of the target's classes",
                    fix="Name them: --outputs CLASS=COLUMN for each class, or for one of two; for "
                    "logits also --output-kind logit, for percentages --output-kind percent. Where "
                    "the target is a quantity, give --task regression.",
                    file=table.name,
                )
            kind, by = self.output_kind or guessed.output_kind, guessed.class_by
            return replace(plain, outputs=outputs, output_kind=kind, class_by=by)
        for column in model.feature_names or ():
            need(table, column, "The model needs a column that the table does not have")
        return replace(plain, features=model.feature_names or self._others(table, guessed))

    def _said(self, table: TableInfo) -> tuple[tuple[str, str], ...]:
        """The outputs that the user named, classes in their natural order."""
        names = [name for name, _ in self.outputs or ()]
        for name, column in self.outputs or ():
            need(table, column, "The table has no such column")
            if names.count(name) > 1:
                raise InputError(
                    f"--outputs names two columns for the class {name[:60]!r}",
                    fix="Each class has one column.",
                )
        column_of = dict(self.outputs or ())
        return tuple((name, column_of[name]) for name in classes_of(names))

    def _named(self, outputs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if self.classes is None or len(self.classes) != len(outputs):
            return outputs  # a wrong number of names is reported when the names are set
        columns = (column for _, column in outputs)
        return tuple(zip(self.classes, columns, strict=True))

    def _others(self, table: TableInfo, guessed: Roles) -> tuple[str, ...]:
        """For a model that names no columns: all columns without another role."""
        taken = {self.target, self.weight, guessed.split, guessed.predicted}
        taken |= {column for _, column in guessed.outputs}
        return tuple(name for name in table.column_names if name not in taken)


def _refuse_unread(review: Review, options: argparse.Namespace) -> None:
    """Refuse columns that may be predictions if only the user can say how to read them.

    Raises
    ------
    InputError
        For the first such question that the options do not answer.
    """
    fixes = {
        "order": "Name them: --outputs CLASS=COLUMN for each class.",
        "outputs": "",
        "scale": "Name them, with --output-kind percent: --outputs CLASS=COLUMN.",
        "level": "For an interval of 90%: --task regression --family quantiles --parameters "
        "0.05=LOWER,0.95=UPPER with the names of the two columns.",
    }
    if review.model is not None or options.outputs or options.parameters:
        return
    for doubt in review.doubts:
        if doubt.about in fixes:
            table = review.tables["calibration"].name
            raise InputError(doubt.sentence.removesuffix("."), fix=fixes[doubt.about], file=table)


def _refuse_regression_options(options: argparse.Namespace) -> None:
    """Refuse regression options where the task is a classification.

    Raises
    ------
    InputError
        For the first of them.
    """
    asked = (
        ("--family", options.family),
        ("--parameters", options.parameters),
        ("--true-mean", options.true_mean),
        ("--by", options.by),
    )
    for word, value in asked:
        if value:
            raise InputError(
                f"{word} is for a regression, and this is a classification",
                fix="Give --task regression, or leave it out.",
            )


def _regression_roles(review: Review, options: argparse.Namespace) -> Roles:
    """The role of each column: as given by the user, otherwise as guessed by the app.

    A weight is used only if the user names it.

    Raises
    ------
    InputError
        For a column that the table does not have, and for class names.
    """
    for word, value in (("--classes", options.classes), ("--event", options.event)):
        if value is not None:
            raise InputError(
                f"{word} is for a classification, and this is a regression",
                fix="Leave it out, or give --task classification.",
            )
    table = review.tables["calibration"]
    columns = dict(options.parameters or ()).values()
    for column in filter(
        None, (options.target, options.weight, options.true_mean, *columns, *options.by)
    ):
        need(table, column, "The table has no such column")
    guessed = review.roles or Roles()
    own = {options.target, options.weight, options.true_mean}
    free = tuple(pair for pair in guessed.parameters if pair[1] not in own)
    parameters = options.parameters or free
    model = review.model
    plain = Roles(
        target=options.target,
        weight=options.weight,
        task="regression",
        family=options.family or guessed.family,
        true_mean=options.true_mean or (None if guessed.true_mean in own else guessed.true_mean),
    )
    if model is None:
        named = family_of(dict(options.parameters)) if options.parameters else None
        family = options.family or named or guessed.family
        return replace(plain, parameters=parameters, family=family)
    for column in model.feature_names or ():
        need(table, column, "The model needs a column that the table does not have")
    taken = {*own, plain.true_mean, guessed.split}
    others = tuple(name for name in table.column_names if name not in taken)
    return replace(plain, features=model.feature_names or others)


def need(table: TableInfo, column: str, what: str) -> None:
    """Refuse a table without this column, and list the columns it has.

    Raises
    ------
    InputError
        ``what``, with the table and the column.
    """
    if column not in table.column_names:
        raise InputError(
            what,
            fix=f"Its columns are: {listed(table.column_names, 10)}.",
            file=table.name,
            column=column,
        )


def event_of(review: Review, name: str | None) -> int | None:
    """The class of this name, from 0; None without a name.

    Raises
    ------
    InputError
        If the review has no such class.
    """
    if name is None:
        return None
    if name not in review.classes:
        raise InputError(
            f"--event names no class: {name[:60]!r}",
            fix=f"The classes are: {listed(review.classes, 10)}.",
        )
    return review.classes.index(name)


def outputs_words(review: Review) -> str:
    """The columns that were read as predictions."""
    roles = review.roles or Roles()
    what = "logit" if roles.output_kind == "logit" else "probability"
    if len(roles.outputs) == 1:
        ((name, column),) = roles.outputs
        return printable(f"Column {column} holds the {what} of class {name}.", 500)
    classes, columns = (listed(part, _SHOWN) for part in zip(*roles.outputs, strict=True))
    many = "logits" if what == "logit" else "probabilities"
    return printable(f"Columns {columns} hold the {many} of classes {classes}.", 500)


def table_notes(review: Review, which: Which) -> tuple[str, ...]:
    """Notes on single columns from reading the table."""
    return tuple(note for note in review.tables[which].notes if note.startswith("Column "))


def doubts_words(review: Review) -> tuple[str, ...]:
    """The open doubts about the classes, the last one with the option that settles it."""
    doubts = list(open_doubts(review))
    if doubts:
        doubts[-1] += _fix(review)
    return tuple(printable(doubt, 1000) for doubt in doubts)


def copies_words(workspace: Workspace, review: Review) -> tuple[str, ...]:
    """Warnings about more equal rows in two of the review's tables than by chance."""
    if len(review.all_tables) < 2:
        return ()
    from kdcal_core.tasks import Sets, equal_sets  # slow to import

    found = equal_sets(Sets(ReviewReader(workspace, review.id, review=review)))
    return tuple(printable(note.sentence, 1000) for note in found.notes if note.about == "copies")


def _fix(review: Review) -> str:
    roles = review.roles or Roles()
    if not may_be_swapped(review):
        return ""
    first, second = review.classes
    if review.model is not None:
        return f" To swap them: --classes {shlex.quote(f'{second},{first}')}."
    column_of = dict(roles.outputs)
    if len(column_of) == 2:
        words = f"{first}={column_of[second]},{second}={column_of[first]}"
        return f" To swap them: --outputs {shlex.quote(words)}."
    ((name, column),) = roles.outputs
    other = next(one for one in review.classes if one != name)
    swap = f"--outputs {shlex.quote(f'{other}={column}')}"
    if roles.class_by == "name":
        return f" To swap them: {swap}."
    keep = f"--outputs {shlex.quote(f'{name}={column}')}"
    return f" Say which it is: {keep}, or {swap}."
