"""The settings of a comparison: calibrators by family, rows to judge on, folds; with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from app.compare import compare_text as text
from app.shared.emphasis import quiet
from app.shared.one_of import one_of
from app.shared.question_choice import Asked, choose_question
from kdcal_core.calibration import CALIBRATOR_FAMILIES, CALIBRATORS, Family
from kdcal_core.evaluation import Judge
from kdcal_core.review import Review
from kdcal_core.tasks import ComparisonSettings, default_calibrators, usable_calibrators

JUDGES: dict[Judge, str] = {"evaluation": "Evaluation set", "cross-fitted": "Cross-fitting"}
ADDRESS = "calibrators"  # the part of the page's address that names those of the result
_KEPT: dict[str, Any] = {"persist_state": "session"}


def choose(review: Review) -> tuple[ComparisonSettings, Any]:
    """The settings in the card, and the place of the button that starts it, above the long list."""
    usable = usable_calibrators(review)
    asked = st.query_params.get(ADDRESS, "").split(",")
    offered = tuple(key for key in asked if key in usable) or default_calibrators(review)
    first = st.container(horizontal=True, vertical_alignment="bottom")
    with first:
        event, button = _event(review), st.empty()
    st.markdown("**Calibrators**, compared with the model as it is and with each other")
    chosen = [
        key
        for family in get_args(Family)
        for key in _family(review, family, [key for key, why in usable.items() if not why], offered)
    ]
    for sentence in text.not_here(
        {CALIBRATORS[key].label: why for key, why in usable.items() if why}
    ):
        st.caption(sentence)
    judge = _judge(review)
    folds, seed = _more(usable)
    return ComparisonSettings(tuple(chosen), judge, folds, seed, event=event), button


def to_address(review: Review, settings: ComparisonSettings) -> None:
    """Let the page's address open the result of these calibrators, where they are not the usual."""
    usual = set(settings.calibrators) == set(default_calibrators(review))
    named = "" if usual else ",".join(settings.calibrators)
    if named and st.query_params.get(ADDRESS) != named:
        st.query_params[ADDRESS] = named
    elif not named and ADDRESS in st.query_params:
        del st.query_params[ADDRESS]


def _event(review: Review) -> int | None:
    """The class whose probability calibration errors are about; None for the confidence."""
    asked = [Asked("confidence", None)]
    if review.event_class is not None:
        asked.append(Asked("class", review.event_class))
    return choose_question(review, "compare", asked, help=text.QUESTION).event


def _family(
    review: Review, family: Family, usable: list[str], offered: tuple[str, ...]
) -> list[str]:
    keys = [key for key in usable if CALIBRATORS[key].family == family]
    if not keys:
        return []
    name, what = CALIBRATOR_FAMILIES[family]
    return list(
        st.pills(
            name,
            options=keys,
            selection_mode="multi",
            default=[key for key in keys if key in offered],
            format_func=text.pill,
            key=f"compare_{family}_{review.id}",
            help=what,
            **_KEPT,
        )
        or ()
    )


def _judge(review: Review) -> Judge:
    if not review.has_evaluation:
        st.caption(text.NO_EVALUATION)
        return "cross-fitted"
    return one_of("Judged by", JUDGES, "evaluation", key="compare_judge", help=text.JUDGE)


def _more(usable: Mapping[str, str | None]) -> tuple[int, int]:
    with st.container(horizontal=True, gap="small"):
        with st.popover("More settings", icon=":material/tune:", type=quiet()):
            folds: int = st.slider(
                "Folds",
                min_value=2,
                max_value=20,
                value=5,
                key="compare_folds",
                help="Number of parts of the calibration set for cross-fitting.",
                **_KEPT,
            )
            seed: int = st.number_input(
                "Seed", min_value=0, max_value=2**31 - 1, value=0, key="compare_seed", **_KEPT
            )
        with st.popover("What each one does", icon=":material/help:", type=quiet()):
            st.markdown(text.descriptions(usable))
    return folds, seed
