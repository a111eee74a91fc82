"""The parts of the page Confidence by class, from top to bottom."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets import results, session, waiting
from app.widgets.charts import PAPER_002, chart, drawn_once, estimate_row, is_dark
from kdcal_core.calibration import BY_CLASS, CALIBRATORS, ConfidenceCurve
from kdcal_core.data import ScoredSet, escape_markdown
from kdcal_core.diagnostics import reliability_finding, telling
from kdcal_core.figures import (
    bandwidth_figure,
    confidence_curve_figure,
    losses_figure,
    method_cloud,
    noise_figure,
    words,
)
from kdcal_core.review import Review

MAX_PANELS = 20
MANY_ROWS = 100_000

RULES = {
    "mon2": "b_mon2: one dip allowed",
    "mon": "b_mon: never falls",
    "mon4": "b_mon4: two dips allowed",
    "loo": "Leave-one-out",
    "number": "A number",
}
RULE_WORDS = {
    "mon2": "The smallest bandwidth whose curve has at most one dip. The paper's advice.",
    "mon": "The smallest bandwidth whose curve never falls. Safest where rows are few.",
    "mon4": "The smallest bandwidth with at most two dips. Follows more detail, and more noise.",
    "loo": "The bandwidth that best foretells each row from the others. Usually too wiggly to "
    "believe: compare it with the histogram before you do.",
    "number": "One bandwidth for every class, in units of the score.",
}
# the core counts classes and leaves their names to the screen
_CLASS_NOTE = re.compile(r"Class (\d+):? (.*)", re.DOTALL)
DEFAULT_METHODS = ("uncalibrated", "histogram", "kde_mon2", "sts", "tswa", "cwoc")

CURVE = r"""
Only rows that were **predicted** to be this class count: the right ones are true positives, the
wrong ones false positives (paper 002 Eqs. 3 and 4).

**Below**: the two densities of scores, each row blurred by a normal kernel of bandwidth $b$ and
scaled by its number of rows (Eqs. 7 and 8). **Above**: green as a share of green plus orange,

$$\text{Conf}(S)=\frac{K_{TP}(S)\,|TP|}{K_{TP}(S)\,|TP|+K_{FP}(S)\,|FP|}\qquad\text{(Eq. 9)}$$

**Dashed strokes** are the histogram of the same quantity, which assumes nothing (Eq. 5), pale
where rows are few; the boxes are its exact 95% intervals. The lowest bar is dotted: below the
first rows the curve is only the kernels' tails, so it is held constant there (section XIII.D).
The curve is thin where rows are few and a hairline where there are none.
**Where curve and boxes part, believe the boxes.**
"""
BANDWIDTHS = r"""
Solid: $b_{mon2}$, the smallest bandwidth whose curve changes direction at most twice (paper 002
Eq. 20). Dotted: $b_{mon}$, the smallest whose curve never falls (Eq. 19). Dashes: the histogram.

Where both lie together the choice does not matter. Where they part, look at the histogram: a dip
that it does not show is noise, and $b_{mon}$ is the better choice.
"""
METHODS = r"""
All methods over one histogram. Those that use only the score are lines. Those that use the whole
probability vector (temperatures, isotonic, sigmoid) give rows of equal score different
confidences: they are clouds, of rows of the calibration set (paper 002 Figs. 10 to 12).

* **Temperatures.** STS has one for all classes, which suits classes that err alike and fails
  where they do not (sections IX and XIV). CSTS has one a class; TSwA adds an award for the class
  that was predicted (Eq. 18). An award may move the largest entry elsewhere: the prediction
  stays what the model said (section XI).
* **Cum** is the probability of being right at *this score or better* (Eq. 11), not at this
  score. At low scores it promises too much; Cum+ and CwOC confine it to scores above a cutoff.
"""
LOSSES = r"""
Mean of $-\log$ of the confidence given to what happened: right or wrong (paper 002 Eq. 14), by
predicted class (Fig. 17), with its 95% interval. Lower is better; the axis is logarithmic.

