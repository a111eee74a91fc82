"""The parts of the Load page, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import get_args

import pandas as pd
import streamlit as st

from app.load.event_choice import event_choice
from app.load.kept_reviews import link_to_kept
from app.load.role_form import OUTPUT, TARGET, roles_sentence
from app.load.server_folder import server_folder
from app.shared import navigation, page_top, session, tour, uploads, waiting
from app.shared.emphasis import emphasis
from app.shared.labels import unique_labels
from app.shared.reviews_here import Used
from app.shared.sections import folded, sections
from app.shared.task_choice import task_choice
from kdcal_core.data import Choice, Doubt, doubts_of_roles
from kdcal_core.jobs import JobSnapshot
from kdcal_core.models import ModelInfo
from kdcal_core.progress import Progress
from kdcal_core.review import (
    Review,
    Sample,
    SignatureInfo,
    TableInfo,
    TablePlace,
    Which,
    Workspace,
    accept_folders,
    accept_rows,
    confirm_class,
    constant_target,
    doubt_of_table,
    doubts_of_classes,
    doubts_of_folders,
    doubts_of_rows,
    may_be_swapped,
    move_table,
    no_target_words,
    samples,
    score,
    settle,
    split_table,
    swap_classes,
)
from kdcal_core.text import (
    counted,
    escape_label,
    escape_markdown,
    figures_text,
    in_sentence,
    listed,
)

_SAMPLES_PER_ROW = 3
_CHOICES = 6  # in a row
_CAPTIONED_CHOICES = 3
_SHOWN_COLUMNS = 30
_PLACE_WIDTH = 200
_OUT = "out"
_PLACES = {
    "calibration": "Calibration set",
    "evaluation": "Evaluation set",
    "training": "Training set",
    "foreign": "Foreign rows",
    _OUT: "Take it out",
}
_NAMED_OUTPUTS = 12  # of a model, in one line
_SCORING = "scoring"  # the review whose rows this session is scoring

WHICH_ROWS = """
**Calibration set.** Rows that the model has never seen: not for training, not for early stopping,
not for choosing its settings. On rows it has seen, a model looks more certain and more right than
it is, and a calibrator fitted there learns that error.

**The papers use other words for it.** Salamon et al. say test set, Torres et al. validation set,
Durfee et al. calibration split. Here it is
always the calibration set.

**Evaluation set.** Further rows of the same kind, to judge the calibrators on rows they were not
fitted on. With one set only, kdcal fits on four fifths and judges on the last fifth, five times
over (cross-fitting), and says so beside every number.

**Training set.** The rows that the model was trained on, if you have them. They are never used for
calibration: the Out of distribution page and the posterior map fit a kernel density version of the
model on
them, which knows where the model has seen data. Without them the calibration set takes their place.

**Frequencies matter.** Confidence depends on how often each class occurs. Use rows whose mix of
classes is the one the model will meet, and calibrate again when that mix changes.
"""


def report(job: JobSnapshot) -> None:
    """How the last job ended, if the page does not show it anyway."""
    if job.error is not None:
        session.error_box(job.error)
    elif job.state == "cancelled":
        st.info("Stopped. What was loaded before is still here.", icon=":material/stop_circle:")


def welcome() -> None:
    """What kdcal is for, while nothing is open."""
    st.markdown(
        "See how far a model's stated confidence can be trusted: overall, by class, by region and "
        "far from the data."
    )


def sample_gallery() -> None:
    """Every shipped sample in a line, opened by one click."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header("Or start with a sample", anchor=False, width="content")
        tour.offer()
    for at, sample in enumerate(samples()):
        if at % _SAMPLES_PER_ROW == 0:
            places = st.columns(_SAMPLES_PER_ROW, gap="medium")
        with places[at % _SAMPLES_PER_ROW].container(gap="xxsmall"):
            if st.button(
                escape_markdown(sample.title),
                key=f"open_{sample.name}",
                width="stretch",
            ):
                session.open_sample(sample.name, then=partial(navigation.go_to, "overview"))
            st.caption(_kind_of(sample))


def _kind_of(sample: Sample) -> str:
    rows = sum(sample.rows[which] for which in get_args(Which))
    if sample.task == "classification" and sample.accuracy is not None:
        kind = f"{sample.n_classes} classes, accuracy {sample.accuracy:.0%}"
    else:
        error = "" if sample.rmse is None else f", error {figures_text(sample.rmse)}"
        kind = f"{sample.task.capitalize()}{error}"
    return f"{kind}, {rows:,} held-out rows"


def about_sample(review: Review) -> None:
    """What the card of a shipped sample says about its rows, its model and their licence."""
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


