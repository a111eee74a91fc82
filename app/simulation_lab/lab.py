"""One lab for both tasks: settings that fold, a run with its answer, and runs over sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import pandas as pd
import streamlit as st

from app.shared import in_browser, job_results, waiting
from app.shared.charts import drawn_once, is_dark, show
from app.shared.sections import sections
from app.shared.tables import show_table
from kdcal_core.charts import Chart, MeasuredMethod
from kdcal_core.diagnostics import estimate_text
from kdcal_core.tasks import LabSettings, RegressionLabSettings, SizesRun, SizesSettings, repeat
from kdcal_core.tasks import Task as Job

REPETITIONS = (3, 5, 10)
R = TypeVar("R")


@dataclass(frozen=True)
class Sizes:
    """Runs over training sizes.

    Attributes
    ----------
    sizes : tuple of int
        Rows drawn, ascending.
    most : int
        The largest of them at first.
    lasts : str
        What the runs are, with a place for their number.
    chart : callable
        Draws their measures.
    fewer : dict
        Settings of each run, because there are many.
    """

    sizes: tuple[int, ...]
    most: int
    lasts: str
    chart: Callable[[SizesRun], Chart]
    fewer: dict[str, Any]


@dataclass(frozen=True)
class Lab(Generic[R]):
    """What differs between the labs of the tasks.

    Attributes
    ----------
    introduction, will_show : str
        What the lab is for, and what a run will show.
    choose : callable
        Draws the settings; returns them and the place of the button that starts the run.
    simulate : Job
        Runs the simulation.
    answer : callable
        Draws the finding, the tiles and the main picture of a run with its key, and returns what
        draws the further sections, by title.
    sizes : Sizes or None
        None where there is no run over sizes.
    """

    introduction: str
    will_show: str
    choose: Callable[[], tuple[Any, Any]]
    simulate: Job[R]
    answer: Callable[[R, str], dict[str, Callable[[], None]]]
    sizes: Sizes | None = None


def show_lab(lab: Lab[Any], task: str) -> None:
    """The settings, and what a run with them found."""
    name = f"lab_{task}"
    with job_results.settings_card(waiting.EVERYBODY, name):
        st.caption(lab.introduction)
        settings, button = lab.choose()
    asked = lab.simulate.request(settings)
    job = job_results.asked_for(
        asked, waiting.EVERYBODY, button, label="Run", name=name, will_show=lab.will_show
    )
    run = None if job is None else job_results.result_of(job, lab.simulate)
    if job is not None and run is not None:
        further = lab.answer(run, job.key)
        if lab.sizes is not None:
            further["Training sizes"] = partial(_over_sizes, lab.sizes, run.settings, name)
        sections(f"{name}_sections", further)


def _over_sizes(lab: Sizes, settings: Any, name: str) -> None:
    """The choice of sizes, the job's progress, and its result."""
    with st.container(border=True):
        largest, repetitions, _ = st.columns(3, gap="large")
        most = largest.select_slider(
            "Up to rows",
            options=lab.sizes[1:],
            value=lab.most,
            format_func="{:,}".format,
            key=f"{name}_most",
            persist_state="session",
        )
        runs = repetitions.select_slider(
            "Runs of each size",
            options=REPETITIONS,
            value=5,
            key="lab_repetitions",
            persist_state="session",
            help="Dey et al. have 10 and 45.",
        )
        sizes = tuple(size for size in lab.sizes if size <= most)

        def offer() -> bool:
            st.caption(lab.lasts.format(len(sizes) * runs))
            return st.button("Run all sizes", key="lab_run_sizes", icon=":material/play_arrow:")

        asked = repeat.request(SizesSettings(replace(settings, **lab.fewer), sizes, runs))
        job = job_results.finished(asked, waiting.EVERYBODY, offer=offer)
        run = None if job is None else job_results.result_of(job, repeat)
        if run is not None:
            show(lab.chart(run), key="lab_sizes", of=f"{settings.simulation} {settings.model}")


def show_measures(
    make: Callable[..., Chart],
    titles: Mapping[str, str],
    methods: Sequence[MeasuredMethod],
    *,
    of: str,
) -> None:
    """The measures of each method, drawn by ``make`` and as a table; ``titles`` by key."""
    cells = {
        title: [estimate_text(one.estimates[at], chance=False) for one in methods]
        for at, title in enumerate(titles.values())
    }
    with st.container(border=True):
        chart = drawn_once(make, titles, methods, dark=is_dark(), narrow=in_browser.is_narrow())
        show(chart, key="lab_measures", of=of)
        with st.expander("As a table", icon=":material/table:"):
            show_table(
                pd.DataFrame({"Method": [one.label for one in methods], **cells}),
                alt="The measures of each method with their intervals",
            )


def file_of(settings: LabSettings | RegressionLabSettings) -> str:
    """What a run's files are named after."""
    return f"{settings.simulation} {settings.n} {settings.model} seed {settings.seed}"
