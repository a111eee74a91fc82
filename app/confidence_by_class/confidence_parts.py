"""The parts of the page Confidence by class, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from app.shared import in_browser, set_results, tiles
from app.shared.charts import drawn_once, drawn_square, is_dark, show
from app.shared.emphasis import quiet
from app.shared.one_of import one_of, several_of
from app.shared.question_choice import Asked, choose_question
from app.shared.sections import sections
from app.shared.seen_charts import seen
from app.shared.tables import show_bins
from kdcal_core.calibration import CALIBRATORS, ConfidenceCurve, EventCurve, methods_by_class
from kdcal_core.charts import (
    Chart,
    bandwidth_chart,
    bandwidth_text,
    cited_in,
    confidence_curve_chart,
    confidence_words,
    growth_chart,
    losses_chart,
    methods_chart,
    noise_chart,
    shrinkage_words,
)
from kdcal_core.diagnostics import (
    AnchorKind,
    Estimate,
    HistogramAnchor,
    headline_estimate,
    reliability_finding,
)
from kdcal_core.evaluation import Losses
from kdcal_core.review import Review, Which, drawn_words
from kdcal_core.tasks import (
    ClassCurves,
    ClassHistograms,
    PredictedClass,
    SetOverview,
    class_curves,
    class_growth,
    class_halves,
    class_histograms,
    class_method,
    largest_classes,
    method_losses,
    predicted_class,
    set_overview,
)
from kdcal_core.text import counted as counted_words
from kdcal_core.text import escape_markdown, in_sentence, range_text

MAX_PANELS = 12
MANY_ROWS = 100_000

RULES = {
    "mon2": "b_mon2: one dip allowed",
    "mon": "b_mon: never falls",
    "mon4": "b_mon4: two dips allowed",
    "loo": "Leave-one-out",
    "number": "A number",
}
RULE_WORDS = {
    "mon2": "The smallest bandwidth whose curve has at most one dip, as Salamon et al. advise.",
    "mon": "The smallest bandwidth whose curve never falls. Safest where rows are few.",
    "mon4": "The smallest bandwidth with at most two dips. Follows more detail, and more noise.",
    "loo": "The bandwidth that best predicts each row from the others. Usually too wiggly: compare "
    "it with the histogram first.",
    "number": "One bandwidth for every class, in units of the score.",
}
DEFAULT_METHODS = ("uncalibrated", "histogram", "kde_mon2", "sts", "tswa", "cwoc")

ADVICE = """
* **Look first.** Salamon et al. advise against using any calibrator without looking at its curve
  (section XII). A curve that leaves its histogram is wrong, however good its average score.
* **Fresh rows only.** Calibrate on rows that were not used to train or select the model; on other
  rows the result is as optimistic as the model.
* **Few rows.** Errors with high scores and hits with low scores are rare, and the printed curves
  wiggle there and reach 0 or 1 (section XIII.D). Here all methods of the paper are therefore shrunk
  towards one temperature for all classes, more strongly if they have fewer rows. The setting
  `shrinkage=none` gives the methods as printed.
* **The mix of classes matters more than the method.** Confidence holds for the class frequencies
  of the calibration set. If those of future rows differ, its error is larger than the differences
  between methods. Count the model's predictions in use, and calibrate again with rows of that mix
  (section XIII.B).
* **No unbiased error on the fitting rows.** A method with fitted parameters cannot be judged on
  the rows on which it was fitted (section VIII). Use a second set or cross-fitting.
* **Class by class.** Overall accuracy hides classes whose predictions are mostly wrong (section
  II). Raw scores are not confidences, even when they lie between 0 and 1.
* **Calibration does little harm where it is not needed**: for a calibrated model the curve is the
  diagonal (section VI).
