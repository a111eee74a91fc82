"""How calibrators rank over many data sets: a study that ships with kdcal, not the user's rows."""

from __future__ import annotations

import streamlit as st

from app.widgets import compare_text as text
from app.widgets.charts import chart, drawn_once, is_dark
from kdcal_core.charts import (
    PARENT_NAME,
    comparison_words,
    critical_difference_figure,
    critical_difference_table,
)
from kdcal_core.diagnostics.comparison import MEASURES, CriticalDifference, critical_difference
from kdcal_core.tasks import ComparisonStudy, comparison_study


def over_data_sets() -> None:
    """Mean ranks with their critical difference, by a measure of the reader's choice."""
    study = _study()
    with st.expander("How they rank over many data sets", icon=":material/leaderboard:"):
        st.caption(text.study(study))
        measure = st.segmented_control(
            "Ranked by",
            options=list(study.measures),
            default=study.measures[0],
            required=True,
            format_func=lambda key: MEASURES[key].title,
            key="compare_ranked_by",
            persist_state="session",
        )
        assert measure is not None
        ranks = _ranks(measure)
        chart(
            drawn_once(critical_difference_figure, ranks, dark=is_dark(), parent=PARENT_NAME),
            key=f"compare_ranks_{measure}",
            takeaway=comparison_words.ranks_words(ranks),
            how_to_read=text.RANKS,
            alt=comparison_words.ranks_words(ranks),
            table=lambda: critical_difference_table(ranks),
            name=f"kdcal ranks {measure}",
        )


@st.cache_data(show_spinner=False)
def _study() -> ComparisonStudy:
    return comparison_study()


@st.cache_data(max_entries=16, show_spinner=False)
def _ranks(measure: str) -> CriticalDifference:
    study = comparison_study()
    values, keys = study.scores(measure)
    lower = MEASURES[measure].lower_is_better
    return critical_difference(values, text.study_names(keys), lower_is_better=lower)
