"""Dey et al., section 2.5 and Fig. 2: the kernel in deep networks, before and after training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.marks import ribbon
from kdcal_core.charts.palette import faded, palette
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import kernel_similarity
from kdcal_core.models import wrap_model
from kdcal_core.simulation import gaussian_xor
from tests.benchmarks.studies import drawings, models, picture, summary

DEPTHS = (1, 2, 3, 4, 5, 6)
N_FIT, N_COMPARED = 1500, 500
IMAGES = "fashion_mnist"
STEPS = {"random": 0, "trained": models.MOST_STEPS}
KEYS = ["data_set", "width", "weights", "measure", "depth"]

Task = dict[str, Any]
Row = dict[str, Any]


def tasks(quick: bool, data: Path | None) -> list[Task]:
    """One task a data set, width, depth and repetition; images where their folder is given."""
    kinds = [("gaussian_xor", 100), ("gaussian_xor", 20)]
    if data is not None:
        kinds.append((IMAGES, 100))
    return [
        {"data_set": name, "width": width, "depth": depth, "repetition": repetition}
        | {"data": None if data is None else str(data)}
        for repetition in range(3 if quick else 10)
        for depth in DEPTHS
        for name, width in kinds
    ]


def run(task: Task) -> list[Row]:
    """Mean kernel of fresh rows through all layers of one network, before and after training."""
    data = task.pop("data")
    seed = 100 * task["repetition"] + task["depth"]
    X, y = _rows(task["data_set"], data, seed)
    fit, fresh = slice(None, N_FIT), slice(N_FIT, None)
    rows = []
    for weights, steps in STEPS.items():
        module = models.network(X[fit], y[fit], seed, task["width"], task["depth"], steps)
        model = wrap_model(module)
        found = kernel_similarity(model.codes(X[fresh]), y[fresh], n=N_COMPARED, seed=seed)
        error = np.mean(model.predict_proba(X[fresh]).argmax(axis=1) != y[fresh])
        values = {"within": found.within[-1], "between": found.between[-1], "error": error}
        rows += [
            {**task, "weights": weights, "measure": measure, "value": float(value)}
            for measure, value in values.items()
        ]
    return rows


def write(rows: pd.DataFrame, out: Path) -> None:
    """Table, picture and the numbers in short."""
    table = summary.summarised(rows, KEYS)
    table.to_csv(out / "depth.csv", index=False, float_format="%.5g")
    picture.save(_figures(table), out / "depth.png")
    wide = table.pivot_table(index=KEYS[:-1], columns="depth", values="median").reset_index()
    wide.columns = [str(column) for column in wide.columns]
    text = (
        "# Kernel against depth\n\n"
        f"Medians over {rows['repetition'].nunique()} seeds, one network a depth and seed; "
        f"{N_FIT:,} rows to train on, {N_COMPARED} others compared with each other.\n\n"
    )
    text += summary.markdown(wide) + "\n"
    (out / "depth_table.md").write_text(text, encoding="utf-8")


def _rows(name: str, data: str | None, seed: int) -> tuple[FloatArray, IntArray]:
    """Rows to train on, followed by those that are compared."""
    n = N_FIT + N_COMPARED
    if name != IMAGES or data is None:
        drawn = gaussian_xor(n, seed=seed)
        return drawn.X, drawn.y
    with np.load(Path(data) / f"{IMAGES}.npz", allow_pickle=False) as stored:
        chosen = np.random.default_rng(seed).choice(len(stored["y_train"]), n, replace=False)
        images, labels = stored["X_train"][chosen], stored["y_train"][chosen]
    return images.reshape(n, -1) / 255.0, labels.astype(np.int64)


def _figures(table: pd.DataFrame) -> list[go.Figure]:
    """Random weights and trained ones side by side, one figure a data set and width."""
    from kdcal_core.charts.chart import new_figure

    colours = palette(dark=False)
    drawn = {"within": ("Same class", colours.calibrated), "between": ("Other", colours.model)}
    figures = []
    for (name, width), part in table.groupby(["data_set", "width"]):
        figure = new_figure(dark=False, height=340)
        for weights, dash in (("random", "dot"), ("trained", "solid")):
            for measure, (words, colour) in drawn.items():
                mine = part[(part["weights"] == weights) & (part["measure"] == measure)]
                figure.add_trace(
                    ribbon(mine["depth"], mine["q25"], mine["q75"], faded(colour, 0.16)).update(
                        showlegend=False
                    )
                )
                figure.add_scatter(
                    x=mine["depth"],
                    y=mine["median"],
                    mode="lines+markers",
                    line={"color": colour, "dash": dash},
                    name=f"{words}, {weights} weights",
                )
        figure.update_layout(
            xaxis_title_text="Hidden layers", yaxis_title_text="Mean kernel", yaxis_range=(0, 1)
        )
        figures.append(drawings.titled(figure, f"{name}, {width} units a layer"))
    return figures