"""


FIT: Which = "calibration"  # the set on which curves and methods are fitted


@dataclass(frozen=True, eq=False)
class View:
    """What the page shows: one predicted class, or of two classes the probability of the event.

    Attributes
    ----------
    review : Review
    overview : SetOverview
        Of the event, or of the predictions.
    label : int
        The event, or the predicted class.
    kind : {"class", "top-label"}
    """

    review: Review
    overview: SetOverview
    label: int
    kind: AnchorKind

    @property
    def of_event(self) -> bool:
        return self.kind == "class"

    @property
    def name(self) -> str:
        """The name of the class. Untrusted text."""
        return self.review.classes[self.label]

    @property
    def panels(self) -> list[int]:
        """The classes in panels: the event, or those most often predicted, in their own order."""
        if self.of_event:
            return [self.label]
        return list(map(int, largest_classes(self.overview.confusion.joint, MAX_PANELS)))

    @property
    def labels(self) -> list[int]:
        """The classes of one computation: those of the panels, and the chosen one."""
        panels = self.panels
        return panels if self.label in panels else [*panels, self.label]

    @property
    def at(self) -> int:
        """The place of the chosen class among the labels."""
        return self.labels.index(self.label)


def shown(review: Review) -> View | None:
    """The question and its class; None while a job measures the rows."""
    asked = [Asked("top-label", None)]
    if review.event_class is not None:
        asked.append(Asked("class", review.event_class))
    event = choose_question(review, "confidence", asked, width=320).event
    overview = set_results.of(review, set_overview, which=FIT, event=event)
    if overview is None:
        return None
    if event is not None:
        return View(review, overview, event, "class")
    return View(review, overview, _choose_class(review, overview), "top-label")


def _choose_class(review: Review, overview: SetOverview) -> int:
    """The predicted class to show, initially the one with most false positives."""
    joint = overview.confusion.joint
    predicted = joint.sum(axis=0)
    wrong = predicted - np.diag(joint)
    label: int = st.selectbox(
        "Predicted class",
        options=range(len(review.classes)),
        index=int(np.argmax(wrong)),
        format_func=lambda at: (
            f"{review.classes[at][:60]} ({predicted[at]:,.0f} predicted, {wrong[at]:,.0f} wrong)"
        ),
        key=f"confidence_label_{review.id}",
        persist_state="session",
        label_visibility="collapsed",
        width=380,
    )
    return label


@dataclass(frozen=True)
class CurveSettings:
    """How the curve is smoothed, and the histogram under it."""

    bandwidth: str | float
    n_bins: int
    rows: Which


def settings(review: Review) -> CurveSettings:
    """The settings of the curve, in one fold."""
    with st.popover("Curve and histogram", icon=":material/tune:", type=quiet()):
        bandwidth = _bandwidth()
        n_bins = st.slider("Histogram bins", 5, 25, 10, key="anchor_bins", persist_state="session")
        return CurveSettings(bandwidth, n_bins, _histogram_rows(review))


def curve(view: View, chosen: CurveSettings) -> bool:
    """The page's finding, Conf_KDE over its histogram, and the estimates beside it.

    Returns whether they are there: not while a job fits the curves.
    """
    sentence = st.container()
    picture, beside = tiles.answer(square=True)
    with picture:
        curves = _curves(view, chosen.bandwidth)
        anchors = _histograms(view, chosen.rows, chosen.n_bins)
    if curves is None or anchors is None:
        about = "Class" if view.of_event else "Predicted"
        sentence.header(f"{about} {escape_markdown(view.name, 60)}", anchor=False)
        return False
    rule = str(chosen.bandwidth)
    found, anchor = _of_rule(view, curves, rule)[view.at], anchors.anchors[view.at]
    with sentence:
        estimates = _finding(view, found)
    with beside:
        tiles.estimate_column(estimates)
        _about(view, found, curves.notes[rule])
        if not in_browser.is_narrow():  # there it would stand below the picture
            _bin_by_bin(anchor)
    method = f"kde_{rule}" if rule in RULES else "kde_mon2"
    seen(
        *(view.review, "confidence", "Confidence by class", "confidence_by_class"),
        *(confidence_curve_chart, found.thinned(), anchor, view.name),
        method=method,
        settings=f"bandwidth {RULES.get(rule, rule)}; histogram of {chosen.n_bins} bins of the "
        f"{chosen.rows} set",
    )
    with picture:
        show(
            drawn_square(
                confidence_curve_chart,
                found,
                anchor,
                view.name,
                dark=is_dark(),
                method=method,
            ),
            key="confidence_curve",
            of=view.review.title,
            finding=False,  # the page's heading shows it
        )
    return True


def _bin_by_bin(anchor: HistogramAnchor) -> None:
    """The histogram under the curve as numbers."""
    bins = anchor.table()
    filled = bins[bins["count"] > 0]
    show_bins(
        {
            "Says": [
                range_text(*ends)
                for ends in zip(filled["bin_low"], filled["bin_high"], strict=True)
            ]
        },
        zip(filled["confidence"], filled["interval_low"], filled["interval_high"], strict=True),
        filled["count"].to_numpy(),
        key="confidence_bins_table",
        room=(180, 460),  # below what is said about the curve
        alt="The bins of the histogram with the share that is seen, its interval, and rows",
    )


def _about(view: View, found: ConfidenceCurve, notes: Sequence[tuple[str, ...]]) -> None:
    """On which rows the curve was fitted and how, and what to mind about it."""
    others = "" if not view.review.has_evaluation else ", on which the curve is fitted"
    counts = escape_markdown(confidence_words(found, view.name), 600)
    st.caption(f"{counts} Calibration set{others}.")
    st.caption(f"{bandwidth_text(found)} {shrinkage_words(found)}")
    for label in (0, 1) if view.of_event else (view.label,):
        _notes(view.review.classes[label], notes[_place(view, label)])


def _curves(view: View, bandwidth: str | float) -> ClassCurves | None:
    """Curves of the labels; of both classes for an event."""
    searched = "mon2" if bandwidth in ("mon", "mon4") else bandwidth  # from the same search
    labels = [0, 1] if view.of_event else view.labels
    return set_results.of(view.review, class_curves, which=FIT, labels=labels, bandwidth=searched)


def _place(view: View, label: int) -> int:
    """The place of a class's curve among those of `_curves`."""
    return label if view.of_event else view.labels.index(label)


