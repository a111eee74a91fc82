"""The regression options of ``kdcal diagnose``, as roles and as measurements."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from kdcal_core.cli.measured_regression import MeasuredRegression, measure_regression
from kdcal_core.cli.outputs import table_notes
from kdcal_core.data import Roles, family_of
from kdcal_core.diagnostics import mean_scale
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Review,
    ReviewReader,
    TableInfo,
    Which,
    Workspace,
    load_frame,
    load_regression_set,
)
from kdcal_core.text import listed

BINS = 20  # of the PIT histogram (decision D88)


def refuse(options: argparse.Namespace) -> None:
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


def roles(review: Review, options: argparse.Namespace) -> Roles:
    """The role of each column: as the user says, and for the rest as the app guesses.

    A weight is used only if the user names it.

    Raises
    ------
    InputError
        For a column that the table does not have, and for class names.
    """
    if options.classes:
        raise InputError(
            "--classes is for a classification, and this is a regression",
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


def measured(
    workspace: Workspace, review: Review, sets: Sequence[Which], options: argparse.Namespace
) -> list[MeasuredRegression]:
    """Every set's results; the scale of sMIS is the calibration set's (decision D71)."""
    scale = mean_scale(load_regression_set(workspace, review.id, "calibration").y)
    found = []
    for which in sets:
        frame = load_frame(workspace, review.id, which)
        for column in options.by:
            need(review.tables[which], column, "The table has no such column")
        found.append(
            measure_regression(
                load_regression_set(workspace, review.id, which),
                {name: frame[name] for name in options.by},
                notes=(
                    *ReviewReader(workspace, review.id).fitness(which).flags,
                    *table_notes(review, which),
                ),
                scale=scale,
                n_bins=options.bins or BINS,
                level=options.level,
                seed=options.seed,
                fitted_spread=review.sets[which].spread is not None,
            )
        )
    return found


def need(table: TableInfo, column: str, what: str) -> None:
    """Refuse a table without this column, and name those it has.

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
