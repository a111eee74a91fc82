"""The parts of the page Confidence by class, from top to bottom."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.shared import set_results
from app.shared.charts import PAPER_002, chart, drawn_once, estimate_row, is_dark
from kdcal_core.calibration import CALIBRATORS, ConfidenceCurve, methods_by_class
from kdcal_core.charts import (
    bandwidth_figure,
    confidence_curve_figure,
    losses_figure,
    method_cloud,
    noise_figure,
    words,
)
from kdcal_core.diagnostics import reliability_finding, telling
from kdcal_core.review import Review, Which
from kdcal_core.tasks import (
    ClassCurves,
    Losses,
    SetOverview,
    class_curves,
    class_halves,
    class_histograms,
    class_method,
    largest_classes,
    method_losses,
    predicted_class,
)
from kdcal_core.text import escape_markdown

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
DEFAULT_METHODS = ("uncalibrated", "histogram", "kde_mon2", "sts", "tswa", "cwoc")

CURVE = r"""
Only rows that were **predicted** to be this class count: the right ones are true positives, the
wrong ones false positives (paper 002 Eqs. 3 and 4).

**Below**: the two densities of scores, each row blurred by a normal kernel of bandwidth $b$ and
scaled by its number of rows (Eqs. 7 and 8). **Above**: green as a share of green plus orange,

$$\text{Conf}(S)=\frac{K_{TP}(S)\,|TP|}{K_{TP}(S)\,|TP|+K_{FP}(S)\,|FP|}=\frac{A}{A+B}
\qquad\text{(Eq. 9)}$$

This ratio is the **dotted** line. Where few rows are near a score it says 0 or 1 too easily, so
the **full** line, which is what the calibrator answers, adds $m$ rows that came out as one
temperature for all classes says, $c$:

$$\text{Conf}=\frac{A+m\,c}{A+B+m}$$

$m$ is the largest number that predicts held-out rows nearly as well as the best one (within two
nats in all). Hover to see $A+B$, the rows nearby: a row at the score counts 1, a row one bandwidth
away 0.61. With more than two classes $c$ differs between rows of equal score; the line has its
mean.

**In between**: how many right and wrong rows each bin of the histogram holds, on a logarithmic
scale, so that a single row is still seen beside thousands.

**Dashed strokes** are the histogram of the same quantity, which assumes nothing (Eq. 5), pale
where rows are few; the boxes are its exact 95% intervals. The lowest bar is dotted: below the
first rows the curve is only the kernels' tails, so it is held constant there (section XIII.D).
The curve is thin where rows are few and a hairline where there are none.
**Where curve and boxes part, believe the boxes.**
"""
BANDWIDTHS = r"""
Solid: $b_{mon2}$, the smallest bandwidth whose curve changes direction at most twice (paper 002
Eq. 20). Dotted: $b_{mon}$, the smallest whose curve never falls (Eq. 19). Dashes: the histogram.
Both are the paper's curves alone (Eq. 9), to which no rows are added. The bars under each panel
are the right and wrong rows of each bin, on one logarithmic scale for all classes.

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
* **Few rows.** High-scored errors and low-scored hits are rare, and there the paper's curves
  wiggle and say 0 or 1 (section XIII.D). All methods of the paper are therefore drawn to one
  temperature for all classes here, the more so the fewer rows they have; the setting
  `shrinkage=none` gives them as printed.
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


FIT: Which = "calibration"  # the set that curves and methods are fitted on


def choose_class(review: Review, overview: SetOverview) -> int:
    """The predicted class to look at: at first the one with most false positives."""
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
        help="The class with most wrong predictions is shown first.",
    )
    return label


def curve(review: Review, overview: SetOverview, label: int) -> None:
    """The page's finding and main picture: Conf_KDE over its histogram."""
    finding = st.container()
    with st.container(border=True):
        picture, settings = st.columns([3, 1.3], gap="medium")
        with settings:
            bandwidth = _bandwidth()
            n_bins = st.slider(
                "Histogram bins", 5, 25, 10, key="anchor_bins", persist_state="session"
            )
            shown = _histogram_rows(review)
        labels = _with(label, _largest(overview))
        with picture:
            curves = _curves(review, labels, bandwidth)
            anchors = set_results.of(
                review, class_histograms, which=shown, labels=labels, n_bins=n_bins
            )
        if curves is None or anchors is None:
            return
        at = labels.index(label)
        found, anchor = curves.curves[str(bandwidth)][at], anchors.anchors[at]
        name = review.classes[label]
        with settings:
            if np.isfinite(found.bandwidth):
                st.caption(f"Bandwidth of this class: {found.bandwidth:.4f}")
            st.caption(words.shrinkage_words(found))
            _notes(name, curves.notes[str(bandwidth)][at])
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
        _finding(review, found, label)
        if review.has_evaluation:
            st.caption("Sentence and tiles: the calibration set, on which the curve is fitted.")


