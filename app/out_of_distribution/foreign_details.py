"""The lower part of the Out of distribution page: the fit, the surest rows, the ordinary ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.out_of_distribution import foreign_text as text
from app.shared import foreign_results, results, session
from app.shared.charts import chart, csv_button, drawn_once, is_dark
from app.shared.foreign_results import Chosen, View
from app.shared.graph_results import Version
from app.shared.numbers import interval, number
from kdcal_core.charts import foreign_words, selection_figure
from kdcal_core.diagnostics import Estimate
from kdcal_core.errors import InputError
from kdcal_core.text import escape_markdown

SUREST = 10
MAX_FEATURES = 20
SAYS, VERSION_SAYS, UNKNOWN = "Model says", "Kernel density version says", "Unknown"


def fitted_on(version: Version) -> None:
    """Which rows the graph was fitted on, what that means, and how the exponent was chosen."""
    record, graph = version.fit.run.record, version.graph
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**What it was fitted on**")
        source = {"training": "training set", "calibration": "calibration set"}[record.fitted_on]
        judged = {
            "evaluation": "the evaluation set",
            "holdout": "the same held-out rows, which flatters it a little",
        }[record.judged_on]
        st.markdown(
            f"{record.n_fit:,} rows of the {source}, in {graph.n_polytopes:,} regions; exponent "
            f"and floor from {record.n_holdout:,} held-out rows of the calibration set. Ordinary "
            f"rows on this page: {record.n_judged:,}, {judged}."
        )
        st.markdown(text.FITTED_ON[record.fitted_on])
        if (blend := graph.blend) is not None:
            st.markdown(foreign_words.blend_words(blend.parent, blend.graph))
        for note in record.notes:
            st.warning(escape_markdown(note, 600), icon=":material/visibility:")
    with right.container(border=True, height="stretch"):
        st.markdown("**How the exponent was chosen**")
        found = foreign_results.selection_of(version)
        chart(
            drawn_once(
                selection_figure,
                found.exponents,
                {"Held-out log loss": found.log_loss},
                float(found.exponents[found.chosen]),
                dark=is_dark(),
            ),
            key="foreign_selection",
            takeaway=foreign_words.selection_words(found),
            how_to_read=text.SELECTION,
            alt=foreign_words.selection_words(found),
            table=lambda: pd.DataFrame(
                {
                    "exponent": found.exponents,
                    "gamma": found.gammas,
                    "log_loss": found.log_loss,
                    "standard_error": found.standard_error,
                }
            ),
            name="kernel exponent",
        )


def surest(view: View, chosen: Chosen) -> None:
    """The foreign rows that the model was surest about, with their features."""
    with st.container(border=True):
        st.markdown("**Foreign rows that the model is surest about**")
        answers = _answers(view, chosen)
        words = foreign_words.surest_words(
            chosen.name,
            answers[SAYS].to_numpy(),
            answers[VERSION_SAYS].to_numpy() if VERSION_SAYS in answers else None,
            row=int(answers["Row"].iloc[0]),
            predicted=str(answers["Predicted class"].iloc[0]),
        )
        st.markdown(escape_markdown(words, 600))
        try:
            features = foreign_results.frame_of(view, chosen)
        except InputError as error:
            session.error_box(error)
            return
        table = answers.join(
            features.rename(columns=lambda name: f"{name} (feature)" if name in answers else name)
        )
        st.dataframe(
            table.head(SUREST).iloc[:, : len(answers.columns) + MAX_FEATURES],
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format="percent")
                for name in (SAYS, VERSION_SAYS)
            },
            alt=f"The {SUREST} foreign rows that the model is surest about",
            key="foreign_surest",
        )
        csv_button(
            lambda: table, key="foreign_surest_csv", name=f"{view.review.title} {chosen.name}"
        )


def _answers(view: View, chosen: Chosen) -> pd.DataFrame:
    """What is said of each row, surest first; the index is the row's place in its set."""
    proba = chosen.rows.proba
    said = pd.DataFrame(
        {
            "Row": np.arange(1, len(proba) + 1),
            "Predicted class": np.array(view.review.classes, dtype=object)[proba.argmax(axis=1)],
            SAYS: proba.max(axis=1),
        }
    )
    if view.version is not None:
        density = foreign_results.densities(view.version, chosen)[1]
        posterior = foreign_results.foreign_posterior(view.version, chosen)
        said[VERSION_SAYS] = posterior.max(axis=1)
        said[UNKNOWN] = density < view.version.graph.effective_log_floor
    return said.sort_values(SAYS, ascending=False, kind="stable")


def inside(view: View, version: Version) -> None:
    """Accuracy and calibration among the ordinary rows, when asked for."""
    with st.expander(
        "And among ordinary rows? Accuracy and calibration of both",
        key="foreign_inside",
        on_change="rerun",
    ) as shown:
        if not shown.open:
            return
        model = results.summary_of(foreign_results.ordinary_of(version.fit))
        graph = results.summary_of(foreign_results.inside(version))
        st.markdown(escape_markdown(foreign_words.inside_words(model, graph), 600))
        st.dataframe(
            pd.DataFrame(
                {
                    "Estimate": [one.label for one in model],
                    "Model": [_told(one) for one in model],
                    "Kernel density version": [_told(one) for one in graph],
                    "Full name": [one.name for one in model],
                }
            ),
            hide_index=True,
            alt="Accuracy and calibration among ordinary rows",
        )
        st.caption(text.INSIDE)


def _told(estimate: Estimate) -> str:
    return f"{number(estimate)} ({interval(estimate)})"


def advice() -> None:
    """What the papers say of such a version, and what they do not promise."""
    with st.expander("Before you rely on it", icon=":material/menu_book:"):
        st.markdown(text.ADVICE)
        st.caption(f"In our words. {text.PAPERS}")
