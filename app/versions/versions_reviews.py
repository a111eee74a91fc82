"""The open review beside others on this machine: what differs, on which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from app.shared import job_results, navigation, reviews_here, session
from app.shared.charts import drawn_once, is_dark, show
from app.shared.labels import unique_labels
from app.shared.reviews_here import day_text
from app.shared.sections import sections
from app.versions.versions_several import (
    drawn,
    estimates_beside_table,
    facts_beside_table,
    further,
    sentences,
)
from app.versions.versions_tables import differences, estimates_table, facts_table
from kdcal_core.audit import changed_facts
from kdcal_core.charts import (
    changed_words,
    several_words,
    version_curves_chart,
    version_quantiles_chart,
)
from kdcal_core.diagnostics import corrected_changes
from kdcal_core.errors import InputError
from kdcal_core.review import Review, alike, check_scored, note_results
from kdcal_core.tasks import (
    LEAST_SHARE,
    ComparedReviews,
    SharedRows,
    compare_reviews,
    comparison_request,
)
from kdcal_core.text import counted, escape_markdown, listed, printable

_PICTURE_WIDTH = 400
_COLUMNS = ("Other review", "Open review")
_INDEPENDENT = "so the intervals of differences are those of independent rows"


def two_reviews(review: Review | None) -> None:
    """The open review compared with another one, or what that needs."""
    if review is None or not review.ready:
        st.markdown(
            "Here you will see the open review beside another one: what changed in model, data "
            "and settings, and which measures are better, worse or cannot be told apart. Open a "
            "review and score its rows first."
        )
        navigation.page_link("load", "Go to Load")
        return
    used = {one.id: (one, when) for one, when in reviews_here.reviews_here()}
    others = alike(review, [one for one, _ in used.values() if one.id != review.id])
    if not others:
        st.markdown(
            "Comparing needs another review on this machine, of the same task and with the same "
            "classes. Load the other model or the other table as a new review, or duplicate this "
            "one on the Load page and change the copy."
        )
        navigation.page_link("load", "Go to Load")
        return
    chosen = _chosen(review, [used[one.id] for one in others])
    if not chosen:
        st.caption("Each difference is the value of the open review minus that of the other.")
        return
    done: list[ComparedReviews] = []
    for one in chosen:
        found = _compared(review, one)
        if found is None:
            return
        done.append(found)
    for one in (review, *chosen):
        note_results(one)
    if len(chosen) == 1:
        _side_by_side(review, chosen[0], done[0])
    else:
        _several(review, chosen, done)


def _compared(review: Review, other: Review) -> ComparedReviews | None:
    """What the job found; None while it runs, or where there is an error, which is shown."""
    try:
        for one in (review, other):
            check_scored(session.workspace(), one)
        asked = comparison_request(session.workspace(), review, other)
    except InputError as error:
        session.error_box(error)
        return None
    job = job_results.finished(asked, review.id)
    return None if job is None else job_results.result_of(job, compare_reviews)


def _chosen(review: Review, others: Sequence[reviews_here.Used]) -> tuple[Review, ...]:
    texts = unique_labels(
        [f"{printable(one.title, 80)}, last used {day_text(when)}" for one, when in others]
    )
    known = {one.id: one for one, _ in others}
    labels = dict(zip(known, texts, strict=True))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Compared with", width="content")
        first: str | None = st.selectbox(
            "Compared with",
            list(labels),
            index=None,
            format_func=labels.__getitem__,
            placeholder="Choose a review",
            key=f"versions_review_{review.id}",
            persist_state="session",
            label_visibility="collapsed",
            width=520,
        )
    if first is None:
        return ()
    left = {key: label for key, label in labels.items() if key != first}
    more = further(st, left, key=f"versions_more_{review.id}", what="review")
    return tuple(known[one] for one in (first, *more))


def _several(review: Review, others: Sequence[Review], found: Sequence[ComparedReviews]) -> None:
    """The open review beside several others: a sentence for each, and one of them drawn."""
    names = unique_labels([printable(one.title, 80) for one in others])
    estimates = corrected_changes([one.estimates for one in found])
    said = [
        f"{changed_words(changes, 'reviews', name, 'The open review')} "
        f"{rows_words(one.rows, review)}"
        for one, changes, name in zip(found, estimates, names, strict=True)
    ]
    sentences(several_words(estimates, names), said)
    at = drawn(names)
    one = replace(found[at], estimates=estimates[at])
    _drawn(review, one, f"{review.title} beside {others[at].title}", corrected=True)
    facts = [changed_facts(review, one) for one in others]
    labels = ["Open review", *names]
    sections(
        "versions_pair_further",
        {
            "What changed": partial(facts_beside_table, facts, labels, of="reviews"),
            "All estimates": partial(estimates_beside_table, estimates, names, of="reviews"),
        },
    )


def _side_by_side(review: Review, other: Review, found: ComparedReviews) -> None:
    st.header(escape_markdown(changed_words(found.estimates, "reviews"), 900), anchor=False)
    facts = changed_facts(other, review)
    changed = (
        f"Changed: {escape_markdown(listed([what for what, _, _ in facts], 4), 300)}."
        if facts
        else "Model, settings and limits are the same."
    )
    st.caption(f"{escape_markdown(rows_words(found.rows, review), 900)} {changed}")
    of = f"{review.title} beside {other.title}"
    _drawn(review, found, of)
    sections(
        "versions_pair_further",
        {
            "What changed": partial(
                facts_table,
                facts,
                columns=_COLUMNS,
                key="versions_pair_facts",
                of="reviews",
            ),
            "All estimates": partial(
                estimates_table,
                found.estimates,
                columns=_COLUMNS,
                key="versions_pair_estimates",
                of="reviews",
            ),
        },
    )


def _drawn(review: Review, found: ComparedReviews, of: str, *, corrected: bool = False) -> None:
    """The differences from another review, beside the reliability of both."""
    line = st.container(horizontal=True)
    left, right = line.container(), line.container(width=_PICTURE_WIDTH)
    paired = bool(found.rows.paired)
    with left:
        differences(
            found.estimates,
            key="versions_pair",
            of=of,
            compared="reviews",
            paired=paired,
            unpaired=found.unpaired,
            corrected=corrected,
        )
    with right.container(border=True):
        _curves(review, found, of)
    if found.unpaired:
        st.caption(
            f"Not compared row by row: {listed(found.unpaired)}. The intervals of their "
            "differences are those of independent rows, which are too wide on the same rows."
        )


def _curves(review: Review, found: ComparedReviews, of: str) -> None:
    """The reliability of both, one over the other."""
    if found.curves:
        before, after = found.curves
        chart = drawn_once(version_curves_chart, before, after, review.classes, dark=is_dark())
    else:
        then, now = found.quantiles
        chart = drawn_once(version_quantiles_chart, then, now, dark=is_dark())
    show(chart, key="versions_curves", of=of, finding=False)


def rows_words(rows: SharedRows, review: Review) -> str:
    """How far both reviews judged the same rows, and what follows from it. Untrusted text."""
    labels = "outcomes" if review.task == "regression" else "true classes"
    n = counted(rows.after, "row")
    if rows.whole:
        if rows.by == "file":
            which = "evaluation" if review.has_evaluation else "calibration"
            said = f"both judged {n} of the file {review.tables[which].digest[:12]}"
        elif rows.by == "columns":
            columns = counted(rows.n_columns, "column")
            said = f"{n} are equal in {columns} and in their {labels}, in the same order"
        else:
            said = (
                f"the {labels} of {n} are equal in the same order, and no column describes the "
                "rows in both tables"
            )
        return f"The same rows: {said}. Differences are paired row by row."
    if rows.by == "unknown":
        return (
            "It cannot be said how many rows both have, because no column describes the rows in "
            f"both tables, {_INDEPENDENT}."
        )
    sizes = f"{rows.after:,} and {rows.before:,} rows"
    if rows.paired:
        left = rows.matched - rows.weighted_alike
        weights = f" {counted(left, 'row')} with another weight left out." if left else ""
        return (
            f"{counted(rows.paired, 'row')} of {sizes} are in both, matched by their content. "
            f"Differences are paired row by row on these alone.{weights}"
        )
    if rows.weighted_alike < rows.matched:
        apart = rows.matched - rows.weighted_alike
        return (
            f"{counted(rows.matched, 'row')} of {sizes} are in both, but {apart:,} of them have "
            f"another weight, {_INDEPENDENT}."
        )
    if rows.alike:
        equal = listed([labels if one == "outcomes" else one for one in rows.alike])
        return (
            f"No row of {sizes} has the same columns in both, but their {equal} are equal in the "
            "same order, as after columns were only rescaled. It is not known whether the rows "
            f"are the same, {_INDEPENDENT}."
        )
    if rows.equal is None or not rows.equal.rows:
        return f"Other rows: none of {sizes} is in both, {_INDEPENDENT}."
    once = (
        f"{rows.matched:,} can be matched one by one, and a comparison on them alone needs "
        f"{LEAST_SHARE:.0%} of the smaller set"
    )
    words = rows.equal.words("open review", "other", f"{once}, {_INDEPENDENT}")
    return words or ""
