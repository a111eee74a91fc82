"""Choose and export for a regression: one repair, what it gains, and its file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.export.export_text import (
    ON_COMMAND_LINE,
    file_name,
    model_rows,
    origin_rows,
    score_line,
)
from app.shared import job_results, sign_in, tiles
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.emphasis import emphasis
from app.shared.last_compared import last_recalibration
from app.shared.sections import sections
from kdcal_core.charts import (
    PitPanel,
    pit_before_after_chart,
    quantile_reliability_chart,
    recalibration_finding,
    recalibrator_title,
)
from kdcal_core.evaluation import MODEL, RepairChoice
from kdcal_core.regression import RECALIBRATORS, RecalibratorCard
from kdcal_core.review import Review
from kdcal_core.tasks import (
    ON_CARD,
    RepairRun,
    RepairSettings,
    export_repair,
    repair_keys,
    space_names,
    space_title,
)
from kdcal_core.text import bytes_text, escape_markdown, in_sentence, listed, seconds_text

ADDRESS = "calibrator"
SUFFIX = ".kdcal"
WILL_SHOW = (
    "Here you will see what this repair gains over the model as it is, and its PIT values and "
    "quantiles before and after. You can save it as one file that corrects the forecasts of new "
    "rows anywhere."
)
NO_COMPARISON = (
    "The page Recalibration compares repairs with each other. Recommended recalibration compares "
    "them itself, and may keep the model as it is."
)
NOT_OFFERED = (
    "Nearest neighbour regression and quantile boosting are not offered: they do not correct the "
    "model but predict in its place. If one of them is better than every repair, train a better "
    "model."
)
USE = """
**Who may use it.** Anybody who has the model. @ROWS@ Every file is read without pickle, so opening
it runs no code. Every part of it is checked, and a truncated or altered file is refused.

@MODEL@

**For which rows.** For rows like those of the calibration set. Far from all of them a repair has no
information about a row.

