"""The choice of the new table on the Watch page: upload, made table, and the tables before it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from app.shared import navigation, session, uploads, waiting
from app.shared.emphasis import emphasis, quiet
from app.shared.labels import unique_labels
from app.shared.version_choice import choose_version
from app.watch import watch_audit
from kdcal_core.audit import WatchLimits, WatchSettings, reference_set, why_no_features
from kdcal_core.review import Review, remove_watched
from kdcal_core.text import escape_markdown, printable

MADE_WORDS = (
    "made of the evaluation set, and compared with the calibration set. Rows with a high score or "
    "predicted median are taken more often than rows with a low one, and the first half has labels."
)
_ALPHAS = (0.01, 0.05, 0.1)
_ALPHA = WatchLimits().alpha
_MADE = "Made of the evaluation set"


def asked(review: Review) -> WatchSettings | None:
    """What the page watches; None until there is a table, with a way to one."""
    ended = waiting.show(review.id)
    if ended is not None and ended.error is not None:
        session.error_box(ended.error)
    names = [*review.watched]
    _take_up_new(review, names)
    made = bool(st.session_state.get(_made_key(review))) and review.has_evaluation
    if not names and not made:
        _nothing_yet(review)
        return None
    options: list[str | None] = [*names, *([None] if made or review.has_evaluation else [])]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = _choose(review, options)
        method = None if review.task == "regression" else _version(review)
        _own_tables(review)
        return replace(_settings(review, names, chosen, method), method=method)


def _version(review: Review) -> str | None:
    return choose_version(
        review, "watch", regions=False, label="The model, or a calibrated version in its place"
    )


def _made_key(review: Review) -> str:
    return f"watch_made_{review.id}"


def _table_key(review: Review) -> str:
    return f"watch_table_{review.id}"


def _nothing_yet(review: Review) -> None:
    """What will appear, what it needs, and a button that makes it appear."""
    with st.container(border=True):
        st.markdown(navigation.places()["watch"].will_show)
        truth = "outcome" if review.task == "regression" else "true class"
        what = "rows for the model" if review.model is not None else "predictions of the model"
        st.markdown(
            f"It needs a new table: {what}, in the columns of the reference table. The column of "
            f"the {truth} may be missing, wholly or in some rows."
        )
        uploads.watched_uploader(review)
        if review.has_evaluation:
            st.button(
                "Watch a made table",
                key="watch_made",
                type=emphasis(),
                icon=":material/play_arrow:",
                on_click=_make,
                args=(review,),
            )
            st.caption(f"That is a table {MADE_WORDS}")


def _make(review: Review) -> None:
    st.session_state[_made_key(review)] = True
    st.session_state[_table_key(review)] = None


def _take_up_new(review: Review, names: list[str]) -> None:
    """Choose a table that has just been uploaded."""
    memory = f"watch_digests_{review.id}"
    now = {name: table.digest for name, table in review.watched.items()}
    before = st.session_state.get(memory)
    st.session_state[memory] = now
    new = [name for name in names if before is not None and before.get(name) != now[name]]
    if new:
        st.session_state[_table_key(review)] = new[-1]


def _choose(review: Review, options: list[str | None]) -> str | None:
    """The name of the chosen table; None for the made one. At first the last one that came."""
    key = _table_key(review)
    shown = [_MADE if one is None else printable(one, 80) for one in options]
    labels = dict(zip(options, unique_labels(shown), strict=True))
    if key not in st.session_state or st.session_state[key] not in options:
        given = [one for one in options if one is not None]
        st.session_state[key] = given[-1] if given else None
    at: int = st.selectbox(
        "New table",
        range(len(options)),
        index=options.index(st.session_state[key]),
        format_func=lambda at: labels[options[at]],
        key=f"{key}_{len(options)}_{options.index(st.session_state[key])}",
        width=260,
    )
    st.session_state[key] = options[at]
    return options[at]


def _own_tables(review: Review) -> None:
    """The uploader, and the loaded tables, each with a way to remove it."""
    with st.popover("Your own tables", icon=":material/upload_file:"):
        uploads.watched_uploader(review)
        uploads.loaded_tables(review, "watched", partial(_remove, review.id))


def _remove(review_id: str, name: str) -> None:
    waiting.dismiss()
    remove_watched(session.workspace(), review_id, name)


def _settings(
    review: Review, names: list[str], chosen: str | None, method: str | None
) -> WatchSettings:
    """The audit, the sequential test's level and beginning, and the reference rows' weights."""
    before = [] if chosen is None else names[: names.index(chosen)]
    with st.popover("Settings", icon=":material/tune:", type=quiet()):
        audit = None
        if method is None:  # audits of the reference rows judged the model as it is
            audit = watch_audit.choose(review, reference_set(review, made=chosen is None))
        st.subheader("Sequential test", anchor=False)
        alpha: float = st.select_slider(
            "Chance of ever signalling for a calibrated model",
            options=_ALPHAS,
            value=_ALPHA,
            format_func=lambda one: f"{one:.0%}",
            key=f"watch_alpha_{review.id}",
            persist_state="session",
        )
        goes_on = st.toggle(
            "Continue from the tables before",
            value=True,
            key=f"watch_continue_{review.id}",
            persist_state="session",
            disabled=not before,
            help="The test counts the labels of the tables that came before this one, in their "
            "order. Begin anew once a recalibrated model is reviewed.",
        )
        if before:
            st.caption(f"Before it: {escape_markdown(', '.join(before), 300)}")
        by_features = review.task != "regression" and _by_features(review, chosen)
    earlier = tuple((name, review.watched[name].digest) for name in before) if goes_on else ()
    return WatchSettings(
        table=chosen,
        earlier=earlier,
        limits=WatchLimits(alpha=alpha),
        weighted_by="features" if by_features else "scores",
        audit=audit,
    )


def _by_features(review: Review, chosen: str | None) -> bool:
    """Whether the estimates without labels correct for a covariate shift by all features."""
    st.subheader("Estimates without labels", anchor=False)
    why_not = why_no_features(review, chosen)
    asked: bool = st.toggle(
        "Correct for covariate shift by all features",
        value=False,
        key=f"watch_features_{review.id}",
        persist_state="session",
        disabled=bool(why_not),
    )
    st.caption(
        "Reference rows that resemble the new ones then count more. Otherwise rows resemble each "
        "other by their score alone, which is not enough where the model leaves out a feature that "
        "changed. It needs the features of both tables, and assumes that rows with the same "
        "features have the same chance of the event in both."
    )
    if why_not:
        st.caption(f"It cannot be used here, because {escape_markdown(why_not, 200)}.")
    return asked and not why_not
