"""The parts of the Reliability page, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import streamlit as st

from app.shared import set_results, tiles
from app.shared.charts import drawn_once, drawn_square, is_dark, show
from app.shared.one_of import one_of
from app.shared.question_choice import (
    Asked,
    choose_kind,
    choose_label,
    question_fold,
    question_words,
)
from app.shared.seen_charts import seen
from app.shared.tables import show_bins, show_estimates
from kdcal_core.audit import audit_settings
from kdcal_core.charts import (
    confusion_chart,
    cumulative_chart,
    largest_curves,
    reliability_by_class_chart,
    reliability_chart,
    scores_chart,
)
from kdcal_core.diagnostics import (
    Estimate,
    Kind,
    Reliability,
    Strategy,
    headline_estimate,
    reliability_finding,
)
from kdcal_core.review import Review, Which
from kdcal_core.tasks import (
    SetOverview,
    predicted_class,
    set_differences,
    set_estimates,
    set_overview,
    set_reliability,
)
from kdcal_core.text import escape_markdown, in_sentence, number_text

MULTIPLES: dict[Kind, str] = {
    "top-label": "Class by class: rows predicted to be the class",
    "class": "Class by class: the probability of each class",
}
STRATEGIES: dict[Strategy, str] = {"uniform": "Equal width", "quantile": "Equal rows"}
TABLES: dict[Literal["joint", "confusion", "reverse"], str] = {
    "joint": "Counts",
    "confusion": "By true class",
    "reverse": "By predicted class",
}


@dataclass(frozen=True)
class Drawn:
    """The question asked of the rows, and the bins in which it is answered."""

    asked: Asked
    n_bins: int
    strategy: Strategy


def asked(review: Review) -> Drawn:
    """The question and its bins, chosen in one fold beside the choice of the set."""
    with question_fold(review, "reliability"):
        kind = choose_kind(review, "reliability")
        label = choose_label(review, "reliability") if kind != "confidence" else None
        n_bins = st.slider("Bins", 5, 50, 15, key="reliability_bins", persist_state="session")
        return Drawn(Asked(kind, label), n_bins, _strategy())


def answer(review: Review, which: Which, drawn: Drawn) -> SetOverview | None:
    """The page's one sentence, its main picture, and the estimates beside it.

    None while a job measures the rows.
    """
    sentence = st.container()
    picture, estimates = tiles.answer(square=True)
    with picture:
        _diagram(review, which, drawn)
    found = set_results.of(review, set_overview, which=which, event=drawn.asked.event)
    if found is not None:
        with sentence:
            shown = _finding(review, which, drawn.asked, found)
        with estimates:
            tiles.estimate_column(shown)
            _bin_by_bin(review, which, drawn)
    return found


def _finding(
    review: Review, which: Which, asked: Asked, found: SetOverview
) -> tuple[Estimate, ...]:
    """The sentence about the question that was asked; returns the estimates of the same rows."""
    shown, estimates, lead = found.reliability, found.estimates, ""
    if asked.kind == "top-label" and asked.label is not None:
        mine = set_results.of(review, predicted_class, which=which, label=asked.label)
        if mine is None:
            return ()
        name = escape_markdown(review.classes[asked.label], 60)
        if mine.reliability is None:
            st.header(f"No row is predicted to be {name}.", anchor=False)
            return ()
        shown, estimates, lead = mine.reliability, mine.estimates, f"Predicted {name}: "
    sentence = reliability_finding(shown, headline_estimate(estimates), review.classes)
    if lead:
        sentence = in_sentence(sentence)
    st.header(lead + escape_markdown(sentence, 400), anchor=False)
    return estimates


def _curves(review: Review, which: Which, drawn: Drawn) -> Reliability | None:
    return set_results.of(
        review, set_reliability,
        which=which, kind=drawn.asked.kind, n_bins=drawn.n_bins, strategy=drawn.strategy,
        label=drawn.asked.label,
    )  # fmt: skip


def _diagram(review: Review, which: Which, drawn: Drawn) -> None:
    found = _curves(review, which, drawn)
    if found is not None:
        bins = f"{drawn.n_bins} bins of {STRATEGIES[drawn.strategy].lower()}"
        seen(
            *(review, "reliability", "Reliability", "reliability"),
            *(reliability_chart, found, review.classes),
            settings=f"{question_words(review, drawn.asked)}; {bins}; {which} set",
        )
        show(
            drawn_square(reliability_chart, found, review.classes, dark=is_dark()),
            key="reliability_diagram",
            of=f"{review.title} {which}",
            finding=False,  # the page's heading says it
        )


def _bin_by_bin(review: Review, which: Which, drawn: Drawn) -> None:
    """The points of the diagram as numbers."""
    found = _curves(review, which, drawn)
    if found is None:
        return
    bins = found.curves[0].table()
    filled = bins[bins["count"] > 0]
    show_bins(
        {"Says": [number_text(says, 0.02) for says in filled["mean_confidence"]]},
        zip(
            filled["observed_frequency"],
            filled["interval_low"],
            filled["interval_high"],
            strict=True,
        ),
        filled["count"].to_numpy(),
        key="reliability_bins_table",
        alt="The bins with stated confidence, observed share with interval, and rows",
    )


def further(
    review: Review, which: Which, drawn: Drawn, found: SetOverview
) -> dict[str, Callable[[], None]]:
    """What stands below the main picture, by title."""
    mirrored = drawn.asked.kind == "class" and len(review.classes) == 2
    classes = {} if mirrored else {"Class by class": partial(multiples, review, which, drawn)}
    return {
        **classes,
        "Right and wrong predictions": partial(scores_and_confusion, review, which, found),
        "Without bins": partial(differences, review, which, drawn),
        "Every estimate": partial(every_estimate, review, which),
    }


def _strategy() -> Strategy:
    return one_of(
        "Width of the bins",
        STRATEGIES,
        "uniform",
        key="reliability_strategy",
        help="Equal width shows where on the scale the model errs; equal rows gives every bin "
        "the same certainty.",
    )


def multiples(review: Review, which: Which, drawn: Drawn) -> None:
    """A diagram for each class."""
    kind: Kind = "top-label" if drawn.asked.kind == "confidence" else drawn.asked.kind
    with st.container(border=True):
        st.subheader(f"{MULTIPLES[kind]}", anchor=False)
        found = set_results.of(
            review, set_reliability,
            which=which, kind=kind, n_bins=min(drawn.n_bins, 15), strategy=drawn.strategy,
        )  # fmt: skip
        if found is None:
            return
        most, some = len(largest_curves(found)), sum(curve.n > 0 for curve in found.curves)
        if most < len(found.curves):
            st.caption(_panels(most, some, len(found.curves)))
        bins = f"{min(drawn.n_bins, 15)} bins of {STRATEGIES[drawn.strategy].lower()}"
        seen(
            *(review, "reliability_by_class", "Reliability class by class", "reliability"),
            *(reliability_by_class_chart, found, review.classes),
            settings=f"{MULTIPLES[kind]}; {bins}; {which} set",
        )
        show(
            drawn_square(reliability_by_class_chart, found, review.classes, dark=is_dark()),
            key="reliability_multiples",
            of=f"{review.title} {which}",
        )


def _panels(drawn: int, some: int, classes: int) -> str:
    """Which classes have a panel."""
    never = f"{classes - some:,} of {classes:,} classes have no rows here. " * (some < classes)
    most = f"The {drawn} classes with most rows of {some:,} are drawn. " * (drawn < some)
    return f"{never}{most}The CSV holds all."


def differences(review: Review, which: Which, drawn: Drawn) -> None:
    """Stated minus seen, added up over the rows."""
    with st.container(border=True):
        st.subheader("Stated minus seen, added up by stated probability", anchor=False)
        found = set_results.of(
            review, set_differences, which=which, kind=drawn.asked.kind, label=drawn.asked.label
        )
        if found is not None:
            show(
                drawn_once(cumulative_chart, found, review.classes, dark=is_dark()),
                key="reliability_differences",
                of=f"{review.title} {which}",
            )


def scores_and_confusion(review: Review, which: Which, found: SetOverview) -> None:
    """Scores of right and wrong predictions beside the confusion tables."""
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.subheader("Confidence of right and wrong predictions", anchor=False)
        titled = "scores", "Confidence of right and wrong predictions", "reliability"
        seen(review, *titled, scores_chart, found.scores, settings=f"{which} set")
        show(
            drawn_once(scores_chart, found.scores, dark=is_dark()),
            key="score_histogram",
            of=f"{review.title} {which}",
        )
    with right.container(border=True, height="stretch"):
        st.subheader("Which classes are confused", anchor=False)
        table = one_of(
            "Table", TABLES, "reverse", key="confusion_table", label_visibility="collapsed"
        )
        if table == "joint" and review.roles is not None and review.roles.weight is not None:
            whole, rows = found.confusion.joint.sum(), review.tables[which].n_rows
            st.caption(f"Cells add up the rows' weights: {whole:,.0f} over {rows:,} rows.")
        if (which, table) != (audit_settings(review).which, "reverse"):  # the audit has its counts
            seen(
                *(review, "confusion", "Predicted and true classes", "reliability"),
                *(confusion_chart, found.confusion, table, review.classes),
                settings=f"{TABLES[table].lower()}; {which} set",
            )
        show(
            drawn_once(confusion_chart, found.confusion, table, review.classes, dark=is_dark()),
            key="confusion",
            of=f"{review.title} {which}",
        )


def every_estimate(review: Review, which: Which) -> None:
    """The table of all estimates with full names."""
    with st.container(border=True):
        found = set_results.of(review, set_estimates, which=which, event=review.event)
        if found is None:
            return
        st.caption(
            "Expected by chance: what a perfectly calibrated model with these confidences and this "
            "number of rows would show on average. An error near it is no evidence."
        )
        show_estimates(
            found.estimates, key="estimates_table", of=f"{review.title} {which}", what="estimates"
        )