**When to fit it again.** When the model is trained again, when the rows in use have changed, or
when a new audit shows that intervals and outcomes disagree.
"""
_WITH_ROWS = """This repair compares each new row with the calibration rows, so the file contains
their coordinates in the space of the neighbours. Share it as you would share the rows."""
_NO_ROWS = (
    """The file contains no rows, only the fitted values, the names of columns and digests."""
)
_MODEL = """**With which model.** Only with this one. The file contains the SHA-256 of the model's
file and refuses any other model, even the same one trained again."""
_NO_MODEL = """**With which model.** With the model that made these predictions. Only you can check
this: the review has no model, so the file cannot recognise it and refuses no other."""


@dataclass(frozen=True, eq=False)
class RepairView:
    """A fitted repair of the open review."""

    review: Review
    run: RepairRun

    @property
    def key(self) -> str:
        return self.run.record.settings.key


def page(review: Review) -> None:
    """The whole page of a regression."""
    row = st.container(horizontal=True, vertical_alignment="center")
    view = _exported(review, row)
    if view is None:
        return
    with row:
        _take_away(view)
    _answer(view)
    sections(
        "export_sections",
        {
            "PIT and quantiles": partial(_quantiles, view),
            "How to use the file": partial(_how_to_use, view),
            "Card of the file": partial(_card, view),
        },
    )


def _exported(review: Review, row: Any) -> RepairView | None:
    with row, job_results.settings_card(review.id, "export_repair", label="Repair"):
        settings = _choose(review)
    button = row.empty()
    asked = job_results.request(export_repair, review, settings)
    if asked is None:
        return None
    job = job_results.fitted_when_asked(
        asked, review.id, button, name="export_repair", will_show=WILL_SHOW
    )
    run = None if job is None else job_results.result_of(job, export_repair)
    if run is None:
        return None
    job_results.fold_settings(review.id, "export_repair", asked)
    return RepairView(review, run)


def _compared(review: Review) -> RepairChoice | None:
    """What the page Recalibration recommended last, if it is stored and of the review as it is."""
    record = last_recalibration(review)
    return None if record is None else record.choice


def _choose(review: Review) -> RepairSettings:
    keys, compared = repair_keys(), _compared(review)
    best = None if compared is None else compared.key
    asked = st.query_params.get(ADDRESS)
    first = next(one for one in (asked, best, "recommended") if one in keys)
    key: str = st.selectbox(
        "Repair",
        options=keys,
        index=keys.index(first),
        format_func=lambda one: recalibrator_title(one, RECALIBRATORS[one].title),
        key=f"export_repair_{review.id}",
        persist_state="session",
        help="The repairs that a file can hold.",
    )
    if st.query_params.get(ADDRESS) != key:
        st.query_params[ADDRESS] = key
    spec = RECALIBRATORS[key]
    st.markdown(f"{spec.sentence} Described in {spec.reference}.")
    st.caption(_recommended(compared))
    st.caption(NOT_OFFERED)
    if not spec.needs_space:
        return RepairSettings(key)
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        space: str = st.selectbox(
            "Space",
            options=space_names(review),
            format_func=space_title,
            key=f"export_space_{review.id}",
            persist_state="session",
            help="The space that defines which rows are near each other.",
        )
    with right:
        k: int | None = st.number_input(
            "Number of neighbours",
            min_value=2,
            max_value=10_000_000,
            value=None,
            placeholder="Chosen by CRPS",
            key="export_k",
            persist_state="session",
        )
    return RepairSettings(key, space, k)


def _recommended(compared: RepairChoice | None) -> str:
    if compared is None or not compared.reason:
        return NO_COMPARISON
    name = (
        "to keep the model as it is"
        if compared.key == MODEL
        else in_sentence(RECALIBRATORS[compared.key].title)
    )
    return escape_markdown(f"The page Recalibration recommends {name}. {compared.reason}", 600)


def _take_away(view: RepairView) -> None:
    path = view.run.file
    st.download_button(
        f"Recalibrator file ({bytes_text(path.stat().st_size)})",
        data=sign_in.while_it_lasts(path.read_bytes),  # read on download, and not kept
        file_name=_name(view),
        mime="application/octet-stream",
        key="export_download_recalibrator",
        type=emphasis(),
        icon=":material/download:",
        on_click="ignore",
    )


def _name(view: RepairView) -> str:
    return file_name(view.review, view.key, SUFFIX)


def _answer(view: RepairView) -> None:
    """What the repair gains: a sentence, the PIT histograms, and the estimates beside them."""
    record = view.run.record
    st.header(
        escape_markdown(recalibration_finding(record.model, record.repair), 600), anchor=False
    )
    picture, beside = tiles.answer()
    with picture:
        panels = [
            PitPanel("Model", view.run.before.histogram, record.model.fault.kind),
            PitPanel(
                record.repair.title, view.run.after.histogram, record.repair.fault.kind, view.key
            ),
        ]
        show(
            drawn_once(pit_before_after_chart, panels, dark=is_dark()),
            key="export_pit",
            of=view.review.title,
        )
    before, after = record.model.scores.rows, record.repair.scores.rows
    shown = [one for one in ON_CARD if one in after]
    with beside:
        tiles.estimate_column(
            [after[one] for one in shown],
            notes=[
                tiles.before_and_change(before.get(one), record.repair.differences.get(one))
                for one in shown
            ],
        )
    for note in (_judged(view), *view.run.card.notes):
        st.caption(escape_markdown(note, 600))


def _judged(view: RepairView) -> str:
    record = view.run.record
    where = (
        f"judged on {record.n_judged:,} rows of the evaluation set"
        if record.judged_on == "evaluation"
        else f"judged by fits on the other folds of {record.settings.folds}"
    )
    near = ""
    if record.space is not None and record.k is not None:
        near = f" It uses {record.k:,} neighbours in the space: {space_title(record.space)}."
    return (
        f"Fitted on {record.n_fit:,} calibration rows in {seconds_text(record.fit_seconds)}, "
        f"{where}.{near}"
    )


def _quantiles(view: RepairView) -> None:
    with st.container(border=True):
        st.subheader("Stated quantiles", anchor=False)
        show(
            drawn_once(
                quantile_reliability_chart,
                view.run.before.quantiles,
                dark=is_dark(),
                after=view.run.after.quantiles,
                after_name=view.run.record.repair.title,
                after_by=view.key,
            ),
            key="export_quantiles",
            of=view.review.title,
        )


def _how_to_use(view: RepairView) -> None:
    card, name = view.run.card, _name(view)
    with st.container(border=True):
        python, command = st.columns(2, gap="medium")
        with python:
            st.markdown("In Python:")
            reads = bool(card.features)
            st.code(_python(name, card, reads_rows=reads), language=None, wrap_lines=True)
        with command:
            st.markdown(ON_COMMAND_LINE)
            st.code(score_line(name, card, "new_forecasts.csv"), language=None, wrap_lines=True)
        rows = _WITH_ROWS if view.run.record.space is not None else _NO_ROWS
        model = _NO_MODEL if view.review.model is None else _MODEL
        st.markdown(USE.replace("@ROWS@", rows).replace("@MODEL@", model))


def _python(name: str, card: RecalibratorCard, *, reads_rows: bool) -> str:
    """Lines of Python that correct the forecasts of new rows, and run unchanged."""
    if card.model is not None:
        return (
            "# X: a data frame of new rows\n"
            "from kdcal_core import load_recalibrator\n\n"
            "# refused with any other model than the one that was repaired\n"
            f"repair = load_recalibrator({name!r}, model={card.model.name!r})\n"
            "found = repair.score_rows(X)  # found.mean(), .std(), .ppf(0.95), .interval(0.9)\n"
        )
    rows, inputs = (", X: a data frame of their columns", ", X") if reads_rows else ("", "")
    return (
        f"# forecasts: the model's distributions of new rows{rows}\n"
        "# such as kdcal_core.distributions.Normal(mean, std)\n"
        "from kdcal_core import load_recalibrator\n\n"
        f"repair = load_recalibrator({name!r})\n"
        f"found = repair.predict(forecasts{inputs})  # found.mean(), .std(), .interval(0.9)\n"
    )


def _card(view: RepairView) -> None:
    rows = card_rows(view.run.card)
    table = pd.DataFrame({"": list(rows), "Value": list(rows.values())})
    with st.container(border=True):
        st.table(
            table.map(lambda cell: escape_markdown(cell, 2000)),
            border="horizontal",
            hide_index=True,
            hide_header=True,
            alt="The card of the recalibrator file",
        )
        csv_button(
            lambda: table.rename(columns={"": "What"}),
            key="export_card_csv",
            of=f"{view.review.title} {view.key}",
            what="card",
        )


def card_rows(card: RecalibratorCard) -> dict[str, str]:
    """The card as lines of a table. Untrusted text."""
    settings = ", ".join(f"{name} = {value}" for name, value in card.parameters.items())
    rows = {"Repair": card.title, "Settings": settings or "none"}
    rows |= model_rows(card, "not known, only its forecasts")
    rows["Forecasts"] = card.family
    if card.columns:
        rows["Columns of the forecasts"] = listed([f"{a}: {b}" for a, b in card.columns], 12)
    return rows | origin_rows(card)
