"""The limits of a review's checks, shown and changed."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import streamlit as st

from app.shared import session
from app.shared.emphasis import emphasis
from kdcal_core.checks import CHECKS
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, Review, set_question
from kdcal_core.text import in_sentence

AGAINST = {
    "value": "the estimate",
    "chance": "chance",
    "baseline": "a baseline",
}
_OFFERED = ("value", "chance")  # a baseline comes with an earlier record


def limits_form(review: Review) -> None:
    """A table of limits to edit, folded; what is changed is kept with the review."""
    own = review.question.limits
    changed = f", {len(own):,} changed" if own else ", all by default"
    with st.expander(
        f"Limits{changed}", icon=":material/tune:", key="limits", on_change="rerun"
    ) as shown:
        if not shown.open:
            return
        st.markdown(
            "A check passes where its whole 95% interval is within the limits, and fails where "
            "it is wholly beyond them. Leave an end empty where there is none. The defaults are "
            "only a starting point: set yours before you look at the results."
        )
        checks = [one for one in CHECKS.values() if review.task in one.tasks]
        limits = [own.get(one.code, one.limit) for one in checks]
        table = pd.DataFrame(
            {
                "Check": [one.title for one in checks],
                "At least": [_end(one.low) for one in limits],
                "At most": [_end(one.high) for one in limits],
                "Compared with": [AGAINST[one.against] for one in limits],
                "Set by": ["you" if one.code in own else "default" for one in checks],
            }
        )
        edited = st.data_editor(
            table,
            hide_index=True,
            key=f"limits_table_{review.id}_{len(own)}",
            disabled=["Check", "Set by"],
            column_config={
                "Compared with": st.column_config.SelectboxColumn(
                    options=[AGAINST[one] for one in _OFFERED], required=True
                ),
                "At least": st.column_config.NumberColumn(format="%g"),
                "At most": st.column_config.NumberColumn(format="%g"),
            },
            alt="The limits of every check, which can be changed",
        )
        with st.container(horizontal=True):
            if st.button("Save the limits", type=emphasis(), icon=":material/save:"):
                _save(review, edited)
            if st.button("Use the defaults", icon=":material/restart_alt:", disabled=not own):
                _keep(review, {})


def _save(review: Review, edited: pd.DataFrame) -> None:
    checks = [one for one in CHECKS.values() if review.task in one.tasks]
    limits: dict[str, Limit] = {}
    for check, row in zip(checks, edited.to_dict("records"), strict=True):
        against = next(key for key, word in AGAINST.items() if word == row["Compared with"])
        try:
            chosen = Limit(
                _number(row["At least"], -math.inf),
                _number(row["At most"], math.inf),
                against,  # type: ignore[arg-type]
            )
            check.limited(chosen)
        except InputError as error:
            session.error_box(_of_check(error, check.title))
            return
        if chosen != check.limit:
            limits[check.code] = chosen
    _keep(review, limits)


def _of_check(error: InputError, title: str) -> InputError:
    """The error, with the check that it is about."""
    return InputError(f"{title}: {in_sentence(error.what)}", fix=error.fix)


def _keep(review: Review, limits: dict[str, Limit]) -> None:
    set_question(session.workspace(), review.id, replace(review.question, limits=limits))
    st.rerun()


def _end(value: float) -> float | None:
    return None if math.isinf(value) else value


def _number(value: object, missing: float) -> float:
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else missing
