"""All rows together: PIT, quantiles, every measure of every method, the choice of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.recalibration import recalibration_results as found
from app.recalibration import recalibration_text as text
from app.recalibration.recalibration_results import View
from app.recalibration.recalibration_text import TILES
from app.shared import in_browser
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.sections import sections
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from kdcal_core.charts import (
    PAPERS,
    Chart,
    MeasuredRecalibration,
    Moments,
    PitPanel,
    neighbour_selection_chart,
    pit_before_after_chart,
    quantile_reliability_chart,
    recalibration_differences_chart,
    recalibration_measures_chart,
    recalibrator_title,
    truth_chart,
)
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.evaluation import MEASURES, MODEL, RecalibratorScores
from kdcal_core.tasks import space_title
from kdcal_core.text import seconds_text, typed


def pit_and_quantiles(view: View) -> None:
    """PIT histograms before and after, beside the reliability of quantiles."""
    both = found.pit_of(view)
    if both is None:
        return
    before, after = both
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.subheader("All PIT values", anchor=False)
        panels = [
            PitPanel("Model", before.histogram, view.model.fault.kind),
            PitPanel(view.method.title, after.histogram, view.method.fault.kind, view.chosen),
        ]
        _seen(view, "recalibration_pit", "PIT values, recalibrated", pit_before_after_chart, panels)
        show(
            drawn_once(pit_before_after_chart, panels, dark=is_dark()),
            key="recalibration_pit",
            of=view.review.title,
        )
    with right.container(border=True, height="stretch"):
        st.subheader("Stated quantiles", anchor=False)
        shown: dict[str, Any] = {
            "after": after.quantiles,
            "after_name": view.method.title,
            "after_by": view.chosen,
        }
        titled = "recalibration_quantiles", "Stated quantiles, recalibrated"
        _seen(view, *titled, quantile_reliability_chart, before.quantiles, **shown)
        show(
            drawn_once(quantile_reliability_chart, before.quantiles, dark=is_dark(), **shown),
            key="recalibration_quantiles",
            of=view.review.title,
        )


def _seen(
    view: View, key: str, title: str, make: Callable[..., Chart], *args: Any, **kwargs: Any
) -> None:
    """Note a chart for an audit, which draws no recalibrated distributions."""
    settings = view.method.title
    seen(view.review, key, title, "recalibration", make, *args, settings=settings, **kwargs)


def every_method(view: View) -> None:
    """All measures of all methods, their paired differences from the model, and their times."""
    lines = [MeasuredRecalibration.of(one) for one in view.run.record.methods]
    with st.container(border=True):
        st.subheader("Every measure, every method", anchor=False)
        sections(
            "recalibration_every",
            {
                "Measures": partial(
                    _picture, view, recalibration_measures_chart, lines, "recalibration_measures"
                ),
                "Paired differences": partial(
                    _picture,
                    view,
                    recalibration_differences_chart,
                    lines,
                    "recalibration_differences",
                ),
                "Numbers": partial(_numbers, view),
            },
        )


def _picture(
    view: View,
    chart: Callable[..., Chart],
    lines: Sequence[MeasuredRecalibration],
    key: str,
) -> None:
    drawn = drawn_once(chart, lines, dark=is_dark(), narrow=in_browser.is_narrow())
    show(drawn, key=key, of=view.review.title)


def _numbers(view: View) -> None:
    table = pd.DataFrame([_line(one) for one in view.run.record.methods])
    show_table(
        table,
        key="recalibration_table",
        column_config={
            "Places off": st.column_config.TextColumn(
                help="Neighbourhoods that are miscalibrated beyond chance, of those tested."
            ),
            "Change": st.column_config.TextColumn(
                help="Paired difference of the CRPS from the model's, row by row."
            ),
            **{
                one.title: st.column_config.TextColumn(help=one.meaning)
                for one in (MEASURES[key] for key in TILES)
            },
        },
        alt="Measures, paired differences and times of every method",
    )
    csv_button(
        lambda: table.map(typed),
        key="recalibration_table_csv",
        of=view.review.title,
        what="methods",
    )


def _line(one: RecalibratorScores) -> dict[str, str]:
    rows = one.scores.rows
    return {
        "Method": recalibrator_title(one.key, one.title),
        MEASURES["crps"].title: _cell(rows.get("crps")),
        "Change": _cell(one.differences.get("crps")),
        **{MEASURES[key].title: _cell(rows.get(key)) for key in TILES if key != "crps"},
        "Places off": f"{one.needed:,} of {one.looked_at:,}" if one.looked_at else "",
        "Fitted in": "" if one.key == MODEL else seconds_text(one.fit_seconds),
        "Predicted in": seconds_text(one.predict_seconds),
    }


def _cell(estimate: Estimate | None) -> str:
    return "" if estimate is None else estimate_text(estimate, chance=False)


def choice(view: View) -> None:
    """How the number of neighbours and the space were chosen, if they were."""
    selection = view.run.record.selection
    if selection is None:
        return
    titles = {name: space_title(name) for name in selection.spaces}
    with st.container(border=True):
        st.subheader("How the neighbours were chosen", anchor=False)
        titled = "recalibration_choice", "How the neighbours were chosen"
        _seen(view, *titled, neighbour_selection_chart, selection, titles)
        show(
            drawn_once(neighbour_selection_chart, selection, titles, dark=is_dark()),
            key="recalibration_choice",
            of=view.review.title,
        )


def truth(view: View) -> None:
    """True means against the model's and the method's, if the table has the truth."""
    if not view.run.record.has_truth:
        return
    labels = {MODEL: "Model", view.chosen: view.method.title}
    if view.chosen != "global" and "global" in view.run.record.keys:
        other = view.run.record.result("global")
        labels = {MODEL: "Model", "global": other.title, view.chosen: view.method.title}
    means = found.truth_of(view, tuple(labels))
    if means is None:
        return
    shown = [Moments(key, label, means.means[key]) for key, label in labels.items()]
    moments, rows = Moments("truth", "True", means.exact), means.rows
    with st.container(border=True):
        st.subheader("True and estimated means", anchor=False)
        show(
            drawn_once(
                truth_chart,
                moments,
                shown,
                [means.distance[key] for key in labels],
                dark=is_dark(),
                rows=rows,
            ),
            key="recalibration_truth",
            of=view.review.title,
        )


def advice() -> None:
    """What the paper says about local recalibration, and what it does not promise."""
    with st.container(border=True):
        st.markdown(text.ADVICE)
        st.caption(f"Summarised from {PAPERS['Torres et al.']}.")
