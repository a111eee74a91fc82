"""The limits of a review's checks, shown and changed."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import streamlit as st

from app.shared import reviews_here, session
from app.shared.emphasis import emphasis, quiet
from app.shared.labels import unique_labels
from app.shared.window import close_window, open_window, window
from kdcal_core.checks import CHECKS, Check
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, Review, alike, set_question
from kdcal_core.text import counted, in_sentence, listed

AGAINST = {
    "value": "the estimate",
    "chance": "chance",
    "baseline": "another review",
}
_ID = re.compile(r"[A-Za-z0-9_-]{16}")
_MOST = 50  # reviews to choose from


def limits_button(review: Review) -> None:
    """Say whether the limits are the defaults, and open them to be edited."""
    own = review.question.limits
    changed = f"{len(own):,} changed" if own else "all at their defaults"
    name = f"limits_{review.id}"
    st.button(
        f"Limits: {changed}",
        icon=":material/tune:",
        key="limits",
        type=quiet(),
        on_click=open_window,
        args=(name,),
    )
    window(name, "Limits of the checks", _limits_form, review)


def _limits_form(review: Review) -> None:
    """A table of limits to edit; what is changed is kept with the review."""
    own = review.question.limits
    st.markdown(
        "A check passes where its whole 95% interval is within the limits, and fails where "
        "it is wholly beyond them. Leave an end empty where there is none. The defaults are "
        "only a starting point: set yours before you look at the results."
    )
    st.markdown(
        'Compared with "another review", a limit applies to the difference: the estimate of '
        "this review minus that of the other one, with the interval of that difference. "
        "Where both hold the same rows, it is paired."
    )
    baseline = _baseline(review)
    rows: list[tuple[Check, dict[Hashable, Any]]] = []
    for ways, checks in _by_ways(review).items():
        if "baseline" in ways:
            st.caption(f"Compared with {listed((AGAINST[way] for way in ways), last='or')}:")
        else:
            titles = listed(one.title for one in checks)
            st.caption(
                f"{titles} cannot be compared with another review, because each review finds "
                "its own regions:"
            )
        edited = _table(review, ways, checks)
        rows += zip(checks, edited.to_dict("records"), strict=True)
    with st.container(horizontal=True):
        if st.button("Save the limits", type=emphasis(), icon=":material/save:"):
            _save(review, rows, baseline)
        if st.button("Use the defaults", icon=":material/restart_alt:", disabled=not own):
            _keep(review, {}, None)


def _by_ways(review: Review) -> dict[tuple[str, ...], list[Check]]:
    """The checks of the review's task, by what their limits may be compared with.

    Those with the most ways come first, because these are most checks.
    """
    found: dict[tuple[str, ...], list[Check]] = {}
    for check in CHECKS.values():
        if review.task in check.tasks:
            own = review.question.limits.get(check.code)
            chosen = () if own is None else (own.against,)  # a file may have any
            ways = tuple(way for way in AGAINST if way in (*check.ways, *chosen))
            found.setdefault(ways, []).append(check)
    return dict(sorted(found.items(), key=lambda one: -len(one[0])))


def _table(review: Review, ways: tuple[str, ...], checks: list[Check]) -> pd.DataFrame:
    """The limits of some checks to edit, which may all be compared in the same ways."""
    own = review.question.limits
    limits = [own.get(one.code, one.limit) for one in checks]
    table = pd.DataFrame(
        {
            "Check": [one.title for one in checks],
            "At least": [_end(one.low, check) for one, check in zip(limits, checks, strict=True)],
            "At most": [_end(one.high, check) for one, check in zip(limits, checks, strict=True)],
            "Unit": ["%" if one.percent else "" for one in checks],
            "Compared with": [AGAINST[one.against] for one in limits],
            "Set by": ["you" if one.code in own else "default" for one in checks],
        }
    )
    edited: pd.DataFrame = st.data_editor(
        table,
        hide_index=True,
        key=f"limits_table_{'_'.join(ways)}_{review.id}_{len(own)}",
        disabled=["Check", "Unit", "Set by"],
        placeholder="",
        column_config={
            "Compared with": st.column_config.SelectboxColumn(
                options=[AGAINST[way] for way in ways], required=True
            ),
            "At least": st.column_config.NumberColumn(format="%g"),
            "At most": st.column_config.NumberColumn(format="%g"),
        },
        alt=f"The limits of {counted(len(checks), 'check')}, which can be changed",
    )
    return edited


def _baseline(review: Review) -> str | None:
    """The id of the review that limits compare with, chosen among those that may be opened."""
    chosen, label = review.question.baseline, "Review to compare with"
    key = f"limits_baseline_{review.id}"
    if not reviews_here.may_be_named():
        return _by_address(review, label)
    found = {one.id: (one, used) for one, used in reviews_here.reviews_here()}
    others = [one.id for one in alike(review, (one for one, _ in found.values()))][:_MOST]
    ordered = sorted(others)  # so that a number stays with its review when another one is used
    texts = [
        f"{found[one][0].title[:80]}, {reviews_here.day_text(found[one][1])}" for one in ordered
    ]
    labels = dict(zip(ordered, unique_labels(texts), strict=True))
    picked: str | None = st.selectbox(
        label,
        others,
        index=others.index(chosen) if chosen in others else None,
        format_func=labels.__getitem__,
        key=key,
        placeholder="No other review" if others else "No other review can be compared",
        disabled=not others,
    )
    return picked


def _by_address(review: Review, label: str) -> str | None:
    """As `_baseline`, or an address as it was given, where others visit this server too.

    Whoever has an address may give it. Nothing here names the review that is chosen, because its
    id is all that is needed to open, change or delete it.
    """
    chosen = review.question.baseline
    removed = False
    if chosen is not None:
        st.markdown("Another review is chosen. Give an address only to choose a different one.")
        removed = st.checkbox("Remove it", key=f"limits_removed_{review.id}")
    text = st.text_input(
        label,
        # empty again once a review is chosen or removed
        key=f"limits_{'first' if chosen is None else 'new'}_address_{review.id}",
        placeholder="Its address, or the id in it",
        disabled=removed,
    )
    if removed:
        return None
    return text.strip() or chosen


def review_in(text: str) -> str:
    """The id of the review in an address, or the id itself.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> review_in("https://example.org/overview?review=AbCdEfGhIjKlMnOp&x=1#limits")
    'AbCdEfGhIjKlMnOp'
    >>> review_in("AbCdEfGhIjKlMnOp")
    'AbCdEfGhIjKlMnOp'
    """
    with contextlib.suppress(ValueError):  # of brackets that hold no address
        given = parse_qs(urlsplit(text.strip()).query).get("review", [text])[-1].strip()
        if _ID.fullmatch(given):
            return given
    raise InputError(
        "This address names no review",
        fix='Open the other review and copy its whole address, with "review=" in it.',
    )


def _save(
    review: Review, rows: Sequence[tuple[Check, dict[Hashable, Any]]], baseline: str | None
) -> None:
    limits: dict[str, Limit] = {}
    for check, row in rows:
        against = next(key for key, word in AGAINST.items() if word == row["Compared with"])
        try:
            chosen = Limit(
                _number(row["At least"], -math.inf, check),
                _number(row["At most"], math.inf, check),
                against,  # type: ignore[arg-type]
            )
            check.chosen(chosen)
        except InputError as error:
            session.error_box(_of_check(error, check.title), of_action=True)
            return
        if chosen != check.limit:
            limits[check.code] = chosen
    compared = any(one.against == "baseline" for one in limits.values())
    if compared and baseline is None:
        session.error_box(
            InputError(
                "Some limits compare with another review, and none is chosen",
                fix="Choose it above the table.",
            ),
            of_action=True,
        )
        return
    if baseline is not None and baseline != review.question.baseline:
        try:
            baseline = review_in(baseline)
            if not session.workspace().exists(baseline):
                raise InputError(
                    "That review is no longer here",
                    fix="It was deleted, or its address is of another machine. Choose another one.",
                )
        except InputError as error:
            session.error_box(error, of_action=True)
            return
    _keep(review, limits, baseline)


def _of_check(error: InputError, title: str) -> InputError:
    """The error, with the check that it is about."""
    return InputError(f"{title}: {in_sentence(error.what)}", fix=error.fix)


def _keep(review: Review, limits: dict[str, Limit], baseline: str | None) -> None:
    question = replace(review.question, limits=limits, baseline=baseline)
    try:
        set_question(session.workspace(), review.id, question)
    except InputError as error:
        session.error_box(error, of_action=True)
    else:
        close_window()
        st.rerun()


def _end(value: float, check: Check) -> float | None:
    """An end of a limit as it is edited, in the unit in which the list of checks shows it."""
    if math.isinf(value):
        return None
    return round(100.0 * value, 10) if check.percent else value


def _number(value: object, missing: float, check: Check) -> float:
    if not isinstance(value, int | float) or math.isnan(value):
        return missing
    return value / 100.0 if check.percent else float(value)
