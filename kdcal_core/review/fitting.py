"""Which tables fit the roles of a review: each needs the columns that are read from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.types import Roles
from kdcal_core.errors import InputError
from kdcal_core.review.model import Review, TableInfo
from kdcal_core.text import listed


def check_columns(table: TableInfo, roles: Roles) -> None:
    """Refuse a set's table that lacks a column with a role, and a column with two roles."""
    used = used_columns(roles)
    missing = _first_missing(table, used)
    if missing is not None:
        raise InputError(
            "The table lacks a column that has a role",
            fix="Both tables need the same columns; check the roles on the Load page.",
            file=table.name,
            column=missing,
        )
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            "A column has two roles", fix="Give it one.", file=table.name, column=twice
        )


def lacking(table: TableInfo, roles: Roles) -> str | None:
    """The first column with a role that a set's table does not have."""
    return _first_missing(table, used_columns(roles))


def shared_features(
    review: Review, roles: Roles, other: TableInfo
) -> tuple[Roles, tuple[str, ...]]:
    """The roles without the features that another table lacks, and a note on these.

    Features of a model stay, because the model needs them. Without a model they only describe the
    rows.
    """
    lost = [name for name in roles.features if name not in set(other.column_names)]
    if review.model is not None or not lost:
        return roles, ()
    kept = tuple(name for name in roles.features if name not in lost)
    note = f"Not every table has the column {listed(map(repr, lost), 1)}: not used."
    return replace(roles, features=kept), (note,)


def check_training(table: TableInfo, roles: Roles) -> None:
    """Refuse training rows without the features or the target."""
    missing = _first_missing(table, _training_columns(roles))
    if missing is not None:
        raise InputError(
            "The training table lacks a column that the review reads",
            fix="It needs the features and the target, named as in the calibration set.",
            file=table.name,
            column=missing,
        )


def check_foreign(table: TableInfo, roles: Roles) -> None:
    """Refuse foreign rows without the features; they need no true class."""
    missing = _first_missing(table, roles.features)
    if missing is not None:
        raise InputError(
            "The table lacks a feature",
            fix="It needs the model's features, named as in the calibration set.",
            file=table.name,
            column=missing,
        )


def keep_fitting(review: Review) -> Review:
    """The review without the training and foreign tables that lack a column of its roles.

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
    kept = replace(review, training=training, foreign=foreign)
    notes = tuple(
        f"{table.name} was dropped: it lacks columns that are used now."
        for table in review.all_tables
        if table not in kept.all_tables
    )
    return replace(kept, notes=(*review.notes, *notes))


def _training_columns(roles: Roles) -> tuple[str, ...]:
    return (*((roles.target,) if roles.target else ()), *roles.features)


def _first_missing(table: TableInfo, columns: Sequence[str]) -> str | None:
    present = set(table.column_names)
    return next((name for name in columns if name not in present), None)