def _of_rule(view: View, curves: ClassCurves, rule: str) -> Sequence[ConfidenceCurve]:
    """The curves of the labels with one bandwidth rule."""
    found = curves.curves[rule]
    if not view.of_event:
        return found
    return [EventCurve.of(found[view.label], found[1 - view.label])]


def _histograms(view: View, which: Which, n_bins: int = 10) -> ClassHistograms | None:
    return set_results.of(
        view.review, class_histograms,
        which=which, labels=view.labels, n_bins=n_bins, kind=view.kind,
    )  # fmt: skip


def _finding(view: View, found: ConfidenceCurve) -> tuple[Estimate, ...]:
    """The sentences about the event or the class; returns the estimates of its rows."""
    counts = confidence_words(found, view.name)
    mine: SetOverview | PredictedClass | None = view.overview
    if not view.of_event:
        mine = set_results.of(view.review, predicted_class, which=FIT, label=view.label)
    if mine is None or mine.reliability is None:
        st.header(escape_markdown(counts, 600), anchor=False)
        return () if mine is None else mine.estimates
    estimate = headline_estimate(mine.estimates)
    sentence = reliability_finding(mine.reliability, estimate, view.review.classes)
    if not view.of_event:
        sentence = f"Predicted {view.name}: {in_sentence(sentence)}"
    st.header(escape_markdown(sentence, 600), anchor=False)
    return mine.estimates


def _bandwidth() -> str | float:
    rule: str = st.radio(
        "Bandwidth",
        options=list(RULES),
        format_func=RULES.__getitem__,
        key="bandwidth_rule",
        persist_state="session",
    )
    st.caption(RULE_WORDS[rule])
    if rule != "number":
        return rule
    return float(
        st.number_input(
            "Bandwidth in score units",
            min_value=0.001,
            max_value=1.0,
            value=0.05,
            step=0.005,
            format="%.3f",
            key="bandwidth_number",
            persist_state="session",
        )
    )


