"""Tables, a picture and the numbers behind them, written from the runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from kdcal_core.charts.palette import palette
from tests.benchmarks.studies import picture
from tests.benchmarks.studies.heterogeneous import answers
from tests.benchmarks.studies.heterogeneous.networks import SIZES
from tests.benchmarks.studies.heterogeneous.tables import TITLES

METHODS = [
    "network",
    "network of all rows",
    "Platt",
    "tree",
    "tree, not pooled",
    "tree, depth tuned",
    "auc",
    "forest",
    "boosted",
    "tree alone",
    "boosted alone",
]
GROUP = ["table", "size", "regularised", "rate", "method", "measure"]


def write(rows: pd.DataFrame, out: Path) -> None:
    """`networks.csv`, means over seeds; `tables.md`; and the box plots of `lifts.png`."""
    grouped = rows.groupby(GROUP, sort=False)["value"]
    grouped.agg(["mean", "std", "count"]).reset_index().to_csv(
        out / "networks.csv", index=False, float_format="%.4g"
    )
    words = {False: "plain", True: "regularised"}
    parts = [
        "Table 1: all variants of a size",
        _lift_table(answers.table_1(rows)),
        "Table 2: regularised and plain networks apart",
        _lift_table(answers.table_2(rows).rename(index=words, level="regularised")),
        "The claims",
        _markdown(answers.claims(rows).rename(columns=TITLES).reset_index(names="")),
        "Kinds of partitions: AUC",
        _markdown(_pairs(answers.partitions(rows, "AUC"))),
        "Kinds of partitions: log loss",
        _markdown(_pairs(answers.partitions(rows, "log loss"))),
    ]
    (out / "tables.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    picture.save([boxes(rows)], out / "lifts.png")


def boxes(rows: pd.DataFrame) -> go.Figure:
    """Lifts of single runs of the top three variants of each size (Durfee et al., Fig. 3)."""
    auc = answers.best(rows, ["table", "size"], 3)
    lift = (100 * (auc[answers.TUNED] / auc["network"] - 1)).reset_index(name="lift")
    names = answers.names(rows)
    figure = make_subplots(1, len(names), subplot_titles=[TITLES[name] for name in names])
    for column, name in enumerate(names, start=1):
        mine = lift[lift["table"] == name]
        box = go.Box(
            x=mine["size"],
            y=mine["lift"],
            boxpoints="all",
            line_color=palette(dark=False).calibrated,
            showlegend=False,
        )
        figure.add_trace(box, 1, column)
        figure.add_hline(0, row=1, col=column, line_dash="dash", line_width=1)
    figure.update_xaxes(
        title_text="Size of network", categoryorder="array", categoryarray=list(SIZES)
    )
    figure.update_yaxes(title_text="Lift of the test AUC, %", col=1)
    return figure.update_layout(template="plotly_white", height=420)


def _lift_table(found: pd.DataFrame) -> str:
    """Cells "AUC, lift ± spread", beside what the paper prints."""
    places = {name: place for place, name in enumerate([*TITLES, *SIZES])}
    lines = found.reset_index()
    lines = lines.sort_values(
        ["table", *found.index.names[1:]], key=lambda values: values.replace(places)
    )
    shown = lines[list(found.index.names)].copy()
    shown["table"] = lines["table"].map(TITLES)
    shown["AUC"] = lines["network"].map("{:.4f}".format)
    for name in answers.SHOWN:
        spread = lines[f"{name} ±"].fillna(0.0)
        shown[f"lift, {name}"] = [
            f"{mean:+.2f}% ± {std:.2f}" for mean, std in zip(lines[name], spread, strict=True)
        ]
    keys = lines[list(found.index.names)].itertuples(index=False, name=None)
    shown["printed"] = [answers.PRINTED.get(key, "") for key in keys]
    return _markdown(shown)


def _pairs(found: pd.DataFrame) -> pd.DataFrame:
    """A column a table, with the value at each learning rate."""
    tables = [name for name in TITLES if name in found.columns.get_level_values(0)]
    found = found.reindex(METHODS)
    cells = {
        TITLES[name]: [
            ", ".join(dict.fromkeys(f"{value:.4f}" for value in values))
            for values in found[name].to_numpy()
        ]
        for name in tables
    }
    return pd.DataFrame({"method": METHODS, **cells})


def _markdown(table: pd.DataFrame) -> str:
    head = [str(name) for name in table.columns]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(map(str, cells))} |" for cells in table.itertuples(index=False)]
    return "\n".join(lines)
