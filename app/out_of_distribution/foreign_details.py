"""The lower part of the Out of distribution page: the fit, the surest rows, the ordinary ones."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.out_of_distribution import foreign_text as text
from app.shared import foreign_results, session
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.foreign_results import Chosen, View
from app.shared.graph_results import Version
from app.shared.numbers import interval, number
from app.shared.papers import cited_in
from app.shared.row_tables import most_text
from kdcal_core.charts import blend_words, exponent_chart, inside_words, surest_words
from kdcal_core.diagnostics import Estimate, Surest
from kdcal_core.errors import InputError
from kdcal_core.tasks import SAYS, VERSION_SAYS, SurestRows
from kdcal_core.text import escape_markdown

SUREST = 10
MAX_FEATURES = 20


def fitted_on(view: View, version: Version) -> None:
    """Which rows the graph was fitted on, what that means, and how the exponent was chosen."""
    record = version.fit.record
    found = foreign_results.chosen_exponent(view, version)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**What it was fitted on**")
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
        st.markdown(text.FITTED_ON[record.fitted_on])
        if found is not None and (blend := found.blend) is not None:
            st.markdown(blend_words(blend.model, blend.graph))
        for note in record.notes:
            st.warning(escape_markdown(note, 600), icon=":material/visibility:")
    with right.container(border=True, height="stretch"):
        st.markdown("**How the exponent was chosen**")
        if found is None:  # a job measures it
            return
        show(
            drawn_once(exponent_chart, found.selection, dark=is_dark()),
            key="foreign_selection",
            of=view.review.title,
        )


def surest(view: View, chosen: Chosen, found: Surest) -> None:
    """The foreign rows that the model was surest about, with their features."""
    with st.container(border=True):
        st.markdown("**Foreign rows that the model is surest about**")
        words = surest_words(chosen.name, found, view.review.classes[found.predicted])
        st.markdown(escape_markdown(words, 600))
        try:
            page = foreign_results.surest(view, chosen, SUREST)
        except InputError as error:
            session.error_box(error)
            return
        if page is None:
            return
        st.dataframe(
            _answers(page).iloc[:, : page.said.shape[1] + MAX_FEATURES],
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format="percent")
                for name in (SAYS, VERSION_SAYS)
            },
            alt=f"The {SUREST} foreign rows that the model is surest about",
            key="foreign_surest",
        )
        every = foreign_results.every_row_of(view, chosen, f"Prepare {most_text(found.n)} as CSV")
        if every is not None:
            csv_button(
                lambda: _answers(every()),
                key="foreign_surest_csv",
                name=f"{view.review.title} {chosen.name}",
            )


def _answers(rows: SurestRows) -> pd.DataFrame:
    """What is said of each row, surest first, beside its features."""
    said = rows.said
    return said.join(
        rows.features.rename(columns=lambda name: f"{name} (feature)" if name in said else name)
    )


def inside(view: View, version: Version) -> None:
    """Accuracy and calibration among the ordinary rows, when asked for."""
    with st.expander(
        "And among ordinary rows? Accuracy and calibration of both",
        key="foreign_inside",
        on_change="rerun",
    ) as shown:
        if not shown.open:
            return
        found = foreign_results.ordinary(view, version)
        if found is None:
            return
        model, graph = found.model, found.version
        st.markdown(escape_markdown(inside_words(model, graph), 600))
        st.dataframe(
            pd.DataFrame(
                {
                    "Estimate": [one.label for one in model],
                    "Model": [_cell(one) for one in model],
                    "Kernel density version": [_cell(one) for one in graph],
                    "Full name": [one.name for one in model],
                }
            ),
            hide_index=True,
            alt="Accuracy and calibration among ordinary rows",
        )
        st.caption(text.INSIDE)


def _cell(estimate: Estimate) -> str:
    return f"{number(estimate)} ({interval(estimate)})"


def advice() -> None:
    """What the papers say of such a version, and what they do not promise."""
    with st.expander("Before you rely on it", icon=":material/menu_book:"):
        st.markdown(text.ADVICE)
        st.caption(f"In our words. {cited_in(text.ADVICE)}")