def _histogram_rows(review: Review) -> Which:
    if not review.has_evaluation:
        return FIT
    return one_of(
        "Histogram from",
        {"calibration": "Calibration", "evaluation": "Evaluation"},
        "calibration",
        key="anchor_rows",
        help="The curve is fitted on the calibration set. The evaluation set tests it on fresh "
        "rows.",
    )


def _notes(name: str, notes: tuple[str, ...]) -> None:
    for note in notes:
        st.warning(
            f"Class **{escape_markdown(name)}** {escape_markdown(note, 400).lstrip()}",
            icon=":material/visibility:",
        )


def bandwidths(view: View, *, fitted: bool) -> None:
    """b_mon2 against b_mon for every class, or for the event, once the curves are fitted."""
    if not fitted:
        st.caption("The bandwidth rules follow once the curve above is fitted.")
        return
    with st.container(border=True):
        by_class = "" if view.of_event else ", class by class"
        st.subheader(f"Two bandwidth rules{by_class}", anchor=False)
        curves = _curves(view, "mon2")
        counted = _histograms(view, FIT)
        if curves is None or counted is None:
            return
        _say_which(view)
        at = [view.labels.index(one) for one in view.panels]
        recommended, monotone = (
            [_of_rule(view, curves, rule)[i] for i in at] for rule in ("mon2", "mon")
        )
        anchors = [counted.anchors[i] for i in at]
        thin = [[one.thinned() for one in curves] for curves in (recommended, monotone)]
        titled = "bandwidths", "Two bandwidth rules"
        _seen(view, *titled, bandwidth_chart, *thin, anchors, view.review.classes)
        show(
            drawn_square(
                bandwidth_chart, recommended, monotone, anchors, view.review.classes, dark=is_dark()
            ),
            key="bandwidths",
            of=view.review.title,
        )


def _say_which(view: View) -> None:
    if not view.of_event and len(view.panels) < len(view.review.classes):
        st.caption(
            f"The {MAX_PANELS} most often predicted of {len(view.review.classes):,} classes."
        )


def methods(view: View) -> None:
    """The chosen methods over one histogram, and their losses by class."""
    with st.container(border=True):
        st.subheader("Methods compared", anchor=False)
        chosen = several_of(
            "Methods",
            {key: CALIBRATORS[key].label for key in methods_by_class()},
            default=list(DEFAULT_METHODS),
            key="methods",
            persist_state="session",
            help="Every calibrator is fitted on the calibration set with its default settings.",
        )
        if not chosen:
            st.caption("Choose at least one method.")
            return
        if drawn := drawn_words(view.review, FIT):
            st.caption(f"Fitted on {drawn}")
        sections(
            "methods_sections",
            {
                "Their confidence": partial(_overlay, view, chosen),
                "Mean log loss by class": partial(_log_loss, view, chosen),
            },
        )


def _log_loss(view: View, chosen: list[str]) -> None:
    if view.of_event:
        st.caption(
            "For two classes the log loss of a row is the same for the event and for the "
            "predicted class. Below all rows, it is divided by the predicted class."
        )
    losses = _compared(view.review, chosen)
    if losses is not None:
        _losses(view.review, losses, chosen)


def _compared(review: Review, chosen: list[str]) -> Losses | None:
    """The losses of the methods: computed at once for few rows, otherwise as a job on request."""
    n_rows = review.sets[FIT].n_rows
    rows = drawn_words(review, FIT) or f"{n_rows:,} rows"

    def offer() -> bool:
        if n_rows <= MANY_ROWS:
            return True
        st.caption(
            f"Fitting and cross-fitting {len(chosen)} methods takes a minute or more with {rows}. "
            "You can keep using the app meanwhile."
        )
        return st.button("Compare the methods", key="compare_methods", icon=":material/play_arrow:")

    return set_results.of(
        review, method_losses, offer=offer, methods=chosen, with_evaluation=review.has_evaluation
    )


