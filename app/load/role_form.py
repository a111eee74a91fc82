"""What each column is for, as guessed, in a form that can be corrected."""

from __future__ import annotations

from typing import Literal, get_args

import streamlit as st

from app.load.role_table import FEATURE, OUTPUT, PART, ROLE_NAMES, role_table, roles_from_table
from app.shared import session
from kdcal_core.data import Family
from kdcal_core.distributions import FAMILIES
from kdcal_core.errors import InputError
from kdcal_core.review import Review, left_out, left_out_words, set_roles
from kdcal_core.text import escape_markdown

ROLE_ROWS = 15  # seen at once of the table of columns, with its heading
ROW_PIXELS = 35

OutputKind = Literal["probability", "logit"]

_PART_HELP = {
    "classification": f"For the role {OUTPUT!r}: the class that this column is about.",
    "regression": f"For the role {OUTPUT!r}: mean, std, variance, shape, log_mean, log_std, scale "
    "or df; the level of a quantile, as 0.05; the number of a sample.",
}


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
                key=f"role_table_{task}_{table.digest[:8]}",
                disabled=["Column", "Holds", "Missing", "Examples"],
                hide_index=True,
                alt="One row a column of the table, with its role",
                column_config={
                    "Role": st.column_config.SelectboxColumn(
                        options=ROLE_NAMES[task], required=True
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
                    session.error_box(error)
                else:
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
    kind: OutputKind = st.segmented_control(
        "Model output columns hold",
        options=get_args(OutputKind),
        default=review.roles.output_kind if review.roles else "probability",
        required=True,
        format_func={"probability": "Probabilities", "logit": "Logits"}.__getitem__,
        help="Logits are turned into probabilities by softmax.",
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
