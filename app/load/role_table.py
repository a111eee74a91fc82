"""The table of columns on the Load page: a role for each column, guessed, shown, correctable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from kdcal_core.data import Family, Roles, Task
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.text import escape_markdown

FEATURE = "Feature"
TARGET = "Target"
OUTPUT = "Model output"
PREDICTED = "Predicted class"
SPLIT = "Split"
WEIGHT = "Weight"
TRUE_MEAN = "True mean"
UNUSED = "Not used"
_KINDS = {"probability": "probabilities", "logit": "logits"}
ROLE_NAMES: dict[Task, tuple[str, ...]] = {
    "classification": (FEATURE, TARGET, OUTPUT, PREDICTED, SPLIT, WEIGHT, UNUSED),
    "regression": (FEATURE, TARGET, OUTPUT, TRUE_MEAN, SPLIT, WEIGHT, UNUSED),
}
#: What an output column says which part of the prediction it holds
PART: dict[Task, str] = {"classification": "Class", "regression": "Parameter"}


def role_table(columns: Iterable[Any], roles: Roles) -> pd.DataFrame:
    """One row a column of the user's table, with what it holds and the role it has.

    The features come last: they may be many, and what else there is should be seen first.
    """
    names = _role_of_column(roles)
    parts = {column: name for name, column in (*roles.outputs, *roles.parameters)}
    return pd.DataFrame(
        [
            {
                "Column": column.name,
                "Role": names.get(column.name, UNUSED),
                PART[roles.task]: parts.get(column.name, ""),
                "Holds": column.kind,
                "Missing": column.n_missing,
                "Examples": ", ".join(column.examples),
            }
            for column in sorted(columns, key=lambda one: _place(names.get(one.name, UNUSED)))
        ]
    )


def _place(role: str) -> int:
    return 2 if role == FEATURE else int(role != TARGET)


def roles_sentence(roles: Roles, *, with_model: bool) -> str:
    """The roles that matter for the scoring, in one line of Markdown."""
    regression = roles.task == "regression"
    target = "Outcome" if regression else "True class"
    parts = [f"{target}: **{escape_markdown(roles.target or 'not known')}**"]
    if with_model:
        parts.append(_counted(roles.features, "model inputs"))
    elif regression:
        parts.append(_counted([column for _, column in roles.parameters], "predictions"))
    else:
        what = _KINDS[roles.output_kind]
        if len(roles.outputs) == 1:
            what = f"{what} of {escape_markdown(roles.outputs[0][0], 60)}"
        parts.append(_counted([column for _, column in roles.outputs], what))
    if regression and roles.family is not None:
        parts.append(f"family: **{FAMILIES[roles.family].title}**")
    for column, what in (
        (roles.predicted, "predicted class"),
        (roles.true_mean, "true mean"),
        (roles.split, "split"),
        (roles.weight, "weight"),
    ):
        if column is not None:
            parts.append(f"{what}: **{escape_markdown(column)}**")
    return " · ".join(parts)


def _counted(columns: Sequence[str], what: str) -> str:
    if len(columns) == 1:
        return f"{what}: **{escape_markdown(columns[0])}**"
    return f"{what}: {len(columns):,} columns"


def roles_from_table(
    edited: pd.DataFrame,
    output_kind: Literal["probability", "logit"],
    guessed: Roles,
    family: Family | None = None,
) -> Roles:
    """The roles that the user left in the table, under the task of the guessed ones.

    The order of the features is the guessed one where the choice of features is unchanged,
    because there it may follow the model and not the table.

    Raises
    ------
    InputError
        Where a role that belongs to one column was given to several, or an output column has
        no class or parameter.
    """
    task = guessed.task
    chosen = {
        role: [str(name) for name in edited.loc[edited["Role"] == role, "Column"]]
        for role in {name for names in ROLE_NAMES.values() for name in names}
    }
    features = tuple(chosen[FEATURE])
    if set(features) == set(guessed.features):
        features = guessed.features
    answers = _answers(edited, PART[task])
    return Roles(
        target=_at_most_one(chosen, TARGET),
        features=features,
        outputs=answers if task == "classification" else (),
        output_kind=output_kind,
        predicted=_at_most_one(chosen, PREDICTED),
        split=_at_most_one(chosen, SPLIT),
        weight=_at_most_one(chosen, WEIGHT),
        task=task,
        family=family,
        parameters=answers if task == "regression" else (),
        true_mean=_at_most_one(chosen, TRUE_MEAN),
    )


def _role_of_column(roles: Roles) -> dict[str, str]:
    single = {
        roles.target: TARGET,
        roles.predicted: PREDICTED,
        roles.split: SPLIT,
        roles.weight: WEIGHT,
        roles.true_mean: TRUE_MEAN,
    }
    return {
        **dict.fromkeys(roles.features, FEATURE),
        **{column: OUTPUT for _, column in (*roles.outputs, *roles.parameters)},
        **{column: role for column, role in single.items() if column is not None},
    }


def _at_most_one(chosen: Mapping[str, list[str]], role: str) -> str | None:
    columns = chosen[role]
    if len(columns) > 1:
        raise InputError(
            f"{len(columns)} columns have the role {role!r}",
            fix="Give it to one column and set the others to 'Not used'.",
            column=columns[1],
        )
    return columns[0] if columns else None


def _answers(edited: pd.DataFrame, part: str) -> tuple[tuple[str, str], ...]:
    """The output columns, each with the class or the parameter that it speaks of."""
    rows = edited.loc[edited["Role"] == OUTPUT, [part, "Column"]]
    pairs = [(str(name or "").strip(), str(column)) for name, column in rows.to_numpy()]
    what = part.lower()
    spelled = ", as the target spells it" if part == "Class" else ": mean, std, 0.05"
    for name, column in pairs:
        if not name:
            raise InputError(
                f"A model output column has no {what}",
                fix=f"Write the {what} it belongs to in the column '{part}'{spelled}.",
                column=column,
            )
    names = [name for name, _ in pairs]
    for name, column in pairs:
        if names.count(name) > 1:
            raise InputError(
                f"Two model output columns belong to the {what} {name!r}",
                fix=f"Each {what} has one column.",
                column=column,
            )
    return tuple(pairs)
