"""RESULTS_arena.md: improvement and win rates by data set, with intervals by resampled sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from tests.benchmarks.studies.arena import methods

_DRAWS = 2000
_CELL = ["table", "model", "rows", "seed"]
_EQUAL = 1e-4  # share of the model's loss; smaller differences count as equal
_HEAD = """# Arena: every calibrator of scores, and probmetrics'

`python -m tests.benchmarks.studies arena --data FOLDER --cache FOLDER`. Post-hoc improvement is the
share of the model's log loss or Brier score that a method removes on rows that it was not fitted
on (1 is all, below 0 is harm). Cells are table x model x calibration rows x draw; a table's cells
count alike, and tables count alike. The win rate is the share of other methods that a method
beats on the same cell, ties half. Intervals (95%) resample tables; of three tables they are the
range. "The worst" is the table with the smallest mean improvement in log loss. Seconds are the
median of a fit on one core."""


def write(rows: pd.DataFrame, out: Path) -> None:
    """The tables of all cells, of two classes and of more, and by number of rows."""
    cells = rows[_CELL].drop_duplicates()
    parts = [
        _HEAD,
        f"{len(cells):,} cells: {cells['table'].nunique()} tables, {cells['model'].nunique()} "
        f"models; {', '.join(f'{n:,}' for n in sorted(cells['rows'].unique()))} calibration rows.",
    ]
    two = rows["n_classes"] == 2
    for words, of in (("Two classes", rows[two]), ("More classes", rows[~two])):
        if len(of):
            parts.append(_table(of, f"## {words}, all sizes"))
            parts.append(_against(of, f"## {words}: recommended less each method"))
            sizes = sorted(of["rows"].unique())
            parts += [
                _table(of[of["rows"] == n], f"### {words}, {n:,} calibration rows")
                for n in sizes
                if len(sizes) > 1
            ]
    out.mkdir(parents=True, exist_ok=True)
    (out / "RESULTS_arena.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _wide(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """A row a cell and a column a method, those that take part in every cell."""
    wide = rows.pivot_table(index=_CELL, columns="method", values=value)
    return wide.dropna(axis=1, thresh=1)


def _table(rows: pd.DataFrame, title: str) -> str:
    loss, brier = _wide(rows, "gain_log_loss"), _wide(rows, "gain_brier")
    seconds = _wide(rows, "seconds").median()
    win = win_rates(loss)
    by_table = loss.groupby("table").mean()
    order = by_table.mean().sort_values(ascending=False).index
    n = by_table.shape[0]
    head = [
        f"{title} ({n} tables, {len(loss):,} cells)",
        "",
        "| method | log loss improved | Brier improved | win rate | the worst | seconds |",
        "|---|---|---|---|---|---|",
    ]
    lines = []
    for key in order:
        if key == methods.AS_IT_IS:
            continue
        worst = by_table[key].dropna()
        some = "" if len(worst) == n else f" ({len(worst)} of {n} tables)"
        lines.append(
            f"| {_bold(key)}{some} | {_interval(by_table[key])} | "
            f"{_interval(brier.groupby('table').mean()[key])} | "
            f"{_interval(win.groupby('table').mean()[key], signed=False)} | "
            f"{worst.min():+.3f} {worst.idxmin()} | {seconds[key]:.3f} |"
        )
    return "\n".join(head + lines)


def win_rates(gains: pd.DataFrame) -> pd.DataFrame:
    """Share of the other methods that each beats on a cell, ties half; a row a cell."""
    values = gains.to_numpy()
    rates = np.full(values.shape, np.nan)
    for at in range(values.shape[1]):
        away = np.delete(values, at, axis=1)
        here = values[:, [at]]
        known = ~np.isnan(away)
        won = np.where(known, (here - away > _EQUAL) + 0.5 * (np.abs(here - away) <= _EQUAL), 0.0)
        rates[:, at] = won.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    rates[np.isnan(values)] = np.nan
    return pd.DataFrame(rates, index=gains.index, columns=gains.columns)


def _against(rows: pd.DataFrame, title: str) -> str:
    loss, brier = _wide(rows, "gain_log_loss"), _wide(rows, "gain_brier")
    if methods.OURS not in loss:
        return f"{title}\n\nNot measured."
    lines = []
    for key in loss.mean().sort_values(ascending=False).index:
        if key == methods.OURS:
            continue
        by_table = [
            (wide[methods.OURS] - wide[key]).dropna().groupby("table").mean()
            for wide in (loss, brier)
        ]
        won, lost = (int((sign * by_table[0] > _EQUAL).sum()) for sign in (1, -1))
        lines.append(
            f"| {methods.name(key)} | {_interval(by_table[0], 4)} | {_interval(by_table[1], 4)} | "
            f"{won}, {lost} |"
        )
    head = [
        title,
        "",
        "| method | difference in log loss improved | in Brier improved | tables won, lost |",
        "|---|---|---|---|",
    ]
    return "\n".join(head + lines)


def _bold(key: str) -> str:
    return f"**{methods.name(key)}**" if key == methods.OURS else methods.name(key)


def _interval(by_table: pd.Series, digits: int = 3, *, signed: bool = True) -> str:
    """Mean over tables, with the interval by resampled tables."""
    values = by_table.dropna().to_numpy()
    drawn = _resampled(values)
    low, high = np.quantile(drawn, [0.025, 0.975])
    sign = "+" if signed else ""
    return f"{values.mean():{sign}.{digits}f} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def _resampled(values: FloatArray) -> FloatArray:
    picked = np.random.default_rng(0).integers(0, len(values), (_DRAWS, len(values)))
    drawn: FloatArray = values[picked].mean(axis=1)
    return drawn
