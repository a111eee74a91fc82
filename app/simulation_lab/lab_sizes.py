"""The simulation lab over training sizes: a separate job, and its picture."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app.shared.charts import drawn_once, is_dark, show
from app.simulation_lab import lab_text as text
from app.simulation_lab.lab_results import result_of
from kdcal_core.charts import LAB_BANDED, BandLine, lab_sizes_chart, sizes_words
from kdcal_core.tasks import FAR, METHODS, LabSettings, SizesRun, SizesSettings, repeat

SIZES = (100, 316, 1000, 3162, 10_000)
REPETITIONS = (3, 5, 10)
SHOWN = {
    "error": "Error",
    "hellinger": "Hellinger distance",
    "confidence": f"Confidence at radius {FAR:g}",
}
PRIOR = 0.5  # both classes are equally frequent in every simulation


def card(lab: LabSettings) -> None:
    """The choice of sizes, the job's progress, and its result."""
    with st.container(border=True):
        st.subheader("Over training sizes", anchor=False)
        largest, repetitions, _ = st.columns([1, 1, 1], gap="large")
        most = largest.select_slider(
            "Up to rows",
            options=SIZES[1:],
            value=1000,
            format_func="{:,}".format,
            key="lab_most",
            persist_state="session",
        )
        runs = repetitions.select_slider(
            "Runs of each size",
            options=REPETITIONS,
            value=5,
            key="lab_repetitions",
            persist_state="session",
            help="The papers have 10 and 45.",
        )
        sizes = tuple(size for size in SIZES if size <= most)
        fewer = replace(lab, n_sphere=500, resolution=81)  # fewer points, because of many runs
        _result(SizesSettings(fewer, sizes, runs))


def _result(settings: SizesSettings) -> None:
    def offer() -> bool:
        n_runs = len(settings.sizes) * settings.repetitions
        st.caption(text.SIZES_LAST.format(n_runs))
        return st.button("Run all sizes", key="lab_run_sizes", icon=":material/play_arrow:")

    run = result_of(repeat.request(settings), repeat, offer)
    if run is not None:
        _picture(run)


def _picture(run: SizesRun) -> None:
    name = run.settings.lab.model
    panels: dict[str, list[BandLine]] = {title: [] for title in SHOWN.values()}
    for method, label in METHODS.items():
        for measure, title in SHOWN.items():
            low, middle, high = run.quartiles(method, measure)
            shown = name.capitalize() if method == "model" else label
            panels[title].append(
                BandLine(method, shown, run.sizes, middle, low, high, filled=method in LAB_BANDED)
            )
    last = {
        method: {measure: float(run.quartiles(method, measure)[1, -1]) for measure in SHOWN}
        for method in METHODS
    }
    rows, repetitions = run.settings.sizes[-1], run.settings.repetitions
    sentence = sizes_words(name, rows, repetitions, last["model"], last["geodesic"])
    show(
        drawn_once(
            lab_sizes_chart,
            panels,
            run.table(),
            sentence,
            target=(SHOWN["confidence"], PRIOR, "prior"),
            dark=is_dark(),
        ),
        key="lab_sizes",
        of=f"{run.settings.lab.simulation} {name}",
    )
