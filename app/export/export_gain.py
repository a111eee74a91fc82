"""The upper part of the page Choose and export: choice, finding, diagrams, the map."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app.export import export_results as found
from app.export import export_settings
from app.export import export_text as text
from app.export.export_results import View
from app.shared import job_results, navigation, tiles
from app.shared.charts import drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.group_choice import declared
from app.shared.tables import show_table
from app.shared.version_choice import preselect_version
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import (
    calibrator_map_chart,
    calibrator_map_regions,
    gain_finding,
    gain_further,
    judged_reliability_chart,
)
from kdcal_core.evaluation import Gain
from kdcal_core.review import Review
from kdcal_core.tasks import export_calibrator
from kdcal_core.text import escape_markdown

TILES = ("log_loss", "ece_debiased", "auc", "accuracy")


def exported(review: Review, row: Any) -> View | None:
    """A fitted calibrator, chosen in ``row``; until then the page shows progress."""
    with row, job_results.settings_card(review.id, "export", label="Calibrator"):
        settings = export_settings.choose(review)
    button = row.empty()
    if settings is None:
        st.info(text.NO_COLUMNS, icon=":material/info:")
        return None
    asked = job_results.request(export_calibrator, review, settings)
    if asked is None:
        return None
    job = job_results.fitted_when_asked(
        asked, review.id, button, name="export", will_show=text.WILL_SHOW
    )
    run = None if job is None else found.run_of(job)
    if run is None:
        return None
    job_results.fold_settings(review.id, "export", asked)
    return View(review, asked.key, run)


def answer(view: View) -> None:
    """What the calibrator gains: a sentence, the diagrams, and the estimates beside them."""
    run = view.run
    if run.gain is None:
        why = run.record.why_not_judged or ""
        st.header("The gain could not be judged", anchor=False)
        st.warning(escape_markdown(why, 600), icon=":material/visibility:")
        st.caption(text.fitted_on(run.record))
        return
    key = run.record.settings.key
    st.header(escape_markdown(gain_finding(run.record.title, run.gain), 600), anchor=False)
    gained(run.gain, key, f"{view.review.title} {key}", "export")
    st.markdown(gain_further(run.gain))
    notes = [text.fitted_on(run.record)]
    notes += [escape_markdown(note.sentence, 400) for note in run.gain.comparison.notes]
    if CALIBRATORS[key].family == "kernel density":
        notes.insert(0, text.FAR)
    compared = found.comparison_of(view.review)
    if compared is not None and text.chosen_there(compared, run.gain, key):
        notes.append(text.flattered(compared))
    for note in notes:
        st.caption(note)
    if declared(view.review) and st.button(
        "See what it does to each declared group", icon=":material/groups:", type=quiet()
    ):
        preselect_version(view.review, "groups", key)
        navigation.go_to("groups")


def gained(gain: Gain, method: str, of: str, key: str, which: str = "") -> None:
    """The diagrams before and after, and at most four estimates beside them.

    ``of`` and ``which`` name the diagrams as in `charts.show`.
    """
    picture, beside = tiles.answer()
    with picture:
        _diagrams(gain, method, of, key, which)
    shown = [one for one in TILES if one in gain.pairs]
    with beside:
        tiles.estimate_column(
            [gain.after.scores[one] for one in shown],
            notes=[text.tile_note(gain, one) for one in shown],
        )


def _diagrams(gain: Gain, method: str, of: str, key: str, which: str) -> None:
    """Reliability before and after, side by side on one scale."""
    event = gain.comparison.event
    what = "Confidence in the prediction" if event is None else f"Probability of {event[:60]}"
    st.markdown(f"**Reliability before and after.** {escape_markdown(what)}")
    sides = ((gain.before, "model"), (gain.after, method))
    for column, (scores, drawn) in zip(st.columns(2, gap="small"), sides, strict=True):
        with column:
            (curve,) = scores.reliability.curves
            st.markdown("The model as it is" if drawn == "model" else "Calibrated")
            chart = drawn_once(
                judged_reliability_chart, curve, drawn, of_class=event is not None, dark=is_dark()
            )
            show(
                chart,
                key=f"{key}_{'before' if drawn == 'model' else 'after'}",
                of=of,
                which=which,
                finding=False,  # below, so that both pictures stand at one height
            )
            st.markdown(escape_markdown(chart.finding, 1000))


def mapping(view: View) -> None:
    """What the calibrator does to a score."""
    found_map = view.run.map
    with st.container(border=True):
        st.subheader("What the calibrator does", anchor=False)
        show(
            drawn_once(
                calibrator_map_chart,
                found_map,
                view.run.record.settings.key,
                view.review.classes,
                dark=is_dark(),
            ),
            key="export_map",
            of=f"{view.review.title} {view.run.record.settings.key}",
        )
        if found_map.shape == "regions":
            _regions(calibrator_map_regions(found_map))
        for note in view.run.fit_notes:
            st.caption(escape_markdown(note, 600))
        left_out = found_map.n_lines - len(found_map.lines)
        if left_out > 0:
            what = "regions" if found_map.shape == "regions" else "classes"
            st.caption(
                f"The {len(found_map.lines)} {what} with most rows are drawn; {left_out:,} are not."
            )


def _regions(table: pd.DataFrame) -> None:
    shares = [name for name in table.columns if name.endswith("becomes")]
    show_table(
        table,
        key="export_regions",
        row_height=54,
        column_config={
            "Region": st.column_config.NumberColumn(width=60),
            "Where": st.column_config.TextColumn(width=500),
            "Rows": st.column_config.NumberColumn(format="localized", width=70),
            **{name: st.column_config.NumberColumn(format="percent") for name in shares},
        },
        alt="The regions of the calibrator with the calibrated values of some scores",
    )