A method's loss on the rows it was fitted on flatters it, the more so the more it can bend. That
is why rows it has not seen are shown: the evaluation set, or the calibration set cross-fitted
(fitted on four fifths, judged on the last, five times). **Hollow marks** are the second kind of
rows named above the chart; how far filled and hollow marks lie apart shows the noise.
"""
NOISE = """
The rows are cut in two at random and a histogram is made of each half (paper 002 Fig. 4). Both
halves come from one model and one source, so all that differs between them is noise. The noise of
all rows together is smaller by a factor of about 1.4. A calibrator that follows features of this
size follows noise.
"""
ADVICE = """
* **Look first.** Paper 002 advises against using any calibrator whose curve nobody has looked at
  (section XII). A curve that leaves its histogram is wrong, however good its average score.
* **Fresh rows only.** Calibrate on rows the model was not trained or selected on; on others
  the result is as flattered as the model.
* **Few rows.** High-scored errors and low-scored hits are rare, and there curves wiggle (section
  XIII.D). Where a class has few of either, use Conf1 (one number for the class), b_mon, or
  cumulative confidence with a cutoff.
* **The mix of classes matters more than the method.** Confidence holds for the class frequencies
  of the calibration set. If the rows to come have others, it is off by more than the methods
  differ. Keep count of what the model predicts in use, and calibrate again with rows of that mix
  (section XIII.B).
* **No unbiased error on the fitting rows.** A method with fitted parameters cannot be judged on
  the rows it was fitted on (section VIII); that takes a second set or cross-fitting.
* **Class by class.** Overall accuracy hides classes whose predictions are mostly wrong (section
  II). Raw scores are not confidences, even when they lie between 0 and 1.
* **Where calibration is not needed it does little harm**: for a calibrated model the curve is
  the diagonal (section VI).
"""


def choose_class(review: Review, fit_set: ScoredSet) -> int:
    """The predicted class to look at: at first the one with most false positives."""
    joint = results.confusion_of(fit_set).joint
    predicted = joint.sum(axis=0)
    wrong = predicted - np.diag(joint)
    label: int = st.selectbox(
        "Predicted class",
        options=range(len(fit_set.classes)),
        index=int(np.argmax(wrong)),
        format_func=lambda at: (
            f"{fit_set.classes[at][:60]} ({predicted[at]:,.0f} predicted, {wrong[at]:,.0f} wrong)"
        ),
        key=f"confidence_label_{review.id}",
        persist_state="session",
        help="The class with most wrong predictions is shown first.",
    )
    return label


def curve(review: Review, fit_set: ScoredSet, eval_set: ScoredSet | None, label: int) -> None:
    """The page's finding and main picture: Conf_KDE over its histogram."""
    name = fit_set.classes[label]
    finding = st.container()
    with st.container(border=True):
        picture, settings = st.columns([3, 1.3], gap="medium")
        with settings:
            bandwidth = _bandwidth()
            n_bins = st.slider(
                "Histogram bins", 5, 25, 10, key="anchor_bins", persist_state="session"
            )
            shown = _histogram_rows(fit_set, eval_set)
        found = results.curve_of(fit_set, bandwidth, label)
        anchor = results.anchor_of(shown, label, n_bins)
        with settings:
            if np.isfinite(found.bandwidth):
                st.caption(f"Bandwidth of this class: {found.bandwidth:.4f}")
            _notes(fit_set, bandwidth, label)
        with picture:
            chart(
                drawn_once(confidence_curve_figure, found, anchor, dark=is_dark()),
                key="confidence_curve",
                takeaway="",
                how_to_read=CURVE,
                alt=words.confidence_alt(found, name),
                table=found.table,
                name=f"{review.title} confidence {name}",
            )
    with finding:
        _finding(fit_set, found, label)
        if eval_set is not None:
            st.caption("Sentence and tiles: the calibration set, on which the curve is fitted.")


def _finding(fit_set: ScoredSet, found: ConfidenceCurve, label: int) -> None:
    """The sentence on this class and the estimates over the rows predicted to be it."""
    name = fit_set.classes[label]
    mine = results.predicted_as(fit_set, label)
    sentence = words.confidence_words(found, name)
    if mine.n_rows:
        estimates = results.summary_of(mine)
        overall = results.reliability_of(mine, "confidence", n_bins=15, strategy="uniform")
        sentence += f" {reliability_finding(overall, telling(estimates))}"
    st.subheader(escape_markdown(sentence, 600), anchor=False)
    if mine.n_rows:
        estimate_row(estimates)


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