def _curves(review: Review, labels: list[int], bandwidth: str | float) -> ClassCurves | None:
    searched = "mon2" if bandwidth in ("mon", "mon4") else bandwidth  # found in the same search
    return set_results.of(review, class_curves, which=FIT, labels=labels, bandwidth=searched)


def _finding(review: Review, found: ConfidenceCurve, label: int) -> None:
    """The sentence on this class and the estimates over the rows predicted to be it."""
    sentence = words.confidence_words(found, review.classes[label])
    mine = set_results.of(review, predicted_class, which=FIT, label=label)
    if mine is not None and mine.reliability is not None:
        sentence += f" {reliability_finding(mine.reliability, telling(mine.estimates))}"
    st.subheader(escape_markdown(sentence, 600), anchor=False)
    if mine is not None and mine.estimates:
        estimate_row(mine.estimates)


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
    which: Which = st.segmented_control(
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
    return which


def _notes(name: str, notes: tuple[str, ...]) -> None:
    for note in notes:
        st.warning(
            f"Class **{escape_markdown(name)}**{escape_markdown(note, 400)}",
            icon=":material/visibility:",
        )


def bandwidths(review: Review, overview: SetOverview, label: int) -> None:
    """b_mon2 against b_mon for every class."""
    with st.container(border=True):
        st.markdown("**Two bandwidth rules, class by class**")
        largest = _largest(overview)
        labels = _with(label, largest)
        curves = _curves(review, labels, "mon2")
        counted = set_results.of(review, class_histograms, which=FIT, labels=labels, n_bins=10)
        if curves is None or counted is None:
            return
        _say_which(largest, len(review.classes))
        at = [labels.index(one) for one in largest]
        recommended, monotone = ([curves.curves[rule][i] for i in at] for rule in ("mon2", "mon"))
        anchors = [counted.anchors[i] for i in at]
        chart(
            drawn_once(
                bandwidth_figure, recommended, monotone, anchors, review.classes, dark=is_dark()
            ),
            key="bandwidths",
            takeaway=words.bandwidth_words(recommended, monotone, review.classes),
            how_to_read=BANDWIDTHS,
            alt=words.bandwidth_alt(recommended, monotone, anchors, review.classes),
            table=lambda: pd.DataFrame(
                {
                    "class": [review.classes[one] for one in largest],
                    "b_mon2": [found.bandwidth for found in recommended],
                    "b_mon": [found.bandwidth for found in monotone],
                    "true_positives": [found.n_tp for found in recommended],
                    "false_positives": [found.n_fp for found in recommended],
                }
            ),
            name=f"{review.title} bandwidths",
        )


def _largest(overview: SetOverview) -> list[int]:
    """The classes most often predicted, in their own order: those that panels show."""
    return list(map(int, largest_classes(overview.confusion.joint, MAX_PANELS)))


def _with(label: int, largest: list[int]) -> list[int]:
    """What one computation is about: the classes of the panels, and the chosen one."""
    return largest if label in largest else [*largest, label]


def _say_which(largest: list[int], n_classes: int) -> None:
    if len(largest) < n_classes:
        st.caption(f"The {MAX_PANELS} classes most often predicted, of {n_classes:,}.")


def methods(review: Review, overview: SetOverview, label: int) -> None:
    """All methods over one histogram, and their losses by class."""
    with st.container(border=True):
        st.markdown("**Methods compared**")
        chosen = st.multiselect(
            "Methods",
            options=methods_by_class(),
            default=list(DEFAULT_METHODS),
            format_func=lambda key: CALIBRATORS[key].label,
            key="methods",
            persist_state="session",
            help="Every calibrator is fitted on the calibration set with its default settings.",
        )
        if not chosen:
            st.caption("Choose at least one method.")
            return
        _overlay(review, overview, label, chosen)
    with st.container(border=True):
        st.markdown("**Mean log loss by class and method**")
        losses = _compared(review, chosen)
        if losses is not None:
            _losses(review, losses, chosen)


def _compared(review: Review, chosen: list[str]) -> Losses | None:
    """The losses of the methods: at once for few rows; for many as a job, when asked for."""
    n_rows = review.sets[FIT].n_rows

    def offer() -> bool:
        if n_rows <= MANY_ROWS:
            return True
        st.caption(
            f"Fitting and cross-fitting {len(chosen)} methods on {n_rows:,} rows takes a minute "
            "or more. The rest of the app stays usable meanwhile."
        )
        return st.button("Compare the methods", key="compare_methods", icon=":material/play_arrow:")

    return set_results.of(
        review, method_losses, offer=offer, methods=chosen, with_evaluation=review.has_evaluation
    )


def _overlay(review: Review, overview: SetOverview, label: int, chosen: list[str]) -> None:
    labels, name = _with(label, _largest(overview)), review.classes[label]
    fits = set_results.all_of(
        review, class_method, [{"which": FIT, "labels": labels, "key": key} for key in chosen]
    )
    counted = set_results.of(review, class_histograms, which=FIT, labels=labels, n_bins=10)
    if fits is None or counted is None:
        return
    at = labels.index(label)
    points = {
        key: (fit.points[at].score, fit.points[at].confidence)
        for key, fit in zip(chosen, fits, strict=True)
    }
    curves = {key for key, fit in zip(chosen, fits, strict=True) if fit.is_curve}
    anchor = counted.anchors[at]
    picture, legend = st.columns([3, 1.3], gap="medium")
    with picture:
        chart(
            drawn_once(
                method_cloud,
                anchor,
                {key: xy for key, xy in points.items() if key not in curves},
                lines={key: xy for key, xy in points.items() if key in curves},
                dark=is_dark(),
                n_rows=int(anchor.count.sum()),
            ),
            key="methods_overlay",
            takeaway=f"What each method makes of a prediction of class {name}, "
            f"over the share of its {int(anchor.count.sum()):,} rows that was right.",
            how_to_read=METHODS,
            alt=f"{len(chosen)} methods over the histogram of predictions of {name}.",
            table=lambda: pd.concat(
                [
                    pd.DataFrame({"method": key, "score": score, "confidence": confidence})
                    for key, (score, confidence) in points.items()
                ],
                ignore_index=True,
            ),
            name=f"{review.title} methods {name}",
        )
    with legend:
        for key in chosen:
            entry = CALIBRATORS[key]
            st.caption(f"**{entry.label}**: {entry.description} ({entry.reference})")


def _losses(review: Review, losses: Losses, chosen: list[str]) -> None:
    refitted, crossed, evaluated = (losses.resubstitution, losses.cross_fitted, losses.evaluation)
    filled, hollow = (crossed, refitted) if evaluated is None else (evaluated, crossed)
    st.caption(f"Filled marks: {filled.rows}. Hollow marks: {hollow.rows}.")
    chart(
        drawn_once(losses_figure, filled, review.classes, dark=is_dark(), beside=hollow),
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


def noise(review: Review, overview: SetOverview) -> None:
    """The picture of noise from two halves, with a control that cuts anew."""
    seed = st.session_state.setdefault("noise_seed", 0)
    with st.container(border=True):
        title, again = st.columns([4, 1], vertical_alignment="center")
        title.markdown("**How much of it is noise?**")
        if again.button("Cut again", key="noise_again", icon=":material/casino:", width="stretch"):
            seed += 1
            st.session_state["noise_seed"] = seed
        largest = _largest(overview)
        found = set_results.of(review, class_halves, which=FIT, labels=largest, seed=seed)
        if found is None:
            return
        _say_which(largest, len(review.classes))
        halves = found.halves
        chart(
            drawn_once(noise_figure, halves, review.classes, dark=is_dark()),
            key="noise",
            takeaway=words.noise_words(halves, review.classes),
            how_to_read=NOISE,
            alt=words.noise_words(halves, review.classes),
            table=lambda: pd.concat(
                [
                    half.table().assign(label=review.classes[half.label], half=at + 1, seed=seed)
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
