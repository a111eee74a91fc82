"""The parts of the Load page, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import streamlit as st

from app.widgets import session, uploads, waiting
from app.widgets.fitness_card import fitness_card
from app.widgets.role_table import (
    OUTPUT,
    ROLE_NAMES,
    TARGET,
    role_table,
    roles_from_table,
    roles_sentence,
)
from kdcal_core.data import escape_markdown
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobSnapshot, Progress
from kdcal_core.review import (
    Review,
    TableInfo,
    Which,
    Workspace,
    remove_training,
    samples,
    score,
    set_roles,
    split_table,
    start_sample,
)

ROLE_ROWS = 15  # seen at once of the table of columns, with its heading
ROW_PIXELS = 35
_CARDS_PER_ROW = 3

OutputKind = Literal["probability", "logit"]

WHICH_ROWS = """
**Calibration set.** Rows that the model has never seen: not for training, not for early stopping,
not for choosing its settings. On rows it has seen, a model looks more certain and more right than
it is, and a calibrator fitted there learns that flattery.

**The papers use other words for it.** Salamon et al. (paper 002) say test set, *Model-Free Local
Recalibration* (003) validation set, *Heterogeneous Calibration* (004) calibration split. Here it is
always the calibration set.

**Evaluation set.** Further rows of the same kind, to judge the calibrators on rows they were not
fitted on. With one set only, kdcal fits on four fifths and judges on the last fifth, five times
over (cross-fitting), and says so beside every number.

**Training set.** The rows that the model learnt from, where they can be had. They never calibrate:
the Out of distribution page and the posterior map fit a kernel density version of the model on
them, which knows where the model has seen data. Without them the calibration set takes their place.

**Frequencies matter.** Confidence depends on how often each class occurs. Use rows whose mix of
classes is the one the model will meet, and calibrate again when that mix changes.
"""


def report(job: JobSnapshot) -> None:
    """How the last job ended, where that is not plain to see."""
    if job.error is not None:
        session.error_box(job.error)
    elif job.state == "cancelled":
        st.info("Stopped. What was loaded before is still here.", icon=":material/stop_circle:")


def sample_cards() -> None:
    """One card a shipped sample, each opened by one click."""
    st.subheader("Start with a sample")
    cards = samples()
    rows_of_cards = [st.columns(_CARDS_PER_ROW) for _ in cards[::_CARDS_PER_ROW]]
    places = [column for row in rows_of_cards for column in row]
    for column, sample in zip(places, cards, strict=False):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{escape_markdown(sample.title)}**")
            st.write(escape_markdown(sample.summary, 400))
            rows = sample.rows
            st.caption(
                f"{rows['calibration']:,} + {rows['evaluation']:,} held-out rows, "
                f"{sample.n_classes} classes, accuracy {sample.accuracy:.0%}"
            )
            st.space("stretch")
            if st.button(
                "Open",
                key=f"open_{sample.name}",
                type="primary" if sample is cards[0] else "secondary",
                width="stretch",
            ):
                _open_sample(sample.name, sample.title)


def _open_sample(name: str, title: str) -> None:
    with st.spinner(f"Opening {escape_markdown(title)}: reading the model and scoring its rows"):
        try:
            opened = start_sample(session.workspace(), name)
        except InputError as error:
            session.error_box(error)
            return
    session.open_review(opened.id)
    st.rerun()


def about_sample(review: Review) -> None:
    """What the card of a shipped sample says of its rows, its model and their licence."""
    sample = next((one for one in samples() if one.name == review.sample), None)
    if sample is None:
        return
    with st.expander("About this sample", icon=":material/info:"):
        st.write(escape_markdown(sample.summary, 400))
        for heading, text in (
            ("Rows", sample.source),
            ("Training", sample.trained),
            ("Licence", sample.licence),
        ):
            st.markdown(f"**{heading}.** {escape_markdown(text, 1000)}")


def own_files(review: Review | None) -> None:
    """The uploaders, with the explanation of which rows belong in them."""
    st.subheader("Your model and rows" if review is None else "Files")
    uploads.upload_row(review)
    with st.popover("Which rows belong here?", icon=":material/help:"):
        st.markdown(WHICH_ROWS)
    if review is None:
        return
    if review.parent is not None:
        parent = review.parent
        st.caption(
            f"Model **{escape_markdown(parent.name)}**: {escape_markdown(parent.kind)}, "
            f"{parent.n_features:,} inputs, {len(parent.classes):,} classes"
        )
    for which, table in review.tables.items():
        st.caption(_table_line(f"{which.capitalize()} set", table))
    if review.training is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(_table_line("Training set", review.training), width="content")
            if st.button(
                "Remove",
                key="remove_training",
                type="tertiary",
                help="Take the training set out of this review. The scores stay.",
            ):
                remove_training(session.workspace(), review.id)
                st.rerun()
    for table in review.foreign.values():
        st.caption(_table_line("Foreign rows", table))
    for note in review.notes:
        st.caption(f":material/info: {escape_markdown(note, 400)}")


def _table_line(what: str, table: TableInfo) -> str:
    return (
        f"{what} **{escape_markdown(table.name)}**: {table.n_rows:,} rows, "
        f"{len(table.columns):,} columns. {escape_markdown(' '.join(table.notes), 400)}"
    )


def roles(review: Review) -> None:
    """What each column is for, as guessed, in a table that can be corrected."""
    table = review.tables.get("calibration")
    if table is None or review.roles is None:
        return
    with st.expander("What each column is for", expanded=not review.scored):
        st.caption("Guessed from names and contents. Correct what is wrong, then apply.")
        with st.form(f"roles_{review.id}_{table.digest[:8]}", border=False):
            edited = st.data_editor(
                role_table(table.columns, review.roles),
                height=ROLE_ROWS * ROW_PIXELS if len(table.columns) >= ROLE_ROWS else "content",
                key=f"role_table_{table.digest[:8]}",
                disabled=["Column", "Holds", "Missing", "Examples"],
                hide_index=True,
                alt="One row a column of the table, with its role",
                column_config={
                    "Role": st.column_config.SelectboxColumn(options=ROLE_NAMES, required=True),
                    "Class": st.column_config.TextColumn(
                        help=f"For the role {OUTPUT!r}: the class this column speaks of."
                    ),
                    "Missing": st.column_config.NumberColumn(format="localized"),
                },
            )
            kind: OutputKind = st.segmented_control(
                "Model output columns hold",
                options=get_args(OutputKind),
                default=review.roles.output_kind,
                required=True,
                format_func={"probability": "Probabilities", "logit": "Logits"}.__getitem__,
                help="Logits are turned into probabilities by softmax.",
            )
            names = _class_names_field(review)
            if st.form_submit_button("Apply roles"):
                try:
                    chosen = roles_from_table(edited, kind, review.roles)
                    set_roles(session.workspace(), review.id, chosen, names)
                except InputError as error:
                    session.error_box(error)
                else:
                    st.toast("The roles are applied.", icon=":material/check:")
                    st.rerun()


def _class_names_field(review: Review) -> tuple[str, ...] | None:
    """Names for the model's classes, where its file names none or the target spells them so."""
    parent = review.parent
    if parent is None:
        return None
    current = review.classes or parent.classes
    shown = ", ".join(current)
    text = st.text_input(
        f"Names of the model's {len(parent.classes)} classes, in the order of its outputs",
        value=shown,
        help="Write them as the target spells them, separated by commas.",
    )
    if text == shown:
        return current  # a name may hold a comma
    return tuple(name.strip() for name in text.split(",") if name.strip())