def settle_doubts(review: Review) -> None:
    """Every open doubt, each directly above what settles it by one click."""
    busy = waiting.busy(review.id)
    _closed(review)
    for one in review.doubts:
        page_top.doubt(one.sentence)
        if not busy:
            _choices(review, one)
    if partial_columns := doubts_of_folders(review):
        for sentence in partial_columns:
            page_top.doubt(sentence)
        if not busy and st.button(
            "Go on without these columns",
            icon=":material/check:",
            help="To use them, write them into every file of the folder and read it again.",
        ):
            accept_folders(session.workspace(), review.id)
            st.rerun()
    for at, (name, table) in enumerate(review.unplaced.items()):
        page_top.doubt(doubt_of_table(review, table))
        if not busy:
            _unplaced(review, at, name)
    for sentence in doubts_of_classes(review):
        page_top.doubt(sentence)
    if not busy:
        _classes(review)


def _classes(review: Review) -> None:
    """What settles the doubts about which class a probability belongs to."""
    roles = review.roles
    with st.container(horizontal=True):
        if may_be_swapped(review):
            first, second = (escape_markdown(name, 40) for name in review.classes)
            if st.button(
                f"Swap the classes {first} and {second}",
                icon=":material/swap_horiz:",
                type=emphasis(wanted=any(info.swapped for info in review.sets.values())),
                help="The probabilities are then read as those of the other class, and the rows "
                "are scored again.",
            ):
                changed = swap_classes(session.workspace(), review.id)
                if review.scored:
                    _start_scoring(changed)
                st.rerun()
        if roles is not None and doubts_of_roles(roles, review.classes):
            name = escape_markdown(roles.outputs[0][0], 40)
            if st.button(f"It is the probability of {name}", icon=":material/check:"):
                confirm_class(session.workspace(), review.id)
                st.rerun()
        if doubts_of_rows(review) and st.button(
            "The roles are right",
            icon=":material/check:",
            help="The question is not asked again for these rows. The checks still report what "
            "they find.",
        ):
            accept_rows(session.workspace(), review.id)
            st.rerun()


def _closed(review: Review) -> None:
    """That an answer closed another question, as long as it holds, and how to change it."""
    about = st.session_state.get(f"closed_by_{review.id}")
    roles = review.roles
    if about is None or roles is None:
        return
    said = ""
    if about == "cluster" and roles.cluster is not None:
        name = escape_markdown(roles.cluster, 40)
        said = (
            f"Rows of one {name} are now treated together; an order in time cannot be given "
            "beside it."
        )
    elif about == "time" and roles.time is not None:
        name = escape_markdown(roles.time, 40)
        said = (
            f"Rows are now in the order of {name}; rows that belong together cannot be named "
            "beside it."
        )
    if said:
        st.info(
            f'{said} To change it, choose other roles under "What each column is for".',
            icon=":material/info:",
        )


def _unplaced(review: Review, at: int, name: str) -> None:
    """A button for each use of a table without a place; any other place can be chosen below."""
    table = escape_markdown(review.unplaced[name].name, 40)
    with st.container(horizontal=True):
        if review.unplaced[name].other_names:
            if st.button(
                f"They mean the same: use {table} as the evaluation set",
                key=f"unplaced_{at}_evaluation",
                icon=":material/check:",
            ):
                _start_move(review, "unplaced", "evaluation", name)
                st.rerun()
        elif st.button(
            f"Use {table} as foreign rows", key=f"unplaced_{at}_foreign", icon=":material/check:"
        ):
            _start_move(review, "unplaced", "foreign", name)
            st.rerun()
        if st.button(f"Leave {table} out", key=f"unplaced_{at}_out", icon=":material/close:"):
            _start_move(review, "unplaced", None, name)
            st.rerun()


def _choices(review: Review, doubt: Doubt) -> None:
    """A button for each answer, with what the rows show where it is the right one."""
    if not doubt.choices:
        return
    captioned = any(_shows(review, doubt, choice) for choice in doubt.choices)
    places = st.columns(min(len(doubt.choices), _CAPTIONED_CHOICES if captioned else _CHOICES))
    for at, choice in enumerate(doubt.choices):
        with places[at % len(places)].container(gap="xxsmall"):
            if st.button(
                escape_markdown(choice.words, 160),
                key=f"answer_{doubt.about}_{at}",
                width="stretch",
            ):
                _note_closed(review, doubt, choice)
                waiting.start(
                    partial(_settle, session.workspace(), review, doubt.about, choice.answer),
                    title="Reading the columns again",
                    owner=review.id,
                    short=True,
                )
                st.rerun()
            if shows := _shows(review, doubt, choice):
                st.caption(escape_markdown(shows[0].upper() + shows[1:], 240))


def _note_closed(review: Review, doubt: Doubt, choice: Choice) -> None:
    """Remember an answer that closes the question beside it: clusters or time, not both."""
    exclude = {"cluster", "time"}
    if choice.answer and doubt.about in exclude <= {one.about for one in review.doubts}:
        st.session_state[f"closed_by_{review.id}"] = doubt.about