def _histogram_rows(fit_set: ScoredSet, eval_set: ScoredSet | None) -> ScoredSet:
    if eval_set is None:
        return fit_set
    which = st.segmented_control(
        "Histogram from",
        options=["calibration", "evaluation"],
        default="calibration",
        required=True,
        format_func={"calibration": "Calibration", "evaluation": "Evaluation"}.__getitem__,
        key="anchor_rows",
        persist_state="session",
        help="The curve is fitted on the calibration set. The evaluation set tests it on rows "
        "that it has not seen.",
    )
    return eval_set if which == "evaluation" else fit_set


def _notes(fit_set: ScoredSet, bandwidth: str | float, label: int) -> None:
    name = escape_markdown(fit_set.classes[label])
    for note in results.kde_of(fit_set, bandwidth).notes_:
        about = _CLASS_NOTE.fullmatch(note)
        if about is not None and int(about[1]) == label:
            st.warning(f"**{name}** {escape_markdown(about[2], 400)}", icon=":material/visibility:")


def bandwidths(review: Review, fit_set: ScoredSet) -> None:
    """b_mon2 against b_mon for every class."""
    with st.container(border=True):
        st.markdown("**Two bandwidth rules, class by class**")
        labels = _largest(fit_set)
        recommended = [results.curve_of(fit_set, "mon2", at) for at in labels]
        monotone = [results.curve_of(fit_set, "mon", at) for at in labels]
        anchors = [results.anchor_of(fit_set, at, 10) for at in labels]
        chart(
            drawn_once(
                bandwidth_figure, recommended, monotone, anchors, fit_set.classes, dark=is_dark()
            ),
            key="bandwidths",
            takeaway=words.bandwidth_words(recommended, monotone, fit_set.classes),
            how_to_read=BANDWIDTHS,
            alt=words.bandwidth_words(recommended, monotone, fit_set.classes),
            table=lambda: pd.DataFrame(
                {
                    "class": [fit_set.classes[at] for at in labels],
                    "b_mon2": [found.bandwidth for found in recommended],
                    "b_mon": [found.bandwidth for found in monotone],
                    "true_positives": [found.n_tp for found in recommended],
                    "false_positives": [found.n_fp for found in recommended],
                }
            ),
            name=f"{review.title} bandwidths",
        )


def _largest(fit_set: ScoredSet) -> list[int]:
    """The classes most often predicted, in their own order; says so where some are left out."""
    predicted = results.confusion_of(fit_set).joint.sum(axis=0)
    order = np.argsort(-predicted, kind="stable")[:MAX_PANELS]
    if len(order) < len(predicted):
        st.caption(f"The {MAX_PANELS} classes most often predicted, of {len(predicted):,}.")
    return sorted(int(at) for at in order)


def methods(review: Review, fit_set: ScoredSet, eval_set: ScoredSet | None, label: int) -> None:
    """All methods over one histogram, and their losses by class."""
    with st.container(border=True):
        st.markdown("**Methods compared**")
        chosen = st.multiselect(
            "Methods",
            options=BY_CLASS,
            default=list(DEFAULT_METHODS),
            format_func=lambda key: CALIBRATORS[key].label,
            key="methods",
            persist_state="session",
            help="Every calibrator is fitted on the calibration set with its default settings.",
        )
        if not chosen:
            st.caption("Choose at least one method.")
            return
        _overlay(review, fit_set, label, chosen)
    with st.container(border=True):
        st.markdown("**Mean log loss by class and method**")
        losses = _compared(review, fit_set, eval_set, tuple(chosen))
        if losses is not None:
            _losses(review, fit_set, losses, chosen)


