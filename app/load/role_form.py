"""What each column is for: guessed, shown, and corrected in a form or a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args
from zlib import crc32

import pandas as pd
import streamlit as st

from app.shared import session, waiting
from kdcal_core.data import CONFIDENCES, RIGHTS, Family, OutputKind, Roles, Task
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.review import Review, left_out, left_out_words, set_roles
from kdcal_core.text import escape_markdown

FEATURE = "Feature"
TARGET = "Target"
OUTPUT = "Model output"
PREDICTED = "Predicted class"
SPLIT = "Split"
WEIGHT = "Weight"
CLUSTER = "Cluster"
TIME = "Time"
TRUE_MEAN = "True mean"
UNUSED = "Not used"
_KINDS: dict[OutputKind, str] = {
    "probability": "probabilities",
    "percent": "percentages",
    "permille": "thousandths",
    "logit": "logits",
    "log_probability": "log probabilities",
    "confidence": "confidence in the predicted class",
    "percent_confidence": "confidence as a percentage",
    "right": "confidence of being right",
    "percent_right": "confidence of being right, as a percentage",
}
ROLE_NAMES: dict[Task, tuple[str, ...]] = {
    "classification": (
        *(FEATURE, TARGET, OUTPUT, PREDICTED, SPLIT, WEIGHT, CLUSTER, TIME, UNUSED),
    ),
    "regression": (FEATURE, TARGET, OUTPUT, TRUE_MEAN, SPLIT, WEIGHT, CLUSTER, TIME, UNUSED),
}
#: What an output column says which part of the prediction it holds
PART: dict[Task, str] = {"classification": "Class", "regression": "Parameter"}
ROLE_ROWS = 15  # seen at once of the table of columns, with its heading
ROW_PIXELS = 35


_PART_HELP = {
    "classification": f"For the role {OUTPUT!r}: the class that this column is about.",
    "regression": f"For the role {OUTPUT!r}: mean, std, variance, shape, log_mean, log_std, scale "
    "or df; the level of a quantile, as 0.05; the number of a sample.",
}


_ROLE_HELP = (
    f"{CLUSTER}: rows with the same value depend on one another, such as those of a patient, a day "
    "or a centre; they stay together in folds and intervals. "
    f"{TIME}: the rows are ordered by it, and near ones may be alike."
)


def roles(review: Review) -> None:
    """The table of columns, and what the outputs hold."""
    table = review.tables.get("calibration")
    if table is None or review.roles is None:
        return
    task = review.task
    with st.expander("What each column is for", expanded=not review.scored):
        st.caption("Guessed from names and contents. Correct what is wrong, then apply.")
        if others := left_out(review):
            st.caption(
                f"{escape_markdown(left_out_words(others), 600)} Regions are looked for along the "
                f"inputs: give a column the role '{FEATURE}' to make it one."
            )
        with st.form(f"roles_{review.id}_{task}_{table.digest[:8]}", border=False):
            edited = st.data_editor(
                role_table(table.columns, review.roles),
                height=ROLE_ROWS * ROW_PIXELS if len(table.columns) >= ROLE_ROWS else "content",
                # of these roles: what was edited would otherwise stand in other rows once they are
                # applied, because the rows are sorted by role
                key=f"role_table_{task}_{table.digest[:8]}_{crc32(repr(review.roles).encode()):x}",
                disabled=["Column", "Holds", "Missing", "Examples"],
                hide_index=True,
                alt="One row a column of the table, with its role",
                column_config={
                    "Role": st.column_config.SelectboxColumn(
                        options=ROLE_NAMES[task], required=True, help=_ROLE_HELP
                    ),
                    PART[task]: st.column_config.TextColumn(help=_PART_HELP[task]),
                    "Missing": st.column_config.NumberColumn(format="localized"),
                },
            )
            kind, names, family = review.roles.output_kind, None, review.roles.family
            if task == "regression":
                family = _family_field(review)
            else:
                kind, names = _output_kind_field(review), _class_names_field(review)
            if st.form_submit_button("Apply roles"):
                try:
                    chosen = roles_from_table(edited, kind, review.roles, family)
                    set_roles(session.workspace(), review.id, chosen, names)
                except InputError as error:
                    session.error_box(error, of_action=True)
                else:
                    waiting.dismiss()  # an error of the roles before
                    st.toast("The roles are applied.", icon=":material/check:")
                    st.rerun()


def _family_field(review: Review) -> Family:
    """The kind of predictive distribution that the outputs stand for."""
    model = review.model
    families = [
        family
        for family in get_args(Family)
        if family != "dropout" or (model is not None and model.has_dropout)
    ]
    current = review.roles.family if review.roles and review.roles.family else "point"
    chosen: Family = st.selectbox(
        "What the predictions are",
        families,
        index=families.index(current) if current in families else 0,
        format_func=_family_name,
        key=f"family_{review.id}_{current}",
        help="  \n".join(f"**{spec.title}.** {spec.sentence}" for spec in FAMILIES.values()),
        width=480,
    )
    return chosen


def _family_name(family: Family) -> str:
    spec = FAMILIES[family]
    takes = ", ".join(spec.parameters)
    return f"{spec.title} ({takes})" if takes else spec.title


def _output_kind_field(review: Review) -> OutputKind:
    current = review.roles.output_kind if review.roles else "probability"
    kind: OutputKind = st.segmented_control(
        "Model output columns hold",
        # that of being right is chosen by a button above, which names its class too
        options=[one for one in get_args(OutputKind) if one not in RIGHTS or current in RIGHTS],
        default=current,
        required=True,
        format_func=lambda kind: _KINDS[kind].capitalize(),
        help="Percentages are divided by 100, thousandths by 1000. Logits are turned into "
        "probabilities by softmax, logarithms of probabilities by the exponential. "
        "For two classes one column suffices: the confidence in the predicted class, from 0 to 1 "
        "or as a percentage from 0 to 100, beside the column of the predicted class.",
    )
    return kind


def _class_names_field(review: Review) -> tuple[str, ...] | None:
    """Names for the model's classes, where its file names none or the target spells them so."""
    model = review.model
    if model is None:
        return None
    current = review.classes or model.classes
    shown = ", ".join(current)
    text = st.text_input(
        f"Names of the model's {len(model.classes)} classes, in the order of its outputs",
        value=shown,
        help="Write them as the target spells them, separated by commas.",
    )
    if text == shown:
        return current  # a name may hold a comma
    return tuple(name.strip() for name in text.split(",") if name.strip())


