"""Circles and rectangles that shift: Dey et al., section 3.2.1, Fig. 5; earlier version, Fig. 3."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.models import HasHead
from kdcal_core.simulation import IMAGE_SHIFTS, shapes
from tests.benchmarks.studies import drawings, measures, picture, summary
from tests.benchmarks.studies.bands import measure_figure
from tests.benchmarks.studies.methods import Methods

SIZE = 50  # the text's 100 make four times as many coordinates: tens of GB for its 4,000 images
N_TEST, N_SHIFTED = 500, 100
BRIGHTEST = 255.0
MEASURES = {
    "MMC": "mean max confidence",
    "OCE": "OCE",
    "flagged": "share flagged unknown",
    "spread": "distance from the mean embedding of ordinary images, theirs is 1",
}
DRAWN = ("model", "isotonic", "geodesic", "geodesic_ratio", "geodesic_paper")
KEYS = ["shift", "size", "n", "method", "measure", "place"]

Task = dict[str, Any]
Row = dict[str, Any]


def tasks(quick: bool) -> list[Task]:
    """One task a repetition; quick: half the images a class."""
    n = 2000 if quick else 4000
    return [{"size": SIZE, "n": n, "repetition": each} for each in range(3 if quick else 10)]


def run(task: Task) -> list[Row]:
    """Confidence of every method along each shift, for one drawn training set."""
    began, seed, size = time.perf_counter(), 7000 + task["repetition"], task["size"]
    drawn = shapes(task["n"], seed=seed, size=size)
    fitted = Methods("cnn", drawn.X / BRIGHTEST, drawn.y, seed)
    if not isinstance(fitted.model, HasHead):
        raise TypeError("The network was not recognised as an encoder with a dense head")
    test = shapes(N_TEST, seed=seed + 500_000, size=size)
    places = [(name, place) for name, shift in IMAGE_SHIFTS.items() for place in shift.places]
    parts = [_shifted(name, place, size, seed) for name, place in places]
    rows = []
    note = partial(_entry, task)
    for method, (near, *far) in fitted.outcome(test.X / BRIGHTEST, *parts).items():
        rows += [
            note("none", method, "error", measures.error(near.predicted, test.y)),
            note("none", method, "log loss", measures.log_loss(near.proba, test.y)),
            note("none", method, "ECE", measures.ece(near.proba, test.y)),
            note("none", method, "MMC", measures.mmc(near.proba)),
            note("none", method, "flagged", float(near.unknown.mean())),
        ]
        for (name, place), each in zip(places, far, strict=True):
            rows += [
                note(name, method, "MMC", measures.mmc(each.proba), place),
                note(name, method, "OCE", measures.oce(each.proba, fitted.prior), place),
                note(name, method, "flagged", float(each.unknown.mean()), place),
            ]
    rows += [
        note(name, "all", "spread", value, place)
        for (name, place), value in zip(places, _spreads(fitted, test.X, parts), strict=True)
    ]
    rows.append(note("none", "all", "seconds", time.perf_counter() - began))
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """Table, picture and the figures at the places that matter."""
    table = summary.summarised(rows, KEYS)
    table.to_csv(out / "images.csv", index=False, float_format="%.5g")
    picture.save(_figures(table), out / "images.png")
    text = "# Images that shift\n\n" + _setup(rows) + "\n\n" + _tables(table)
    (out / "images_table.md").write_text(text + "\n", encoding="utf-8")


def _shifted(name: str, place: float, size: int, seed: int) -> FloatArray:
    drawn = IMAGE_SHIFTS[name].draw(N_SHIFTED, place, seed=seed + 600_000, size=size)
    return drawn.X / BRIGHTEST


def _spreads(fitted: Methods, ordinary: FloatArray, parts: list[FloatArray]) -> list[float]:
    """Root mean square distance from the ordinary images' mean embedding, in units of theirs.

    Below 1, images lie nearer to the middle than ordinary ones do.
    """
    embedded = fitted.model.head_input(ordinary / BRIGHTEST)
    middle = embedded.mean(axis=0)
    unit = np.square(embedded - middle).mean()
    far = [np.square(fitted.model.head_input(part) - middle).mean() for part in parts]
    return [float(np.sqrt(each / unit)) for each in far]


def _entry(
    task: Task, shift: str, method: str, measure: str, value: float, place: float = np.nan
) -> Row:
    found = {"shift": shift, "method": method, "measure": measure, "place": place, "value": value}
    return {**task, **found}


def _figures(table: pd.DataFrame) -> list[Any]:
    figures = []
    for name, shift in IMAGE_SHIFTS.items():
        mine = table[(table["shift"] == name) & (table["measure"] == "MMC")]
        mine = mine[mine["method"].isin(DRAWN)]
        figure = measure_figure(
            drawings.lines(mine, "place"),
            dark=False,
            x_title=shift.words,
            y_title="Mean max confidence",
            log_x=False,
            target=(0.5, "Prior"),
        )
        for place in shift.ordinary:
            figure.add_vline(place, line_width=1, line_dash="dot", annotation_text="ordinary")
        figures.append(drawings.titled(figure, f"{shift.words}: circles and rectangles"))
    return figures


def _setup(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return (
        f"{rows['repetition'].nunique()} seeds, {first['n']:,} images of {first['size']} by "
        f"{first['size']} pixels, 70% of them to fit on; {N_SHIFTED} images a place, "
        f"{N_TEST} ordinary ones. Medians over the seeds."
    )


def _tables(table: pd.DataFrame) -> str:
    """Ordinary images first, then confidence and flagged share along each shift."""
    near = table[(table["shift"] == "none") & (table["method"] != "all")]
    parts = ["## Ordinary images", _wide(near, "method", "measure")]
    for name, shift in IMAGE_SHIFTS.items():
        for measure, words in MEASURES.items():
            mine = table[(table["shift"] == name) & (table["measure"] == measure)]
            if measure == "flagged":
                mine = mine[mine["method"].str.contains("geodesic|euclidean")]
            parts += [f"## {shift.words}: {words}", _wide(mine, "method", "place")]
    return "\n\n".join(parts)


def _wide(table: pd.DataFrame, index: str, columns: str) -> str:
    wide = table.pivot_table(index=index, columns=columns, values="median")
    return summary.markdown(wide.reset_index())