def _shows(review: Review, doubt: Doubt, choice: Choice) -> str:
    """What the rows show of an answer, and the tables that lack the column it names."""
    lacking = [
        table.name[:60]
        for table in review.tables.values()
        if doubt.about in ("target", "cluster", "time")
        and choice.answer
        and choice.answer not in table.column_names
    ]
    missing = f"not in {listed(lacking)}" if lacking else ""
    return ", ".join(part for part in (choice.shows, missing) if part)


def _settle(
    workspace: Workspace,
    review: Review,
    about: str,
    answer: str,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> Review:
    """Take the answer; rows that were scored before are scored again once nothing is open."""
    settled = settle(workspace, review.id, about, answer)
    if review.scored and not settled.doubts:
        return score(workspace, review.id, progress=progress, cancelled=cancelled)
    return settled


def own_files(review: Review | None, kept: list[Used]) -> None:
    """One drop zone, the explanation of which rows belong in it, and what is there already."""
    if review is not None:
        st.header("Files")
    uploads.drop_zone(review)
    if review is None:
        st.caption(
            "Held-out rows with their true class or outcome, and the model that predicts it. "
            "Without the model, a table needs its predictions."
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width="content"):
            task_choice(review)
        with st.popover("Which rows belong here?", icon=":material/help:"):
            st.markdown(WHICH_ROWS)
        server_folder(review)
        link_to_kept(kept)
    if review is None:
        return
    if review.model is not None:
        _model_row(review.model)
    if review.signature is not None:
        st.caption(f":material/verified_user: {_signed_words(review.signature)}")
    for which in get_args(Which):
        if (table := review.tables.get(which)) is not None:
            _place_of(review, which, table)
    if review.training is not None:
        _place_of(review, "training", review.training)
    for at, name in enumerate(review.foreign):
        _place_of(review, "foreign", review.foreign[name], at, name)
    for at, name in enumerate(review.unplaced):
        _place_of(review, "unplaced", review.unplaced[name], at, name)
    for note in review.notes:
        st.caption(f":material/info: {escape_markdown(note, 400)}")


def first_rows(review: Review) -> None:
    """The first rows of every table, as they were read; folded once the rows are scored."""
    tables = [table for table in review.all_tables if any(one.first for one in table.columns)]
    if not tables:
        return
    if len(tables) == 1:
        rows = partial(_rows_of, tables[0])
    else:
        names = unique_labels([escape_label(table.name, 40) for table in tables])
        tabs = {name: partial(_rows_of, one) for name, one in zip(names, tables, strict=True)}
        rows = partial(sections, f"first_rows_of_{review.id}", tabs)
    folded("First rows", f"first_rows_{review.id}", rows, expanded=not review.scored)


def _rows_of(table: TableInfo) -> None:
    from app.shared.tables import show_table  # slow to import, and the first page has no table

    columns = table.columns[:_SHOWN_COLUMNS]
    right = st.column_config.TextColumn(alignment="right")
    show_table(
        pd.DataFrame({one.name: one.first for one in columns}),
        column_config={one.name: right for one in columns if one.kind == "number"},
        names_rows=False,
        alt=f"The first rows of {table.name}",
    )
    if (rest := len(table.columns) - _SHOWN_COLUMNS) > 0:
        st.caption(f"And {counted(rest, 'more column')}.")


def _signed_words(signed: SignatureInfo) -> str:
    """What is known of the model's signature, or what is still missing."""
    if signed.said:
        return signed.said
    if not signed.file:
        return "There is a public key, and no signature of the model that it could verify."
    return "There is a signature, and no model yet."


def _model_row(model: ModelInfo) -> None:
    """The model beside what it was taken for; a file of this kind can be nothing else."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Model", width=_PLACE_WIDTH)
        st.caption(
            f"**{escape_markdown(model.name)}**: {escape_markdown(model.kind)}, "
            f"{counted(model.n_features, 'input')}, {_answers_of(model)}",
            width="stretch",
        )


def _place_of(
    review: Review, place: TablePlace, table: TableInfo, at: int = 0, name: str = ""
) -> None:
    """What a table was taken for, which can be changed.

    Of the foreign tables, or of those without a place, it is number ``at``, kept under ``name``.
    """
    key = f"place_{review.id}_{place}_{at}_{table.digest[:8]}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.selectbox(
            f"What {escape_label(table.name)} is",
            list(_PLACES),
            index=None if place == "unplaced" else list(_PLACES).index(place),
            placeholder="Not used yet",
            format_func=_PLACES.__getitem__,
            key=key,
            label_visibility="collapsed",
            width=_PLACE_WIDTH,
            disabled=waiting.busy(review.id),
            on_change=_move,
            args=(review, place, name, key),
        )
        st.caption(_table_line(table), width="stretch")


def _move(review: Review, place: TablePlace, name: str, key: str) -> None:
    """Begin the change; until it has succeeded the place is shown as it is."""
    chosen = st.session_state.pop(key)
    if chosen is not None:  # the cross of a table without a place
        _start_move(review, place, None if chosen == _OUT else chosen, name)


def _start_move(review: Review, place: TablePlace, to: TablePlace | None, name: str) -> None:
    workspace = session.workspace()

    def work(progress: Progress, cancelled: Callable[[], bool]) -> Review:
        return move_table(workspace, review.id, place, to, name=name)

    title = f"Reading the columns of the {in_sentence(_PLACES.get(to or place, 'table'))}"
    waiting.start(work, title=title, owner=review.id, short=True)


def _answers_of(model: ModelInfo) -> str:
    if model.task == "classification":
        return counted(len(model.classes), "class", "classes")
    if len(model.outputs) > _NAMED_OUTPUTS:
        return f"{len(model.outputs):,} outputs"
    noun = "output" if len(model.outputs) == 1 else "outputs"
    return f"{noun} {escape_markdown(', '.join(model.outputs), 200)}"


def _table_line(table: TableInfo) -> str:
    return (
        f"**{escape_markdown(table.name)}**: {table.n_rows:,} rows, "
        f"{len(table.columns):,} columns. {escape_markdown(' '.join(table.notes), 400)}"
    )


def still_missing(review: Review) -> str:
    """What is missing before the rows can be scored, and how to add it; empty where nothing is."""
    regression = review.task == "regression"
    truth = "outcome" if regression else "true class"
    if not review.tables:
        return (
            f"Add the calibration set next: rows with their {truth} that the model was not "
            f"trained on."
        )
    if "calibration" not in review.tables:
        return (
            "The calibration set is still missing. If this is your only table, upload it as the "
            "calibration set: an evaluation set cannot stand alone."
        )
    if (constant := constant_target(review)) is not None:
        where = f"{constant.what} (column {str(constant.column)[:60]!r}). {constant.fix}"
        return escape_markdown(where, 400)
    if any(doubt.choices for doubt in review.doubts):
        return "Answer the question at the top of this page first. Then the rows can be scored."
    if review.roles is None or review.roles.target is None:
        return (
            f"{escape_markdown(no_target_words(review), 400)}. Give the right column the role "
            f"'{TARGET}' below, and apply."
        )
    if regression and review.model is None and not review.roles.parameters:
        return (
            "There is no model yet, and no column is known to hold its predictions. Upload the "
            f"model, or give those columns the role '{OUTPUT}' below, each with its parameter, "
            "and apply."
        )
    if not regression and review.model is None and not review.roles.outputs:
        target = escape_markdown(review.roles.target)
        return (
            "There is no model yet, and no column is known to hold its probabilities of the "
            f"classes in '{target}', which is taken for the target. Upload the model, or give "
            f"those columns the role '{OUTPUT}' below, each with its class, and apply."
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
        st.markdown(roles_sentence(review.roles, with_model=review.model is not None))
    if review.roles is not None and review.roles.split and not review.has_evaluation:
        st.caption(
            "The table has a split column: its rows will be divided into the two sets, and its "
            "training rows, where there are any, are kept aside."
        )
    event_choice(review)
    if st.button(
        "Score the rows",
        type=emphasis(),
        icon=":material/play_arrow:",
        help="Runs the model on every row, or reads its predictions from the table.",
    ):
        _start_scoring(review)
        st.rerun()


def open_when_scored(review: Review) -> None:
    """Go on to the overview once the rows that this session began to score are scored.

    Where these rows speak against the classes, the question above is answered first: a button
    opens the overview without an answer.
    """
    if not review.ready or st.session_state.get(_SCORING) != review.id:
        return
    asked = bool(doubts_of_rows(review))
    if not asked or st.button("Open the overview anyway", icon=":material/arrow_forward:"):
        del st.session_state[_SCORING]
        navigation.go_to("overview")


def _start_scoring(review: Review) -> None:
    st.session_state[_SCORING] = review.id
    waiting.start(
        partial(_split_and_score, session.workspace(), review),
        title="Scoring the rows",
        owner=review.id,
    )


def _split_and_score(
    workspace: Workspace, review: Review, progress: Progress, cancelled: Callable[[], bool]
) -> Review:
    if review.roles is not None and review.roles.split and not review.has_evaluation:
        split_table(workspace, review.id)
    return score(workspace, review.id, progress=progress, cancelled=cancelled)


def another(review: Review) -> None:
    """Leave this review for a new one; its link stays valid."""
    if st.button("Start another review", icon=":material/add:"):
        session.close_review()
        st.rerun()
