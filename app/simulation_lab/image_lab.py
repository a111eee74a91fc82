"""The simulation lab for images: what a finished run shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from app.shared import tiles
from app.shared.charts import drawn_once, is_dark, show
from app.shared.one_of import one_of
from app.simulation_lab import lab_settings
from app.simulation_lab import lab_text as text
from app.simulation_lab.lab import Lab, show_measures
from kdcal_core.charts import (
    Chart,
    MeasuredMethod,
    image_lab_finding,
    image_measures_chart,
    shift_chart,
    shifted_pictures_chart,
)
from kdcal_core.diagnostics import value_text
from kdcal_core.evaluation import MEASURES
from kdcal_core.simulation import IMAGE_SHIFTS
from kdcal_core.tasks import METHODS, ImageLabRun, simulate_images

TITLES = {"error": "Error", "ece": MEASURES["ece"].title, "log_loss": MEASURES["log_loss"].title}


def _answer(run: ImageLabRun, key: str) -> dict[str, Callable[[], None]]:
    """The choice of the shift, its finding and curves, and four estimates beside the model's."""
    titles = {name: shift.title for name, shift in IMAGE_SHIFTS.items()}
    top = st.container()
    shift = one_of("Shift", titles, "intensity", key="lab_shift", bind="query-params")
    chosen = IMAGE_SHIFTS[shift]
    before, after = (run.measured(method) for method in ("model", "geodesic"))
    model, version = (
        run.confidence(shift, method, chosen.farthest) for method in ("model", "geodesic")
    )
    unknown = run.unknown(shift, chosen.farthest)
    place = chosen.place.format(chosen.farthest)
    errors = (before["error"], after["error"])
    top.header(image_lab_finding(place, model, version, unknown, errors), anchor=False)
    curves = _curves(run, shift)
    picture, beside = tiles.answer()
    with picture:
        show(curves, key="lab_shift_curves", of=_file_of(run), finding=False)
    with beside:
        noted = [(version, model), (after["error"], before["error"]), (after["ece"], before["ece"])]
        tiles.estimate_column(
            [*(ours for ours, _ in noted), unknown],
            notes=[
                *(f"{value_text(theirs)} for the network itself" for _, theirs in noted),
                f"of images at {place}",
            ],
        )
    st.markdown(curves.finding)
    settings = run.settings
    st.caption(
        f"{settings.n:,} images of {settings.size} by {settings.size} pixels"
        f"{' in colour' if settings.colour else ''}, {run.n_fit:,} to fit and "
        f"{run.n_holdout:,} held out · {run.model} · seed "
        f"{settings.seed} · estimates: the geodesic kernel density version"
    )
    return {"Images": partial(_pictures, run, shift), "In numbers": partial(_measures, run)}


def _curves(run: ImageLabRun, shift: str) -> Chart:
    """Dey et al., Fig. 5: confidence along the shift."""
    chosen, found = IMAGE_SHIFTS[shift], run.shifts[shift]
    drawn: Chart = drawn_once(
        shift_chart,
        chosen.places,
        {method: (METHODS[method], said) for method, said in found.confidence.items()},
        chosen.ordinary,
        scale=chosen.words,
        dark=is_dark(),
    )
    return drawn


def _pictures(run: ImageLabRun, shift: str) -> None:
    """The image at each place of the shift."""
    chosen, found = IMAGE_SHIFTS[shift], run.shifts[shift]
    model, version = (found.confidence[method].mean(axis=1) for method in ("model", "geodesic"))
    with st.container(border=True):
        chart = drawn_once(
            shifted_pictures_chart,
            found.samples,
            chosen.places,
            model,
            version,
            scale=chosen.words,
            dark=is_dark(),
        )
        show(chart, key="lab_pictures", of=_file_of(run))


def _measures(run: ImageLabRun) -> None:
    """All measures of all methods on ordinary images."""
    methods = [
        MeasuredMethod(method, label, tuple(run.measured(method)[each] for each in TITLES))
        for method, label in METHODS.items()
    ]
    show_measures(image_measures_chart, TITLES, methods, of=_file_of(run))


def _file_of(run: ImageLabRun) -> str:
    return f"images {run.settings.n} seed {run.settings.seed}"


LAB = Lab(
    text.IMAGES_INTRODUCTION, text.IMAGES_EMPTY, lab_settings.images, simulate_images, _answer
)
