"""Before and after: calibration by regions as a job, and whether it is worthwhile here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from app.regions import regions_search as runs
from app.regions import regions_text as text
from app.regions.regions_found import View
from app.regions.regions_settings import words
from app.shared import job_results, navigation, session, waiting
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.emphasis import emphasis, quiet
from app.shared.equal_notes import copies, show_note
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from kdcal_core.calibration.regions import RegionFit
from kdcal_core.charts import (
    Chart,
    ScorePanel,
    auc_lift_chart,
    change_words,
    lift_words,
    loss_change_chart,
    repair_reliability_chart,
    score_panels_chart,
    second_model_words,
)
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MEASURES, MODEL
from kdcal_core.review import Review
from kdcal_core.tasks import (
    ONE_MAP,
    PARTITION_TITLES,
    SECOND_MODEL,
    ModelEstimates,
    RegionQuestion,
    RegionsMethod,
    RegionsRun,
    RegionsSettings,
    RepairScores,
    Request,
    calibrate_regions,
)
from kdcal_core.text import escape_markdown, seconds_text, typed

AS_IS = "reference"
LONGEST_NOTE = 4000  # letters; names of columns and categories may be long
_KEPT: dict[str, Any] = {"persist_state": "session"}


@dataclass(frozen=True, eq=False)
class Repair:
    """A finished run and the method shown in the pictures."""

    key: str
    run: RegionsRun
    chosen: str

    @property
    def before(self) -> RegionsMethod:
        return self.run.method(MODEL)

    @property
    def after(self) -> RegionsMethod:
        return self.run.method(self.chosen)

    @property
    def second_words(self) -> str | None:
        """What a second model gains more than calibration; None where it could not be fitted."""
        second = self.run.record.second
        if second is None:
            return None
        best = self.run.method(second.best).title
        title = "the model as it is" if second.best == MODEL else best
        return second_model_words(second.difference, title, retrain=second.retrain)

    @property
    def retrain(self) -> bool:
        """Whether a second model gains more than calibration, beyond chance."""
        second = self.run.record.second
        return second is not None and second.retrain


def repaired(view: View) -> Repair | None:
    """The card that offers the repair; None while there is no result."""
    review = view.looked.review
    with st.container(border=True):
        st.subheader("Repair by regions: before and after", anchor=False)
        settings = _settings(view)
        try:
            asked = calibrate_regions.request(session.workspace(), review.id, settings)
        except InputError as error:
            st.info(escape_markdown(f"{error.what}. {error.fix}", 600), icon=":material/info:")
            return None
        opened = _opened(view, asked)
        if opened is None:
            return None
        return _chosen(review, asked.key, opened)


def _settings(view: View) -> RegionsSettings:
    keys = [key for key in PARTITION_TITLES if key != "column" or view.asked.column is not None]
    chosen = st.pills(
        "Regions by",
        options=keys if view.looked.inputs else ["column"],
        selection_mode="multi",
        default=[key for key in RegionsSettings().partitions if view.looked.inputs] or None,
        format_func=PARTITION_TITLES.__getitem__,
        key=f"regions_methods_{len(keys)}",
        help="One map for all rows and a second model are fitted too, for comparison.",
        **_KEPT,
    )
    with st.popover("What these do", type=quiet(), icon=":material/help:"):
        st.markdown(text.SETTINGS)
    depth = view.asked.max_depth
    return RegionsSettings(
        partitions=tuple(chosen or ()),
        # if the slider is not moved, each partition has the same depth as on every other page
        max_depth=None if depth == RegionQuestion().max_depth else depth,
        min_rows=view.asked.min_rows,
        column=view.asked.column if "column" in (chosen or ()) else None,
    )


def _opened(view: View, asked: Request) -> RegionsRun | None:
    review = view.looked.review
    if waiting.find(asked.key) is None:
        st.markdown(
            "Each region gets its own map from stated to calibrated probability, fitted on "
            "calibration rows and judged on fresh rows. You will see the effect on the AUROC, the "
            "log loss and the reliability diagram."
        )
        if st.button(
            "Calibrate by regions",
            key="regions_start",
            type=emphasis(),
            icon=":material/play_arrow:",
        ):
            job_results.begin(asked, review.id)
            st.rerun()
        return None
    job = job_results.finished(asked, review.id)
    return None if job is None else runs.run_of(job)


def _chosen(review: Review, key: str, run: RegionsRun) -> Repair | None:
    for note in run.record.notes:
        if note.sentence not in copies(review):  # shown at the top of the page
            show_note(note)
    methods = [one for one in run.keys if one not in (MODEL, ONE_MAP, SECOND_MODEL)]
    if not methods:
        return None
    chosen = st.segmented_control(
        "Shown in the pictures below",
        options=methods,
        default=methods[0],
        required=True,
        format_func=lambda one: run.method(one).title[:60],
        key=f"regions_shown_{key[:16]}",
        **_KEPT,
    )
    assert chosen is not None
    return Repair(key, run, chosen)


def before_and_after(view: View, repair: Repair) -> None:
    """The effect of the repair, in pictures and in a table."""
    after = repair.after
    with st.container(border=True):
        words = [change_words(after.difference)] if after.difference else []
        if after.auc is not None:
            words.insert(0, lift_words(after.title, after.auc))
        st.subheader(f"{escape_markdown(' '.join(words), 700)}", anchor=False)
        record = repair.run.record
        described = " ".join(
            part
            for part in (
                None if repair.retrain else repair.second_words,  # the finding says it
                text.judged_words(record),
                text.settings_words(record.settings),
            )
            if part
        )
        st.caption(escape_markdown(described, 1000))
        scores = runs.scores_of(
            view.looked.review, repair.run, view.asked.label, MODEL, repair.chosen
        )
        left, right = st.columns(2, gap="medium")
        if scores is not None:
            with left:
                _reliability(view, repair, *scores)
        with right:
            if after.auc is not None:
                _lift(view, repair)
            _loss(view, repair)
            if after.auc is None:
                _methods_table(view, repair)
        if after.auc is not None:
            _methods_table(view, repair)
        if view.event is not None and scores is not None:
            _scores(view, view.event, *scores)
        for note in after.notes:
            st.caption(escape_markdown(note, LONGEST_NOTE))


def _seen(view: View, key: str, title: str, make: Callable[..., Chart], *args: Any) -> None:
    """Note a chart for an audit, which fits no calibrator by regions."""
    looked = view.looked
    settings = f"{words(looked, view.asked)}; {looked.which} set"
    seen(looked.review, key, title, "regions", make, *args, settings=settings)


def _reliability(view: View, repair: Repair, model: RepairScores, repaired: RepairScores) -> None:
    drawn = model.reliability, repaired.reliability, f"heterogeneous_{repair.chosen}", view.event
    titled = "regions_before_after", "Calibration by regions, before and after"
    _seen(view, *titled, repair_reliability_chart, *drawn)
    show(
        drawn_once(repair_reliability_chart, *drawn, dark=is_dark()),
        key="regions_before_after",
        of=view.looked.review.title,
    )


def _lift(view: View, repair: Repair) -> None:
    methods = repair.run.record.methods
    lines = [(one.title, one.auc) for one in methods if one.auc is not None]
    partitions = [one.title for one in methods if one.key not in (MODEL, ONE_MAP, SECOND_MODEL)]
    titled = "regions_lift", "AUROC by way to calibrate by regions"
    _seen(view, *titled, auc_lift_chart, lines, partitions)
    show(
        drawn_once(auc_lift_chart, lines, partitions, dark=is_dark()),
        key="regions_lift",
        of=view.looked.review.title,
    )


def _loss(view: View, repair: Repair) -> None:
    methods = repair.run.record.methods
    lines = [(one.title, one.difference) for one in methods if one.difference is not None]
    titled = "regions_losses", "Log loss by way to calibrate by regions"
    _seen(view, *titled, loss_change_chart, lines)
    show(
        drawn_once(loss_change_chart, lines, dark=is_dark()),
        key="regions_losses",
        of=view.looked.review.title,
    )


def _methods_table(view: View, repair: Repair) -> None:
    methods = repair.run.record.methods
    columns: dict[str, list[str]] = {
        "Calibrated by": [one.title for one in methods],
        MEASURES["log_loss"].title: [estimate_text(one.log_loss) for one in methods],
        "Change": [estimate_text(one.difference) if one.difference else AS_IS for one in methods],
    }
    pairs = [one.auc for one in methods if one.auc is not None]
    if pairs:
        of_model = pairs[0].a
        areas = [one.auc.b if one.auc else of_model for one in methods]
        columns[MEASURES["auc"].title] = [estimate_text(area) for area in areas]
        columns["AUROC lift"] = [
            estimate_text(one.auc.lift) if one.auc else AS_IS for one in methods
        ]
    columns["Regions"] = [f"{one.n_regions:,}" if one.n_regions else "" for one in methods]
    columns["Fitted in"] = [seconds_text(one.seconds) if one.seconds else "" for one in methods]
    table = pd.DataFrame(columns)
    show_table(
        table,
        key="regions_methods_table",
        column_config={
            **{
                one.title: st.column_config.TextColumn(help=one.meaning)
                for one in (MEASURES["log_loss"], MEASURES["auc"])
            },
            "AUROC lift": st.column_config.TextColumn(
                help="Rise of the AUROC as a share of the model's AUROC."
            ),
            "Change": st.column_config.TextColumn(
                help="Log loss minus the model's, row by row on the same rows: below 0 is better."
            ),
            "Regions": st.column_config.TextColumn(
                help="Over all trees of the fit on the whole calibration set."
            ),
            "Fitted in": st.column_config.TextColumn(
                help="Time to fit, over all folds and the whole set."
            ),
        },
        alt="Log loss, its change, AUROC lift, regions and time of every way to calibrate",
    )
    csv_button(
        lambda: table.map(typed),
        key="regions_methods_csv",
        of=view.looked.review.title,
        what="methods",
    )


def _scores(view: View, event: str, model: RepairScores, repaired: RepairScores) -> None:
    training = model.training
    panels = [] if training is None else [ScorePanel("Training rows", training)]
    panels += [
        ScorePanel("Held-out rows", model.spread),
        ScorePanel("Held-out rows, calibrated", repaired.spread),
    ]
    st.markdown(f"**Scores by label** (stated probability of {escape_markdown(event)})")
    _seen(view, "regions_scores", "Scores by label", score_panels_chart, panels)
    show(
        drawn_once(score_panels_chart, panels, dark=is_dark()),
        key="regions_scores",
        of=view.looked.review.title,
    )
    if training is None:
        st.caption(
            "If you add the model's training rows (Load page), a further panel shows how much "
            "better they are separated."
        )


def elsewhere() -> None:
    """Link to the page that repairs a regression."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Another page repairs distributions place by place.")
        navigation.page_link("recalibration", "Recalibration")


