"""The lower part of the Out of distribution page: the fit, the surest rows, ordinary rows."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st

from app.shared import foreign_results, session
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.foreign_results import Chosen, View
from app.shared.graph_results import Version, setting_words
from app.shared.row_tables import most_text
from app.shared.sections import folded
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from kdcal_core.charts import (
    blend_words,
    cited_in,
    exponent_chart,
    inside_words,
    pictures_chart,
    surest_words,
)
from kdcal_core.diagnostics import Estimate, Surest, estimate_text
from kdcal_core.errors import InputError
from kdcal_core.tasks import SAYS, VERSION_SAYS, ForeignPictures, SurestRows
from kdcal_core.text import escape_markdown

SUREST = 10
_TABLE = 215  # pixels, so that five rows are seen at once
MAX_FEATURES = 20
INSIDE = """
A version that is cautious outside must still be useful inside the data: it should keep the accuracy
and be calibrated as well as the model (Dey et al., earlier version, section 3.4). Both columns are
computed on the same ordinary rows.
"""
ADVICE = """
* **Calibrating inside does not correct confidence outside.** ReLU networks become arbitrarily
  confident far from their data, and isotonic or sigmoid calibration does not change that
  (Dey et al., section 1 of both versions).
* **Calibration is harder than detection.** A calibrated model detects foreign rows; one that
  detects them may still state wrong confidences (Dey et al., appendix A).
* **There is no guarantee at a given distance.** Confidence is proven to fall to the prior only in
  the limit of infinite distance (Prop. 2), and no theorem says how soon (Dey et al., appendix A):
  look at the chart. Only the share of ordinary rows called unknown is bounded.
* **The prior must be right.** OCE and the probabilities outside assume the class frequencies of the
  fit. If those of new rows differ, both are wrong.
* **No foreign rows are needed.** The version is fitted post hoc from the model and ordinary rows,
  so it does not favour one kind of foreign rows.
* **Prefer geodesic to Euclidean distance.** It follows what the model has learned and works with
  many features; with Euclidean distance, irrelevant features count as much as relevant ones.
* **It stores every region with a row.** Storage and time grow with the rows of the fit; very large
  data would need merged regions (section 4.2).
"""
FITTED_ON = {
    "training": "The kernel density version is fitted on the model's training rows, so it knows "
    "where the model has seen data. The model was fitted on the same rows, so its regions look "
    "purer than they are. Exponent and floor come from the calibration set, which the model has "
    "never seen.",
    "calibration": "The review has no training set, so the kernel density version is fitted on "
    "seven tenths of the calibration set. Its class shares are unbiased, because the model has "
    "never seen these rows. But there are fewer rows, and places with training rows only count as "
    "unknown. Add the training set on the Load page to see the difference.",
}


def fitted_on(view: View, version: Version) -> None:
    """The rows on which the graph was fitted, what that means, and the choice of the exponent."""
    record = version.fit.record
    found = foreign_results.chosen_exponent(view, version)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.subheader("Rows of the fit", anchor=False)
        source = {"training": "training set", "calibration": "calibration set"}[record.fitted_on]
        judged = {
            "evaluation": "the evaluation set",
            "holdout": "the same held-out rows, so it looks slightly better than it is",
        }[record.judged_on]
        st.markdown(
            f"{record.n_fit:,} rows of the {source}, in {record.facts.n_polytopes:,} regions; "
            f"exponent and floor from {record.n_holdout:,} held-out rows of the calibration set. "
            f"Ordinary rows on this page: {record.n_judged:,}, {judged}."
        )
        st.markdown(FITTED_ON[record.fitted_on])
        if found is not None and (blend := found.blend) is not None:
            st.markdown(blend_words(blend.model, blend.graph))
        for note in record.notes:
            st.warning(escape_markdown(note, 600), icon=":material/visibility:")
    with right.container(border=True, height="stretch"):
        st.subheader("How the exponent was chosen", anchor=False)
        if found is None:  # a job measures it
            return
        seen(
            *(view.review, "exponent", "How the exponent was chosen", "out_of_distribution"),
            *(exponent_chart, found.selection),
            settings=setting_words(version),
        )
        show(
            drawn_once(exponent_chart, found.selection, dark=is_dark()),
            key="foreign_selection",
            of=view.review.title,
        )


def surest(view: View, chosen: Chosen, found: Surest) -> None:
    """The foreign rows that the model is most sure about, with their features."""
    with st.container(border=True):
        words = surest_words(chosen.name, found, view.review.classes[found.predicted])
        st.markdown(escape_markdown(words, 600))
        try:
            drawn = foreign_results.pictures(view, chosen)
            if drawn is not None:
                _pictures(view, drawn)
            page = foreign_results.surest(view, chosen, SUREST)
        except InputError as error:
            session.error_box(error)
            return
        if page is None:
            return
        rows = partial(_surest_rows, view, chosen, found, page)
        if drawn is None:
            rows()
        else:
            folded("The same rows as a table", "foreign_surest_rows", rows)


def _surest_rows(view: View, chosen: Chosen, found: Surest, page: SurestRows) -> None:
    show_table(
        _answers(page).iloc[:, : page.said.shape[1] + MAX_FEATURES],
        height=_TABLE,
        column_config={
            name: st.column_config.NumberColumn(format="percent") for name in (SAYS, VERSION_SAYS)
        },
        alt=f"The {SUREST} foreign rows that the model is most sure about",
        key="foreign_surest",
    )
    every = foreign_results.every_row_of(view, chosen, f"Prepare {most_text(found.n)} as CSV")
    if every is not None:
        csv_button(
            lambda: _answers(every()),
            key="foreign_surest_csv",
            of=view.review.title,
            what=chosen.name,
        )


def _pictures(view: View, found: ForeignPictures) -> None:
    show(
        drawn_once(
            pictures_chart,
            found.pixels,
            found.predicted,
            found.confidence,
            found.version,
            found.n_surest,
            dark=is_dark(),
        ),
        key="foreign_pictures",
        of=view.review.title,
    )


def _answers(rows: SurestRows) -> pd.DataFrame:
    """The outputs for each row, most confident first, beside its features."""
    said = rows.said
    return said.join(
        rows.features.rename(columns=lambda name: f"{name} (feature)" if name in said else name)
    )


def inside(view: View, version: Version) -> None:
    """Accuracy and calibration of model and version on the ordinary rows."""
    with st.container(border=True):
        found = foreign_results.ordinary(view, version)
        if found is None:
            return
        model, graph = found.model, found.version
        st.markdown(escape_markdown(inside_words(model, graph), 600))
        show_table(
            pd.DataFrame(
                {
                    "Estimate": [one.label for one in model],
                    "Model": [_cell(one) for one in model],
                    "Kernel density version": [_cell(one) for one in graph],
                    "Full name": [one.name for one in model],
                }
            ),
            alt="Accuracy and calibration on ordinary rows",
        )
        st.caption(INSIDE)


def _cell(estimate: Estimate) -> str:
    return estimate_text(estimate, chance=False)


def advice() -> None:
    """What the papers say about the kernel density version, and what they do not promise."""
    with st.container(border=True):
        st.markdown(ADVICE)
        st.caption(f"Summarised from {cited_in(ADVICE)}")
