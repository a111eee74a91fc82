"""The parts of the Reliability page, from top to bottom."""

from __future__ import annotations

from typing import Literal

import pandas as pd
import streamlit as st

from app.shared import set_results
from app.shared.charts import chart, csv_button, drawn_once, estimate_row, is_dark
from app.shared.numbers import interval, number
from kdcal_core.charts import (
    confusion_figure,
    reliability_figure,
    score_histogram_figure,
    small_multiples,
    words,
)
from kdcal_core.diagnostics import (
    Kind,
    Reliability,
    Strategy,
    confusion_finding,
    reliability_finding,
    telling,
)
from kdcal_core.review import Review, Which
from kdcal_core.tasks import SetOverview, set_estimates, set_reliability
from kdcal_core.text import escape_markdown

MAX_PANELS = 20

KINDS: dict[Kind, str] = {
    "confidence": "All predictions",
    "top-label": "Predicted class",
    "class": "One class against the rest",
}
KIND_QUESTIONS: dict[Kind, str] = {
    "confidence": "When the model is this sure of its prediction, how often is it right?",
    "top-label": "The same question for the rows that were predicted to be one class. Paper 002 "
    "advises this one: a model can be right overall and wrong class by class.",
    "class": "When the model gives a class this probability, predicted or not, how often is the "
    "row of that class?",
}
STRATEGIES: dict[Strategy, str] = {"uniform": "Equal width", "quantile": "Equal rows"}
TABLES: dict[Literal["joint", "confusion", "reverse"], str] = {
    "joint": "Counts",
    "confusion": "By true class",
    "reverse": "By predicted class",
}

DIAGRAM = r"""
**Across**: what the model states. **Up**: how often it is right. On the dashed diagonal the two
agree; points below it are over-confident, points above it under-confident. "Says 0.91, sees 0.83"
means: stated confidence 0.91 on average, right in 83% of those rows, with its 95% interval.

**Points** are bins: the mean stated confidence and the observed share, with its exact
(Clopper-Pearson) 95% interval. Points from fewer than 100 rows are pale, from fewer than 20 paler.

**Grey boxes** are the consistency band: where the point of a perfectly calibrated model would
fall in 95% of all samples of this size. A point inside its box is no evidence against the model.

**The line** is a kernel average with its 95% band, **the dotted steps** the isotonic (CORP)
curve: neither depends on the bins. **The bars below** count the rows of each bin.

A bin is $(a, b]$, the first closed at 0 (paper 002 Eq. 5).
"""
MULTIPLES = """
One diagram a class on one scale, with its number of rows. Grey boxes hold the points of a
perfectly calibrated model in 95% of all samples. Paper 002 (sections III and VI) reads them by
predicted class: only rows that were given the class count, right ones against wrong ones. Under
the question "One class against the rest" every row counts in every diagram.
"""
HISTOGRAM = """
How sure the model was where it was right (above) and where it was wrong (below). The two count
axes differ, because errors are rarer. Paper 002 section V takes confidence from these two: the
share of right among all rows at one score.
"""
CONFUSION = r"""
Rows of the table are true classes, columns predicted ones (paper 002 Fig. 1).

* **Counts**: how many rows there are; coloured by the square root, so that rare errors show.
* **By true class**: each row adds to 1. On the diagonal, the share of a class that is found.
* **By predicted class** (reverse confusion): each column adds to 1. On the diagonal
  $\text{Conf}_1$, the probability that a prediction of this class is right (Eq. 1). It is what a
  user of the prediction needs, and it is often the lower of the two.
"""


def finding(found: SetOverview) -> None:
    """The page's one sentence and its row of estimates."""
    sentence = reliability_finding(found.reliability, telling(found.estimates))
    st.subheader(escape_markdown(sentence, 400), anchor=False)
    estimate_row(found.estimates)


def diagram(review: Review, which: Which) -> None:
    """The main picture with its settings beside it."""
    with st.container(border=True):
        picture, settings = st.columns([3, 1.3], gap="medium")
        with settings:
            kind = _kind()
            label = _label(review) if kind != "confidence" else None
            n_bins = st.slider("Bins", 5, 50, 15, key="reliability_bins", persist_state="session")
            strategy = _strategy()
        with picture:
            found = set_results.of(
                review, set_reliability,
                which=which, kind=kind, n_bins=n_bins, strategy=strategy, label=label,
            )  # fmt: skip
            if found is not None:
                _drawing(review, which, found)
    _multiples(review, which, kind, n_bins, strategy)


def _drawing(review: Review, which: Which, found: Reliability) -> None:
    curve = found.curves[0]
    across, up = _titles(found.kind)
    chart(
        drawn_once(reliability_figure, curve, dark=is_dark(), x_title=across, y_title=up),
        key="reliability_diagram",
        takeaway=_takeaway(found, review.classes),
        how_to_read=DIAGRAM,
        alt=words.reliability_alt(curve),
        table=curve.table,
        name=f"{review.title} {which} reliability {found.kind}",
    )


def _takeaway(found: Reliability, classes: tuple[str, ...]) -> str:
    """The diagram's finding, unless it is the one that heads the page."""
    if found.kind == "confidence":
        return ""
    return reliability_finding(found, class_names=classes)


def _kind() -> Kind:
    kind: Kind = st.radio(
        "Question",
        options=list(KINDS),
        format_func=KINDS.__getitem__,
        key="reliability_kind",
        persist_state="session",
    )
    st.caption(KIND_QUESTIONS[kind])
    return kind


