"""What a scored set is fit for: rows a class, what is missing, what looks suspicious."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.widgets import session
from kdcal_core.data import Fitness, escape_markdown
from kdcal_core.review import Review, Which, fitness_of


@st.cache_data(max_entries=64, show_spinner="Counting rows")
def _fitness(digests: tuple[str, ...], review_id: str, which: Which) -> Fitness:
    return fitness_of(session.workspace(), review_id, which)


def fitness_card(review: Review, which: Which) -> None:
    """One card for one set: its flags as sentences, its rows per class as a table."""
    fitness = _fitness(tuple(t.digest for t in review.tables.values()), review.id, which)
    with st.container(border=True):
        st.markdown(
            f"**{which.capitalize()} set**: {fitness.n_rows:,} rows, "
            f"{fitness.accuracy:.1%} predicted right"
        )
        for flag in fitness.flags:
            st.markdown(f":material/flag: {escape_markdown(flag, 500)}")
        if not fitness.flags:
            st.caption("Nothing stands in the way: every class has rows enough to be looked at.")
        with st.expander(f"Rows per class, {which} set"):
            st.dataframe(
                _rows_per_class(review, fitness),
                hide_index=True,
                alt=f"Rows of each class in the {which} set, by true and by predicted class",
            )


def _rows_per_class(review: Review, fitness: Fitness) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Class": review.classes,
            "Rows of this class": fitness.rows_true,
            "Rows predicted as it": fitness.rows_predicted,
        }
    )