def _compared(
    review: Review, fit_set: ScoredSet, eval_set: ScoredSet | None, chosen: tuple[str, ...]
) -> results.Losses | None:
    """The losses of the methods: at once for few rows; for many as a job, when asked for."""
    if fit_set.n_rows <= MANY_ROWS:
        return results.comparison_of(fit_set, eval_set, chosen)
    job = results.comparison_job(fit_set, eval_set, chosen)
    if job is not None and job.state == "done":
        losses: results.Losses = job.result
        return losses
    if job is not None and not job.finished:
        waiting.follow(job.id)
        return None
    if job is not None and job.error is not None:
        session.error_box(job.error)
    st.caption(
        f"Fitting and cross-fitting {len(chosen)} methods on {fit_set.n_rows:,} rows takes about "
        "a minute. The rest of the app stays usable meanwhile."
    )
    if st.button("Compare the methods", key="compare_methods", icon=":material/play_arrow:"):
        results.start_comparison(review.id, fit_set, eval_set, chosen)
        st.rerun()
    return None


def _overlay(review: Review, fit_set: ScoredSet, label: int, chosen: list[str]) -> None:
    points = {key: results.method_points(fit_set, key, label) for key in chosen}
    lines = {key: xy for key, (is_curve, xy) in points.items() if is_curve}
    clouds = {key: xy for key, (is_curve, xy) in points.items() if not is_curve}
    anchor = results.anchor_of(fit_set, label, 10)
    picture, legend = st.columns([3, 1.3], gap="medium")
    with picture:
        chart(
            method_cloud(
                anchor, clouds, lines=lines, dark=is_dark(), n_rows=int(anchor.count.sum())
            ),
            key="methods_overlay",
            takeaway=f"What each method makes of a prediction of class {fit_set.classes[label]}, "
            f"over the share of its {int(anchor.count.sum()):,} rows that was right.",
            how_to_read=METHODS,
            alt=f"{len(chosen)} methods over the histogram of predictions of "
            f"{fit_set.classes[label]}.",
            table=lambda: pd.concat(
                [
                    pd.DataFrame({"method": key, "score": score, "confidence": confidence})
                    for key, (_, (score, confidence)) in points.items()
                ],
                ignore_index=True,
            ),
            name=f"{review.title} methods {fit_set.classes[label]}",
        )
    with legend:
        for key in chosen:
            entry = CALIBRATORS[key]
            st.caption(f"**{entry.label}**: {entry.description} ({entry.reference})")


def _losses(review: Review, fit_set: ScoredSet, losses: results.Losses, chosen: list[str]) -> None:
    refitted, crossed, evaluated = losses
    filled, hollow = (crossed, refitted) if evaluated is None else (evaluated, crossed)
    st.caption(f"Filled marks: {filled.rows}. Hollow marks: {hollow.rows}.")
    chart(
        drawn_once(losses_figure, filled, fit_set.classes, dark=is_dark(), beside=hollow),
        key="losses",
        takeaway=words.losses_words(filled, chosen),
        how_to_read=LOSSES,
        alt=words.losses_alt(filled, chosen),
        table=lambda: pd.concat(
            [part.table().assign(rows_used=part.rows) for part in (filled, hollow)],
            ignore_index=True,
        ),
        name=f"{review.title} losses",
    )


def noise(review: Review, scored: ScoredSet) -> None:
    """The picture of noise from two halves, with a control that cuts anew."""
    seed = st.session_state.setdefault("noise_seed", 0)
    with st.container(border=True):
        title, again = st.columns([4, 1], vertical_alignment="center")
        title.markdown("**How much of it is noise?**")
        if again.button("Cut again", key="noise_again", icon=":material/casino:", width="stretch"):
            seed += 1
            st.session_state["noise_seed"] = seed
        halves = [results.halves_of(scored, at, seed) for at in _largest(scored)]
        chart(
            drawn_once(noise_figure, halves, scored.classes, dark=is_dark()),
            key="noise",
            takeaway=words.noise_words(halves, scored.classes),
            how_to_read=NOISE,
            alt=words.noise_words(halves, scored.classes),
            table=lambda: pd.concat(
                [
                    half.table().assign(label=scored.classes[half.label], half=at + 1, seed=seed)
                    for pair in halves
                    for at, half in enumerate(pair)
                ],
                ignore_index=True,
            ),
            name=f"{review.title} noise",
        )


def advice() -> None:
    """What the paper asks of anyone who uses a calibrator."""
    with st.expander("Before you rely on a calibrator", icon=":material/menu_book:"):
        st.markdown(ADVICE)
        st.caption(f"In our words. {PAPER_002}")