def _label(review: Review) -> int:
    label: int = st.selectbox(
        "Class",
        options=range(len(review.classes)),
        format_func=lambda at: review.classes[at][:80],
        key=f"reliability_label_{review.id}",
        persist_state="session",
    )
    return label


def _strategy() -> Strategy:
    strategy: Strategy = st.segmented_control(
        "Width of the bins",
        options=list(STRATEGIES),
        default="uniform",
        required=True,
        format_func=STRATEGIES.__getitem__,
        key="reliability_strategy",
        persist_state="session",
        help="Equal width shows where on the scale the model errs; equal rows gives every bin "
        "the same certainty.",
    )
    return strategy


def _titles(kind: Kind) -> tuple[str, str]:
    if kind == "class":
        return "Stated probability", "How often it is the class"
    return "Stated confidence", "How often it is right"


def _multiples(review: Review, which: Which, kind: Kind, n_bins: int, strategy: Strategy) -> None:
    kind = "top-label" if kind == "confidence" else kind
    with st.container(border=True):
        st.markdown(f"**Class by class: {KINDS[kind].lower()}**")
        found = set_results.of(
            review, set_reliability,
            which=which, kind=kind, n_bins=min(n_bins, 15), strategy=strategy, smooth=False,
        )  # fmt: skip
        if found is None:
            return
        some = [curve for curve in found.curves if curve.n]
        curves = sorted(some, key=lambda curve: -curve.n)[:MAX_PANELS]
        curves.sort(key=lambda curve: curve.label or 0)
        across, up = _titles(kind)
        if len(curves) < len(found.curves):
            st.caption(_drawn(len(curves), len(some), len(found.curves)))
        chart(
            drawn_once(
                small_multiples,
                curves,
                review.classes,
                dark=is_dark(),
                x_title=across,
                y_title=up,
            ),
            key="reliability_multiples",
            takeaway=reliability_finding(found, class_names=review.classes),
            how_to_read=MULTIPLES,
            alt=" ".join(words.reliability_alt(curve) for curve in curves[:5]),
            table=lambda: _tables(found, review.classes),
            name=f"{review.title} {which} reliability by class",
        )


def _drawn(drawn: int, some: int, classes: int) -> str:
    """Which classes have a panel."""
    never = f"{classes - some:,} of {classes:,} classes have no rows here. " * (some < classes)
    most = f"The {drawn} classes with most rows of {some:,} are drawn. " * (drawn < some)
    return f"{never}{most}The CSV holds all."


def _tables(found: Reliability, classes: tuple[str, ...]) -> pd.DataFrame:
    named = [
        curve.table().assign(label=classes[curve.label] if curve.label is not None else "")
        for curve in found.curves
    ]
    return pd.concat(named, ignore_index=True)


def scores_and_confusion(review: Review, which: Which, found: SetOverview) -> None:
    """Scores of right and wrong predictions beside the confusion tables."""
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.markdown("**How sure it was**")
        histogram = found.scores
        chart(
            drawn_once(score_histogram_figure, histogram, dark=is_dark()),
            key="score_histogram",
            takeaway=words.histogram_words(histogram),
            how_to_read=HISTOGRAM,
            alt=words.histogram_words(histogram),
            table=lambda: pd.DataFrame(
                {
                    "bin_low": histogram.edges[:-1],
                    "bin_high": histogram.edges[1:],
                    "right": histogram.correct,
                    "wrong": histogram.wrong,
                }
            ),
            name=f"{review.title} {which} scores",
        )
    with right.container(border=True, height="stretch"):
        st.markdown("**What is taken for what**")
        table: Literal["joint", "confusion", "reverse"] = st.segmented_control(
            "Table",
            options=list(TABLES),
            default="reverse",
            required=True,
            format_func=TABLES.__getitem__,
            key="confusion_table",
            persist_state="session",
            label_visibility="collapsed",
        )
        tables = found.confusion
        chart(
            drawn_once(confusion_figure, tables, table, review.classes, dark=is_dark()),
            key="confusion",
            takeaway=confusion_finding(tables, review.classes),
            how_to_read=CONFUSION,
            alt=words.confusion_alt(tables, table, review.classes),
            table=lambda: pd.DataFrame(getattr(tables, table), columns=list(review.classes)).assign(
                true_class=list(review.classes)
            ),
            name=f"{review.title} {which} confusion {table}",
        )


def every_estimate(review: Review, which: Which) -> None:
    """The table of all estimates with full names."""
    with st.expander(
        "Every estimate, with its full name", key="every_estimate", on_change="rerun"
    ) as shown:
        if not shown.open:
            return
        found = set_results.of(review, set_estimates, which=which)
        if found is None:
            return
        estimates = found.estimates
        table = pd.DataFrame(
            {
                "Estimate": [e.name for e in estimates],
                "Value": [number(e) for e in estimates],
                "Interval": [interval(e) for e in estimates],
                "Expected by chance": [
                    number(e, e.expected) if e.expected is not None else "" for e in estimates
                ],
                "Rows": [e.n for e in estimates],
                "Made by": [e.interval for e in estimates],
            }
        )
        st.caption(
            "Expected by chance: what a perfectly calibrated model with these confidences and "
            "this number of rows would show on average. An error near it is no evidence."
        )
        st.dataframe(
            table,
            hide_index=True,
            key="estimates_table",
            column_config={"Rows": st.column_config.NumberColumn(format="localized")},
            alt="Every estimate with its value, interval and the value expected by chance",
        )
        csv_button(
            lambda: pd.DataFrame([vars(e) for e in estimates]),
            key="estimates_csv",
            name=f"{review.title} {which} estimates",
        )
