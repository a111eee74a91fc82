"""The share of unknown rows on the Watch page, by score and by all features."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.shared import graph_results, job_results, session
from app.shared.graph_results import Version
from app.shared.tables import show_table
from kdcal_core.audit import Watch
from kdcal_core.diagnostics import UnknownChange, estimate_text
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.tasks import GraphSetting, unknown_new_rows
from kdcal_core.text import escape_markdown, p_text

WILL_SHOW = (
    "Here you will see how many of the new rows lie where the model has seen hardly any data, in "
    "all features together, beside the reference rows."
)


def unknown_rows(review: Review, watch: Watch) -> None:
    """New rows unlike all reference rows by their score and, with regions, by density."""
    outside = estimate_text(watch.outside, chance=False)
    if watch.forecasts is not None:
        st.markdown(
            f"{outside} of the new rows have a forecast beyond those of all reference rows: its "
            "median or the width of its interval. Rows that are new in their features may have "
            "usual forecasts."
        )
        st.caption(
            "By their features they are not judged, because the kernel density version is of a "
            "classification."
        )
        return
    if watch.watched.weighted_by == "features":
        st.markdown(
            f"By all features, {outside} of the new rows are unlike all reference rows: rows like "
            "them are far more frequent among the new rows than at any reference row, or their "
            "score is beyond all reference scores."
        )
    else:
        st.markdown(
            f"By their score, {outside} of the new rows are unlike all reference rows: it is "
            "beyond all reference scores, or far more frequent among the new rows than at any "
            "reference row. Rows that are new in their features may have usual scores."
        )
    name = watch.table.name
    if review.model is None or name not in review.watched:
        why = "there is no model" if review.model is None else "this table is made of its own rows"
        st.caption(f"By their features they are not judged, because {why}.")
        return
    try:
        found = _by_density(review, name)
    except InputError as error:
        st.caption(escape_markdown(f"{error.what}. {error.fix}", 1500))
        return
    if found is not None:
        _by_features(found)


def _by_density(review: Review, name: str) -> UnknownChange | None:
    """The rows below the floor; until then the offer of the fit, or the job's progress."""
    fit = graph_results.fitted(review, WILL_SHOW)
    if fit is None:
        return None
    version = Version(fit, GraphSetting.own(fit.folder, fit.facts))
    asked = unknown_new_rows.request(
        session.workspace(),
        review,
        table=name,
        digest=review.watched[name].digest,
        **graph_results.asked(version),
    )
    job = job_results.finished(asked, review.id)
    return None if job is None else job_results.result_of(job, unknown_new_rows)


def _by_features(found: UnknownChange) -> None:
    more = found.change.low > 0.0
    st.subheader(
        escape_markdown(
            f"{'More' if more else 'No more'} new rows than reference rows lie where the model has "
            f"seen hardly any data: {estimate_text(found.new, chance=False)} instead of "
            f"{estimate_text(found.reference, chance=False)}.",
            400,
        ),
        anchor=False,
    )
    rows = (("New rows", found.new), ("Reference rows", found.reference), ("Change", found.change))
    show_table(
        pd.DataFrame(
            {
                "Share of unknown rows": [title for title, _ in rows],
                "Value": [estimate_text(one, chance=False) for _, one in rows],
                "Rows": [f"{one.n:,}" for _, one in rows],
            }
        ),
        key="watch_unknown",
        alt="The share of unknown rows in both tables, and its change",
    )
    st.caption(
        "A row is unknown if its density is below the floor of the kernel density version, as on "
        f"the page Out of distribution. p value of no change: {p_text(found.p_value)} "
        f"({found.test})."
    )