def still_missing(review: Review) -> str:
    """What has to come before the rows can be scored, and how; empty where nothing is missing."""
    if not review.tables:
        return (
            "The calibration set comes next: rows with their true class, none of which the "
            "model has learnt from."
        )
    if "calibration" not in review.tables:
        return (
            "The calibration set is still missing. If this is your only table, upload it as the "
            "calibration set: an evaluation set cannot stand alone."
        )
    if review.roles is None or review.roles.target is None:
        return (
            "No column is known to hold the true class. Give one the role "
            f"'{TARGET}' below, and apply."
        )
    if review.parent is None and not review.roles.outputs:
        return (
            "There is no model yet, and no column is known to hold its probabilities. Upload the "
            f"model, or give those columns the role '{OUTPUT}' below, each with its class, and "
            "apply."
        )
    return ""


def start_scoring(review: Review) -> None:
    """What is still missing, or else the button that turns files into a scored review."""
    if review.scored or waiting.busy(review.id):
        return
    if missing := still_missing(review):
        st.info(missing, icon=":material/pending:")
        return
    if review.roles is not None:
        st.markdown(roles_sentence(review.roles, with_model=review.parent is not None))
    workspace = session.workspace()
    if review.roles is not None and review.roles.split and not review.has_evaluation:
        st.caption(
            "The table has a split column: its rows will be divided into the two sets, and its "
            "training rows, where there are any, are kept aside."
        )
    if st.button(
        "Score the rows",
        type="primary",
        icon=":material/play_arrow:",
        help="Runs the model on every row, or reads the probabilities from the table.",
    ):
        waiting.start(
            partial(_split_and_score, workspace, review),
            title="Scoring the rows",
            owner=review.id,
        )
        st.rerun()


def _split_and_score(
    workspace: Workspace, review: Review, progress: Progress, cancelled: Callable[[], bool]
) -> Review:
    if review.roles is not None and review.roles.split and not review.has_evaluation:
        split_table(workspace, review.id)
    return score(workspace, review.id, progress=progress, cancelled=cancelled)


def fit_for_use(review: Review) -> None:
    """What the scored rows are fit for, and where to go next."""
    st.subheader("What these rows are fit for")
    for which in get_args(Which):
        if which in review.tables:
            fitness_card(review, which)
    if not review.has_evaluation:
        st.caption(
            "One set only: calibrators are fitted on four fifths of the rows and judged on the "
            "last fifth, five times over (cross-fitting)."
        )
    with st.container(horizontal=True):
        session.page_link("reliability", "Read the reliability diagrams", ":material/analytics:")
        session.page_link("confidence", "See confidence by class", ":material/stacked_line_chart:")
        if review.parent is not None:
            session.page_link("foreign", "See it far from the data")


def another(review: Review) -> None:
    """Leave this review for a new one; its link stays good."""
    if st.button("Start another review", icon=":material/add:"):
        session.close_review()
        st.rerun()
