"""What a scored set suffices for: its rows, what is missing, what looks suspicious."""

from __future__ import annotations

from math import isfinite
from typing import get_args

import pandas as pd
import streamlit as st

from app.shared import navigation, set_results
from app.shared.equal_notes import equal_notes
from app.shared.sections import folded
from app.shared.tables import show_table
from kdcal_core.data import Fitness, RegressionFitness
from kdcal_core.review import Review, Which
from kdcal_core.tasks import set_fitness
from kdcal_core.text import escape_markdown, figures_text, number_text


def fit_for_use(review: Review) -> None:
    """What the scored rows suffice for, and where to go next."""
    st.header("What these rows are fit for")
    for which in get_args(Which):
        if which in review.tables:
            _card(review, which)
    equal_notes(review)
    if not review.has_evaluation:
        what = "repairs" if review.task == "regression" else "calibrators"
        st.caption(
            f"One set only: {what} are fitted on four fifths of the rows and judged on the "
            "last fifth, five times over (cross-fitting)."
        )
    navigation.page_link("overview", "See whether it can be trusted")


def _card(review: Review, which: Which) -> None:
    """One card for one set: its flags as sentences, its rows per class or its outcomes."""
    found = set_results.of(review, set_fitness, which=which)
    if found is None:
        return
    with st.container(border=True):
        if found.regression is not None:
            _regression(review, which, found.regression)
        if found.classification is not None:
            _classification(review, which, found.classification)


def _classification(review: Review, which: Which, fitness: Fitness) -> None:
    st.markdown(
        f"**{which.capitalize()} set**: {fitness.n_rows:,} rows, "
        f"{fitness.accuracy:.1%} predicted right"
    )
    above = review.sets[which].doubts  # which the header shows
    flags = tuple(flag for flag in fitness.flags if flag not in above)
    fine = "Every class has enough rows to be examined."
    _flags(flags, "" if above else fine)

    def rows_per_class() -> None:
        show_table(
            _rows_per_class(review, fitness),
            alt=f"Rows of each class in the {which} set, by true and by predicted class",
        )

    folded(f"Rows per class, {which} set", f"rows_per_class_{which}", rows_per_class)


def _regression(review: Review, which: Which, fitness: RegressionFitness) -> None:
    width = fitness.rmse_high - fitness.rmse_low
    error, low, high = (
        _as_sure(x, width) for x in (fitness.rmse, fitness.rmse_low, fitness.rmse_high)
    )
    between = f" ({low} to {high})" if isfinite(width) else ""
    st.markdown(
        f"**{which.capitalize()} set**: {fitness.n_rows:,} rows, "
        f"root mean squared error {error}{between}"
    )
    _flags(
        fitness.flags,
        "There are enough rows, and every outcome is possible under its predicted distribution.",
    )
    st.caption(
        f"Outcomes from {figures_text(fitness.low)} to {figures_text(fitness.high)}, "
        f"median {figures_text(fitness.median)}, {fitness.n_distinct:,} different values."
    )
    spread = review.sets[which].spread
    if spread is not None and which == "calibration":
        log = " of the logarithm" if review.roles and review.roles.family == "log_point" else ""
        st.caption(
            f"The model gives a single number a row. All rows share one standard deviation{log}, "
            f"{figures_text(spread)}, fitted to the {fitness.n_rows:,} residuals of this "
            "set; its own rows are judged with that of the other folds."
        )


def _as_sure(value: float, width: float) -> str:
    """Decimals as the interval warrants, for numbers that people write in full."""
    return number_text(value, width) if width > 1e-3 and abs(value) < 1e9 else figures_text(value)


def _flags(flags: tuple[str, ...], none: str) -> None:
    for flag in flags:
        st.markdown(f":material/flag: {escape_markdown(flag, 500)}")
    if not flags and none:
        st.caption(none)


def _rows_per_class(review: Review, fitness: Fitness) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Class": review.classes,
            "Rows of this class": fitness.rows_true,
            "Rows predicted as it": fitness.rows_predicted,
        }
    )