def _overlay(view: View, chosen: list[str]) -> None:
    asked = {"which": FIT, "labels": view.labels, "kind": view.kind}
    fits = set_results.all_of(view.review, class_method, [{**asked, "key": key} for key in chosen])
    counted = _histograms(view, FIT)
    if fits is None or counted is None:
        return
    points = {
        key: (fit.points[view.at].score, fit.points[view.at].confidence)
        for key, fit in zip(chosen, fits, strict=True)
    }
    curves = [key for key, fit in zip(chosen, fits, strict=True) if fit.is_curve]
    picture, legend = st.columns([11, 5], gap="medium")
    with picture:
        anchor = counted.anchors[view.at]
        show(
            drawn_once(methods_chart, anchor, points, curves, view.name, dark=is_dark()),
            key="methods_overlay",
            of=view.review.title,
        )
    with legend:
        for key in chosen:
            entry = CALIBRATORS[key]
            st.caption(f"**{entry.label}**: {entry.description} ({entry.reference})")


def _losses(review: Review, losses: Losses, chosen: list[str]) -> None:
    refitted, crossed, evaluated = (losses.resubstitution, losses.cross_fitted, losses.evaluation)
    filled, hollow = (crossed, refitted) if evaluated is None else (evaluated, crossed)
    said = f"Filled marks: {filled.rows}. Hollow marks: {hollow.rows}."
    st.caption(said)
    titled = "losses", "Mean log loss by class and method", "confidence_by_class"
    seen(
        *(review, *titled, losses_chart),
        *(filled, hollow, chosen, review.classes),
        settings=counted_words(len(chosen), "method"),
        finding=said,
    )
    show(
        drawn_once(losses_chart, filled, hollow, chosen, review.classes, dark=is_dark()),
        key="losses",
        of=review.title,
    )


def _seen(
    view: View, key: str, title: str, make: Callable[..., Chart], *args: Any, **kwargs: Any
) -> None:
    """Note a chart of the calibration set for an audit."""
    drawn = f", seed {kwargs['seed']}" if "seed" in kwargs else ""
    settings = f"calibration set{drawn}"
    page = "confidence_by_class"
    seen(view.review, key, title, page, make, *args, settings=settings, **kwargs)


def noise(view: View) -> None:
    """What chance does to the picture: two halves of the rows, or more and more of them."""
    seed = st.session_state.setdefault("noise_seed", 0)
    with st.container(border=True):
        title, again = st.columns([4, 1], vertical_alignment="center")
        title.subheader("How much of it is noise?", anchor=False)
        if again.button(
            "Split again", key="noise_again", icon=":material/casino:", width="stretch"
        ):
            seed += 1
            st.session_state["noise_seed"] = seed
        how = one_of("Rows", _NOISE, "halves", key="noise_how", label_visibility="collapsed")
        (_halves if how == "halves" else _growth)(view, seed)


_NOISE = {"halves": "Two halves", "growth": "More and more rows"}


def _halves(view: View, seed: int) -> None:
    """Histograms of two halves of the rows."""
    found = set_results.of(
        view.review, class_halves, which=FIT, labels=view.panels, seed=seed, kind=view.kind
    )
    if found is None:
        return
    _say_which(view)
    titled = "noise", "Two halves of the rows"
    _seen(view, *titled, noise_chart, found.halves, view.review.classes, seed=seed)
    show(
        drawn_square(noise_chart, found.halves, view.review.classes, dark=is_dark(), seed=seed),
        key="noise",
        of=view.review.title,
    )


def _growth(view: View, seed: int) -> None:
    """The curve of the chosen class on a quarter, half and all of the rows."""
    labels = [view.label, 1 - view.label] if view.of_event else [view.label]
    found = set_results.of(
        view.review, class_growth, which=FIT, labels=labels, bandwidth="mon2", seed=seed
    )
    if found is None:
        return
    curves = [EventCurve.of(*one) if view.of_event else one[0] for one in found.curves]
    show(
        drawn_square(growth_chart, curves, view.name, dark=is_dark()),
        key="growth",
        of=view.review.title,
    )


def advice() -> None:
    """The paper's advice on using a calibrator."""
    with st.container(border=True):
        st.markdown(ADVICE)
        st.caption(f"Summarised from {cited_in(ADVICE)}")