def conditions(
    view: View, whole: ModelEstimates, fits: Sequence[RegionFit], repair: Repair | None
) -> None:
    """The paper's three conditions for use, checked on these rows and the regions' maps."""
    with st.container(border=True):
        st.subheader("Is calibration by regions worthwhile here?", anchor=False)
        for holds, words in _checked(view, whole.gap, [one for one in fits if one.n], repair):
            icon = ":material/check:" if holds else ":material/close:"
            st.markdown(f"{icon} {escape_markdown(words, 600)}")
        with st.popover("When it is worthwhile", type=quiet()):
            st.markdown(text.ADVICE)


def _checked(
    view: View, gap: Estimate, fits: list[RegionFit], repair: Repair | None
) -> list[tuple[bool, str]]:
    sure = gap.low > 0
    thin = [one for one in fits if one.needed]
    search = view.search
    many = len(search.faulty)
    parts = [
        (
            sure,
            f"An over-confident model: stated confidence minus accuracy is {estimate_text(gap)}"
            + ("." if sure else ", so it is not too sure of itself over all rows."),
        ),
        (many > 0 and len(fits) > 1, f"Regions that can be told apart: {_apart(many, len(fits))}."),
        (
            not thin,
            _enough(len(fits)) if not thin else _thin(thin, len(fits)),
        ),
    ]
    lift = repair.after.auc.lift if repair and repair.after.auc else None
    if lift is not None:
        parts.append(
            (
                lift.low > 0,
                f"Effect on rows that no map has seen: AUROC lift {estimate_text(lift)}.",
            )
        )
    return parts


def _apart(many: int, count: int) -> str:
    if count == 1:
        return "there is only one region, so one map for all rows does the same"
    if many:
        return f"{many:,} of {count:,} {'is' if many == 1 else 'are'} wrong beyond chance"
    return "none is wrong beyond chance, so one map for all rows may do as well"


def _enough(count: int) -> str:
    where = "the one region has" if count == 1 else f"each of {count:,} regions has"
    return f"Enough rows that the model has not seen: {where} 20 or more of its rarer class."


def _thin(thin: list[RegionFit], count: int) -> str:
    one = len(thin) == 1
    regions = f"{len(thin):,} of {count:,} regions {'has' if one else 'have'}"
    borrow = "borrows from the region around it" if one else "borrow from those around them"
    return (
        f"Enough rows that the model has not seen: {regions} fewer than 20 of a class and {borrow}."
    )
