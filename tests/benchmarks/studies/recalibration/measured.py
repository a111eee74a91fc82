"""What every part of the study measures, and how its rows become a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.regression import kl_divergence, squared_errors
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.evaluation import row_scores

Row = dict[str, Any]
LEVELS = (0.9, 0.95, 0.99)


def entries(
    common: Row,
    distribution: PredictiveDistribution,
    y: FloatArray,
    scale: float,
    truth: PredictiveDistribution | None = None,
    true_mean: FloatArray | None = None,
) -> list[Row]:
    """One row a measure: mean CRPS, log score, MSE, sMIS, coverage, and where known the truth."""
    if truth is not None:
        true_mean = truth.mean()
    rows = row_scores(distribution, y, scale=scale)
    if true_mean is not None:
        rows["mse_truth"] = squared_errors(distribution, true_mean)
    found = {name: float(np.mean(values)) for name, values in rows.items()}
    for level in LEVELS:
        low, high = distribution.interval(level)
        found[f"coverage{round(100 * level)}"] = 100 * float(np.mean((low <= y) & (y <= high)))
    found["rmse"] = found["mse"] ** 0.5
    if truth is not None:
        found["kl"] = kl_divergence(truth, distribution).value
    return [{**common, "measure": name, "value": value} for name, value in found.items()]


@contextmanager
def timed(common: Row, rows: list[Row], measure: str) -> Iterator[None]:
    """Adds the wall-clock seconds of the body."""
    began = time.perf_counter()
    yield
    rows.append({**common, "measure": measure, "value": time.perf_counter() - began})


def scale_of(y: FloatArray) -> float:
    """Mean absolute outcome of the validation set."""
    return float(np.mean(np.abs(y)))


def split(n: int, seed: int, shares: tuple[float, float]) -> tuple[Any, Any, Any]:
    """Training, validation and test rows; ``shares`` of the first two."""
    order = np.random.default_rng([seed, 7]).permutation(n)
    first, second = (round(share * n) for share in (shares[0], shares[0] + shares[1]))
    return order[:first], order[first:second], order[second:]


def summarised(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean, standard deviation over seeds and their number, for each method and measure."""
    found = rows.groupby([*by, "measure"], sort=False, dropna=False)["value"]
    table: pd.DataFrame = found.agg(["mean", "std", "count"]).reset_index()
    return table


def markdown(
    table: pd.DataFrame,
    by: list[str],
    measures: dict[str, Callable[[float], str]],
    paper: dict[str, dict[str, str]] | None = None,
) -> str:
    """A table of means and spreads, one line a method; ``paper`` adds printed numbers below."""
    head = [*by, *measures]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for key, part in table.groupby(by, sort=False, dropna=False):
        names = key if isinstance(key, tuple) else (key,)
        cells = []
        for measure, text in measures.items():
            found = part[part["measure"] == measure]
            cells.append(_cell(found, text) if len(found) else "")
        lines.append(f"| {' | '.join([*map(str, names), *cells])} |")
        if paper and (printed := paper.get(str(names[0]))):
            words = [printed.get(measure, "") for measure in measures]
            blank = [""] * (len(by) - 1)
            lines.append(f"| {' | '.join(['*printed in the paper*', *blank, *words])} |")
    return "\n".join(lines)


def _cell(found: pd.DataFrame, text: Callable[[float], str]) -> str:
    mean, std, count = found.iloc[0][["mean", "std", "count"]]
    return text(mean) if count < 2 else f"{text(mean)} ± {text(std)}"