def role_table(columns: Iterable[Any], roles: Roles) -> pd.DataFrame:
    """One row a column of the user's table, with what it holds and the role it has.

    The features come last, because they may be many and the other columns should be seen first.
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
        if len(roles.outputs) == 1 and roles.output_kind not in CONFIDENCES:
            what = f"{what} of {escape_markdown(roles.outputs[0][0], 60)}"
        parts.append(_counted([column for _, column in roles.outputs], what))
    if regression and roles.family is not None:
        parts.append(f"family: **{FAMILIES[roles.family].title}**")
    for column, what in (
        (roles.predicted, "predicted class"),
        (roles.true_mean, "true mean"),
        (roles.split, "split"),
        (roles.weight, "weight"),
        (roles.cluster, "clusters"),
        (roles.time, "order in time"),
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
    output_kind: OutputKind,
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
    target = _at_most_one(chosen, TARGET)
    return Roles(
        target=target,
        features=features,
        outputs=answers if task == "classification" else (),
        output_kind=output_kind,
        predicted=_at_most_one(chosen, PREDICTED),
        split=_at_most_one(chosen, SPLIT),
        weight=_at_most_one(chosen, WEIGHT),
        cluster=_at_most_one(chosen, CLUSTER),
        time=_at_most_one(chosen, TIME),
        task=task,
        family=family,
        parameters=answers if task == "regression" else (),
        true_mean=_at_most_one(chosen, TRUE_MEAN),
        majority=guessed.majority and target == guessed.target,
    )


def _role_of_column(roles: Roles) -> dict[str, str]:
    single = {
        roles.target: TARGET,
        roles.predicted: PREDICTED,
        roles.split: SPLIT,
        roles.weight: WEIGHT,
        roles.cluster: CLUSTER,
        roles.time: TIME,
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
    """The output columns, each with its class or parameter."""
    lost = edited.loc[(edited["Role"] != OUTPUT) & (edited[part].fillna("") != ""), "Column"]
    if len(lost):
        raise InputError(
            f"This column has a {part.lower()}, and another role than {OUTPUT!r}",
            fix=f"Give it the role {OUTPUT!r}, or empty its {part.lower()}.",
            column=str(lost.iloc[0]),
        )
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
